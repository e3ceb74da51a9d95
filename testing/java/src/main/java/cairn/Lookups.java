package cairn;

import com.spotify.sparkey.SparkeyReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.Blackhole;
import org.openjdk.jmh.infra.ThreadParams;

/** The measured loops. One invocation is one lookup; {@link Bench} chooses which method runs. */
public class Lookups {

  /** The store and the keys, made ready before any clock starts. */
  @State(Scope.Benchmark)
  public static class Store {
    /** Name of the reader, see {@link Readers}. */
    @Param("")
    public String reader;

    /** Path of the index file. */
    @Param("")
    public String index;

    /** Path of the keys file. */
    @Param("")
    public String keyFile;

    byte[][] keys;
    String[] strings;
    SparkeyReader shared;
    private boolean threadSafe;

    /** Loads the keys and opens the store. */
    @Setup(Level.Trial)
    public void open(BenchmarkParams params) throws Exception {
      keys = readKeys(new File(keyFile));
      if (params.getBenchmark().toLowerCase(Locale.ROOT).contains("guide")) {
        strings = asStrings(keys);
      }
      Readers.Kind kind = Readers.named(reader);
      threadSafe = kind.threadSafe();
      shared = kind.open(new File(index));
    }

    /** A reader for one thread: the shared one, or a duplicate of it where the shared one is for a single thread. */
    SparkeyReader forThread(int threads) {
      return threadSafe || threads == 1 ? shared : shared.duplicate();
    }

    /** Closes the store. */
    @TearDown(Level.Trial)
    public void close() throws IOException {
      shared.close();
    }
  }

  /** One thread's place in the keys. Threads start at even distances, so that they do not follow one another. */
  @State(Scope.Thread)
  public static class Cursor {
    private byte[][] keys;
    private String[] strings;
    private int next;
    private Random random;
    SparkeyReader reader;
    byte[] buffer = new byte[4096];

    /** Finds this thread's first key and reader. */
    @Setup(Level.Trial)
    public void start(Store store, ThreadParams threads) {
      keys = store.keys;
      strings = store.strings;
      reader = store.forThread(threads.getThreadCount());
      next = (int) ((long) keys.length * threads.getThreadIndex() / threads.getThreadCount());
      random = new Random(threads.getThreadIndex());
    }

    byte[] key() {
      byte[] key = keys[next];
      next = next + 1 == keys.length ? 0 : next + 1;
      return key;
    }

    /** Reads the value of an entry into the buffer, which grows as needed, and returns its length. */
    int take(SparkeyReader.Entry entry) throws IOException {
      int length = Math.toIntExact(entry.getValueLength());
      if (length > buffer.length) {
        buffer = new byte[length];
      }
      InputStream value = entry.getValueAsStream();
      int done = 0;
      while (done < length) {
        int count = value.read(buffer, done, length - done);
        if (count < 0) {
          throw new IOException("the value ends after " + done + " of " + length + " bytes");
        }
        done += count;
      }
      return length;
    }

    String string() {
      return strings[random.nextInt(strings.length)];
    }
  }

  /** Lookup by {@code getAsByteArray}: the library allocates the value. */
  @Benchmark
  public byte[] bytes(Cursor cursor) throws IOException {
    return cursor.reader.getAsByteArray(cursor.key());
  }

  /** Lookup by {@code getAsEntry}, the value read into a buffer that the thread keeps. */
  @Benchmark
  public void entry(Cursor cursor, Blackhole sink) throws IOException {
    SparkeyReader.Entry entry = cursor.reader.getAsEntry(cursor.key());
    if (entry == null) {
      sink.consume(false);
      return;
    }
    int length = cursor.take(entry);
    sink.consume(cursor.buffer);
    sink.consume(length);
  }

  /** As Sparkey's benchmark guide measures: a random string, encoded into a new key for every lookup. */
  @Benchmark
  public String guide(Cursor cursor) throws IOException {
    return cursor.reader.getAsString(cursor.string());
  }

  /** What {@link #bytes} and {@link #entry} cost without the lookup. */
  @Benchmark
  public byte[] baseline(Cursor cursor) {
    return cursor.key();
  }

  /** What {@link #guide} costs without the lookup. */
  @Benchmark
  public byte[] guideBaseline(Cursor cursor) {
    return cursor.string().getBytes(StandardCharsets.UTF_8);
  }

  private static byte[][] readKeys(File file) throws IOException {
    List<byte[]> keys = new ArrayList<>();
    try (FrameReader in = new FrameReader(file)) {
      while (!in.atEnd()) {
        keys.add(in.bytes(in.length()));
      }
    }
    if (keys.isEmpty()) {
      throw new IOException(file + " holds no keys");
    }
    return keys.toArray(new byte[0][]);
  }

  private static String[] asStrings(byte[][] keys) throws IOException {
    String[] strings = new String[keys.length];
    for (int i = 0; i < keys.length; i++) {
      strings[i] = new String(keys[i], StandardCharsets.UTF_8);
      if (!Arrays.equals(strings[i].getBytes(StandardCharsets.UTF_8), keys[i])) {
        throw new IOException("key " + i + " is not UTF-8, which --guide needs");
      }
    }
    return strings;
  }
}
