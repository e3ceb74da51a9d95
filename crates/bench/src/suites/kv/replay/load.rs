//! A trace in memory, as operations on numbered keys.

use cairn_trace::{Detail, Event, KeyForm, Trace};

use super::due;
use super::keys::KeyTable;
use crate::core::error::Result;
use crate::suites::kv::keys::KEY_BYTES_MAX;

/// Longer values are cut. This is the longest that every store accepts without a special setting.
const VALUE_BYTES_MAX: u64 = 16 << 20;
/// The assumed length of values of unknown length, if the trace has no value at all.
const VALUE_BYTES: u32 = 100;
/// Maximum number of operations of a trace. They are kept in memory, 24 bytes each.
const OPERATIONS_MAX: u64 = 200_000_000;

/// The part of a trace to take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of threads that share the operations.
    pub threads: usize,
    /// Number of operations to skip at the beginning. The store begins with their result.
    pub passed_over: u64,
    /// Maximum number of operations.
    pub operations_max: Option<u64>,
    /// Whether the times at which operations are due matter.
    pub timed: bool,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    Get,
    Put,
    Delete,
    Scan,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The time at which it is due at recorded speed.
    pub due_ns: u64,
    pub key: u32,
    pub doing: OperationKind,
    /// Joined with the step before it, into a batch of writes or a multi-get.
    pub joined: bool,
    /// The version that a lookup must see or a put writes; 0 means absent. For a scan, its index.
    pub version: u32,
    /// Length of that version's value. For a scan, the number of entries to read, at least one.
    pub amount: u32,
}

/// The content of a key: the version of its last write, 0 for none, and the value's length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeyContent {
    pub version: u32,
    pub bytes: u32,
}

/// A key while the trace is loaded.
#[derive(Debug, Clone, Copy)]
struct LoadingKey {
    now: KeyContent,
    /// Its content before the trace; `None` if the length is unknown and still to be chosen.
    before: Option<KeyContent>,
    writes: u32,
}

/// A trace, ready to be replayed.
#[derive(Debug)]
pub struct Loaded {
    source: String,
    keys: KeyTable,
    /// Contents of the keys before the replay.
    pub(super) before: Vec<KeyContent>,
    /// Contents of the keys after the replay.
    pub(super) after: Vec<KeyContent>,
    /// The operations, by thread.
    pub(super) steps: Vec<Vec<Step>>,
    /// Number of scans among them.
    pub(super) scans: usize,
    /// Number of entries that these scans read when they were recorded.
    pub(super) scan_entries: u64,
    /// Bytes of keys and values that are passed to writes.
    pub(crate) written_bytes: u64,
    inserts: u64,
    notes: Vec<String>,
    value_bytes: (u64, u64),
    value_bytes_max: u32,
}

/// Totals while the trace is loaded.
#[derive(Debug, Default)]
struct Counts {
    merges: u64,
    ranges: u64,
    backwards: u64,
    others: u64,
    cut: u64,
    unknown: u64,
    scans: u64,
    scan_entries: u64,
    inserts: u64,
    /// Lookups whose recorded result contradicts the operations before them.
    contradicted: u64,
    /// Operations of batches and multi-gets that run on another thread than the operation before.
    parted: u64,
}

/// Kinds of operations that can be joined into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joinable {
    Lookups,
    Writes,
    /// Never joined.
    Scan,
}

impl OperationKind {
    fn together(self) -> Joinable {
        match self {
            OperationKind::Get => Joinable::Lookups,
            OperationKind::Put | OperationKind::Delete => Joinable::Writes,
            OperationKind::Scan => Joinable::Scan,
        }
    }
}

impl Loaded {
    pub(super) fn new(trace: &Trace, limits: Limits) -> Result<Loaded> {
        Loaded::with_room(trace, limits, OPERATIONS_MAX)
    }

