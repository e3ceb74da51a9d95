//! A table with deltas over it: changes without building everything again.
//!
//! ```text
//! words.cairn                 the base, generation g
//! words.cairn.delta.000004    a delta, generation g + 1: new values, and tombstones for deleted keys
//! words.cairn.delta.000005    a delta over that one
//! words.cairn.manifest        the list of these, by their ids; from the first delta on
//! words.cairn.lock            locked by whoever builds, appends or compacts
//! ```
//! A store that is called by a symbolic link is the one that the link leads to, with the files
//! beside that.
//!
//! Each delta names the id of the generation it stands on, so files of different stores cannot be
//! mixed up. All generations share the base's hash seed: a lookup hashes once and asks the newest
//! first; a generation that does not have the key costs one cache miss.
//!
//! Compacting writes one new base that carries the number of the newest delta it holds. Deltas up
//! to the base's own number are left-overs of a crash between publishing that base and removing
//! them, and are ignored. What is above it has to be what the list has: a generation that is
//! missing, or another one than was written, is an error. A store of one file that was never
//! appended to has no list.

mod live;
mod manifest;
mod writer;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Create, ErrorKind, File, Fs, OpenOptions, Operation, StdFs};

use crate::table::{Found, GROUP, Reader, ReaderOptions, Tag, ValueReader, read_header};
use crate::{Error, Result, names};

use manifest::{Generation, Manifest};

pub use live::Live;
pub use writer::{StoreBuilder, compact, compact_in};

/// A base and the deltas over it, open for reading. `&self`, `Send` and `Sync`, like the readers it
/// is made of.
#[derive(Debug)]
pub struct Generations {
    /// Newest first; the last one is the base.
    tables: Vec<Reader>,
    /// True when the store has a list of its generations.
    has_manifest: bool,
    /// The base's file, held open: as long as it is, no other file can have its id, so that equal
    /// ids are the same file and not a later one that took over the inode.
    base: Box<dyn File>,
    /// What it was called.
    path: PathBuf,
    /// What that led to.
    target: PathBuf,
    fs: Arc<dyn Fs>,
}

/// Attempts to see one state of a store that is being compacted meanwhile.
const OPEN_ATTEMPTS: usize = 100;

