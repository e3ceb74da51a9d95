package cairn;

import java.io.Closeable;
import java.io.EOFException;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Reads the little-endian length-prefixed files that Cairn's tests and lab exchange with this program.
 *
 * <pre>
 *   records  u32 key_len | u32 value_len | key | value
 *   ops      u8 kind     | u32 key_len   | u32 value_len | key | value     kind 0 put, 1 delete
 *   keys     u32 key_len | key
 * </pre>
 */
final class FrameReader implements Closeable {
  private static final int BUFFER_BYTES = 1 << 20;

  private final String name;
  private final InputStream in;
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private int position;
  private int limit;
  private long consumed;

  FrameReader(File file) throws IOException {
    name = file.getPath();
    in = new FileInputStream(file);
  }

  /** True at a clean end of file. */
  boolean atEnd() throws IOException {
    return position == limit && !refill();
  }

  int u8() throws IOException {
    if (position == limit && !refill()) {
      throw truncated();
    }
    return buffer[position++] & 0xff;
  }

  /** A length; this program holds keys and values as arrays, so at most 2^31 - 1. */
  int length() throws IOException {
    int value = u8() | u8() << 8 | u8() << 16 | u8() << 24;
    if (value < 0) {
      throw new IOException(name + " has a length above 2^31 - 1 before offset " + (consumed + position));
    }
    return value;
  }

  byte[] bytes(int length) throws IOException {
    byte[] out = new byte[length];
    int done = 0;
    while (done < length) {
      if (position == limit && !refill()) {
        throw truncated();
      }
      int step = Math.min(length - done, limit - position);
      System.arraycopy(buffer, position, out, done, step);
      position += step;
      done += step;
    }
    return out;
  }

  private boolean refill() throws IOException {
    consumed += limit;
    position = 0;
    limit = 0;
    int count = in.read(buffer);
    limit = Math.max(count, 0);
    return count > 0;
  }

  private EOFException truncated() {
    return new EOFException(name + " ends inside a record, at offset " + (consumed + position));
  }

  @Override
  public void close() throws IOException {
    in.close();
  }
}