    /// Like [`Loaded::new`], with memory for at most `room` operations.
    pub(super) fn with_room(trace: &Trace, limits: Limits, room: u64) -> Result<Loaded> {
        let asked = limits.operations_max.unwrap_or(u64::MAX);
        let most = usize::try_from(asked.min(room)).unwrap_or(usize::MAX);
        let passed_over = usize::try_from(limits.passed_over).unwrap_or(usize::MAX);
        let end = most.saturating_add(passed_over);
        let mut loading = Loading::new(KeyTable::new(trace, end)?, limits);
        let mut at = 0;
        let mut add = |event: &Event<'_>| {
            if loading.passing && at == passed_over {
                loading.begin();
            }
            at += 1;
            loading.add(event)
        };
        if limits.timed {
            due::each(trace, end, add)?;
        } else {
            for event in trace.events().take(end) {
                add(&event?)?;
            }
        }
        let mut loaded = loading.finish(trace);
        let there = trace.records();
        // Missing operations at the end do not matter if the replay stops before them.
        if there <= end as u64 {
            loaded.notes.splice(0..0, trace.ending().flaw());
        } else if asked > room {
            loaded.notes.insert(0, format!("{room} of {there} operations only: more are not kept in memory"));
        }
        Ok(loaded)
    }

    /// Returns the description of the traced program.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> u64 {
        self.steps.iter().map(|steps| steps.len() as u64).sum()
    }

    /// Returns the number of distinct keys.
    pub fn keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Returns the number of keys that exist before the replay.
    pub fn initial(&self) -> u64 {
        self.before.iter().filter(|held| held.version > 0).count() as u64
    }

    /// Returns the differences between the replay and the trace, in sentences without a full stop.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the mean length of keys.
    pub fn key_bytes_mean(&self) -> usize {
        self.keys.bytes() / self.keys.len().max(1)
    }

    /// Returns the mean length of the values of all operations that have one.
    pub fn value_bytes_mean(&self) -> usize {
        (self.value_bytes.0 / self.value_bytes.1.max(1)) as usize
    }

    /// Returns the length of the longest value.
    pub(super) fn value_bytes_max(&self) -> usize {
        self.value_bytes_max as usize
    }

    /// Returns the number of keys that exist after the replay.
    pub fn left(&self) -> u64 {
        self.after.iter().filter(|held| held.version > 0).count() as u64
    }

    /// Returns the number of writes of keys that did not exist.
    pub fn inserts(&self) -> u64 {
        self.inserts
    }

    /// Returns the address space for a store that maps its file. It is much larger than the data,
    /// and a multiple of every system's page size.
    pub fn map_bytes(&self) -> u64 {
        (self.bytes_max().saturating_mul(8)).max(1 << 30).next_multiple_of(1 << 20)
    }

    /// Returns a generous upper bound for the bytes in a store.
    fn bytes_max(&self) -> u64 {
        let values: u64 = self.before.iter().map(|held| u64::from(held.bytes)).sum();
        self.keys.bytes() as u64 + values + self.written_bytes + 4096 * self.keys() / 16
    }

    /// Returns the bytes of a key.
    #[inline]
    pub(super) fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number)
    }

    /// Returns the bytes of keys and values that exist after the replay.
    pub(super) fn live_bytes(&self) -> u64 {
        let live = self.after.iter().enumerate().filter(|(_, held)| held.version > 0);
        live.map(|(number, held)| (self.key(number as u32).len() as u64) + u64::from(held.bytes)).sum()
    }
}

struct Loading {
    keys: KeyTable,
    known: Vec<LoadingKey>,
    steps: Vec<Vec<Step>>,
    counts: Counts,
    written_bytes: u64,
    value_bytes: (u64, u64),
    value_bytes_max: u32,
    /// The current operations are not replayed. They determine the contents with which the store
    /// begins.
    passing: bool,
    /// The last event was not replayed, so an event joined to it begins a new group.
    broken: bool,
    /// The thread of the previous step, and the operations that can be joined to it.
    before: Option<(usize, Joinable)>,
}

impl Loading {
    fn new(keys: KeyTable, limits: Limits) -> Loading {
        Loading {
            keys,
            known: Vec::new(),
            steps: vec![Vec::new(); limits.threads.max(1)],
            counts: Counts::default(),
            written_bytes: 0,
            value_bytes: (0, 0),
            value_bytes_max: VALUE_BYTES,
            passing: limits.passed_over > 0,
            broken: false,
            before: None,
        }
    }

