//! The keys of a trace, numbered, in a form that every store takes.
//!
//! ```text
//!   raw      the key itself; over 511 bytes its beginning and a hash of it
//!   hashed   the hash, and dots up to the length of the real key
//!   both     behind four bytes of keyspace, in all keys or in none: where there are several keyspaces, or an empty key is stored
//! ```

use std::collections::HashMap;

use cairn_codec::checksum::xxh3_64;
use cairn_trace::{Detail, Event, KeyForm, Trace};

use crate::error::{Error, Result};
use crate::suite_kv::keys::KEY_BYTES_MAX;

const HASH_BYTES: usize = 8;

/// Keys by number.
#[derive(Debug)]
pub(super) struct KeyTable {
    form: KeyForm,
    prefixed: bool,
    numbers: HashMap<(u32, Box<[u8]>), u32>,
    /// All keys, one after the other.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    shortened: u64,
}

impl KeyTable {
    /// Without keys yet, for the first `most` operations of a trace. Looks through them for what
    /// decides the form.
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

    /// The number of an event's key, and whether it is a new one.
    ///
    /// Errors: [`Error::Invalid`] for more keys than there are numbers.
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
            // BOUND: the length that a trace claims is cut before it is believed.
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

    /// A key's bytes.
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends.get(number - 1).copied().unwrap_or(0) };
        let end = self.ends.get(number).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all keys.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Keys that are longer than every store takes.
    pub fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Every key begins with its keyspace.
    pub fn is_prefixed(&self) -> bool {
        self.prefixed
    }

    /// Numbers are not asked for any more.
    pub fn close(&mut self) {
        self.numbers = HashMap::new();
    }
}

/// A key of another keyspace would be taken for one of the default one, and some stores take no
/// empty key.
fn needs_prefix(event: &Event<'_>) -> bool {
    match event.detail {
        Detail::DeleteRange { .. } | Detail::Statement(_) => false,
        Detail::Scan { .. } => event.keyspace != 0,
        _ => event.keyspace != 0 || event.key.is_empty(),
    }
}