impl Generations {
    /// Opens the base at `path` and all deltas over it, on the real file system.
    ///
    /// Cost: lists the directory, to find the deltas, and opens each file. Errors: those of
    /// [`Reader::open`] for any of the files; [`Error::Mismatch`] for a file that does not belong
    /// here; [`Error::Missing`] for one that is gone.
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Generations> {
        Generations::open_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path.as_ref(), options)
    }

    /// [`Generations::open`] on any file system.
    pub fn open_in(fs: &Arc<dyn Fs>, path: &Path, options: ReaderOptions) -> Result<Generations> {
        // BOUND: a compaction between two looks at the directory makes another attempt necessary;
        // it takes far longer than an attempt, so more than two are hardly ever needed.
        for _ in 0..OPEN_ATTEMPTS {
            let base = fs.open(path, OpenOptions::read())?;
            let before = base.id();
            // ORDER: after the open, so that a link which leads elsewhere by now is seen below.
            let target = names::followed(&**fs, path)?;
            let listed = Manifest::read(&**fs, &target);
            let before_listed = listed.as_ref().ok().cloned();
            let opened =
                listed.and_then(|list| Generations::open_once(fs, path, &target, options, base, list));
            // What a writer publishes, it lists before and after.
            let is_listed_so = match before_listed {
                Some(before) => Manifest::read(&**fs, &target)? == before,
                None => true,
            };
            if is_listed_so && fs.metadata(path)?.id == before {
                return opened;
            }
        }
        let what = format!("it was replaced {OPEN_ATTEMPTS} times while it was opened");
        Err(Error::Unsupported { file: path.to_owned(), what })
    }

    fn open_once(
        fs: &Arc<dyn Fs>,
        path: &Path,
        target: &Path,
        options: ReaderOptions,
        base: Box<dyn File>,
        manifest: Option<Manifest>,
    ) -> Result<Generations> {
        let numbers = names::deltas(&**fs, target)?;
        let first = Reader::open_in(fs, path, options)?;
        if first.header.is_delta() {
            let what = "it is a delta; open its base table instead".to_owned();
            return Err(Error::Unsupported { file: path.to_owned(), what });
        }
        let base_generation = first.header.generation;
        let deltas: Vec<u64> = numbers.into_iter().filter(|number| *number > base_generation).collect();
        check_deltas(path, target, manifest.as_ref(), first.generation(), &deltas)?;
        let expected = manifest.as_ref().map(|manifest| manifest.expected(first.generation(), &deltas));
        let mut tables = vec![first];
        for (position, number) in deltas.into_iter().enumerate() {
            let file = names::delta(target, number);
            let delta = Reader::open_in(fs, &file, options)?;
            if let Some(below) = tables.last() {
                belongs(&delta, number, below)?;
            }
            let listed = expected.as_ref().and_then(|expected| expected.get(position + 1));
            if listed != Some(&delta.generation()) {
                return Err(manifest::other(&file, target, listed, delta.generation()));
            }
            tables.push(delta);
        }
        tables.reverse();
        let (path, target, has_manifest) = (path.to_owned(), target.to_owned(), manifest.is_some());
        Ok(Generations { tables, has_manifest, base, path, target, fs: fs.clone() })
    }

    /// What the list of this store's generations has to name, the base first.
    fn listed(&self) -> Vec<Generation> {
        self.tables.iter().rev().map(Reader::generation).collect()
    }

    /// The value of `key` in the newest generation that says anything about it.
    ///
    /// Cost: that of [`Reader::get`], and one cache miss for each newer generation.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        if let [table] = &self.tables[..] {
            return table.get(key);
        }
        self.get_hashed(key, self.hash(key))
    }

    fn get_hashed(&self, key: &[u8], hash: u64) -> Result<Option<Cow<'_, [u8]>>> {
        match self.find(key, hash)? {
            Some((table, found)) if table.is_mapped() => table.value(table.stored_at(found)?),
            Some((table, _)) => table.get(key),
            None => Ok(None),
        }
    }

    /// Writes the value of `key` to `value`, whose old content is dropped; false when the key is
    /// absent.
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        if let [table] = &self.tables[..] {
            return table.get_into(key, value);
        }
        value.clear();
        match self.find(key, self.hash(key))? {
            Some((table, found)) if table.is_mapped() => table.append_value(table.stored_at(found)?, value),
            Some((table, _)) => table.get_into(key, value),
            None => Ok(false),
        }
    }

    /// True when the store has `key`.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find(key, self.hash(key))?.is_some())
    }

    /// A stream over the value of `key`.
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader<'_>>> {
        match self.find(key, self.hash(key))? {
            Some((table, _)) => table.get_reader(key),
            None => Ok(None),
        }
    }

    /// Looks all of `keys` up, as [`Reader::get_many`] does, and hands the results on in the order
    /// given. The cache misses of all generations are overlapped, those that turn out not to matter
    /// too.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        if let [table] = &self.tables[..] {
            return table.get_many(keys, found);
        }
        let mut hashes = Vec::with_capacity(GROUP);
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            hashes.clear();
            hashes.extend(keys.iter().map(|key| self.hash(key.as_ref())));
            self.tables.iter().for_each(|table| table.prefetch_lines(&hashes));
            self.tables.iter().for_each(|table| table.prefetch_records(&hashes));
            for (position, (key, &hash)) in keys.iter().zip(&hashes).enumerate() {
                found(group * GROUP + position, self.get_hashed(key.as_ref(), hash)?.as_deref());
            }
        }
        Ok(())
    }

    /// Calls `visit` with every live entry, oldest generation first, each key once. Stops at the
    /// first error.
    ///
    /// Cost: a scan of every generation, and for each entry a lookup in the generations above it.
    pub fn for_each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(&[u8], &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for (position, table) in self.tables.iter().enumerate().rev() {
            let newer = &self.tables[..position];
            for entry in table.scan() {
                let entry = entry?;
                if find_in(newer, &entry.key, table.hash(&entry.key))?.is_none() {
                    visit(&entry.key, &entry.value)?;
                }
            }
        }
        Ok(())
    }

    /// Verifies every generation; see [`Reader::verify`]. Gives one report for each, newest first.
    pub fn verify(&self) -> Result<Vec<crate::table::VerifyReport>> {
        self.tables.iter().map(Reader::verify).collect()
    }

    /// The generations, newest first; the last one is the base.
    pub fn tables(&self) -> &[Reader] {
        &self.tables
    }

    /// False when the files behind the path are others by now, so that opening again would show
    /// something new.
    ///
    /// Cost: two names are looked up, whatever else is in their directory; cheap enough to be asked
    /// often.
    pub fn is_current(&self) -> Result<bool> {
        if self.fs.metadata(&self.path)?.id != self.base.id() {
            return Ok(false);
        }
        // Deltas are numbered without gaps. After the last number there is, there is none.
        match self.newest().checked_add(1) {
            Some(next) => Ok(!self.fs.exists(&names::delta(&self.target, next))?),
            None => Ok(true),
        }
    }

    /// The hash of `key`, which is one for all generations: they have one seed.
    fn hash(&self, key: &[u8]) -> u64 {
        self.tables.first().map_or(0, |table| table.hash(key))
    }

    fn newest(&self) -> u64 {
        self.tables.first().map_or(0, |table| table.header.generation)
    }

    /// The newest generation that has a value for `key`, unless a newer one deletes it.
    fn find(&self, key: &[u8], hash: u64) -> Result<Option<(&Reader, Found)>> {
        Ok(find_in(&self.tables, key, hash)?.filter(|(_, found)| found.tag != Tag::Tombstone))
    }
}

