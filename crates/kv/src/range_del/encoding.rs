//! Encoding of range tombstones for tables. The block that contains them has the checksum.
//!
//! ```text
//! format 1u8 | cuts varint | cut … cut
//! cut = key_len varint | key | count varint | newest seqno varint | seqno before - seqno, varint …
//! ```
//!
//! The list of a cut applies from its key to the next cut's key. Keys are ascending, lists are
//! descending, adjacent lists differ, the first list is not empty, and the last one is. So a set
//! has exactly one encoding, and all bytes that decode are encoded to the same bytes again. Keys
//! are stored in full, so that few bytes never decode to many; the block compresses them.

use cairn_codec::varint;

use super::{Cut, RangeTombstones};
use crate::kind::{SEQNO_MAX, Seqno};

const FORMAT: u8 = 1;

/// The reason why bytes cannot be a valid encoding of range tombstones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// The offset from the start of the encoding.
    pub offset: usize,
    /// The expected content at that offset.
    pub what: &'static str,
}

impl RangeTombstones {
    /// Appends the encoding to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(FORMAT);
        varint::push(self.cuts.len() as u64, out);
        for index in 0..self.cuts.len() {
            let (key, seqnos) = (self.key(index), self.list(index));
            varint::push(key.len() as u64, out);
            out.extend_from_slice(key);
            varint::push(seqnos.len() as u64, out);
            let mut last = None;
            for &seqno in seqnos {
                debug_assert!(last.is_none_or(|last| last > seqno), "lists descend");
                varint::push(last.map_or(seqno, |last: Seqno| last.wrapping_sub(seqno)), out);
                last = Some(seqno);
            }
        }
        debug_assert_eq!(Self::decode(&out[start..]).as_ref(), Ok(self), "a set that would not be read back");
    }

    /// Decodes the output of [`RangeTombstones::encode`], which must be all of `bytes`.
    ///
    /// Errors: [`Malformed`] for anything else. Memory: at most 24 bytes per byte of input.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input { bytes, at: 0 };
        if input.take(1, "a format byte")? != [FORMAT] {
            return Err(Malformed { offset: 0, what: "format 1 of range tombstones" });
        }
        // A cut takes at least two bytes.
        let count = input.count(2, "a number of cuts that fits")?;
        let mut set = RangeTombstones::default();
        set.cuts.reserve_exact(count);
        for index in 0..count {
            input.cut(&mut set)?;
            let seqnos = set.list(index);
            let same = if index == 0 { seqnos.is_empty() } else { seqnos == set.list(index - 1) };
            if same {
                return Err(Malformed { offset: input.at, what: "a list that differs from the one before" });
            }
            if index + 1 == count && !seqnos.is_empty() {
                return Err(Malformed { offset: input.at, what: "no sequence numbers after the last key" });
            }
            if index > 0 && set.key(index - 1) >= set.key(index) {
                return Err(Malformed { offset: input.at, what: "ascending keys" });
            }
        }
        if input.at != bytes.len() {
            return Err(Malformed { offset: input.at, what: "the end" });
        }
        Ok(set)
    }
}

/// The bytes to decode, and the current position.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn rest(&self) -> &'a [u8] {
        debug_assert!(self.at <= self.bytes.len(), "byte {} of {}", self.at, self.bytes.len());
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let taken = self.rest().get(..len).ok_or(Malformed { offset: self.at, what })?;
        self.at += len;
        Ok(taken)
    }

    fn varint(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let (value, used) = varint::decode(self.rest()).map_err(|_| Malformed { offset: self.at, what })?;
        self.at += used;
        Ok(value)
    }

    /// Reads a count of items of at least `bytes_each` bytes. The rest of the input must be large
    /// enough for them.
    fn count(&mut self, bytes_each: usize, what: &'static str) -> Result<usize, Malformed> {
        let offset = self.at;
        let count = self.varint(what)?;
        let fits = count <= (self.rest().len() / bytes_each) as u64;
        if fits { Ok(count as usize) } else { Err(Malformed { offset, what }) }
    }

    /// Decodes a cut and appends it to `set`.
    fn cut(&mut self, set: &mut RangeTombstones) -> Result<(), Malformed> {
        let len = self.count(1, "a key that fits")?;
        set.keys.extend_from_slice(self.take(len, "a key")?);
        let count = self.count(1, "a number of sequence numbers that fits")?;
        let mut last: Option<Seqno> = None;
        for _ in 0..count {
            let offset = self.at;
            let number = self.varint("a sequence number")?;
            let seqno = match last {
                None => Some(number).filter(|&seqno| seqno <= SEQNO_MAX),
                Some(last) => last.checked_sub(number).filter(|_| number > 0),
            };
            let seqno = seqno.ok_or(Malformed { offset, what: "descending sequence numbers" })?;
            set.seqnos.push(seqno);
            last = Some(seqno);
        }
        set.cuts.push(Cut { key_end: set.keys.len(), seqnos_end: set.seqnos.len() });
        Ok(())
    }
}
