package io.lakelog;

import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;

/** The connections of one store: taken by a thread for a request, and kept for the next one. */
final class Connections {
  private static final int MOST_KEPT = 8;

  private final String file;
  private final Map<String, String> settings;
  private final ConcurrentLinkedDeque<Connection> idle = new ConcurrentLinkedDeque<>();
  private final AtomicInteger kept = new AtomicInteger();

  Connections(String file, Map<String, String> settings) {
    this.file = file;
    this.settings = settings;
  }

  /** A connection that lives: one that was kept may be of a service that is gone. */
  Connection take() throws IOException {
    for (Connection old = idle.pollFirst(); old != null; old = idle.pollFirst()) {
      kept.decrementAndGet();
      if (old.isOpen()) {
        return old;
      }
      old.close();
    }
    return Connection.open(file, settings);
  }

  /** Only for one that has heard the answer to the end. */
  void giveBack(Connection connection) {
    if (kept.incrementAndGet() > MOST_KEPT) {
      kept.decrementAndGet();
      connection.close();
    } else {
      idle.addFirst(connection);
    }
  }

  /** Asks something that may be asked twice. */
  Wire.Fields ask(byte request, String path) throws IOException {
    Connection connection = take();
    Wire.Fields answer;
    try {
      connection.send(request, new Wire.Payload().text(path).bytes());
      answer = connection.answer(path);
    } catch (Connection.BrokenException broken) {
      connection.close();
      connection = Connection.open(file, settings);
      try {
        connection.send(request, new Wire.Payload().text(path).bytes());
        answer = connection.answer(path);
      } catch (Connection.BrokenException again) {
        connection.close();
        throw again;
      }
    } catch (IOException said) {
      giveBack(connection);
      throw said;
    }
    giveBack(connection);
    return answer;
  }

  /** Asks for a stream; its first part is there when this returns. */
  Stream stream(byte request, String path) throws IOException {
    try {
      return new Stream(request, path);
    } catch (Connection.BrokenException broken) {
      return new Stream(request, path);
    }
  }

  /** The parts of a reading or of a listing. */
  final class Stream implements Closeable {
    private final String path;
    private Connection connection;
    private Wire.Fields first;

    private Stream(byte request, String path) throws IOException {
      this.path = path;
      connection = take();
      try {
        connection.send(request, new Wire.Payload().text(path).bytes());
      } catch (IOException e) {
        close();
        throw e;
      }
      first = hear();
    }

    /** The next part; null at the end, and ever after. */
    Wire.Fields next() throws IOException {
      if (first != null) {
        Wire.Fields found = first;
        first = null;
        return found;
      }
      return connection == null ? null : hear();
    }

    private Wire.Fields hear() throws IOException {
      try {
        Wire.Fields part = connection.next(path);
        if (part == null) {
          giveBack(connection);
          connection = null;
        }
        return part;
      } catch (Connection.BrokenException broken) {
        close();
        throw broken;
      } catch (IOException said) {
        giveBack(connection);
        connection = null;
        throw said;
      }
    }

    /** The rest is not wanted: closing the connection is how the service hears of that. */
    @Override
    public void close() {
      if (connection != null) {
        connection.close();
        connection = null;
      }
      first = null;
    }
  }
}
