package io.lakelog;

import io.delta.storage.CloseableIterator;
import io.delta.storage.LineCloseableIterator;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Reads and lists by Hadoop's file system, as Delta's own stores do: data files, and in tasks. */
final class HadoopFallback {
  private HadoopFallback() {}

  /** Whether this is a task of Spark's, which may run on a host without a service. */
  static boolean inTask() {
    try {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      Class<?> kind =
          Class.forName(
              "org.apache.spark.TaskContext",
              true,
              loader != null ? loader : HadoopFallback.class.getClassLoader());
      return kind.getMethod("get").invoke(null) != null;
    } catch (ReflectiveOperationException | LinkageError noSpark) {
      return false;
    }
  }

  static CloseableIterator<String> read(Path path, Configuration conf) throws IOException {
    return new LineCloseableIterator(
        new InputStreamReader(path.getFileSystem(conf).open(path), StandardCharsets.UTF_8));
  }

  static Iterator<FileStatus> listFrom(Path path, Configuration conf) throws IOException {
    FileSystem files = path.getFileSystem(conf);
    Path folder = path.getParent();
    if (!files.exists(folder)) {
      throw new FileNotFoundException("No such file or directory: " + folder);
    }
    List<FileStatus> found = new ArrayList<>();
    for (FileStatus each : files.listStatus(folder)) {
      if (each.getPath().getName().compareTo(path.getName()) >= 0) {
        found.add(each);
      }
    }
    found.sort(Comparator.comparing(each -> each.getPath().getName()));
    return found.iterator();
  }
}
