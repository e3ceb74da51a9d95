//! Tests of operators, filters and listeners that panic: waiting callers get the error, and nothing
//! waits forever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{
    Background, CompactionFilter, Db, Event, EventListener, FilterDecision, KeyspaceOptions, MergeOperator,
    Options,
};
use cairn_vfs::{ErrorKind, Fs, MemFs, thread};

/// The component that panics.
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
    open_heard(fs, background, bomb, Arc::new(bomb))
}

fn open_heard(fs: &Arc<dyn Fs>, background: Background, bomb: Bomb, listener: Arc<dyn EventListener>) -> Db {
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
    let options = Options { background, listener: Some(listener), ..Options::default() };
    let builder = Db::builder("/store").fs(Arc::clone(fs)).seed(1).options(options);
    builder.default_keyspace(keyspace).open().unwrap()
}

/// Runs `test`, and fails if it does not end.
fn in_time(what: String, test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let work = move || {
        test();
        let _ = done.send(());
    };
    let thread = thread::spawn("test", work).unwrap();
    let timed = is_done.recv_timeout(Duration::from_secs(120));
    assert!(timed != Err(RecvTimeoutError::Timeout), "{what}: somebody waits for ever");
    thread.join().unwrap();
}

/// Goal: a panic of an operator, a filter or a listener affects only the key that was processed.
/// Writes, flushes and reads of other keys continue; the caller of a compaction gets an error with
/// keyspace and key, and so does the listener; the store reopens with the same code, and with code
/// that does not panic all work is done.
/// Method: each of them, with background and inline jobs; automatic and requested flushes and
/// compactions.
#[test]
fn a_panic_is_one_keys_trouble() {
    for bomb in [Bomb::Operator, Bomb::Filter, Bomb::Listener] {
        for background in [Background::Inline, Background::Threads(1), Background::Threads(2)] {
            in_time(format!("{bomb:?}, {background:?}"), move || explode(bomb, background));
        }
    }
}

/// Checks that the error has the keyspace, the key and the panic's message.
fn check_told(error: &cairn_kv::Error, key: &str) {
    assert!(matches!(error, cairn_kv::Error::Panicked { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(["\"default\"", key, "boom"].iter().all(|part| text.contains(part)), "{text}");
}

fn explode(bomb: Bomb, background: Background) {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut db = open(&fs, background, bomb);
    // The value is in a table, so that a compaction merges it and a flush does not.
    db.put("merged", "1").unwrap();
    db.flush().unwrap();
    let met = match bomb {
        Bomb::Operator => "merged",
        // Whichever key it processes first.
        _ => "key \"",
    };
    for opening in 0..3u32 {
        db.merge("merged", opening.to_string()).unwrap();
        for number in 0..40u32 {
            db.put((opening * 40 + number).to_be_bytes(), [7; 1000]).unwrap();
            db.put("same", number.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        match (bomb, db.compact_range(..)) {
            (Bomb::Listener, result) => result.unwrap(),
            (_, result) => check_told(&result.unwrap_err(), met),
        }
        // Automatic work may already be done.
        if let Err(error) = db.wait_idle() {
            check_told(&error, met);
        }
        match bomb {
            Bomb::Operator => {
                check_told(&db.get("merged").unwrap_err(), met);
                check_told(&db.range("merged"..).next().unwrap().unwrap_err(), met);
                check_told(&db.range(..="merged").next_back().unwrap().unwrap_err(), met);
                check_told(&db.transaction().get(&db, "merged").unwrap_err(), met);
            }
            _ => assert!(db.get("merged").unwrap().is_some()),
        }
        assert_eq!(db.get("same").unwrap().as_deref(), Some(&39u32.to_be_bytes()[..]));
        assert_eq!(db.range(..b"m").count(), 40 * (opening as usize + 1));
        db.checkpoint(format!("/copy{opening}")).unwrap();
        drop(db);
        db = open(&fs, background, bomb);
    }
    drop(db);
    let db = open(&fs, background, Bomb::Nobody);
    db.compact_range(..).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(db.get("merged").unwrap().as_deref(), Some(&b"1012"[..]));
    assert_eq!(db.iter().count(), 122);
}

/// A listener that records how often a compaction was abandoned, and why.
#[derive(Debug, Default)]
struct Hears(std::sync::Mutex<Vec<cairn_kv::Error>>);

impl EventListener for Hears {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Abandoned { error, .. } => self.0.lock().unwrap().push(error.clone()),
            Event::Failed { error } => panic!("{error}"),
            _ => {}
        }
    }
}

/// Goal: an abandoned compaction is not retried immediately and forever, but after later flushes,
/// with growing intervals.
/// Method: a filter that always panics, three hundred flushes, each of which triggers a compaction;
/// then the same filter without the panic.
#[test]
fn what_is_given_up_is_tried_again() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let heard = Arc::new(Hears::default());
    let db = open_heard(&fs, Background::Inline, Bomb::Filter, heard.clone());
    for number in 0..300u32 {
        db.put(number.to_be_bytes(), "value").unwrap();
        db.put("same", "value").unwrap();
        db.flush().unwrap();
    }
    let count = heard.0.lock().unwrap().len();
    // After 1, 2, 4, .. 64, 64, .. flushes, and sooner after merges that do not involve the filter.
    assert!((9..40).contains(&count), "{count}");
    check_told(&heard.0.lock().unwrap()[0], "key \"");
    drop(db);
    let db = open_heard(&fs, Background::Inline, Bomb::Nobody, heard.clone());
    db.put("last", "value").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(heard.0.lock().unwrap().len(), count);
    assert!(db.stats().keyspaces[0].levels[0].runs < 10, "{}", db.stats());
}
