package io.lakelog;

import io.delta.storage.CloseableIterator;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * A BridgeLogStore for callers in Python: it hears the bridge's own protocol on a port of
 * 127.0.0.1, and passes each call to the class as Delta would. One store for each Hadoop conf.
 *
 * <p>It prints "ready PORT", and ends with its standard input.
 */
public final class BridgeHarness {
  private static final Map<Map<String, String>, BridgeLogStore> STORES = new ConcurrentHashMap<>();

  private BridgeHarness() {}

  public static void main(String[] args) throws IOException {
    ServerSocket listener = new ServerSocket(0, 128, InetAddress.getByName("127.0.0.1"));
    System.out.println("ready " + listener.getLocalPort());
    daemon(
        () -> {
          while (true) {
            Socket socket = listener.accept();
            daemon(() -> serve(socket));
          }
        });
    while (System.in.read() >= 0) {}
    System.exit(0);
  }

  private interface Work {
    void run() throws Exception;
  }

  private static void daemon(Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (Exception ended) {
                // The client is gone.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private static void serve(Socket socket) throws Exception {
    try (Socket open = socket) {
      socket.setTcpNoDelay(true);
      Client client = new Client(socket);
      Wire.Fields hello = client.hear();
      hello.readText();
      hello.readLong();
      hello.readText();
      hello.readText();
      Map<String, String> conf = new HashMap<>();
      for (long left = ByteBuffer.wrap(hello.readRaw(4)).getInt(); left > 0; left--) {
        conf.put(hello.readText(), hello.readText());
      }
      client.say(Wire.OK, new byte[0]);
      Configuration hadoop = new Configuration();
      conf.forEach(hadoop::set);
      BridgeLogStore store = STORES.computeIfAbsent(conf, c -> new BridgeLogStore(hadoop));
      while (true) {
        Wire.Fields request = client.hear();
        try {
          answer(client, client.kind, request, store, hadoop);
        } catch (Gone gone) {
          return;
        } catch (UncheckedIOException e) {
          client.fail(e.getCause());
        } catch (Exception e) {
          client.fail(e);
        }
      }
    }
  }

  private static void answer(
      Client client, byte kind, Wire.Fields request, BridgeLogStore store, Configuration conf)
      throws Exception {
    switch (kind) {
      case Wire.WRITE:
        boolean overwrite = request.readBoolean();
        Content content = new Content(client);
        try {
          store.write(new Path(request.readText()), content, overwrite, conf);
        } catch (Gone gone) {
          throw gone;
        } catch (Aborted aborted) {
          throw new IOException("taken back");
        } catch (Exception e) {
          content.forEachRemaining(line -> {});
          throw e;
        }
        client.say(Wire.OK, new byte[0]);
        break;
      case Wire.READ:
        try (CloseableIterator<String> lines = store.read(new Path(request.readText()), conf)) {
          while (lines.hasNext()) {
            client.say(Wire.DATA, (lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
          }
        }
        client.say(Wire.END, new byte[0]);
        break;
      case Wire.LIST:
        Iterator<FileStatus> found = store.listFrom(new Path(request.readText()), conf);
        while (found.hasNext()) {
          FileStatus each = found.next();
          Wire.Payload entry = new Wire.Payload().text(each.getPath().getName());
          entry.number(each.getLen()).number(each.getModificationTime()).truth(each.isDirectory());
          client.say(Wire.DATA, entry.bytes());
        }
        client.say(Wire.END, new byte[0]);
        break;
      case Wire.PARTIAL:
        boolean visible = store.isPartialWriteVisible(new Path(request.readText()), conf);
        client.say(Wire.OK, new Wire.Payload().truth(visible).bytes());
        break;
      default:
        throw new IOException("no such request");
    }
  }

  /** What a client sends to be written. */
  private static final class Content implements Iterator<String> {
    private final Client client;
    private final ByteArrayOutputStream begun = new ByteArrayOutputStream();
    private byte[] part = new byte[0];
    private int at;
    private boolean ended;

    Content(Client client) {
      this.client = client;
    }

    @Override
    public boolean hasNext() {
      while (at == part.length && !ended) {
        more();
      }
      return at < part.length;
    }

    @Override
    public String next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      while (true) {
        int end = at;
        while (end < part.length && part[end] != '\n') {
          end++;
        }
        begun.write(part, at, end - at);
        at = Math.min(end + 1, part.length);
        if (end < part.length) {
          String line = new String(begun.toByteArray(), StandardCharsets.UTF_8);
          begun.reset();
          return line;
        }
        more();
      }
    }

    private void more() {
      try {
        Wire.Fields came = client.hear();
        if (client.kind == Wire.ABORT) {
          ended = true;
          throw new Aborted();
        } else if (client.kind == Wire.END) {
          ended = true;
        } else {
          part = came.rest();
          at = 0;
        }
      } catch (IOException e) {
        throw new Gone();
      }
    }
  }

  /** The client went before the end of what it was writing. */
  private static final class Gone extends RuntimeException {}

  /** The client's own lines failed. */
  private static final class Aborted extends RuntimeException {}

  private static final class Client {
    private final DataInputStream in;
    private final DataOutputStream out;
    private byte kind;

    Client(Socket socket) throws IOException {
      in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
      out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
    }

    Wire.Fields hear() throws IOException {
      byte[] payload = new byte[in.readInt()];
      kind = in.readByte();
      in.readFully(payload);
      return new Wire.Fields(payload);
    }

    void say(byte kind, byte[] payload) throws IOException {
      for (int at = 0; at == 0 || at < payload.length; at += Wire.MOST_PAYLOAD) {
        int length = Math.min(Wire.MOST_PAYLOAD, payload.length - at);
        out.writeInt(length);
        out.writeByte(kind);
        out.write(payload, at, length);
      }
      if (kind != Wire.DATA) {
        out.flush();
      }
    }

    void fail(Exception e) throws IOException {
      say(Wire.FAIL, new Wire.Payload().text(kindOf(e)).text(String.valueOf(e.getMessage())).bytes());
    }

    private static String kindOf(Exception e) {
      if (e instanceof BridgeLogStore.ServiceException) {
        return ((BridgeLogStore.ServiceException) e).getKind();
      }
      if (e instanceof FileAlreadyExistsException) {
        return "exists";
      }
      if (e instanceof FileNotFoundException) {
        return "missing";
      }
      if (e instanceof AccessDeniedException) {
        return "denied";
      }
      if (e instanceof BridgeLogStore.CommitOutcomeUnknownException) {
        return "unknown";
      }
      if (e instanceof BridgeLogStore.NoServiceException) {
        return "no-service";
      }
      return e.getClass().getSimpleName();
    }
  }
}
