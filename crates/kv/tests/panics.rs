//! Operators, filters and listeners that panic: whoever waits is told, and nobody waits for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{
    Background, CompactionFilter, Db, Event, EventListener, FilterDecision, KeyspaceOptions, MergeOperator,
    Operation, Options, WriteBatch,
};
use cairn_vfs::{ErrorKind, Fs, MemFs, thread};

/// Who panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bomb {
    Operator,
    Filter,
    Listener,
    Nobody,
}

impl Bomb {
    fn go_off(self, at: Bomb) {
        assert!(self != at, "boom");
    }
}

impl MergeOperator for Bomb {
    fn name(&self) -> &str {
        "bomb"
    }

    fn merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.go_off(Bomb::Operator);
        Ok([base.unwrap_or_default(), &operands.concat()].concat())
    }
}

impl CompactionFilter for Bomb {
    fn name(&self) -> &str {
        "bomb"
    }

    fn filter(&self, _: usize, _: &[u8], _: &[u8]) -> FilterDecision {
        self.go_off(Bomb::Filter);
        FilterDecision::Keep
    }
}

impl EventListener for Bomb {
    fn on_event(&self, event: &Event) {
        if !matches!(event, Event::Stalled { .. }) {
            self.go_off(Bomb::Listener);
        }
    }
}

fn open(fs: &Arc<dyn Fs>, background: Background, bomb: Bomb) -> Db {
    let leveled =
        LeveledOptions { level_zero_runs_min: 2, level_zero_runs_max: 3, ..LeveledOptions::default() };
    let keyspace = KeyspaceOptions {
        memtable_bytes: 4096,
        sealed_memtables_max: 1,
        compaction: StrategyOptions::Leveled(leveled),
        merge_operator: Some(Arc::new(bomb)),
        compaction_filter: Some(Arc::new(bomb)),
        ..KeyspaceOptions::default()
    };
    let options = Options { background, listener: Some(Arc::new(bomb)), ..Options::default() };
    let builder = Db::builder("/store").fs(Arc::clone(fs)).seed(1).options(options);
    builder.default_keyspace(keyspace).open().unwrap()
}

/// Runs `test`; fails when that does not end.
fn in_time(what: String, test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let work = move || {
        test();
        let _ = done.send(());
    };
    let thread = thread::spawn("test", work).unwrap();
    let timed = is_done.recv_timeout(Duration::from_secs(30));
    assert!(timed != Err(RecvTimeoutError::Timeout), "{what}: somebody waits for ever");
    thread.join().unwrap();
}

/// Goal: a panic in a background job is a failure as any other: writers, `flush`, `compact_range` and `wait_idle` fail with what
/// the panic said, closing ends, and nothing is lost. Method: an operator, a filter and a listener that panic, with jobs in the
/// background and inline; writes until one fails, then all the others, then the store is opened without a bomb.
#[test]
fn whoever_waits_is_told() {
    for bomb in [Bomb::Operator, Bomb::Filter, Bomb::Listener] {
        for background in [Background::Inline, Background::Threads(1), Background::Threads(2)] {
            in_time(format!("{bomb:?}, {background:?}"), move || explode(bomb, background));
        }
    }
}

fn explode(bomb: Bomb, background: Background) {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs, background, bomb);
    let mut batch = WriteBatch::new();
    batch.put("merged", "1").unwrap();
    batch.add(db.id(), Operation::Merge { key: b"merged", operand: b"2" }).unwrap();
    let (mut written, mut first) = (0u32, db.write(&batch));
    let failed = loop {
        if let Err(error) = std::mem::replace(&mut first, Ok(())) {
            break error;
        }
        let key = written.to_be_bytes();
        // The second one is in all tables, so that they are merged.
        if let Err(error) = db.put(key, [7; 1000]).and_then(|()| db.put("same", "value")) {
            break error;
        }
        written += 1;
    };
    let is_told = |error: cairn_kv::Error| {
        assert!(error.to_string().contains("boom"), "{error}");
        assert!(matches!(error.kind(), ErrorKind::Poisoned | ErrorKind::Invalid), "{error}");
    };
    is_told(failed);
    is_told(db.put("key", "value").unwrap_err());
    is_told(db.flush().unwrap_err());
    is_told(db.compact_range(..).unwrap_err());
    is_told(db.wait_idle().unwrap_err());
    assert_eq!(db.get("absent").unwrap(), None, "reads go on");
    drop(db);
    let db = open(&fs, background, Bomb::Nobody);
    db.compact_range(..).unwrap();
    assert_eq!(db.get("merged").unwrap().as_deref(), Some(&b"12"[..]));
    // The write that was told of the failure inline may have been done before.
    let found = db.range(..[0xffu8; 4]).filter(|pair| pair.as_ref().unwrap().1.len() == 1000).count();
    assert!((written..=written + 1).contains(&(found as u32)), "{found} of {written}");
}

/// Goal: the same of a call that compacts in the caller's thread. Method: `flush` and then `compact_range` with a filter that
/// panics, nothing else being due.
#[test]
fn whoever_compacts_is_told() {
    for background in [Background::Inline, Background::Threads(2)] {
        in_time(format!("{background:?}"), move || {
            let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
            let db = open(&fs, background, Bomb::Filter);
            db.put("key", "value").unwrap();
            db.flush().unwrap();
            for _ in 0..2 {
                let error = db.compact_range(..).unwrap_err();
                assert!(error.to_string().contains("boom"), "{error}");
            }
            assert_eq!(db.put("key", "value").unwrap_err().kind(), ErrorKind::Poisoned);
        });
    }
}
