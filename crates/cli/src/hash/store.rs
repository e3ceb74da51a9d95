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

/// Values up to this size are taken in one piece when they are copied.
const WHOLE_VALUE_BYTES: u64 = 1 << 20;

/// A store that is open for reading.
#[derive(Debug)]
pub enum Store {
    /// Cairn's own format: a base and its deltas.
    Table(Generations),
    /// Sparkey's.
    Sparkey(Box<SparkeyReader>),
}

/// Which format a store has by its name: `.spi` and `.spl` are Sparkey's, anything else is Cairn's
/// own, unless only a Sparkey pair of that name is there.
pub fn kind_of(fs: &dyn Fs, path: &Path) -> Result<Kind> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("spi" | "spl")) {
        return Ok(Kind::Sparkey);
    }
    let is_pair = !fs.exists(path)? && fs.exists(&sparkey::index_path(path))?;
    Ok(if is_pair { Kind::Sparkey } else { Kind::Cairn })
}

/// Whether two names mean one file; a name without a file is another one.
pub fn same_file(fs: &dyn Fs, a: &Path, b: &Path) -> Result<bool> {
    Ok(a == b || (fs.exists(a)? && fs.exists(b)? && fs.metadata(a)?.id == fs.metadata(b)?.id))
}

impl Store {
    /// Opens the store at `path`.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Store> {
        Store::open_with(fs, path, table::ReaderOptions::default(), sparkey::ReaderOptions::default())
    }

    /// [`Store::open`] of files that are read where others are mapped.
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
        // Some cache misses more for a key that is absent, which no command notices.
        let pair = &pair.check_absent(true);
        Ok(match kind_of(&**fs, path)? {
            Kind::Cairn => Store::Table(Generations::open_in(fs, path, table)?),
            Kind::Sparkey => Store::Sparkey(Box::new(SparkeyReader::open_in(fs, path, pair)?)),
        })
    }

    /// [`Store::open`] for whoever would lose what it does not show. Errors: a log that goes on
    /// beyond its index, too.
    pub fn open_all_of(fs: &Arc<dyn Fs>, path: &Path) -> Result<Store> {
        let store = Store::open(fs, path)?;
        if let Store::Sparkey(pair) = &store {
            pair.check_indexed()?;
        }
        Ok(store)
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(match self {
            Store::Table(store) => store.get(key)?,
            Store::Sparkey(store) => store.get(key)?,
        })
    }

    /// True when there is a value for `key`.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(match self {
            Store::Table(store) => store.contains(key)?,
            Store::Sparkey(store) => store.contains(key)?,
        })
    }

    /// The value of `key` as a stream.
    pub fn value_reader(&self, key: &[u8]) -> Result<Option<Box<dyn Read + '_>>> {
        Ok(match self {
            Store::Table(store) => store.get_reader(key)?.map(|value| Box::new(value) as Box<dyn Read>),
            Store::Sparkey(store) => store.value_reader(key)?.map(|value| Box::new(value) as Box<dyn Read>),
        })
    }

    /// Hands every live entry to `each` until that says false.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        match self {
            Store::Table(store) => {
                let visited = store.for_each(|key, value| match each(key, value) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(Ended::Enough),
                    Err(error) => Err(Ended::Failed(error)),
                });
                match visited {
                    Ok(()) | Err(Ended::Enough) => Ok(()),
                    Err(Ended::Failed(error)) => Err(error),
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

    /// Hands every live entry to a writer; large values of a Sparkey log piece by piece.
    pub fn copy_to(&self, sink: &mut dyn Sink) -> Result<()> {
        let Store::Sparkey(store) = self else {
            // Values of a mapped table are borrowed from the map: they cost no memory, however long
            // they are.
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

/// What a command does, recorded where `cairn trace record` asks for it; the trace ends with it.
///
/// Not through `cairn_trace`'s wrapper: that knows a single table and no deltas, no Sparkey pair,
/// and no writes.
#[derive(Debug)]
pub struct Recording(Option<Recorder>);

impl Recording {
    /// Begins where the environment asks for it.
    pub fn begin() -> Recording {
        Recording(recording::begin("cairn hash"))
    }

    /// A lookup, with the bytes of the value.
    pub fn get(&self, key: &[u8], found: Option<usize>) {
        self.note(|recorder| recorder.get(0, key, found));
    }

    /// A lookup that asked only whether there is a value.
    pub fn contains(&self, key: &[u8]) {
        self.note(|recorder| recorder.record(0, key, Detail::Get(None)));
    }

    /// A removal.
    pub fn delete(&self, key: &[u8]) {
        self.note(|recorder| recorder.delete(0, key));
    }

    /// A scan from the first entry of the file on.
    pub fn scan(&self, entries: u64) {
        self.note(|recorder| recorder.scan(0, &[], entries, false));
    }

    /// Records what goes into a sink.
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
        // The recorder's end by itself could tell nobody that the disk was full.
        recording::end(self.0.as_ref());
    }
}

/// A sink whose records are in the trace.
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

/// Why a visit of all entries ended before the last one.
enum Ended {
    Enough,
    Failed(Error),
}

impl From<cairn_hash::Error> for Ended {
    fn from(error: cairn_hash::Error) -> Self {
        Ended::Failed(error.into())
    }
}
