//! The state that the recorders of one trace share with their helper: lanes, clock and file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cairn_codec::key_hash::KeyHash;
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{Clock, Fs, Rng, SystemRng, thread};

use super::helper::Bell;
use super::lane::{Lane, LaneEnd};
use super::local::{Hot, Local};
use super::ring::{self, Item, Ring};
use super::{Options, Summary};
use crate::error::{Error, Result};
use crate::event::Detail;
use crate::format::{Adaptive, Header, KEY_BYTES_MAX, KeyForm, SampleHash, StoredKey};
use crate::sample::{self, Sample};
use crate::writer::{Pending, Tail, Totals};

/// The number of threads that get a lane of their own, with a ring. Further threads share lanes
/// without a ring.
const RINGS: usize = 64;
/// The number of shared lanes.
const SHARED: usize = 16;
/// A block older than this is written even if it is not full.
const AGE_NS: u64 = 1_000_000_000;
/// The maximum number of operations between two clock reads.
const CLOCK_EVERY: u32 = 512;
/// Clock reads closer together than this become rarer, so that they cost less than a hundredth of
/// the time.
const LOOKS_NEAR_NS: u64 = 64_000;
/// Clock reads further apart than this become more frequent. It bounds how late a time in the trace
/// can be while operations arrive evenly.
const LOOKS_FAR_NS: u64 = 256_000;
/// After a pause of this length, each operation reads the clock.
const PAUSE_NS: u64 = 1_000_000;
/// The number of words drained from a ring at once. The lock is released in between, because the
/// thread may be waiting for room.
const PIECE_WORDS: u64 = 4096;

static RECORDERS: AtomicU64 = AtomicU64::new(1);

/// The state shared by recorders and helper.
#[derive(Debug)]
pub(super) struct Shared {
    /// Unique among all recorders of the process.
    pub number: u64,
    /// False once recording has stopped.
    pub on: AtomicBool,
    /// Changes when threads should read the clock: because time has passed, or recording has
    /// stopped.
    epoch: AtomicU64,
    pub dropped: AtomicU64,
    keys: KeyForm,
    /// Hashes up to this value are recorded. It only falls.
    threshold: AtomicU64,
    /// True if the threshold may fall.
    adaptive: bool,
    /// The time of an operation when the threshold last fell; 0 if it never did.
    operation_ns: AtomicU64,
    hash: KeyHash,
    bytes_max: u64,
    start_ns: u64,
    clock: Arc<dyn Clock>,
    pub bell: Bell,
    /// The time when [`Shared::tend`] last ran.
    tended_ns: AtomicU64,
    /// All lanes, by number. This lock is taken before a lane's lock.
    lanes: Mutex<Vec<Arc<Lane>>>,
    /// This lock is taken with or without a lane's lock. No lane's lock is taken while it is held.
    pub tail: Mutex<End>,
}

#[derive(Debug)]
pub(super) struct End {
    tail: Tail,
    pub error: Option<Error>,
    summary: Option<Summary>,
}

impl Shared {
    pub fn create(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Shared>> {
        let first = options.sample.first();
        if first == 0 {
            return Err(Error::invalid("sample 0: expected 1 or more"));
        }
        let started = clock.wall();
        let random = |seed: u64| SystemRng::new().map_or(seed, |mut rng| rng.next_u64());
        let adaptive = options.sample == Sample::Auto;
        let seed = options.hash_seed.unwrap_or_else(|| random(!started.as_nanos() as u64));
        let header = Header {
            keys: options.keys,
            timed: true,
            started_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            file_id: random(started.as_nanos() as u64),
            sample: first,
            adaptive: adaptive.then_some(Adaptive { hash: SampleHash::Rapid, seed }),
            source: options.source,
        };
        let tail = Tail::create(fs, path, &header)?;
        let shared = Shared {
            number: RECORDERS.fetch_add(1, Ordering::Relaxed),
            on: AtomicBool::new(true),
            epoch: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            keys: options.keys,
            threshold: AtomicU64::new(sample::threshold(first)),
            adaptive,
            operation_ns: AtomicU64::new(0),
            hash: KeyHash::new(seed),
            bytes_max: options.bytes_max,
            start_ns: clock.now().as_nanos() as u64,
            clock,
            bell: Bell::default(),
            tended_ns: AtomicU64::new(0),
            lanes: Mutex::default(),
            tail: Mutex::new(End { tail, error: None, summary: None }),
        };
        Ok(Arc::new(shared))
    }

    /// Returns the epoch, which changes when threads should read the clock.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Returns all lanes.
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        lock(&self.lanes).clone()
    }

    /// Returns a lane for the calling thread: one of its own while there are any, else a shared
    /// one.
    pub fn free_lane(&self) -> Arc<Lane> {
        let mut lanes = lock(&self.lanes);
        if let Some(lane) = lanes.iter().find(|lane| lane.ring.is_some() && lane.take()) {
            return Arc::clone(lane);
        }
        let at = if lanes.len() < RINGS { lanes.len() } else { RINGS + thread::number() % SHARED };
        while lanes.len() <= at {
            let number = lanes.len();
            lanes.push(Arc::new(Lane::new(number as u32, number < RINGS)));
        }
        let lane = Arc::clone(lanes.get(at).unwrap_or_else(|| unreachable!("lanes reach up to it")));
        lane.take();
        lane
    }

