//! Write batches: operations that happen together or not at all.
//!
//! A batch is kept in the form in which the log stores it, so that committing it is one copy:
//!
//! ```text
//!  0   seqno  u64   number of the first operation; the others follow      } written at commit
//!  8   count  u32   operations                                            }
//! 12   operations, each:
//!        tag        u8      low 4 bits: 0 delete, 1 put, 2 merge, 4 delete range; bit 7: a keyspace id follows
//!        keyspace   varint  only with bit 7; keyspace 0 without
//!        key length varint, value length varint (absent for deletes; of a delete range, the end key's)
//!        key, value
//! ```

use cairn_codec::varint;

use crate::kind::Seqno;
use crate::table::ENTRY_BYTES_MAX;
use crate::ttl::STAMP_BYTES;
use crate::version::KeyspaceId;
use crate::{Error, Result};

mod decode;

use decode::Likeness;
pub(crate) use decode::{Malformed, Operations, Record};

/// Bytes before the first operation.
pub(crate) const HEADER_BYTES: usize = 12;

/// The longest key that a store takes: 64 KiB - 1.
pub const KEY_BYTES_MAX: usize = (1 << 16) - 1;

/// The longest value that a store takes: 511 MiB, wherever values are kept and whatever the key.
pub const VALUE_BYTES_MAX: usize = 511 << 20;

/// The longest encoded batch: one record of the log, 1 GiB.
pub const BATCH_BYTES_MAX: usize = cairn_wal::MAX_RECORD_BYTES;

// What is acknowledged must go into a table at the next flush: with the longest key, and the time
// behind it.
const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX + STAMP_BYTES <= ENTRY_BYTES_MAX);
// And into a record of the log: with tag, keyspace and both lengths before it.
const _: () = assert!(
    HEADER_BYTES + 1 + 3 * varint::MAX_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX + STAMP_BYTES
        <= BATCH_BYTES_MAX
);

/// The keyspace that every store has.
pub(crate) const DEFAULT: KeyspaceId = KeyspaceId(0);

const KEYSPACE_FOLLOWS: u8 = 0x80;

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
    /// Removes all keys from `start` to before `end`.
    DeleteRange {
        /// The first key.
        start: &'a [u8],
        /// The first key that stays.
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

    /// The key, or where the range begins.
    #[inline]
    pub fn first_key(&self) -> &'a [u8] {
        self.parts().1
    }

    /// Checks lengths and bounds.
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
            return Err(Error::invalid("a range to delete whose start is after its end"));
        }
        Ok(())
    }

    /// True for a range to delete that has no key.
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Operation::DeleteRange { start, end } if start == end)
    }

    /// True when it takes away and puts nothing.
    #[inline]
    pub(crate) fn is_removal(&self) -> bool {
        matches!(self, Operation::Delete { .. } | Operation::DeleteRange { .. })
    }

    /// The one key that it writes to, if it is one.
    #[inline]
    pub(crate) fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Operation::DeleteRange { .. } => None,
            _ => Some(self.parts().1),
        }
    }

    /// Bytes of the encoded operation.
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

    /// Writes the operation to `out`, which is [`Operation::encoded_bytes`] long.
    #[inline]
    pub(crate) fn encode(&self, keyspace: KeyspaceId, out: &mut [u8]) {
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

/// Fills a slice from its front. What does not fit is dropped; encoded lengths are computed
/// beforehand.
struct Writer<'a> {
    out: &'a mut [u8],
}

impl Writer<'_> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
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
    /// Whether only the default keyspace is written, and without range deletes.
    pub(crate) is_plain: bool,
}

impl Default for WriteBatch {
    fn default() -> Self {
        WriteBatch::new()
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        WriteBatch::with_capacity(0)
    }

