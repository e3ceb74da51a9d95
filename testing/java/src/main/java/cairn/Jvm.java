package cairn;

import java.util.ArrayList;
import java.util.List;

/** What this JVM is, and the arguments that a forked one needs. */
final class Jvm {
  private Jvm() {}

  /** 8, 17, 25, … */
  static int feature() {
    String version = System.getProperty("java.specification.version");
    return Integer.parseInt(version.startsWith("1.") ? version.substring(2) : version);
  }

  static String describe() {
    return System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version");
  }

  /** Newer JVMs warn about the native libraries of snappy and zstd, and about JMH's use of Unsafe. */
  static String[] forkArguments() {
    List<String> arguments = new ArrayList<>();
    if (feature() >= 22) {
      arguments.add("--enable-native-access=ALL-UNNAMED");
    }
    if (feature() >= 23) {
      arguments.add("--sun-misc-unsafe-memory-access=allow");
    }
    return arguments.toArray(new String[0]);
  }
}
