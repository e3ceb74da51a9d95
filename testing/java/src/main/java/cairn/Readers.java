package cairn;

import com.spotify.sparkey.CompressionType;
import com.spotify.sparkey.LogHeader;
import com.spotify.sparkey.Sparkey;
import com.spotify.sparkey.SparkeyReader;
import com.spotify.sparkey.SparkeyWriter;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The reader types of whichever Sparkey is in this jar, found by looking at its classes on this JVM.
 *
 * <p>Three shapes are recognised: a reader class with {@code open(index[, log[, header]])} or a constructor
 * from a file; a reader class that wraps another through {@code fromReader(SparkeyReader)}, such as a pool;
 * and the heap-backed readers of a builder with {@code useHeap}. Names follow Sparkey's own benchmark guide:
 * what the class is, then what it reads through ({@code MMAP_JDK8}, {@code MEMORYSEGMENT_J22}, {@code HEAP}).
 */
final class Readers {
  private static final Pattern CLASS_ENTRY =
      Pattern.compile("(?:META-INF/versions/(\\d+)/)?(com/spotify/sparkey/[\\w/]+)\\.class");
  private static final Pattern SIMPLE_NAME = Pattern.compile("(\\w+?)SparkeyReader(J\\d+)?");
  private static final String SINGLE_THREADED = "SINGLE_THREADED_";

  private Readers() {}

  /** One way to open a store. */
  static final class Kind {
    final String name;
    private final Opener opener;

    Kind(String name, Opener opener) {
      this.name = name;
      this.opener = opener;
    }

    SparkeyReader open(File index) throws Exception {
      try {
        return opener.open(index);
      } catch (InvocationTargetException e) {
        throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
      }
    }

    /** False when threads need a {@link SparkeyReader#duplicate()} each. */
    boolean threadSafe() {
      return !name.startsWith(SINGLE_THREADED);
    }
  }

  private interface Opener {
    SparkeyReader open(File index) throws Exception;
  }

  static Kind named(String name) throws Exception {
    Kind kind = discover().get(name);
    if (kind == null) {
      throw new UsageException("no reader '" + name + "' here; this jar and JVM offer " + discover().keySet());
    }
    return kind;
  }

  /** Prints the name of every reader that opens {@code --index}, or a small uncompressed store without one. */
  static void list(List<String> args) throws Exception {
    Options options = Options.parse(args, 1, "index");
    if (options.has("index")) {
      printUsable(new File(options.text("index")));
      return;
    }
    Path directory = Files.createTempDirectory("cairn-readers");
    try {
      File index = directory.resolve("probe.spi").toFile();
      try (SparkeyWriter writer = Sparkey.createNew(index, CompressionType.NONE, 0)) {
        writer.put("key", "value");
        writer.writeHash();
      }
      printUsable(index);
    } finally {
      Files.deleteIfExists(directory.resolve("probe.spi"));
      Files.deleteIfExists(directory.resolve("probe.spl"));
      Files.deleteIfExists(directory);
    }
  }

  private static void printUsable(File index) throws Exception {
    for (Kind kind : discover().values()) {
      try (SparkeyReader reader = kind.open(index)) {
        reader.getAsByteArray(new byte[] {'k', 'e', 'y'});
        System.out.println(kind.name);
      } catch (Exception | LinkageError e) {
        System.err.println(kind.name + " cannot open " + index + ": " + e);
      }
    }
  }

  /** Every kind of reader in the jar, by name. */
  static Map<String, Kind> discover() throws IOException {
    Map<String, Kind> kinds = new TreeMap<>();
    List<Class<?>> wrappers = new ArrayList<>();
    for (Class<?> type : readerClasses()) {
      if (wrap(type) != null) {
        wrappers.add(type);
      } else {
        addDirect(type, kinds);
      }
    }
    for (Kind base : new ArrayList<>(kinds.values())) {
      if (base.name.startsWith(SINGLE_THREADED)) {
        for (Class<?> type : wrappers) {
          addWrapped(type, base, kinds);
        }
      }
    }
    addHeapReaders(kinds);
    return kinds;
  }

  private static void addDirect(Class<?> type, Map<String, Kind> kinds) {
    String name = nameOf(type);
    for (Method method : type.getDeclaredMethods()) {
      boolean opens = method.getName().equals("open")
          && Modifier.isStatic(method.getModifiers())
          && SparkeyReader.class.isAssignableFrom(method.getReturnType())
          && takesFiles(method.getParameterTypes());
      if (opens) {
        method.setAccessible(true);
        kinds.put(name, new Kind(
            name, index -> (SparkeyReader) method.invoke(null, arguments(method.getParameterTypes(), index))));
        return;
      }
    }
    for (Constructor<?> constructor : type.getConstructors()) {
      if (takesFiles(constructor.getParameterTypes())) {
        kinds.put(name, new Kind(
            name,
            index -> (SparkeyReader) constructor.newInstance(arguments(constructor.getParameterTypes(), index))));
        return;
      }
    }
  }

