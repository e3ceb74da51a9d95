//! An open store of either format.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cairn_hash::generations::Generations;
use cairn_hash::sparkey::{self, SparkeyReader};
use cairn_hash::table;
use cairn_trace::{Detail, Recorder};
use cairn_vfs::Fs;

use crate::args::hash::Kind;
use crate::error::{Error, Result};
use crate::input::Sink;
use crate::recording;

/// Values up to this size are copied in one piece.
const WHOLE_VALUE_BYTES: u64 = 1 << 20;

/// A store that is open for reading.
#[derive(Debug)]
pub enum Store {
    /// Cairn's own format: a base and its deltas.
    Table(Generations),
    /// A Sparkey pair.
    Sparkey(Box<SparkeyReader>),
}

/// Returns the format of a store by its name: `.spi` and `.spl` mean Sparkey, everything else means
/// Cairn's own format, unless only a Sparkey pair of that name exists.
pub fn kind_of(fs: &dyn Fs, path: &Path) -> Result<Kind> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("spi" | "spl")) {
        return Ok(Kind::Sparkey);
    }
    let is_pair = !fs.exists(path)? && fs.exists(&sparkey::index_path(path))?;
    Ok(if is_pair { Kind::Sparkey } else { Kind::Cairn })
}

/// Returns true if two paths name the same file. A path without a file differs from every other.
pub fn same_file(fs: &dyn Fs, a: &Path, b: &Path) -> Result<bool> {
    Ok(a == b || (fs.exists(a)? && fs.exists(b)? && fs.metadata(a)?.id == fs.metadata(b)?.id))
}

impl Store {
    /// Opens the store at `path`.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Store> {
        Store::open_with(fs, path, table::ReaderOptions::default(), sparkey::ReaderOptions::default())
    }

    /// Like [`Store::open`], but reads files instead of mapping them.
    pub fn open_unmapped(fs: &Arc<dyn Fs>, path: &Path) -> Result<Store> {
        let pair = sparkey::ReaderOptions::default().mode(sparkey::Mode::Pread);
        Store::open_with(fs, path, table::ReaderOptions::default().mode(table::Mode::Pread), pair)
    }

    fn open_with(
        fs: &Arc<dyn Fs>,
        path: &Path,
        table: table::ReaderOptions,
        pair: sparkey::ReaderOptions,
    ) -> Result<Store> {
        // This costs a few cache misses for an absent key, which no command notices.
        let pair = &pair.check_absent(true);
        Ok(match kind_of(&**fs, path)? {
            Kind::Cairn => Store::Table(Generations::open_in(fs, path, table)?),
            Kind::Sparkey => Store::Sparkey(Box::new(SparkeyReader::open_in(fs, path, pair)?)),
        })
    }

    /// Like [`Store::open`], for commands that would lose entries that are not indexed. Errors:
    /// also if the log has records beyond its index.
    pub fn open_all_of(fs: &Arc<dyn Fs>, path: &Path) -> Result<Store> {
        let store = Store::open(fs, path)?;
        if let Store::Sparkey(pair) = &store {
            pair.check_indexed()?;
        }
        Ok(store)
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(match self {
            Store::Table(store) => store.get(key)?,
            Store::Sparkey(store) => store.get(key)?,
        })
    }

    /// Returns true if `key` has a value.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(match self {
            Store::Table(store) => store.contains(key)?,
            Store::Sparkey(store) => store.contains(key)?,
        })
    }

    /// Returns the value of `key` as a stream.
    pub fn value_reader(&self, key: &[u8]) -> Result<Option<Box<dyn Read + '_>>> {
        Ok(match self {
            Store::Table(store) => store.get_reader(key)?.map(|value| Box::new(value) as Box<dyn Read>),
            Store::Sparkey(store) => store.value_reader(key)?.map(|value| Box::new(value) as Box<dyn Read>),
        })
    }

    /// Passes every live entry to `each` until it returns false.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        match self {
            Store::Table(store) => {
                let visited = store.for_each(|key, value| match each(key, value) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(ScanEnd::Enough),
                    Err(error) => Err(ScanEnd::Failed(error)),
                });
                match visited {
                    Ok(()) | Err(ScanEnd::Enough) => Ok(()),
                    Err(ScanEnd::Failed(error)) => Err(error),
                }
            }
            Store::Sparkey(store) => {
                let mut scan = store.scan();
                while let Some(mut entry) = scan.next_entry()? {
                    let value = entry.value()?;
                    if !each(entry.key(), &value)? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Copies every live entry to a writer. Large values of a Sparkey log are copied in pieces.
    pub fn copy_to(&self, sink: &mut dyn Sink) -> Result<()> {
        let Store::Sparkey(store) = self else {
            // Values are borrowed from the mapped table, so even long ones need no memory.
            return self.for_each(|key, value| sink.put(key, value).map(|()| true));
        };
        let mut scan = store.scan();
        let mut value = Vec::new();
        while let Some(mut entry) = scan.next_entry()? {
            let bytes = entry.value_bytes();
            if bytes > WHOLE_VALUE_BYTES {
                let key = entry.key().to_vec();
                sink.put_stream(&key, bytes, &mut entry)?;
            } else {
                value.clear();
                entry.read_value(&mut value)?;
                sink.put(entry.key(), &value)?;
            }
        }
        Ok(())
    }
}

/// Records a command's operations under `cairn trace record`. The trace ends when this is dropped.
///
/// This does not use `cairn_trace`'s wrapper, which supports a single table but no deltas, no
/// Sparkey pairs and no writes.
#[derive(Debug)]
pub struct Recording(Option<Recorder>);

impl Recording {
    /// Starts recording if the environment requests it.
    pub fn begin() -> Recording {
        Recording(recording::begin("cairn hash"))
    }

    /// Records a lookup with the size of the value.
    pub fn get(&self, key: &[u8], found: Option<usize>) {
        self.note(|recorder| recorder.get(0, key, found));
    }

    /// Records a lookup that only checked whether there is a value.
    pub fn contains(&self, key: &[u8]) {
        self.note(|recorder| recorder.record(0, key, Detail::Get(None)));
    }

    /// Records a deletion.
    pub fn delete(&self, key: &[u8]) {
        self.note(|recorder| recorder.delete(0, key));
    }

    /// Records a scan from the start of the file.
    pub fn scan(&self, entries: u64) {
        self.note(|recorder| recorder.scan(0, &[], entries, false));
    }

    /// Wraps a sink so that its records are recorded.
    pub fn of<'a>(&'a self, sink: &'a mut dyn Sink) -> Recorded<'a> {
        Recorded { sink, recording: self }
    }

    fn note(&self, note: impl FnOnce(&Recorder)) {
        if let Some(recorder) = &self.0 {
            note(recorder);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // If the recorder ended on its own, an error such as a full disk would not be reported.
        recording::end(self.0.as_ref());
    }
}

/// A sink whose records go into the trace.
pub struct Recorded<'a> {
    sink: &'a mut dyn Sink,
    recording: &'a Recording,
}

impl Sink for Recorded<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.sink.put(key, value)?;
        self.recording.note(|recorder| recorder.put(0, key, value.len()));
        Ok(())
    }

    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        self.sink.put_stream(key, bytes, value)?;
        self.recording.note(|recorder| recorder.record(0, key, Detail::Put(bytes)));
        Ok(())
    }
}

/// The reason why an iteration over all entries ended early.
enum ScanEnd {
    Enough,
    Failed(Error),
}

impl From<cairn_hash::Error> for ScanEnd {
    fn from(error: cairn_hash::Error) -> Self {
        ScanEnd::Failed(error.into())
    }
}
