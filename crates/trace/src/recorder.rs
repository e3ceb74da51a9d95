//! Recording while a program runs: rings, a clock that is read as seldom as it can be, and errors
//! that stay here.
//!
//! ```text
//!   operation ─► ring of its thread ─(a helper thread, or whoever finds it full)─► lane ─(64 KiB, or a second)─► file
//!       key hashed, sampled; a look at the clock now and then                       encoding
//! ```

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_vfs::sync::{MutexGuard, lock};
use cairn_vfs::{Clock, Fs, StdFs, SystemClock, thread};

use crate::error::{Error, Result};
use crate::event::Detail;
use crate::format::{KEY_BYTES_MAX, KeyForm};
use crate::sample::Sample;

mod helper;
mod lane;
mod local;
mod pace;
mod ring;
mod shared;

use lane::LaneEnd;
pub use local::Sampler;
use local::{HOT, Hot, LOCAL, Local};
use shared::Shared;

/// The environment's word for the file that [`Recorder::from_env`] writes.
pub const ENV_PATH: &str = "CAIRN_TRACE";
/// `raw` keeps keys as they are.
pub const ENV_KEYS: &str = "CAIRN_TRACE_KEYS";
/// `auto`, or a number `n`: the operations of one key in `n` are recorded. See [`Sample`].
pub const ENV_SAMPLE: &str = "CAIRN_TRACE_SAMPLE";

/// How a program is recorded.
#[derive(Debug, Clone)]
pub struct Options {
    /// How keys are kept. Default: hashed, since keys tell about people.
    pub keys: KeyForm,
    /// Whose operations are recorded. Default: [`Sample::Auto`], all keys as long as that costs a
    /// thread little of its time.
    pub sample: Sample,
    /// Recording ends when the file has so many bytes. Default: 16 GiB.
    pub bytes_max: u64,
    /// What is traced, for whoever reads the trace. Default: nothing.
    pub source: String,
    /// Seeds the hashes of keys. Default: a random number that is kept nowhere, so that traces of
    /// two runs cannot be joined and guessed keys cannot be looked up.
    pub hash_seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            keys: KeyForm::Hashed,
            sample: Sample::Auto,
            bytes_max: 16 << 30,
            source: String::new(),
            hash_seed: None,
        }
    }
}

/// What came of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Operations in the file. Where the share was lowered, those of keys that are not in the final
    /// sample count, though readers pass them over.
    pub records: u64,
    /// Operations that are not, because of [`Options::bytes_max`] or an error.
    pub dropped: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The operations of one key in so many were recorded in the end.
    pub sample: u32,
}

/// Writes a trace of what it is told, from any number of threads. Cheap to clone; the trace ends
/// with [`Recorder::finish`] or with the last clone.
///
/// An operation costs the hash of its key, in memory of its thread's own; a thread of the
/// recorder's does the rest. Nothing that goes wrong is shown to the operation: recording stops,
/// what is not recorded is counted, and [`Recorder::finish`] tells.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    /// Of all recorders of the process: a thread knows by it whether its place is in this one.
    number: u64,
    /// Ends the recording with the last clone.
    _owner: Arc<Owner>,
}

/// Goes with the last recorder.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    helper: Option<thread::JoinHandle<()>>,
}

impl Recorder {
    /// Records to a new file on the real disk. Errors: [`Error::Vfs`] where there is a file,
    /// [`Error::Invalid`].
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Recorder> {
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        Recorder::create_in(&fs, path.as_ref(), options)
    }

    /// As [`Recorder::create`], on another file system.
    pub fn create_in(fs: &Arc<dyn Fs>, path: &Path, options: Options) -> Result<Recorder> {
        let shared = Shared::create(fs, path, options, Arc::new(SystemClock::new()))?;
        // Where there are no more threads to have, those that record do all of it.
        let helper = helper::start(&shared).ok();
        Ok(Recorder::of(shared, helper))
    }

