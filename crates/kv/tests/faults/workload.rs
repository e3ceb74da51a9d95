//! Seeded runs of a store: random steps, and a record of their effects.

use std::sync::{Arc, Mutex};

use cairn_kv::{Db, Durability, Event, EventListener, Keyspace, Result, WriteBatch};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{FaultFs, Operation, Rng, SeededRng};

use super::state::{Change, key};
use super::{History, KEYSPACES, Shape, State, scan, shared};

/// The durabilities that a run mixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// All three.
    All,
    /// Only logged writes.
    Logged,
}

/// The next step of a run.
#[derive(Debug, Clone)]
pub enum Step {
    Write(Vec<(usize, Change)>, Durability),
    Sync,
    Flush(usize),
    Compact(usize, Vec<u8>, Vec<u8>),
    Read(usize, Vec<u8>),
    /// An idle moment, in which the log shrinks.
    Idle,
    Reopen,
}

impl Step {
    fn draw(rng: &mut SeededRng, tag: u64, mix: Mix) -> Step {
        let keyspace = rng.below(2) as usize;
        let durability = match rng.below(20) {
            0..3 if mix == Mix::All => Durability::Memory,
            0..14 => Durability::Buffered,
            _ => Durability::Sync,
        };
        match rng.below(200) {
            0..115 => Step::Write(vec![(keyspace, Change::draw(rng, tag))], durability),
            115..155 => {
                let count = 2 + rng.below(5);
                Step::Write(
                    (0..count).map(|_| (rng.below(2) as usize, Change::draw(rng, tag))).collect(),
                    durability,
                )
            }
            155..159 => Step::Sync,
            159..163 => Step::Flush(keyspace),
            163..166 => {
                let (a, b) = (key(rng), key(rng));
                if a <= b { Step::Compact(keyspace, a, b) } else { Step::Compact(keyspace, b, a) }
            }
            166..169 => Step::Reopen,
            169..172 => Step::Idle,
            _ => Step::Read(keyspace, key(rng)),
        }
    }
}

/// Records which keyspaces were flushed.
#[derive(Debug, Default)]
struct Flushes(Mutex<Vec<usize>>);

impl EventListener for Flushes {
    fn on_event(&self, event: &Event) {
        if let Event::Flushed { keyspace, .. } = event {
            let at = KEYSPACES.iter().position(|name| name == keyspace).expect("one of the two");
            self.0.lock().unwrap().push(at);
        }
    }
}

/// A store under test, with everything known about it.
#[derive(Debug)]
pub struct Run {
    pub fs: FaultFs,
    pub shape: Shape,
    pub db: Option<Db>,
    pub history: History,
    /// The state that a reader must see.
    pub model: State,
    pub mix: Mix,
    /// True if the last write failed but may be in the log.
    pub is_last_uncertain: bool,
    rng: SeededRng,
    flushes: Arc<Flushes>,
    tag: u64,
    /// Number of flushes and compactions in all lives.
    pub work: (u64, u64),
    /// If true, the store is killed instead of closed before it is reopened: see [`Run::kill`].
    pub is_killed: bool,
}

impl Run {
    /// Creates a run on a disk whose store contains `base`, or nothing. The store is not opened
    /// yet.
    pub fn new(fs: &FaultFs, shape: &Shape, base: State, mix: Mix, rng: SeededRng) -> Run {
        Run {
            fs: fs.clone(),
            shape: shape.clone(),
            db: None,
            history: History::new(base.clone()),
            model: base,
            mix,
            is_last_uncertain: false,
            rng,
            flushes: Arc::default(),
            tag: 0,
            work: (0, 0),
            is_killed: false,
        }
    }

    /// Opens the store. The recovered state is durable when this returns.
    pub fn open(&mut self) -> Result<()> {
        self.close();
        let listener = Arc::<Flushes>::clone(&self.flushes);
        let db = self.shape.builder(shared(&self.fs)).listener(listener).open();
        // A replay may flush, which adds no writes.
        self.flushes.0.lock().unwrap().clear();
        self.db = Some(db?);
        self.history.synced(self.fs.operation_count());
        Ok(())
    }

    /// Drops the store, like a process that ends.
    pub fn close(&mut self) {
        if let Some(db) = self.db.take() {
            let stats = db.stats();
            self.work.0 += stats.flushes.0;
            self.work.1 += stats.compactions.0 + stats.compactions.1;
            drop(db);
            self.history.process_ended(self.fs.operation_count());
            self.model = self.history.state();
        }
    }

