//! Standard output as text, raw bytes or JSON; and the label of error messages.

use std::env;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The result of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 2.
    NotFound,
}

impl Outcome {
    /// Returns [`Outcome::Done`] if `found`, else [`Outcome::NotFound`].
    pub fn found(found: bool) -> Self {
        if found { Outcome::Done } else { Outcome::NotFound }
    }
}

/// Returns true if this file name stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Buffered standard output. Call [`Output::finish`] at the end; otherwise buffered bytes may be
/// lost.
pub struct Output {
    out: BufWriter<Box<dyn Write>>,
    is_terminal: bool,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

impl Output {
    /// Locks standard output for this command.
    pub fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Output { out: BufWriter::with_capacity(1 << 16, Box::new(io::stdout().lock())), is_terminal }
    }

    /// Opens the output for messages of a command whose `option` names a file: standard output, or
    /// standard error if the file is standard output (`-`).
    ///
    /// Errors: results are requested as JSON, which must not share standard output with the file.
    pub fn beside(option: &str, file: Option<&Path>, json: bool) -> Result<Self> {
        if !file.is_some_and(is_stdout) {
            return Ok(Output::new());
        }
        if json {
            let what = format!("{option} -: standard output has the results as JSON, so this needs a file");
            return Err(Error::usage(what));
        }
        let is_terminal = io::stderr().is_terminal();
        Ok(Output { out: BufWriter::new(Box::new(io::stderr())), is_terminal })
    }

    /// Returns true if the output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(Error::Output)
    }

    /// Writes a line of text.
    pub fn line(&mut self, line: impl std::fmt::Display) -> Result<()> {
        writeln!(self.out, "{line}").map_err(Error::Output)
    }

    /// Writes a JSON value on one line.
    pub fn json(&mut self, value: &Value) -> Result<()> {
        self.line(value)
    }

    /// Writes a key, a tab, the value and a line break. Key and value are written unchanged.
    pub fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.bytes(key)?;
        self.bytes(b"\t")?;
        self.bytes(value)?;
        self.bytes(b"\n")
    }

    /// Writes a record in the length-prefixed form that `--format binary` reads.
    pub fn binary(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        for part in [key, value] {
            let bytes = u32::try_from(part.len()).map_err(|_| {
                Error::usage(format!(
                    "a part of {} bytes: the binary form takes up to {}",
                    part.len(),
                    u32::MAX
                ))
            })?;
            self.bytes(&bytes.to_le_bytes())?;
        }
        self.bytes(key)?;
        self.bytes(value)
    }

    /// Flushes the buffer.
    pub fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(Error::Output)
    }
}

/// Adds `bytes` to a JSON object: as a string under `name` if they are UTF-8, else in hexadecimal
/// under `<name>_hex`.
pub fn insert_bytes(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_hex"), to_hex(bytes).into()),
    };
}

/// Returns a record as a JSON object; an absent value is `null`.
pub fn record(key: &[u8], value: Option<&[u8]>) -> Value {
    let mut object = Map::new();
    insert_bytes(&mut object, "key", key);
    match value {
        Some(value) => insert_bytes(&mut object, "value", value),
        None => _ = object.insert("value".to_owned(), Value::Null),
    }
    Value::Object(object)
}

/// Encodes bytes as lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes pairs of hexadecimal digits.
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    let refuse =
        || Error::usage(format!("{text:?} is not hexadecimal: expected pairs of the digits 0-9 and a-f"));
    if !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(refuse());
    }
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|_| refuse())).collect()
}

/// Formats a count with its noun: `1 table`, `2 tables`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Formats a size in bytes for people.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// Prints a note, which is not an error, on standard error.
pub fn note(text: &str) {
    // Nothing can be done if standard error is closed.
    let _ = writeln!(io::stderr(), "note: {text}");
}

/// Returns `error:`, in red on a terminal unless `NO_COLOR` is set.
pub fn error_label() -> String {
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !io::stderr().is_terminal();
    if plain {
        return "error:".to_owned();
    }
    let style = anstyle::AnsiColor::Red.on_default().bold();
    format!("{style}error:{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: hexadecimal survives a round trip, and invalid text is refused. Method: all bytes;
    /// texts of wrong length or with wrong characters, including a two-byte character.
    #[test]
    fn hexadecimal_goes_both_ways() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&bytes)).unwrap(), bytes);
        for wrong in ["a", "0g", "é", "+1"] {
            assert!(from_hex(wrong).is_err(), "{wrong}");
        }
    }

    /// Goal: JSON loses no byte: UTF-8 as text, the rest in hexadecimal, absence as null.
    #[test]
    fn json_keeps_every_byte() {
        let line = |key: &[u8], value: Option<&[u8]>| record(key, value).to_string();
        assert_eq!(line(b"k\"", Some(b"\xff\x00")), r#"{"key":"k\"","value_hex":"ff00"}"#);
        assert_eq!(line(b"\x80", None), r#"{"key_hex":"80","value":null}"#);
    }
}
