package cairn;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** Entry point: the first argument names a command. README.md beside the sources describes each. */
public final class Main {
  private interface Command {
    void run(List<String> args) throws Exception;
  }

  private static final Map<String, Command> COMMANDS = new LinkedHashMap<>();

  static {
    COMMANDS.put("readers", Readers::list);
    COMMANDS.put("version", Main::versions);
    COMMANDS.put("build", Writing::build);
    COMMANDS.put("bench", Bench::run);
    COMMANDS.put("ops", Writing::ops);
    COMMANDS.put("hash", Writing::hash);
    COMMANDS.put("dump", Reading::dump);
    COMMANDS.put("get", Reading::get);
    COMMANDS.put("log", Reading::log);
    COMMANDS.put("batch", Main::batch);
  }

  private Main() {}

  /** Exits 0 when the command succeeded, 1 when it failed, 2 when it was not understood. */
  public static void main(String[] args) {
    try {
      run(Arrays.asList(args));
    } catch (UsageException e) {
      System.err.println("sparkey-bench: " + e.getMessage());
      System.exit(2);
    } catch (Exception | LinkageError e) {
      System.err.println("sparkey-bench: " + describe(e));
      System.exit(1);
    }
  }

  private static void run(List<String> args) throws Exception {
    Command command = args.isEmpty() ? null : COMMANDS.get(args.get(0));
    if (command == null) {
      throw new UsageException("expected a command, one of " + COMMANDS.keySet());
    }
    command.run(args);
  }

  private static void versions(List<String> args) throws Exception {
    Options.parse(args, 1);
    System.out.println("sparkey " + version("sparkey") + ", jmh " + version("jmh") + ", " + Jvm.describe());
  }

  /** The version of a bundled library, as the build wrote it down. */
  static String version(String library) throws IOException {
    Properties versions = new Properties();
    try (InputStream in = Main.class.getResourceAsStream("versions.properties")) {
      versions.load(in);
    }
    return versions.getProperty(library);
  }

  /**
   * Runs one command a line of standard input, its arguments separated by tabs, and answers each with
   * {@code ok} or {@code error: reason}: a suite of hundreds of small cases then pays for one JVM.
   */
  private static void batch(List<String> args) throws Exception {
    Options.parse(args, 1);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String answer = "ok";
      try {
        run(new ArrayList<>(Arrays.asList(line.split("\t"))));
      } catch (Exception | LinkageError e) {
        answer = "error: " + describe(e);
      }
      System.out.println(answer);
      System.out.flush();
    }
  }

  private static String describe(Throwable e) {
    String message = e instanceof UsageException || e instanceof IOException ? e.getMessage() : e.toString();
    return String.valueOf(message).replace('\n', ' ');
  }
}
