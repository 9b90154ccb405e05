import io.delta.storage.CloseableIterator;
import io.delta.storage.LogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.TreeSet;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * What Delta asks of a LogStore in the JVM, a method for each promise; any class of that API is held
 * to them, Delta's own among them.
 *
 * <pre>
 *   java LogStoreCases.java ENDPOINT FOLDER CLASS…
 * </pre>
 *
 * prints for each class and method a line: class, method, and what went wrong, if anything.
 */
public final class LogStoreCases {
  private static final int LONG = 20_000;
  private static final String BRIDGE = "io.lakelog.BridgeLogStore";

  /** Where lakelog's stores promise more than Delta's. */
  @Retention(RetentionPolicy.RUNTIME)
  @interface BridgeOnly {}

  private interface Call {
    void run() throws Exception;
  }

  private final Configuration conf;
  private final LogStore store;
  private final boolean bridge;
  private final java.nio.file.Path log;

  private LogStoreCases(String kind, String endpoint, java.nio.file.Path folder) throws Exception {
    conf = new Configuration();
    conf.setClassLoader(LogStoreCases.class.getClassLoader());
    conf.set("lakelog.bridge.endpoint", endpoint);
    store = (LogStore) Class.forName(kind).getConstructor(Configuration.class).newInstance(conf);
    bridge = kind.equals(BRIDGE);
    log = Files.createDirectories(folder.resolve("a table").resolve("_delta_log"));
  }

  public static void main(String[] args) throws Exception {
    for (String kind : Arrays.asList(args).subList(2, args.length)) {
      for (Method each : LogStoreCases.class.getDeclaredMethods()) {
        boolean isCase = each.getName().contains("_") && !each.isSynthetic();
        if (!isCase || each.isAnnotationPresent(BridgeOnly.class) && !kind.equals(BRIDGE)) {
          continue;
        }
        String result = "";
        try {
          java.nio.file.Path folder = Paths.get(args[1], kind, each.getName());
          each.invoke(new LogStoreCases(kind, args[0], folder));
        } catch (InvocationTargetException e) {
          StackTraceElement where =
              Arrays.stream(e.getCause().getStackTrace())
                  .filter(at -> at.getMethodName().equals(each.getName()))
                  .findFirst()
                  .orElse(e.getCause().getStackTrace()[0]);
          result = (e.getCause() + " at " + where).replace('\n', ' ').replace('\t', ' ');
        }
        System.out.println(kind + "\t" + each.getName() + "\t" + result);
      }
    }
  }

  // Making, reading, writing.

  void it_is_made_by_its_name_and_keeps_the_conf_that_it_was_made_with() {
    equal(true, store.initHadoopConf() == conf);
  }

  void lines_come_back_in_order_and_each_ends_with_a_line_feed() throws Exception {
    write(0, "zero", "", "{\"a\":\"grüße, 世界, \uD83C\uDF0A\"}");
    write(1, "one");
    equal(Arrays.asList("zero", "", "{\"a\":\"grüße, 世界, \uD83C\uDF0A\"}"), read(0));
    equal(Arrays.asList("one"), read(1));
    equal("zero\n\n{\"a\":\"grüße, 世界, \uD83C\uDF0A\"}\n", content(0));
    equal("one\n", content(1));
  }

  void a_write_leaves_nothing_beside_its_file() throws Exception {
    write(0, "zero");
    overwrite(0, "again");
    thrown(FileAlreadyExistsException.class, () -> write(0, "late"));
    for (String name : present()) {
      // Hadoop's local files have a sum beside them; one without its file would be a rest.
      equal(true, name.equals(name(0)) || name.equals("." + name(0) + ".crc"));
    }
  }

  void no_actions_make_an_empty_file() throws Exception {
    write(0);
    equal(Collections.emptyList(), read(0));
    equal("", content(0));
  }

  void a_long_file_comes_back_whole() throws Exception {
    List<String> lines = Collections.nCopies(LONG, String.join("", Collections.nCopies(50, "0123456789")));
    store.write(path(0), lines.iterator(), false, conf);
    equal(lines, read(0));
  }

  void what_was_changed_behind_its_back_is_what_is_read() throws Exception {
    write(0, "old");
    equal(Arrays.asList("old"), read(0));
    Files.deleteIfExists(log.resolve("." + name(0) + ".crc"));
    Files.write(log.resolve(name(0)), "new\nand more\n".getBytes(StandardCharsets.UTF_8));
    equal(Arrays.asList("new", "and more"), read(0));
  }

