//! Decoding batches, both those of programs and those in the log.

use std::path::Path;

use cairn_codec::varint;

use super::{
    DEFAULT, HEADER_BYTES, KEYSPACE_FOLLOWS, Operation, TAG_DELETE, TAG_DELETE_RANGE, TAG_MERGE, TAG_PUT,
};
use crate::kind::Seqno;
use crate::version::KeyspaceId;
use crate::{Error, Result};

/// A decoded log record.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    /// Sequence number of the first operation.
    pub seqno: Seqno,
    /// Number of operations according to the header.
    pub count: u32,
    /// The operations.
    pub operations: Operations<'a>,
}

impl<'a> Record<'a> {
    /// Decodes a record's header.
    ///
    /// Errors: [`Error::Corruption`] of `file` at `offset`.
    pub(crate) fn parse(record: &'a [u8], file: &Path, offset: u64) -> Result<Record<'a>> {
        let Some((header, rest)) = record.split_first_chunk::<HEADER_BYTES>() else {
            let what = format!("a batch of {} bytes, expected at least {HEADER_BYTES}", record.len());
            return Err(Error::corruption(file, offset, what));
        };
        let [s0, s1, s2, s3, s4, s5, s6, s7, c0, c1, c2, c3] = *header;
        let seqno = Seqno::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        Ok(Record { seqno, count: u32::from_le_bytes([c0, c1, c2, c3]), operations: Operations::new(rest) })
    }
}

/// Iterates over encoded operations. Stops after the first damaged one.
#[derive(Debug, Clone)]
pub(crate) struct Operations<'a> {
    rest: &'a [u8],
}

/// The reason why an encoded operation cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub &'static str);

impl<'a> Operations<'a> {
    #[inline]
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Operations { rest }
    }

    #[inline]
    fn length(&mut self) -> std::result::Result<usize, Malformed> {
        if let [first @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(usize::from(*first));
        }
        let (value, used) =
            varint::decode(self.rest).map_err(|_| Malformed("a length that is not a varint"))?;
        self.rest = &self.rest[used..];
        usize::try_from(value).map_err(|_| Malformed("a length beyond the address space"))
    }

    #[inline]
    fn bytes(&mut self, len: usize) -> std::result::Result<&'a [u8], Malformed> {
        let (bytes, rest) =
            self.rest.split_at_checked(len).ok_or(Malformed("an operation that is cut short"))?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline]
    fn parse(&mut self, tag: u8) -> std::result::Result<(KeyspaceId, Operation<'a>), Malformed> {
        let mut keyspace = DEFAULT;
        if tag & KEYSPACE_FOLLOWS != 0 {
            let id = self.length()?;
            let id = u32::try_from(id).map_err(|_| Malformed("a keyspace id of more than 32 bits"))?;
            keyspace = KeyspaceId(id);
        }
        let key_len = self.length()?;
        let operation = match tag & !KEYSPACE_FOLLOWS {
            TAG_DELETE => Operation::Delete { key: self.bytes(key_len)? },
            tag @ (TAG_PUT | TAG_MERGE | TAG_DELETE_RANGE) => {
                let value_len = self.length()?;
                let (key, value) = (self.bytes(key_len)?, self.bytes(value_len)?);
                match tag {
                    TAG_PUT => Operation::Put { key, value },
                    TAG_MERGE => Operation::Merge { key, operand: value },
                    _ => Operation::DeleteRange { start: key, end: value },
                }
            }
            _ => return Err(Malformed("an operation of unknown type")),
        };
        Ok((keyspace, operation))
    }
}

/// The items of [`Operations`].
type Parsed<'a> = std::result::Result<(KeyspaceId, Operation<'a>), Malformed>;

/// Splits an operation off the front of `rest` if it has the most common form: a put of a short key
/// in the default keyspace. Small, so that it is inlined.
#[inline(always)]
fn split_plain_put(rest: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let [TAG_PUT, key_len @ 0..0x80, rest @ ..] = rest else { return None };
    let (value_len, rest) = match rest {
        [short @ 0..0x80, rest @ ..] => (usize::from(*short), rest),
        [low, high @ 1..0x80, rest @ ..] => (usize::from(*low & 0x7f) | usize::from(*high) << 7, rest),
        _ => return None,
    };
    let (key, rest) = rest.split_at_checked(usize::from(*key_len))?;
    let (value, rest) = rest.split_at_checked(value_len)?;
    Some((key, value, rest))
}

