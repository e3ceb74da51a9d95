//! The bare device as a contender: a put writes the record into an allocated file and calls
//! `fdatasync`. It shows the best that a log without group commit can reach.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::{File, Fs, OpenOptions, StdFs};

use super::guarantee::Guarantee;
use super::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};
use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;

/// The contender's name.
pub const NAME: &str = "bare fdatasync";

/// The file is overwritten from its beginning when its end is reached.
const FILE_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: usize = 1 << 20;

/// The bare device.
#[derive(Debug, Default)]
pub struct Device;

impl KvStore for Device {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        String::new()
    }

    fn guarantee(&self, _: Durability) -> Guarantee {
        Guarantee::equal("write and fdatasync for each record")
    }

    fn settings(&self, _: &KvSettings) -> Settings {
        settings([("file", "64 MiB, written and synced before the clock starts"), ("group commit", "none")])
    }

    fn code(&self, _: &KvSettings) -> String {
        "// for each record: write, then fdatasync\n".to_owned()
    }

    fn open(&self, dir: &Path, _: &KvSettings) -> Result<Box<dyn KvDb>> {
        let file = StdFs::new().open(&dir.join("device"), OpenOptions::create_new())?;
        let block = vec![0xa5; BLOCK_BYTES];
        for offset in (0..FILE_BYTES).step_by(BLOCK_BYTES) {
            file.write_all_at(&block, offset)?;
        }
        file.sync_data()?;
        Ok(Box::new(Open { file, next: AtomicU64::new(0) }))
    }
}

struct Open {
    file: Box<dyn File>,
    next: AtomicU64,
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Writer { open: self, record: Vec::new() }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Writer<'a> {
    open: &'a Open,
    record: Vec<u8>,
}

fn refuse<T>() -> Result<T> {
    Err(Error::engine(NAME, "a device supports puts only"))
}

impl KvSession for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.record.clear();
        self.record.extend_from_slice(key);
        self.record.extend_from_slice(value);
        let room = FILE_BYTES - self.record.len() as u64;
        let offset = self.open.next.fetch_add(self.record.len() as u64, Ordering::Relaxed) % room;
        self.open.file.write_all_at(&self.record, offset)?;
        Ok(self.open.file.sync_data()?)
    }

    fn delete(&mut self, _: &[u8]) -> Result<()> {
        refuse()
    }

    fn write_batch(&mut self, _: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        refuse()
    }

    fn get(&mut self, _: &[u8], _: &mut dyn FnMut(&[u8])) -> Result<bool> {
        refuse()
    }

    fn scan(&mut self, _: &[u8], _: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        refuse()
    }
}