  void a_file_that_is_missing_is_not_found() {
    thrown(FileNotFoundException.class, () -> read(7));
  }

  @BridgeOnly
  void a_line_is_kept_as_it_was_written() throws Exception {
    write(0, "  blanks\t ", "a\rb\u0085c\u2028d", " ");
    equal(Arrays.asList("  blanks\t ", "a\rb\u0085c\u2028d", " "), read(0));
  }

  // One winner.

  void a_name_that_is_taken_is_refused_and_its_file_kept() throws Exception {
    write(0, "first");
    thrown(FileAlreadyExistsException.class, () -> write(0, "second"));
    thrown(FileAlreadyExistsException.class, () -> write(0, "first"));
    equal(Arrays.asList("first"), read(0));
  }

  void an_overwrite_makes_or_replaces() throws Exception {
    overwrite(0, "one", "two");
    equal(Arrays.asList("one", "two"), read(0));
    overwrite(0, "three");
    equal(Arrays.asList("three"), read(0));
  }

  // Delta's store looks whether the name is free, and then renames: on a local disk two may win.
  @BridgeOnly
  void of_threads_that_write_one_name_one_wins() throws Exception {
    int writers = 8;
    for (int version = 0; version < 10; version++) {
      CyclicBarrier begin = new CyclicBarrier(writers);
      AtomicInteger refused = new AtomicInteger();
      List<String> won = Collections.synchronizedList(new ArrayList<>());
      List<Throwable> others = Collections.synchronizedList(new ArrayList<>());
      List<Thread> threads = new ArrayList<>();
      for (int n = 0; n < writers; n++) {
        String line = "writer " + n;
        int name = version;
        threads.add(
            new Thread(
                () -> {
                  try {
                    begin.await();
                    write(name, line);
                    won.add(line);
                  } catch (FileAlreadyExistsException taken) {
                    refused.incrementAndGet();
                  } catch (Throwable other) {
                    others.add(other);
                  }
                }));
      }
      threads.forEach(Thread::start);
      for (Thread each : threads) {
        each.join();
      }
      equal(Collections.emptyList(), others);
      equal(writers - 1, refused.get());
      equal(won, read(version));
    }
  }

  void actions_that_fail_leave_a_free_name() throws Exception {
    Iterator<String> failing =
        new Iterator<String>() {
          private int left = 3;

          @Override
          public boolean hasNext() {
            return true;
          }

          @Override
          public String next() {
            if (left-- == 0) {
              throw new IllegalStateException("no more");
            }
            return "a line";
          }
        };
    thrown(IllegalStateException.class, () -> store.write(path(0), failing, false, conf));
    thrown(FileNotFoundException.class, () -> read(0));
    write(0, "whole");
    equal(Arrays.asList("whole"), read(0));
  }

  // Listing.

  void a_listing_begins_with_the_name_that_is_asked_for() throws Exception {
    for (int version : new int[] {3, 1, 2}) {
      write(version, "x");
    }
    equal(Arrays.asList(name(1), name(2), name(3)), listed(path(0)));
    equal(Arrays.asList(name(1), name(2), name(3)), listed(path(1)));
    equal(Arrays.asList(name(2), name(3)), listed(path(2)));
    equal(Arrays.asList(name(3)), listed(path(3)));
    equal(Collections.emptyList(), listed(path(4)));
  }

  void a_listing_has_every_name_in_order_and_goes_no_deeper() throws Exception {
    List<String> wanted = new ArrayList<>(Arrays.asList(
        "00000000000000000001.checkpoint.parquet", name(1), name(10), "A", "_last_checkpoint",
        "_sidecars", "a folder", "a%20file", "b+c", "z", "ü"));
    for (String each : wanted) {
      if (each.equals("_sidecars") || each.equals("a folder")) {
        Files.createDirectories(log.resolve(each));
        Files.createFile(log.resolve(each).resolve("within"));
      } else {
        Files.createFile(log.resolve(each));
      }
    }
    List<String> begun = listed(new Path(new Path(log.toUri()), "\0"));
    equal(wanted, begun);
    equal(wanted.subList(0, 3), begun.subList(0, 3));
    equal(wanted.subList(3, wanted.size()), listed(new Path(new Path(log.toUri()), "A")));
  }

