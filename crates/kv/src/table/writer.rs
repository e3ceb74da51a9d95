//! Writes a table from entries in order.

use cairn_codec::checksum::Xxh3;
use cairn_codec::compress::Dictionary;
use cairn_codec::filter::FilterBuilder;
use cairn_vfs::sync::Arc;
use cairn_vfs::{AppendWriter, File, ensure};

use super::block::{BlockBuilder, MAX_BLOCK_BYTES, common_len};
use super::footer::{FOOTER_BYTES, Footer};
use super::frame::{HEADER_BYTES, Handle, Role, Sealer};
use super::index::{DataValue, Partition, separator};
use super::options::{Compression, TableOptions};
use super::properties::Properties;
use super::training::Training;
use super::{hash_key, hash_prefix};
use crate::file::{FileNumber, TableMeta};
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::{Error, Result};

/// Size of the pieces in which the file is written.
const WRITE_BYTES: usize = 256 << 10;
/// A value of at least this size ends its block and is copied only once, into the block.
const LARGE_BYTES: usize = 1 << 20;
/// Larger buffers are released after use instead of kept for the next block.
const KEPT_BYTES: usize = 4 << 20;
/// Bytes reserved for an entry besides its key and value, so that no block exceeds its limit.
const ENTRY_ROOM: usize = 64;
const _: () =
    assert!(2 * (ENTRY_BYTES_MAX + ENTRY_ROOM) <= MAX_BLOCK_BYTES, "a block holds any entry with its key");
const _: () = assert!(LARGE_BYTES <= KEPT_BYTES && WRITE_BYTES <= KEPT_BYTES);
/// The largest total size of a key and its value.
pub(crate) const ENTRY_BYTES_MAX: usize = MAX_BLOCK_BYTES / 2 - ENTRY_ROOM;

/// Writes one table. Keeps a block, the index, the filters and the training samples of a dictionary
/// in memory.
///
/// After an error the writer cannot be used: drop it and delete the file. A file that was not
/// finished has no footer, and [`Table::open`](super::Table::open) refuses it.
#[derive(Debug)]
pub(crate) struct TableWriter {
    options: TableOptions,
    number: FileNumber,
    out: AppendWriter,
    checksum: Xxh3,
    sealer: Sealer,
    data: BlockBuilder,
    /// Hashes of the keys and prefixes in the current data block.
    hashes: Vec<u64>,
    /// The last prefix in `hashes`.
    last_prefix: Vec<u8>,
    /// The last key and its sequence number.
    last: Option<(Vec<u8>, Seqno)>,
    training: Option<Training>,
    dictionary: Option<Dictionary>,
    index: BlockBuilder,
    filter: Option<FilterBuilder>,
    partitions: Vec<PendingPartition>,
    range_tombstones: Option<RangeBlock>,
    properties: Properties,
    /// Bytes of the index and filter partitions that are not written yet.
    pending_bytes: usize,
    failed: bool,
    /// The checksum in the footer, once it is written.
    footer: u64,
    raw: Vec<u8>,
    sealed: Vec<u8>,
    separator: Vec<u8>,
}

/// Encoded range tombstones, and the first and the last key of their ranges.
#[derive(Debug)]
struct RangeBlock {
    encoded: Vec<u8>,
    smallest: Vec<u8>,
    largest: Vec<u8>,
}

/// A partition of the index and its filter, not yet compressed.
#[derive(Debug)]
struct PendingPartition {
    separator: Vec<u8>,
    index: Vec<u8>,
    filter: Option<Vec<u8>>,
}

