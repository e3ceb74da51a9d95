//! One turn: the initial contents are loaded, the steps are performed, and the store is compared
//! with its expected contents.

use std::sync::OnceLock;
use std::time::Duration;

use cairn_trace::Kind;
use cairn_vfs::{Clock, SystemClock};

use super::load::{KeyContent, Loaded, OperationKind, Step};
use super::scans::{self, Expected, ScanTotal};
use super::values::Bodies;
use super::{KINDS, Replay};
use crate::core::digest::Digest;
use crate::core::error::{Error, Result};
use crate::core::histogram::Latencies;
use crate::stores::kv::KvSession;
use crate::suites::kv::outcome::{KvMetric, KvOutcome, OperationCase};
use crate::suites::kv::turn::{Client, Open, Span, Turn, add_spans, rate};

/// Number of puts in one batch of the load.
const LOAD_BATCH: usize = 1_000;
/// The end of a wait is spun instead of slept, because sleep can end this much late.
const SPIN: Duration = Duration::from_micros(200);

/// The results of one thread.
struct Part {
    span: Span,
    /// Latencies, in the order of [`KINDS`].
    latencies: Vec<Latencies>,
    /// How late operations began after a wait: the lab's own part of their latencies.
    late: Latencies,
}

pub(super) fn run(turn: &Turn<'_>, replay: &Replay, loaded: &Loaded) -> Result<KvOutcome> {
    let bodies = Bodies::new(loaded.value_bytes_max());
    let scans = scans::expected(loaded, &bodies);
    let open = turn.open()?;
    load(&open, loaded, &bodies)?;
    open.settle()?;
    let before = open.written_bytes();
    let player = Player { turn, replay, loaded, bodies: &bodies, scans, start: OnceLock::new() };
    let parts = open.run(replay.threads, false, |index, client| player.play(index, client))?;
    let mut outcome = KvOutcome::default();
    let done = player.done("replay");
    let spans: Vec<Span> = parts.iter().map(|part| part.span.clone()).collect();
    if !turn.setup.timed {
        add_spans(&mut outcome, &done, &spans, false);
    }
    for (at, kind) in KINDS.iter().enumerate() {
        let mut all = Latencies::new(0);
        parts.iter().filter_map(|part| part.latencies.get(at)).for_each(|part| all.merge(part));
        outcome.add_latencies(&player.done(kind.name()), &all);
    }
    let mut late = Latencies::new(0);
    parts.iter().for_each(|part| late.merge(&part.late));
    if late.count() > 0 {
        outcome
            .counters
            .push(("operations that the lab began late, p99, µs".to_owned(), late.quantile(0.99) / 1e3));
    }
    let seconds = open.settle()?;
    open.memory_rise();
    if !turn.setup.timed && replay.settled {
        let operations = loaded.operations() as f64;
        outcome.add(&done, KvMetric::SettledThroughput, operations / (operations / rate(&spans) + seconds));
        let entries = loaded.left().max(1) as f64;
        outcome.add(&done, KvMetric::BytesPerEntry, open.disk_bytes()? as f64 / entries);
    }
    if !turn.setup.timed {
        let after = open.written_bytes();
        if let (Some(before), Some(after), true) = (before, after, loaded.written_bytes > 0) {
            let ratio = (after - before) as f64 / loaded.written_bytes as f64;
            outcome.add(&done, KvMetric::WriteAmplification, ratio);
        }
        let live = loaded.live_bytes();
        if live > 0 {
            outcome.add(&done, KvMetric::SpaceAmplification, open.disk_bytes()? as f64 / live as f64);
        }
    }
    player.check_all(&mut *open.db.session()?)?;
    open.close(&done, &mut outcome)?;
    Ok(outcome)
}

/// Loads the initial contents, in key order.
fn load(open: &Open<'_>, loaded: &Loaded, bodies: &Bodies) -> Result<()> {
    let there = loaded.before.iter().enumerate().filter(|(_, held)| held.version > 0);
    let mut numbers: Vec<u32> = there.map(|(number, _)| number as u32).collect();
    numbers.sort_unstable_by(|a, b| loaded.key(*a).cmp(loaded.key(*b)));
    let mut session = open.db.session()?;
    for batch in numbers.chunks(LOAD_BATCH) {
        session.write_batch(&mut |writes| {
            batch.iter().try_for_each(|&number| {
                let KeyContent { version, bytes } =
                    loaded.before.get(number as usize).copied().unwrap_or_default();
                writes.put(loaded.key(number), bodies.value(number, version, bytes))
            })
        })?;
    }
    Ok(())
}

