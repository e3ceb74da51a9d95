//! Recording while a program runs: lanes, a clock that is read as seldom as it can be, and errors that stay here.
//!
//! ```text
//!   operation ─► staged, by its thread alone ─(32, or one where they are rare)─► lane ─(64 KiB, or a second)─► file
//!                a look at the clock each 8
//! ```

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_vfs::sync::{Line, Mutex, lock};
use cairn_vfs::{Clock, Fs, Rng, StdFs, SystemClock, SystemRng, thread};

use crate::error::{Error, Result};
use crate::event::Detail;
use crate::format::{self, Frame, Header, KEY_BYTES_MAX, KeyForm, StoredKey};
use crate::writer::{BLOCK_BYTES, Pending, Tail};

mod staged;

use staged::{STAGED, Staged, staged_for};

/// The environment's word for the file that [`Recorder::from_env`] writes.
pub const ENV_PATH: &str = "CAIRN_TRACE";
/// `raw` keeps keys as they are.
pub const ENV_KEYS: &str = "CAIRN_TRACE_KEYS";
/// A number `n`: the operations of one key in `n` are recorded.
pub const ENV_SAMPLE: &str = "CAIRN_TRACE_SAMPLE";

/// More threads than this share lanes.
const LANES: usize = 64;
/// A block that is older is written, though it is not full.
const AGE_NS: u64 = 1_000_000_000;
/// Operations from one look at the clock to the next, where they are frequent.
const CLOCK_EVERY: u32 = 8;
/// They are, where that many take less than this.
const FREQUENT_NS: u64 = 1_000_000;
/// Frequent operations that a thread keeps to itself before it takes its lane's lock.
const STAGED_MAX: u32 = 32;

/// How a program is recorded.
#[derive(Debug, Clone)]
pub struct Options {
    /// How keys are kept. Default: hashed, since keys tell about people.
    pub keys: KeyForm,
    /// The operations of one key in so many are recorded. Default: 1, all.
    pub sample: u32,
    /// Recording ends when the file has so many bytes. Default: 16 GiB.
    pub bytes_max: u64,
    /// What is traced, for whoever reads the trace. Default: nothing.
    pub source: String,
    /// Seeds the hashes of keys. Default: a random number that is kept nowhere, so that traces of two runs cannot be joined and
    /// guessed keys cannot be looked up.
    pub hash_seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            keys: KeyForm::Hashed,
            sample: 1,
            bytes_max: 16 << 30,
            source: String::new(),
            hash_seed: None,
        }
    }
}

/// What came of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Operations in the trace.
    pub records: u64,
    /// Operations that are not, because of [`Options::bytes_max`] or an error.
    pub dropped: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a trace of what it is told, from any number of threads. Cheap to clone; the trace ends with
/// [`Recorder::finish`] or with the last clone.
///
/// An operation costs a hash of its key and a few bytes in memory of its thread's own, handed over after every 32nd. Nothing
/// that goes wrong is shown to the operation: recording stops, what is not recorded is counted, and [`Recorder::finish`] tells.
#[derive(Debug, Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Of all recorders of the process: what a thread has staged belongs to one.
    number: u64,
    /// False once nothing is recorded any more.
    on: AtomicBool,
    dropped: AtomicU64,
    keys: KeyForm,
    /// Hashes up to here are recorded.
    threshold: u64,
    hash_seed: u64,
    bytes_max: u64,
    start_ns: u64,
    clock: Arc<dyn Clock>,
    lanes: Vec<Line<Mutex<Pending>>>,
    /// Taken with or without a lane's lock, and no lane's lock is taken while it is held.
    tail: Mutex<End>,
}

#[derive(Debug)]
struct End {
    tail: Tail,
    error: Option<Error>,
    summary: Option<Summary>,
}

static RECORDERS: AtomicU64 = AtomicU64::new(1);

impl Recorder {
    /// Records to a new file on the real disk. Errors: [`Error::Vfs`] where there is a file, [`Error::Invalid`].
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Recorder> {
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        Recorder::create_in(&fs, path.as_ref(), options)
    }