/// Splits any operation off the front of `rest`. Takes `rest` by value: a pointer to the iterator
/// would keep the iterator in memory where this is inlined.
#[inline(never)]
fn split_any(rest: &[u8]) -> (Option<Parsed<'_>>, &[u8]) {
    let Some((&tag, after_tag)) = rest.split_first() else { return (None, rest) };
    let mut operations = Operations { rest: after_tag };
    match operations.parse(tag) {
        Ok(parsed) => (Some(Ok(parsed)), operations.rest),
        Err(malformed) => (Some(Err(malformed)), &[]),
    }
}

/// Splits any operation off the front of `rest`, a common one without a call.
#[inline(always)]
fn split(rest: &[u8]) -> (Option<Parsed<'_>>, &[u8]) {
    match split_plain_put(rest) {
        Some((key, value, after)) => (Some(Ok((DEFAULT, Operation::Put { key, value }))), after),
        None => split_any(rest),
    }
}

impl<'a> Operations<'a> {
    /// Applies `f` to all operations, as `try_for_each` does. The code of `f` appears twice in it,
    /// so that the common operation never shares a code path with the others and stays in
    /// registers. On a shared path, its parts would be written to memory and read back in other
    /// widths, which stalls for 5 to 8 ns.
    #[inline(always)]
    pub(crate) fn walk<E>(
        mut self,
        mut f: impl FnMut(Parsed<'a>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        loop {
            while let Some((key, value, rest)) = split_plain_put(self.rest) {
                self.rest = rest;
                f(Ok((DEFAULT, Operation::Put { key, value })))?;
            }
            let (item, rest) = split_any(self.rest);
            self.rest = rest;
            match item {
                Some(item) => f(item)?,
                None => return Ok(()),
            }
        }
    }

    /// Returns the next operation whose key `is_wanted`, or that is damaged. The caller keeps
    /// `likeness` from one call to the next and begins with [`Likeness::Headers`].
    #[inline(always)]
    pub(super) fn next_where(
        &mut self,
        likeness: &mut Likeness,
        is_wanted: impl Fn(&[u8]) -> bool + Copy,
    ) -> Option<Parsed<'a>> {
        loop {
            let (is_found, rest) = pass_over(self.rest, likeness, is_wanted);
            let item;
            (item, self.rest) = split(rest);
            match item {
                // An unwanted operation without a short header.
                Some(Ok((_, operation))) if !is_found && !is_wanted(operation.first_key()) => {}
                item => return item,
            }
        }
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Parsed<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let item;
        (item, self.rest) = split_any(self.rest);
        item
    }
}

/// The part of an operation before its key.
struct Header {
    /// Offset of the key, which is the length of the header.
    key_at: usize,
    key_len: usize,
    value_len: usize,
}

impl Header {
    /// Decodes the header of the operation at the front of `rest`, as [`Header::of`] does.
    #[inline(always)]
    fn at(rest: &[u8]) -> Option<Header> {
        Header::of(u64::from_le_bytes(*rest.first_chunk()?))
    }

    /// Decodes a header from the first eight bytes of an operation. Returns `None` for rare
    /// operation types and for lengths that take more bytes than usual. Does not detect damage.
    #[inline(always)]
    fn of(mut first: u64) -> Option<Header> {
        let mut key_at = 2;
        if first & u64::from(KEYSPACE_FOLLOWS) != 0 {
            if first & 0x8000 != 0 {
                return None;
            }
            // Removes the keyspace byte and its flag, so that the rest is decoded as without a
            // keyspace.
            first = first >> 8 & !0xff | first & 0x7f;
            key_at = 3;
        }
        let value_len;
        // Compares the tag and the continuation bits of the lengths.
        if is_set(first & 0x80_80ff) {
            value_len = first >> 16 & 0x7f;
            key_at += 1;
        } else if first & 0x80ff == u64::from(TAG_DELETE) {
            value_len = 0;
        } else if is_set(first & 0x8080_80ff ^ 0x80_0000) {
            value_len = first >> 16 & 0x7f | first >> 17 & 0x3f80;
            key_at += 2;
        } else {
            return None;
        }
        Some(Header { key_at, key_len: (first >> 8 & 0x7f) as usize, value_len: value_len as usize })
    }

    /// Returns the length of the whole operation.
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.key_at + self.key_len + self.value_len
    }
}

/// Returns true for the tags of operations with a key and a value.
#[inline(always)]
fn is_set(tag: u64) -> bool {
    tag == u64::from(TAG_PUT) || tag == u64::from(TAG_MERGE)
}

