//! Finds the record at an address and its value.

use std::borrow::Cow;

use super::cursor::{Cursor, match_put};
use super::fast_path::{Record, match_record};
use super::log::Log;
use crate::Result;

/// A value that was found.
#[derive(Debug)]
pub(super) enum FoundValue<'a> {
    /// In memory as long as the reader lives.
    Borrowed(&'a [u8]),
    /// To be read from the position of the cursor.
    Stream(Cursor<'a>, u64),
}

/// The location of the value of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueLocation<'a> {
    /// In memory as long as the reader lives.
    Borrowed(&'a [u8]),
    /// This many bytes from the position of the cursor.
    AtCursor(u64),
}

impl<'a> FoundValue<'a> {
    pub fn into_cow(self) -> Result<Cow<'a, [u8]>> {
        Ok(match self {
            FoundValue::Borrowed(value) => Cow::Borrowed(value),
            FoundValue::Stream(..) => {
                let mut value = Vec::new();
                self.append_to(&mut value)?;
                Cow::Owned(value)
            }
        })
    }

    pub fn append_to(self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            FoundValue::Borrowed(value) => {
                out.extend_from_slice(value);
                Ok(())
            }
            FoundValue::Stream(mut cursor, value_bytes) => cursor.append_to(value_bytes, out),
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
    debug_assert_eq!(block.position, position, "the cache has another block there");
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
) -> Result<Option<ValueLocation<'a>>> {
    let head = match_put(cursor, position, entry, key)?;
    Ok(head.map(|head| match cursor.borrow(head.value_bytes) {
        Some(value) => ValueLocation::Borrowed(value),
        None => ValueLocation::AtCursor(head.value_bytes),
    }))
}