  void an_entry_has_its_path_length_time_and_kind() throws Exception {
    long before = System.currentTimeMillis() - 2000;
    write(0, "grüße");
    Files.createDirectories(log.resolve("z"));
    Iterator<FileStatus> found = store.listFrom(path(0), conf);
    FileStatus file = found.next();
    equal(path(0), file.getPath());
    equal(8L, file.getLen());
    equal(false, file.isDirectory());
    equal(true, file.getModificationTime() >= before);
    equal(true, file.getModificationTime() <= System.currentTimeMillis() + 2000);
    FileStatus folder = found.next();
    equal("z", folder.getPath().getName());
    equal(true, folder.isDirectory());
    equal(false, found.hasNext());
  }

  void what_was_written_is_listed_at_once() throws Exception {
    for (int version = 0; version < 20; version++) {
      write(version, "x");
      equal(Arrays.asList(name(version)), listed(path(version)));
    }
  }

  void a_folder_that_is_missing_is_not_found() {
    Path none = new Path(new Path(log.getParent().resolve("none/_delta_log").toUri()), name(0));
    thrown(FileNotFoundException.class, () -> store.listFrom(none, conf));
    thrown(FileNotFoundException.class, () -> store.read(none, conf));
  }

  void data_files_are_listed_from_their_own_folder() throws Exception {
    java.nio.file.Path table = log.getParent();
    Files.createFile(table.resolve("part-1.parquet"));
    Files.createDirectories(table.resolve("month=1"));
    Path all = new Path(new Path(table.toUri()), "\0");
    equal(Arrays.asList("_delta_log", "month=1", "part-1.parquet"), listed(all));
    Path none = new Path(new Path(table.resolve("none").toUri()), "\0");
    thrown(FileNotFoundException.class, () -> store.listFrom(none, conf));
  }

  // Readings that are lazy, and are closed.

  void a_reading_takes_no_more_than_it_is_asked_for() throws Exception {
    String line = String.join("", Collections.nCopies(1000, "x"));
    store.write(path(0), Collections.nCopies(LONG, line).iterator(), false, conf);
    Files.deleteIfExists(log.resolve("." + name(0) + ".crc"));
    try (CloseableIterator<String> lines = store.read(path(0), conf)) {
      equal(line, lines.next());
      try (RandomAccessFile file = new RandomAccessFile(log.resolve(name(0)).toFile(), "rw")) {
        file.setLength(0);
      }
      int rest = 0;
      while (lines.hasNext()) {
        lines.next();
        rest++;
      }
      equal(true, rest < LONG - 1);
    }
  }

  void a_reading_that_ends_stays_ended() throws Exception {
    write(0, "one", "two");
    CloseableIterator<String> lines = store.read(path(0), conf);
    equal(true, lines.hasNext());
    equal(true, lines.hasNext());
    equal("one", lines.next());
    equal("two", lines.next());
    equal(false, lines.hasNext());
    equal(false, lines.hasNext());
    thrown(NoSuchElementException.class, lines::next);
    lines.close();
    lines.close();
  }

  void a_reading_that_was_closed_early_says_so_instead_of_ending() throws Exception {
    write(0, "one", "two", "three");
    CloseableIterator<String> lines = store.read(path(0), conf);
    equal("one", lines.next());
    lines.close();
    lines.close();
    thrown(IllegalStateException.class, lines::hasNext);
    thrown(IllegalStateException.class, lines::next);
  }

  void readings_that_are_left_off_cost_nothing_that_lasts() throws Exception {
    store.write(path(0), Collections.nCopies(LONG, "a line").iterator(), false, conf);
    for (int n = 0; n < 200; n++) {
      CloseableIterator<String> lines = store.read(path(0), conf);
      lines.next();
      lines.close();
    }
    equal("a line", store.read(path(0), conf).next());
  }

  // Paths and confs.

  void a_path_is_resolved_to_what_the_file_system_calls_it() throws Exception {
    Path bare = new Path(log.toString(), name(0));
    Path whole = new Path("file:" + log + "/" + name(0));
    equal(whole, store.resolvePathOnPhysicalStorage(bare, conf));
    equal(whole, store.resolvePathOnPhysicalStorage(whole, conf));
    Path here = store.resolvePathOnPhysicalStorage(new Path("a/b"), conf);
    equal("file", here.toUri().getScheme());
    equal(Paths.get("").toAbsolutePath() + "/a/b", here.toUri().getPath());
  }

