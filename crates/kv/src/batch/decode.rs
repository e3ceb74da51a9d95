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
        let (value, used) = varint::decode(self.rest).map_err(|_| Malformed("a length that is no varint"))?;
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

/// Takes an operation off the front of `rest` where it is what most are: a short key that is set in the default keyspace. Small, so that it is
/// inlined.
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

/// Takes any operation off the front of `rest`. By value: a pointer to the iterator would keep it in memory where it is inlined.
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
    /// As `try_for_each` of all of them. `f` stands in it twice: the common operation never meets the others, and stays in registers. Where they
    /// meet its parts are written to memory and read back in other widths, which stalls for 5 to 8 ns.
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

    /// The next one whose key `is_wanted`, or that is damaged. `shape` is what the caller keeps from one call to the next.
    #[inline(always)]
    pub(super) fn next_where(
        &mut self,
        shape: &mut Shape,
        is_wanted: impl Fn(&[u8]) -> bool + Copy,
    ) -> Option<Parsed<'a>> {
        loop {
            let (is_found, rest) = shape.find(self.rest, is_wanted);
            self.rest = rest;
            if !is_found && let Some(next) = Shape::of(rest) {
                *shape = next;
                continue;
            }
            let (item, rest) = split(rest);
            self.rest = rest;
            match item {
                // One that has no shape.
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

/// What the first bytes of an operation say, for those that follow and begin with the same: where the next one is does not hang on what is read
/// of this one then, and the processor looks at several at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Tag, keyspace and lengths, and which bits of the first eight bytes they are.
    first: u64,
    mask: u64,
    key_at: usize,
    key_end: usize,
    bytes: usize,
}

impl Shape {
    /// That of no operation.
    pub const NONE: Shape = Shape { first: u64::MAX, mask: 0, key_at: 0, key_end: 0, bytes: 0 };

    /// That of the operation that `rest` begins with, which fits it then. None where that begins with more than eight bytes, is the last and shorter than that, or is damaged.
    #[inline(always)]
    fn of(rest: &[u8]) -> Option<Shape> {
        let first = u64::from_le_bytes(*rest.first_chunk()?);
        let (Some(Ok((_, operation))), after) = split(rest) else { return None };
        let (_, key, value) = operation.parts();
        let bytes = rest.len() - after.len();
        let key_end = bytes - value.map_or(0, <[u8]>::len);
        let key_at = key_end - key.len();
        let mask = u64::MAX.checked_shr(64_u32.checked_sub(8 * key_at as u32)?)?;
        Some(Shape { first: first & mask, mask, key_at, key_end, bytes })
    }

    /// True where `rest` begins with an operation of this shape. (Not for one of less than eight bytes that is the last.)
    #[inline(always)]
    fn fits(&self, rest: &[u8]) -> bool {
        rest.len() >= self.bytes
            && rest.first_chunk().is_some_and(|first| u64::from_le_bytes(*first) & self.mask == self.first)
    }

    /// Passes over operations of this shape at the front of `rest`, up to the first whose key `is_wanted`; whether there is one, and what begins with
    /// it. A function of its own, so that the loop has all registers.
    #[inline(never)]
    fn find(self, mut rest: &[u8], is_wanted: impl Fn(&[u8]) -> bool + Copy) -> (bool, &[u8]) {
        while self.fits(rest)
            && let Some((operation, after)) = rest.split_at_checked(self.bytes)
            && let Some(key) = operation.get(self.key_at..self.key_end)
        {
            if is_wanted(key) {
                return (true, rest);
            }
            rest = after;
        }
        (false, rest)
    }
}
