//! The writers of a store: a new base, a delta over the existing generations, and a compaction.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Bug, ErrorKind, File, Fs, Rng, StdFs, SystemRng, ensure};

use super::manifest::{Generation, Manifest, Next};
use super::{Generations, find_in, lock};
use crate::table::{
    BuildOptions, BuildSummary, Builder, Progress, ReaderOptions, Tag, ValueReader, read_header,
    remove_leftovers,
};
use crate::{Error, Result, names};

/// Builds a base or a delta of a store, with the store locked against other writers.
#[derive(Debug)]
pub struct StoreBuilder {
    builder: Builder,
    fs: Arc<dyn Fs>,
    /// The path of the store, with symbolic links resolved.
    target: PathBuf,
    /// The manifest before and after the publication of this generation; `None` for a store without
    /// a manifest.
    lists: Option<[Manifest; 2]>,
    /// Held until the builder is finished or dropped.
    lock: Box<dyn File>,
}

/// The change that a build makes to the manifest.
enum Listing {
    /// The store has no manifest and needs none.
    None,
    /// A delta over these generations.
    DeltaOver(Vec<Generation>),
    /// A base that replaces these generations.
    BaseOver(Vec<Generation>),
}

impl StoreBuilder {
    /// Starts a new base at `path`. It replaces the existing store, deltas included.
    ///
    /// Errors: `Busy` when another writer has the store open.
    pub fn create(path: impl AsRef<Path>, options: BuildOptions) -> Result<StoreBuilder> {
        StoreBuilder::create_in(&real_fs(), path.as_ref(), options, &mut system_rng()?)
    }

