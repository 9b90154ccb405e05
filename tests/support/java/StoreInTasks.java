package lakelog.tests;

import io.delta.storage.CloseableIterator;
import io.lakelog.BridgeLogStore;
import java.util.Collections;
import java.util.StringJoiner;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF4;

/**
 * A function of SQL that asks a BridgeLogStore for something wherever Spark evaluates it, and says
 * where that was: arguments are a row's id, what is asked for, the endpoint file, and a path.
 */
public final class StoreInTasks implements UDF4<Long, String, String, String, String> {
  @Override
  public String call(Long id, String asked, String endpoint, String path) throws Exception {
    String where = TaskContext.get() != null ? "in a task" : "on the driver";
    Configuration conf = new Configuration();
    conf.set("lakelog.bridge.endpoint", endpoint);
    BridgeLogStore store = new BridgeLogStore(conf);
    StringJoiner said = new StringJoiner("\n", where + ": ", "");
    try {
      switch (asked) {
        case "read":
          try (CloseableIterator<String> lines = store.read(new Path(path), conf)) {
            lines.forEachRemaining(said::add);
          }
          break;
        case "list":
          store.listFrom(new Path(path), conf).forEachRemaining(f -> said.add(f.getPath().getName()));
          break;
        case "partial":
          said.add(store.isPartialWriteVisible(new Path(path), conf).toString());
          break;
        default:
          store.write(new Path(path), Collections.singleton("{}").iterator(), false, conf);
          said.add("written");
      }
    } catch (BridgeLogStore.NoServiceException gone) {
      said.add(gone.getClass().getSimpleName());
    }
    return said.toString();
  }
}