    /// An empty batch with room for operations of `bytes` in all.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut record = Vec::with_capacity(HEADER_BYTES + bytes);
        record.resize(HEADER_BYTES, 0);
        WriteBatch { record, count: 0, is_plain: true }
    }

    /// Sets `key` in the default keyspace. Errors: [`Error::Invalid`] for what is too long.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(DEFAULT, Operation::Put { key: key.as_ref(), value: value.as_ref() })
    }

    /// Removes `key` from the default keyspace. Errors: [`Error::Invalid`] for a key that is too
    /// long.
    #[inline]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(DEFAULT, Operation::Delete { key: key.as_ref() })
    }

    /// Adds any operation on any keyspace ([`crate::Keyspace::id`]), but for the deletion of a
    /// range without a key, which does nothing.
    ///
    /// Errors: [`Error::Invalid`] for keys and values that are too long, for a range that ends
    /// before it starts, and for a batch of more than [`BATCH_BYTES_MAX`].
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
        self.count += 1;
        self.is_plain &= keyspace == DEFAULT && !matches!(operation, Operation::DeleteRange { .. });
        Ok(())
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True without operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the encoded operations.
    pub fn encoded_bytes(&self) -> usize {
        self.record.len() - HEADER_BYTES
    }

    /// Forgets all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.record.truncate(HEADER_BYTES);
        self.count = 0;
        self.is_plain = true;
    }

    /// Calls `f` with each operation and its keyspace, in order, until it fails.
    #[inline(always)]
    pub(crate) fn try_for_each<'a>(
        &'a self,
        mut f: impl FnMut(KeyspaceId, Operation<'a>) -> Result<()>,
    ) -> Result<()> {
        Operations::new(&self.record[HEADER_BYTES..]).walk(|operation| match operation {
            Ok((id, operation)) => f(id, operation),
            // What this type wrote it can read.
            Err(_) => Ok(()),
        })
    }

    /// The operations with their keyspaces, in order, whose key `is_wanted`; of a range to delete
    /// it is asked where that begins. Where few are, this is faster than to filter
    /// [`WriteBatch::operations`].
    pub fn operations_where(
        &self,
        is_wanted: impl Fn(&[u8]) -> bool + Copy,
    ) -> impl Iterator<Item = (KeyspaceId, Operation<'_>)> {
        let mut operations = Operations::new(&self.record[HEADER_BYTES..]);
        let mut likeness = Likeness::Headers;
        // What this type wrote it can read.
        std::iter::from_fn(move || operations.next_where(&mut likeness, is_wanted)?.ok())
    }

    /// The operations with their keyspaces, in order.
    pub fn operations(&self) -> impl Iterator<Item = (KeyspaceId, Operation<'_>)> {
        // What this type wrote it can read.
        Operations::new(&self.record[HEADER_BYTES..]).filter_map(|operation| operation.ok())
    }

    /// True when nothing but removals is in it.
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

    /// Keyspace, type, key, value, and how many that look like it follow one another.
    type Part = (u32, u8, Vec<u8>, Vec<u8>, u8);

    /// Lengths of keys on both sides of where their encoding grows, and the way to look through
    /// them changes.
    const KEY_LENGTHS: [usize; 15] = [0, 1, 2, 3, 4, 7, 8, 16, 17, 32, 48, 49, 127, 128, 300];

    /// Parts of which most have keys of one length, or of two, as those of programs have.
    fn any_parts() -> impl Strategy<Value = Vec<Part>> {
        let len = || prop::sample::select(&KEY_LENGTHS[..]);
        (len(), len(), len()).prop_flat_map(|(one, two, three)| {
            prop::collection::vec(any_part(vec![one, one, one, one, one, one, two, two, three]), 0..16)
        })
    }

    /// Values are of lengths on both sides of where their encoding grows.
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

        /// Goal: what was added to a batch is what is read from it, by each of the ways to read it.
        /// Method: random operations of all types, in runs of such that differ in their keys only,
        /// or have keys of one length, and alone, against a list; and those whose key has an even
        /// sum, all, and none.
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

    /// Goal: a walk ends where it is told to. Method: an error at the second of three operations,
    /// of which the first two are alike.
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

    /// Goal: no batch is taken that the log would refuse. Method: one that is some bytes below the
    /// log's longest record, of zeros that nobody touches and that take no memory.
    #[test]
    fn as_long_as_a_record() {
        let record = vec![0; cairn_wal::MAX_RECORD_BYTES - 10];
        let mut batch = WriteBatch { record, count: 0, is_plain: true };
        assert_eq!(batch.put("key", [7; 20]).unwrap_err().kind(), ErrorKind::Invalid);
        assert!(batch.is_empty() && batch.record().len() <= cairn_wal::MAX_RECORD_BYTES);
    }
}
