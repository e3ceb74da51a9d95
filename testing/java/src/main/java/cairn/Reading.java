package cairn;

import com.spotify.sparkey.Sparkey;
import com.spotify.sparkey.SparkeyLogIterator;
import com.spotify.sparkey.SparkeyReader;
import java.io.File;
import java.io.IOException;
import java.util.List;

/** The commands that read: {@code dump}, {@code get} and {@code log}. */
final class Reading {
  private Reading() {}

  /** Every live entry, in the order of the log. */
  static void dump(List<String> args) throws Exception {
    Options options = Options.parse(args, 1, "index", "reader", "to");
    SparkeyReader reader = open(options);
    try (FrameWriter out = new FrameWriter(target(options))) {
      for (SparkeyReader.Entry entry : reader) {
        out.op(FrameWriter.PUT, entry.getKey(), entry.getValue());
      }
    }
  }

  /** The answer to every key of a keys file, in its order. */
  static void get(List<String> args) throws Exception {
    Options options = Options.parse(args, 1, "index", "keys", "reader", "to");
    SparkeyReader reader = open(options);
    try (FrameReader keys = new FrameReader(new File(options.text("keys")));
        FrameWriter out = new FrameWriter(target(options))) {
      while (!keys.atEnd()) {
        out.answer(reader.getAsByteArray(keys.bytes(keys.length())));
      }
    }
  }

  /** Every record of a log, dead ones and deletes included. */
  static void log(List<String> args) throws Exception {
    Options options = Options.parse(args, 1, "log", "to");
    try (FrameWriter out = new FrameWriter(target(options))) {
      for (SparkeyReader.Entry entry : new SparkeyLogIterator(new File(options.text("log")))) {
        if (entry.getType() == SparkeyReader.Type.PUT) {
          out.op(FrameWriter.PUT, entry.getKey(), entry.getValue());
        } else {
          out.op(FrameWriter.DELETE, entry.getKey(), new byte[0]);
        }
      }
    }
  }

  /**
   * Opens a reader that stays open until the process ends: Sparkey waits a tenth of a second at each close, for other
   * threads to leave the map, which a suite of a thousand small files would spend most of its time on.
   */
  private static SparkeyReader open(Options options) throws Exception {
    File index = new File(options.text("index"));
    if (options.has("reader")) {
      return Readers.named(options.text("reader")).open(index);
    }
    return Sparkey.open(index);
  }

  private static File target(Options options) throws IOException {
    String to = options.text("to", null);
    return to == null ? null : new File(to);
  }
}
