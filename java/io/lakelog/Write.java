package io.lakelog;

import io.lakelog.BridgeLogStore.CommitOutcomeUnknownException;
import io.lakelog.BridgeLogStore.ServiceException;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Iterator;

/**
 * One write, to its end.
 *
 * <p>The service writes nothing before it has heard the END of the content. So what happens before
 * leaves no doubt; where the connection breaks after it, the file under the name is compared with
 * what was to be written:
 *
 * <pre>
 *   the same bytes         written: a commit has bytes of its own, by its txnId
 *   other bytes            somebody else has the name (or, to be replaced: written once more)
 *   nothing                written once more: the name has one winner, be it the first attempt
 *   no service any more    asked again for some seconds, then unknown
 * </pre>
 */
final class Write {
  /** Of larger content only the digest is kept: it can be recognised, and not be sent again. */
  private static final int MOST_KEPT = 8 << 20;

  private static final int PART = 256 << 10;
  private static final long PAUSE_MILLIS = 100;

  private final Connections connections;
  private final String path;
  private final boolean overwrite;
  private final double settleSeconds;
  private final MessageDigest digest;
  private ByteArrayOutputStream kept = new ByteArrayOutputStream();
  private long length;
  private byte[] sum;

  Write(Connections connections, String path, boolean overwrite, double settleSeconds) {
    this.connections = connections;
    this.path = path;
    this.overwrite = overwrite;
    this.settleSeconds = settleSeconds;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  void run(Iterator<String> actions) throws IOException {
    Connection connection = connections.take();
    try {
      begin(connection);
      sendAll(connection, actions);
    } catch (Connection.BrokenException broken) {
      connection.close();
      if (Thread.currentThread().isInterrupted()) {
        throw interrupted("nothing was written");
      }
      throw new IOException(
          "the LogStore service went away while " + path + " was being sent to it. Nothing was "
              + "written; run it again when the service is back",
          broken);
    } catch (IOException | RuntimeException | Error own) {
      takeBack(connection);
      throw own;
    }
    sum = digest.digest();
    try {
      end(connection);
    } catch (Connection.BrokenException broken) {
      settle(broken);
    }
  }

  private void begin(Connection connection) throws IOException {
    connection.send(Wire.WRITE, new Wire.Payload().truth(overwrite).text(path).bytes());
  }

  private void sendAll(Connection connection, Iterator<String> actions) throws IOException {
    ByteArrayOutputStream part = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      byte[] line = encoded(actions.next());
      part.write(line, 0, line.length);
      part.write('\n');
      if (part.size() >= PART) {
        sendPart(connection, part.toByteArray());
        part.reset();
      }
    }
    if (part.size() > 0) {
      sendPart(connection, part.toByteArray());
    }
  }

  /** As UTF-8; half of a pair of surrogates is an error, and not a question mark. */
  private static byte[] encoded(String line) throws CharacterCodingException {
    for (int at = 0; at < line.length(); at++) {
      if (Character.isSurrogate(line.charAt(at))) {
        ByteBuffer found = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(line));
        byte[] bytes = new byte[found.remaining()];
        found.get(bytes);
        return bytes;
      }
    }
    return line.getBytes(StandardCharsets.UTF_8);
  }

  private void sendPart(Connection connection, byte[] part) throws IOException {
    digest.update(part);
    length += part.length;
    if (kept != null && length <= MOST_KEPT) {
      kept.write(part, 0, part.length);
    } else {
      kept = null;
    }
    connection.sendContent(part);
  }

  /** The actions failed: let nothing of them be left before whoever gave them hears of it. */
  private void takeBack(Connection connection) {
    try {
      connection.send(Wire.ABORT, new byte[0]);
      connection.answer(path);
    } catch (Connection.BrokenException broken) {
      connection.close();
    } catch (IOException done) {
      connections.giveBack(connection);
    }
  }

  /** From here on a broken connection leaves a doubt. */
  private void end(Connection connection) throws IOException {
    connection.send(Wire.END, new byte[0]);
    try {
      connection.answer(path);
      connections.giveBack(connection);
    } catch (Connection.BrokenException broken) {
      throw broken;
    } catch (ServiceException said) {
      connections.giveBack(connection);
      boolean settledByStore = !said.getKind().equals("unknown") && !said.getKind().equals("failed");
      if (settledByStore) {
        throw said;
      }
      lookUp(said);
    } catch (IOException said) {
      connections.giveBack(connection);
      throw said;
    }
  }

  /** The store itself can't say what became of it; whether a look can is all that is left. */
  private void lookUp(ServiceException said) throws IOException {
    boolean ours;
    try {
      ours = isOurs();
    } catch (FileAlreadyExistsException | Connection.BrokenException known) {
      throw known;
    } catch (IOException stillDark) {
      // As it stands it would say that nothing was written, as all others do.
      throw unknown(said);
    }
    if (!ours) {
      throw unknown(said);
    }
  }

  private void settle(IOException broken) throws IOException {
    // An interrupt closes a channel, and would close the next one: it is put aside until then.
    boolean interrupted = Thread.interrupted();
    long deadline = System.nanoTime() + (long) (settleSeconds * 1e9);
    IOException last = broken;
    try {
      while (true) {
        try {
          settleOnce();
          return;
        } catch (FileAlreadyExistsException | CommitOutcomeUnknownException decided) {
          throw decided;
        } catch (IOException again) {
          last = again;
        }
        if (System.nanoTime() >= deadline) {
          throw unknown(last);
        }
        try {
          Thread.sleep(PAUSE_MILLIS);
        } catch (InterruptedException later) {
          interrupted = true;
        }
        interrupted |= Thread.interrupted();
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void settleOnce() throws IOException {
    if (isOurs()) {
      return;
    }
    if (kept == null) {
      throw new IOException("it is not there, and too large to be sent again");
    }
    Connection connection = connections.take();
    begin(connection);
    connection.sendContent(kept.toByteArray());
    try {
      end(connection);
    } catch (FileAlreadyExistsException taken) {
      if (!isOurs()) {
        throw taken;
      }
    }
  }

  /** Whether the file is there with our bytes; no, where there is none, or one to be replaced. */
  private boolean isOurs() throws IOException {
    try {
      Wire.Fields found = connections.ask(Wire.DIGEST, path);
      if (found.readLong() == length && Arrays.equals(found.readRaw(sum.length), sum)) {
        return true;
      }
    } catch (FileNotFoundException missing) {
      return false;
    }
    if (overwrite) {
      return false;
    }
    throw new FileAlreadyExistsException(path);
  }

  private InterruptedIOException interrupted(String text) {
    return new InterruptedIOException("interrupted while " + path + " was being sent: " + text);
  }

  private CommitOutcomeUnknownException unknown(IOException cause) {
    String name = path.substring(path.lastIndexOf('/') + 1);
    String what = name.matches("\\d{20}\\.json") ? "of version " + Long.parseLong(name.substring(0, 20)) + ", " : "";
    return new CommitOutcomeUnknownException(
        "the outcome " + what + path + ", is unknown: " + cause.getMessage()
            + ". Do not clean up: delete no data file of this commit, and run no VACUUM that might. "
            + "Read that file when the service or the storage is back: if it holds this commit's "
            + "txnId, the commit landed; if it is absent, run the job again",
        cause);
  }
}
