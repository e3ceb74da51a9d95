//! Write batches: operations that are applied together or not at all.
//!
//! A batch is kept in the format of a log record, so that a commit is one copy:
//!
//! ```text
//!  0   seqno  u64   number of the first operation; the rest are consecutive  } written at commit
//!  8   count  u32   number of operations                                     }
//! 12   operations, each:
//!        tag        u8      low 4 bits: 0 delete, 1 put, 2 merge, 4 delete range
//!                           bit 7: a keyspace id follows
//!        keyspace   varint  only if bit 7 is set; otherwise keyspace 0
//!        key length varint
//!        value length varint  absent in a delete; in a delete range, that of the end key
//!        key, value
//! ```

use cairn_codec::varint;

use crate::kind::{SEQNO_MAX, Seqno};
use crate::table::ENTRY_BYTES_MAX;
use crate::ttl::STAMP_BYTES;
use crate::version::KeyspaceId;
use crate::{Error, Result};

mod decode;

use decode::Likeness;
pub(crate) use decode::{Malformed, Operations, Record};

/// Bytes of the header, before the first operation.
pub(crate) const HEADER_BYTES: usize = 12;

/// The longest key that a store accepts: 64 KiB - 1.
pub const KEY_BYTES_MAX: usize = (1 << 16) - 1;

/// The longest value that a store accepts: 511 MiB, for every key length and whether or not the
/// value goes to a blob file.
pub const VALUE_BYTES_MAX: usize = 511 << 20;

/// The longest encoded batch: one log record, 1 GiB.
pub const BATCH_BYTES_MAX: usize = cairn_wal::MAX_RECORD_BYTES;

// An acknowledged write must fit into a table at the next flush, even with the longest key and the
// TTL stamp.
const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX + STAMP_BYTES <= ENTRY_BYTES_MAX);
// It must also fit into a log record, together with the tag, the keyspace and both lengths.
const _: () = assert!(
    HEADER_BYTES + 1 + 3 * varint::MAX_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX + STAMP_BYTES
        <= BATCH_BYTES_MAX
);

/// The keyspace that every store has.
pub(crate) const DEFAULT: KeyspaceId = KeyspaceId(0);

const KEYSPACE_FOLLOWS: u8 = 0x80;
const _: () = assert!(TAG_MERGE < 16 && TAG_DELETE_RANGE < 16, "a tag has 4 bits");
// A memtable takes every key and value that a batch does.
const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX + STAMP_BYTES <= u32::MAX as usize);

/// One operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Sets a key.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Adds an operand for the merge operator.
    Merge {
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// Removes all keys from `start` (inclusive) to `end` (exclusive).
    DeleteRange {
        /// The first key to remove.
        start: &'a [u8],
        /// The first key to keep.
        end: &'a [u8],
    },
}

const TAG_DELETE: u8 = 0;
const TAG_PUT: u8 = 1;
const TAG_MERGE: u8 = 2;
const TAG_DELETE_RANGE: u8 = 4;

impl<'a> Operation<'a> {
    #[inline]
    fn parts(&self) -> (u8, &'a [u8], Option<&'a [u8]>) {
        match *self {
            Operation::Put { key, value } => (TAG_PUT, key, Some(value)),
            Operation::Delete { key } => (TAG_DELETE, key, None),
            Operation::Merge { key, operand } => (TAG_MERGE, key, Some(operand)),
            Operation::DeleteRange { start, end } => (TAG_DELETE_RANGE, start, Some(end)),
        }
    }

