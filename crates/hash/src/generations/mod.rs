//! A base table with deltas over it: changes without a rebuild of the whole table.
//!
//! ```text
//! words.cairn                 the base, generation g
//! words.cairn.delta.000004    a delta, generation g + 1: new values, tombstones of deleted keys
//! words.cairn.delta.000005    a delta over that one
//! words.cairn.manifest        the manifest: lists these by their ids; from the first delta on
//! words.cairn.lock            locked by a process that builds, appends or compacts
//! ```
//! A symbolic link to a store names the store that it leads to. The other files lie beside the
//! target of the link.
//!
//! Each delta records the id of the generation below it, so files of different stores cannot be
//! mixed up. All generations share the hash seed of the base. A lookup hashes the key once and
//! searches the newest generation first; a generation that does not have the key costs one cache
//! miss.
//!
//! A compaction writes one new base with the number of the newest delta that it contains. A crash
//! between the publication of that base and the removal of the deltas leaves deltas with numbers up
//! to that of the base; these are ignored. The deltas with higher numbers must be exactly those in
//! the manifest: a missing generation, or one with another id, is an error. A store of one file
//! that was never appended to has no manifest.

mod manifest;
mod reloadable;
mod writer;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Create, ErrorKind, File, Fs, OpenOptions, Operation, StdFs};

use crate::table::{Found, GROUP, Reader, ReaderOptions, Tag, ValueReader, read_header};
use crate::{Error, Result, names};

use manifest::{Generation, Manifest};

pub use reloadable::Live;
pub use writer::{StoreBuilder, compact, compact_in};

/// A base and its deltas, open for reading. `Send` and `Sync`, and all methods take `&self`, like
/// those of the [`Reader`]s that it consists of.
#[derive(Debug)]
pub struct Generations {
    /// Newest first; the last one is the base.
    tables: Vec<Reader>,
    /// True when the store has a manifest.
    has_manifest: bool,
    /// The file of the base, kept open so that the file system cannot give its inode to a later
    /// file. As long as it is open, equal ids mean the same file.
    base: Box<dyn File>,
    /// The path that the store was opened by.
    path: PathBuf,
    /// The path after resolving symbolic links.
    target: PathBuf,
    fs: Arc<dyn Fs>,
}

/// Attempts to read a consistent state of a store that is being compacted meanwhile.
const OPEN_ATTEMPTS: usize = 100;

