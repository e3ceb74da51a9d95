//! CSV: a header row with column names, then one operation per row.
//!
//! ```text
//! time,op,key,value_size,found,count         key_size: of original keys, if the input has hashes
//! 0.001,put,user:17,120,,
//! 0.002,get,user:17,120,true,
//! 0.003,scan,user:,,,50
//! ```
//!
//! `key_hex` and `end_hex` replace `key` and `end`, independently of each other. They hold bytes in
//! hexadecimal, for keys that are not text. `joined` is `true` for an operation that belongs to the
//! row before, and `backwards` for a scan in descending order.

use std::io::BufRead;

use cairn_rows::csv::{Dialect, Failure, Reader, Row};

use super::Sink;
use crate::error::{Error, Result};
use crate::event::{Detail, Event, Kind};

/// The columns, each with the names that various tools use for it.
const TIME: &[&str] = &["time", "timestamp", "time_s", "seconds"];
const TIME_MS: &[&str] = &["time_ms", "timestamp_ms"];
const TIME_US: &[&str] = &["time_us", "timestamp_us"];
const TIME_NS: &[&str] = &["time_ns", "timestamp_ns"];
const OPERATION: &[&str] = &["op", "operation", "type", "kind"];
const KEY: &[&str] = &["key", "anonymized key", "page", "block", "obj_id"];
const KEY_SIZE: &[&str] = &["key_size", "key size", "key_bytes"];
const VALUE_SIZE: &[&str] = &["value_size", "value size", "value_bytes", "size", "obj_size"];
const FOUND: &[&str] = &["found", "hit"];
const COUNT: &[&str] = &["count", "entries", "rows"];
const KEYSPACE: &[&str] = &["keyspace", "cf_id", "column_family"];
const END: &[&str] = &["end", "end_key"];
const KEY_HEX: &[&str] = &["key_hex"];
const END_HEX: &[&str] = &["end_hex"];
const JOINED: &[&str] = &["joined"];
const BACKWARDS: &[&str] = &["backwards"];
const KNOWN: [&[&str]; 16] = [
    TIME, TIME_MS, TIME_US, TIME_NS, OPERATION, KEY, KEY_SIZE, VALUE_SIZE, FOUND, COUNT, KEYSPACE, END,
    KEY_HEX, END_HEX, JOINED, BACKWARDS,
];

/// Returns true for a header row with a key column.
pub(super) fn has_key(fields: &[&str]) -> bool {
    fields.iter().any(|field| {
        let field = field.trim_matches('"').to_ascii_lowercase();
        KEY.contains(&field.as_str()) || KEY_HEX.contains(&field.as_str())
    })
}

/// A column that holds bytes.
#[derive(Clone, Copy)]
struct Bytes {
    column: usize,
    /// True if the bytes are in hexadecimal.
    hex: bool,
}

/// The positions of the columns.
struct Columns {
    time: Option<(usize, f64)>,
    operation: Option<usize>,
    key: Bytes,
    key_size: Option<usize>,
    value_size: Option<usize>,
    found: Option<usize>,
    count: Option<usize>,
    keyspace: Option<usize>,
    end: Option<Bytes>,
    joined: Option<usize>,
    backwards: Option<usize>,
}

impl Columns {
    fn of(head: &Row) -> Option<Columns> {
        let names: Vec<String> = head
            .iter()
            .map(|field| String::from_utf8_lossy(field.trim_ascii()).to_ascii_lowercase())
            .collect();
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        let bytes = |plain: &[&str], hex: &[&str]| {
            let plain = find(plain).map(|column| Bytes { column, hex: false });
            plain.or_else(|| find(hex).map(|column| Bytes { column, hex: true }))
        };
        let units = [(TIME_NS, 1.0), (TIME_US, 1e3), (TIME_MS, 1e6), (TIME, 1e9)];
        Some(Columns {
            time: units.into_iter().find_map(|(known, unit)| Some((find(known)?, unit))),
            operation: find(OPERATION),
            key: bytes(KEY, KEY_HEX)?,
            key_size: find(KEY_SIZE),
            value_size: find(VALUE_SIZE),
            found: find(FOUND),
            count: find(COUNT),
            keyspace: find(KEYSPACE),
            end: bytes(END, END_HEX),
            joined: find(JOINED),
            backwards: find(BACKWARDS),
        })
    }
}

