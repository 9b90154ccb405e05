package lakelog.tests;

import io.delta.storage.HadoopFileSystemLogStore;
import io.delta.storage.internal.FileNameUtils;
import io.delta.storage.internal.PathLock;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.time.Instant;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.http.apache.ApacheHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.ConditionalCheckFailedException;
import software.amazon.awssdk.services.dynamodb.model.PutItemRequest;

/**
 * Delta's protocol for commits on S3 with a lock table, for a Delta Lake on the JVM.
 *
 * <p>It follows what Delta's own S3DynamoDBLogStore does step by step, down to the order of
 * requests and what is done about each failure, and is here because that class is not in every
 * mirror of Maven Central. What it leaves out: making the lock table, the user name in a URI, and
 * reading again a file that was replaced while it was read. Two settings are the tests' own:
 * `lakelog.tests.endpoint`, where the table is, and `lakelog.tests.stop`, a file; while it exists,
 * writers stop right after the row of their commit is made, as a crash would stop them.
 */
public final class LockTableLogStore extends HadoopFileSystemLogStore {
  private static final String PREFIX = "spark.io.delta.storage.S3DynamoDBLogStore.";
  private static final long TTL_SECONDS = 86400;
  private static final int REPEATS = 3;
  private static final PathLock LOCK = new PathLock();

  private final DynamoDbClient client;
  private final String table;
  private final String stop;

  public LockTableLogStore(Configuration conf) {
    super(conf);
    table = conf.get(PREFIX + "ddb.tableName", "delta_log");
    stop = conf.get("lakelog.tests.stop");
    client =
        DynamoDbClient.builder()
            .endpointOverride(URI.create(conf.get("lakelog.tests.endpoint")))
            .region(Region.of(conf.get(PREFIX + "ddb.region", "us-east-1")))
            .credentialsProvider(
                StaticCredentialsProvider.create(
                    AwsBasicCredentials.create(
                        conf.get("lakelog.tests.access.key"),
                        conf.get("lakelog.tests.secret.key"))))
            .httpClientBuilder(ApacheHttpClient.builder())
            .build();
  }

  /** One row: a commit, and the temporary file that holds it. */
  private record Entry(Path tablePath, String fileName, String tempPath, boolean complete) {
    Path file() {
      return new Path(new Path(tablePath, "_delta_log"), fileName);
    }

    Path temp() {
      return new Path(new Path(tablePath, "_delta_log"), tempPath);
    }

    Entry completed() {
      return new Entry(tablePath, fileName, tempPath, true);
    }
  }

  @Override
  public void write(Path given, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    FileSystem fs = given.getFileSystem(conf);
    Path path = fs.makeQualified(given);
    locked(
        path,
        () -> {
          if (overwrite) {
            writeActions(fs, path, actions);
          } else {
            commit(fs, path, actions);
          }
        });
  }

  private void commit(FileSystem fs, Path path, Iterator<String> actions) throws IOException {
    if (fs.exists(path)) {
      throw new FileAlreadyExistsException(path.toString());
    }
    Path tablePath = path.getParent().getParent();
    if (FileNameUtils.isDeltaFile(path)) {
      checkPrevious(fs, tablePath, FileNameUtils.deltaVersion(path));
    }
    String temp = ".tmp/" + path.getName() + "." + UUID.randomUUID();
    Entry entry = new Entry(tablePath, path.getName(), temp, false);
    writeActions(fs, entry.temp(), actions);
    try {
      put(entry, true);
    } catch (ConditionalCheckFailedException taken) {
      throw new FileAlreadyExistsException(path.toString());
    }
    if (stop != null && new java.io.File(stop).exists()) {
      throw new IOException("stopped by the test after the row of " + path.getName());
    }
    try {
      copy(fs, entry);
      put(entry.completed(), false);
    } catch (Throwable later) {
      // The row has decided: whoever comes next finishes the commit.
    }
  }

  @Override
  public Iterator<FileStatus> listFrom(Path given, Configuration conf) throws IOException {
    FileSystem fs = given.getFileSystem(conf);
    Path path = fs.makeQualified(given);
    if (List.of(path.toUri().getPath().split("/")).contains("_delta_log")) {
      Entry newest = newest(path.getParent().getParent());
      if (newest != null) {
        finish(fs, newest);
      }
    }
    return super.listFrom(path, conf);
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration conf) {
    return false;
  }

