//! An open table.

use std::path::Path;

use cairn_codec::compress::{DecompressionDictionary, Dictionary};
use cairn_vfs::Fs;
use cairn_vfs::sync::Arc;

use super::footer::{FOOTER_BYTES, Footer, FooterError};
use super::frame::{HEADER_BYTES, Handle, Header, Role};
use super::index::Partition;
use super::options::OpenOptions;
use super::properties::Properties;
use super::shared_block::{Block, BlockRef};
use super::source::Source;
use crate::cache::{Cache, Slots};
use crate::file::FileNumber;
use crate::kind::Seqno;
use crate::open_files::OpenFiles;
use crate::range_del::RangeTombstones;
use crate::{Error, Result};

/// Bytes that opening a table reads from the end of the file at once. For most tables they contain
/// the footer, the top index and the properties.
const TAIL_BYTES: u64 = 16 << 10;

const _: () = assert!(FOOTER_BYTES as u64 <= TAIL_BYTES, "the first read has the whole footer");

/// A table that is open for reading by any number of threads.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) source: Source,
    /// The table number that seeds the checksums.
    pub(super) frame_number: FileNumber,
    /// The checksum in the footer, and the footer's checksum of everything before it.
    footer: u64,
    pub(super) body: u64,
    /// If not 0, the sequence number of all entries, whose numbers in the file are then 0.
    pub(super) seqno: Seqno,
    pub(super) properties: Properties,
    /// Separators of partitions; `None` in a table with range tombstones only.
    pub(super) top: Option<BlockRef>,
    pub(super) partitions: Box<[Partition]>,
    pub(super) dictionary: Option<DecompressionDictionary>,
    pub(super) cache: Arc<Cache>,
    /// Cache slots: first those of data blocks, then of index partitions, then of filters.
    pub(super) slots: Arc<Slots>,
    /// Pinned index partitions and filters, by partition; empty when they are not pinned.
    pub(super) pinned: Box<[PinnedPartition]>,
    range_tombstones: Arc<RangeTombstones>,
    pinned_bytes: u64,
}

#[derive(Debug)]
pub(super) struct PinnedPartition {
    pub(super) index: BlockRef,
    pub(super) filter: Option<BlockRef>,
}

impl Table {
    /// Opens the table `number` at `path`, with two or three reads, none of them of data blocks.
    /// Its blocks are cached in `cache`.
    ///
    /// Errors: [`Error::Corruption`] when the file is not a table, was not finished, or has a
    /// different number; [`Error::Unsupported`] for an unknown version; those of the file system.
    pub(crate) fn open(
        fs: &Arc<dyn Fs>,
        path: &Path,
        number: FileNumber,
        cache: &Arc<Cache>,
        options: OpenOptions,
    ) -> Result<Arc<Table>> {
        Table::of(Source::open(&**fs, path, options.direct)?, number, cache, options)
    }

    /// Opens a table as [`Table::open`] does, as one of `files`.
    pub(crate) fn open_shared(
        files: &Arc<OpenFiles>,
        path: &Path,
        number: FileNumber,
        cache: &Arc<Cache>,
        options: OpenOptions,
    ) -> Result<Arc<Table>> {
        Table::of(Source::open_shared(files, path, options.direct)?, number, cache, options)
    }

    fn of(
        source: Source,
        number: FileNumber,
        cache: &Arc<Cache>,
        options: OpenOptions,
    ) -> Result<Arc<Table>> {
        let (tail_start, tail) = read_tail(&source)?;
        if let Some(expected) = options.expected.filter(|expected| expected.bytes != source.len()) {
            let what = format!("the table has {} bytes, expected {}", source.len(), expected.bytes);
            return Err(Error::corruption(source.path(), 0, what));
        }
        let footer = read_footer(&source, &tail)?;
        let sum = tail.last_chunk().map_or(0, Footer::sum_of);
        if options.expected.is_some_and(|expected| expected.footer != 0 && expected.footer != sum) {
            let offset = source.len() - FOOTER_BYTES as u64;
            return Err(Error::corruption(
                source.path(),
                offset,
                "it is a different table from the one that was written here",
            ));
        }
        if footer.number != number && !options.foreign {
            let what = format!("the table has number {}, expected {number}", footer.number);
            return Err(Error::corruption(source.path(), source.len() - FOOTER_BYTES as u64, what));
        }
        let mut table = Table {
            source,
            frame_number: footer.number,
            footer: sum,
            body: footer.body,
            seqno: options.seqno,
            properties: Properties::default(),
            top: None,
            partitions: Box::default(),
            dictionary: None,
            cache: Arc::clone(cache),
            slots: cache.slots(0),
            pinned: Box::default(),
            range_tombstones: Arc::default(),
            pinned_bytes: 0,
        };
        let tail = Tail { start: tail_start, bytes: &tail };
        table.read_properties(footer.properties, &tail)?;
        if options.seqno > 0 && (table.properties.seqnos != (0, 0) || table.properties.range_tombstones > 0) {
            let what = "an ingested table has its own sequence numbers";
            return Err(table.damaged(footer.properties.offset, what));
        }
        table.read_top(footer.top, &tail)?;
        debug_assert_eq!(
            table.partitions.len(),
            table.properties.partitions as usize,
            "the top index was checked"
        );
        debug_assert_eq!(table.top.is_some(), !table.partitions.is_empty(), "partitions without separators");
        let slots = table.properties.data_blocks as usize + 2 * table.partitions.len();
        table.slots = cache.slots(slots);
        let top_bytes =
            table.top.as_ref().map_or(0, |top| top.weight()) + table.range_tombstones.memory_bytes();
        table.pin_bytes(top_bytes as u64);
        if options.pin {
            table.pin_partitions()?;
        }
        Ok(Arc::new(table))
    }

