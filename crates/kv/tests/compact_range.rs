//! Tests of concurrent compactions requested by the user.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Condvar, Mutex};

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, CompactionFilter, Db, FilterDecision, Keyspace, KeyspaceOptions};
use cairn_vfs::{MemFs, thread};

/// A filter that blocks compactions until it is opened.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_reached: bool,
    is_open: bool,
}

impl Gate {
    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn await_state(&self, is_there: impl Fn(&GateState) -> bool) {
        let mut state = self.state.lock().unwrap();
        while !is_there(&state) {
            state = self.changed.wait(state).unwrap();
        }
    }
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn filter(&self, _: usize, _: &[u8], _: &[u8]) -> FilterDecision {
        self.change(|state| state.is_reached = true);
        self.await_state(|state| state.is_open);
        FilterDecision::Keep
    }
}

/// Goal: a call that returns has compacted everything that existed when it began, even beside
/// another call.
/// Method: a filter blocks the first call; the key is overwritten and a second call starts, which
/// the first one's tables block; then the filter is opened.
#[test]
fn two_calls_at_once() {
    for background in [Background::Inline, Background::Threads(2)] {
        let gate = Arc::new(Gate::default());
        let filter: Arc<dyn CompactionFilter> = Arc::clone(&gate) as _;
        let options = KeyspaceOptions { compaction_filter: Some(filter), ..KeyspaceOptions::default() };
        let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(background).seed(1);
        let db = builder.default_keyspace(options).open().unwrap();
        db.put("key", "first").unwrap();
        let compact = |name: &str| {
            let db = db.clone();
            thread::spawn(name, move || db.compact_range(..).unwrap()).unwrap()
        };
        let first = compact("first");
        gate.await_state(|state| state.is_reached);
        db.put("key", "second").unwrap();
        let second = compact("second");
        // The second call has flushed the key and now waits for the first.
        while db.stats().keyspaces[0].levels[0].tables < 2 {
            thread::yield_now();
        }
        (0..10_000).for_each(|_| thread::yield_now());
        gate.change(|state| state.is_open = true);
        first.join().unwrap();
        second.join().unwrap();
        let levels = &db.stats().keyspaces[0].levels;
        let entries: u64 = levels.iter().map(|level| level.entries).sum();
        assert_eq!((levels[0].tables, entries), (0, 1), "{background:?}: {levels:?}");
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"second"[..]));
    }
}

/// Returns options of a keyspace whose writers stop at the second run of level 0, which also
/// triggers its compaction.
fn stops_at_two_runs(gate: Option<&Arc<Gate>>) -> KeyspaceOptions {
    let leveled = LeveledOptions {
        level_zero_runs_min: 2,
        level_zero_runs_max: 2,
        level_zero_bytes: 1,
        ..LeveledOptions::default()
    };
    KeyspaceOptions {
        compaction: StrategyOptions::Leveled(leveled),
        level_zero_limits: (1, 2),
        compaction_filter: gate.map(|gate| Arc::clone(gate) as _),
        ..KeyspaceOptions::default()
    }
}

/// Flushes one key twice, after which writers are stopped until a compaction.
fn two_runs(keyspace: &Keyspace) {
    for value in ["first", "second"] {
        keyspace.put("key", value).unwrap();
        keyspace.flush().unwrap();
    }
}

/// Goal: compacting a range blocks the compactions of its own keyspace only, so writers that wait
/// for those of other keyspaces continue.
/// Method: a filter blocks the call; another keyspace reaches its limit meanwhile. If the store
/// stops its writers, the test does not end.
#[test]
fn other_keyspaces_are_compacted_meanwhile() {
    let gate = Arc::new(Gate::default());
    let filter: Arc<dyn CompactionFilter> = Arc::clone(&gate) as _;
    let options = KeyspaceOptions { compaction_filter: Some(filter), ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Threads(2)).seed(1);
    let db = builder.default_keyspace(options).open().unwrap();
    let other = db.create_keyspace("other", stops_at_two_runs(None)).unwrap();
    db.put("key", "value").unwrap();
    let call = {
        let db = db.clone();
        thread::spawn("call", move || db.compact_range(..).unwrap()).unwrap()
    };
    gate.await_state(|state| state.is_reached);
    two_runs(&other);
    db.put("other", "value").unwrap();
    gate.change(|state| state.is_open = true);
    call.join().unwrap();
}

/// Goal: writers stopped by a keyspace continue when it is dropped.
/// Method: a filter blocks the compaction that a writer waits for. If the store stops its writers,
/// the test does not end.
#[test]
fn a_dropped_keyspace_stops_nobody() {
    let gate = Arc::new(Gate::default());
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Threads(2)).seed(1);
    let db = builder.open().unwrap();
    let other = db.create_keyspace("other", stops_at_two_runs(Some(&gate))).unwrap();
    two_runs(&other);
    gate.await_state(|state| state.is_reached);
    let writer = {
        let db = db.clone();
        // The first writes may pass before the flush has stopped the writers.
        let write = move || {
            while db.stats().stalls.stops == 0 {
                db.put("other", "value").unwrap();
            }
        };
        thread::spawn("writer", write).unwrap()
    };
    while db.stats().stalls.stops == 0 {
        thread::yield_now();
    }
    db.drop_keyspace("other").unwrap();
    writer.join().unwrap();
    gate.change(|state| state.is_open = true);
}