    fn length(&mut self, bytes: u64) -> u32 {
        self.counts.cut += u64::from(bytes > VALUE_BYTES_MAX);
        let bytes = bytes.min(VALUE_BYTES_MAX) as u32;
        self.value_bytes.0 += u64::from(bytes);
        self.value_bytes.1 += 1;
        self.value_bytes_max = self.value_bytes_max.max(bytes);
        bytes
    }

    fn add(&mut self, event: &Event<'_>) -> Result<()> {
        let doing = match event.detail {
            Detail::Get(_) | Detail::Block { .. } => OperationKind::Get,
            Detail::Put(_) => OperationKind::Put,
            Detail::Merge(_) => {
                self.counts.merges += 1;
                OperationKind::Put
            }
            Detail::Delete => OperationKind::Delete,
            Detail::Scan { backwards, .. } => {
                self.counts.backwards += u64::from(backwards);
                OperationKind::Scan
            }
            Detail::DeleteRange { .. } => {
                self.counts.ranges += 1;
                self.broken = true;
                return Ok(());
            }
            Detail::Statement(_) => {
                self.counts.others += 1;
                self.broken = true;
                return Ok(());
            }
        };
        let (number, is_new) = self.keys.number(event)?;
        if is_new {
            self.known.push(LoadingKey {
                now: KeyContent::default(),
                before: Some(KeyContent::default()),
                writes: 1,
            });
            self.first_met(event, number, doing);
        }
        let (version, amount) = self.outcome(event, number, doing);
        if self.passing {
            return Ok(());
        }
        let thread = if self.steps.len() == 1 { 0 } else { (event.id() % self.steps.len() as u64) as usize };
        let together = doing.together();
        let belongs = event.joined && !self.broken;
        let fits = self.before.filter(|(_, before)| *before == together && together != Joinable::Scan);
        let joined = belongs && fits.is_some_and(|(before, _)| before == thread);
        self.counts.parted += u64::from(belongs && fits.is_some() && !joined);
        self.broken = false;
        self.before = Some((thread, together));
        if let Some(steps) = self.steps.get_mut(thread) {
            steps.push(Step { due_ns: event.time_ns, key: number, doing, joined, version, amount });
        }
        Ok(())
    }

    /// Starts the replayed part: the current contents of the keys become those before the replay.
    fn begin(&mut self) {
        self.passing = false;
        self.broken = true;
        self.before = None;
        self.counts = Counts { unknown: self.counts.unknown, ..Counts::default() };
        self.written_bytes = 0;
        for known in &mut self.known {
            let is_unknown = known.now.version > 0 && known.now.bytes == u32::MAX;
            known.before = (!is_unknown).then_some(known.now);
        }
    }

    /// Infers the content of a key before the trace from the first operation on it.
    fn first_met(&mut self, event: &Event<'_>, number: u32, doing: OperationKind) {
        let before = match (doing, event.detail) {
            (OperationKind::Get, Detail::Get(Some(found))) => {
                let held = found.map(|bytes| KeyContent { version: 1, bytes: self.length(bytes) });
                Some(held.unwrap_or_default())
            }
            (OperationKind::Get, Detail::Block { bytes, .. }) if bytes > 0 => {
                Some(KeyContent { version: 1, bytes: self.length(bytes) })
            }
            (OperationKind::Get | OperationKind::Delete, _) => {
                self.counts.unknown += 1;
                None
            }
            // Whether a scan's start exists as a key is unknown.
            (OperationKind::Put | OperationKind::Scan, _) => Some(KeyContent::default()),
        };
        if let Some(known) = self.known.get_mut(number as usize) {
            known.before = before;
            // The length is unknown for now. `finish` fills it in.
            known.now = before.unwrap_or(KeyContent { version: 1, bytes: u32::MAX });
        }
    }

