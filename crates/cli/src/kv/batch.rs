//! `cairn kv batch`: writes that are applied atomically.

use std::borrow::Cow;
use std::sync::Arc;

use cairn_kv::{Keyspace, Operation, WriteBatch};
use cairn_vfs::Fs;
use serde::Deserialize;
use serde_json::json;

use super::form::Form;
use super::store::{self, Store};
use crate::args::kv::BatchArgs;
use crate::error::{Error, Result};
use crate::input;
use crate::output::{Outcome, Output, counted, from_hex};

/// The operation of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Put,
    Delete,
    Merge,
    DeleteRange,
}

/// A parsed line. The second part is a value, an operand or the end of a range.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    op: Op,
    /// `None` for the command's keyspace.
    keyspace: Option<Cow<'a, str>>,
    first: Cow<'a, [u8]>,
    second: Cow<'a, [u8]>,
}

/// A line in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonLine<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    keyspace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    key_hex: Option<Cow<'a, str>>,
    #[serde(borrow)]
    value: Option<Cow<'a, str>>,
    value_hex: Option<Cow<'a, str>>,
    #[serde(borrow)]
    from: Option<Cow<'a, str>>,
    from_hex: Option<Cow<'a, str>>,
    #[serde(borrow)]
    to: Option<Cow<'a, str>>,
    to_hex: Option<Cow<'a, str>>,
}

/// Reads all lines, then writes them as one batch.
pub fn batch(fs: &Arc<dyn Fs>, args: &BatchArgs) -> Result<Outcome> {
    let form = Form { hex: args.hex };
    let store = store::write(fs, &args.at, Some(&args.write))?;
    let mut batch = WriteBatch::new();
    let mut number = 0_u64;
    input::read_lines(fs, &args.input, |bytes| {
        number += 1;
        let place = |error: Error| Error::Input {
            input: input::name_of(&args.input),
            place: Some(format!("line {number}")),
            what: error.to_string(),
        };
        match parse(bytes, form).map_err(place)? {
            Some(line) => add(&mut batch, &store, &line).map_err(place),
            None => Ok(()),
        }
    })?;
    if !batch.is_empty() {
        let durability = args.write.durability.into();
        store.db.write_with(&batch, durability)?;
        store.finish(durability)?;
    }
    let mut out = Output::new();
    let count = batch.len();
    if args.json {
        out.json(&json!({ "store": args.at.store.display().to_string(), "writes": count }))?;
    } else {
        let count = counted(count as u64, "write", "writes");
        out.line(format!("wrote to {}: {count}", args.at.store.display()))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn add(batch: &mut WriteBatch, store: &Store, line: &Line<'_>) -> Result<()> {
    let other = line.keyspace.as_ref().map(|name| store.keyspace(name)).transpose()?;
    let keyspace: &Keyspace = other.as_ref().unwrap_or(&store.keyspace);
    let (first, second) = (&*line.first, &*line.second);
    let operation = match line.op {
        Op::Put => Operation::Put { key: first, value: second },
        Op::Delete => Operation::Delete { key: first },
        Op::Merge => {
            store.check_merges(keyspace)?;
            Operation::Merge { key: first, operand: second }
        }
        Op::DeleteRange => Operation::DeleteRange { start: first, end: second },
    };
    Ok(batch.add(keyspace.id(), operation)?)
}

/// Parses a line; returns `None` for an empty line or a comment.
fn parse(line: &[u8], form: Form) -> Result<Option<Line<'_>>> {
    match line.first() {
        Some(b'{') => parse_json(line).map(Some),
        None | Some(b'#') => Ok(None),
        _ if line.trim_ascii().is_empty() => Ok(None),
        _ => parse_words(line, form).map(Some),
    }
}

fn op_of(word: &str) -> Result<Op> {
    match word {
        "put" => Ok(Op::Put),
        "delete" => Ok(Op::Delete),
        "merge" => Ok(Op::Merge),
        "delete-range" | "delete_range" => Ok(Op::DeleteRange),
        _ => Err(Error::usage(format!("{word:?}, expected put, delete, merge or delete-range"))),
    }
}

/// Parses `WORD KEY VALUE`. The character after the word is the separator.
fn parse_words(line: &[u8], form: Form) -> Result<Line<'_>> {
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let op = op_of(&String::from_utf8_lossy(word))?;
    let Some((separator, rest)) = rest.split_first() else {
        return Err(Error::usage("no key after the first word"));
    };
    let (first, second) = match rest.iter().position(|byte| byte == separator) {
        Some(at) if op != Op::Delete => (rest.get(..at), rest.get(at + 1..)),
        // The key of a deletion extends to the end of the line.
        _ => (Some(rest), None),
    };
    let bytes = |part: &'_ [u8]| -> Result<Vec<u8>> { from_hex(&String::from_utf8_lossy(part)) };
    let read = |part: Option<&'_ [u8]>, what: &str| match part {
        Some(part) if form.hex => bytes(part).map(Some),
        Some(_) => Ok(None),
        None => Err(Error::usage(format!("no {what} after the key"))),
    };
    let cow = |read: Option<Vec<u8>>, part| read.map_or(Cow::Borrowed(part), Cow::Owned);
    let key = cow(read(first, "key")?, first.unwrap_or_default());
    let second = match op {
        Op::Delete => Cow::Borrowed(&[][..]),
        _ => cow(read(second, "value")?, second.unwrap_or_default()),
    };
    Ok(Line { op, keyspace: None, first: key, second })
}

