//! A trace in memory, as operations on numbered keys.

use cairn_trace::{Detail, Event, KeyForm, Trace};

use super::due;
use super::keys::KeyTable;
use crate::error::Result;
use crate::suite_kv::keys::KEY_BYTES_MAX;

/// Values over this are cut: what every store takes without a setting of its own.
const VALUE_BYTES_MAX: u64 = 16 << 20;
/// The length of values that nobody knows, where the trace has none at all.
const VALUE_BYTES: u32 = 100;
/// Operations of a trace that are taken at most: they are kept in memory, 24 bytes each.
const OPERATIONS_MAX: u64 = 200_000_000;

/// What of a trace is taken.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Threads that share the operations.
    pub threads: usize,
    /// What is done before the first of them, and not replayed: the store begins with what it
    /// leaves.
    pub passed_over: u64,
    /// Operations at most.
    pub operations_max: Option<u64>,
    /// It matters when they are due.
    pub timed: bool,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Get,
    Put,
    Delete,
    Scan,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// When it is due at recorded speed.
    pub due_ns: u64,
    pub key: u32,
    pub doing: Doing,
    /// One with the step before it: a batch of writes, a multi-get.
    pub joined: bool,
    /// The version that a lookup must see or a put writes; 0 is absent. Of a scan, which one it is.
    pub version: u32,
    /// Bytes of that version's value; of a scan, the entries to read, one at least.
    pub amount: u32,
}

/// What a key holds: its write, 0 for none, and the value's length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub version: u32,
    pub bytes: u32,
}

/// A key while the trace is read.
#[derive(Debug, Clone, Copy)]
struct Known {
    now: Held,
    /// What it held before the trace; `None` where the length is unknown and still to be chosen.
    before: Option<Held>,
    writes: u32,
}

/// A trace, ready to be replayed.
#[derive(Debug)]
pub struct Loaded {
    source: String,
    keys: KeyTable,
    /// What is there before.
    pub(super) before: Vec<Held>,
    /// What is there after.
    pub(super) after: Vec<Held>,
    /// Operations, by thread.
    pub(super) steps: Vec<Vec<Step>>,
    /// Scans among them.
    pub(super) scans: usize,
    /// Entries that these read when they were recorded.
    pub(super) scan_entries: u64,
    /// Bytes of keys and values that writes hand over.
    pub(crate) written_bytes: u64,
    inserts: u64,
    notes: Vec<String>,
    value_bytes: (u64, u64),
    value_bytes_max: u32,
}

/// Sums while the trace is read.
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
    /// Lookups that found something else than the operations before them leave.
    contradicted: u64,
    /// Operations of batches and multi-gets that another thread does than the one before.
    parted: u64,
}

/// Operations that can be done as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Together {
    Lookups,
    Writes,
    /// Never.
    Scan,
}

impl Doing {
    fn together(self) -> Together {
        match self {
            Doing::Get => Together::Lookups,
            Doing::Put | Doing::Delete => Together::Writes,
            Doing::Scan => Together::Scan,
        }
    }
}

impl Loaded {
    pub(super) fn new(trace: &Trace, limits: Limits) -> Result<Loaded> {
        Loaded::with_room(trace, limits, OPERATIONS_MAX)
    }

    /// As [`Loaded::new`], where memory has room for so many operations.
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
        // What is missing at the end does not matter to who stops before it.
        if there <= end as u64 {
            loaded.notes.splice(0..0, trace.ending().flaw());
        } else if asked > room {
            loaded.notes.insert(0, format!("{room} of {there} operations only: more are not kept in memory"));
        }
        Ok(loaded)
    }

    /// What was traced.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Operations.
    pub fn operations(&self) -> u64 {
        self.steps.iter().map(|steps| steps.len() as u64).sum()
    }

    /// Different keys.
    pub fn keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Keys that are there before.
    pub fn initial(&self) -> u64 {
        self.before.iter().filter(|held| held.version > 0).count() as u64
    }

    /// What of the trace is replayed otherwise than it was, in sentences without a full stop.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The mean length of keys.
    pub fn key_bytes_mean(&self) -> usize {
        self.keys.bytes() / self.keys.len().max(1)
    }

    /// The mean length of the values of all operations that have one.
    pub fn value_bytes_mean(&self) -> usize {
        (self.value_bytes.0 / self.value_bytes.1.max(1)) as usize
    }

    /// The longest value.
    pub(super) fn value_bytes_max(&self) -> usize {
        self.value_bytes_max as usize
    }

    /// Keys that are there after.
    pub fn left(&self) -> u64 {
        self.after.iter().filter(|held| held.version > 0).count() as u64
    }

    /// Writes of keys that were not there.
    pub fn inserts(&self) -> u64 {
        self.inserts
    }

    /// Address space for the file of a store that maps it: much more than it holds, in whole pages
    /// of any system.
    pub fn map_bytes(&self) -> u64 {
        (self.bytes_max().saturating_mul(8)).max(1 << 30).next_multiple_of(1 << 20)
    }

    /// Bytes that a store holds at most, generously.
    fn bytes_max(&self) -> u64 {
        let values: u64 = self.before.iter().map(|held| u64::from(held.bytes)).sum();
        self.keys.bytes() as u64 + values + self.written_bytes + 4096 * self.keys() / 16
    }

    /// A key's bytes.
    #[inline]
    pub(super) fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number)
    }

    /// Bytes of keys and values that are there after the replay.
    pub(super) fn live_bytes(&self) -> u64 {
        let live = self.after.iter().enumerate().filter(|(_, held)| held.version > 0);
        live.map(|(number, held)| (self.key(number as u32).len() as u64) + u64::from(held.bytes)).sum()
    }
}

