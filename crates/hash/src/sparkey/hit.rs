//! Finds the record at an address and its value.

use std::borrow::Cow;

use super::cursor::{Cursor, match_put};
use super::flat::{Record, match_record};
use super::log::Log;
use crate::Result;

/// A value that was found.
#[derive(Debug)]
pub(super) enum Hit<'a> {
    /// In memory as long as the reader lives.
    Borrowed(&'a [u8]),
    /// To be read from the position of the cursor.
    Stream(Cursor<'a>, u64),
}

/// The location of the value of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Located<'a> {
    /// In memory as long as the reader lives.
    Borrowed(&'a [u8]),
    /// This many bytes from the position of the cursor.
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

/// Compares record number `entry` of the block at `position` with `key`, if the block is cached.
/// The outer `None` means that the cached block does not suffice to decide.
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
        // Damaged, or the last record of the block, which continues in the next block.
        Record::Bad => None,
    }
}

/// Compares record number `entry` at `position`, whether cached or not, with `key`. Leaves the
/// cursor at the value.
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
