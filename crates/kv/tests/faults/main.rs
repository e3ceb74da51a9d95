//! Tests of the store on a disk that loses power, fails, fills up, lies and rots; in processes that
//! are killed; and under many threads.
//!
//! After a crash, the following must hold. The store opens. It contains a prefix of the logged
//! writes, at least up to the last write that was acknowledged as durable. Batches are complete or
//! absent, in all keyspaces. Opening it again changes nothing, and it works normally.
//! `docs/src/durability.md` has the full contract, and `testing/planted/plant.sh kv` plants bugs to
//! check that these tests detect them.
//!
//! `CAIRN_SOAK=1` runs the long form. Everything random follows from fixed seeds, which are
//! printed; `CAIRN_SEED` selects others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

use std::path::Path;
use std::sync::Arc;

use cairn_kv::{Db, Result};
use cairn_vfs::{FaultFs, Fs};

mod bit_rot;
mod crash;
mod cross_check;
mod cycles;
mod errors;
mod full_disk;
mod history;
mod kill;
mod missing;
mod refused;
mod shape;
mod state;
mod threads;
mod torn;
mod transactions;
mod workload;

use history::{Accepted, History};
use shape::Shape;
use state::{Change, State};
use workload::Run;

/// The store's directory.
const DIR: &str = "store";

/// The two keyspaces of every store here.
const KEYSPACES: [&str; 2] = ["default", "other"];

fn shared(fs: &FaultFs) -> Arc<dyn Fs> {
    Arc::new(fs.clone())
}

/// Opens the store of a shape, without a listener.
fn open(fs: &FaultFs, shape: &Shape) -> Result<Db> {
    shape.builder(shared(fs)).open()
}

/// Reads everything in both keyspaces with a scan.
fn scan(db: &Db) -> Result<State> {
    let mut state = State::default();
    for (name, model) in KEYSPACES.iter().zip(&mut state) {
        let keyspace = db.keyspace(name).expect("both keyspaces are made when the store is");
        for pair in keyspace.iter() {
            let (key, value) = pair?;
            model.apply(&Change::Put(key, value));
        }
    }
    Ok(state)
}

/// Returns the names of the store's files.
fn names(fs: &FaultFs) -> Vec<String> {
    let paths = fs.files();
    let inside = paths.iter().filter_map(|path| path.strip_prefix(DIR).ok());
    inside.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Checks that the directory has only the files that an open store needs: the tables of its
/// versions, one manifest, few segments.
fn assert_no_leaks(fs: &FaultFs, db: &Db, context: &str) {
    let names = names(fs);
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    let levels = db.stats().keyspaces.into_iter().flat_map(|keyspace| keyspace.levels);
    let tables: usize = levels.map(|level| level.tables).sum();
    assert_eq!(count(".table"), tables, "{context}: leaked tables in {names:?}");
    let manifests = names.iter().filter(|name| name.starts_with("MANIFEST-")).count();
    assert_eq!(manifests, 1, "{context}: {names:?}");
    // Four are kept, and a crash may leave one more.
    assert!(count(".free") <= 5, "{context}: {names:?}");
    let known = tables + count(".blob") + count(".free") + count(".wal") + 3;
    assert_eq!(names.len(), known, "{context}: strange files in {names:?}");
}

fn soak() -> bool {
    std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0")
}

/// Returns `short`, or `long` in the long form.
fn rounds(short: u64, long: u64) -> u64 {
    if soak() { long } else { short }
}

/// Returns the seed of a test, and prints it: its own seed, changed by `CAIRN_SEED`.
fn seed(own: u64) -> u64 {
    let moved = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(0);
    println!("CAIRN_SEED={moved} (own seed {own})");
    own ^ moved.rotate_left(17)
}

/// Returns the path of a file of the store.
fn path_of(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}