fn parse_json(line: &[u8]) -> Result<Line<'_>> {
    let parsed: JsonLine<'_> = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
        Error::usage(format!("column {}: {what}", error.column()))
    })?;
    let JsonLine { op, keyspace, key, key_hex, value, value_hex, from, from_hex, to, to_hex } = parsed;
    let op = op_of(&op)?;
    let [key, value, from, to] =
        [("key", key, key_hex), ("value", value, value_hex), ("from", from, from_hex), ("to", to, to_hex)];
    let (first, second, unused) = match op {
        Op::Put | Op::Merge => (key, Some(value), vec![from, to]),
        Op::Delete => (key, None, vec![value, from, to]),
        Op::DeleteRange => (from, Some(to), vec![key, value]),
    };
    if let Some((name, ..)) = unused.into_iter().find(|(_, text, hex)| text.is_some() || hex.is_some()) {
        return Err(Error::usage(format!("field {name:?}: this operation does not have it")));
    }
    let bytes = |(name, text, hex)| field(name, text, hex);
    let second = second.map_or_else(|| Ok(Cow::Borrowed(&[][..])), bytes)?;
    Ok(Line { op, keyspace, first: bytes(first)?, second })
}

fn field<'a>(name: &str, text: Option<Cow<'a, str>>, hex: Option<Cow<'a, str>>) -> Result<Cow<'a, [u8]>> {
    match (text, hex) {
        (Some(Cow::Borrowed(text)), None) => Ok(Cow::Borrowed(text.as_bytes())),
        (Some(Cow::Owned(text)), None) => Ok(Cow::Owned(text.into_bytes())),
        (None, Some(hex)) => from_hex(&hex).map(Cow::Owned),
        (None, None) => Err(Error::usage(format!("no field {name:?} or \"{name}_hex\""))),
        (Some(_), Some(_)) => Err(Error::usage(format!("both {name:?} and \"{name}_hex\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Form = Form { hex: false };

    fn line<'a>(op: Op, first: &'a [u8], second: &'a [u8]) -> Line<'a> {
        Line { op, keyspace: None, first: first.into(), second: second.into() }
    }

    /// Goal: every form of a line is parsed as the help says. Method: lines with their expected
    /// operations.
    #[test]
    fn lines_are_read() {
        let cases: [(&[u8], Line<'_>); 10] = [
            (b"put a b c", line(Op::Put, b"a", b"b c")),
            (b"put\ta b\tc\td", line(Op::Put, b"a b", b"c\td")),
            (b"put a ", line(Op::Put, b"a", b"")),
            (b"put \xff\x00 \x80", line(Op::Put, b"\xff\x00", b"\x80")),
            (b"delete a b", line(Op::Delete, b"a b", b"")),
            (b"merge a 1", line(Op::Merge, b"a", b"1")),
            (b"delete-range a b", line(Op::DeleteRange, b"a", b"b")),
            (br#"{"op":"put","key":"\u00e4\n","value_hex":"ff"}"#, line(Op::Put, "ä\n".as_bytes(), b"\xff")),
            (br#"{"op":"delete","key":"a"}"#, line(Op::Delete, b"a", b"")),
            (br#"{"op":"delete_range","from":"a","to":"b"}"#, line(Op::DeleteRange, b"a", b"b")),
        ];
        for (bytes, expected) in cases {
            assert_eq!(parse(bytes, TEXT).unwrap(), Some(expected), "{}", bytes.escape_ascii());
        }
        assert_eq!(
            parse(b"put 00ff 61", Form { hex: true }).unwrap(),
            Some(line(Op::Put, b"\x00\xff", b"a"))
        );
        let named = parse(br#"{"op":"delete","key":"a","keyspace":"k"}"#, TEXT).unwrap().unwrap();
        assert_eq!(named.keyspace.as_deref(), Some("k"));
        for nothing in [&b""[..], b"  ", b"# put a b"] {
            assert_eq!(parse(nothing, TEXT).unwrap(), None);
        }
    }

    /// Goal: malformed lines are refused, never guessed.
    #[test]
    fn wrong_lines_are_refused() {
        let wrong = [
            "put",
            "put a",
            "get a",
            "PUT a b",
            "merge a",
            "delete-range a",
            "{",
            "{}",
            r#"{"op":"put","key":"a"}"#,
            r#"{"op":"put","key":"a","key_hex":"61","value":"1"}"#,
            r#"{"op":"put","key":"a","value":"1","to":"b"}"#,
            r#"{"op":"put","key":"a","val":"1"}"#,
            r#"{"op":"put","key":"a","value":1}"#,
            r#"{"op":"delete","key_hex":"6"}"#,
        ];
        for text in wrong {
            assert!(parse(text.as_bytes(), TEXT).is_err(), "{text}");
        }
        assert!(parse(b"put a b", Form { hex: true }).is_err());
    }
}
