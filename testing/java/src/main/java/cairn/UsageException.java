package cairn;

/** The command line asks for something that does not exist; its message says what was expected. */
final class UsageException extends Exception {
  private static final long serialVersionUID = 1L;

  UsageException(String message) {
    super(message);
  }
}
