package cairn;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The {@code --name value} options and {@code --flag}s that follow a command; anything unknown is an error. */
final class Options {
  private final Map<String, String> values = new HashMap<>();
  private final Set<String> flags = new HashSet<>();

  private Options() {}

  /**
   * Reads {@code args} from index {@code from}.
   *
   * @param known names that take a value, then a bare {@code "|"}, then names that take none
   * @throws UsageException for an unknown, repeated or valueless option
   */
  static Options parse(List<String> args, int from, String... known) throws UsageException {
    List<String> names = Arrays.asList(known);
    int split = names.indexOf("|") < 0 ? names.size() : names.indexOf("|");
    Options options = new Options();
    for (int i = from; i < args.size(); i++) {
      String arg = args.get(i);
      int at = arg.startsWith("--") ? names.indexOf(arg.substring(2)) : -1;
      if (at < 0 || at == split) {
        throw new UsageException("unknown option '" + arg + "'");
      }
      String name = names.get(at);
      if (at > split) {
        options.flags.add(name);
      } else if (++i == args.size()) {
        throw new UsageException("--" + name + " needs a value");
      } else if (options.values.put(name, args.get(i)) != null) {
        throw new UsageException("--" + name + " is given twice");
      }
    }
    return options;
  }

  boolean flag(String name) {
    return flags.contains(name);
  }

  boolean has(String name) {
    return values.containsKey(name);
  }

  String text(String name) throws UsageException {
    String value = values.get(name);
    if (value == null) {
      throw new UsageException("--" + name + " is required");
    }
    return value;
  }

  String text(String name, String otherwise) {
    return values.getOrDefault(name, otherwise);
  }

  int integer(String name, int otherwise) throws UsageException {
    String value = values.get(name);
    try {
      return value == null ? otherwise : Integer.parseInt(value);
    } catch (NumberFormatException e) {
      throw new UsageException("--" + name + " is '" + value + "', expected a whole number");
    }
  }

  /** An unsigned 64-bit number, so that a digest survives the trip. */
  long unsigned(String name) throws UsageException {
    try {
      return Long.parseUnsignedLong(text(name));
    } catch (NumberFormatException e) {
      throw new UsageException("--" + name + " is '" + text(name) + "', expected an unsigned 64-bit number");
    }
  }

  <E extends Enum<E>> E choice(String name, Class<E> type, String otherwise) throws UsageException {
    String value = text(name, otherwise);
    try {
      return Enum.valueOf(type, value);
    } catch (IllegalArgumentException e) {
      throw new UsageException(
          "--" + name + " is '" + value + "', expected one of " + Arrays.toString(type.getEnumConstants()));
    }
  }
}