    /// Returns the key, or the start of the range.
    #[inline]
    pub fn first_key(&self) -> &'a [u8] {
        self.parts().1
    }

    /// Checks the lengths and, for a range deletion, the order of its bounds.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        let (tag, key, value) = self.parts();
        let value_bytes = value.map_or(0, <[u8]>::len);
        if key.len() <= KEY_BYTES_MAX && (tag != TAG_DELETE_RANGE && value_bytes <= VALUE_BYTES_MAX) {
            return Ok(());
        }
        self.check_slow()
    }

    #[cold]
    fn check_slow(&self) -> Result<()> {
        let (tag, key, value) = self.parts();
        let value = value.unwrap_or_default();
        if key.len() > KEY_BYTES_MAX || (tag == TAG_DELETE_RANGE && value.len() > KEY_BYTES_MAX) {
            let len = key.len().max(value.len());
            return Err(Error::invalid(format!("a key of {len} bytes, expected at most {KEY_BYTES_MAX}")));
        }
        if value.len() > VALUE_BYTES_MAX {
            let len = value.len();
            return Err(Error::invalid(format!(
                "a value of {len} bytes, expected at most {VALUE_BYTES_MAX}"
            )));
        }
        if tag == TAG_DELETE_RANGE && key > value {
            return Err(Error::invalid("delete range: start is after end"));
        }
        Ok(())
    }

    /// Returns true for a range deletion whose range is empty.
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Operation::DeleteRange { start, end } if start == end)
    }

    /// Returns true for a deletion of a key or a range, which adds no data.
    #[inline]
    pub(crate) fn is_removal(&self) -> bool {
        matches!(self, Operation::Delete { .. } | Operation::DeleteRange { .. })
    }

    /// Returns the key that the operation writes, or `None` for a range deletion.
    #[inline]
    pub(crate) fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Operation::DeleteRange { .. } => None,
            _ => Some(self.parts().1),
        }
    }

    /// Returns the length of the encoded operation.
    #[inline]
    pub(crate) fn encoded_bytes(&self, keyspace: KeyspaceId) -> usize {
        let (_, key, value) = self.parts();
        let mut bytes = 1 + varint::encoded_len(key.len() as u64) + key.len();
        if keyspace != DEFAULT {
            bytes += varint::encoded_len(u64::from(keyspace.0));
        }
        if let Some(value) = value {
            bytes += varint::encoded_len(value.len() as u64) + value.len();
        }
        bytes
    }

    /// Encodes the operation into `out`, which must be [`Operation::encoded_bytes`] long.
    #[inline]
    pub(crate) fn encode(&self, keyspace: KeyspaceId, out: &mut [u8]) {
        debug_assert_eq!(out.len(), self.encoded_bytes(keyspace), "room for another operation");
        let (tag, key, value) = self.parts();
        let mut writer = Writer { out };
        if keyspace == DEFAULT {
            writer.bytes(&[tag]);
        } else {
            writer.bytes(&[tag | KEYSPACE_FOLLOWS]);
            writer.number(u64::from(keyspace.0));
        }
        writer.number(key.len() as u64);
        if let Some(value) = value {
            writer.number(value.len() as u64);
        }
        writer.bytes(key);
        writer.bytes(value.unwrap_or_default());
        debug_assert!(writer.out.is_empty());
    }
}

/// Fills a slice from the front. Bytes that do not fit are dropped, which never happens because
/// callers compute the encoded length beforehand.
struct Writer<'a> {
    out: &'a mut [u8],
}

impl Writer<'_> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.out.len(), "{} bytes for {}", bytes.len(), self.out.len());
        if let Some((head, rest)) = std::mem::take(&mut self.out).split_at_mut_checked(bytes.len()) {
            head.copy_from_slice(bytes);
            self.out = rest;
        }
    }

    #[inline]
    fn number(&mut self, value: u64) {
        if value < 0x80 {
            return self.bytes(&[value as u8]);
        }
        let mut buf = [0; varint::MAX_BYTES];
        let used = varint::encode(value, &mut buf);
        self.bytes(&buf[..used]);
    }
}

/// Writes the header of a record.
#[inline]
pub(crate) fn write_header(record: &mut [u8], seqno: Seqno, count: u32) {
    debug_assert!(record.len() >= HEADER_BYTES, "a record of {} bytes", record.len());
    debug_assert!(count > 0, "a record without operations");
    debug_assert!(
        seqno <= SEQNO_MAX && u64::from(count) - 1 <= SEQNO_MAX - seqno,
        "{count} numbers from {seqno} on"
    );
    if let Some(header) = record.first_chunk_mut::<HEADER_BYTES>() {
        header[..8].copy_from_slice(&seqno.to_le_bytes());
        header[8..].copy_from_slice(&count.to_le_bytes());
    }
}

/// Operations that are committed together, in the order in which they were added.
#[derive(Debug, Clone)]
pub struct WriteBatch {
    record: Vec<u8>,
    count: u32,
    /// True while the batch writes only to the default keyspace and contains no range deletion.
    pub(crate) is_plain: bool,
}

impl Default for WriteBatch {
    fn default() -> Self {
        WriteBatch::new()
    }
}

