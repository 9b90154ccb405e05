import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.StringJoiner;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;

/**
 * An HDFS of one DataNode and one NameNode, or a pair of them, on 127.0.0.1, for tests.
 *
 * <p>Arguments: a folder for its data, the number of NameNodes (of two, the first becomes the
 * active one), then settings as key=value. It prints one JSON line when it
 * is up, obeys the commands that it reads from standard input, a line each, answers each with a
 * line, and ends when its input ends.
 */
public final class MiniHdfs {
  private MiniHdfs() {}

  public static void main(String[] args) throws Exception {
    File data = new File(args[0]);
    System.setProperty("hadoop.home.dir", data.getPath());
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, data.getPath());
    conf.setInt("dfs.replication", 1);
    conf.setInt("dfs.ls.limit", 100); // entries of a page, so that small folders have many
    // A DataNode that closes a file for WebHDFS asks the NameNode whether it has heard of the
    // block, and asks again after 400 ms; on a busy machine most of the tests' time is that wait.
    conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 10);
    for (int i = 2; i < args.length; i++) {
      int equals = args[i].indexOf('=');
      conf.set(args[i].substring(0, equals), args[i].substring(equals + 1));
    }
    int namenodes = Integer.parseInt(args[1]);
    var builder = new MiniDFSCluster.Builder(conf).numDataNodes(1).format(true);
    if (namenodes == 2) {
      builder.nnTopology(MiniDFSNNTopology.simpleHATopology());
      // For the DataNode, which asks the name service when it writes for WebHDFS.
      conf.set(
          "dfs.client.failover.proxy.provider.minidfs-ns",
          "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
    }
    MiniDFSCluster cluster = builder.build();
    if (namenodes == 2) {
      cluster.transitionToActive(0);
    }
    cluster.waitActive(0);
    var told = new StringJoiner(", ", "[", "]");
    for (int i = 0; i < namenodes; i++) {
      int http = cluster.getNameNode(i).getHttpAddress().getPort();
      told.add(String.format("{\"rpc\": %d, \"http\": %d}", cluster.getNameNodePort(i), http));
    }
    System.out.println("ready " + told);
    System.out.flush();
    try (var input = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        System.out.println(obey(cluster, line.split(" ")));
        System.out.flush();
      }
    } finally {
      cluster.shutdown(true);
    }
    System.exit(0);
  }

  private static String obey(MiniDFSCluster cluster, String[] words) {
    try {
      var hdfs = cluster.getFileSystem(0);
      switch (words[0]) {
        case "safemode":
          hdfs.setSafeMode(words[1].equals("on") ? SafeModeAction.ENTER : SafeModeAction.LEAVE);
          break;
        case "quota":
          hdfs.setQuota(new Path(words[1]), Long.parseLong(words[2]), Long.parseLong(words[3]));
          break;
        case "failover":
          cluster.transitionToStandby(0);
          cluster.transitionToActive(1);
          break;
        case "open":
          hdfs.setPermission(new Path(words[1]), new FsPermission("777"));
          break;
        default:
          return "unknown command";
      }
      return "done";
    } catch (Exception error) {
      return "failed: " + error;
    }
  }
}
