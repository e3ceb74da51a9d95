//! Cairn's constant store where a key-value store is asked for: what is put is gathered until a flush, which builds the table; from then on it is only read.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use cairn_hash::table::{BuildOptions, Builder, Mode, Reader, ReaderOptions};

use super::{Settings, settings};
use crate::error::{Error, Result};
use crate::suite_kv::{Guarantee, KvBatch, KvDb, KvSession, KvSettings, KvStore};
use crate::workload::Durability;

/// The store's name.
pub const NAME: &str = "cairn-hash";
const FILE: &str = "data.cairn";

fn only_read() -> Error {
    Error::engine(NAME, "the table is built and takes no more writes")
}

/// `cairn_hash::table`, built once.
#[derive(Debug, Default)]
pub struct CairnConstant;

impl KvStore for CairnConstant {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "Cairn's constant store"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn ours(&self) -> bool {
        true
    }

    fn guarantee(&self, _: Durability) -> Guarantee {
        Guarantee::equal("the whole build is synced")
    }

    fn settings(&self, _: &KvSettings) -> Settings {
        settings([("mode", "mmap"), ("checksums", "each page when first touched"), ("compression", "none")])
    }

    fn open(&self, dir: &Path, _: &KvSettings) -> Result<Box<dyn KvDb>> {
        let path = dir.join(FILE);
        let builder = Builder::create(&path, BuildOptions::default())?;
        Ok(Box::new(Open { path, builder: Mutex::new(Some(builder)), reader: OnceLock::new() }))
    }
}

struct Open {
    path: PathBuf,
    builder: Mutex<Option<Builder>>,
    reader: OnceLock<Reader>,
}

impl Open {
    fn reader(&self) -> Result<&Reader> {
        self.reader.get().ok_or_else(|| Error::engine(NAME, "the table is not built yet"))
    }
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session(self)))
    }

    fn flush(&self) -> Result<()> {
        let Some(builder) = self.builder.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        builder.finish()?;
        let reader = Reader::open(&self.path, ReaderOptions::default().mode(Mode::Mmap))?;
        self.reader.set(reader).map_err(|_| only_read())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Session<'a>(&'a Open);

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut builder = self.0.builder.lock().unwrap_or_else(PoisonError::into_inner);
        builder.as_mut().ok_or_else(only_read)?.put(key, value)?;
        Ok(())
    }

    fn delete(&mut self, _: &[u8]) -> Result<()> {
        Err(only_read())
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        struct One<'s, 'a>(&'s mut Session<'a>);
        impl KvBatch for One<'_, '_> {
            fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
                self.0.put(key, value)
            }

            fn delete(&mut self, key: &[u8]) -> Result<()> {
                self.0.delete(key)
            }
        }
        fill(&mut One(self))
    }

    #[inline]
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.reader()?.get(key)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    /// In the order of keys, which the table does not have: all of them are gathered first. For checks, not for measuring.
    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut all = Vec::new();
        for entry in self.0.reader()?.scan() {
            let entry = entry?;
            if *entry.key >= *from {
                all.push((entry.key.to_vec(), entry.value.to_vec()));
            }
        }
        all.sort_unstable();
        all.iter().all(|(key, value)| visit(key, value));
        Ok(())
    }
}
