//! Removing files is slow on some file systems; nothing must wait for it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, Db, Durability, KeyspaceOptions};
use cairn_vfs::{Fs, MemFs, OpenOptions, Result};

/// A gate that blocks callers while it is shut.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_shut: bool,
    /// The number of callers that wait now, and the maximum so far.
    waiting: (usize, usize),
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting.0 += 1;
        state.waiting.1 = state.waiting.1.max(state.waiting.0);
        self.changed.notify_all();
        // A second waiting caller must not occur; it opens the gate and ends the test.
        while state.is_shut && state.waiting.0 < 2 {
            state = self.changed.wait(state).unwrap();
        }
        state.is_shut &= state.waiting.0 < 2;
        state.waiting.0 -= 1;
        self.changed.notify_all();
    }

    fn set_shut(&self, is_shut: bool) {
        self.state.lock().unwrap().is_shut = is_shut;
        self.changed.notify_all();
    }

    fn await_one(&self) {
        let mut state = self.state.lock().unwrap();
        while state.waiting.1 == 0 {
            state = self.changed.wait(state).unwrap();
        }
    }
}

/// A file system that removes files only while its gate is open.
#[derive(Debug)]
struct SlowRemovals {
    fs: MemFs,
    gate: Arc<Gate>,
}

impl Fs for SlowRemovals {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn cairn_vfs::File>> {
        self.fs.open(path, options)
    }

    fn metadata(&self, path: &Path) -> Result<cairn_vfs::Metadata> {
        self.fs.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.gate.pass();
        self.fs.remove(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.fs.read_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.fs.sync_dir(path)
    }
}

fn tables(fs: &dyn Fs, dir: &Path) -> usize {
    let names = fs.read_dir(dir).unwrap();
    names.iter().filter(|name| name.extension().is_some_and(|it| it == "table")).count()
}

/// Goal: memtables are flushed while the inputs of a merge are removed, however long that takes,
/// and no files are left behind.
/// Method: a file system that blocks removals until the gate opens; two threads; enough flushes
/// meanwhile that the next merge is due, for which no thread could be spared.
#[test]
fn flushes_go_on_while_files_are_removed() {
    let gate = Arc::new(Gate::default());
    let fs: Arc<dyn Fs> = Arc::new(SlowRemovals { fs: MemFs::new(), gate: Arc::clone(&gate) });
    let compaction = LeveledOptions { level_zero_runs_min: 2, ..LeveledOptions::default() };
    let options =
        KeyspaceOptions { compaction: StrategyOptions::Leveled(compaction), ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::clone(&fs)).durability(Durability::Memory).seed(1);
    let db = builder.background(Background::Threads(2)).default_keyspace(options).open().unwrap();
    let fill = || {
        for number in 0..50u32 {
            db.put(number.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush().unwrap();
    };
    gate.set_shut(true);
    (0..2).for_each(|_| fill());
    gate.await_one();
    let merges = db.stats().compactions.0;
    (0..10).for_each(|_| fill());
    let stats = db.stats();
    assert_eq!(gate.state.lock().unwrap().waiting.1, 1, "two threads remove files");
    assert_eq!(stats.compactions.0, merges, "a merge has taken the thread that flushes");
    assert_eq!(stats.flushes.0, 12);
    gate.set_shut(false);
    db.wait_idle().unwrap();
    let of_levels = |stats: cairn_kv::Stats| -> usize {
        stats.keyspaces.iter().flat_map(|keyspace| &keyspace.levels).map(|level| level.tables).sum()
    };
    assert_eq!(tables(&*fs, db.path()), of_levels(db.stats()), "{}", db.stats());
    assert!(db.stats().compactions.0 > merges);
}
