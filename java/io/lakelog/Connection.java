package io.lakelog;

import io.lakelog.BridgeLogStore.NoServiceException;
import io.lakelog.BridgeLogStore.ServiceException;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.util.Map;

/** A connection to the service, after the greeting; used by one thread at a time. */
final class Connection implements Closeable {
  private static final int BUFFER = 64 << 10;

  private final SocketChannel channel;
  private final DataInputStream in;
  private final DataOutputStream out;

  /** The connection broke: what was under way may have happened, or not. */
  static final class BrokenException extends IOException {
    private static final long serialVersionUID = 1;

    BrokenException(IOException cause) {
      super("the connection to the LogStore service broke: " + cause, cause);
    }
  }

  private Connection(SocketChannel channel) {
    this.channel = channel;
    in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), BUFFER));
    out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(channel), BUFFER));
  }

  /** Connects and greets. Whatever goes wrong here, nothing was asked for yet. */
  static Connection open(String file, Map<String, String> settings) throws IOException {
    Endpoint endpoint = Endpoint.read(file);
    Connection made = null;
    boolean done = false;
    try {
      made = connected(endpoint, file);
      byte[] hello =
          new Wire.Payload()
              .text(Wire.MAGIC)
              .number(Wire.VERSION)
              .text(endpoint.token)
              .text("io.lakelog.BridgeLogStore, Java " + System.getProperty("java.version"))
              .mapping(settings)
              .bytes();
      if (hello.length > Wire.MOST_PAYLOAD) {
        throw new NoServiceException("the settings of this session take over a megabyte", null);
      }
      made.send(Wire.HELLO, hello);
      made.answer(file);
      done = true;
      return made;
    } catch (NoServiceException told) {
      throw told;
    } catch (ServiceException refused) {
      throw new NoServiceException(
          "the LogStore service of " + file + " refuses: " + refused.getMessage(), refused);
    } catch (IOException gone) {
      if (Thread.currentThread().isInterrupted()) {
        throw new InterruptedIOException("interrupted before anything was asked of the service");
      }
      throw new NoServiceException(
          "the LogStore service of " + file + " does not answer: it has ended, or was killed. "
              + "Nothing was written. Start it again, by lakelog.spark.bridge or `lakelog serve`; "
              + "sessions need no restart",
          gone);
    } finally {
      if (!done && made != null) {
        made.close();
      }
    }
  }

  private static Connection connected(Endpoint endpoint, String file) throws IOException {
    SocketAddress address = unixAddress(endpoint.unix);
    boolean unix = address != null;
    if (!unix && endpoint.port == 0) {
      throw new NoServiceException(
          "Java " + System.getProperty("java.version") + " has no Unix sockets (16 has), and the "
              + "LogStore service of " + file + " listens on nothing else: run `lakelog serve --tcp`",
          null);
    }
    SocketChannel channel = unix ? unixChannel() : SocketChannel.open();
    try {
      if (!unix) {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        address = new InetSocketAddress(InetAddress.getByName("127.0.0.1"), endpoint.port);
      }
      channel.connect(address);
      return new Connection(channel);
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  /** By reflection, as the class is compiled for Java 8; null where there are no Unix sockets. */
  private static SocketAddress unixAddress(String path) throws IOException {
    if (path.isEmpty()) {
      return null;
    }
    try {
      Class<?> kind = Class.forName("java.net.UnixDomainSocketAddress");
      return (SocketAddress) kind.getMethod("of", String.class).invoke(null, path);
    } catch (ClassNotFoundException before16) {
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IOException(e);
    }
  }

  private static SocketChannel unixChannel() throws IOException {
    try {
      ProtocolFamily unix = StandardProtocolFamily.valueOf("UNIX");
      return (SocketChannel)
          SocketChannel.class.getMethod("open", ProtocolFamily.class).invoke(null, unix);
    } catch (InvocationTargetException e) {
      throw new IOException(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IOException(e);
    }
  }

  /**
   * Whether the service still holds its end; asked between requests, when it has nothing to say.
   *
   * <p>Both ends are on one host: when a service ends or is killed, its end closes at once, and a
   * look at the channel tells that without a round trip.
   */
  boolean isOpen() {
    try {
      channel.configureBlocking(false);
      boolean silent = channel.read(ByteBuffer.allocate(1)) == 0;
      channel.configureBlocking(true);
      return silent;
    } catch (IOException gone) {
      return false;
    }
  }

  /** Sends a frame, and what was held back before it. */
  void send(byte kind, byte[] payload) throws BrokenException {
    try {
      frame(kind, payload, 0, payload.length);
      // A write is one packet with its content, where that is small.
      if (kind != Wire.WRITE) {
        out.flush();
      }
    } catch (IOException e) {
      throw new BrokenException(e);
    }
  }

  /** Sends content, in as many frames as it takes. */
  void sendContent(byte[] content) throws BrokenException {
    try {
      for (int at = 0; at < content.length; at += Wire.MOST_PAYLOAD) {
        frame(Wire.DATA, content, at, Math.min(Wire.MOST_PAYLOAD, content.length - at));
      }
    } catch (IOException e) {
      throw new BrokenException(e);
    }
  }

  private void frame(byte kind, byte[] payload, int from, int length) throws IOException {
    out.writeInt(length);
    out.writeByte(kind);
    out.write(payload, from, length);
  }

  /** The next part of a stream; null at its end. */
  Wire.Fields next(String path) throws IOException {
    return hear(path, Wire.DATA, Wire.END);
  }

  /** The answer to a request. */
  Wire.Fields answer(String path) throws IOException {
    return hear(path, Wire.OK, (byte) 0);
  }

  private Wire.Fields hear(String path, byte expected, byte last) throws IOException {
    byte kind;
    byte[] payload;
    try {
      int length = in.readInt();
      kind = in.readByte();
      if (length < 0 || length > Wire.MOST_PAYLOAD) {
        throw new IOException("an answer of " + length + " bytes");
      }
      payload = new byte[length];
      in.readFully(payload);
    } catch (IOException e) {
      throw new BrokenException(e);
    }
    Wire.Fields fields = new Wire.Fields(payload);
    if (kind == expected) {
      return fields;
    }
    if (kind == last) {
      return null;
    }
    if (kind == Wire.FAIL) {
      throw failure(path, fields.readText(), fields.readText());
    }
    throw new BrokenException(new IOException("an answer that is none: " + kind));
  }

  private static IOException failure(String path, String kind, String text) {
    switch (kind) {
      case "exists":
        return new FileAlreadyExistsException(path);
      case "missing":
        return new FileNotFoundException(text);
      case "denied":
        return new AccessDeniedException(path, null, text);
      default:
        return new ServiceException(kind, text);
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException gone) {
      // It is closed either way.
    }
  }
}