/// The similarity of consecutive operations seen so far. The more similar they are, the shorter is
/// the loop over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    /// The headers are equal.
    Headers,
    /// The key lengths are equal.
    Keys,
    Nothing,
}

/// If fewer operations than this are alike in a row, the following ones are assumed to differ as
/// well.
const SEVERAL: usize = 4;
const _: () = assert!(HEADER_BYTES == 8 + 4, "sequence number and count");

/// Skips operations at the front of `rest` up to the first whose key `is_wanted`, or that has no
/// short [`Header`]. Returns true for the former, and the bytes from that operation on.
#[inline(always)]
fn pass_over<'a>(
    mut rest: &'a [u8],
    likeness: &mut Likeness,
    is_wanted: impl Fn(&[u8]) -> bool + Copy,
) -> (bool, &'a [u8]) {
    while *likeness != Likeness::Nothing
        && let Some(header) = Header::at(rest)
    {
        // One loop per method of hashing keys, because the variables of all methods together exceed
        // the number of registers.
        let (is_found, after) = match header.key_len {
            1..=7 => pass_over_keys::<1, 7>(rest, likeness, is_wanted),
            8..=16 => pass_over_keys::<8, 16>(rest, likeness, is_wanted),
            17..=48 => pass_over_keys::<17, 48>(rest, likeness, is_wanted),
            _ => break,
        };
        debug_assert!(after.len() <= rest.len(), "operations are skipped from the front");
        let passed = rest.len() - after.len();
        if is_found {
            return (is_found, after);
        }
        if passed < SEVERAL * header.bytes() {
            *likeness = Likeness::Nothing;
        }
        rest = after;
    }
    let (is_found, after) = pass_over_short_keys(rest, is_wanted);
    if is_found || after.len() < rest.len() {
        return (is_found, after);
    }
    pass_over_any(rest, is_wanted)
}

/// Skips operations as [`pass_over`] does, as long as their keys have the same length as the first
/// one, which is `MIN` to `MAX` bytes.
#[inline(always)]
fn pass_over_keys<'a, const MIN: usize, const MAX: usize>(
    mut rest: &'a [u8],
    likeness: &mut Likeness,
    is_wanted: impl Fn(&[u8]) -> bool + Copy,
) -> (bool, &'a [u8]) {
    if *likeness == Likeness::Headers {
        let is_found;
        (is_found, rest) = pass_over_alike::<MIN, MAX>(rest, likeness, is_wanted);
        if is_found || *likeness == Likeness::Headers {
            return (is_found, rest);
        }
    }
    pass_over_same_keys::<MIN, MAX>(rest, is_wanted)
}

/// Skips operations as [`pass_over`] does, in runs of operations that begin with the same bytes.
/// Stops at the end of a short run or at a key that does not have `MIN` to `MAX` bytes.
///
/// The address of the next operation does not depend on the contents of the current one, so the
/// processor works on several at once. An operation takes 18 instructions, including the hash of a
/// key of 16 bytes, compared with 26 in [`pass_over_same_keys`]. This is a separate function so
/// that the loop has all registers.
#[inline(never)]
fn pass_over_alike<'a, const MIN: usize, const MAX: usize>(
    mut rest: &'a [u8],
    likeness: &mut Likeness,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> (bool, &'a [u8]) {
    while let Some(first) = rest.first_chunk().copied().map(u64::from_le_bytes)
        && let Some(header) = Header::of(first)
        && (MIN..=MAX).contains(&header.key_len)
    {
        debug_assert!(header.key_at < 8, "a short header has {} bytes", header.key_at);
        let (key_at, key_end, bytes) = (header.key_at, header.key_at + header.key_len, header.bytes());
        let mask = (1 << (8 * key_at)) - 1;
        let before = rest.len();
        while let Some((operation, after)) = rest.split_at_checked(bytes)
            && let Some(next) = operation.first_chunk().copied().map(u64::from_le_bytes)
            && (next ^ first) & mask == 0
            && let Some(key) = operation.get(key_at..key_end)
        {
            if is_wanted(key) {
                return (true, rest);
            }
            rest = after;
        }
        if before - rest.len() < SEVERAL * bytes {
            *likeness = Likeness::Keys;
            break;
        }
    }
    (false, rest)
}

