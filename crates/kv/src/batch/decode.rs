//! Reading batches, of programs and of the log.

use std::path::Path;

use cairn_codec::varint;

use super::{
    DEFAULT, HEADER_BYTES, KEYSPACE_FOLLOWS, Operation, TAG_DELETE, TAG_DELETE_RANGE, TAG_MERGE, TAG_PUT,
};
use crate::kind::Seqno;
use crate::version::KeyspaceId;
use crate::{Error, Result};

/// A record of the log, taken apart.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    /// Number of the first operation.
    pub seqno: Seqno,
    /// How many operations follow, as the header says.
    pub count: u32,
    /// The operations.
    pub operations: Operations<'a>,
}

impl<'a> Record<'a> {
    /// Reads a record's header. Errors: [`Error::Corruption`] of `file` at `offset`.
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

/// Iterates over encoded operations. Ends after the first damaged one.
#[derive(Debug, Clone)]
pub(crate) struct Operations<'a> {
    rest: &'a [u8],
}

/// Why an encoded operation cannot be read.
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

/// What [`Operations`] hands out.
type Parsed<'a> = std::result::Result<(KeyspaceId, Operation<'a>), Malformed>;

/// Takes an operation off the front of `rest` where it is what most are: a short key that is set in
/// the default keyspace. Small, so that it is inlined.
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

/// Takes any operation off the front of `rest`. By value: a pointer to the iterator would keep it
/// in memory where it is inlined.
#[inline(never)]
fn split_any(rest: &[u8]) -> (Option<Parsed<'_>>, &[u8]) {
    let Some((&tag, after_tag)) = rest.split_first() else { return (None, rest) };
    let mut operations = Operations { rest: after_tag };
    match operations.parse(tag) {
        Ok(parsed) => (Some(Ok(parsed)), operations.rest),
        Err(malformed) => (Some(Err(malformed)), &[]),
    }
}

/// Takes any operation off the front of `rest`, a common one without a call.
#[inline(always)]
fn split(rest: &[u8]) -> (Option<Parsed<'_>>, &[u8]) {
    match split_plain_put(rest) {
        Some((key, value, after)) => (Some(Ok((DEFAULT, Operation::Put { key, value }))), after),
        None => split_any(rest),
    }
}

impl<'a> Operations<'a> {
    /// As `try_for_each` of all of them. `f` stands in it twice: the common operation never meets
    /// the others, and stays in registers. Where they meet its parts are written to memory and read
    /// back in other widths, which stalls for 5 to 8 ns.
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

    /// The next one whose key `is_wanted`, or that is damaged. `likeness` is what the caller keeps
    /// from one call to the next, at first [`Likeness::Headers`].
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
                // One that has no short header.
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

/// What is before the key of an operation.
struct Header {
    /// Its bytes.
    key_at: usize,
    key_len: usize,
    value_len: usize,
}

impl Header {
    /// The header of the operation at the front of `rest`, as [`Header::of`].
    #[inline(always)]
    fn at(rest: &[u8]) -> Option<Header> {
        Header::of(u64::from_le_bytes(*rest.first_chunk()?))
    }

    /// Reads one that is in the first eight bytes of an operation. None where a length takes more
    /// bytes than most do, and of rare types; what is damaged may have one.
    #[inline(always)]
    fn of(mut first: u64) -> Option<Header> {
        let mut key_at = 2;
        if first & u64::from(KEYSPACE_FOLLOWS) != 0 {
            if first & 0x8000 != 0 {
                return None;
            }
            // As without a keyspace.
            first = first >> 8 & !0xff | first & 0x7f;
            key_at = 3;
        }
        let value_len;
        // The tag, and the bits of lengths that say that they have more bytes.
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

    /// Of the whole operation.
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.key_at + self.key_len + self.value_len
    }
}

/// True for the tags of what has a key and a value.
#[inline(always)]
fn is_set(tag: u64) -> bool {
    tag == u64::from(TAG_PUT) || tag == u64::from(TAG_MERGE)
}

/// What operations that follow one another have in common, as far as has been seen: the more, the
/// shorter the loop over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    /// All that is before their keys.
    Headers,
    /// How long their keys are.
    Keys,
    Nothing,
}

/// Fewer operations than so many in a row say that those after them are not alike either.
const SEVERAL: usize = 4;

