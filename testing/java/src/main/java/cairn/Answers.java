package cairn;

/**
 * How many lookups found something, and a digest of what they found: the same-work check that every engine
 * of the lab passes before it is timed.
 *
 * <p>The digest is the wrapping 64-bit sum over found values of
 * {@code length + 31 * first byte + 17 * last byte}, bytes unsigned; an empty value adds nothing.
 */
final class Answers {
  long found;
  long digest;

  void add(byte[] value) {
    if (value != null) {
      add(value, value.length);
    }
  }

  /** Adds a value that was found: the first {@code length} bytes of {@code buffer}. */
  void add(byte[] buffer, int length) {
    found++;
    if (length > 0) {
      digest += length + 31L * (buffer[0] & 0xff) + 17L * (buffer[length - 1] & 0xff);
    }
  }
}
