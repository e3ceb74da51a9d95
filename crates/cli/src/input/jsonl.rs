//! JSON Lines: one object per line.

use std::borrow::Cow;
use std::fmt;

use cairn_rows::mark;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::stream::{read_line, trim_line_break};
use super::{Sink, Source, Stream};
use crate::args::hash::InputArgs;
use crate::error::{Error, Result};
use crate::output::from_hex;

/// The suffix of a field whose string is in hexadecimal.
const HEX: &str = "_hex";

/// Reads objects. A string field gives its text. A number, true, false, an array or an object gives
/// its JSON text unchanged, so that no digit is lost. If a field `name` is missing, `name_hex`
/// gives the bytes of its hexadecimal digits, as in the JSON output of the commands. The value of a
/// whole record is its line. A requested field must not occur twice.
#[derive(Debug)]
pub struct JsonlSource {
    reader: Stream,
    name: String,
    fields: Fields,
    line: Vec<u8>,
    number: u64,
}

/// The names of the requested fields.
#[derive(Debug)]
struct Fields {
    key: String,
    /// `None` for the whole record.
    value: Option<String>,
}

/// The requested fields of one line.
#[derive(Debug, Default)]
struct Found<'a> {
    key: FoundField<'a>,
    value: FoundField<'a>,
}

/// One field: under its name, and under its name with `_hex`.
#[derive(Debug, Default, Clone, Copy)]
struct FoundField<'a> {
    text: Option<&'a RawValue>,
    hex: Option<&'a RawValue>,
}

impl JsonlSource {
    /// Creates the source without reading anything yet. Errors: no key field is named.
    pub fn open(reader: Stream, name: String, args: &InputArgs) -> Result<JsonlSource> {
        let Some(key) = args.key.clone() else {
            return Err(Error::usage("objects have no first column: name the key's field with --key"));
        };
        let fields = Fields { key, value: args.value.clone() };
        Ok(JsonlSource { reader, name, fields, line: Vec::new(), number: 0 })
    }

    /// Returns the bytes of a field.
    fn bytes<'a>(&self, name: &str, found: FoundField<'a>) -> Result<Cow<'a, [u8]>> {
        let wrong =
            |what: String| self.refuse(format!("field {name:?} {what}, expected a string or a number"));
        match (found.text, found.hex) {
            (Some(raw), _) => Ok(match content(raw.get()).map_err(wrong)? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
            (None, Some(raw)) => {
                let digits = content(raw.get()).map_err(wrong)?;
                from_hex(&digits).map(Cow::Owned).map_err(|error| self.refuse(error.to_string()))
            }
            (None, None) => Err(self.refuse(format!("no field {name:?}"))),
        }
    }

    fn refuse(&self, what: String) -> Error {
        Error::Input { input: self.name.clone(), place: Some(format!("line {}", self.number)), what }
    }
}

impl Source for JsonlSource {
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        loop {
            self.number += 1;
            if !read_line(&mut self.reader, &mut self.line).map_err(|error| self.refuse(error.to_string()))? {
                return Ok(false);
            }
            if self.number == 1 {
                self.line.drain(..self.line.len() - mark::without(&self.line).len());
            }
            // Blank lines are not records; the last line break is often followed by one.
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let line = trim_line_break(&self.line);
        let text = std::str::from_utf8(line)
            .map_err(|error| self.refuse(format!("not UTF-8 from byte {} on", error.valid_up_to() + 1)))?;
        let mut parser = serde_json::Deserializer::from_str(text);
        let found = (&self.fields)
            .deserialize(&mut parser)
            .and_then(|found| parser.end().map(|()| found))
            .map_err(|error| self.refuse(format!("column {}: {}", error.column(), plain(&error))))?;
        let key = self.bytes(&self.fields.key, found.key)?;
        match &self.fields.value {
            Some(name) => sink.put(&key, &self.bytes(name, found.value)?)?,
            None => sink.put(&key, line)?,
        }
        Ok(true)
    }
}

/// Returns the text of a field, or a description of a value that has none.
fn content(raw: &str) -> std::result::Result<Cow<'_, str>, String> {
    match raw.as_bytes().first() {
        // Valid JSON may contain half of a surrogate pair, which cannot be encoded in UTF-8.
        Some(b'"') => serde_json::from_str(raw)
            .map(Cow::Owned)
            .map_err(|error| format!("is {raw}, which is not a text ({})", plain(&error))),
        _ if raw == "null" => Err("is null".to_owned()),
        _ => Ok(Cow::Borrowed(raw)),
    }
}

/// Returns the message without the line number, which is always 1 here.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

impl<'de> DeserializeSeed<'de> for &Fields {
    type Value = Found<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Found<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &Fields {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Found<'de>, A::Error> {
        let mut found = Found::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let is = |field: &str| {
                let rest = name.strip_prefix(field)?;
                rest.is_empty().then_some(false).or((rest == HEX).then_some(true))
            };
            let (key, value) = (is(&self.key), self.value.as_deref().and_then(is));
            if key.is_none() && value.is_none() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw = map.next_value::<&RawValue>()?;
            for (is_hex, field) in [(key, &mut found.key), (value, &mut found.value)] {
                let slot = match is_hex {
                    Some(false) => &mut field.text,
                    Some(true) => &mut field.hex,
                    None => continue,
                };
                // A duplicate field is ambiguous: JSON readers take the first, the last, or
                // neither.
                if slot.replace(raw).is_some() {
                    return Err(A::Error::custom(format_args!("field {name:?} is given twice")));
                }
            }
        }
        Ok(found)
    }
}
