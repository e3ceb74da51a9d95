//! Length-prefixed binary records.
//!
//! ```text
//! ┌──────────────────┬────────────────────┬─────┬───────┐
//! │ key length u32le │ value length u32le │ key │ value │   repeated up to the end of the input
//! └──────────────────┴────────────────────┴─────┴───────┘
//! ```

use std::io::{self, BufRead, Read};

use super::{Sink, Source, Stream};
use crate::error::{Error, Result};

/// The two lengths.
const HEAD_BYTES: usize = 8;
/// Longer values are streamed to the store.
const WHOLE_VALUE_BYTES: u64 = 1 << 20;

/// Reads records sequentially.
#[derive(Debug)]
pub struct BinarySource {
    reader: Stream,
    name: String,
    offset: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl BinarySource {
    /// Creates the source without reading anything yet.
    pub fn new(reader: Stream, name: String) -> BinarySource {
        BinarySource { reader, name, offset: 0, key: Vec::new(), value: Vec::new() }
    }

    fn refuse(&self, what: String) -> Error {
        Error::Input {
            input: self.name.clone(),
            place: Some(format!("record at offset {}", self.offset)),
            what,
        }
    }
}

impl Source for BinarySource {
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        // Nearly every record is completely in the buffer and is passed on without a copy.
        if let Ok(buffer) = self.reader.fill_buf()
            && let Some((key, value)) = whole_record(buffer)
        {
            let bytes = HEAD_BYTES + key.len() + value.len();
            sink.put(key, value)?;
            self.reader.consume(bytes);
            self.offset += bytes as u64;
            return Ok(true);
        }
        self.feed_in_pieces(sink)
    }
}

impl BinarySource {
    fn feed_in_pieces(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        if let Err(what) = read_up_to(&mut self.reader, 8, &mut head) {
            return Err(self.refuse(what));
        }
        let &[a, b, c, d, e, f, g, h] = &head[..] else {
            return match head.len() {
                0 => Ok(false),
                count => Err(self.refuse(format!("ends after {count} of the 8 bytes with the lengths"))),
            };
        };
        let [key_bytes, value_bytes] =
            [[a, b, c, d], [e, f, g, h]].map(|bytes| u64::from(u32::from_le_bytes(bytes)));
        let short =
            |what: &str, got: usize, expected: u64| format!("{what} ends after {got} of {expected} bytes");
        self.key.clear();
        match read_up_to(&mut self.reader, key_bytes, &mut self.key) {
            Ok(()) if self.key.len() as u64 == key_bytes => {}
            Ok(()) => return Err(self.refuse(short("key", self.key.len(), key_bytes))),
            Err(what) => return Err(self.refuse(what)),
        }
        if value_bytes > WHOLE_VALUE_BYTES {
            let mut value = (&mut self.reader).take(value_bytes);
            let put = sink.put_stream(&self.key, value_bytes, &mut value);
            let got = value_bytes - value.limit();
            if put.is_err() && got < value_bytes && at_end(&mut self.reader) {
                return Err(self.refuse(short("value", got as usize, value_bytes)));
            }
            put?;
        } else {
            self.value.clear();
            match read_up_to(&mut self.reader, value_bytes, &mut self.value) {
                Ok(()) if self.value.len() as u64 == value_bytes => sink.put(&self.key, &self.value)?,
                Ok(()) => return Err(self.refuse(short("value", self.value.len(), value_bytes))),
                Err(what) => return Err(self.refuse(what)),
            }
        }
        self.offset += 8 + key_bytes + value_bytes;
        Ok(true)
    }
}

/// Returns key and value of the record at the start of `buffer`, if the buffer contains all of it.
fn whole_record(buffer: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[a, b, c, d, e, f, g, h], rest) = buffer.split_first_chunk::<HEAD_BYTES>()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes([a, b, c, d]) as usize)?;
    Some((key, rest.get(..u32::from_le_bytes([e, f, g, h]) as usize)?))
}

/// Appends up to `bytes` bytes to `out`, which grows only as input arrives. A corrupt length
/// therefore allocates nothing.
fn read_up_to(reader: &mut Stream, bytes: u64, out: &mut Vec<u8>) -> std::result::Result<(), String> {
    reader.take(bytes).read_to_end(out).map(|_| ()).map_err(|error: io::Error| error.to_string())
}

fn at_end(reader: &mut Stream) -> bool {
    matches!(reader.fill_buf(), Ok([]))
}