  private static void addWrapped(Class<?> type, Kind base, Map<String, Kind> kinds) {
    Method wrap = wrap(type);
    wrap.setAccessible(true);
    Matcher matcher = SIMPLE_NAME.matcher(type.getSimpleName());
    String what = snake(matcher.matches() ? matcher.group(1) : type.getSimpleName());
    String name = what + "_" + base.name.substring(SINGLE_THREADED.length());
    kinds.put(name, new Kind(name, index -> (SparkeyReader) wrap.invoke(null, base.open(index))));
  }

  private static void addHeapReaders(Map<String, Kind> kinds) {
    try {
      Method builder = Sparkey.class.getMethod("reader");
      Class<?> type = builder.getReturnType();
      Method file = type.getMethod("file", File.class);
      Method useHeap = type.getMethod("useHeap", boolean.class);
      Method singleThreaded = type.getMethod("singleThreaded", boolean.class);
      Method open = type.getMethod("open");
      for (boolean single : new boolean[] {true, false}) {
        String name = single ? SINGLE_THREADED + "HEAP" : "POOLED_HEAP";
        kinds.put(name, new Kind(name, index -> {
          Object building = file.invoke(builder.invoke(null), index);
          building = singleThreaded.invoke(useHeap.invoke(building, true), single);
          return (SparkeyReader) open.invoke(building);
        }));
      }
    } catch (NoSuchMethodException e) {
      // This Sparkey has no such builder, so it has no heap readers.
    }
  }

  private static Method wrap(Class<?> type) {
    try {
      Method method = type.getDeclaredMethod("fromReader", SparkeyReader.class);
      return Modifier.isStatic(method.getModifiers()) ? method : null;
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  /** True for (index), (index, log) and (index, log, header of the log). */
  private static boolean takesFiles(Class<?>[] types) {
    return types.length >= 1
        && types.length <= 3
        && types[0] == File.class
        && (types.length < 2 || types[1] == File.class)
        && (types.length < 3 || types[2] == LogHeader.class);
  }

  private static Object[] arguments(Class<?>[] types, File index) throws IOException {
    Object[] all = {
      Sparkey.getIndexFile(index),
      Sparkey.getLogFile(index),
      types.length == 3 ? Sparkey.getLogHeader(Sparkey.getLogFile(index)) : null,
    };
    return Arrays.copyOf(all, types.length);
  }

  private static String nameOf(Class<?> type) {
    Matcher matcher = SIMPLE_NAME.matcher(type.getSimpleName());
    if (!matcher.matches()) {
      return snake(type.getSimpleName());
    }
    String through = matcher.group(2) == null ? "MMAP_JDK8" : "MEMORYSEGMENT_" + matcher.group(2);
    return snake(matcher.group(1)) + "_" + through;
  }

  private static String snake(String camel) {
    return camel.replaceAll("(?<=[a-z])(?=[A-Z])", "_").toUpperCase(Locale.ROOT);
  }

  private static List<Class<?>> readerClasses() throws IOException {
    List<Class<?>> found = new ArrayList<>();
    for (String name : classNames()) {
      try {
        Class<?> type = Class.forName(name, false, Readers.class.getClassLoader());
        if (SparkeyReader.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers())) {
          found.add(type);
        }
      } catch (ClassNotFoundException | LinkageError e) {
        // Compiled for a newer JVM than this one: not a reader here.
      }
    }
    return found;
  }

  /** The jar that Sparkey comes from. Its address is percent-encoded, which a path is not. */
  private static File jar() throws IOException {
    try {
      return new File(Sparkey.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException e) {
      throw new IOException("the place of the jar is no address: " + e.getMessage());
    }
  }

  /** Top-level classes of Sparkey that this JVM sees, the overlays for its own version included. */
  private static Iterable<String> classNames() throws IOException {
    TreeSet<String> names = new TreeSet<>();
    File jar = jar();
    try (JarFile entries = new JarFile(jar)) {
      for (JarEntry entry : Collections.list(entries.entries())) {
        Matcher matcher = CLASS_ENTRY.matcher(entry.getName());
        boolean visible = matcher.matches()
            && (matcher.group(1) == null || Integer.parseInt(matcher.group(1)) <= Jvm.feature());
        if (visible) {
          names.add(matcher.group(2).replace('/', '.'));
        }
      }
    }
    return names;
  }
}
