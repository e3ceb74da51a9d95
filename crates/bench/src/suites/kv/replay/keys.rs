//! The numbered keys of a trace, in a form that every store accepts.
//!
//! ```text
//!   raw      the key itself; if longer than 511 bytes, its beginning and a hash of it
//!   hashed   the hash, padded with dots to the length of the original key
//! ```
//!
//! If there are several keyspaces, or an empty key is stored, all keys of either form begin with
//! four bytes of keyspace; otherwise none does.

use std::collections::HashMap;

use cairn_codec::checksum::xxh3_64;
use cairn_trace::{Detail, Event, KeyForm, Trace};

use crate::core::error::{Error, Result};
use crate::suites::kv::keys::KEY_BYTES_MAX;

const HASH_BYTES: usize = 8;

/// Keys by number.
#[derive(Debug)]
pub(super) struct KeyTable {
    form: KeyForm,
    prefixed: bool,
    numbers: HashMap<(u32, Box<[u8]>), u32>,
    /// All keys, one after another.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    shortened: u64,
}

impl KeyTable {
    /// Creates a table without keys for the first `most` operations of a trace. Scans these
    /// operations to decide on the form of the keys.
    pub fn new(trace: &Trace, most: usize) -> Result<KeyTable> {
        let mut prefixed = false;
        for event in trace.events().take(most) {
            prefixed |= needs_prefix(&event?);
        }
        Ok(KeyTable {
            form: trace.header().keys,
            prefixed,
            numbers: HashMap::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            shortened: 0,
        })
    }

    /// Returns the number of an event's key, and whether the key is new.
    ///
    /// Errors: [`Error::Invalid`] if there are more keys than numbers.
    pub fn number(&mut self, event: &Event<'_>) -> Result<(u32, bool)> {
        let name = (event.keyspace, Box::from(event.key));
        if let Some(number) = self.numbers.get(&name) {
            return Ok((*number, false));
        }
        let number = u32::try_from(self.ends.len())
            .map_err(|_| Error::invalid("a trace of more than 2^32 keys".to_owned()))?;
        let start = self.bytes.len();
        if self.prefixed {
            self.bytes.extend_from_slice(&event.keyspace.to_be_bytes());
        }
        let room = KEY_BYTES_MAX - (self.bytes.len() - start);
        match self.form {
            // BOUND: the length that a trace claims is limited before it is used.
            KeyForm::Hashed => {
                let length = (event.key_bytes as usize).max(HASH_BYTES);
                self.shortened += u64::from(length > room);
                self.bytes.extend_from_slice(event.key.get(..HASH_BYTES).unwrap_or(event.key));
                self.bytes.resize(self.bytes.len() + length.min(room) - HASH_BYTES, b'.');
            }
            KeyForm::Raw if event.key.len() <= room => self.bytes.extend_from_slice(event.key),
            KeyForm::Raw => {
                self.shortened += 1;
                self.bytes.extend_from_slice(event.key.get(..room - HASH_BYTES).unwrap_or_default());
                self.bytes.extend_from_slice(&xxh3_64(event.key).to_be_bytes());
            }
        }
        self.ends.push(self.bytes.len());
        self.numbers.insert(name, number);
        Ok((number, true))
    }

    /// Returns the bytes of a key.
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends.get(number - 1).copied().unwrap_or(0) };
        let end = self.ends.get(number).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the total bytes of all keys.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of keys that were cut because some store could not accept their length.
    pub fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Returns whether every key begins with its keyspace.
    pub fn is_prefixed(&self) -> bool {
        self.prefixed
    }

    /// Frees the map from keys to numbers, which is no longer needed.
    pub fn close(&mut self) {
        self.numbers = HashMap::new();
    }
}

/// Returns whether keys need a prefix: without it, a key of another keyspace would be taken for one
/// of the default keyspace, and some stores do not accept empty keys.
fn needs_prefix(event: &Event<'_>) -> bool {
    match event.detail {
        Detail::DeleteRange { .. } | Detail::Statement(_) => false,
        Detail::Scan { .. } => event.keyspace != 0,
        _ => event.keyspace != 0 || event.key.is_empty(),
    }
}
