//! Reading values from blob files.

use std::path::Path;

use cairn_codec::checksum::{Xxh3, xxh3_64_seeded};
use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, OpenOptions};

use super::reference::BlobRef;
use super::{FOOTER_BYTES, FormatVersion, HEADER_BYTES, MAGIC, RECORD_HEADER_BYTES, VERSION};
use super::{footer_checksum, footer_sum, seed};
use crate::file::BlobMeta;
use crate::open_files::{OpenFiles, SharedFile};
use crate::version::FileName;
use crate::{Error, Result};

/// An open blob file.
#[derive(Debug)]
pub(crate) struct BlobReader {
    file: SharedFile,
    meta: BlobMeta,
    version: FormatVersion,
}

impl BlobReader {
    /// Opens the file of `meta` in `dir`, with two reads.
    ///
    /// Errors: [`Error::Corruption`] if the file is not a blob file or not the expected one, or if
    /// its length or footer differ from those that its writer reported.
    pub(crate) fn open(fs: &dyn Fs, dir: &std::path::Path, meta: &BlobMeta) -> Result<Self> {
        let file = fs.open(&FileName::Blob(meta.number).path(dir), OpenOptions::read())?;
        BlobReader::of(SharedFile::owned(file, OpenOptions::read())?, meta)
    }

    /// Opens the file as [`BlobReader::open`] does, as one of `files`.
    pub(crate) fn open_shared(files: &Arc<OpenFiles>, dir: &Path, meta: &BlobMeta) -> Result<Self> {
        let path = FileName::Blob(meta.number).path(dir);
        BlobReader::of(SharedFile::open(files, &path, OpenOptions::read())?, meta)
    }

