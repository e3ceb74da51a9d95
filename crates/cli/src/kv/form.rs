//! The notation of keys and values in arguments and output.

use cairn_kv::ReadOptions;
use cairn_trace::kv::TracedKeyspace;
use serde_json::{Map, Value};

use crate::args::kv::RangeArgs;
use crate::error::Result;
use crate::output::{self, Output, from_hex, to_hex};

/// The notation of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// True for hexadecimal, false for unchanged bytes.
    pub hex: bool,
}

impl Form {
    /// Parses bytes from the command line.
    pub fn parse(self, text: &str) -> Result<Vec<u8>> {
        if self.hex { from_hex(text) } else { Ok(text.as_bytes().to_vec()) }
    }

    /// Writes bytes.
    pub fn print(self, out: &mut Output, bytes: &[u8]) -> Result<()> {
        if self.hex { out.bytes(to_hex(bytes).as_bytes()) } else { out.bytes(bytes) }
    }

    /// Adds bytes to a JSON object; see [`output::insert_bytes`].
    pub fn insert(self, object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
        if self.hex {
            object.insert(format!("{name}_hex"), to_hex(bytes).into());
        } else {
            output::insert_bytes(object, name, bytes);
        }
    }

    /// Returns an entry as a JSON object; an absent value is `null`.
    pub fn record(self, key: &[u8], value: Option<&[u8]>) -> Value {
        let mut object = Map::new();
        self.insert(&mut object, "key", key);
        match value {
            Some(value) => self.insert(&mut object, "value", value),
            None => _ = object.insert("value".to_owned(), Value::Null),
        }
        Value::Object(object)
    }

    /// Parses a range of keys.
    pub fn range(self, args: &RangeArgs) -> Result<KeyRange> {
        let parse = |key: &Option<String>| key.as_deref().map(|key| self.parse(key)).transpose();
        Ok(match parse(&args.prefix)? {
            Some(prefix) => KeyRange { to: prefix_end(&prefix), from: prefix },
            None => KeyRange { from: parse(&args.from)?.unwrap_or_default(), to: parse(&args.to)? },
        })
    }
}

/// The keys from `from` (inclusive) to `to` (exclusive). Without `to`, the range has no upper
/// bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns the bounds for the store's methods.
    pub fn bounds(&self) -> (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        (Included(&*self.from), self.to.as_deref().map_or(Unbounded, Excluded))
    }

    /// Returns true if the range cannot contain a key.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// Passes the entries of a snapshot to `each`, in descending order if `reverse`, until it
    /// returns false. Recorded as one scan.
    pub fn visit(
        &self,
        keyspace: &TracedKeyspace,
        reverse: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        // Every block is read once, so caching it is useless.
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut cursor = keyspace.cursor_in(self.bounds(), None, &options)?;
        if reverse {
            cursor.seek_last()?
        } else {
            cursor.seek_first()?
        }
        while cursor.valid() && each(cursor.key(), cursor.value())? {
            if reverse { cursor.prev()? } else { cursor.next()? }
        }
        Ok(())
    }
}

/// Returns the first key after all keys with this prefix; `None` if there is none.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let (last, head) = prefix.get(..=kept)?.split_last()?;
    Some([head, &[last + 1]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a prefix covers exactly the keys that begin with it. Method: prefixes of 0 to 2 bytes
    /// from both ends of the byte range, against all keys of up to 3 such bytes.
    #[test]
    fn prefix_range_covers_all_keys_with_it() {
        let bytes = [0, 1, 0xfe, 0xff];
        let longer = |keys: &[Vec<u8>]| -> Vec<Vec<u8>> {
            keys.iter().flat_map(|key| bytes.map(|byte| [&key[..], &[byte]].concat())).collect()
        };
        let mut keys = vec![Vec::new()];
        for _ in 0..3 {
            let more = longer(&keys);
            keys.extend(more);
        }
        for prefix in keys.iter().filter(|key| key.len() < 3) {
            let end = prefix_end(prefix);
            for key in &keys {
                let inside = key >= prefix && end.as_ref().is_none_or(|end| key < end);
                assert_eq!(inside, key.starts_with(prefix), "{prefix:x?} {key:x?}");
            }
        }
    }
}