/// The files of the store at `path` as their names say: the base, then the deltas over it, oldest
/// first.
///
/// For looking at a store that [`Generations::open_in`] refuses: what any of them holds is not
/// looked at, but for the base's header. Without a sound one it is not known which deltas are left
/// over, and all are named.
pub fn files_in(fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<PathBuf>> {
    let target = names::followed(&**fs, path)?;
    let base_generation = read_header(fs, &target).map_or(0, |header| header.generation);
    let numbers = names::deltas(&**fs, &target)?.into_iter().filter(|number| *number > base_generation);
    let deltas = numbers.map(|number| names::delta(&target, number));
    Ok(std::iter::once(path.to_owned()).chain(deltas).collect())
}

/// The first of `tables` that says anything about `key`; a tombstone says something.
fn find_in<'a>(tables: &'a [Reader], key: &[u8], hash: u64) -> Result<Option<(&'a Reader, Found)>> {
    for table in tables {
        if let Some(found) = table.find_any(key, hash)? {
            return Ok(Some((table, found)));
        }
    }
    Ok(None)
}

/// Holds the base at `path`, and the numbers of the deltas over it, against the list of the store
/// at `target`.
fn check_deltas(
    path: &Path,
    target: &Path,
    manifest: Option<&Manifest>,
    base: Generation,
    deltas: &[u64],
) -> Result<()> {
    let Some(manifest) = manifest else {
        let Some(first) = deltas.first() else { return Ok(()) };
        let what = format!("it lists {} and all other deltas", names::delta(target, *first).display());
        return Err(Error::Missing { file: names::manifest(target), what });
    };
    let expected = manifest.expected(base, deltas);
    if expected.first() != Some(&base) {
        return Err(manifest::other(path, target, expected.first(), base));
    }
    let numbers = || expected.iter().skip(1).map(|generation| generation.number);
    match numbers().find(|number| !deltas.contains(number)) {
        Some(number) => Err(manifest::missing(names::delta(target, number), target, number)),
        None => Ok(()),
    }
}

impl Reader {
    /// What the list of a store's generations calls this one.
    fn generation(&self) -> Generation {
        Generation { number: self.header.generation, id: self.header.id }
    }
}

/// Checks that `delta`, by its name generation `number`, was made over `below`.
fn belongs(delta: &Reader, number: u64, below: &Reader) -> Result<()> {
    let (header, under) = (&delta.header, &below.header);
    // The last number there is has none after it, so whatever claims to be over it is refused
    // below.
    let next = under.generation.wrapping_add(1);
    let expected = (true, next, next, under.id, under.seed);
    let found = (header.is_delta(), number, header.generation, header.parent, header.seed);
    if found == expected && next > 0 {
        return Ok(());
    }
    let what = format!(
        "delta {}, named generation {}, generation {}, parent {:016x}, seed {:016x}; expected true, {}, {}, {:016x}, {:016x}",
        found.0, found.1, found.2, found.3, found.4, expected.1, expected.2, expected.3, expected.4
    );
    Err(Error::Mismatch { file: delta.path().to_owned(), other: below.path().to_owned(), what })
}

/// Holds the store at `target`, which was called `path`, against other writers until dropped.
fn lock(fs: &Arc<dyn Fs>, path: &Path, target: &Path) -> Result<Box<dyn File>> {
    if fs.metadata(path).is_ok_and(|found| !found.is_file) {
        // A directory or a pipe: its open says so, and it gets no lock beside it.
        drop(fs.open(path, OpenOptions::read())?);
    }
    let name = names::lock(target);
    let options = OpenOptions { create: Create::IfMissing, ..OpenOptions::write() };
    let file = match fs.open(&name, options) {
        // That of somebody else, who need not let others write it. It can be locked all the same.
        Err(error) if error.source.kind() == io::ErrorKind::PermissionDenied => {
            fs.open(&name, OpenOptions::read()).map_err(|_| error)?
        }
        opened => opened?,
    };
    // Who may use the store may use its lock.
    file.take_mode(target);
    match file.try_lock() {
        Ok(()) => Ok(file),
        // By the store's name: nobody who is told knows the lock's.
        Err(error) if error.kind() == ErrorKind::Busy => {
            let source = io::Error::new(io::ErrorKind::WouldBlock, "another writer has it open");
            Err(cairn_vfs::Error::new(Operation::Lock, path, source).into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
