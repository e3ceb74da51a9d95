//! Appends blocks to a trace file. Also contains the single-threaded [`Writer`] that importers use.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{File, Fs, OpenOptions};

use crate::error::{Error, Result};
use crate::event::{Detail, Event};
use crate::format::{
    self, BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, BlockHead, Frame, Header, KEY_BYTES_MAX, KeyForm, StoredKey,
};

/// A block is written once it has this many bytes: some five thousand operations.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

const _: () = assert!(BLOCK_BYTES + 2 * KEY_BYTES_MAX + 128 < BLOCK_BYTES_MAX);

/// The write end of a trace file under construction.
#[derive(Debug)]
pub(crate) struct Tail {
    fs: Arc<dyn Fs>,
    file: Box<dyn File>,
    offset: u64,
    blocks: u64,
    file_id: u64,
    /// True if block heads record the sample (one key in n).
    adaptive: bool,
    pub records: u64,
}

/// The totals that the end block of a trace stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub last_ns: u64,
    /// The number of operations that were not recorded.
    pub dropped: u64,
    /// The final sample: one key in `sample` was recorded.
    pub sample: u32,
    /// The time of an operation when the share of keys was last lowered; 0 if it never was.
    pub operation_ns: u64,
}

impl Tail {
    /// Creates the file, which must not exist, and writes its header. Removes the file again if the
    /// header cannot be written.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, header: &Header) -> Result<Tail> {
        let file = fs.open(path, OpenOptions::create_new())?;
        let bytes = header.encode();
        if let Err(error) = file.write_all_at(&bytes, 0) {
            // A file without a header would look like a damaged file of another program.
            let _ = fs.remove(path);
            return Err(error.into());
        }
        Ok(Tail {
            fs: Arc::clone(fs),
            file,
            offset: bytes.len() as u64,
            blocks: 0,
            file_id: header.file_id,
            adaptive: header.adaptive.is_some(),
            records: 0,
        })
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Appends a block that holds the operations of one key in `sample`. The first bytes of `block`
    /// are reserved for the head. `head` is complete except for the sample, the block number and
    /// the length.
    pub fn append(&mut self, block: &mut [u8], head: BlockHead, sample: u32) -> Result<()> {
        assert!(block.len() >= BLOCK_HEAD_BYTES, "a block has room for its head");
        let bytes = (block.len() - BLOCK_HEAD_BYTES) as u32;
        let sample = if self.adaptive { u16::try_from(sample).unwrap_or(u16::MAX) } else { 0 };
        BlockHead { bytes, number: self.blocks, sample, ..head }.seal(block, self.file_id);
        self.file.write_all_at(block, self.offset)?;
        self.offset += block.len() as u64;
        self.blocks += 1;
        self.records += u64::from(head.records);
        Ok(())
    }

    /// Writes the end block with the totals. Makes the file and its directory entry durable.
    pub fn finish(&mut self, totals: Totals) -> Result<()> {
        let Totals { last_ns, dropped, sample, operation_ns } = totals;
        let mut block = vec![0; BLOCK_HEAD_BYTES];
        cairn_codec::varint::push(self.records, &mut block);
        cairn_codec::varint::push(dropped, &mut block);
        if self.adaptive {
            cairn_codec::varint::push(operation_ns, &mut block);
        }
        let head = BlockHead {
            end: true,
            bytes: 0,
            records: 0,
            lane: 0,
            sample: 0,
            first_ns: last_ns,
            last_ns,
            number: 0,
        };
        self.append(&mut block, head, sample)?;
        self.file.sync_data()?;
        // ORDER: the contents are synced before the name, because the name announces the trace.
        Ok(self.fs.sync_parent(self.file.path())?)
    }
}

