package io.lakelog;

import io.delta.storage.CloseableIterator;
import io.delta.storage.LogStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * A LogStore for Delta Lake on the JVM that commits by lakelog's stores.
 *
 * <p>Every read, write and listing in a folder `_delta_log` is asked of the LogStore service on this
 * host: `lakelog.spark.bridge` runs it within a PySpark driver, and `lakelog serve` beside any
 * other. Delta uses a log store for one thing elsewhere, VACUUM's listings of data files; these go
 * to Hadoop's file system, as they do with Delta's own stores. Tasks of Spark may run where no
 * service is; what they read or list of a log they take from Hadoop's file system if so.
 *
 * <p>A write returns when the file is there; it throws {@link
 * java.nio.file.FileAlreadyExistsException} when somebody else's file has the name. If the
 * connection breaks so that neither is known, it asks again until that is settled, and throws
 * {@link CommitOutcomeUnknownException} if it can't be. Any other exception means that nothing was
 * written.
 *
 * <p>Two settings in Hadoop's conf, both optional: `lakelog.bridge.endpoint`, the service's endpoint
 * file (else the environment's LAKELOG_BRIDGE, else ~/.lakelog/bridge), and
 * `lakelog.bridge.settle.seconds` (10), how long to ask again. The settings of storages that the
 * conf has go to the service, which makes its stores with them.
 */
public final class BridgeLogStore extends LogStore {
  private static final String ENDPOINT = "lakelog.bridge.endpoint";
  private static final String SETTLE_SECONDS = "lakelog.bridge.settle.seconds";
  private static final String[] FORWARDED = {
    "fs.", "dfs.", "hadoop.security.", "kerberos.", "google.cloud.auth.", "io.delta.storage.", "lakelog.",
  };

  private final Connections connections;
  private final double settleSeconds;

  /** Made by Delta, by its class name; nothing is asked of the service yet. */
  public BridgeLogStore(Configuration conf) {
    super(conf);
    String file = conf.get(ENDPOINT, "").trim();
    connections =
        new Connections(file.isEmpty() ? Endpoint.defaultFile() : file, forwarded(conf));
    settleSeconds = conf.getDouble(SETTLE_SECONDS, 10);
  }

  @Override
  public CloseableIterator<String> read(Path given, Configuration conf) throws IOException {
    Path path = resolvePathOnPhysicalStorage(given, conf);
    if (!inLog(path)) {
      return HadoopFallback.read(path, conf);
    }
    try {
      return new Lines(connections.stream(Wire.READ, path.toString()));
    } catch (NoServiceException gone) {
      if (!HadoopFallback.inTask()) {
        throw gone;
      }
      return HadoopFallback.read(path, conf);
    }
  }

  @Override
  public void write(Path given, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    Path path = resolvePathOnPhysicalStorage(given, conf);
    new Write(connections, path.toString(), overwrite, settleSeconds).run(actions);
    if (actions instanceof Closeable) {
      ((Closeable) actions).close();
    }
  }

  @Override
  public Iterator<FileStatus> listFrom(Path given, Configuration conf) throws IOException {
    Path path = resolvePathOnPhysicalStorage(given, conf);
    if (!inLog(path)) {
      return HadoopFallback.listFrom(path, conf);
    }
    try {
      return listed(path);
    } catch (NoServiceException gone) {
      if (!HadoopFallback.inTask()) {
        throw gone;
      }
      return HadoopFallback.listFrom(path, conf);
    }
  }

  @Override
  public Path resolvePathOnPhysicalStorage(Path path, Configuration conf) throws IOException {
    DeltaApi.check(); // every call comes by here
    // A path with a scheme is whole already, and its file system need not be there.
    return path.toUri().getScheme() != null ? path : path.getFileSystem(conf).makeQualified(path);
  }

  @Override
  public Boolean isPartialWriteVisible(Path given, Configuration conf) throws IOException {
    try {
      String path = resolvePathOnPhysicalStorage(given, conf).toString();
      return connections.ask(Wire.PARTIAL, path).readBoolean();
    } catch (NoServiceException gone) {
      if (!HadoopFallback.inTask()) {
        throw gone;
      }
      return true; // the careful answer: a checkpoint is written under another name, and renamed
    }
  }

  private Iterator<FileStatus> listed(Path path) throws IOException {
    // As a whole: whoever takes it may stop anywhere, and has no way to say so.
    List<FileStatus> found = new ArrayList<>();
    String whole = path.toString();
    Folder folder = new Folder(whole.substring(0, whole.lastIndexOf('/') + 1));
    try (Connections.Stream stream = connections.stream(Wire.LIST, whole)) {
      for (Wire.Fields entries = stream.next(); entries != null; entries = stream.next()) {
        while (entries.more()) {
          String name = entries.readText();
          long length = entries.readLong();
          long time = entries.readLong();
          boolean isFolder = entries.readBoolean();
          found.add(new FileStatus(length, isFolder, 1, 0, time, folder.of(name)));
        }
      }
    }
    return found.iterator();
  }

  /** Whether a path lies in the log of a table, which is the service's; data files are Hadoop's. */
  private static boolean inLog(Path path) {
    for (Path at = path; at != null; at = at.getParent()) {
      if (at.getName().equals("_delta_log")) {
        return true;
      }
    }
    return false;
  }

  private static Map<String, String> forwarded(Configuration conf) {
    Map<String, String> found = new HashMap<>();
    for (Map.Entry<String, String> each : conf) {
      String key = each.getKey();
      String bare = key.startsWith("spark.") ? key.substring("spark.".length()) : key;
      bare = bare.startsWith("hadoop.") && key.startsWith("spark.") ? bare.substring("hadoop.".length()) : bare;
      // Other keys of the bridge's own, `lakelog.bridge.store` and its like, are the service's.
      boolean ours = bare.equals(ENDPOINT) || bare.equals(SETTLE_SECONDS);
      if (ours || !startsWithAny(bare) || isDefault(conf, key)) {
        continue;
      }
      String value = conf.get(key);
      if (value != null) {
        found.put(key, value);
      }
    }
    return found;
  }

  private static boolean startsWithAny(String key) {
    for (String family : FORWARDED) {
      if (key.startsWith(family)) {
        return true;
      }
    }
    return false;
  }

  /** Whether a setting is only what Hadoop comes with: core-default.xml and the like. */
  private static boolean isDefault(Configuration conf, String key) {
    String[] sources = conf.getPropertySources(key);
    return sources != null && sources.length > 0 && sources[sources.length - 1].endsWith("-default.xml");
  }

  /** The service can't be reached: nothing was asked of it, and nothing was written. */
  public static final class NoServiceException extends IOException {
    private static final long serialVersionUID = 1;

    NoServiceException(String text, Throwable cause) {
      super(text, cause);
    }
  }

  /** What the service, or the store behind it, says against a request. */
  public static final class ServiceException extends IOException {
    private static final long serialVersionUID = 1;
    private final String kind;

    ServiceException(String kind, String text) {
      super(text);
      this.kind = kind;
    }

    /** What programs may act on: `refused`, `unavailable`, `too-large`, `not-utf8`, … */
    public String getKind() {
      return kind;
    }
  }

  /** The file may have been written, now or later; nothing that it refers to may be deleted. */
  public static final class CommitOutcomeUnknownException extends IOException {
    private static final long serialVersionUID = 1;

    CommitOutcomeUnknownException(String text, Throwable cause) {
      super(text, cause);
    }
  }
}
