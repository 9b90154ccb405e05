package io.lakelog;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The protocol's words; lakelog/logstores/service/frames.py says what they mean. */
final class Wire {
  static final int VERSION = 1;
  static final String MAGIC = "lakelog";
  static final int MOST_PAYLOAD = 1 << 20;

  static final byte HELLO = 'H';
  static final byte WRITE = 'W';
  static final byte READ = 'R';
  static final byte LIST = 'L';
  static final byte PARTIAL = 'P';
  static final byte DIGEST = 'G';
  static final byte DATA = 'D';
  static final byte END = 'E';
  static final byte ABORT = 'A';
  static final byte OK = 'K';
  static final byte FAIL = 'X';

  private Wire() {}

  /** Fields on their way out. */
  static final class Payload {
    private final ByteArrayOutputStream held = new ByteArrayOutputStream();

    Payload truth(boolean value) {
      held.write(value ? 1 : 0);
      return this;
    }

    Payload number(long value) {
      return raw(ByteBuffer.allocate(8).putLong(value).array());
    }

    Payload text(String value) {
      byte[] data = value.getBytes(StandardCharsets.UTF_8);
      return count(data.length).raw(data);
    }

    Payload mapping(Map<String, String> values) {
      count(values.size());
      for (Map.Entry<String, String> each : values.entrySet()) {
        text(each.getKey()).text(each.getValue());
      }
      return this;
    }

    byte[] bytes() {
      return held.toByteArray();
    }

    private Payload count(int value) {
      return raw(ByteBuffer.allocate(4).putInt(value).array());
    }

    private Payload raw(byte[] data) {
      held.write(data, 0, data.length);
      return this;
    }
  }

  /** Fields that came, read one after another. */
  static final class Fields {
    private final ByteBuffer payload;

    Fields(byte[] payload) {
      this.payload = ByteBuffer.wrap(payload);
    }

    boolean more() {
      return payload.hasRemaining();
    }

    boolean readBoolean() throws IOException {
      need(1);
      return payload.get() != 0;
    }

    long readLong() throws IOException {
      need(8);
      return payload.getLong();
    }

    String readText() throws IOException {
      need(4);
      int length = payload.getInt();
      need(length);
      int from = payload.position();
      payload.position(from + length);
      return new String(payload.array(), from, length, StandardCharsets.UTF_8);
    }

    byte[] readRaw(int length) throws IOException {
      need(length);
      byte[] data = new byte[length];
      payload.get(data);
      return data;
    }

    private void need(int length) throws IOException {
      if (length < 0 || length > payload.remaining()) {
        throw new IOException("the service's answer ends within a field");
      }
    }

    /** All of it. */
    byte[] rest() {
      byte[] data = new byte[payload.remaining()];
      payload.get(data);
      return data;
    }
  }
}