/// Records of one lane that have not been written to the file yet.
#[derive(Debug)]
pub(crate) struct Pending {
    lane: u32,
    /// Space for the head, followed by the records.
    block: Vec<u8>,
    records: u32,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Pending {
    pub fn new(lane: u32) -> Pending {
        Pending { lane, block: Vec::new(), records: 0, first_ns: 0, last_ns: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub fn records(&self) -> u64 {
        u64::from(self.records)
    }

    /// Returns true once the block is large enough to be written.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.block.len() >= BLOCK_BYTES
    }

    /// Appends a record with the time `time_ns`. A time before that of the last record is replaced
    /// by that of the last record.
    #[inline]
    pub fn push(
        &mut self,
        time_ns: u64,
        (joined, keyspace): (bool, u32),
        key: StoredKey<'_>,
        detail: Detail<'_>,
        end: Option<StoredKey<'_>>,
    ) {
        let delta_ns = self.move_to(time_ns);
        format::encode(&mut self.block, Frame { joined, delta_ns, keyspace }, key, detail, end);
        self.records += 1;
    }

    /// Advances to the time of the next record and returns its distance from the last one. Starts a
    /// new block if none is open.
    fn move_to(&mut self, time_ns: u64) -> u64 {
        if self.records == 0 {
            self.block.clear();
            self.block.reserve(BLOCK_BYTES + 4096);
            self.block.resize(BLOCK_HEAD_BYTES, 0);
            self.first_ns = time_ns.max(self.last_ns);
            self.last_ns = self.first_ns;
        }
        let delta_ns = time_ns.saturating_sub(self.last_ns);
        self.last_ns += delta_ns;
        delta_ns
    }

    /// Discards the pending records and returns how many there were.
    pub fn discard(&mut self) -> u64 {
        u64::from(std::mem::take(&mut self.records))
    }

    /// Writes the pending records as a block that holds one key in `sample`. Nothing is pending
    /// afterwards, even after an error.
    pub fn flush(&mut self, tail: &mut Tail, sample: u32) -> Result<()> {
        if self.records == 0 {
            return Ok(());
        }
        let head = BlockHead {
            end: false,
            bytes: 0,
            records: self.records,
            lane: self.lane,
            sample: 0,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            number: 0,
        };
        self.records = 0;
        tail.append(&mut self.block, head, sample)
    }
}

/// Writes a trace from a single thread that has all operations in order, such as an importer.
///
/// After an error the writer must not be used any more. A file without [`Writer::finish`] reads as
/// a trace that was cut.
#[derive(Debug)]
pub struct Writer {
    tail: Tail,
    pending: Pending,
    keys: KeyForm,
    timed: bool,
    sample: u32,
    last_ns: u64,
    /// The number of the next event, from 0.
    number: u64,
}

impl Writer {
    /// Creates the file, which must not exist. Errors: [`Error::Vfs`].
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, header: &Header) -> Result<Writer> {
        let tail = Tail::create(fs, path, header)?;
        Ok(Writer {
            tail,
            pending: Pending::new(0),
            keys: header.keys,
            timed: header.timed,
            sample: header.sample,
            last_ns: 0,
            number: 0,
        })
    }

    /// Appends an event, ignoring its lane. For a trace of hashes the caller passes hashed keys. A
    /// time before that of the last event is replaced by that of the last event. In a trace without
    /// times, events are numbered from 0.
    ///
    /// Errors: [`Error::Invalid`] for a key that is too long or is not a hash, [`Error::Vfs`].
    pub fn add(&mut self, event: &Event<'_>) -> Result<()> {
        let key = self.stored(event.key, event.key_bytes)?;
        let end = match event.detail {
            Detail::DeleteRange { end, end_bytes } => Some(self.stored(end, end_bytes)?),
            _ => None,
        };
        let time_ns = if self.timed { event.time_ns.max(self.last_ns) } else { self.number };
        self.last_ns = time_ns;
        self.number += 1;
        self.pending.push(time_ns, (event.joined, event.keyspace), key, event.detail, end);
        if self.pending.is_full() { self.pending.flush(&mut self.tail, self.sample) } else { Ok(()) }
    }

    fn stored<'a>(&self, key: &'a [u8], key_bytes: u32) -> Result<StoredKey<'a>> {
        match self.keys {
            KeyForm::Hashed => {
                let hash = key.try_into().map_err(|_| {
                    Error::invalid(format!(
                        "a key of {} bytes in a trace of hashes: expected an 8-byte hash",
                        key.len()
                    ))
                })?;
                Ok(StoredKey::Hash(u64::from_le_bytes(hash), key_bytes))
            }
            KeyForm::Raw if key.len() > KEY_BYTES_MAX => {
                Err(Error::invalid(format!("a key of {} bytes: expected at most {KEY_BYTES_MAX}", key.len())))
            }
            KeyForm::Raw => Ok(StoredKey::Raw(key)),
        }
    }

    /// Writes the remaining records and the end block. Returns the number of records. The trace is
    /// durable when this returns.
    pub fn finish(mut self) -> Result<u64> {
        self.pending.flush(&mut self.tail, self.sample)?;
        let (last_ns, sample) = (self.last_ns, self.sample);
        self.tail.finish(Totals { last_ns, dropped: 0, sample, operation_ns: 0 })?;
        Ok(self.tail.records)
    }
}

#[cfg(test)]
mod tests;
