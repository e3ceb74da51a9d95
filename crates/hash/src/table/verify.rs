//! Verifies a whole table: all checksums, and the consistency of index, records and header.

use super::format::{Header, PAGE_BYTES};
use super::probe::Probe;
use super::reader::Reader;
use super::record::Tag;
use super::stats::counted;
use crate::{Error, Result};

/// The result of [`Reader::verify`] for a sound table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Number of pages whose checksum was computed, the header included.
    pub pages: u64,
    /// Number of records read; a search for the hash of each one finds it.
    pub entries: u64,
    /// Number of tombstones among them.
    pub tombstones: u64,
    /// Total size of all values, decompressed.
    pub value_bytes: u64,
}

impl std::fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let VerifyReport { pages, entries, tombstones, value_bytes } = self;
        let pages = counted(*pages, "page", "pages");
        let entries = counted(*entries, "entry", "entries");
        let tombstones = counted(*tombstones, "tombstone", "tombstones");
        let value_bytes = counted(*value_bytes, "value byte", "value bytes");
        write!(f, "{pages}, {entries} ({tombstones}), {value_bytes}: sound")
    }
}

impl Reader {
    /// Verifies the checksum of every page; that a search for the hash of each record finds it;
    /// that records do not overlap; every value; and the totals in the header. Detects any single
    /// flipped bit.
    ///
    /// Bytes that were copied to memory at open (everything with [`Mode::Heap`](super::Mode::Heap),
    /// index and checksums with [`Mode::Pread`](super::Mode::Pread)) are verified in memory. Long
    /// values are covered by the checksums alone.
    ///
    /// Cost: one pass over the file and a hash of every key. Errors: the first damage, with its
    /// offset.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport { pages: self.verify_pages()?, ..VerifyReport::default() };
        let (mut key_bytes, mut key_bytes_max, mut value_bytes_max) = (0u64, 0u64, 0u64);
        let (mut before, mut blob_bytes, mut end) = (None, 0u64, 0);
        let mut records = self.records();
        while let Some(record) = records.next().transpose()? {
            let hash = self.hash(&record.key);
            let belongs = match self.header.is_fixed() {
                true => self.leads_to::<true>(hash, record.start)?,
                false => self.leads_to::<false>(hash, record.start)?,
            };
            if !belongs {
                let detail =
                    format!("the key here has hash {hash:016x}, but a lookup of that hash does not find it");
                return Err(Error::corruption(&self.path, record.start, detail));
            }
            if let Some(before) = before.filter(|&before| before > hash) {
                let detail =
                    format!("the key here has hash {hash:016x}, but the key before it has {before:016x}");
                return Err(Error::corruption(&self.path, record.start, detail));
            }
            // Without this check, many slots could refer to one record and many records to one long
            // value, and the verification of a forged table could take practically forever.
            if record.start < end {
                let detail = format!("a record begins here, but the one before it ends at {end}");
                return Err(Error::corruption(&self.path, record.start, detail));
            }
            end = record.start + record.bytes;
            let value_bytes = records.value_bytes(&record)?;
            if record.found.tag == Tag::Blob {
                blob_bytes = blob_bytes.saturating_add(value_bytes);
            }
            debug_assert!(end <= self.header.data_offset + self.header.data_bytes);
            before = Some(hash);
            key_bytes += record.key.len() as u64;
            key_bytes_max = key_bytes_max.max(record.key.len() as u64);
            report.value_bytes += value_bytes;
            value_bytes_max = value_bytes_max.max(value_bytes);
            report.entries += 1;
            report.tombstones += u64::from(record.found.tag == Tag::Tombstone);
        }
        let header = &self.header;
        if blob_bytes > header.blob_bytes {
            let detail = format!("long values of {blob_bytes} bytes, the header says {}", header.blob_bytes);
            return Err(Error::corruption(&self.path, 72, detail));
        }
        let totals = [
            ("entries", report.entries, header.entries),
            ("tombstones", report.tombstones, header.tombstones),
            ("key bytes", key_bytes, header.key_bytes),
            ("value bytes", report.value_bytes, header.value_bytes),
            ("longest key", key_bytes_max, header.key_bytes_max),
            ("longest value", value_bytes_max, header.value_bytes_max),
        ];
        for (name, found, expected) in totals {
            if found != expected {
                return Err(Error::corruption(
                    &self.path,
                    0,
                    format!("{name}: found {found}, the header says {expected}"),
                ));
            }
        }
        Ok(report)
    }

    /// Returns true if a search for `hash` reaches the record at `start`.
    fn leads_to<const FIXED: bool>(&self, hash: u64, start: u64) -> Result<bool> {
        let mut probe = Probe::<FIXED>::new(self, hash)?;
        // BOUND: a probe ends at the end of its partition at the latest.
        while let Some(found) = probe.next(self)? {
            if found == start {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Verifies every checksum again, whatever was remembered earlier.
    fn verify_pages(&self) -> Result<u64> {
        let window = self.window();
        let pages = self.header.file_bytes / PAGE_BYTES;
        let mut page_bytes = vec![0; PAGE_BYTES as usize];
        for page in 0..pages {
            let content = match (&self.file, window.page(page)) {
                (Some(file), []) => {
                    file.read_exact_at(&mut page_bytes, page * PAGE_BYTES)?;
                    &page_bytes[..]
                }
                (_, content) => content,
            };
            if page == 0 {
                if Header::decode(&self.path, content, self.header.file_bytes)? != self.header {
                    return Err(Error::corruption(
                        &self.path,
                        0,
                        "the header changed since the file was opened",
                    ));
                }
            } else {
                self.checker.check_bytes(&self.path, window, page, content)?;
            }
        }
        Ok(pages)
    }
}