    /// As [`Recorder::create`], on another file system.
    pub fn create_in(fs: &Arc<dyn Fs>, path: &Path, options: Options) -> Result<Recorder> {
        Recorder::with_clock(fs, path, options, Arc::new(SystemClock::new()))
    }

    /// As [`Recorder::create_in`], by a clock of the caller's.
    pub fn with_clock(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Recorder> {
        if options.sample == 0 {
            return Err(Error::invalid("sample 0: expected the operations of one key in 1 or more"));
        }
        let started = clock.wall();
        let random = |seed: u64| SystemRng::new().map_or(seed, |mut rng| rng.next_u64());
        let header = Header {
            keys: options.keys,
            timed: true,
            started_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            file_id: random(started.as_nanos() as u64),
            sample: options.sample,
            source: options.source,
        };
        let tail = Tail::create(&**fs, path, &header)?;
        let lane = |number: usize| Line(Mutex::new(Pending::new(number as u32)));
        let inner = Inner {
            number: RECORDERS.fetch_add(1, Ordering::Relaxed),
            on: AtomicBool::new(true),
            dropped: AtomicU64::new(0),
            keys: options.keys,
            threshold: u64::MAX / u64::from(options.sample),
            hash_seed: options.hash_seed.unwrap_or_else(|| random(!started.as_nanos() as u64)),
            bytes_max: options.bytes_max,
            start_ns: clock.now().as_nanos() as u64,
            clock,
            lanes: (0..LANES).map(lane).collect(),
            tail: Mutex::new(End { tail, error: None, summary: None }),
        };
        Ok(Recorder { inner: Arc::new(inner) })
    }

    /// A recorder where the environment asks for one: [`ENV_PATH`] names the file, [`ENV_KEYS`] and [`ENV_SAMPLE`] say how. `None`
    /// where it does not. `source` says what is traced.
    ///
    /// Call [`Recorder::finish`] before the program ends, and say what it returns: whoever asked by the environment cannot. Without that a
    /// full disk shows only in a trace that has no end.
    ///
    /// A file that is there already is left alone, and the next free of `<file>.1`, `<file>.2`, ... is written: a program may open
    /// several stores, and each gets its trace.
    pub fn from_env(source: &str) -> Result<Option<Recorder>> {
        let Some(path) = env::var_os(ENV_PATH).filter(|path| !path.is_empty()) else { return Ok(None) };
        let keys = match env::var(ENV_KEYS).as_deref() {
            Err(_) | Ok("" | "hashed") => KeyForm::Hashed,
            Ok("raw") => KeyForm::Raw,
            Ok(other) => return Err(Error::invalid(format!("{ENV_KEYS} {other:?}: expected raw or hashed"))),
        };
        let sample =
            match env::var(ENV_SAMPLE) {
                Err(_) => 1,
                Ok(text) => text.parse().ok().filter(|sample| *sample > 0).ok_or_else(|| {
                    Error::invalid(format!("{ENV_SAMPLE} {text:?}: expected a number from 1"))
                })?,
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
        let inner = &*self.inner;
        let Some(stored) = inner.stored(key) else { return };
        let done = STAGED.try_with(|staged| {
            let Ok(mut staged) = staged.try_borrow_mut() else { return false };
            let staged = &mut *staged;
            if !self.begin(staged) {
                return false;
            }
            inner.push(staged, (false, keyspace), stored, detail);
            staged.left -= 1;
            if staged.left == 0 && (staged.is_rare || staged.count >= STAGED_MAX) {
                inner.hand_over(staged);
            }
            true
        });
        if done != Ok(true) {
            inner.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes sure that what is staged is this recorder's and has a time. False where nothing is recorded any more.
    #[inline]
    fn begin(&self, staged: &mut Staged) -> bool {
        if staged.recorder != self.inner.number {
            self.adopt(staged);
        }
        staged.left > 0 || self.inner.look_at_clock(staged)
    }

    /// The thread goes over to this recorder.
    #[cold]
    fn adopt(&self, staged: &mut Staged) {
        if let Some(other) = staged.inner.upgrade() {
            other.hand_over(staged);
        }
        staged.belong_to(self.inner.number, Arc::downgrade(&self.inner));
    }

    /// Records operations that belong together: a batch, a multi-get. Within `fill` nothing else is recorded.
    pub fn batch(&self, fill: impl FnOnce(&mut Batch<'_>)) {
        let inner = &*self.inner;
        let done = STAGED.try_with(|staged| {
            let Ok(mut staged) = staged.try_borrow_mut() else { return false };
            let recorded = self.begin(&mut staged);
            fill(&mut Batch { inner, staged: recorded.then_some(&mut *staged), joined: false });
            inner.hand_over(&mut staged);
            true
        });
        if done != Ok(true) {
            inner.dropped.fetch_add(1, Ordering::Relaxed);
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

    /// Records a statement of SQL and the rows that it returned or changed. Of a raw trace its text is kept, up to 65,535
    /// bytes, literals included.
    #[inline]
    pub fn statement(&self, text: &str, rows: u64) {
        self.record(
            0,
            text.as_bytes().get(..text.len().min(KEY_BYTES_MAX)).unwrap_or_default(),
            Detail::Statement(rows),
        );
    }

    /// Writes what was recorded so far. Not durable. Of other threads that still run, up to 31 last operations are missing: they come
    /// with their next ones, or with the thread's end.
    ///
    /// Errors: the one that ended the recording.
    pub fn flush(&self) -> Result<()> {
        self.hand_over_own();
        for lane in &self.inner.lanes {
            self.inner.write(&mut lock(lane));
        }
        match &lock(&self.inner.tail).error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Ends the trace. Operations that other threads that still run have not handed over, 31 each at most, are lost and counted as dropped. A thread hands them over
    /// before it can be joined; [`std::thread::scope`] alone does not wait so long, joining its threads does. Durable when it returns. Further calls return the
    /// same.
    ///
    /// Errors: the one that ended the recording before; the file then reads as one that was cut.
    pub fn finish(&self) -> Result<Summary> {
        self.hand_over_own();
        self.inner.finish()
    }

    /// Hands over what the calling thread has staged here.
    fn hand_over_own(&self) {
        // A thread that is ending has handed over by itself.
        let _ = STAGED.try_with(|staged| {
            if let Ok(mut staged) = staged.try_borrow_mut()
                && staged.recorder == self.inner.number
            {
                self.inner.hand_over(&mut staged);
            }
        });
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // With the last one the trace ends; what the thread has staged belongs to it.
        if Arc::strong_count(&self.inner) == 1 {
            self.hand_over_own();
        }
    }
}

/// Operations that belong together, being recorded.
#[derive(Debug)]
pub struct Batch<'a> {
    inner: &'a Inner,
    /// `None` where nothing is recorded any more.
    staged: Option<&'a mut Staged>,
    joined: bool,
}

impl Batch<'_> {
    /// Records one of them.
    pub fn record(&mut self, keyspace: u32, key: &[u8], detail: Detail<'_>) {
        let Some(stored) = self.inner.stored(key) else { return };
        let Some(staged) = &mut self.staged else {
            self.inner.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.inner.push(staged, (self.joined, keyspace), stored, detail);
        self.joined = true;
        // BOUND: a batch of any size is handed over in parts that a block has room for.
        if staged.records.len() > BLOCK_BYTES {
            self.inner.hand_over(staged);
        }
    }
}

impl Inner {
    /// The key as it is kept; `None` for one that is not in the sample.
    #[inline]
    fn stored<'a>(&self, key: &'a [u8]) -> Option<StoredKey<'a>> {
        let key = key.get(..key.len().min(KEY_BYTES_MAX))?;
        if self.keys == KeyForm::Raw && self.threshold == u64::MAX {
            return Some(StoredKey::Raw(key));
        }
        let hash = xxh3_64_seeded(key, self.hash_seed);
        (hash <= self.threshold).then_some(match self.keys {
            KeyForm::Hashed => StoredKey::Hash(hash, key.len() as u32),
            KeyForm::Raw => StoredKey::Raw(key),
        })
    }

    /// Notes when the operations that follow are, and how many of them there may be before the next look.
    #[inline]
    fn look_at_clock(&self, staged: &mut Staged) -> bool {
        if !self.on.load(Ordering::Relaxed) {
            return false;
        }
        let now_ns = (self.clock.now().as_nanos() as u64).saturating_sub(self.start_ns);
        staged.is_rare = now_ns.saturating_sub(staged.now_ns) >= FREQUENT_NS;
        staged.left = if staged.is_rare { 1 } else { CLOCK_EVERY };
        staged.now_ns = now_ns;
        true
    }

    #[inline]
    fn push(
        &self,
        staged: &mut Staged,
        (joined, keyspace): (bool, u32),
        key: StoredKey<'_>,
        detail: Detail<'_>,
    ) {
        let end = match detail {
            Detail::DeleteRange { end, .. } => Some(self.stored_end(end)),
            _ => None,
        };
        let delta_ns = staged.step();
        format::encode(&mut staged.records, Frame { joined, delta_ns, keyspace }, key, detail, end);
        staged.add_one();
    }

    #[cold]
    fn stored_end<'a>(&self, end: &'a [u8]) -> StoredKey<'a> {
        let end = end.get(..end.len().min(KEY_BYTES_MAX)).unwrap_or_default();
        match self.keys {
            KeyForm::Hashed => StoredKey::Hash(xxh3_64_seeded(end, self.hash_seed), end.len() as u32),
            KeyForm::Raw => StoredKey::Raw(end),
        }
    }

    /// Puts what a thread has staged into its lane, and the lane into the file where it is full or old.
    fn hand_over(&self, staged: &mut Staged) {
        if staged.count == 0 {
            return;
        }
        // LANES of them were made, so there is always one.
        let mut pending = lock(&self.lanes[thread::number() % LANES].0);
        pending.push_group((staged.first_ns, staged.last_ns), &staged.records, staged.count);
        staged.clear();
        if pending.is_full() || pending.last_ns - pending.first_ns > AGE_NS {
            self.write(&mut pending);
            let now_ns = pending.last_ns;
            drop(pending);
            self.write_old(now_ns);
        }
    }

    /// Writes lanes whose threads have gone quiet: nobody else would before the end.
    #[cold]
    fn write_old(&self, now_ns: u64) {
        for lane in &self.lanes {
            let mut pending = lock(lane);
            if !pending.is_empty() && now_ns.saturating_sub(pending.first_ns) > AGE_NS {
                self.write(&mut pending);
            }
        }
    }

    /// Appends a lane's block. After an error, or at the limit, recording is over.
    #[cold]
    fn write(&self, pending: &mut Pending) {
        if pending.is_empty() {
            return;
        }
        let mut end = lock(&self.tail);
        if end.error.is_some() || end.summary.is_some() {
            self.dropped.fetch_add(pending.discard(), Ordering::Relaxed);
            return;
        }
        let records = pending.records();
        if let Err(error) = pending.flush(&mut end.tail) {
            self.on.store(false, Ordering::Relaxed);
            self.dropped.fetch_add(records, Ordering::Relaxed);
            end.error = Some(error);
        } else if end.tail.bytes() >= self.bytes_max {
            self.on.store(false, Ordering::Relaxed);
        }
    }

    fn finish(&self) -> Result<Summary> {
        self.on.store(false, Ordering::Relaxed);
        // What others have staged is not waited for.
        let staged = staged_for(self.number);
        let mut last_ns = 0;
        for lane in &self.lanes {
            let mut pending = lock(lane);
            self.write(&mut pending);
            last_ns = last_ns.max(pending.last_ns);
        }
        let mut end = lock(&self.tail);
        if let Some(error) = &end.error {
            return Err(error.clone());
        }
        if let Some(summary) = end.summary {
            return Ok(summary);
        }
        let dropped = self.dropped.load(Ordering::Relaxed) + staged;
        if let Err(error) = end.tail.finish(last_ns, dropped) {
            end.error = Some(error.clone());
            return Err(error);
        }
        let summary = Summary { records: end.tail.records, dropped, bytes: end.tail.bytes() };
        end.summary = Some(summary);
        Ok(summary)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nobody is left to be told. A trace without an end reads as one that was cut, which it is.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests;
