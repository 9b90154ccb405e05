import io.lakelog.BridgeLogStore;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * Takes the time of a BridgeLogStore as its callers in the JVM have it; bridge.py is the other end.
 *
 * <p>The only argument is the service's endpoint file. Each line of the input is a command, and each
 * is answered by the nanoseconds of its calls:
 *
 * <pre>
 *   commit FOLDER FIRST COUNT LINE    COUNT versions of that one line, from FIRST on
 *   list FOLDER FIRST COUNT ENTRIES   COUNT listings from the version FIRST, of that many entries
 *   commits FOLDER FIRST COUNT LINE   as commit; the answer is their sum
 * </pre>
 */
public final class BridgeTimes {
  private BridgeTimes() {}

  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.set("lakelog.bridge.endpoint", args[0]);
    BridgeLogStore store = new BridgeLogStore(conf);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    System.out.println("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] said = line.split("\t");
      int first = Integer.parseInt(said[2]);
      int count = Integer.parseInt(said[3]);
      List<String> times = new ArrayList<>();
      long begun = System.nanoTime();
      for (int n = 0; n < count; n++) {
        long start = System.nanoTime();
        if (said[0].equals("list")) {
          long found = 0;
          Iterator<FileStatus> entries = store.listFrom(name(said[1], first), conf);
          while (entries.hasNext()) {
            found += entries.next().getPath().getName().isEmpty() ? 0 : 1;
          }
          if (found != Long.parseLong(said[4])) {
            throw new IllegalStateException(found + " entries");
          }
        } else {
          Iterator<String> actions = Collections.singleton(said[4]).iterator();
          store.write(name(said[1], first + n), actions, false, conf);
        }
        times.add(Long.toString(System.nanoTime() - start));
      }
      boolean sum = said[0].equals("commits");
      System.out.println(sum ? Long.toString(System.nanoTime() - begun) : String.join(" ", times));
    }
  }

  private static Path name(String folder, int version) {
    return new Path(folder + "/" + String.format("%020d.json", version));
  }
}