    fn of(file: SharedFile, meta: &BlobMeta) -> Result<Self> {
        let (path, len) = (file.path().to_owned(), file.len());
        if len != meta.bytes || len < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            let what = format!("the blob file has {len} bytes, expected {}", meta.bytes);
            return Err(Error::corruption(&path, 0, what));
        }
        let mut header = [0; HEADER_BYTES];
        read(&file, &mut header, 0)?;
        let mut expected = [0; HEADER_BYTES];
        expected[..4].copy_from_slice(&MAGIC.to_le_bytes());
        let [_, _, _, _, v0, v1, v2, v3, ..] = header;
        let version = u32::from_le_bytes([v0, v1, v2, v3]);
        expected[4..8].copy_from_slice(&version.to_le_bytes());
        expected[8..].copy_from_slice(&meta.number.to_le_bytes());
        let is_blob_file = header[..4] == expected[..4];
        let version = match FormatVersion::of(version) {
            Some(version) if header == expected => version,
            None if is_blob_file => {
                let what = format!("version {version}, supported versions are 1 to {VERSION}");
                return Err(Error::unsupported(&path, what));
            }
            _ => {
                let what = format!("not the header of blob file {}", meta.number);
                return Err(Error::corruption(&path, 0, what));
            }
        };
        let mut footer = [0; FOOTER_BYTES];
        let last = len - FOOTER_BYTES as u64;
        read(&file, &mut footer, last)?;
        if meta.footer != 0 && meta.footer != footer_sum(&footer) {
            let what = "it is a different blob file from the one that was written here";
            return Err(Error::corruption(&path, last, what));
        }
        Ok(BlobReader { file, meta: meta.clone(), version })
    }

    /// Returns a reader for the remains of the damaged blob file `number` in `dir`. The checksum of
    /// each record tells whether its value is sound.
    pub(crate) fn salvage(fs: &dyn Fs, dir: &std::path::Path, number: u64) -> Result<Self> {
        let file = fs.open(&FileName::Blob(number).path(dir), OpenOptions::read())?;
        let file = SharedFile::owned(file, OpenOptions::read())?;
        // The footer may be missing, so values may extend to the end of the file.
        let bytes = file.len().saturating_add(FOOTER_BYTES as u64);
        let meta = BlobMeta { number, bytes, values: 0, value_bytes: 0, checksum: 0, footer: 0 };
        Ok(BlobReader { file, meta, version: FormatVersion::V2 })
    }

    /// Describes blob file `number` in `dir` from its content, for a store whose manifest is lost.
    /// Reads the whole file.
    ///
    /// Errors: [`Error::Corruption`] for a file that was not finished.
    pub(crate) fn describe(fs: &dyn Fs, dir: &std::path::Path, number: u64) -> Result<BlobMeta> {
        let path = FileName::Blob(number).path(dir);
        let file = fs.open(&path, OpenOptions::read())?;
        let bytes = file.len()?;
        let mut footer = [0; FOOTER_BYTES];
        let Some(last) = bytes.checked_sub(FOOTER_BYTES as u64) else {
            return Err(Error::corruption(&path, 0, format!("{bytes} bytes are too short for a blob file")));
        };
        file.read_exact_at(&mut footer, last)?;
        let mut words =
            footer.chunks_exact(8).map(|word| word.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)));
        let mut word = || words.next().unwrap_or(0);
        let (values, value_bytes, sum) = (word(), word(), word());
        let mut whole = Xxh3::new();
        let mut piece = vec![0; (1 << 20).min(bytes as usize)];
        let mut at = 0;
        while at < last {
            let len = (last - at).min(piece.len() as u64) as usize;
            file.read_exact_at(&mut piece[..len], at)?;
            whole.update(&piece[..len]);
            at += len as u64;
        }
        debug_assert_eq!(at, last, "the checksum covers everything before the footer");
        let is_of = |version: FormatVersion| {
            let body = version.footer_body(whole.digest());
            sum == footer_checksum(values, value_bytes, number, bytes, body)
        };
        if !is_of(FormatVersion::V2) && !is_of(FormatVersion::V1) {
            return Err(Error::corruption(&path, last, "not the footer of a finished blob file"));
        }
        whole.update(&footer);
        Ok(BlobMeta { number, bytes, values, value_bytes, checksum: whole.digest(), footer: sum })
    }

    /// Replaces `out` with the value at `reference`, which must refer to this file. Costs one read.
    ///
    /// Errors: [`Error::Corruption`] for a reference beyond the values and a record that does not
    /// match its checksum.
    pub(crate) fn load(&self, reference: BlobRef, out: &mut Vec<u8>) -> Result<()> {
        debug_assert_eq!(reference.number, self.meta.number, "a reference to another file");
        out.clear();
        let record = reference.bytes.checked_add(RECORD_HEADER_BYTES as u64);
        let end = record.and_then(|record| reference.offset.checked_add(record));
        let last = self.meta.bytes - FOOTER_BYTES as u64;
        if reference.offset < HEADER_BYTES as u64 || end.is_none_or(|end| end > last) {
            let what = format!("a reference to {} bytes extends past the last value", reference.bytes);
            return Err(self.damaged(reference.offset, what));
        }
        let len = RECORD_HEADER_BYTES + reference.bytes as usize;
        out.resize(len, 0);
        read(&self.file, out, reference.offset)?;
        self.check(reference, out).inspect_err(|_| out.clear())?;
        out.drain(..RECORD_HEADER_BYTES);
        debug_assert_eq!(out.len() as u64, reference.bytes, "the record's length was checked");
        Ok(())
    }

    fn check(&self, reference: BlobRef, record: &[u8]) -> Result<()> {
        debug_assert_eq!(
            record.len() as u64,
            RECORD_HEADER_BYTES as u64 + reference.bytes,
            "the record of another reference"
        );
        let Some((checksum, rest)) = record.split_first_chunk::<8>() else { return Ok(()) };
        let length = rest.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
        if u64::from(length) != reference.bytes {
            let what = format!("a value of {length} bytes, expected {}", reference.bytes);
            return Err(self.damaged(reference.offset, what));
        }
        let expected = xxh3_64_seeded(rest, seed(self.meta.number, reference.offset));
        if u64::from_le_bytes(*checksum) != expected {
            return Err(self.damaged(reference.offset, "a value that does not match its checksum".to_owned()));
        }
        Ok(())
    }

    fn damaged(&self, offset: u64, what: String) -> Error {
        Error::corruption(self.file.path(), offset, what)
    }

    /// Reads the whole file and verifies every record, the footer and the checksum from the
    /// manifest.
    pub(crate) fn verify(&self) -> Result<()> {
        let mut whole = Xxh3::new();
        let mut header = [0; HEADER_BYTES];
        read(&self.file, &mut header, 0)?;
        whole.update(&header);
        let last = self.meta.bytes - FOOTER_BYTES as u64;
        let (mut offset, mut values, mut value_bytes) = (HEADER_BYTES as u64, 0u64, 0u64);
        let mut record = Vec::new();
        while offset < last {
            let mut head = [0; RECORD_HEADER_BYTES];
            if last - offset < RECORD_HEADER_BYTES as u64 {
                return Err(self.damaged(offset, "a record that is cut short".to_owned()));
            }
            read(&self.file, &mut head, offset)?;
            let [.., l0, l1, l2, l3] = head;
            let bytes = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
            self.load(BlobRef { number: self.meta.number, offset, bytes }, &mut record)?;
            whole.update(&head);
            whole.update(&record);
            offset += RECORD_HEADER_BYTES as u64 + bytes;
            values += 1;
            value_bytes += bytes;
        }
        debug_assert_eq!(offset, last, "the last record ends at the footer");
        let body = self.version.footer_body(whole.digest());
        let mut footer = [0; FOOTER_BYTES];
        read(&self.file, &mut footer, last)?;
        whole.update(&footer);
        let mut expected = Vec::with_capacity(FOOTER_BYTES);
        expected.extend_from_slice(&values.to_le_bytes());
        expected.extend_from_slice(&value_bytes.to_le_bytes());
        let checksum = footer_checksum(values, value_bytes, self.meta.number, self.meta.bytes, body);
        expected.extend_from_slice(&checksum.to_le_bytes());
        expected.extend_from_slice(&MAGIC.to_le_bytes());
        if footer[..] != expected[..] || values != self.meta.values || value_bytes != self.meta.value_bytes {
            return Err(self.damaged(last, format!("a footer that does not fit {values} values")));
        }
        if whole.digest() != self.meta.checksum {
            return Err(self.damaged(0, "the file does not match the checksum in the manifest".to_owned()));
        }
        Ok(())
    }
}

fn read(file: &SharedFile, buffer: &mut [u8], offset: u64) -> Result<()> {
    file.with(|file| Ok(file.read_exact_at(buffer, offset)?))
}