struct Player<'a> {
    turn: &'a Turn<'a>,
    replay: &'a Replay,
    loaded: &'a Loaded,
    bodies: &'a Bodies,
    scans: Vec<Expected>,
    /// The time at which operations at 0 ns are due. It is the time when the first thread begins,
    /// at which all threads are ready.
    start: OnceLock<Duration>,
}

impl Player<'_> {
    fn done(&self, operation: &str) -> OperationCase {
        OperationCase {
            operation: operation.to_owned(),
            dataset: self.replay.name.clone(),
            keys: "mixed".to_owned(),
            distribution: "trace".to_owned(),
            entries: self.loaded.keys(),
            threads: self.replay.threads,
        }
    }

    /// Performs the steps of one thread. Joined steps are one operation.
    fn play(&self, index: usize, client: &mut Client<'_>) -> Result<Part> {
        let steps = self.loaded.steps.get(index).map_or(&[][..], Vec::as_slice);
        let timed = self.turn.setup.timed || self.replay.speed.is_some();
        let overhead = if self.turn.setup.timed { self.turn.clock_overhead_ns } else { 0 };
        let mut latencies = vec![Latencies::new(overhead); KINDS.len()];
        let mut late = Latencies::new(0);
        let span = client.span(|client| {
            let start_of_all = *self.start.get_or_init(|| self.turn.clock.now());
            let mut rest = steps;
            while let Some(first) = rest.first() {
                let more = rest.iter().skip(1).take_while(|step| step.joined).count();
                let (group, after) = rest.split_at(1 + more);
                rest = after;
                let due = self.wait(first, start_of_all, &mut late);
                let start = if timed { due.unwrap_or_else(|| self.turn.clock.now()) } else { Duration::ZERO };
                self.act(group, client.session)?;
                if timed {
                    let slot = KINDS.iter().position(|kind| *kind == kind_of(first.doing)).unwrap_or(0);
                    if let Some(latencies) = latencies.get_mut(slot) {
                        latencies.record(self.turn.clock.now().saturating_sub(start));
                    }
                }
            }
            Ok(steps.len() as u64)
        })?;
        Ok(Part { span, latencies, late })
    }

    /// Waits until a step is due, and returns that time; `None` at full speed.
    fn wait(&self, step: &Step, start: Duration, late: &mut Latencies) -> Option<Duration> {
        let speed = self.replay.speed?;
        let due = start + Duration::from_nanos((step.due_ns as f64 / speed) as u64);
        let clock: &SystemClock = &self.turn.clock;
        let mut waited = false;
        loop {
            let now = clock.now();
            if now >= due {
                if waited {
                    late.record(now - due);
                }
                return Some(due);
            }
            waited = true;
            if due - now > SPIN {
                clock.sleep(due - now - SPIN);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn act(&self, group: &[Step], session: &mut dyn KvSession) -> Result<()> {
        match group {
            [] => Ok(()),
            [step] => self.single(step, session),
            [first, ..] if first.doing == OperationKind::Get => self.many(group, session),
            _ => session.write_batch(&mut |writes| {
                group.iter().try_for_each(|step| match step.doing {
                    OperationKind::Put => writes.put(self.loaded.key(step.key), self.value_of(step)),
                    _ => writes.delete(self.loaded.key(step.key)),
                })
            }),
        }
    }

    #[inline]
    fn single(&self, step: &Step, session: &mut dyn KvSession) -> Result<()> {
        let key = self.loaded.key(step.key);
        match step.doing {
            OperationKind::Put => session.put(key, self.value_of(step)),
            OperationKind::Delete => session.delete(key),
            OperationKind::Get => {
                let expected = self.value_of(step);
                let mut right = true;
                let found = session.get(key, &mut |value| right = value == expected)?;
                if right && found == (step.version > 0) { Ok(()) } else { Err(self.wrong_get(step, session)) }
            }
            OperationKind::Scan => self.scan(step, session),
        }
    }

    fn many(&self, group: &[Step], session: &mut dyn KvSession) -> Result<()> {
        let keys: Vec<&[u8]> = group.iter().map(|step| self.loaded.key(step.key)).collect();
        let mut wrong = None;
        let mut answers = 0;
        session.multi_get(&keys, &mut |place, value| {
            answers += 1;
            let Some(step) = group.get(place) else { return };
            let expected = (step.version > 0).then(|| self.value_of(step));
            if expected != value {
                wrong = Some(place);
            }
        })?;
        match wrong.and_then(|place| group.get(place)) {
            None if answers == group.len() => Ok(()),
            None => Err(Error::engine(self.turn.store.name(), "a multi-get left keys without an answer")),
            Some(step) => Err(self.wrong_get(step, session)),
        }
    }

    /// Performs a scan and checks it. Entries must ascend from the start key and be exactly the
    /// existing ones. With several threads, there must be at least as many as exist throughout the
    /// replay.
    fn scan(&self, step: &Step, session: &mut dyn KvSession) -> Result<()> {
        let from = self.loaded.key(step.key);
        let mut seen = ScanTotal::default();
        let mut ordered = true;
        let mut before: Vec<u8> = Vec::new();
        session.scan(from, &mut |key, value| {
            seen.add(key, value);
            ordered &= key >= from && (before.is_empty() || before.as_slice() < key);
            before.clear();
            before.extend_from_slice(key);
            seen.entries < step.amount && ordered
        })?;
        let what = match self.scans.get(step.version as usize) {
            _ if !ordered => "a scan gave keys that are not in ascending order".to_owned(),
            Some(Expected::Exactly(expected)) if seen.entries != expected.entries => {
                format!("a scan of {} entries gave {}", expected.entries, seen.entries)
            }
            Some(Expected::Exactly(expected)) if seen != *expected => {
                "a scan gave entries that differ from those that were written".to_owned()
            }
            Some(Expected::AtLeast(least)) if seen.entries < *least => {
                format!("a scan of at least {least} entries gave {}", seen.entries)
            }
            _ => return Ok(()),
        };
        Err(Error::engine(self.turn.store.name(), what))
    }

    #[inline]
    fn value_of(&self, step: &Step) -> &[u8] {
        self.bodies.value(step.key, step.version, step.amount)
    }

    #[cold]
    fn wrong_get(&self, step: &Step, session: &mut dyn KvSession) -> Error {
        let expected = (step.version > 0).then(|| self.value_of(step));
        // The key is looked up again only to report the wrong answer. The error stands in any case.
        let mut got = None;
        let _ = session.get(self.loaded.key(step.key), &mut |value| got = Some(value.to_vec()));
        self.wrong(step.key, expected, got.as_deref())
    }

    fn wrong(&self, number: u32, expected: Option<&[u8]>, got: Option<&[u8]>) -> Error {
        let digest = |value: Option<&[u8]>| {
            let mut digest = Digest::default();
            digest.add_answer(0, value);
            digest
        };
        Error::WrongResult {
            contender: self.turn.store.name().to_owned(),
            case: format!("replay of {}, key number {number}", self.replay.name),
            expected: digest(expected),
            got: digest(got),
        }
    }

    /// Reads the whole store in order and compares every entry with its expected content.
    fn check_all(&self, session: &mut dyn KvSession) -> Result<()> {
        let live = self.loaded.after.iter().enumerate().filter(|(_, held)| held.version > 0);
        let mut numbers: Vec<u32> = live.map(|(number, _)| number as u32).collect();
        numbers.sort_unstable_by(|a, b| self.loaded.key(*a).cmp(self.loaded.key(*b)));
        let value_of = |number: u32| {
            let KeyContent { version, bytes } =
                self.loaded.after.get(number as usize).copied().unwrap_or_default();
            self.bodies.value(number, version, bytes)
        };
        let (mut next, mut wrong) = (0, None);
        session.scan(b"", &mut |key, value| {
            let expected = numbers.get(next).copied();
            next += 1;
            if expected.is_some_and(|number| self.loaded.key(number) == key && value_of(number) == value) {
                return true;
            }
            let number = expected.unwrap_or(u32::MAX);
            wrong = Some(self.wrong(number, expected.map(&value_of), Some(value)));
            false
        })?;
        match (wrong, numbers.get(next)) {
            (Some(error), _) => Err(error),
            (None, Some(&number)) => Err(self.wrong(number, Some(value_of(number)), None)),
            (None, None) => Ok(()),
        }
    }
}

fn kind_of(doing: OperationKind) -> Kind {
    match doing {
        OperationKind::Get => Kind::Get,
        OperationKind::Put => Kind::Put,
        OperationKind::Delete => Kind::Delete,
        OperationKind::Scan => Kind::Scan,
    }
}