  void one_file_has_many_spellings() throws Exception {
    List<Path> spellings = new ArrayList<>();
    for (String start : new String[] {"", "file:", "file://", "file:/../..", "/."}) {
      spellings.add(new Path(start + log + "/" + name(0)));
    }
    store.write(spellings.get(0), Collections.singleton("x").iterator(), false, conf);
    for (Path each : spellings) {
      thrown(
          FileAlreadyExistsException.class,
          () -> store.write(each, Collections.singleton("y").iterator(), false, conf));
      equal(Arrays.asList("x"), all(store.read(each, conf)));
      equal(Arrays.asList(name(0)), listed(each));
    }
  }

  void names_are_taken_literally() throws Exception {
    for (String folder : new String[] {"a b", "a%20b", "a+b", "grüße", "x=1", "q?", "h#", "[a]{b}"}) {
      java.nio.file.Path at =
          Files.createDirectories(log.getParent().resolve(folder).resolve("_delta_log"));
      Path path = new Path(at.toString(), name(0));
      store.write(path, Collections.singleton(folder).iterator(), false, conf);
      equal(folder + "\n", new String(Files.readAllBytes(at.resolve(name(0))), StandardCharsets.UTF_8));
      equal(Arrays.asList(folder), all(store.read(path, conf)));
      FileStatus found = store.listFrom(path, conf).next();
      equal(at + "/" + name(0), found.getPath().toUri().getPath());
      equal(Arrays.asList(folder), all(store.read(found.getPath(), conf)));
    }
  }

  void a_call_finds_the_file_system_by_its_own_conf() throws Exception {
    Files.createFile(log.getParent().resolve("part-1.parquet"));
    Path path = new Path("own://host" + log.getParent() + "/part-0");
    thrown(IOException.class, () -> store.listFrom(path, conf));
    Configuration own = new Configuration(conf);
    own.set("fs.own.impl", OwnFiles.class.getName());
    own.set("fs.own.impl.disable.cache", "true");
    equal(Arrays.asList("part-1.parquet"), listed(path, own));
  }

  void whether_a_part_may_be_seen_is_what_the_store_behind_it_says() throws Exception {
    // Delta then writes checkpoints under another name and renames them: true for every rename.
    equal(!bridge, store.isPartialWriteVisible(path(0), conf));
  }

  /** The local disk under another scheme. */
  public static final class OwnFiles extends RawLocalFileSystem {
    @Override
    public URI getUri() {
      return URI.create("own://host/");
    }
  }

  // What the cases share.

  private static String name(int version) {
    return String.format("%020d.json", version);
  }

  private Path path(int version) {
    return new Path(new Path("file:" + log), name(version));
  }

  private void write(int version, String... lines) throws IOException {
    store.write(path(version), Arrays.asList(lines).iterator(), false, conf);
  }

  private void overwrite(int version, String... lines) throws IOException {
    store.write(path(version), Arrays.asList(lines).iterator(), true, conf);
  }

  private List<String> read(int version) throws IOException {
    return all(store.read(path(version), conf));
  }

  private static List<String> all(CloseableIterator<String> lines) throws IOException {
    List<String> found = new ArrayList<>();
    try (CloseableIterator<String> open = lines) {
      open.forEachRemaining(found::add);
    }
    return found;
  }

  private String content(int version) throws IOException {
    return new String(Files.readAllBytes(log.resolve(name(version))), StandardCharsets.UTF_8);
  }

  private TreeSet<String> present() {
    return new TreeSet<>(Arrays.asList(log.toFile().list()));
  }

  private List<String> listed(Path path) throws IOException {
    return listed(path, conf);
  }

  private List<String> listed(Path path, Configuration with) throws IOException {
    List<String> names = new ArrayList<>();
    store.listFrom(path, with).forEachRemaining(each -> names.add(each.getPath().getName()));
    return names;
  }

  private static void equal(Object wanted, Object found) {
    if (!wanted.equals(found)) {
      String text = wanted + " was wanted, and there is " + found;
      throw new AssertionError(text.substring(0, Math.min(text.length(), 500)));
    }
  }

  private static void thrown(Class<? extends Exception> wanted, Call call) {
    try {
      call.run();
    } catch (Exception found) {
      if (wanted.isInstance(found)) {
        return;
      }
      throw new AssertionError(wanted + " was wanted, and there is " + found, found);
    }
    throw new AssertionError(wanted + " was wanted, and nothing was thrown");
  }
}
