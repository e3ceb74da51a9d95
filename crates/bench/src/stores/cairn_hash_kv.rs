//! Cairn's constant table behind the interface of a key-value store. Puts before the first flush go
//! into the build; after it the table is read-only. For replays of traces without writes.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use cairn_hash::table::{BuildOptions, Builder, Mode, Reader, ReaderOptions};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "cairn-hash";
const FILE: &str = "data.cairn";

/// `cairn_hash::table`, built by the first flush.
#[derive(Debug, Default)]
pub struct CairnHashKv;

impl KvStore for CairnHashKv {
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
        Guarantee::stronger("the table appears whole and synced, and is not written after that")
    }

    fn settings(&self, _: &KvSettings) -> Settings {
        settings([("mode", "mmap"), ("checksums", "each page when first touched"), ("compression", "none")])
    }

    fn code(&self, _: &KvSettings) -> String {
        "use cairn_hash::table::{BuildOptions, Builder, Mode, Reader, ReaderOptions};\n\
         let mut builder = Builder::create(\"store.cairn\", BuildOptions::default())?;\n\
         // builder.put(key, value)? for each entry, then\nbuilder.finish()?;\n\
         let reader = Reader::open(\"store.cairn\", ReaderOptions::default().mode(Mode::Mmap))?;\n"
            .to_owned()
    }

    fn open(&self, dir: &Path, _: &KvSettings) -> Result<Box<dyn KvDb>> {
        let path = dir.join(FILE);
        let builder = Builder::create(&path, BuildOptions::default())?;
        Ok(Box::new(Open { path, builder: Mutex::new(Some(builder)), reader: OnceLock::new() }))
    }
}

struct Open {
    path: PathBuf,
    /// `Some` until the first flush.
    builder: Mutex<Option<Builder>>,
    /// Set by the first flush.
    reader: OnceLock<Reader>,
}

impl Open {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        match &mut *self.builder.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(builder) => Ok(builder.put(key, value)?),
            None => Err(no_writes()),
        }
    }
}

fn no_writes() -> Error {
    Error::engine(NAME, "takes no writes once it is built, but the trace has some")
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session { open: self }))
    }

    fn flush(&self) -> Result<()> {
        let builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(builder) = builder {
            builder.finish()?;
            let reader = Reader::open(&self.path, ReaderOptions::default().mode(Mode::Mmap))?;
            // Cannot be set already: only the call that took the builder comes here.
            let _ = self.reader.set(reader);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Session<'a> {
    open: &'a Open,
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.open.put(key, value)
    }

    fn delete(&mut self, _: &[u8]) -> Result<()> {
        Err(no_writes())
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        fill(&mut Filling(self.open))
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(reader) = self.open.reader.get() else {
            return Err(Error::engine(NAME, "is read before it is built"));
        };
        let value = reader.get(key)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&mut self, keys: &[&[u8]], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        match self.open.reader.get() {
            Some(reader) => Ok(reader.get_many(keys, visit)?),
            None => Err(Error::engine(NAME, "is read before it is built")),
        }
    }

    /// Collects and sorts all entries, for the check at the end of a replay. A scan from any other
    /// key than the empty one is not supported.
    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let Some(reader) = self.open.reader.get().filter(|_| from.is_empty()) else {
            return Err(Error::engine(NAME, "keeps no key order to scan in"));
        };
        let mut entries = Vec::new();
        for entry in reader.scan() {
            let entry = entry?;
            entries.push((entry.key.into_owned(), entry.value.into_owned()));
        }
        entries.sort_unstable();
        for (key, value) in &entries {
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

struct Filling<'a>(&'a Open);

impl KvBatch for Filling<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }

    fn delete(&mut self, _: &[u8]) -> Result<()> {
        Err(no_writes())
    }
}
