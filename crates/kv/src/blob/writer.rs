//! Writing a blob file.

use cairn_codec::checksum::{Xxh3, xxh3_64_seeded};
use cairn_vfs::sync::Arc;
use cairn_vfs::{AppendWriter, Bug, File, ensure};

use super::reference::BlobRef;
use super::{HEADER_BYTES, MAGIC, RECORD_HEADER_BYTES, VERSION, footer_checksum, seed};
use crate::Result;
use crate::file::{BlobMeta, FileNumber};

/// Size of the pieces in which the file is written.
const WRITE_BYTES: usize = 256 << 10;

const _: () = assert!(
    crate::batch::VALUE_BYTES_MAX + crate::ttl::STAMP_BYTES <= u32::MAX as usize,
    "the length of a value has 32 bits"
);

/// Writes one blob file. After an error the writer cannot be used: drop it and delete the file.
#[derive(Debug)]
pub(crate) struct BlobWriter {
    number: FileNumber,
    out: AppendWriter,
    checksum: Xxh3,
    values: u64,
    value_bytes: u64,
    record: Vec<u8>,
}

impl BlobWriter {
    /// Creates a writer for blob file `number`, which is written to `file` from its beginning.
    pub(crate) fn new(file: Arc<dyn File>, number: FileNumber) -> Result<Self> {
        let mut writer = BlobWriter {
            number,
            out: AppendWriter::new(file, 0, WRITE_BYTES),
            checksum: Xxh3::new(),
            values: 0,
            value_bytes: 0,
            record: Vec::new(),
        };
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&VERSION.to_le_bytes());
        header[8..].copy_from_slice(&number.to_le_bytes());
        writer.write(&header)?;
        debug_assert_eq!(writer.out.position(), HEADER_BYTES as u64, "the records follow the header");
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.checksum.update(bytes);
        Ok(self.out.write_all(bytes)?)
    }

    /// Adds a value.
    ///
    /// Errors: those of the file.
    pub(crate) fn add(&mut self, value: &[u8]) -> Result<BlobRef> {
        let len = u32::try_from(value.len())
            .map_err(|_| Bug::new(format!("a value of {} bytes for a blob file", value.len())))?;
        let offset = self.out.position();
        debug_assert!(offset >= HEADER_BYTES as u64, "a record at {offset} overlaps the header");
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.resize(8, 0);
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(value);
        let checksum = xxh3_64_seeded(&record[8..], seed(self.number, offset));
        record[..8].copy_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(record.len(), RECORD_HEADER_BYTES + value.len());
        let result = self.write(&record);
        // Releases the memory of a large record.
        self.record = if record.capacity() > 16 * WRITE_BYTES { Vec::new() } else { record };
        result?;
        debug_assert_eq!(
            self.out.position(),
            offset + (RECORD_HEADER_BYTES + value.len()) as u64,
            "the next record does not follow"
        );
        self.values += 1;
        self.value_bytes += u64::from(len);
        Ok(BlobRef { number: self.number, offset, bytes: u64::from(len) })
    }

    /// Returns the bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.out.position()
    }

    /// Writes the footer and syncs the file. Does not make the file's name durable.
    pub(crate) fn finish(mut self) -> Result<BlobMeta> {
        ensure!(self.values > 0, "a blob file without values");
        let records = self.value_bytes + self.values * RECORD_HEADER_BYTES as u64;
        ensure!(
            self.out.position() == HEADER_BYTES as u64 + records,
            "{} records of {records} bytes end at {}",
            self.values,
            self.out.position()
        );
        let bytes = self.out.position() + super::FOOTER_BYTES as u64;
        let body = Some(self.checksum.digest());
        let footer_sum = footer_checksum(self.values, self.value_bytes, self.number, bytes, body);
        let mut footer = Vec::with_capacity(super::FOOTER_BYTES);
        footer.extend_from_slice(&self.values.to_le_bytes());
        footer.extend_from_slice(&self.value_bytes.to_le_bytes());
        footer.extend_from_slice(&footer_sum.to_le_bytes());
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        ensure!(
            footer.first_chunk().map(super::footer_sum) == Some(footer_sum),
            "a footer of {} bytes whose checksum would not be found",
            footer.len()
        );
        self.write(&footer)?;
        ensure!(self.out.position() == bytes, "a file of {} bytes, expected {bytes}", self.out.position());
        let checksum = self.checksum.digest();
        let file = self.out.into_file()?;
        file.sync_data()?;
        let (number, values, value_bytes) = (self.number, self.values, self.value_bytes);
        Ok(BlobMeta { number, bytes, values, value_bytes, checksum, footer: footer_sum })
    }
}