    /// Returns the version that a step sees or writes, and its length.
    fn outcome(&mut self, event: &Event<'_>, number: u32, doing: OperationKind) -> (u32, u32) {
        let key_bytes = u64::from(event.key_bytes);
        let length = match event.detail {
            Detail::Put(bytes) | Detail::Merge(bytes) => self.length(bytes),
            _ => 0,
        };
        let Some(known) = self.known.get_mut(number as usize) else { return (0, 0) };
        match (doing, event.detail) {
            (OperationKind::Put, _) => {
                self.counts.inserts += u64::from(known.now.version == 0);
                known.writes += 1;
                known.now = KeyContent { version: known.writes, bytes: length };
                self.written_bytes += key_bytes + u64::from(length);
                (known.writes, length)
            }
            (OperationKind::Delete, _) => {
                known.now = KeyContent::default();
                self.written_bytes += key_bytes;
                (0, 0)
            }
            (OperationKind::Scan, Detail::Scan { entries, .. }) => {
                let number = self.counts.scans as u32;
                self.counts.scans += 1;
                self.counts.scan_entries = self.counts.scan_entries.saturating_add(entries);
                (number, u32::try_from(entries).unwrap_or(u32::MAX).max(1))
            }
            (_, detail) => {
                let held = known.now;
                let differs = match detail {
                    Detail::Get(Some(None)) => held.version > 0,
                    Detail::Get(Some(Some(bytes))) => {
                        held.version == 0
                            || (held.bytes != u32::MAX && u64::from(held.bytes) != bytes.min(VALUE_BYTES_MAX))
                    }
                    _ => false,
                };
                self.counts.contradicted += u64::from(differs);
                (held.version, held.bytes)
            }
        }
    }

    fn finish(mut self, trace: &Trace) -> Loaded {
        let (sum, count) = self.value_bytes;
        let mean = sum.checked_div(count).map_or(VALUE_BYTES, |mean| mean as u32);
        let chosen = |held: KeyContent| {
            if held.bytes == u32::MAX && held.version > 0 { KeyContent { bytes: mean, ..held } } else { held }
        };
        for step in self.steps.iter_mut().flatten() {
            if step.doing == OperationKind::Get {
                step.amount = chosen(KeyContent { version: step.version, bytes: step.amount }).bytes;
            }
        }
        let before = |known: &LoadingKey| known.before.unwrap_or(KeyContent { version: 1, bytes: mean });
        let notes = self.notes(mean, trace);
        self.keys.close();
        Loaded {
            source: trace.header().source.clone(),
            before: self.known.iter().map(before).collect(),
            after: self.known.iter().map(|known| chosen(known.now)).collect(),
            keys: self.keys,
            steps: self.steps,
            scans: self.counts.scans as usize,
            scan_entries: self.counts.scan_entries,
            inserts: self.counts.inserts,
            written_bytes: self.written_bytes,
            notes,
            value_bytes: (sum, count),
            value_bytes_max: self.value_bytes_max.max(mean),
        }
    }

    fn notes(&self, mean: u32, trace: &Trace) -> Vec<String> {
        let Counts { merges, ranges, backwards, others, cut, unknown, scans, contradicted, parted, .. } =
            self.counts;
        let mut notes = Vec::new();
        let mut note = |count: u64, what: String| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(merges, "merges are replayed as puts of their operands".to_owned());
        note(ranges, "removals of ranges are left out".to_owned());
        note(backwards, "scans in descending order are replayed in ascending order".to_owned());
        note(others, "statements are left out".to_owned());
        note(cut, format!("values are cut to {VALUE_BYTES_MAX} bytes"));
        note(unknown, format!("keys of unknown content are taken to have held {mean} bytes"));
        note(
            contradicted,
            "lookups found something else than the operations before them leave (another program, a removed range, a merge): the replay goes by the operations"
                .to_owned(),
        );
        note(parted, "operations of batches are done apart, since threads share the keys".to_owned());
        note(self.keys.shortened(), format!("keys are shortened to {KEY_BYTES_MAX} bytes"));
        if trace.header().keys == KeyForm::Hashed {
            note(scans, "scans begin at made-up keys, whose order is not that of the real ones".to_owned());
        }
        if self.keys.is_prefixed() {
            notes.push("all keys begin with four bytes of keyspace".to_owned());
        }
        if trace.sample() > 1 {
            let why = trace.lowered().map_or_else(String::new, |lowered| format!(": {lowered}"));
            notes.push(format!("of one key in {} only{why}", trace.sample()));
        }
        notes
    }
}
