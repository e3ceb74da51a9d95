package cairn;

import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/** Writes the files that {@link FrameReader} draws; an absent answer is the length {@code 0xffffffff}. */
final class FrameWriter implements Closeable {
  static final int PUT = 0;
  static final int DELETE = 1;

  private final OutputStream out;
  private final boolean owned;

  /** Writes to {@code file}, or to standard output when it is null. */
  FrameWriter(File file) throws IOException {
    owned = file != null;
    out = new BufferedOutputStream(file == null ? System.out : new FileOutputStream(file), 1 << 20);
  }

  void op(int kind, byte[] key, byte[] value) throws IOException {
    out.write(kind);
    u32(key.length);
    u32(value.length);
    out.write(key);
    out.write(value);
  }

  void answer(byte[] value) throws IOException {
    if (value == null) {
      u32(-1);
      return;
    }
    u32(value.length);
    out.write(value);
  }

  private void u32(int value) throws IOException {
    out.write(value);
    out.write(value >>> 8);
    out.write(value >>> 16);
    out.write(value >>> 24);
  }

  @Override
  public void close() throws IOException {
    if (owned) {
      out.close();
    } else {
      out.flush();
    }
  }
}
