//! Runs the program in a scratch directory.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Returns standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }

    /// Returns standard output as JSON values, one per line.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that the exit code is `code`.
    #[track_caller]
    pub fn ended(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "out: {}\nerr: {}", String::from_utf8_lossy(&self.out), self.err);
        self
    }

    /// Asserts that the exit code is 1, and that standard error has only a message that begins with
    /// `error:` and contains all of `words`. The message is one line, unless the arguments could
    /// not be parsed: clap then adds hints.
    #[track_caller]
    pub fn failed(self, words: &[&str]) {
        let ran = self.ended(1);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        assert!(ran.err.lines().count() == 1 || ran.err.ends_with("try '--help'.\n"), "{}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{word:?} is not in: {}", ran.err);
        }
    }
}

/// A scratch directory in which the program runs.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// Creates an empty directory.
    pub fn new() -> Self {
        Scratch(tempfile::tempdir().unwrap())
    }

    /// Returns a path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Reads a file in it.
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Returns the names in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Creates the command with these arguments, separated by blanks.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command
    }

    /// Runs the program.
    pub fn run(&self, line: &str) -> Ran {
        self.run_with(line, b"")
    }

    /// Runs the program with `input` as its standard input.
    pub fn run_with(&self, line: &str, input: &[u8]) -> Ran {
        finish(self.command(line), input)
    }

    /// Runs a shell script in which `cairn` is the program, also for programs that the script
    /// starts. The lab's cache is in this directory.
    pub fn shell(&self, script: &str) -> Ran {
        let program = Path::new(env!("CARGO_BIN_EXE_cairn"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = program.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).current_dir(self.0.path());
        command.env("PATH", std::env::join_paths(dirs).unwrap()).env("CAIRN_CACHE", self.path(".cache"));
        finish(command, b"")
    }
}

/// Alternative spellings of units, which must not occur in field names. The right ones are `_secs`,
/// `_us`, `_ns` and `_bytes`.
const OTHER_UNITS: [&str; 10] =
    ["second", "seconds", "ms", "millis", "milliseconds", "micros", "microseconds", "nanos", "kb", "kib"];

/// Checks the field names of printed JSON against the documentation of the command.
#[track_caller]
fn check_fields(out: &[u8]) {
    let values = serde_json::Deserializer::from_slice(out).into_iter::<serde_json::Value>();
    let mut left: Vec<serde_json::Value> = values.map_while(Result::ok).collect();
    while let Some(value) = left.pop() {
        match value {
            serde_json::Value::Array(items) => left.extend(items),
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let wrong = name.split('_').find(|word| OTHER_UNITS.contains(word));
                    assert!(wrong.is_none(), "the field {name:?} has its unit as {wrong:?}");
                    assert!(!name.ends_with("_amplification"), "{name:?}: elsewhere it is _amp");
                    left.push(value);
                }
            }
            _ => {}
        }
    }
}

#[track_caller]
fn finish(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Inputs here fit into a pipe. The write fails if the program ends without reading its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    check_fields(&output.stdout);
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns a record in the length-prefixed form.
pub fn binary(key: &[u8], value: &[u8]) -> Vec<u8> {
    let [key_bytes, value_bytes] = [key, value].map(|part| (part.len() as u32).to_le_bytes());
    [&key_bytes, &value_bytes, key, value].concat()
}