impl TableWriter {
    /// Creates a writer for table `number`, which is written to `file` from its beginning.
    ///
    /// Errors: [`Error::Invalid`] for options out of range.
    pub(crate) fn new(file: Arc<dyn File>, number: FileNumber, options: TableOptions) -> Result<Self> {
        options.check()?;
        let training = match options.compression {
            Compression::Zstd { level, dictionary_bytes } if dictionary_bytes > 0 => {
                Some(Training::new(level, dictionary_bytes as usize))
            }
            _ => None,
        };
        let properties = Properties {
            compression: options.compression,
            filter: options.filter,
            prefix: options.prefix.filter(|_| options.filter.is_some()),
            oldest_secs: options.oldest_secs,
            newest_secs: options.newest_secs,
            flushed_seqno: options.flushed_seqno,
            keyspace: options.keyspace.clone(),
            seqnos: (SEQNO_MAX, 0),
            ..Properties::default()
        };
        Ok(TableWriter {
            number,
            out: AppendWriter::new(file, 0, WRITE_BYTES),
            checksum: Xxh3::new(),
            sealer: Sealer::new(number, options.compression)?,
            data: BlockBuilder::new(options.restart_interval),
            hashes: Vec::new(),
            last_prefix: Vec::new(),
            last: None,
            training,
            dictionary: None,
            // Every separator is a restart, so an index search only reads heads.
            index: BlockBuilder::new(1),
            filter: options.filter.map(FilterBuilder::new),
            partitions: Vec::new(),
            range_tombstones: None,
            properties,
            pending_bytes: 0,
            failed: false,
            footer: 0,
            raw: Vec::new(),
            sealed: Vec::new(),
            separator: Vec::new(),
            options,
        })
    }

    /// Adds an entry. Keys must ascend, and sequence numbers descend within a key.
    ///
    /// Cost: about 100 ns and a copy of key and value, plus compression, plus a write to the file
    /// every 256 KiB.
    ///
    /// Errors: [`Error::Invalid`] when the entry is out of order or longer than
    /// [`ENTRY_BYTES_MAX`].
    pub(crate) fn add(&mut self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        self.check_usable()?;
        let shared = self.check_order(key, seqno)?;
        let size = key.len() + value.len();
        if size > ENTRY_BYTES_MAX || seqno > SEQNO_MAX {
            return Err(Error::invalid(format!("an entry of {size} bytes with number {seqno} is too large")));
        }
        if !self.data.is_empty() {
            let added = value.len() + key.len() - shared.unwrap_or(key.len()) + 4;
            if self.data.estimated_bytes() + added > self.options.block_bytes {
                self.cut_block(Some(key))?;
            }
        }
        if self.filter.is_some() {
            self.note_hashes(key, shared);
        }
        let is_large = value.len() >= LARGE_BYTES;
        match is_large {
            true => self.data.add_last(key, shared, seqno, kind, value),
            false => self.data.add(key, shared, seqno, kind, value),
        }
        match &mut self.last {
            None => {
                self.properties.smallest = key.to_vec();
                self.last = Some((key.to_vec(), seqno));
            }
            Some((last, last_seqno)) => {
                if let Some(shared) = shared {
                    last.truncate(shared);
                    last.extend_from_slice(&key[shared..]);
                }
                *last_seqno = seqno;
            }
        }
        debug_assert!(self.last.as_ref().is_some_and(|(last, _)| last == key), "the last key is another one");
        let properties = &mut self.properties;
        properties.entries += 1;
        properties.deletes += u64::from(kind == Kind::Delete);
        properties.merges += u64::from(kind == Kind::Merge);
        properties.key_bytes += key.len() as u64;
        properties.value_bytes += value.len() as u64;
        properties.seqnos = (properties.seqnos.0.min(seqno), properties.seqnos.1.max(seqno));
        if is_large { self.cut_block_with(None, Some(value)) } else { Ok(()) }
    }