    /// Drops the store, like a process that is killed: nothing more reaches the disk, and the page
    /// cache keeps its contents. Requires a disk whose failed syncs leave changes pending.
    pub fn kill(&mut self) {
        self.fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io).persistent());
        self.close();
        self.fs.clear_rules();
    }

    /// Continues the run with a history that begins at `base`, the contents of the open store.
    pub fn begin_again(&mut self, base: State) -> Run {
        let mut next = Run::new(&self.fs, &self.shape, base, self.mix, self.rng.clone());
        (next.db, next.flushes, next.tag, next.work) =
            (self.db.take(), Arc::clone(&self.flushes), self.tag, self.work);
        next
    }

    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the store is open")
    }

    pub fn keyspace(&self, at: usize) -> Keyspace {
        self.db().keyspace(KEYSPACES[at]).expect("both keyspaces are made when the store is")
    }

    /// Draws a step and performs it.
    pub fn step(&mut self) -> Result<()> {
        self.tag += 1;
        let step = Step::draw(&mut self.rng, self.tag, self.mix);
        self.perform(step)
    }

    pub fn steps(&mut self, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| self.step())
    }

    pub fn perform(&mut self, step: Step) -> Result<()> {
        let begun = self.fs.operation_count();
        let result = self.try_to(step, begun);
        if result.is_err() {
            self.history.failed(begun);
        }
        result
    }

    fn try_to(&mut self, step: Step, begun: u64) -> Result<()> {
        match step {
            Step::Write(changes, durability) => {
                self.history.begin(changes.clone(), durability, begun);
                let result = self.write(&changes, durability);
                self.note_flushes(begun);
                result?;
                changes.iter().for_each(|(keyspace, change)| self.model[*keyspace].apply(change));
                if durability == Durability::Sync {
                    self.history.synced(self.fs.operation_count());
                }
            }
            Step::Sync => {
                self.db().sync()?;
                self.history.synced(self.fs.operation_count());
            }
            Step::Flush(keyspace) => {
                let result = self.keyspace(keyspace).flush();
                self.note_flushes(begun);
                result?;
            }
            Step::Compact(keyspace, start, end) => {
                let result = self.keyspace(keyspace).compact_range(start..end);
                self.note_flushes(begun);
                result?;
            }
            Step::Read(keyspace, key) => {
                let found = self.keyspace(keyspace).get(&key)?;
                assert_eq!(found.as_deref(), self.model[keyspace].get(&key), "{key:?}");
            }
            Step::Idle => {
                let result = self.db().wait_idle();
                self.note_flushes(begun);
                result?;
            }
            Step::Reopen => {
                if self.is_killed {
                    self.kill();
                }
                self.open()?;
                self.compare("after reopening")?;
            }
        }
        Ok(())
    }

    /// Writes as a caller would: a single operation directly, several as a batch.
    fn write(&self, changes: &[(usize, Change)], durability: Durability) -> Result<()> {
        if let [(keyspace, change)] = changes {
            let keyspace = self.keyspace(*keyspace);
            return match change {
                Change::Put(key, value) => keyspace.put_with(key, value, durability),
                Change::Delete(key) => keyspace.delete_with(key, durability),
                Change::Merge(key, operand) => keyspace.merge_with(key, operand, durability),
                Change::DeleteRange(start, end) => keyspace.delete_range_with(start, end, durability),
            };
        }
        let mut batch = WriteBatch::new();
        for (keyspace, change) in changes {
            batch.add(self.keyspace(*keyspace).id(), change.operation())?;
        }
        self.db().write_with(&batch, durability)
    }

    /// Records the flushes since `begun`, which contain all commits so far: with inline work, a
    /// flush follows the write that triggered it.
    fn note_flushes(&mut self, begun: u64) {
        let flushed = std::mem::take(&mut *self.flushes.0.lock().unwrap());
        for keyspace in flushed {
            self.history.flushed(keyspace, begun, self.fs.operation_count());
        }
    }

    /// Checks that the store reads like the model: forwards, backwards, key by key.
    ///
    /// Errors: those of the store.
    pub fn compare(&self, context: &str) -> Result<()> {
        let found = scan(self.db())?;
        for (at, found) in found.iter().enumerate() {
            let model = &self.model[at];
            assert!(found == model, "{context}: {}: {}", KEYSPACES[at], model.difference(found));
            let keyspace = self.keyspace(at);
            let back = keyspace.iter().rev().collect::<Result<Vec<_>>>()?;
            assert!(
                back.iter().map(|(key, value)| (key, value)).eq(model.iter().rev()),
                "{context}: backwards"
            );
            for (key, value) in model.iter().step_by(5) {
                assert_eq!(keyspace.get(key)?.as_deref(), Some(value.as_slice()), "{context}");
            }
        }
        Ok(())
    }

    /// Calls [`Run::compare`] where no operation may fail.
    pub fn assert_reads(&self, context: &str) {
        self.compare(context).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
}