pub(super) fn read(name: &str, input: &mut dyn BufRead, sink: &mut Sink) -> Result<()> {
    let refuse = |line: u64, what: String| Error::Input {
        input: name.to_owned(),
        place: Some(format!("line {line}")),
        what,
    };
    let unreadable = |failure: Failure| Error::Input {
        input: name.to_owned(),
        place: failure.line().map(|line| format!("line {line}")),
        what: failure.to_string(),
    };
    let mut reader = Reader::new(input, Dialect::CSV);
    let mut head = Row::default();
    reader.read(&mut head).map_err(unreadable)?;
    let columns = Columns::of(&head)
        .ok_or_else(|| refuse(1, "no column key: expected a first line that names the columns".to_owned()))?;
    told_once(&head).map_err(|what| refuse(head.line(), what))?;
    for field in head.iter() {
        let column = String::from_utf8_lossy(field.trim_ascii()).to_ascii_lowercase();
        if !KNOWN.iter().any(|known| known.contains(&column.as_str())) {
            sink.skip(&format!("column {column}"));
        }
    }
    sink.header.timed = columns.time.is_some();
    let mut first = None;
    let mut row = Row::default();
    let (mut key, mut end) = (Vec::new(), Vec::new());
    while reader.read(&mut row).map_err(unreadable)? {
        let line = row.line();
        let mut parsed = Operation { columns: &columns, row: &row, key: &[], end: None };
        parsed.key =
            row.get(columns.key.column).ok_or_else(|| refuse(line, "a row without a key".to_owned()))?;
        parsed.end = parsed.field(columns.end.map(|end| end.column));
        if columns.key.hex {
            from_hex(parsed.key, &mut key).map_err(|what| refuse(line, what))?;
            parsed.key = &key;
        }
        if let Some(given) = parsed.end.filter(|_| columns.end.is_some_and(|end| end.hex)) {
            from_hex(given, &mut end).map_err(|what| refuse(line, what))?;
            parsed.end = Some(&end);
        }
        let time_ns = parsed.time(&mut first).map_err(|what| refuse(line, what))?;
        let time_ns = time_ns.map_or(0, |time_ns| sink.time(time_ns));
        let event = parsed.event(time_ns).map_err(|what| refuse(line, what))?;
        sink.add(&event)?;
    }
    Ok(())
}

/// Checks that no column name with a meaning occurs twice.
///
/// Errors: one does, so it is ambiguous which column is meant.
fn told_once(head: &Row) -> std::result::Result<(), String> {
    let names = head.iter().map(|field| String::from_utf8_lossy(field.trim_ascii()).to_ascii_lowercase());
    let names: Vec<String> = names.collect();
    let is_known = |name: &&String| KNOWN.iter().any(|known| known.contains(&name.as_str()));
    let mut known = names.iter().filter(is_known);
    let twice = known.find(|name| names.iter().filter(|other| other == name).count() > 1);
    twice.map_or(Ok(()), |name| Err(format!("duplicate column {name}")))
}

/// Decodes pairs of hexadecimal digits.
fn from_hex(text: &[u8], out: &mut Vec<u8>) -> std::result::Result<(), String> {
    out.clear();
    for pair in text.trim_ascii().chunks(2) {
        // The check is needed because the standard library's parser accepts a sign.
        let is_digits = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(pair).ok().filter(|_| is_digits);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.ok_or_else(|| {
            format!("{:?}: expected pairs of hexadecimal digits", String::from_utf8_lossy(text))
        })?);
    }
    Ok(())
}

/// A row with the decoded bytes of its keys.
struct Operation<'a> {
    columns: &'a Columns,
    row: &'a Row,
    key: &'a [u8],
    end: Option<&'a [u8]>,
}

