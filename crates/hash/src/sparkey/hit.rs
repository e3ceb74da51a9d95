//! Finds the record behind an address, and gives its value.

use std::borrow::Cow;

use super::cursor::{Cursor, match_put};
use super::log::Log;
use super::log_header::LOG_HEADER_BYTES;
use super::record::{RecordHead, RecordKind};
use crate::{Error, Result};

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

/// Holds the record at `position` in the bytes of an uncompressed log against `key`; its value if that is its key.
#[inline]
pub(super) fn match_flat<'a>(
    log: &Log,
    bytes: &'a [u8],
    position: u64,
    key: &[u8],
) -> Result<Option<&'a [u8]>> {
    let record = match usize::try_from(position) {
        Ok(position) if position >= LOG_HEADER_BYTES => bytes.get(position..).unwrap_or_default(),
        _ => &[],
    };
    match_in(record, key).unwrap_or_else(|| Err(bad_record(log, position, record)))
}

/// Holds the record at the front of `record` against `key`; its value if that is its key. `None` when this is not
/// all of a PUT record.
#[inline(always)]
fn match_in<'a>(record: &'a [u8], key: &[u8]) -> Option<Result<Option<&'a [u8]>>> {
    let head = RecordHead::decode(record).ok()?;
    if head.kind == RecordKind::Delete {
        return None;
    }
    if head.key_bytes != key.len() as u64 {
        return Some(Ok(None));
    }
    let (found, rest) = record.get(head.head_bytes..)?.split_at_checked(key.len())?;
    if found != key {
        return Some(Ok(None));
    }
    Some(Ok(Some(rest.get(..usize::try_from(head.value_bytes).ok()?)?)))
}

#[cold]
fn bad_record(log: &Log, position: u64, record: &[u8]) -> Error {
    let what = match RecordHead::decode(record) {
        _ if record.is_empty() => {
            format!("the index points here, the log has {LOG_HEADER_BYTES}..{}", log.end)
        }
        Err(error) => format!("record head: {error}"),
        Ok(head) if head.kind == RecordKind::Delete => "the index points to a DELETE record".to_owned(),
        Ok(head) => {
            format!("a record of {} bytes goes beyond the end of the log at {}", head.record_bytes(), log.end)
        }
    };
    log.corruption(position, what)
}

/// Holds record number `entry` of the cached block at `position`, if it is cached, against `key`. `None` when it
/// takes more than this to know.
#[inline]
pub(super) fn match_cached<'a>(
    log: &'a Log,
    position: u64,
    entry: u64,
    key: &[u8],
) -> Option<Option<&'a [u8]>> {
    let block = log.blocks.get(position)?;
    let offset = *block.offsets.get(usize::try_from(entry).ok()?)?;
    match_in(block.bytes.get(offset as usize..)?, key)?.ok()
}

/// Holds record number `entry` at `position`, wherever it is, against `key`. Leaves the cursor at the value.
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