    /// As [`Recorder::create_in`], by a clock of the caller's and without a thread of its own: what
    /// is written when follows from what is recorded when.
    pub fn with_clock(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Recorder> {
        Ok(Recorder::of(Shared::create(fs, path, options, clock)?, None))
    }

    fn of(shared: Arc<Shared>, helper: Option<thread::JoinHandle<()>>) -> Recorder {
        let number = shared.number;
        Recorder { _owner: Arc::new(Owner { shared: Arc::clone(&shared), helper }), number, shared }
    }

    /// A recorder where the environment asks for one: [`ENV_PATH`] names the file, [`ENV_KEYS`] and
    /// [`ENV_SAMPLE`] say how. `None` where it does not. `source` says what is traced.
    ///
    /// Call [`Recorder::finish`] before the program ends, and say what it returns: whoever asked by
    /// the environment cannot. Without that a full disk shows only in a trace that has no end.
    ///
    /// A file that is there already is left alone, and the next free of `<file>.1`, `<file>.2`, ...
    /// is written: a program may open several stores, and each gets its trace.
    pub fn from_env(source: &str) -> Result<Option<Recorder>> {
        let Some(path) = env::var_os(ENV_PATH).filter(|path| !path.is_empty()) else { return Ok(None) };
        let keys = match env::var(ENV_KEYS).as_deref() {
            Err(_) | Ok("" | "hashed") => KeyForm::Hashed,
            Ok("raw") => KeyForm::Raw,
            Ok(other) => return Err(Error::invalid(format!("{ENV_KEYS} {other:?}: expected raw or hashed"))),
        };
        let sample = match env::var(ENV_SAMPLE) {
            Err(_) => Sample::Auto,
            Ok(text) => {
                text.parse().map_err(|what| Error::invalid(format!("{ENV_SAMPLE} {text:?}: {what}")))?
            }
        };
        let options = Options { keys, sample, source: source.to_owned(), ..Options::default() };
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        let mut candidate = PathBuf::from(&path);
        for number in 1.. {
            match Recorder::create_in(&fs, &candidate, options.clone()) {
                Err(Error::Vfs(error))
                    if error.kind() == cairn_vfs::ErrorKind::Conflict && number < 10_000 => {}
                made => return made.map(Some),
            }
            let mut name = path.clone();
            name.push(format!(".{number}"));
            candidate = PathBuf::from(name);
        }
        Ok(None)
    }

    /// Records one operation. `key` is the real key; a [`Detail::DeleteRange`] has the real end.
    #[inline]
    pub fn record(&self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        self.record_with(keyspace, key, || detail);
    }

    /// As [`Recorder::record`]; `detail` is asked only for an operation whose key may be in the
    /// sample.
    #[inline]
    pub fn record_with<'a>(&self, keyspace: u32, key: &[u8], detail: impl FnOnce() -> Detail<'a>) {
        if !HOT.with(|hot| hot.passes_over(self.number, key)) {
            self.record_wanted(keyspace, key, detail());
        }
    }

    /// Records an operation whose key may be in the sample.
    #[inline(never)]
    fn record_wanted(&self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        let shared = &*self.shared;
        let is_in = HOT.with(|hot| {
            let left = hot.left.get();
            if hot.recorder.get() != self.number || left == 0 || hot.epoch.get() != shared.epoch() {
                return false;
            }
            hot.left.set(left - 1);
            let Some(key) = shared.stored(key) else { return true };
            let operation = ring::operation(keyspace, key, detail, false);
            let ring = operation.zip(hot.ring.get());
            let is_in = ring.is_some_and(|(operation, ring)| ring.push(&hot.place, operation, key));
            if !is_in {
                // It is counted where it is recorded.
                hot.left.set(left);
            }
            is_in
        });
        if !is_in {
            self.record_slowly(keyspace, key, detail);
        }
    }

    /// Where there is something special about it: the clock, the key, the ring, the thread.
    #[cold]
    #[inline(never)]
    fn record_slowly(&self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        let done = LOCAL.try_with(|local| {
            let Ok(mut local) = local.try_borrow_mut() else { return false };
            HOT.with(|hot| {
                if !self.begin(hot, &mut local) {
                    return false;
                }
                hot.left.set(hot.left.get().saturating_sub(1));
                self.shared.put_in(hot, &local, None, (false, keyspace), key, detail);
                true
            })
        });
        if done != Ok(true) {
            self.shared.drop_one(key);
        }
    }

    /// Makes sure that the thread's place is in this recorder, at a time that is known. False where
    /// nothing is recorded any more.
    fn begin(&self, hot: &Hot, local: &mut Local) -> bool {
        let shared = &self.shared;
        if local.recorder != shared.number {
            local.adopt(hot, shared);
        }
        hot.recorder.set(shared.number);
        (hot.left.get() > 0 && hot.epoch.get() == shared.epoch()) || shared.look_at_clock(hot, local)
    }