impl<'a> Operation<'a> {
    fn field(&self, column: Option<usize>) -> Option<&'a [u8]> {
        self.row.get(column?).map(<[u8]>::trim_ascii).filter(|field| !field.is_empty())
    }

    fn text(&self, column: Option<usize>) -> Option<String> {
        self.field(column).map(|field| String::from_utf8_lossy(field).into_owned())
    }

    fn number(&self, column: Option<usize>, name: &str) -> std::result::Result<Option<u64>, String> {
        let Some(text) = self.text(column) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{name} {text:?}: expected a number from 0"))
    }

    fn is_set(&self, column: Option<usize>, name: &str) -> std::result::Result<Option<bool>, String> {
        match self.text(column).map(|text| text.to_ascii_lowercase()).as_deref() {
            None => Ok(None),
            Some("1" | "true" | "t" | "yes" | "hit") => Ok(Some(true)),
            Some("0" | "false" | "f" | "no" | "miss") => Ok(Some(false)),
            Some(other) => Err(format!("{name} {other:?}: expected true or false")),
        }
    }

    /// Returns the time in nanoseconds after the first row, which may be negative. `None` if there
    /// is no such column.
    fn time(&self, first: &mut Option<f64>) -> std::result::Result<Option<i128>, String> {
        let Some((column, unit)) = self.columns.time else { return Ok(None) };
        let text = self.text(Some(column)).unwrap_or_default();
        let time: f64 = text
            .parse()
            .ok()
            .filter(|time: &f64| time.is_finite())
            .ok_or_else(|| format!("time {text:?}: expected a number"))?;
        let first = *first.get_or_insert(time);
        // Round, because 0.1 s is a whole number of nanoseconds but not exact in binary.
        Ok(Some(((time - first) * unit).round() as i128))
    }

    fn event(&self, time_ns: u64) -> std::result::Result<Event<'a>, String> {
        let key = self.key;
        let key_bytes = self.number(self.columns.key_size, "key_size")?.unwrap_or(key.len() as u64);
        let keyspace = self.number(self.columns.keyspace, "keyspace")?.unwrap_or(0);
        Ok(Event {
            time_ns,
            lane: 0,
            joined: self.is_set(self.columns.joined, "joined")?.unwrap_or(false),
            keyspace: u32::try_from(keyspace)
                .map_err(|_| format!("keyspace {keyspace}: expected a number below 2^32"))?,
            key,
            key_bytes: u32::try_from(key_bytes)
                .map_err(|_| format!("key_size {key_bytes}: expected a number below 2^32"))?,
            detail: self.detail()?,
        })
    }

    fn detail(&self) -> std::result::Result<Detail<'a>, String> {
        let word = self.text(self.columns.operation).unwrap_or_else(|| "get".to_owned()).to_ascii_lowercase();
        let kind = kind_of(&word).ok_or_else(|| {
            format!("operation {word:?}: expected one of {}", Kind::ALL.map(Kind::name).join(", "))
        })?;
        let size = self.number(self.columns.value_size, "value_size")?;
        let count = self.number(self.columns.count, "count")?;
        let found = self.is_set(self.columns.found, "found")?;
        Ok(match kind {
            Kind::Get => Detail::Get(match (found, size) {
                (Some(false), _) => Some(None),
                (Some(true), size) => Some(Some(size.unwrap_or(0))),
                // Without an outcome, a size is the size of the value found. 0 is unknown, because
                // many tools write 0 for a missing size.
                (None, size) => size.filter(|size| *size > 0).map(Some),
            }),
            Kind::Put => Detail::Put(size.unwrap_or(0)),
            Kind::Delete => Detail::Delete,
            Kind::Merge => Detail::Merge(size.unwrap_or(0)),
            Kind::Scan => {
                let backwards = self.is_set(self.columns.backwards, "backwards")?.unwrap_or(false);
                Detail::Scan { entries: count.unwrap_or(1), backwards }
            }
            Kind::DeleteRange => {
                let end = self.end.ok_or("delete_range without an end")?;
                Detail::DeleteRange { end, end_bytes: end.len() as u32 }
            }
            Kind::Statement => Detail::Statement(count.unwrap_or(0)),
            Kind::Block => Detail::Block { bytes: size.unwrap_or(0), hit: found },
        })
    }
}

/// Maps an operation name to its kind: Cairn's names, and those of memcached's traces (including
/// Twitter's), YCSB and block traces.
fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "gets" | "read" | "r" | "lookup" => Kind::Get,
        "set" | "add" | "replace" | "cas" | "write" | "w" | "insert" | "update" => Kind::Put,
        "del" | "remove" | "single_delete" => Kind::Delete,
        "append" | "prepend" | "incr" | "decr" => Kind::Merge,
        "iterator_seek" | "iterator_seekforprev" | "seek" => Kind::Scan,
        "page" => Kind::Block,
        other => return Kind::parse(other),
    })
}
