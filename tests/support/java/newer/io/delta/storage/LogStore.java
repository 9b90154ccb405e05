package io.delta.storage;

import java.io.IOException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** Delta's interface as a later version might have it: with one more method to implement. */
public abstract class LogStore {
  private final Configuration conf;

  public LogStore(Configuration conf) {
    this.conf = conf;
  }

  public Configuration initHadoopConf() {
    return conf;
  }

  public abstract CloseableIterator<String> read(Path path, Configuration conf) throws IOException;

  public abstract void write(
      Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException;

  public abstract Iterator<FileStatus> listFrom(Path path, Configuration conf) throws IOException;

  public abstract Path resolvePathOnPhysicalStorage(Path path, Configuration conf)
      throws IOException;

  public abstract Boolean isPartialWriteVisible(Path path, Configuration conf) throws IOException;

  public abstract boolean writeIfMatch(Path path, String tag) throws IOException;
}
