//! Finds the record behind an address, and gives its value.

use std::borrow::Cow;

use super::cursor::{Cursor, match_put};
use super::flat::{Record, match_record};
use super::log::Log;
use crate::Result;

/// A value that was found.
#[derive(Debug)]
pub(super) enum Hit<'a> {
    /// In memory for as long as the reader lives.
    Borrowed(&'a [u8]),
    /// To be read from where the cursor is.
    Stream(Cursor<'a>, u64),
}

/// Where the value of a record is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Located<'a> {
    /// In memory for as long as the reader lives.
    Borrowed(&'a [u8]),
    /// This many bytes, from where the cursor is that found it.
    AtCursor(u64),
}

impl<'a> Hit<'a> {
    pub fn into_cow(self) -> Result<Cow<'a, [u8]>> {
        Ok(match self {
            Hit::Borrowed(value) => Cow::Borrowed(value),
            Hit::Stream(..) => {
                let mut value = Vec::new();
                self.append_to(&mut value)?;
                Cow::Owned(value)
            }
        })
    }

    pub fn append_to(self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Hit::Borrowed(value) => {
                out.extend_from_slice(value);
                Ok(())
            }
            Hit::Stream(mut cursor, value_bytes) => cursor.append_to(value_bytes, out),
        }
    }
}

/// Holds record number `entry` of the cached block at `position`, if it is cached, against `key`.
/// `None` when it takes more than this to know.
#[inline]
pub(super) fn match_cached<'a>(
    log: &'a Log,
    position: u64,
    entry: u64,
    key: &[u8],
) -> Option<Option<&'a [u8]>> {
    let block = log.blocks.get(position)?;
    let offset = *block.offsets.get(usize::try_from(entry).ok()?)?;
    match match_record(block.bytes.get(offset as usize..)?, key) {
        Record::Value(value) => Some(Some(value)),
        Record::OtherKey => Some(None),
        // Garbled, or the last record of the block, which runs on into the next.
        Record::Bad => None,
    }
}

/// Holds record number `entry` at `position`, wherever it is, against `key`. Leaves the cursor at
/// the value.
pub(super) fn match_anywhere<'a>(
    cursor: &mut Cursor<'a>,
    position: u64,
    entry: u64,
    key: &[u8],
) -> Result<Option<Located<'a>>> {
    let head = match_put(cursor, position, entry, key)?;
    Ok(head.map(|head| match cursor.borrow(head.value_bytes) {
        Some(value) => Located::Borrowed(value),
        None => Located::AtCursor(head.value_bytes),
    }))
}