    /// Records operations that belong together: a batch, a multi-get. Within `fill` nothing else is
    /// recorded.
    pub fn batch(&self, fill: impl FnOnce(&mut Batch<'_>)) {
        let shared = &*self.shared;
        let done = LOCAL.try_with(|local| {
            let Ok(mut local) = local.try_borrow_mut() else { return false };
            HOT.with(|hot| {
                let is_on = self.begin(hot, &mut local);
                hot.left.set(hot.left.get().saturating_sub(1));
                // In a lane of several threads nobody else comes between.
                let lane = local.lane.as_ref().filter(|lane| lane.ring.is_none()).cloned();
                let end = lane.as_ref().map(|lane| lock(&lane.end));
                hot.recorder.set(0);
                fill(&mut Batch { shared, place: is_on.then_some((hot, &*local)), end, joined: false });
                hot.recorder.set(shared.number);
                true
            })
        });
        if done != Ok(true) {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a lookup; `found` is the value's length.
    #[inline]
    pub fn get(&self, keyspace: u32, key: &[u8], found: Option<usize>) {
        self.record(keyspace, key, Detail::Get(Some(found.map(|bytes| bytes as u64))));
    }

    /// Records a write of a value of so many bytes.
    #[inline]
    pub fn put(&self, keyspace: u32, key: &[u8], value_bytes: usize) {
        self.record(keyspace, key, Detail::Put(value_bytes as u64));
    }

    /// Records a removal.
    #[inline]
    pub fn delete(&self, keyspace: u32, key: &[u8]) {
        self.record(keyspace, key, Detail::Delete);
    }

    /// Records a scan that began at `from` and read so many entries.
    #[inline]
    pub fn scan(&self, keyspace: u32, from: &[u8], entries: u64, backwards: bool) {
        self.record(keyspace, from, Detail::Scan { entries, backwards });
    }

    /// Records a statement of SQL and the rows that it returned or changed. Of a raw trace its text
    /// is kept, up to 65,535 bytes, literals included.
    #[inline]
    pub fn statement(&self, text: &str, rows: u64) {
        self.record(
            0,
            text.as_bytes().get(..text.len().min(KEY_BYTES_MAX)).unwrap_or_default(),
            Detail::Statement(rows),
        );
    }

    /// Writes what all threads have recorded so far. Not durable.
    ///
    /// Errors: the one that ended the recording.
    pub fn flush(&self) -> Result<()> {
        for lane in self.shared.lanes() {
            let mut end = lock(&lane.end);
            self.shared.drain(&lane, &mut end, u64::MAX);
            self.shared.write(&mut end.pending);
        }
        match &lock(&self.shared.tail).error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Ends the trace, with what all threads have recorded before; what others record meanwhile may
    /// be part of it or not. Durable when it returns. Further calls return the same.
    ///
    /// Errors: the one that ended the recording before; the file then reads as one that was cut.
    pub fn finish(&self) -> Result<Summary> {
        self.shared.finish()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Nobody is left to be told. A trace without an end reads as one that was cut, which it is.
        let _ = self.shared.finish();
        if let Some(helper) = self.helper.take() {
            // It does nothing that could panic, and if it did, that has been printed.
            let _ = helper.join();
        }
    }
}

/// Operations that belong together, being recorded.
#[derive(Debug)]
pub struct Batch<'a> {
    shared: &'a Shared,
    /// The thread's. `None` where nothing is recorded any more.
    place: Option<(&'a Hot, &'a Local)>,
    /// Held where the lane has no ring.
    end: Option<MutexGuard<'a, LaneEnd>>,
    joined: bool,
}

impl Batch<'_> {
    /// Records one of them.
    #[inline]
    pub fn record(&mut self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        self.count(1);
        // What is not in the sample is not what others are joined to.
        if !self.sampler().leaves_out(key) {
            self.record_counted(keyspace, key, detail);
        }
    }

    /// What tells operations apart that are not in the sample, for who has many: they are counted
    /// with [`Batch::count`] all at once, and those that are not left out are recorded with
    /// [`Batch::record_counted`].
    #[inline]
    pub fn sampler(&self) -> Sampler {
        self.place.map_or(Sampler::ALL, |(hot, _)| hot.sampler())
    }

    /// Takes note of how many operations there are.
    #[inline]
    pub fn count(&mut self, operations: usize) {
        if let Some((hot, _)) = self.place {
            // The clock's count has the batch as one.
            hot.batched.set(hot.batched.get().saturating_add(operations as u32));
        }
    }

    /// Records one that was counted and that [`Batch::sampler`] does not leave out.
    #[inline(never)]
    pub fn record_counted(&mut self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        let Some((hot, local)) = self.place else { return self.shared.drop_one(key) };
        self.joined |=
            self.shared.put_in(hot, local, self.end.as_deref_mut(), (self.joined, keyspace), key, detail);
    }
}

#[cfg(test)]
mod lowered_tests;
#[cfg(test)]
mod tests;