    /// Adds all range tombstones: encoded, with their count, the first and the last key of their
    /// ranges, and their lowest and highest sequence number. May be called once per table, at any
    /// time before `finish`.
    pub(crate) fn add_range_tombstones(
        &mut self,
        encoded: &[u8],
        count: u64,
        bounds: (&[u8], &[u8]),
        seqnos: (Seqno, Seqno),
    ) -> Result<()> {
        self.check_usable()?;
        ensure!(self.range_tombstones.is_none(), "range tombstones were added to a table twice");
        ensure!(count > 0 && !encoded.is_empty(), "{count} range tombstones of {} bytes", encoded.len());
        ensure!(bounds.0 < bounds.1, "range tombstones from {:?} to {:?}", bounds.0, bounds.1);
        ensure!(seqnos.0 <= seqnos.1, "range tombstones of numbers {} to {}", seqnos.0, seqnos.1);
        let (smallest, largest) = (bounds.0.to_vec(), bounds.1.to_vec());
        self.range_tombstones = Some(RangeBlock { encoded: encoded.to_vec(), smallest, largest });
        let properties = &mut self.properties;
        properties.range_tombstones = count;
        properties.seqnos = (properties.seqnos.0.min(seqnos.0), properties.seqnos.1.max(seqnos.1));
        self.pending_bytes += encoded.len();
        Ok(())
    }

    /// Records that an entry expires at this time.
    pub(crate) fn note_expiry(&mut self, secs: u64) {
        self.properties.expires_secs = self.properties.expires_secs.min(secs);
    }

