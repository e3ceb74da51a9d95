//! Records a running program. Threads write to rings, read the clock as rarely as possible, and
//! never see errors of the recorder.
//!
//! ```text
//!   operation ─► thread's ring ─(helper, or thread of a full ring)─► lane ─(64 KiB, 1 s)─► file
//!       key hashed, sampled; clock read now and then                      encoding
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

/// The environment variable that names the file for [`Recorder::from_env`].
pub const ENV_PATH: &str = "CAIRN_TRACE";
/// The environment variable for the form of keys: `raw` keeps them unchanged.
pub const ENV_KEYS: &str = "CAIRN_TRACE_KEYS";
/// The environment variable for the sample: `auto`, or a number `n` to record the operations of one
/// key in `n`. See [`Sample`].
pub const ENV_SAMPLE: &str = "CAIRN_TRACE_SAMPLE";

/// Options of a recorder.
#[derive(Debug, Clone)]
pub struct Options {
    /// The form of keys. Default: hashed, because keys may contain personal data.
    pub keys: KeyForm,
    /// The share of keys that is recorded. Default: [`Sample::Auto`], which records all keys as
    /// long as that costs a thread little time.
    pub sample: Sample,
    /// Recording stops once the file has this many bytes. Default: 16 GiB.
    pub bytes_max: u64,
    /// A description of the traced program, stored in the trace. Default: empty.
    pub source: String,
    /// The seed of the key hashes. Default: a random number that is stored nowhere. Traces of two
    /// runs can then not be joined, and nobody can test guessed keys.
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

/// The result of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The number of operations in the file. If the share was lowered, this includes operations of
    /// keys outside the final sample, which readers skip.
    pub records: u64,
    /// The number of operations that were not recorded because of [`Options::bytes_max`] or an
    /// error.
    pub dropped: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The final sample: the operations of one key in this many were recorded.
    pub sample: u32,
}

/// Records operations of any number of threads to a trace. Cheap to clone. The trace ends with
/// [`Recorder::finish`], or when the last clone is dropped.
///
/// Recording an operation costs the calling thread a hash of the key and writes to thread-local
/// memory. A helper thread does the rest. A recorder never fails an operation: after an error,
/// recording stops, the operations that follow are counted as dropped, and [`Recorder::finish`]
/// returns the error.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    /// Unique in the process. A thread compares it to see whether its cached state belongs to this
    /// recorder.
    number: u64,
    /// Ends the recording when the last clone is dropped.
    _owner: Arc<Owner>,
}

/// Finishes the trace when the last recorder is dropped.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    helper: Option<thread::JoinHandle<()>>,
}

impl Recorder {
    /// Records to a new file on the real disk. Errors: [`Error::Vfs`] if the file exists,
    /// [`Error::Invalid`].
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Recorder> {
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        Recorder::create_in(&fs, path.as_ref(), options)
    }

    /// Like [`Recorder::create`], on another file system.
    pub fn create_in(fs: &Arc<dyn Fs>, path: &Path, options: Options) -> Result<Recorder> {
        let shared = Shared::create(fs, path, options, Arc::new(SystemClock::new()))?;
        // If no thread can be started, the recording threads do the helper's work.
        let helper = helper::start(&shared).ok();
        Ok(Recorder::of(shared, helper))
    }

    /// Like [`Recorder::create_in`], with the caller's clock and without a helper thread, so that
    /// the times of all writes are deterministic.
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

    /// Creates a recorder if the environment requests one, else returns `None`. [`ENV_PATH`] names
    /// the file; [`ENV_KEYS`] and [`ENV_SAMPLE`] set options. `source` describes the program.
    ///
    /// Call [`Recorder::finish`] before the program ends and report its result, because the user
    /// who set the environment cannot call it. Without it, the only sign of a full disk is a trace
    /// without an end.
    ///
    /// An existing file is left unchanged: the recorder uses the first free one of `<file>.1`,
    /// `<file>.2`, ... A program may thus open several stores, each with its own trace.
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

    /// Records one operation. `key` is the original key, and so is the end of a
    /// [`Detail::DeleteRange`].
    #[inline]
    pub fn record(&self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        self.record_with(keyspace, key, || detail);
    }

