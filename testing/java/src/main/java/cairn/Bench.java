package cairn;

import com.spotify.sparkey.SparkeyReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** The {@code bench} command: checks that a reader answers right, then times it under JMH. */
final class Bench {
  private Bench() {}

  static void run(List<String> args) throws Exception {
    cairn.Options options = cairn.Options.parse(
        args, 1, "reader", "index", "keys", "threads", "warmup", "iterations", "seconds", "expect-found",
        "expect-digest", "json", "api", "forks", "|", "guide", "baseline", "verbose");
    Readers.Kind kind = Readers.named(options.text("reader"));
    Answers answers = check(kind, options);
    RunResult result = measure(kind, options);

    List<Double> latencies = new ArrayList<>();
    List<Double> throughputs = new ArrayList<>();
    for (BenchmarkResult fork : result.getBenchmarkResults()) {
      for (IterationResult iteration : fork.getIterationResults()) {
        Collection<? extends Result<?>> threads = threadResults(iteration);
        throughputs.add(threads.stream().mapToDouble(Result::getScore).sum());
        latencies.add(threads.stream().mapToDouble(thread -> 1e9 / thread.getScore()).average().orElse(0));
      }
    }
    String json = new Json()
        .text("reader", kind.name)
        .text("jdk", Jvm.describe())
        .text("sparkey", Main.version("sparkey"))
        .text("method", method(options))
        .list("ns_per_op_per_thread", latencies)
        .list("ops_per_second", throughputs)
        .unsigned("found", answers.found)
        .unsigned("digest", answers.digest)
        .toString();
    publish(Paths.get(options.text("json")), json);
  }

  /**
   * Looks every key up once, through the API that is measured, and compares the answers with what the caller knows of
   * the data, where it says so.
   */
  private static Answers check(Readers.Kind kind, cairn.Options options) throws Exception {
    Answers answers = new Answers();
    boolean byEntry = method(options).equals("entry");
    Lookups.Cursor cursor = new Lookups.Cursor();
    try (SparkeyReader reader = kind.open(new File(options.text("index")));
        FrameReader keys = new FrameReader(new File(options.text("keys")))) {
      while (!keys.atEnd()) {
        byte[] key = keys.bytes(keys.length());
        if (byEntry) {
          SparkeyReader.Entry entry = reader.getAsEntry(key);
          if (entry != null) {
            int length = cursor.take(entry);
            answers.add(cursor.buffer, length);
          }
        } else {
          answers.add(reader.getAsByteArray(key));
        }
      }
    }
    if (options.has("expect-found") && options.unsigned("expect-found") != answers.found) {
      throw new IOException(kind.name + " found " + answers.found + " of the keys, expected "
          + options.text("expect-found"));
    }
    if (options.has("expect-digest") && options.unsigned("expect-digest") != answers.digest) {
      throw new IOException(kind.name + " has the digest " + Long.toUnsignedString(answers.digest) + ", expected "
          + options.text("expect-digest"));
    }
    return answers;
  }

  private static RunResult measure(Readers.Kind kind, cairn.Options options) throws Exception {
    TimeValue iteration = TimeValue.milliseconds(milliseconds(options.text("seconds", "1")));
    Options settings = new OptionsBuilder()
        .include("^" + Lookups.class.getName() + "\\." + method(options) + "$")
        .param("reader", kind.name)
        .param("index", new File(options.text("index")).getAbsolutePath())
        .param("keyFile", new File(options.text("keys")).getAbsolutePath())
        .mode(Mode.Throughput)
        .timeUnit(TimeUnit.SECONDS)
        .threads(options.integer("threads", 1))
        .warmupIterations(options.integer("warmup", 3))
        .warmupTime(iteration)
        .measurementIterations(options.integer("iterations", 5))
        .measurementTime(iteration)
        .forks(options.integer("forks", 1))
        .jvmArgsAppend(Jvm.forkArguments())
        .shouldFailOnError(true)
        .verbosity(options.flag("verbose") ? VerboseMode.NORMAL : VerboseMode.SILENT)
        .build();
    return new Runner(settings).run().iterator().next();
  }

  /** One result a thread, in operations a second. */
  @SuppressWarnings("unchecked")
  private static Collection<? extends Result<?>> threadResults(IterationResult iteration) {
    return (Collection<? extends Result<?>>) (Collection<?>) iteration.getRawPrimaryResults();
  }

  /** The method of {@link Lookups} that the options ask for. */
  private static String method(cairn.Options options) throws UsageException {
    if (options.flag("guide")) {
      return options.flag("baseline") ? "guideBaseline" : "guide";
    }
    if (options.flag("baseline")) {
      return "baseline";
    }
    String api = options.text("api", "entry");
    if (!api.equals("bytes") && !api.equals("entry")) {
      throw new UsageException("--api is '" + api + "', expected bytes or entry");
    }
    return api;
  }

  private static long milliseconds(String seconds) throws UsageException {
    try {
      long value = Math.round(Double.parseDouble(seconds) * 1000);
      if (value > 0) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Said below, as for zero and negative numbers.
    }
    throw new UsageException("--seconds is '" + seconds + "', expected a number above 0");
  }

  /** Whole or not at all: the lab never sees half a file. */
  private static void publish(Path target, String json) throws IOException {
    Path unfinished = target.resolveSibling(target.getFileName() + ".tmp");
    Files.write(unfinished, (json + "\n").getBytes(StandardCharsets.UTF_8));
    Files.move(unfinished, target, StandardCopyOption.ATOMIC_MOVE);
  }
}