impl Generations {
    /// Opens the base at `path` and all its deltas, on the real file system.
    ///
    /// Cost: lists the directory to find the deltas, and opens each file. Errors: those of
    /// [`Reader::open`] for any of the files; [`Error::Mismatch`] for a file that does not belong
    /// to the store; [`Error::Missing`] for a file that does not exist.
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Generations> {
        Generations::open_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path.as_ref(), options)
    }

    /// Does the same as [`Generations::open`] on any file system.
    pub fn open_in(fs: &Arc<dyn Fs>, path: &Path, options: ReaderOptions) -> Result<Generations> {
        // BOUND: another attempt is necessary only if a compaction publishes between the two reads
        // of the store's state. A compaction takes far longer than an attempt, so more than two
        // attempts are hardly ever needed.
        for _ in 0..OPEN_ATTEMPTS {
            let base = fs.open(path, OpenOptions::read())?;
            let before = base.id();
            // ORDER: after the open, so that the check below detects a link that leads elsewhere by
            // now.
            let target = names::resolve_links(&**fs, path)?;
            let listed = Manifest::read(&**fs, &target);
            let before_listed = listed.as_ref().ok().cloned();
            let opened =
                listed.and_then(|list| Generations::open_once(fs, path, &target, options, base, list));
            // A writer updates the manifest before and after it publishes, so an unchanged manifest
            // means that no writer published in between.
            let is_listed_so = match before_listed {
                Some(before) => Manifest::read(&**fs, &target)? == before,
                None => true,
            };
            if is_listed_so && fs.metadata(path)?.id == before {
                return opened;
            }
        }
        let detail = format!("it was replaced {OPEN_ATTEMPTS} times while it was opened");
        Err(Error::Unsupported { file: path.to_owned(), detail })
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
            let detail = "it is a delta; open its base table instead".to_owned();
            return Err(Error::Unsupported { file: path.to_owned(), detail });
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
                check_parent(&delta, number, below)?;
            }
            let listed = expected.as_ref().and_then(|expected| expected.get(position + 1));
            if listed != Some(&delta.generation()) {
                return Err(manifest::wrong_generation(&file, target, listed, delta.generation()));
            }
            tables.push(delta);
        }
        debug_assert!(expected.as_ref().is_none_or(|expected| expected.len() == tables.len()));
        tables.reverse();
        let (path, target, has_manifest) = (path.to_owned(), target.to_owned(), manifest.is_some());
        let opened = Generations { tables, has_manifest, base, path, target, fs: fs.clone() };
        opened.assert_invariants();
        debug_assert!(expected.is_none_or(|expected| expected == opened.listed()), "as the manifest lists");
        Ok(opened)
    }

    /// Checks the chain that lookups rely on: the newest first, down to one base.
    fn assert_invariants(&self) {
        let headers = || self.tables.iter().map(|table| &table.header);
        debug_assert!(headers().next_back().is_some_and(|base| !base.is_delta()), "the base comes last");
        debug_assert!(self.has_manifest || self.tables.len() == 1, "deltas are listed");
        for (delta, below) in headers().zip(headers().skip(1)) {
            debug_assert!(delta.is_delta());
            debug_assert_eq!(delta.generation, below.generation + 1);
            debug_assert_eq!((delta.parent, delta.seed), (below.id, below.seed), "one hash serves all");
        }
    }

    /// Returns the generations that the manifest has to list, the base first.
    fn listed(&self) -> Vec<Generation> {
        self.tables.iter().rev().map(Reader::generation).collect()
    }

    /// Returns the value of `key` from the newest generation that has an entry for it.
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

    /// Replaces the content of `value` with the value of `key`. Returns false if the key is absent.
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

    /// Returns true if the store has `key`.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find(key, self.hash(key))?.is_some())
    }

    /// Returns a stream over the value of `key`.
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader<'_>>> {
        match self.find(key, self.hash(key))? {
            Some((table, _)) => table.get_reader(key),
            None => Ok(None),
        }
    }

    /// Looks up all of `keys`, as [`Reader::get_many`] does, and passes the results to `found` in
    /// the order of `keys`. The cache misses of all generations are overlapped, including those of
    /// generations that turn out not to matter.
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

    /// Calls `visit` once for every live entry, oldest generation first. Stops at the first error.
    ///
    /// Cost: a scan of every generation, and for each entry a lookup in the newer generations.
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

    /// Verifies every generation (see [`Reader::verify`]). Returns one report per generation,
    /// newest first.
    pub fn verify(&self) -> Result<Vec<crate::table::VerifyReport>> {
        self.tables.iter().map(Reader::verify).collect()
    }

    /// Returns the generations, newest first; the last one is the base.
    pub fn tables(&self) -> &[Reader] {
        &self.tables
    }

    /// Returns false if the files at the path have changed, so that opening the store again would
    /// show a newer state.
    ///
    /// Cost: looks up two names, however many files the directory has. This is cheap enough for
    /// frequent calls.
    pub fn is_current(&self) -> Result<bool> {
        if self.fs.metadata(&self.path)?.id != self.base.id() {
            return Ok(false);
        }
        // Deltas are numbered without gaps. No generation can follow the highest possible number.
        match self.newest().checked_add(1) {
            Some(next) => Ok(!self.fs.exists(&names::delta(&self.target, next))?),
            None => Ok(true),
        }
    }

    /// Returns the hash of `key`. All generations share one seed, so one hash serves all of them.
    fn hash(&self, key: &[u8]) -> u64 {
        debug_assert!(!self.tables.is_empty(), "a store has a base");
        self.tables.first().map_or(0, |table| table.hash(key))
    }

    fn newest(&self) -> u64 {
        self.tables.first().map_or(0, |table| table.header.generation)
    }

    /// Finds `key` in the newest generation that has an entry for it. Returns `None` if that entry
    /// is a tombstone.
    fn find(&self, key: &[u8], hash: u64) -> Result<Option<(&Reader, Found)>> {
        Ok(find_in(&self.tables, key, hash)?.filter(|(_, found)| found.tag != Tag::Tombstone))
    }
}