    /// Records that an entry refers to this many bytes of a blob file.
    pub(crate) fn note_blob(&mut self, number: FileNumber, bytes: u64) {
        let blobs = &mut self.properties.blobs;
        match blobs.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => blobs[at].1 += bytes,
            Err(at) => blobs.insert(at, (number, bytes)),
        }
    }

    /// Returns the approximate length of the file if it were finished now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterBuilder::estimated_bytes);
        let waiting: usize = self.training.as_ref().map_or(0, Training::bytes);
        let blocks = self.data.estimated_bytes() + self.index.estimated_bytes() + filter + waiting;
        self.out.position() + (blocks + self.pending_bytes + FOOTER_BYTES) as u64
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Writes the remaining data, syncs the file, and returns its description. Does not make the
    /// file's name durable.
    ///
    /// Errors: those of the file, and [`Error::Invalid`] for a table without entries and range
    /// tombstones.
    pub(crate) fn finish(mut self) -> Result<TableMeta> {
        let meta = self.finish_file()?;
        // The manifest refuses anything else.
        let number = meta.number;
        ensure!(meta.smallest <= meta.largest, "table {number} begins after its end");
        ensure!(meta.seqnos.0 <= meta.seqnos.1, "table {number} has the numbers {:?}", meta.seqnos);
        ensure!(meta.tombstones <= meta.entries, "table {number} has {} tombstones", meta.tombstones);
        ensure!(meta.blobs.is_sorted_by(|a, b| a.0 < b.0), "table {number} refers to {:?}", meta.blobs);
        Ok(meta)
    }

    fn finish_file(&mut self) -> Result<TableMeta> {
        self.check_usable()?;
        if self.properties.entries == 0 && self.range_tombstones.is_none() {
            return Err(Error::invalid("a table needs at least one entry"));
        }
        if !self.data.is_empty() {
            self.cut_block(None)?;
        }
        if let Some(training) = self.training.take() {
            self.end_training(training)?;
        }
        self.cut_partition()?;
        ensure!(self.data.is_empty() && self.index.is_empty(), "entries of the last block are left");
        ensure!(self.hashes.is_empty(), "{} hashes are in no filter", self.hashes.len());
        ensure!(
            (self.properties.data_blocks == 0) == (self.properties.entries == 0),
            "{} entries in {} blocks",
            self.properties.entries,
            self.properties.data_blocks
        );
        ensure!(
            self.properties.deletes + self.properties.merges <= self.properties.entries,
            "{} deletes and {} merges of {} entries",
            self.properties.deletes,
            self.properties.merges,
            self.properties.entries
        );
        self.properties.data_bytes = self.out.position();
        let top = self.write_partitions()?;
        self.write_rest(&top)?;
        self.out.flush()?;
        // ORDER: every byte is in the file before the sync. The manifest may only refer to a synced
        // table.
        self.out.file().sync_data()?;
        let properties = std::mem::take(&mut self.properties);
        Ok(TableMeta {
            number: self.number,
            bytes: self.out.position(),
            smallest: properties.smallest,
            largest: properties.largest,
            seqnos: properties.seqnos,
            entries: properties.entries + properties.range_tombstones,
            tombstones: properties.deletes + properties.range_tombstones,
            raw_bytes: properties.key_bytes + properties.value_bytes,
            oldest_secs: properties.oldest_secs,
            newest_secs: properties.newest_secs,
            expires_secs: properties.expires_secs,
            checksum: self.checksum.digest(),
            footer: self.footer,
            blobs: properties.blobs,
            ingested: None,
        })
    }

    fn check_usable(&self) -> Result<()> {
        if self.failed {
            return Err(Error::invalid("an earlier call of this table's writer failed"));
        }
        Ok(())
    }

    /// Returns the number of bytes that `key` shares with the last one, or `None` when it is the
    /// same key.
    #[inline]
    fn check_order(&self, key: &[u8], seqno: Seqno) -> Result<Option<usize>> {
        let Some((last, last_seqno)) = &self.last else { return Ok(Some(0)) };
        let shared = common_len(last, key);
        let ordered = match (last.get(shared), key.get(shared)) {
            (Some(before), Some(now)) => before < now,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) if seqno < *last_seqno => return Ok(None),
            (None, None) => false,
        };
        if ordered {
            return Ok(Some(shared));
        }
        let (key, last) = (key.escape_ascii(), last.escape_ascii());
        Err(Error::invalid(format!("{key} at {seqno} does not come after {last} at {last_seqno}")))
    }

    /// Adds the hashes for the filters. Each block adds its first prefix again, because it may
    /// begin a partition, whose filter must be complete.
    fn note_hashes(&mut self, key: &[u8], shared: Option<usize>) {
        debug_assert!(self.filter.is_some(), "hashes for a table without a filter");
        let fresh = self.data.is_empty();
        if shared.is_none() && !fresh {
            return;
        }
        self.hashes.push(hash_key(key));
        let Some(prefix) = self.options.prefix.and_then(|extractor| extractor.prefix_of(key)) else { return };
        if fresh || self.last_prefix != prefix {
            self.hashes.push(hash_prefix(prefix));
            self.last_prefix.clear();
            self.last_prefix.extend_from_slice(prefix);
        }
    }

    /// Closes the data block. `next` is the first key after it.
    fn cut_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        self.cut_block_with(next, None)
    }

    /// Closes the data block as `cut_block` does. `last_value` is the value of the last entry, if
    /// that was added without it.
    fn cut_block_with(&mut self, next: Option<&[u8]>, last_value: Option<&[u8]>) -> Result<()> {
        let mut between = std::mem::take(&mut self.separator);
        between.clear();
        debug_assert!(self.last.is_some() && !self.data.is_empty(), "a block without entries is closed");
        let last = self.last.as_ref().map_or(&[][..], |(key, _)| key);
        match next {
            Some(next) => separator(last, next, &mut between),
            None => between.extend_from_slice(last),
        }
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        // Room for the header of the frame: a block that is stored uncompressed is written from
        // this buffer.
        raw.resize(HEADER_BYTES, 0);
        self.data.finish_with(last_value, &mut raw);
        let hashes = std::mem::take(&mut self.hashes);
        let done = match &mut self.training {
            None => {
                self.write_framed(Role::Data, &mut raw).and_then(|it| self.note_data(it, &between, &hashes))
            }
            Some(training) => match training.push(&raw[HEADER_BYTES..], &between, &hashes) {
                false => Ok(()),
                true => match self.training.take() {
                    Some(training) => self.end_training(training),
                    None => Ok(()),
                },
            },
        };
        (self.raw, self.hashes, self.separator) = (kept(raw), hashes, between);
        self.hashes.clear();
        done
    }

    fn end_training(&mut self, training: Training) -> Result<()> {
        debug_assert!(self.training.is_none(), "blocks are still held back for training");
        debug_assert!(self.dictionary.is_none(), "a table has one dictionary");
        debug_assert_eq!(self.properties.data_blocks, 0, "a block was written before the dictionary");
        if let Some((dictionary, digested)) = training.train() {
            self.sealer.set_dictionary(&digested)?;
            self.pending_bytes += dictionary.as_bytes().len();
            self.dictionary = Some(dictionary);
        }
        training
            .waiting
            .iter()
            .try_for_each(|block| self.write_data(&block.raw, &block.separator, &block.hashes))
    }

    /// Writes a data block and adds it to index and filter.
    fn write_data(&mut self, raw: &[u8], between: &[u8], hashes: &[u64]) -> Result<()> {
        let handle = self.write_block(Role::Data, raw)?;
        self.note_data(handle, between, hashes)
    }

    /// Adds a data block to index and filter.
    fn note_data(&mut self, handle: Handle, between: &[u8], hashes: &[u64]) -> Result<()> {
        debug_assert_eq!(handle.end(), self.out.position(), "the block was not written last");
        debug_assert!(self.index.last_key() <= between, "separators ascend");
        debug_assert!(self.filter.is_none() || !hashes.is_empty(), "the keys of a block are in no filter");
        let ordinal = self.properties.data_blocks;
        self.properties.data_blocks =
            ordinal.checked_add(1).ok_or_else(|| Error::invalid("a table has too many blocks"))?;
        if let Some(filter) = &mut self.filter {
            hashes.iter().for_each(|hash| filter.add(*hash));
        }
        let last = self.index.last_key();
        let shared = common_len(last, between);
        let same = !self.index.is_empty() && shared == last.len() && shared == between.len();
        let value = DataValue { handle, ordinal }.encode();
        self.index.add(between, (!same).then_some(shared), 0, Kind::Put, &value);
        if self.index.estimated_bytes() >= self.options.partition_bytes {
            self.cut_partition()?;
        }
        Ok(())
    }

    /// Closes the index partition and its filter.
    fn cut_partition(&mut self) -> Result<()> {
        if self.index.is_empty() {
            return Ok(());
        }
        let separator = self.index.last_key().to_vec();
        debug_assert!(
            self.partitions.last().is_none_or(|before| before.separator <= separator),
            "the separators of partitions ascend"
        );
        let mut index = Vec::new();
        self.index.finish(&mut index);
        let filter = match &mut self.filter {
            None => None,
            Some(builder) => {
                let mut filter = Vec::new();
                builder.finish(&mut filter).map_err(|error| Error::invalid(error.to_string()))?;
                Some(filter)
            }
        };
        self.pending_bytes += index.len() + filter.as_ref().map_or(0, Vec::len);
        self.partitions.push(PendingPartition { separator, index, filter });
        Ok(())
    }

    /// Writes filters, then index partitions, and returns the top index.
    fn write_partitions(&mut self) -> Result<Vec<u8>> {
        let partitions = std::mem::take(&mut self.partitions);
        self.properties.partitions = partitions.len() as u32;
        debug_assert!(
            partitions.len() <= self.properties.data_blocks as usize,
            "{} partitions of {} blocks",
            partitions.len(),
            self.properties.data_blocks
        );
        let mut filters = Vec::with_capacity(partitions.len());
        for partition in &partitions {
            let handle =
                partition.filter.as_ref().map(|filter| self.write_block(Role::Filter, filter)).transpose()?;
            filters.push(handle);
        }
        debug_assert_eq!(filters.len(), partitions.len(), "a filter, or none, for each partition");
        let filters_end = self.out.position();
        self.properties.filter_bytes = filters_end - self.properties.data_bytes;
        let mut top = BlockBuilder::new(1);
        for (ordinal, (partition, filter)) in partitions.iter().zip(filters).enumerate() {
            let index = self.write_block(Role::Index, &partition.index)?;
            let shared = common_len(top.last_key(), &partition.separator);
            let same = !top.is_empty() && top.last_key() == partition.separator;
            let value = Partition { index, filter }.encode(ordinal as u32);
            top.add(&partition.separator, (!same).then_some(shared), 0, Kind::Put, &value);
        }
        self.properties.index_bytes = self.out.position() - filters_end;
        let mut bytes = Vec::new();
        if !top.is_empty() {
            top.finish(&mut bytes);
        }
        Ok(bytes)
    }

    /// Writes range tombstones, dictionary, properties, top index and footer.
    fn write_rest(&mut self, top: &[u8]) -> Result<()> {
        let entries = self.last.take().map(|(last, _)| last);
        self.properties.largest = entries.clone().unwrap_or_default();
        if let Some(tombstones) = self.range_tombstones.take() {
            self.properties.range_tombstone_block =
                Some(self.write_block(Role::RangeTombstones, &tombstones.encoded)?);
            let RangeBlock { smallest, largest, .. } = tombstones;
            let bounds = &mut self.properties;
            if entries.is_none() || smallest < bounds.smallest {
                bounds.smallest = smallest;
            }
            if entries.is_none() || largest > bounds.largest {
                bounds.largest = largest;
            }
        }
        if let Some(dictionary) = self.dictionary.take() {
            self.properties.dictionary_block =
                Some(self.write_block(Role::Dictionary, dictionary.as_bytes())?);
        }
        // A reader refuses anything else.
        let written = &self.properties;
        ensure!(
            top.is_empty() == (written.partitions == 0),
            "{} partitions without an index",
            written.partitions
        );
        ensure!(
            (written.range_tombstones == 0) == written.range_tombstone_block.is_none(),
            "{} range tombstones and their block at {:?}",
            written.range_tombstones,
            written.range_tombstone_block
        );
        let encoded = self.properties.encode();
        let properties = self.write_block(Role::Properties, &encoded)?;
        let top = self.write_block(Role::TopIndex, top)?;
        let content = Footer { top, properties, number: self.number, body: self.checksum.digest() };
        let footer = content.encode();
        let file_bytes = self.out.position() + FOOTER_BYTES as u64;
        ensure!(Footer::decode(&footer, file_bytes) == Ok(content), "a footer that would not be read back");
        self.footer = Footer::sum_of(&footer);
        self.write(&footer)?;
        ensure!(self.out.position() == file_bytes, "the table ends at {}", self.out.position());
        Ok(())
    }

    fn write_block(&mut self, role: Role, raw: &[u8]) -> Result<Handle> {
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.clear();
        let handle = self.sealer.seal(role, raw, self.out.position(), &mut sealed);
        let done = handle.and_then(|handle| self.write(&sealed).map(|()| handle));
        debug_assert!(
            done.as_ref().is_ok_and(|handle| handle.end() == self.out.position()) || done.is_err(),
            "a block of another length than its handle says"
        );
        self.sealed = kept(sealed);
        self.failed |= done.is_err();
        done
    }

    /// Writes a block as `write_block` does, if it has room for the header before it.
    fn write_framed(&mut self, role: Role, framed: &mut [u8]) -> Result<Handle> {
        let mut sealed = std::mem::take(&mut self.sealed);
        let handle = self.sealer.seal_in_place(role, framed, self.out.position(), &mut sealed);
        let done = handle.and_then(|(handle, is_scratch)| {
            self.write(if is_scratch { &sealed } else { framed }).map(|()| handle)
        });
        self.sealed = kept(sealed);
        self.failed |= done.is_err();
        done
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.checksum.update(bytes);
        self.out.write_all(bytes).map_err(|error| {
            self.failed = true;
            error.into()
        })
    }
}

/// Returns the buffer for reuse, or an empty one if it is so large that its memory should be
/// released.
fn kept(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_BYTES { Vec::new() } else { buffer }
}