    pub fn now_ns(&self) -> u64 {
        (self.clock.now().as_nanos() as u64).saturating_sub(self.start_ns)
    }

    /// Reads the clock for the operations that follow, and decides how many there may be before the
    /// next read. Returns false if recording has stopped.
    pub fn look_at_clock(&self, hot: &Hot, local: &mut Local) -> bool {
        let epoch = self.epoch.load(Ordering::Acquire);
        if !self.on.load(Ordering::Relaxed) {
            return false;
        }
        let now_ns = self.now_ns();
        let elapsed_ns = now_ns.saturating_sub(local.now_ns);
        if self.adaptive {
            self.weigh(hot, local, elapsed_ns);
        }
        let step = match elapsed_ns {
            0..LOOKS_NEAR_NS => local.step * 2,
            LOOKS_NEAR_NS..LOOKS_FAR_NS => local.step,
            LOOKS_FAR_NS..PAUSE_NS => local.step / 2,
            PAUSE_NS.. => 1,
        };
        local.step = step.clamp(1, CLOCK_EVERY);
        hot.epoch.set(epoch);
        hot.left.set(local.step);
        hot.threshold.set(self.threshold.load(Ordering::Relaxed));
        hot.hash.set(self.hash);
        let is_new = now_ns != local.now_ns || !local.is_told;
        (local.now_ns, local.is_told) = (now_ns, true);
        if let Some(lane) = &local.lane
            && let Some(ring) = lane.ring
        {
            if is_new && !ring.push_time(&hot.place, now_ns) {
                let mut end = lock(&lane.end);
                self.drain(lane, &mut end, u64::MAX);
                end.now_ns = now_ns;
            }
            if ring.is_filling(&hot.place) {
                self.bell.ring();
            }
        }
        if !self.bell.is_there.load(Ordering::Relaxed)
            && now_ns.saturating_sub(self.tended_ns.load(Ordering::Relaxed)) > AGE_NS
        {
            self.tend(now_ns);
        }
        true
    }

    /// Halves the share of keys if the thread's operations have been too fast for too long,
    /// including those since its last clock read.
    fn weigh(&self, hot: &Hot, local: &mut Local, elapsed_ns: u64) {
        let operations = u64::from(local.step.saturating_sub(hot.left.get())) + u64::from(hot.batched.take());
        let threshold = self.threshold.load(Ordering::Relaxed);
        let sample = sample::of_threshold(threshold);
        let Some(operation_ns) = local.pace.add(sample, operations, elapsed_ns) else { return };
        let lower = sample::threshold(sample.saturating_mul(2));
        self.operation_ns.store(operation_ns, Ordering::Relaxed);
        // ORDER: a thread that sees the threshold sees the operation time that it was lowered for.
        // If another thread has lowered it in the meantime, one halving is enough.
        let _ = self.threshold.compare_exchange(threshold, lower, Ordering::Release, Ordering::Relaxed);
    }

    /// Returns the sample: the operations of one key in this many are recorded.
    ///
    /// ORDER: a thread that drains a lane sees no higher threshold here than the recording thread
    /// did. Both load the same atomic, and the ring's tail or the lane's lock orders the two loads.
    /// So no block claims a larger share of keys than that of its operations.
    fn sample(&self) -> u32 {
        sample::of_threshold(self.threshold.load(Ordering::Acquire))
    }

    /// Records an operation of the calling thread. Returns false if its key is not in the sample.
    /// `end` is the lane's end, if the caller holds its lock.
    #[inline(always)]
    pub fn put_in(
        &self,
        hot: &Hot,
        local: &Local,
        end: Option<&mut LaneEnd>,
        (joined, keyspace): (bool, u32),
        key: &[u8],
        detail: Detail<'_>,
    ) -> bool {
        let Some(key) = self.stored(key) else { return false };
        let operation = ring::operation(keyspace, key, detail, joined);
        let is_in = operation
            .zip(hot.ring.get())
            .is_some_and(|(operation, ring)| ring.push(&hot.place, operation, key));
        if !is_in {
            self.put_past_ring(local, end, (joined, keyspace), key, detail);
        }
        true
    }

    /// Records an operation that bypasses the ring because it is rare or large, because the ring is
    /// full, or because there is no ring.
    #[cold]
    fn put_past_ring(
        &self,
        local: &Local,
        end: Option<&mut LaneEnd>,
        frame: (bool, u32),
        key: StoredKey<'_>,
        detail: Detail<'_>,
    ) {
        let Some(lane) = &local.lane else { return };
        let mut taken = end.is_none().then(|| lock(&lane.end));
        let Some(end) = end.or(taken.as_deref_mut()) else { return };
        self.drain(lane, end, u64::MAX);
        end.now_ns = local.now_ns;
        self.encode(end, frame, key, detail);
    }

