package io.lakelog;

import io.delta.storage.CloseableIterator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.NoSuchElementException;

/**
 * The lines of a file as it comes, part by part; a line ends at a line feed only.
 *
 * <p>As with Delta's own: to go on after `close` is an error, so that nobody takes half a file for
 * the whole.
 */
final class Lines implements CloseableIterator<String> {
  private final Connections.Stream stream;
  private final ByteArrayOutputStream begun = new ByteArrayOutputStream();
  private byte[] part = new byte[0];
  private int at;
  private String next;
  private boolean ended;
  private boolean closed;

  Lines(Connections.Stream stream) {
    this.stream = stream;
  }

  @Override
  public boolean hasNext() {
    if (closed) {
      throw new IllegalStateException("this reading was closed before its end");
    }
    while (next == null && !ended) {
      int end = at;
      while (end < part.length && part[end] != '\n') {
        end++;
      }
      begun.write(part, at, end - at);
      if (end < part.length) {
        at = end + 1;
        finishLine();
      } else {
        more();
      }
    }
    return next != null;
  }

  @Override
  public String next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    String line = next;
    next = null;
    return line;
  }

  @Override
  public void close() {
    closed = !ended || next != null;
    stream.close();
  }

  private void finishLine() {
    next = new String(begun.toByteArray(), StandardCharsets.UTF_8);
    begun.reset();
  }

  private void more() {
    try {
      Wire.Fields came = stream.next();
      at = 0;
      if (came != null) {
        part = came.rest();
        return;
      }
      part = new byte[0];
      ended = true;
      if (begun.size() > 0) {
        finishLine();
      }
    } catch (IOException e) {
      close();
      throw new UncheckedIOException(e);
    }
  }
}
