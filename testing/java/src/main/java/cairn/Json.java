package cairn;

import java.util.Collection;
import java.util.Locale;
import java.util.StringJoiner;

/** The few lines of JSON that the commands print: one flat object of numbers, strings and lists of numbers. */
final class Json {
  private final StringJoiner members = new StringJoiner(", ", "{", "}");

  Json number(String name, long value) {
    members.add('"' + name + "\": " + value);
    return this;
  }

  Json unsigned(String name, long value) {
    members.add('"' + name + "\": " + Long.toUnsignedString(value));
    return this;
  }

  Json seconds(String name, long nanoseconds) {
    members.add('"' + name + "\": " + String.format(Locale.ROOT, "%.6f", nanoseconds / 1e9));
    return this;
  }

  /** A string without control characters: names and versions only. */
  Json text(String name, String value) {
    members.add('"' + name + "\": \"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"');
    return this;
  }

  Json list(String name, Collection<Double> values) {
    StringJoiner items = new StringJoiner(", ", "[", "]");
    for (double value : values) {
      items.add(String.format(Locale.ROOT, "%.4f", value));
    }
    members.add('"' + name + "\": " + items);
    return this;
  }

  @Override
  public String toString() {
    return members.toString();
  }
}