    /// Like [`Recorder::record`]. Calls `detail` only for an operation whose key may be in the
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
                // The slow path counts it.
                hot.left.set(left);
            }
            is_in
        });
        if !is_in {
            self.record_slowly(keyspace, key, detail);
        }
    }

    /// Records an operation that needs the slow path: because the clock must be read, the key is
    /// long, the ring is full or missing, or the thread's state belongs to another recorder.
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

    /// Attaches the calling thread to this recorder and reads the clock if necessary. Returns false
    /// if recording has stopped.
    fn begin(&self, hot: &Hot, local: &mut Local) -> bool {
        let shared = &self.shared;
        if local.recorder != shared.number {
            local.adopt(hot, shared);
        }
        hot.recorder.set(shared.number);
        (hot.left.get() > 0 && hot.epoch.get() == shared.epoch()) || shared.look_at_clock(hot, local)
    }

    /// Records operations that belong together, such as a batch or a multi-get. Calls to the
    /// recorder within `fill` record nothing; they count as dropped.
    pub fn batch(&self, fill: impl FnOnce(&mut Batch<'_>)) {
        let shared = &*self.shared;
        let done = LOCAL.try_with(|local| {
            let Ok(mut local) = local.try_borrow_mut() else { return false };
            HOT.with(|hot| {
                let is_on = self.begin(hot, &mut local);
                hot.left.set(hot.left.get().saturating_sub(1));
                // Keep the lock of a shared lane, so that no other thread's operation comes
                // between.
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

    /// Records a lookup. `found` is the length of the value.
    #[inline]
    pub fn get(&self, keyspace: u32, key: &[u8], found: Option<usize>) {
        self.record(keyspace, key, Detail::Get(Some(found.map(|bytes| bytes as u64))));
    }

    /// Records a write of a value with this many bytes.
    #[inline]
    pub fn put(&self, keyspace: u32, key: &[u8], value_bytes: usize) {
        self.record(keyspace, key, Detail::Put(value_bytes as u64));
    }

    /// Records a deletion.
    #[inline]
    pub fn delete(&self, keyspace: u32, key: &[u8]) {
        self.record(keyspace, key, Detail::Delete);
    }

    /// Records a scan that began at `from` and read this many entries.
    #[inline]
    pub fn scan(&self, keyspace: u32, from: &[u8], entries: u64, backwards: bool) {
        self.record(keyspace, from, Detail::Scan { entries, backwards });
    }

    /// Records an SQL statement with the number of rows that it returned or changed. A trace with
    /// raw keys keeps its text, up to 65,535 bytes, literals included.
    #[inline]
    pub fn statement(&self, text: &str, rows: u64) {
        self.record(
            0,
            text.as_bytes().get(..text.len().min(KEY_BYTES_MAX)).unwrap_or_default(),
            Detail::Statement(rows),
        );
    }

    /// Writes everything that all threads have recorded so far, without making it durable.
    ///
    /// Errors: the error that ended the recording.
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

    /// Ends the trace. It contains everything that threads recorded before the call; operations
    /// recorded during the call may be missing. The trace is durable when this returns. Further
    /// calls return the same result.
    ///
    /// Errors: the error that ended the recording; the file then reads as one that was cut.
    pub fn finish(&self) -> Result<Summary> {
        self.shared.finish()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // An error cannot be reported here. The file then reads as a trace that was cut, which is
        // correct.
        let _ = self.shared.finish();
        if let Some(helper) = self.helper.take() {
            // The helper should never panic. If it does, the panic message has already been
            // printed.
            let _ = helper.join();
        }
    }
}

/// A batch of operations that is being recorded.
#[derive(Debug)]
pub struct Batch<'a> {
    shared: &'a Shared,
    /// The state of the calling thread. `None` if recording has stopped.
    place: Option<(&'a Hot, &'a Local)>,
    /// The lock of the lane, held if the lane has no ring.
    end: Option<MutexGuard<'a, LaneEnd>>,
    joined: bool,
}

impl Batch<'_> {
    /// Records one operation of the batch.
    #[inline]
    pub fn record(&mut self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        self.count(1);
        // Skip a key outside the sample here, so that no later operation is joined to it.
        if !self.sampler().leaves_out(key) {
            self.record_counted(keyspace, key, detail);
        }
    }

    /// Returns the sampler that tells which operations to skip. A caller with many operations
    /// counts them all at once with [`Batch::count`], and passes those that the sampler keeps to
    /// [`Batch::record_counted`].
    #[inline]
    pub fn sampler(&self) -> Sampler {
        self.place.map_or(Sampler::ALL, |(hot, _)| hot.sampler())
    }

    /// Counts operations, whether or not they are in the sample.
    #[inline]
    pub fn count(&mut self, operations: usize) {
        if let Some((hot, _)) = self.place {
            // The count until the next clock read includes the batch as one operation.
            hot.batched.set(hot.batched.get().saturating_add(operations as u32));
        }
    }

    /// Records an operation that is already counted and that [`Batch::sampler`] keeps.
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