    /// Drains up to `words_max` words of a lane's ring, and writes each block that becomes full.
    pub fn drain(&self, lane: &Lane, end: &mut LaneEnd, words_max: u64) {
        let Some(ring) = lane.ring else { return };
        ring.drain(self.keys, words_max, |item| match item {
            Item::Time(now_ns) => end.now_ns = now_ns,
            Item::Operation { joined, keyspace, key, detail } => {
                self.encode(end, (joined, keyspace), key, detail);
            }
        });
    }

    #[inline]
    fn encode(&self, end: &mut LaneEnd, frame: (bool, u32), key: StoredKey<'_>, detail: Detail<'_>) {
        let range_end = match detail {
            Detail::DeleteRange { end, .. } => Some(self.stored_end(end)),
            _ => None,
        };
        end.pending.push(end.now_ns, frame, key, detail, range_end);
        if end.pending.is_full() {
            self.write(&mut end.pending);
        }
    }

    /// Returns the key in its stored form; `None` if it is not in the sample.
    #[inline(always)]
    pub fn stored<'a>(&self, key: &'a [u8]) -> Option<StoredKey<'a>> {
        let key = key.get(..key.len().min(KEY_BYTES_MAX))?;
        let threshold = self.threshold.load(Ordering::Relaxed);
        if self.keys == KeyForm::Raw && threshold == u64::MAX {
            return Some(StoredKey::Raw(key));
        }
        let hash = self.hash.of(key);
        (hash <= threshold).then_some(match self.keys {
            KeyForm::Hashed => StoredKey::Hash(hash, key.len() as u32),
            KeyForm::Raw => StoredKey::Raw(key),
        })
    }

    /// Counts an operation as dropped, unless its key is not in the sample, in which case it would
    /// not have been recorded anyway.
    #[cold]
    pub fn drop_one(&self, key: &[u8]) {
        if self.stored(key).is_some() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[cold]
    fn stored_end<'a>(&self, end: &'a [u8]) -> StoredKey<'a> {
        let end = end.get(..end.len().min(KEY_BYTES_MAX)).unwrap_or_default();
        match self.keys {
            KeyForm::Hashed => StoredKey::Hash(self.hash.of(end), end.len() as u32),
            KeyForm::Raw => StoredKey::Raw(end),
        }
    }

    /// Drains the rings of all lanes and writes old blocks, including those of idle threads.
    /// Returns the number of words that the fullest ring had.
    pub fn tend(&self, now_ns: u64) -> u64 {
        self.tended_ns.store(now_ns, Ordering::Relaxed);
        let mut most = 0;
        for lane in self.lanes() {
            let mut used = lane.ring.map_or(0, Ring::used);
            most = most.max(used);
            loop {
                let mut end = lock(&lane.end);
                self.drain(&lane, &mut end, PIECE_WORDS);
                if used > PIECE_WORDS {
                    used -= PIECE_WORDS;
                    continue;
                }
                let pending = &mut end.pending;
                if !pending.is_empty() && now_ns.saturating_sub(pending.first_ns) > AGE_NS {
                    self.write(pending);
                }
                break;
            }
        }
        self.epoch.fetch_add(1, Ordering::Release);
        most
    }

    /// Appends the pending block of a lane to the file. Recording stops after an error or at the
    /// size limit.
    #[cold]
    pub fn write(&self, pending: &mut Pending) {
        if pending.is_empty() {
            return;
        }
        let mut end = lock(&self.tail);
        if end.error.is_some() || end.summary.is_some() || end.tail.bytes() >= self.bytes_max {
            self.dropped.fetch_add(pending.discard(), Ordering::Relaxed);
            return;
        }
        let records = pending.records();
        if let Err(error) = pending.flush(&mut end.tail, self.sample()) {
            self.dropped.fetch_add(records, Ordering::Relaxed);
            end.error = Some(error);
            self.stop();
        } else if end.tail.bytes() >= self.bytes_max {
            self.stop();
        }
    }

    /// Stops recording.
    fn stop(&self) {
        self.on.store(false, Ordering::Relaxed);
        self.epoch.fetch_add(1, Ordering::Release);
    }

    pub fn finish(&self) -> Result<Summary> {
        self.stop();
        self.bell.end();
        let mut last_ns = 0;
        for lane in self.lanes() {
            let mut end = lock(&lane.end);
            self.drain(&lane, &mut end, u64::MAX);
            self.write(&mut end.pending);
            last_ns = last_ns.max(end.pending.last_ns);
        }
        let mut end = lock(&self.tail);
        if let Some(error) = &end.error {
            return Err(error.clone());
        }
        if let Some(summary) = end.summary {
            return Ok(summary);
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        let sample = self.sample();
        let operation_ns = self.operation_ns.load(Ordering::Relaxed);
        if let Err(error) = end.tail.finish(Totals { last_ns, dropped, sample, operation_ns }) {
            end.error = Some(error.clone());
            return Err(error);
        }
        let summary = Summary { records: end.tail.records, dropped, bytes: end.tail.bytes(), sample };
        end.summary = Some(summary);
        Ok(summary)
    }
}