    /// Does the same as [`StoreBuilder::create`] on any file system.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<StoreBuilder> {
        // Resolved once, so that the build stays with one store even if a link changes meanwhile.
        let target = names::resolve_links(&**fs, path)?;
        let lock = lock(fs, path, &target)?;
        // The new base gets a number above that of every delta, so that readers recognize the
        // deltas of the old base as superseded.
        let taken = names::deltas(&**fs, &target)?.last().copied().unwrap_or(0);
        // `None` when the base is missing, or is damaged and about to be replaced.
        let base = read_header(fs, &target).ok();
        let old = base.as_ref().map_or(0, |base| base.generation);
        let manifest = match Manifest::read(&**fs, &target) {
            Err(Error::Vfs(error)) => return Err(error.into()),
            // A damaged manifest does not tell which generations it listed, but their delta files
            // still count in `taken`.
            Err(_) => Some(Manifest { listed: Vec::new(), next: Next::Nothing }),
            Ok(manifest) => manifest,
        };
        let taken = taken.max(manifest.as_ref().map_or(0, Manifest::newest));
        let generation = if taken > 0 { next_generation(path, taken.max(old))? } else { old };
        debug_assert!(
            generation >= old && (taken == 0 || generation > taken),
            "generation {generation} does not supersede {old} and {taken}"
        );
        let listing = match (manifest, base) {
            (None, _) => Listing::None,
            (Some(manifest), Some(base)) => {
                let base = Generation { number: base.generation, id: base.id };
                Listing::BaseOver(manifest.expected(base, &names::deltas(&**fs, &target)?))
            }
            (Some(manifest), None) => Listing::BaseOver(manifest.listed),
        };
        StoreBuilder::new(fs, [&target, &target], options.generation(generation), rng, lock, listing)
    }

    /// Starts a delta over the store at `path`: put the new entries and delete the obsolete ones.
    ///
    /// Errors: `Busy` when another writer has the store open; the errors of [`Generations::open`].
    pub fn append(path: impl AsRef<Path>, options: BuildOptions) -> Result<StoreBuilder> {
        StoreBuilder::append_in(&real_fs(), path.as_ref(), options, &mut system_rng()?)
    }

    /// Does the same as [`StoreBuilder::append`] on any file system.
    pub fn append_in(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<StoreBuilder> {
        let target = names::resolve_links(&**fs, path)?;
        let lock = lock(fs, path, &target)?;
        let below = Generations::open_in(fs, &target, ReaderOptions::default())?;
        let Some(top) = below.tables.first().map(|table| &table.header) else {
            return Err(Bug::new("an open store without a base").into());
        };
        let number = next_generation(path, top.generation)?;
        let options = options.seed(top.seed).delta_over(top.id).generation(number);
        let listing = Listing::DeltaOver(below.listed());
        StoreBuilder::new(fs, [&target, &names::delta(&target, number)], options, rng, lock, listing)
    }

    /// Starts the base or delta `file` of the store at `target`.
    fn new(
        fs: &Arc<dyn Fs>,
        [target, file]: [&Path; 2],
        options: BuildOptions,
        rng: &mut dyn Rng,
        lock: Box<dyn File>,
        listing: Listing,
    ) -> Result<StoreBuilder> {
        // Before the build, so that it can use the space of the removed files. The lock guarantees
        // that no other build of a delta uses them.
        remove_strays(fs, target)?;
        let builder = Builder::start(fs, file, options, rng)?;
        // A delta is a new file without access rights to inherit. A user who may not read the base
        // must not be able to read the delta.
        builder.take_mode(target);
        let next = builder.generation();
        let next = Generation { number: next.0, id: next.1 };
        ensure!(next.id != 0, "generation {} has the id 0, which means none", next.number);
        let listed = |listed| Manifest { listed, next: Next::Nothing };
        let lists = match listing {
            Listing::None => None,
            Listing::DeltaOver(below) => {
                let all = below.iter().copied().chain([next]).collect();
                Some([Manifest { next: Next::Delta(next), ..listed(below) }, listed(all)])
            }
            Listing::BaseOver(old) => {
                Some([Manifest { next: Next::Base(next), ..listed(old) }, listed(vec![next])])
            }
        };
        Ok(StoreBuilder { builder, fs: fs.clone(), target: target.to_owned(), lists, lock })
    }

    /// See [`Builder::put`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.builder.put(key, value)
    }

    /// See [`Builder::put_stream`].
    pub fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        self.builder.put_stream(key, bytes, value)
    }

    /// See [`Builder::delete`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.builder.delete(key)
    }

    /// See [`Builder::set_progress`].
    pub fn set_progress(&mut self, progress: Box<dyn Progress>) {
        self.builder.set_progress(progress);
    }

    /// Publishes the generation, and removes the deltas that a new base supersedes. If that removal
    /// fails, the error is returned although the generation is published. Readers ignore such
    /// deltas, and the next writer removes them.
    pub fn finish(self) -> Result<BuildSummary> {
        // ORDER: the manifest names the generation as pending before the file exists, and lists it
        // afterwards. Readers accept the generation from the moment its file is renamed to its
        // final name. A generation that the manifest does not name is not part of the store.
        if let Some([before, _]) = &self.lists {
            before.write(&self.fs, &self.target)?;
        }
        debug_assert_eq!(
            self.lists.as_ref().map(|[before, after]| before.newest() == after.newest()),
            self.lists.as_ref().map(|_| true),
            "the pending generation is the newest listed one"
        );
        let summary = self.builder.finish()?;
        if let Some([_, after]) = &self.lists {
            after.write(&self.fs, &self.target)?;
        }
        // ORDER: the new base is durable under its name before anything that it replaces is
        // removed.
        remove_superseded(&self.fs, &self.target)?;
        drop(self.lock);
        Ok(summary)
    }
}

/// Merges the store at `path` into one new base. Open readers keep their state.
///
/// Cost: reads and writes the whole store, within the memory of `options`. Errors: `Busy` when
/// another writer has the store open. After an error the store is unchanged, unless only one of the
/// last steps failed. If the sync of the directory failed, readers see the compacted store, and a
/// power loss may bring the old one back. If the removal of superseded deltas failed, the store is
/// compacted, and the next writer removes them.
pub fn compact(path: impl AsRef<Path>, options: BuildOptions) -> Result<BuildSummary> {
    compact_in(&real_fs(), path.as_ref(), options, &mut system_rng()?)
}