struct Loading {
    keys: KeyTable,
    known: Vec<Known>,
    steps: Vec<Vec<Step>>,
    counts: Counts,
    written_bytes: u64,
    value_bytes: (u64, u64),
    value_bytes_max: u32,
    /// What comes is not replayed, but leaves what the store begins with.
    passing: bool,
    /// The last event was not replayed, so what is joined to it begins anew.
    broken: bool,
    /// The thread of the step before, and what can be joined to it.
    before: Option<(usize, Together)>,
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
            Detail::Get(_) | Detail::Block { .. } => Doing::Get,
            Detail::Put(_) => Doing::Put,
            Detail::Merge(_) => {
                self.counts.merges += 1;
                Doing::Put
            }
            Detail::Delete => Doing::Delete,
            Detail::Scan { backwards, .. } => {
                self.counts.backwards += u64::from(backwards);
                Doing::Scan
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
            self.known.push(Known { now: Held::default(), before: Some(Held::default()), writes: 1 });
            self.first_met(event, number, doing);
        }
        let (version, amount) = self.outcome(event, number, doing);
        if self.passing {
            return Ok(());
        }
        let thread = if self.steps.len() == 1 { 0 } else { (event.id() % self.steps.len() as u64) as usize };
        let together = doing.together();
        let belongs = event.joined && !self.broken;
        let fits = self.before.filter(|(_, before)| *before == together && together != Together::Scan);
        let joined = belongs && fits.is_some_and(|(before, _)| before == thread);
        self.counts.parted += u64::from(belongs && fits.is_some() && !joined);
        self.broken = false;
        self.before = Some((thread, together));
        if let Some(steps) = self.steps.get_mut(thread) {
            steps.push(Step { due_ns: event.time_ns, key: number, doing, joined, version, amount });
        }
        Ok(())
    }

    /// From here on it is replayed: what the keys hold now is what they held before.
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

    /// What a key held before the trace, going by the first that is done with it.
    fn first_met(&mut self, event: &Event<'_>, number: u32, doing: Doing) {
        let before = match (doing, event.detail) {
            (Doing::Get, Detail::Get(Some(found))) => {
                let held = found.map(|bytes| Held { version: 1, bytes: self.length(bytes) });
                Some(held.unwrap_or_default())
            }
            (Doing::Get, Detail::Block { bytes, .. }) if bytes > 0 => {
                Some(Held { version: 1, bytes: self.length(bytes) })
            }
            (Doing::Get | Doing::Delete, _) => {
                self.counts.unknown += 1;
                None
            }
            // Whether a scan's start is a key nobody knows.
            (Doing::Put | Doing::Scan, _) => Some(Held::default()),
        };
        if let Some(known) = self.known.get_mut(number as usize) {
            known.before = before;
            // Of an unknown length for now; `finish` puts it in.
            known.now = before.unwrap_or(Held { version: 1, bytes: u32::MAX });
        }
    }

    /// The version that a step sees or writes, and its length.
    fn outcome(&mut self, event: &Event<'_>, number: u32, doing: Doing) -> (u32, u32) {
        let key_bytes = u64::from(event.key_bytes);
        let length = match event.detail {
            Detail::Put(bytes) | Detail::Merge(bytes) => self.length(bytes),
            _ => 0,
        };
        let Some(known) = self.known.get_mut(number as usize) else { return (0, 0) };
        match (doing, event.detail) {
            (Doing::Put, _) => {
                self.counts.inserts += u64::from(known.now.version == 0);
                known.writes += 1;
                known.now = Held { version: known.writes, bytes: length };
                self.written_bytes += key_bytes + u64::from(length);
                (known.writes, length)
            }
            (Doing::Delete, _) => {
                known.now = Held::default();
                self.written_bytes += key_bytes;
                (0, 0)
            }
            (Doing::Scan, Detail::Scan { entries, .. }) => {
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
        let chosen = |held: Held| {
            if held.bytes == u32::MAX && held.version > 0 { Held { bytes: mean, ..held } } else { held }
        };
        for step in self.steps.iter_mut().flatten() {
            if step.doing == Doing::Get {
                step.amount = chosen(Held { version: step.version, bytes: step.amount }).bytes;
            }
        }
        let before = |known: &Known| known.before.unwrap_or(Held { version: 1, bytes: mean });
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
