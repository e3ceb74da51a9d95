//! Resolves the stored form of a value to the value itself.

use std::borrow::Cow;

use cairn_codec::compress::{Decompressor, Format};
use cairn_codec::varint;

use super::fast_path::Stored;
use super::format::{BLOB_MIN_BYTES, PAGE_BYTES};
use super::reader::{Found, Reader};
use super::record::{Tag, decode_blob};
use crate::{Error, Result};

impl Reader {
    /// Returns the stored bytes of a record found in a mapped table. The search has verified their
    /// pages.
    #[inline]
    pub(crate) fn stored_at(&self, found: Found) -> Result<Stored<'_>> {
        debug_assert!(self.is_mapped());
        match self.window().range(found.start, found.bytes) {
            Some(bytes) => Ok(Stored { tag: found.tag, bytes, start: found.start }),
            None => Err(self.bad_record(found.start)),
        }
    }

    /// Returns the value of a record found in a mapped table; `None` for a tombstone.
    #[inline]
    pub(crate) fn value<'a>(&'a self, stored: Stored<'a>) -> Result<Option<Cow<'a, [u8]>>> {
        match stored.tag {
            Tag::Raw => Ok(Some(Cow::Borrowed(stored.bytes))),
            Tag::Tombstone => Ok(None),
            Tag::Blob => self.mapped_blob(stored).map(|blob| Some(Cow::Borrowed(blob))),
            Tag::Compressed => {
                let mut value = Vec::new();
                self.decompress(stored.bytes, stored.start, &mut value)?;
                Ok(Some(Cow::Owned(value)))
            }
        }
    }

    /// Appends the value of a record found in a mapped table. Returns false for a tombstone.
    #[inline]
    pub(crate) fn append_value(&self, stored: Stored<'_>, value: &mut Vec<u8>) -> Result<bool> {
        match stored.tag {
            Tag::Raw => value.extend_from_slice(stored.bytes),
            Tag::Tombstone => return Ok(false),
            Tag::Blob => value.extend_from_slice(self.mapped_blob(stored)?),
            Tag::Compressed => self.decompress(stored.bytes, stored.start, value)?,
        }
        Ok(true)
    }

    pub(crate) fn mapped_blob(&self, stored: Stored<'_>) -> Result<&[u8]> {
        debug_assert!(self.is_mapped() && stored.tag == Tag::Blob);
        let (offset, bytes) = self.blob(stored.bytes, stored.start)?;
        self.checked_range(offset, bytes)
    }

    /// Decodes and validates the blob reference at the file offset `at`.
    pub(crate) fn blob(&self, stored: &[u8], at: u64) -> Result<(u64, u64)> {
        let end = PAGE_BYTES + self.header.blob_bytes;
        match decode_blob(stored) {
            Some((offset, bytes))
                if offset >= PAGE_BYTES && offset.checked_add(bytes).is_some_and(|to| to <= end) =>
            {
                Ok((offset, bytes))
            }
            found => {
                let detail = format!("blob reference {found:?} is not within the blobs, {PAGE_BYTES}..{end}");
                Err(Error::corruption(&self.path, at, detail))
            }
        }
    }

    /// Appends the decompressed form of `stored`, which lies at the file offset `at`. After an
    /// error, the appended bytes are unspecified.
    pub(crate) fn decompress(&self, stored: &[u8], at: u64, value: &mut Vec<u8>) -> Result<()> {
        let wrong = |detail: String| Error::corruption(&self.path, at, detail);
        let (bytes, head) = varint::decode(stored).map_err(|error| wrong(error.to_string()))?;
        // Longer values are blobs, so a corrupt length cannot cause a larger allocation.
        if bytes > BLOB_MIN_BYTES {
            return Err(wrong(format!("compressed value claims {bytes} bytes")));
        }
        let (block, limit) = (stored.get(head..).unwrap_or_default(), bytes as usize);
        let before = value.len();
        let done = match (self.header.compression, &self.dictionary) {
            (Format::Zstd, Some(dictionary)) => {
                Decompressor::local(|decompressor| decompressor.append_with(dictionary, block, value, limit))
            }
            (Format::Zstd, None) => {
                Decompressor::local(|decompressor| decompressor.append(Format::Zstd, block, value, limit))
            }
            // A snappy decompressor has no working memory worth keeping per thread.
            (Format::Snappy, _) => Decompressor::new().append(Format::Snappy, block, value, limit),
            (Format::None, _) => {
                return Err(wrong("a compressed value in a table without compression".to_owned()));
            }
        };
        match done {
            Ok(done) if done == limit => {
                debug_assert_eq!(value.len() - before, limit);
                Ok(())
            }
            Ok(done) => Err(wrong(format!("value has {done} bytes, but its head says {bytes}"))),
            Err(error) => Err(wrong(error.to_string())),
        }
    }
}
