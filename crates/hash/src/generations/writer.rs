//! Whatever changes a store: a new base, a delta over what is there, and a compaction of all of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{ErrorKind, File, Fs, Rng, StdFs, SystemRng};

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
    /// The store itself, where a link to it was named.
    target: PathBuf,
    /// The list of the store's generations before this one and after; `None` for a store that has
    /// none.
    lists: Option<[Manifest; 2]>,
    /// Held until the builder is finished or dropped.
    lock: Box<dyn File>,
}

/// What becomes of the list of a store's generations.
enum Listing {
    /// The store has none, and does not need one.
    None,
    /// A delta over these.
    DeltaOver(Vec<Generation>),
    /// A base in the place of these.
    BaseOver(Vec<Generation>),
}

impl StoreBuilder {
    /// Starts a new base at `path` that takes the place of whatever is there, deltas included.
    ///
    /// Errors: `Busy` when somebody else writes this store.
    pub fn create(path: impl AsRef<Path>, options: BuildOptions) -> Result<StoreBuilder> {
        StoreBuilder::create_in(&real_fs(), path.as_ref(), options, &mut system_rng()?)
    }

    /// [`StoreBuilder::create`] on any file system.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<StoreBuilder> {
        // One store from here on, wherever a link to it leads meanwhile.
        let target = names::followed(&**fs, path)?;
        let lock = lock(fs, path, &target)?;
        // A number no delta has, so that deltas over the old base are known to be left over.
        let taken = names::deltas(&**fs, &target)?.last().copied().unwrap_or(0);
        // Missing, or damaged and about to be replaced.
        let base = read_header(fs, &target).ok();
        let old = base.as_ref().map_or(0, |base| base.generation);
        let manifest = match Manifest::read(&**fs, &target) {
            Err(Error::Vfs(error)) => return Err(error.into()),
            // What a list that is damaged named, nobody knows; the deltas are there still.
            Err(_) => Some(Manifest { listed: Vec::new(), next: Next::Nothing }),
            Ok(manifest) => manifest,
        };
        let taken = taken.max(manifest.as_ref().map_or(0, Manifest::newest));
        let generation = if taken > 0 { after(path, taken.max(old))? } else { old };
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

    /// Starts a delta over the store at `path`: put what is new, delete what is to go.
    ///
    /// Errors: `Busy` when somebody else writes this store; what [`Generations::open`] says of it.
    pub fn append(path: impl AsRef<Path>, options: BuildOptions) -> Result<StoreBuilder> {
        StoreBuilder::append_in(&real_fs(), path.as_ref(), options, &mut system_rng()?)
    }

    /// [`StoreBuilder::append`] on any file system.
    pub fn append_in(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<StoreBuilder> {
        let target = names::followed(&**fs, path)?;
        let lock = lock(fs, path, &target)?;
        let below = Generations::open_in(fs, &target, ReaderOptions::default())?;
        let Some(top) = below.tables.first().map(|table| &table.header) else {
            return Err(Error::invalid("the store has no base"));
        };
        let number = after(path, top.generation)?;
        let options = options.seed(top.seed).delta_over(top.id).generation(number);
        let listing = Listing::DeltaOver(below.listed());
        StoreBuilder::new(fs, [&target, &names::delta(&target, number)], options, rng, lock, listing)
    }

    /// Starts the base or the delta `file` of the store at `target`.
    fn new(
        fs: &Arc<dyn Fs>,
        [target, file]: [&Path; 2],
        options: BuildOptions,
        rng: &mut dyn Rng,
        lock: Box<dyn File>,
        listing: Listing,
    ) -> Result<StoreBuilder> {
        // Before the build, so that what they take up is free for it. The lock says that they are
        // nobody's.
        remove_strays(fs, target)?;
        let builder = Builder::start(fs, file, options, rng)?;
        // A delta replaces nothing, and who may not read the base may not read it either.
        builder.take_mode(target);
        let next = builder.generation();
        let next = Generation { number: next.0, id: next.1 };
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

    /// Publishes the generation, and removes deltas that a new base has made superfluous. An error
    /// of that removal comes after the publication; readers ignore such deltas, and the next writer
    /// removes them.
    pub fn finish(self) -> Result<BuildSummary> {
        // ORDER: the list names what is going to be there before it is, and takes it up afterwards.
        // Readers take it from the moment on in which it has its name; a generation that is not
        // listed is none of this store's.
        if let Some([before, _]) = &self.lists {
            before.write(&self.fs, &self.target)?;
        }
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

/// Merges the store at `path` into one new base. Readers that are open keep what they have.
///
/// Cost: reads and writes everything, within the memory of `options`. Errors: `Busy` when somebody
/// else writes the store. After an error the store is as it was, unless only one of the last steps
/// failed: after the sync of the directory readers see the compacted store and a power loss may
/// bring the old one back; after the removal of superseded deltas it is compacted, and the next
/// writer removes them.
pub fn compact(path: impl AsRef<Path>, options: BuildOptions) -> Result<BuildSummary> {
    compact_in(&real_fs(), path.as_ref(), options, &mut system_rng()?)
}

/// [`compact`] on any file system.
pub fn compact_in(
    fs: &Arc<dyn Fs>,
    path: &Path,
    options: BuildOptions,
    rng: &mut dyn Rng,
) -> Result<BuildSummary> {
    let target = names::followed(&**fs, path)?;
    let lock = lock(fs, path, &target)?;
    let all = Generations::open_in(fs, &target, ReaderOptions::default())?;
    let options = options.generation(all.newest());
    let listing = if all.has_manifest { Listing::BaseOver(all.listed()) } else { Listing::None };
    let mut builder = StoreBuilder::new(fs, [&target, &target], options, rng, lock, listing)?;
    for (position, table) in all.tables.iter().enumerate().rev() {
        let newer = &all.tables[..position];
        let mut records = table.records();
        while let Some(record) = records.next().transpose()? {
            // What a newer generation hides is not read: a value that is streamed would stay in the
            // new base as space that nothing refers to. So the tombstones have nothing left to
            // hide.
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

/// Removes deltas up to the base's own number.
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

/// Removes temporary files of builds that lost their machine: those of deltas, whose numbers may
/// never come again after a compaction or a new base, and those of a base. The caller holds the
/// store's lock, so no delta is being built; a base may be, by a plain [`Builder`].
fn remove_strays(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    for file in names::delta_builds(&**fs, path)? {
        names::remove(&**fs, &file)?;
    }
    remove_leftovers(fs, path)
}

/// True when `file` says itself that it is delta `number`. What merely has the name is not ours to
/// remove, and does no harm: readers ignore it.
fn is_delta(fs: &Arc<dyn Fs>, file: &Path, number: u64) -> Result<bool> {
    match read_header(fs, file) {
        Ok(header) => Ok(header.is_delta() && header.generation == number),
        Err(error @ Error::Vfs(_)) if error.kind() != ErrorKind::NotFound => Err(error),
        Err(_) => Ok(false),
    }
}

/// The generation after `generation`. Errors: the number is the last one, which only a forged file
/// has.
fn after(path: &Path, generation: u64) -> Result<u64> {
    generation.checked_add(1).ok_or_else(|| {
        let what = format!("generation {generation} is the highest possible");
        Error::Unsupported { file: path.to_owned(), what }
    })
}

fn real_fs() -> Arc<dyn Fs> {
    Arc::new(StdFs::new())
}

fn system_rng() -> Result<SystemRng> {
    SystemRng::new().map_err(|error| Error::invalid(format!("no random seed available: {error}")))
}