/// Returns the files of the store at `path` by their names: the base, then its deltas, oldest
/// first.
///
/// For the inspection of a store that [`Generations::open_in`] refuses. Reads only the header of
/// the base, and no other content. If that header is damaged, it is unknown which deltas are
/// superseded, and all are returned.
pub fn files_in(fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<PathBuf>> {
    let target = names::resolve_links(&**fs, path)?;
    let base_generation = read_header(fs, &target).map_or(0, |header| header.generation);
    let numbers = names::deltas(&**fs, &target)?.into_iter().filter(|number| *number > base_generation);
    let deltas = numbers.map(|number| names::delta(&target, number));
    Ok(std::iter::once(path.to_owned()).chain(deltas).collect())
}

/// Finds the first of `tables` that has an entry for `key`. A tombstone counts as an entry.
fn find_in<'a>(tables: &'a [Reader], key: &[u8], hash: u64) -> Result<Option<(&'a Reader, Found)>> {
    for table in tables {
        if let Some(found) = table.find_any(key, hash)? {
            return Ok(Some((table, found)));
        }
    }
    Ok(None)
}

/// Checks the base at `path` and the numbers of its deltas against the manifest of the store at
/// `target`.
fn check_deltas(
    path: &Path,
    target: &Path,
    manifest: Option<&Manifest>,
    base: Generation,
    deltas: &[u64],
) -> Result<()> {
    let Some(manifest) = manifest else {
        let Some(first) = deltas.first() else { return Ok(()) };
        let detail =
            format!("it should list {} and all other deltas", names::delta(target, *first).display());
        return Err(Error::Missing { file: names::manifest(target), detail });
    };
    let expected = manifest.expected(base, deltas);
    if expected.first() != Some(&base) {
        return Err(manifest::wrong_generation(path, target, expected.first(), base));
    }
    let numbers = || expected.iter().skip(1).map(|generation| generation.number);
    match numbers().find(|number| !deltas.contains(number)) {
        Some(number) => Err(manifest::missing_generation(names::delta(target, number), target, number)),
        None => Ok(()),
    }
}

impl Reader {
    /// Returns the identity of this generation, as the manifest lists it.
    fn generation(&self) -> Generation {
        Generation { number: self.header.generation, id: self.header.id }
    }
}

/// Checks that `delta`, whose file name says generation `number`, was built over `below`.
fn check_parent(delta: &Reader, number: u64, below: &Reader) -> Result<()> {
    let (header, under) = (&delta.header, &below.header);
    // Nothing can follow the highest possible number, so a delta that claims to do so is refused:
    // `next` wraps to 0.
    let next = under.generation.wrapping_add(1);
    let expected = (true, next, next, under.id, under.seed);
    let found = (header.is_delta(), number, header.generation, header.parent, header.seed);
    if found == expected && next > 0 {
        return Ok(());
    }
    let detail = format!(
        "delta {}, named generation {}, generation {}, parent {:016x}, seed {:016x}; expected true, {}, {}, {:016x}, {:016x}",
        found.0, found.1, found.2, found.3, found.4, expected.1, expected.2, expected.3, expected.4
    );
    Err(Error::Mismatch { file: delta.path().to_owned(), other: below.path().to_owned(), detail })
}

/// Locks the store at `target`, opened as `path`, against other writers until the file is dropped.
fn lock(fs: &Arc<dyn Fs>, path: &Path, target: &Path) -> Result<Box<dyn File>> {
    if fs.metadata(path).is_ok_and(|found| !found.is_file) {
        // A directory or a pipe: the open below reports the error, and no lock file is created
        // beside it.
        drop(fs.open(path, OpenOptions::read())?);
    }
    let name = names::lock(target);
    let options = OpenOptions { create: Create::IfMissing, ..OpenOptions::write() };
    let file = match fs.open(&name, options) {
        // Another user owns the lock file and need not permit others to write it. A file opened for
        // reading can be locked too.
        Err(error) if error.source.kind() == io::ErrorKind::PermissionDenied => {
            fs.open(&name, OpenOptions::read()).map_err(|_| error)?
        }
        opened => opened?,
    };
    // Whoever may use the store may also use its lock file.
    file.take_mode(target);
    match file.try_lock() {
        Ok(()) => Ok(file),
        // The error names the store, because users do not know the name of the lock file.
        Err(error) if error.kind() == ErrorKind::Busy => {
            let source = io::Error::new(io::ErrorKind::WouldBlock, "another writer has it open");
            Err(cairn_vfs::Error::new(Operation::Lock, path, source).into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