impl WriteBatch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        WriteBatch::with_capacity(0)
    }

    /// Creates an empty batch with capacity for `bytes` of encoded operations.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut record = Vec::with_capacity(HEADER_BYTES + bytes);
        record.resize(HEADER_BYTES, 0);
        WriteBatch { record, count: 0, is_plain: true }
    }

    /// Sets `key` in the default keyspace. Errors: [`Error::Invalid`] if the key, the value or the
    /// resulting batch is too long.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(DEFAULT, Operation::Put { key: key.as_ref(), value: value.as_ref() })
    }

    /// Removes `key` from the default keyspace. Errors: [`Error::Invalid`] if the key or the
    /// resulting batch is too long.
    #[inline]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(DEFAULT, Operation::Delete { key: key.as_ref() })
    }

    /// Adds an operation on any keyspace ([`crate::Keyspace::id`]). The deletion of an empty range
    /// has no effect and is not added.
    ///
    /// Errors: [`Error::Invalid`] for a key or value that is too long, for a range that ends before
    /// it starts, and if the batch would exceed [`BATCH_BYTES_MAX`].
    #[inline]
    pub fn add(&mut self, keyspace: KeyspaceId, operation: Operation<'_>) -> Result<()> {
        operation.check()?;
        if operation.is_nothing() {
            return Ok(());
        }
        let before = self.record.len();
        let after = before + operation.encoded_bytes(keyspace);
        if after > BATCH_BYTES_MAX {
            return Err(Error::invalid(format!("a batch of more than {BATCH_BYTES_MAX} bytes")));
        }
        self.record.resize(after, 0);
        operation.encode(keyspace, &mut self.record[before..]);
        debug_assert!(self.count < u32::MAX && after > before, "operation {} of a batch", self.count);
        self.count += 1;
        self.is_plain &= keyspace == DEFAULT && !matches!(operation, Operation::DeleteRange { .. });
        Ok(())
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true if the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the length of the encoded operations.
    pub fn encoded_bytes(&self) -> usize {
        debug_assert_eq!(
            self.count == 0,
            self.record.len() == HEADER_BYTES,
            "{} operations in a record of {} bytes",
            self.count,
            self.record.len()
        );
        self.record.len() - HEADER_BYTES
    }

    /// Removes all operations and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.record.truncate(HEADER_BYTES);
        self.count = 0;
        self.is_plain = true;
    }

    /// Calls `f` with each operation and its keyspace, in order, until `f` fails.
    #[inline(always)]
    pub(crate) fn try_for_each<'a>(
        &'a self,
        mut f: impl FnMut(KeyspaceId, Operation<'a>) -> Result<()>,
    ) -> Result<()> {
        Operations::new(&self.record[HEADER_BYTES..]).walk(|operation| match operation {
            Ok((id, operation)) => f(id, operation),
            // Unreachable: the batch encoded these bytes itself.
            Err(_) => Ok(()),
        })
    }

    /// Iterates in order over the operations for whose key `is_wanted` returns true, with their
    /// keyspaces. For a range deletion, `is_wanted` is called with the start of the range. If few
    /// operations match, this is faster than filtering [`WriteBatch::operations`].
    pub fn operations_where(
        &self,
        is_wanted: impl Fn(&[u8]) -> bool + Copy,
    ) -> impl Iterator<Item = (KeyspaceId, Operation<'_>)> {
        let mut operations = Operations::new(&self.record[HEADER_BYTES..]);
        let mut likeness = Likeness::Headers;
        // `ok()` drops nothing: the batch encoded these bytes itself.
        std::iter::from_fn(move || operations.next_where(&mut likeness, is_wanted)?.ok())
    }

    /// Iterates over the operations with their keyspaces, in order.
    pub fn operations(&self) -> impl Iterator<Item = (KeyspaceId, Operation<'_>)> {
        // `ok()` drops nothing: the batch encoded these bytes itself.
        Operations::new(&self.record[HEADER_BYTES..]).filter_map(|operation| operation.ok())
    }

    /// Returns true if the batch consists of deletions only.
    pub(crate) fn is_removal(&self) -> bool {
        self.operations().all(|(_, operation)| operation.is_removal())
    }

    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::ErrorKind;
    use proptest::prelude::*;

    use super::*;

    /// Keyspace, type, key, value, and the number of consecutive operations of this shape.
    type Part = (u32, u8, Vec<u8>, Vec<u8>, u8);

    /// Key lengths on both sides of each point where the length encoding grows or the search
    /// through the batch changes its method.
    const KEY_LENGTHS: [usize; 15] = [0, 1, 2, 3, 4, 7, 8, 16, 17, 32, 48, 49, 127, 128, 300];

    /// Generates parts whose keys mostly have one or two lengths, as in real programs.
    fn any_parts() -> impl Strategy<Value = Vec<Part>> {
        let len = || prop::sample::select(&KEY_LENGTHS[..]);
        (len(), len(), len()).prop_flat_map(|(one, two, three)| {
            prop::collection::vec(any_part(vec![one, one, one, one, one, one, two, two, three]), 0..16)
        })
    }

    /// Generates a part. Value lengths lie on both sides of each point where the length encoding
    /// grows.
    fn any_part(key_lengths: Vec<usize>) -> impl Strategy<Value = Part> {
        let bytes = |len| prop::collection::vec(any::<u8>(), len);
        let key = prop::sample::select(key_lengths);
        let value = prop::sample::select(vec![0_usize, 1, 8, 8, 20, 40, 127, 128, 300, 16_383, 16_384]);
        let keyspace = prop::sample::select(vec![0_u32, 0, 0, 0, 0, 0, 0, 1, 127, 128, u32::MAX]);
        (
            keyspace,
            0_u8..12,
            key.prop_flat_map(bytes),
            value.prop_flat_map(bytes),
            prop::sample::select(vec![1_u8, 1, 1, 2, 8]),
        )
    }

    fn operation(part: &Part) -> Operation<'_> {
        let (key, value) = (part.2.as_slice(), part.3.as_slice());
        match part.1 {
            0 => Operation::Delete { key },
            1 => Operation::Merge { key, operand: value },
            2 if key < value && value.len() <= KEY_BYTES_MAX => {
                Operation::DeleteRange { start: key, end: value }
            }
            _ => Operation::Put { key, value },
        }
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(1024))]

        /// Goal: a batch returns the operations that were added to it, through each of its
        /// iterators. Method: random operations of all types, both single ones and runs that differ
        /// only in their keys or have keys of one length, compared with a list; `operations_where`
        /// selects the keys with an even sum, all keys, and none.
        #[test]
        fn operations_come_back(parts in any_parts()) {
            let mut all = Vec::new();
            for part in &parts {
                for number in 0..part.4 {
                    let mut part = part.clone();
                    if let Some(last) = part.2.last_mut() {
                        *last = last.wrapping_add(number);
                    }
                    all.push(part);
                }
            }
            let mut batch = WriteBatch::new();
            for part in &all {
                batch.add(KeyspaceId(part.0), operation(part)).unwrap();
            }
            let expected: Vec<_> = all.iter().map(|part| (KeyspaceId(part.0), operation(part))).collect();
            prop_assert_eq!(batch.len(), expected.len());
            prop_assert!(batch.operations().eq(expected.iter().copied()));
            let mut walked = Vec::new();
            batch.try_for_each(|id, operation| {
                walked.push((id, operation));
                Ok(())
            }).unwrap();
            prop_assert_eq!(&walked, &expected);
            let has_even_sum = |key: &[u8]| key.iter().fold(0_u8, |sum, byte| sum ^ byte) % 2 == 0;
            let found = batch.operations_where(has_even_sum);
            prop_assert!(found.eq(expected.iter().copied().filter(|(_, it)| has_even_sum(it.first_key()))));
            prop_assert!(batch.operations_where(|_| true).eq(expected.iter().copied()));
            prop_assert_eq!(batch.operations_where(|_| false).count(), 0);
        }
    }

    /// Goal: `try_for_each` stops at the first error. Method: an error at each of three operations
    /// in turn, of which the first two have the same shape.
    #[test]
    fn walks_end_early() {
        let mut batch = WriteBatch::new();
        batch.put("a", "1").unwrap();
        batch.put("b", "2").unwrap();
        batch.delete("c").unwrap();
        for last in 1..=3 {
            let mut seen = 0;
            let ended = batch.try_for_each(|_, _| {
                seen += 1;
                if seen == last { Err(Error::invalid("enough")) } else { Ok(()) }
            });
            assert!(ended.is_err() && seen == last, "{seen} of {last}");
        }
    }

    /// Goal: a batch never grows beyond the longest record that the log accepts. Method: a batch a
    /// few bytes below that length, made of untouched zero pages, which take no memory.
    #[test]
    fn as_long_as_a_record() {
        let record = vec![0; cairn_wal::MAX_RECORD_BYTES - 10];
        let mut batch = WriteBatch { record, count: 0, is_plain: true };
        assert_eq!(batch.put("key", [7; 20]).unwrap_err().kind(), ErrorKind::Invalid);
        assert!(batch.is_empty() && batch.record().len() <= cairn_wal::MAX_RECORD_BYTES);
    }
}