/// Does the same as [`compact`] on any file system.
pub fn compact_in(
    fs: &Arc<dyn Fs>,
    path: &Path,
    options: BuildOptions,
    rng: &mut dyn Rng,
) -> Result<BuildSummary> {
    let target = names::resolve_links(&**fs, path)?;
    let lock = lock(fs, path, &target)?;
    let all = Generations::open_in(fs, &target, ReaderOptions::default())?;
    let options = options.generation(all.newest());
    ensure!(all.has_manifest || all.tables.len() == 1, "{} tables, none listed", all.tables.len());
    let listing = if all.has_manifest { Listing::BaseOver(all.listed()) } else { Listing::None };
    let mut builder = StoreBuilder::new(fs, [&target, &target], options, rng, lock, listing)?;
    for (position, table) in all.tables.iter().enumerate().rev() {
        let newer = &all.tables[..position];
        let mut records = table.records();
        while let Some(record) = records.next().transpose()? {
            // Records that a newer generation hides are skipped before their values are read: a
            // streamed value would stay in the new base as garbage. The new base holds no hidden
            // records, so it needs no tombstones.
            if find_in(newer, &record.key, table.hash(&record.key))?.is_some() {
                continue;
            }
            match record.found.tag {
                Tag::Tombstone => {}
                Tag::Blob => {
                    let mut value = ValueReader::new(table, record.found)?;
                    builder.put_stream(&record.key, value.remaining(), &mut value)?;
                }
                Tag::Raw | Tag::Compressed => builder.put(&record.key, &records.value(&record)?)?,
            }
        }
    }
    builder.finish()
}

/// Removes the deltas whose numbers do not exceed that of the base.
fn remove_superseded(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    let base = read_header(fs, path)?.generation;
    let mut removed = false;
    for number in names::deltas(&**fs, path)?.into_iter().filter(|number| *number <= base) {
        let file = names::delta(path, number);
        if is_delta(fs, &file, number)? {
            names::remove(&**fs, &file)?;
            removed = true;
        }
    }
    if removed {
        fs.sync_parent(path)?;
    }
    Ok(())
}

/// Removes the temporary files of builds that a power loss interrupted. Those of a delta would
/// otherwise stay, because a compaction or a new base may prevent its number from being used again.
/// The caller holds the lock of the store, so no delta is being built, but a plain [`Builder`] may
/// be building a base.
fn remove_strays(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    for file in names::delta_builds(&**fs, path)? {
        names::remove(&**fs, &file)?;
    }
    remove_leftovers(fs, path)
}

/// Returns true if the header of `file` says that it is delta `number`. Any other file with that
/// name is not ours to remove. It does no harm, because readers ignore it.
fn is_delta(fs: &Arc<dyn Fs>, file: &Path, number: u64) -> Result<bool> {
    match read_header(fs, file) {
        Ok(header) => Ok(header.is_delta() && header.generation == number),
        Err(error @ Error::Vfs(_)) if error.kind() != ErrorKind::NotFound => Err(error),
        Err(_) => Ok(false),
    }
}

/// Returns the number of the generation after `generation`. Errors: `generation` is the highest
/// possible number, which only a forged file has.
fn next_generation(path: &Path, generation: u64) -> Result<u64> {
    generation.checked_add(1).ok_or_else(|| {
        let detail = format!("generation {generation} is the highest possible");
        Error::Unsupported { file: path.to_owned(), detail }
    })
}

fn real_fs() -> Arc<dyn Fs> {
    Arc::new(StdFs::new())
}

fn system_rng() -> Result<SystemRng> {
    SystemRng::new().map_err(|error| Error::invalid(format!("no random seed available: {error}")))
}