/// Skips operations as [`pass_over_keys`] does, and decodes the header of each. This is a separate
/// function so that the loop has all registers, and it makes no calls so that it keeps them.
#[inline(never)]
fn pass_over_same_keys<const MIN: usize, const MAX: usize>(
    mut rest: &[u8],
    is_wanted: impl Fn(&[u8]) -> bool,
) -> (bool, &[u8]) {
    let Some(Header { key_len, .. }) = Header::at(rest) else { return (false, rest) };
    if !(MIN..=MAX).contains(&key_len) {
        return (false, rest);
    }
    loop {
        // Three branches with the same action: where the form of the header is known, nothing of it
        // has to be computed or kept.
        if let Some((key, after)) = split_put(rest, key_len) {
            if is_wanted(key) {
                return (true, rest);
            }
            rest = after;
        } else if let Some((key, after)) = split_delete(rest, key_len) {
            if is_wanted(key) {
                return (true, rest);
            }
            rest = after;
        } else if let Some((key, after)) = split_other(rest)
            && key.len() == key_len
        {
            if is_wanted(key) {
                return (true, rest);
            }
            rest = after;
        } else {
            return (false, rest);
        }
    }
}

/// Skips operations as [`pass_over`] does, with keys of 1 to 48 bytes. Like the others, it makes no
/// calls.
#[inline(never)]
fn pass_over_short_keys(mut rest: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> (bool, &[u8]) {
    loop {
        // Again a separate branch for the most common form.
        if let Some((key, after)) = split_short_put(rest) {
            match is_short_and_wanted(key, &is_wanted) {
                Some(false) => rest = after,
                found => return (found.is_some(), rest),
            }
        } else if let Some((key, after)) = split_other(rest) {
            match is_short_and_wanted(key, &is_wanted) {
                Some(false) => rest = after,
                found => return (found.is_some(), rest),
            }
        } else {
            return (false, rest);
        }
    }
}

/// Returns whether a key of 1 to 48 bytes `is_wanted`, or `None` for other lengths. The lengths
/// have separate branches, so that each inlined copy contains only the code for its lengths.
#[inline(always)]
fn is_short_and_wanted(key: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> Option<bool> {
    match key.len() {
        8..=16 => Some(is_wanted(key)),
        17..=48 => Some(is_wanted(key)),
        1..=7 => Some(is_wanted(key)),
        _ => None,
    }
}

/// Skips operations as [`pass_over`] does, of all lengths that a short [`Header`] covers.
#[inline(never)]
fn pass_over_any(mut rest: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> (bool, &[u8]) {
    while let Some((key, after)) = split_other(rest) {
        if is_wanted(key) {
            return (true, rest);
        }
        rest = after;
    }
    (false, rest)
}

/// Returns the key of the operation at the front of `rest` and the bytes after the operation, if it
/// is a put of a short value in the default keyspace with a key of `key_len` bytes, below 128.
#[inline(always)]
fn split_put(rest: &[u8], key_len: usize) -> Option<(&[u8], &[u8])> {
    debug_assert!(key_len < 0x80, "a key of {key_len} bytes has no short header");
    let [tag, len, value_len @ 0..0x80] = *rest.first_chunk()? else { return None };
    // Compares both bytes at once.
    if u16::from_le_bytes([tag, len]) != u16::from_le_bytes([TAG_PUT, key_len as u8]) {
        return None;
    }
    let key_end = 3 + key_len;
    let (operation, after) = rest.split_at_checked(key_end + usize::from(value_len))?;
    Some((operation.get(3..key_end)?, after))
}

/// Splits as [`split_put`] does, for keys of all lengths below 128.
#[inline(always)]
fn split_short_put(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let [TAG_PUT, key_len @ 0..0x80, value_len @ 0..0x80] = *rest.first_chunk()? else { return None };
    let key_end = 3 + usize::from(key_len);
    let (operation, after) = rest.split_at_checked(key_end + usize::from(value_len))?;
    Some((operation.get(3..key_end)?, after))
}

/// Splits as [`split_put`] does, for a delete in the default keyspace.
#[inline(always)]
fn split_delete(rest: &[u8], key_len: usize) -> Option<(&[u8], &[u8])> {
    debug_assert!(key_len < 0x80, "a key of {key_len} bytes has no short header");
    if u16::from_le_bytes(*rest.first_chunk()?) != u16::from_le_bytes([TAG_DELETE, key_len as u8]) {
        return None;
    }
    let (operation, after) = rest.split_at_checked(2 + key_len)?;
    Some((operation.get(2..)?, after))
}

/// Splits as [`split_put`] does, for every operation with a short [`Header`].
#[inline(always)]
fn split_other(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = Header::at(rest)?;
    let (operation, after) = rest.split_at_checked(header.bytes())?;
    Some((operation.get(header.key_at..header.key_at + header.key_len)?, after))
}