/// Passes over operations at the front of `rest` up to the first whose key `is_wanted`, or that has
/// no short [`Header`]; whether the former, and what begins with it.
#[inline(always)]
fn pass_over<'a>(
    mut rest: &'a [u8],
    likeness: &mut Likeness,
    is_wanted: impl Fn(&[u8]) -> bool + Copy,
) -> (bool, &'a [u8]) {
    while *likeness != Likeness::Nothing
        && let Some(header) = Header::at(rest)
    {
        // One loop for each way in which keys are hashed: what all of them need together is more
        // than there are registers.
        let (is_found, after) = match header.key_len {
            1..=7 => pass_over_keys::<1, 7>(rest, likeness, is_wanted),
            8..=16 => pass_over_keys::<8, 16>(rest, likeness, is_wanted),
            17..=48 => pass_over_keys::<17, 48>(rest, likeness, is_wanted),
            _ => break,
        };
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

/// As [`pass_over`], of operations whose keys are as long as the first one, which has `MIN` to
/// `MAX` bytes.
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

/// As [`pass_over`], of runs of operations that begin with the same bytes, up to the end of a short
/// run or to a key that has not `MIN` to `MAX` bytes. Where the next operation is does not hang on
/// what is read of this one, and the processor looks at several at once: 18 instructions each with
/// the hash of a key of 16 bytes, and 26 by [`pass_over_same_keys`]. A function of its own, so that
/// the loop has all registers.
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

/// As [`pass_over_keys`], each operation by its own header. A function of its own, so that the loop
/// has all registers, and without a call, so that it keeps them.
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
        // Three times the same: where it is known what a header is like, nothing of it need be
        // computed or kept.
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

/// As [`pass_over`], of operations with keys of 1 to 48 bytes. Still without a call.
#[inline(never)]
fn pass_over_short_keys(mut rest: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> (bool, &[u8]) {
    loop {
        // Again what is most common by itself.
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

/// Whether a key of 1 to 48 bytes `is_wanted`; `None` of others. Keys of different lengths are
/// asked for apart, so that only what is needed for these stands there.
#[inline(always)]
fn is_short_and_wanted(key: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> Option<bool> {
    match key.len() {
        8..=16 => Some(is_wanted(key)),
        17..=48 => Some(is_wanted(key)),
        1..=7 => Some(is_wanted(key)),
        _ => None,
    }
}

/// As [`pass_over`], of all that have a short [`Header`].
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

/// The key of an operation at the front of `rest`, and what is after the operation: where a key of
/// `key_len` bytes, below 128, is set to a short value in the default keyspace.
#[inline(always)]
fn split_put(rest: &[u8], key_len: usize) -> Option<(&[u8], &[u8])> {
    let [tag, len, value_len @ 0..0x80] = *rest.first_chunk()? else { return None };
    // One comparison of both.
    if u16::from_le_bytes([tag, len]) != u16::from_le_bytes([TAG_PUT, key_len as u8]) {
        return None;
    }
    let key_end = 3 + key_len;
    let (operation, after) = rest.split_at_checked(key_end + usize::from(value_len))?;
    Some((operation.get(3..key_end)?, after))
}

/// As [`split_put`], of keys of all lengths below 128.
#[inline(always)]
fn split_short_put(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let [TAG_PUT, key_len @ 0..0x80, value_len @ 0..0x80] = *rest.first_chunk()? else { return None };
    let key_end = 3 + usize::from(key_len);
    let (operation, after) = rest.split_at_checked(key_end + usize::from(value_len))?;
    Some((operation.get(3..key_end)?, after))
}

/// As [`split_put`], where it is removed from the default keyspace.
#[inline(always)]
fn split_delete(rest: &[u8], key_len: usize) -> Option<(&[u8], &[u8])> {
    if u16::from_le_bytes(*rest.first_chunk()?) != u16::from_le_bytes([TAG_DELETE, key_len as u8]) {
        return None;
    }
    let (operation, after) = rest.split_at_checked(2 + key_len)?;
    Some((operation.get(2..)?, after))
}

/// As [`split_put`], of whatever has a short [`Header`].
#[inline(always)]
fn split_other(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = Header::at(rest)?;
    let (operation, after) = rest.split_at_checked(header.bytes())?;
    Some((operation.get(header.key_at..header.key_at + header.key_len)?, after))
}
