package cairn;

import com.spotify.sparkey.CompressionType;
import com.spotify.sparkey.HashType;
import com.spotify.sparkey.Sparkey;
import com.spotify.sparkey.SparkeyWriter;
import com.spotify.sparkey.SparkeyWriter.ConstructionMethod;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;

/** The commands that write: {@code build}, {@code ops} and {@code hash}. */
final class Writing {
  private Writing() {}

  /** Builds a store from a records file and prints what it took. */
  static void build(List<String> args) throws Exception {
    Options options = Options.parse(
        args, 1, "input", "out", "compression", "block", "construction", "hash", "seed", "max-memory");
    File index = new File(options.text("out"));
    Index settings = new Index(options);
    long started = System.nanoTime();
    long written;
    SparkeyWriter writer = create(index, options);
    try (FrameReader input = new FrameReader(new File(options.text("input")))) {
      while (!input.atEnd()) {
        int keyLength = input.length();
        int valueLength = input.length();
        writer.put(input.bytes(keyLength), input.bytes(valueLength));
      }
      writer.flush();
      written = System.nanoTime();
      settings.write(writer);
    } finally {
      writer.close();
    }
    long finished = System.nanoTime();
    System.out.println(new Json()
        .seconds("write_seconds", written - started)
        .seconds("hash_seconds", finished - written)
        .number("log_bytes", Sparkey.getLogFile(index).length())
        .number("index_bytes", Sparkey.getIndexFile(index).length())
        .number("peak_rss_bytes", peakRssBytes()));
  }

  /** Replays puts and deletes into a new log, or onto the end of one that is there. */
  static void ops(List<String> args) throws Exception {
    Options options = Options.parse(
        args, 1, "in", "out", "compression", "block", "construction", "hash", "seed", "max-memory", "|", "append",
        "no-index");
    File log = new File(options.text("out"));
    Index settings = new Index(options);
    SparkeyWriter writer = options.flag("append") ? Sparkey.append(log) : create(log, options);
    try (FrameReader input = new FrameReader(new File(options.text("in")))) {
      while (!input.atEnd()) {
        int kind = input.u8();
        int keyLength = input.length();
        int valueLength = input.length();
        byte[] key = input.bytes(keyLength);
        byte[] value = input.bytes(valueLength);
        if (kind == FrameWriter.PUT) {
          writer.put(key, value);
        } else if (kind == FrameWriter.DELETE) {
          writer.delete(key);
        } else {
          throw new IOException(options.text("in") + " has operation " + kind + ", expected 0 or 1");
        }
      }
      writer.flush();
      if (!options.flag("no-index")) {
        settings.write(writer);
      }
    } finally {
      writer.close();
    }
  }

  /** Writes the index of a log that somebody else wrote. Opens the log for appending, which rewrites its header. */
  static void hash(List<String> args) throws Exception {
    Options options = Options.parse(args, 1, "log", "construction", "hash", "seed", "max-memory");
    Index settings = new Index(options);
    try (SparkeyWriter writer = Sparkey.append(new File(options.text("log")))) {
      settings.write(writer);
    }
  }

  private static SparkeyWriter create(File file, Options options) throws IOException, UsageException {
    Files.deleteIfExists(Sparkey.getLogFile(file).toPath());
    Files.deleteIfExists(Sparkey.getIndexFile(file).toPath());
    CompressionType compression = options.choice("compression", CompressionType.class, "NONE");
    return Sparkey.createNew(file, compression, options.integer("block", 4096));
  }

  /** How the index is to be written; read from the options before any file is touched. */
  private static final class Index {
    private final ConstructionMethod construction;
    private final HashType hashType;
    private final Integer seed;
    private final long maxMemory;

    Index(Options options) throws UsageException {
      construction = options.choice("construction", ConstructionMethod.class, "IN_MEMORY");
      int width = options.integer("hash", 0);
      if (width != 0 && width != 4 && width != 8) {
        throw new UsageException("--hash is " + width + ", expected 4, 8, or 0 for Sparkey's own choice");
      }
      hashType = width == 0 ? null : width == 4 ? HashType.HASH_32_BITS : HashType.HASH_64_BITS;
      seed = options.has("seed") ? (int) options.unsigned("seed") : null;
      maxMemory = options.has("max-memory") ? options.unsigned("max-memory") : 0;
    }

    void write(SparkeyWriter writer) throws IOException {
      writer.setConstructionMethod(construction);
      if (seed != null) {
        writer.setHashSeed(seed);
      }
      if (maxMemory > 0) {
        writer.setMaxMemory(maxMemory);
      }
      if (hashType != null) {
        writer.setHashType(hashType);
      }
      writer.writeHash();
    }
  }

  /** The process's high-water mark of resident memory, JVM included; 0 where the kernel does not tell. */
  private static long peakRssBytes() throws IOException {
    Path status = Paths.get("/proc/self/status");
    if (!Files.isReadable(status)) {
      return 0;
    }
    for (String line : Files.readAllLines(status, StandardCharsets.US_ASCII)) {
      if (line.startsWith("VmHWM:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
      }
    }
    return 0;
  }
}