  private void checkPrevious(FileSystem fs, Path tablePath, long version) throws IOException {
    if (version == 0) {
      Entry first = get(tablePath, name(0));
      if (first != null && first.complete() && !fs.exists(first.file())) {
        throw new FileSystemException("Old entries for table " + tablePath + " still exist in the external log store");
      }
      return;
    }
    Entry previous = get(tablePath, name(version - 1));
    if (previous != null && !previous.complete()) {
      finish(fs, previous);
    } else if (!fs.exists(new Path(new Path(tablePath, "_delta_log"), name(version - 1)))) {
      throw new FileSystemException(
          "previous commit "
              + name(version - 1)
              + " doesn't exist on the file system but does in the external log store");
    }
  }

  /** Roll a commit forward; several may do so at once, and all write the same bytes. */
  private void finish(FileSystem fs, Entry entry) throws IOException {
    if (entry.complete()) {
      return;
    }
    locked(
        entry.file(),
        () -> {
          boolean copied = false;
          for (int failures = 0; ; failures++) {
            try {
              if (!copied && !fs.exists(entry.file())) {
                copy(fs, entry);
                copied = true;
              }
              put(entry.completed(), false);
              return;
            } catch (FileAlreadyExistsException done) {
              // By another, who may not have marked it yet.
              copied = true;
            } catch (Throwable failure) {
              if (failures >= REPEATS) {
                throw failure;
              }
            }
          }
        });
  }

  private void copy(FileSystem fs, Entry entry) throws IOException {
    try (InputStream in = fs.open(entry.temp())) {
      FSDataOutputStream out = fs.create(entry.file(), false);
      in.transferTo(out);
      // Not closed after a failure: S3A publishes what it has when a stream is closed.
      out.close();
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException taken) {
      throw new FileAlreadyExistsException(entry.file().toString());
    }
  }

  private void writeActions(FileSystem fs, Path path, Iterator<String> actions)
      throws IOException {
    FSDataOutputStream out = fs.create(path, true);
    while (actions.hasNext()) {
      out.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    out.close();
  }

  private interface Work {
    void run() throws IOException;
  }

  /** Threads of one JVM take turns; the lock table decides between processes. */
  private static void locked(Path path, Work work) throws IOException {
    try {
      LOCK.acquire(path);
    } catch (InterruptedException e) {
      throw new InterruptedIOException(e.getMessage());
    }
    try {
      work.run();
    } finally {
      LOCK.release(path);
    }
  }

  private void put(Entry entry, boolean onlyNew) {
    Map<String, AttributeValue> item = new HashMap<>(key(entry.tablePath(), entry.fileName()));
    item.put("tempPath", AttributeValue.fromS(entry.tempPath()));
    item.put("complete", AttributeValue.fromS(Boolean.toString(entry.complete())));
    if (entry.complete()) {
      long expires = Instant.now().getEpochSecond() + TTL_SECONDS;
      item.put("expireTime", AttributeValue.fromN(Long.toString(expires)));
    }
    PutItemRequest.Builder request = PutItemRequest.builder().tableName(table).item(item);
    if (onlyNew) {
      request.conditionExpression("attribute_not_exists(fileName)");
    }
    client.putItem(request.build());
  }

  private Entry get(Path tablePath, String fileName) {
    var reply =
        client.getItem(
            r -> r.tableName(table).key(key(tablePath, fileName)).consistentRead(true));
    return reply.hasItem() ? entry(reply.item()) : null;
  }

  private Entry newest(Path tablePath) {
    var reply =
        client.query(
            r ->
                r.tableName(table)
                    .keyConditionExpression("tablePath = :t")
                    .expressionAttributeValues(
                        Map.of(":t", AttributeValue.fromS(tablePath.toString())))
                    .consistentRead(true)
                    .scanIndexForward(false)
                    .limit(1));
    return reply.items().isEmpty() ? null : entry(reply.items().get(0));
  }

  private static Map<String, AttributeValue> key(Path tablePath, String fileName) {
    return Map.of(
        "tablePath", AttributeValue.fromS(tablePath.toString()),
        "fileName", AttributeValue.fromS(fileName));
  }

  private static Entry entry(Map<String, AttributeValue> item) {
    return new Entry(
        new Path(item.get("tablePath").s()),
        item.get("fileName").s(),
        item.get("tempPath").s(),
        item.get("complete").s().equals("true"));
  }

  private static String name(long version) {
    return String.format("%020d.json", version);
  }
}