    /// Returns the number under which the table was written.
    pub(crate) fn written_number(&self) -> FileNumber {
        self.frame_number
    }

    /// Returns the properties that the table stores about itself.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Returns the range tombstones.
    #[inline]
    pub(crate) fn range_tombstones(&self) -> &Arc<RangeTombstones> {
        &self.range_tombstones
    }

    /// Returns the checksum in its footer, which covers the whole file.
    pub(crate) fn footer_sum(&self) -> u64 {
        self.footer
    }

    /// Returns the length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.source.len()
    }

    pub(super) fn index_slot(&self, partition: usize) -> usize {
        debug_assert!(
            partition < self.partitions.len(),
            "partition {partition} of {}",
            self.partitions.len()
        );
        self.properties.data_blocks as usize + partition
    }

    pub(super) fn filter_slot(&self, partition: usize) -> usize {
        debug_assert!(
            partition < self.partitions.len(),
            "partition {partition} of {}",
            self.partitions.len()
        );
        self.properties.data_blocks as usize + self.partitions.len() + partition
    }

    fn read_properties(&mut self, handle: Handle, tail: &Tail<'_>) -> Result<()> {
        let payload = self.meta_payload(handle, Role::Properties, tail)?;
        let properties = Properties::decode(&payload)
            .ok_or_else(|| self.damaged(handle.offset, "the properties cannot be decoded"))?;
        let sections = [properties.data_bytes, properties.filter_bytes, properties.index_bytes];
        let sum = sections.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes));
        let blocks = u64::from(properties.data_blocks) + 2 * u64::from(properties.partitions);
        // No block is smaller than its header, so the count cannot allocate more slots than the
        // file justifies.
        let possible =
            sum.is_some_and(|sum| sum <= handle.offset && blocks <= 2 * (sum / HEADER_BYTES as u64));
        if !possible {
            return Err(self.damaged(handle.offset, "the properties count more blocks than fit in the file"));
        }
        if let Some(handle) = properties.range_tombstone_block {
            let bytes = self.meta_payload(handle, Role::RangeTombstones, tail)?;
            let set = RangeTombstones::decode(&bytes).map_err(|malformed| {
                let (at, what) = (malformed.offset, malformed.what);
                self.damaged(handle.offset, format!("byte {at} of the range tombstones: expected {what}"))
            })?;
            self.range_tombstones = Arc::new(set);
        }
        if let Some(handle) = properties.dictionary_block {
            let bytes = self.meta_payload(handle, Role::Dictionary, tail)?;
            let digested = Dictionary::from_bytes(&bytes).for_decompression();
            self.dictionary = Some(digested.map_err(|error| self.damaged(handle.offset, error.to_string()))?);
        }
        self.properties = properties;
        Ok(())
    }

    fn read_top(&mut self, handle: Handle, tail: &Tail<'_>) -> Result<()> {
        let payload = self.meta_payload(handle, Role::TopIndex, tail)?;
        if payload.is_empty() && self.properties.partitions == 0 && self.properties.data_blocks == 0 {
            return Ok(());
        }
        let damaged = |at: usize, what: String| {
            self.damaged(handle.offset, format!("{what}, at byte {at} of the top index"))
        };
        let bytes = super::bytes::BlockBytes::copy_of(&payload);
        let top = Block::new(bytes, Role::TopIndex).map_err(|(at, what)| damaged(at, what))?;
        let sections = &self.properties;
        let end = sections.data_bytes + sections.filter_bytes + sections.index_bytes;
        debug_assert!(end <= self.source.len(), "the sections end at {end}, after the file");
        let mut partitions = Vec::new();
        let mut value = top.entries().and_then(|entries| entries.first_value());
        while let Some(range) = value {
            let decoded = Partition::decode(&top.bytes()[range.clone()], end);
            match decoded {
                Some((partition, ordinal)) if ordinal as usize == partitions.len() => {
                    partitions.push(partition)
                }
                _ => {
                    return Err(damaged(
                        range.start,
                        "a partition is outside the section of partitions".to_owned(),
                    ));
                }
            }
            value = top.entries().and_then(|entries| entries.value_after(&range));
        }
        if partitions.len() != self.properties.partitions as usize {
            return Err(damaged(
                0,
                format!("{} partitions of {}", partitions.len(), self.properties.partitions),
            ));
        }
        self.partitions = partitions.into();
        self.top = Some(Arc::new(top));
        Ok(())
    }

    /// Returns the payload of a block, from the tail if it is in there.
    fn meta_payload(&self, handle: Handle, role: Role, tail: &Tail<'_>) -> Result<Vec<u8>> {
        if let Some(frame) = tail.frame(handle) {
            let header = Header::check(frame, self.frame_number, handle.offset, role);
            let header = header.map_err(|what| self.damaged(handle.offset, what))?;
            let payload = &frame[HEADER_BYTES..];
            if header.is_stored() {
                return Ok(payload.to_vec());
            }
            let unpacked = header.unpack(payload, None).map_err(|what| self.damaged(handle.offset, what))?;
            return Ok(unpacked.to_vec());
        }
        Ok(self.read_payload(handle, role)?.to_vec())
    }

    fn pin_bytes(&mut self, bytes: u64) {
        self.cache.pin(bytes);
        self.pinned_bytes += bytes;
    }

    /// Reads and pins all partitions of index and filter, if the cache has room to account for them
    /// and they are sound. If one is damaged, none is pinned and each is read when it is needed, so
    /// that lookups that do not need the damaged one still succeed.
    fn pin_partitions(&mut self) -> Result<()> {
        if !self.cache.can_pin(self.properties.filter_bytes + self.properties.index_bytes) {
            return Ok(());
        }
        let mut bytes = 0;
        let mut pinned = Vec::with_capacity(self.partitions.len());
        for partition in &self.partitions {
            let filter = partition.filter.map(|filter| self.read_block(filter, Role::Filter)).transpose();
            let (index, filter) = match (self.read_block(partition.index, Role::Index), filter) {
                (Err(Error::Corruption { .. }), _) | (_, Err(Error::Corruption { .. })) => return Ok(()),
                (index, filter) => (index?, filter?),
            };
            bytes += index.weight() + filter.as_ref().map_or(0, |filter| filter.weight());
            pinned.push(PinnedPartition { index, filter });
        }
        debug_assert_eq!(pinned.len(), self.partitions.len(), "all partitions are pinned, or none");
        self.pinned = pinned.into();
        self.pin_bytes(bytes as u64);
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.cache.remove(&self.slots);
        self.cache.unpin(self.pinned_bytes);
    }
}

/// The last bytes of the file, as read when it is opened.
struct Tail<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Tail<'_> {
    fn frame(&self, handle: Handle) -> Option<&[u8]> {
        let start = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(start..start.checked_add(handle.len as usize)?)
    }
}

fn read_tail(source: &Source) -> Result<(u64, Vec<u8>)> {
    let len = source.len().min(TAIL_BYTES);
    let start = source.len() - len;
    let mut tail = vec![0; len as usize];
    source.read(&mut tail, start)?;
    Ok((start, tail))
}

fn read_footer(source: &Source, tail: &[u8]) -> Result<Footer> {
    let Some(bytes) = tail.last_chunk::<FOOTER_BYTES>() else {
        let what = format!("{} bytes are too short for a table", source.len());
        return Err(Error::corruption(source.path(), 0, what));
    };
    let offset = source.len() - FOOTER_BYTES as u64;
    Footer::decode(bytes, source.len()).map_err(|error| match error {
        FooterError::Damaged(what) => Error::corruption(source.path(), offset, what),
        FooterError::Version(version) => {
            let newest = super::footer::VERSION;
            let what = format!("version {version} of the format, supported versions are 1 to {newest}");
            Error::unsupported(source.path(), what)
        }
    })
}
