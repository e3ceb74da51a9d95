//! Appending blocks to a file, and the writer of one thread that importers use.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{File, Fs, OpenOptions};

use crate::error::{Error, Result};
use crate::event::{Detail, Event};
use crate::format::{
    self, BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, BlockHead, Frame, Header, KEY_BYTES_MAX, KeyForm, StoredKey,
};

/// A block is written once it has so many bytes: some five thousand operations.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

const _: () = assert!(BLOCK_BYTES + 2 * KEY_BYTES_MAX + 128 < BLOCK_BYTES_MAX);

/// The end of a file under construction.
#[derive(Debug)]
pub(crate) struct Tail {
    fs: Arc<dyn Fs>,
    file: Box<dyn File>,
    offset: u64,
    blocks: u64,
    file_id: u64,
    /// Blocks say of how many keys one is recorded.
    adaptive: bool,
    pub records: u64,
}

/// What the end of a trace tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub last_ns: u64,
    /// Operations that were not recorded.
    pub dropped: u64,
    /// Of how many keys one was recorded in the end.
    pub sample: u32,
    /// What an operation took where that was decided; 0 where nothing was.
    pub operation_ns: u64,
}

impl Tail {
    /// Makes the file, which must not exist, with its header. Leaves none where that cannot be
    /// written.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, header: &Header) -> Result<Tail> {
        let file = fs.open(path, OpenOptions::create_new())?;
        let bytes = header.encode();
        if let Err(error) = file.write_all_at(&bytes, 0) {
            // Without its header it would be taken for a damaged file of somebody else's.
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

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Appends a block whose first bytes are room for its head, recorded of one key in `sample`.
    /// `head` lacks only that, its number and its length.
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

    /// Marks the end, with what there is to tell, and makes the file durable, name included.
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
        // ORDER: the content before the name, which is what tells that there is a trace.
        Ok(self.fs.sync_parent(self.file.path())?)
    }
}

/// Records of one lane that are not in the file yet.
#[derive(Debug)]
pub(crate) struct Pending {
    lane: u32,
    /// Room for the head, then records.
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

    /// True once the block is worth writing.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.block.len() >= BLOCK_BYTES
    }

    /// Adds a record at `time_ns`, which is taken for the last one's where it is before that.
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

    /// The next record is at this time; how long after the last one that is. Begins a block where
    /// there is none.
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

    /// Forgets what there is; how many records that were.
    pub fn discard(&mut self) -> u64 {
        u64::from(std::mem::take(&mut self.records))
    }

    /// Writes what there is, recorded of one key in `sample`, and is empty after it, whatever came
    /// of it.
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

/// Writes a trace whose operations one thread has in order, as an importer does.
///
/// After an error the writer is of no use. A file without [`Writer::finish`] reads as one that was
/// cut.
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
    /// Makes the file, which must not exist. Errors: [`Error::Vfs`].
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

    /// Adds an event; its lane does not count. Keys of a hashed trace are hashed already. A time
    /// before the last one's is taken for that; in a trace without times each event gets the next
    /// number, from 0.
    ///
    /// Errors: [`Error::Invalid`] for a key that is too long or no hash, [`Error::Vfs`].
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
                    Error::invalid(format!("a key of {} bytes in a trace of hashes: expected 8", key.len()))
                })?;
                Ok(StoredKey::Hash(u64::from_le_bytes(hash), key_bytes))
            }
            KeyForm::Raw if key.len() > KEY_BYTES_MAX => {
                Err(Error::invalid(format!("a key of {} bytes: expected at most {KEY_BYTES_MAX}", key.len())))
            }
            KeyForm::Raw => Ok(StoredKey::Raw(key)),
        }
    }

    /// Writes what is left and marks the end; the number of records. Durable when it returns.
    pub fn finish(mut self) -> Result<u64> {
        self.pending.flush(&mut self.tail, self.sample)?;
        let (last_ns, sample) = (self.last_ns, self.sample);
        self.tail.finish(Totals { last_ns, dropped: 0, sample, operation_ns: 0 })?;
        Ok(self.tail.records)
    }
}

#[cfg(test)]
mod tests;
