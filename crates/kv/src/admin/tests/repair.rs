use std::path::Path;
use std::time::Duration;

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::fault::{Fault, FaultOptions, crash_sweep, fault_sweep};
use cairn_vfs::sync::Arc;
use cairn_vfs::{
    Clock, ErrorKind, FaultFs, Fs, ManualClock, MemFs, OpenOptions, Rng, SeededRng, SystemClock,
};

use super::*;
use crate::strategy::FifoOptions;
use crate::version::FileName;
use crate::{IngestOptions, RepairOptions, RepairReport, destroy_in, repair, verify_in};

fn fix(fs: &Arc<dyn Fs>) -> RepairReport {
    repair(STORE, &RepairOptions { fs: Arc::clone(fs), keyspaces: Vec::new() }).unwrap()
}

fn flip(fs: &Arc<dyn Fs>, path: &Path, at: u64) {
    let file = fs.open(path, OpenOptions::write()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
    file.sync_data().unwrap();
}

/// Returns the offset of `bytes` in a file.
fn find(fs: &Arc<dyn Fs>, path: &Path, bytes: &[u8]) -> u64 {
    let at = contents(fs, path).windows(bytes.len()).position(|window| window == bytes);
    at.unwrap() as u64
}

/// Returns options with which all values of [`fill`] go to blob files.
fn apart() -> KeyspaceOptions {
    KeyspaceOptions { blob_bytes_min: Some(10), ..small() }
}

fn open_apart(fs: &Arc<dyn Fs>) -> Db {
    builder(fs).default_keyspace(apart()).open().unwrap()
}

/// Writes to a repaired store, compacts and checks it, as a user would continue with it.
fn go_on(db: &Db) {
    let before = pairs(db);
    db.compact_range(..).unwrap();
    db.wait_idle().unwrap();
    assert!(pairs(db) == before);
    fill(db, 0..20, 77);
    db.compact_range(..).unwrap();
    db.wait_idle().unwrap();
    db.put("last", "value").unwrap();
    let sound = db.verify().unwrap();
    assert!(sound.is_sound(), "{sound}");
    assert_eq!(db.get(key(3)).unwrap().as_deref(), Some(&value(3, 77)[..]));
}

fn remove_manifests(fs: &Arc<dyn Fs>, current_too: bool) {
    for path in fs.read_dir(Path::new(STORE)).unwrap() {
        match FileName::parse(&path) {
            Some(FileName::Manifest(_)) => fs.remove(&path).unwrap(),
            Some(FileName::Current) if current_too => fs.remove(&path).unwrap(),
            _ => {}
        }
    }
}

/// Returns the options of a seed. Some keep longer values in blob files.
fn options_of(seed: u64) -> KeyspaceOptions {
    KeyspaceOptions { blob_bytes_min: (seed >= 6).then_some(35), ..small() }
}

/// Writes, deletes, flushes and compacts at random in two keyspaces, and returns their pairs.
fn history(fs: &Arc<dyn Fs>, seed: u64) -> (Pairs, Pairs) {
    let mut rng = SeededRng::new(seed);
    let db = builder(fs).default_keyspace(options_of(seed)).open().unwrap();
    let other = db.create_keyspace("other", options_of(seed)).unwrap();
    for round in 0..120 {
        let keyspace = if rng.chance(0.7) { &*db } else { &other };
        let from = rng.below(300) as u32;
        match rng.below(12) {
            0 => keyspace.delete_range(key(from), key(from + 15)).unwrap(),
            1 => keyspace.flush().unwrap(),
            2 => keyspace.compact_range(key(from)..key(from + 60)).unwrap(),
            3 => (from..from + 9).for_each(|number| keyspace.delete(key(number)).unwrap()),
            _ => fill(keyspace, from..from + 25, round),
        }
    }
    db.sync().unwrap();
    (pairs(&db), pairs(&other))
}

/// Goal: repairing a sound store changes nothing visible. A store without its manifest is restored
/// completely: both keyspaces, levels in any order, and entries that are only in the log.
/// Method: random histories; the manifest is kept, or removed with and without CURRENT.
#[test]
fn comes_back_without_its_manifest() {
    for seed in 0..9u64 {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let (here, there) = history(&fs, seed);
        if seed % 3 > 0 {
            remove_manifests(&fs, seed % 3 == 1);
            assert!(builder(&fs).open().is_err());
        }
        let report = fix(&fs);
        assert_eq!(
            (report.is_rebuilt, report.damage.len()),
            (seed % 3 > 0, usize::from(seed % 3 > 0)),
            "{report}"
        );
        let sound = verify_in(&fs, STORE).unwrap();
        assert!(sound.is_sound(), "seed {seed}: {sound}");
        let db = open(&fs);
        assert!(pairs(&db) == here, "seed {seed}: {report}");
        assert!(pairs(&db.keyspace("other").unwrap()) == there, "seed {seed}: {report}");
        fill(&db, 0..10, 999);
        db.compact_range(..).unwrap();
        drop(db);
        let db = open(&fs);
        assert_eq!(db.get(key(3)).unwrap().as_deref(), Some(&value(3, 999)[..]));
    }
}

/// Goal: damaged tables are set aside and reported, and everything else is kept.
/// Method: two tables of one run, one flipped and one missing.
#[test]
fn damaged_tables() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    {
        let db = open(&fs);
        fill(&db, 0..600, 1);
        db.compact_range(..).unwrap();
        fill(&db, 600..610, 1);
        db.sync().unwrap();
    }
    let tables = files(&fs, STORE, ".table");
    assert!(tables.len() > 4);
    flip(&fs, &tables[1], 99);
    fs.remove(&tables[2]).unwrap();
    let report = fix(&fs);
    assert_eq!(report.damage.iter().map(|damage| damage.file.clone()).collect::<Vec<_>>(), tables[1..3]);
    let aside = Path::new("/store/lost").join(tables[1].file_name().unwrap());
    assert_eq!(report.set_aside, std::slice::from_ref(&aside));
    assert!(fs.exists(&aside).unwrap() && !report.is_rebuilt);
    let db = open(&fs);
    let found = pairs(&db);
    let all = expected(0..610, 1);
    assert!(found.len() > 300 && found.len() < 610 && found.iter().all(|pair| all.contains(pair)));
    assert!(found.ends_with(&all[600..]), "what was in the log");
    assert!(db.verify().unwrap().is_sound());
    assert!(fs.exists(&aside).unwrap(), "the store leaves it alone");
}

/// Goal: from a log with damage in the middle, the records before and after the damage are
/// recovered.
/// Method: flip a byte in a value.
#[test]
fn damaged_log() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    {
        let db = open(&fs);
        fill(&db, 0..100, 1);
        db.sync().unwrap();
        fill(&db, 100..110, 1);
        db.sync().unwrap();
    }
    let log = files(&fs, STORE, ".wal").into_iter().find(|path| fs.metadata(path).unwrap().len > 0).unwrap();
    flip(&fs, &log, find(&fs, &log, &value(50, 1)));
    assert_eq!(builder(&fs).open().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(!verify_in(&fs, STORE).unwrap().is_sound());
    let report = fix(&fs);
    assert_eq!((report.log_records, report.damage.len(), report.set_aside.len()), (109, 1, 1), "{report}");
    let mut all = expected(0..110, 1);
    all.remove(50);
    assert!(pairs(&open(&fs)) == all);
}

/// Goal: an ingested table keeps its place if the manifest is intact; without the manifest it comes
/// after everything written before it.
/// Method: an ingest over older entries, under newer ones.
#[test]
fn ingested_tables() {
    for lose_manifest in [false, true] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let all = {
            // No compaction runs, so the ingested table is not merged.
            let mut options = small();
            if let StrategyOptions::Leveled(leveled) = &mut options.compaction {
                (leveled.level_zero_runs_min, leveled.level_zero_runs_max) = (50, 60);
                leveled.level_zero_bytes = 1 << 20;
            }
            let db = builder(&fs).default_keyspace(options).open().unwrap();
            fill(&db, 0..50, 1);
            db.flush().unwrap();
            let mut table = db.table_builder("/t").unwrap();
            (20..60).for_each(|number| table.put(key(number), value(number, 2)).unwrap());
            table.finish().unwrap();
            db.ingest(&["/t"], &IngestOptions::default()).unwrap();
            fill(&db, 40..45, 3);
            db.sync().unwrap();
            pairs(&db)
        };
        if lose_manifest {
            remove_manifests(&fs, true);
        }
        let report = fix(&fs);
        assert_eq!(report.assumptions.len(), usize::from(lose_manifest), "{report}");
        assert!(pairs(&open(&fs)) == all, "{lose_manifest}: {report}");
    }
}

/// Goal: repeating an interrupted repair leads to the same result.
/// Method: a crash at every operation of repairs of a store with and without manifest.
#[test]
fn crashes() {
    for lose_manifest in [false, true] {
        let marks = std::cell::RefCell::new((0, Pairs::new(), Pairs::new()));
        let images = crash_sweep(
            FaultOptions::seeded(12),
            1,
            |machine: &FaultFs| {
                let fs: Arc<dyn Fs> = Arc::new(machine.clone());
                let (here, there) = history(&fs, 3);
                if lose_manifest {
                    remove_manifests(&fs, true);
                    fs.sync_dir(Path::new(STORE)).unwrap();
                }
                *marks.borrow_mut() = (machine.operation_count(), here, there);
                fix(&fs);
            },
            |point, image, after| {
                let marks = marks.borrow();
                if point.operation() < marks.0 {
                    return;
                }
                let fs: Arc<dyn Fs> = Arc::new(after);
                let report = fix(&fs);
                let db = open(&fs);
                let context = format!("operation {}, {image:?}: {report}", point.operation());
                assert!(pairs(&db) == marks.1, "{context}");
                assert!(pairs(&db.keyspace("other").unwrap()) == marks.2, "{context}");
            },
        );
        assert!(images > 30, "{images}");
    }
}

/// Goal: an open store, and a directory without a store, are not touched.
/// Method: repair and destroy both.
#[test]
fn refused() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let options = RepairOptions { fs: Arc::clone(&fs), keyspaces: Vec::new() };
    assert_eq!(repair(STORE, &options).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(destroy_in(&fs, STORE).unwrap_err().kind(), ErrorKind::Busy);
    fs.create_dir_all(Path::new("/other")).unwrap();
    fs.open(Path::new("/other/file"), OpenOptions::create()).unwrap();
    for path in ["/other", "/nothing"] {
        assert_eq!(repair(path, &options).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(destroy_in(&fs, path).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!fs.exists(&Path::new(path).join("LOCK")).unwrap());
    }
    db.put("a", "b").unwrap();
}

/// Goal: destroying a store removes all its files and no foreign ones. A crash in the middle leaves
/// the complete store or none, and a store created there later never sees remains of the old log. A
/// crash during the first creation of a store leaves a store that opens.
/// Method: a crash at every operation, of stores with tables and with a log only; then destroy
/// again and create a new store in its place.
#[test]
fn destroyed() {
    destroy_at_every_operation(true);
    destroy_at_every_operation(false);
}

/// Goal: a partly written copy of a log segment is destroyed with the store, and is not a store by
/// itself.
/// Method: one beside a store that is destroyed; one alone, where a store is created.
#[test]
fn leftovers_of_the_log_are_destroyed() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    fill(&open(&fs), 0..10, 1);
    let leftover = Path::new(STORE).join("000001.wal.tmp");
    let leave = || fs.open(&leftover, OpenOptions::create()).unwrap().write_all_at(b"half", 0).unwrap();
    leave();
    destroy_in(&fs, STORE).unwrap();
    assert!(fs.read_dir(Path::new(STORE)).unwrap().is_empty());
    leave();
    assert!(pairs(&open(&fs)).is_empty());
    assert!(!fs.exists(&leftover).unwrap());
}

fn destroy_at_every_operation(is_flushed: bool) {
    // Few enough that nothing is flushed from the memtable.
    let numbers = if is_flushed { 0..120 } else { 0..20 };
    let middle = numbers.end / 2;
    let mark = std::cell::Cell::new(0);
    let images = crash_sweep(
        FaultOptions::seeded(13),
        2,
        |machine| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let db = open(&fs);
            fill(&db, 0..middle, 1);
            if is_flushed {
                db.flush().unwrap();
            }
            fill(&db, middle..numbers.end, 1);
            db.sync().unwrap();
            drop(db);
            assert_eq!(files(&fs, STORE, ".table").is_empty(), !is_flushed);
            let other = fs.open(Path::new("/store/notes.txt"), OpenOptions::create()).unwrap();
            other.write_all_at(b"mine", 0).unwrap();
            other.sync_data().unwrap();
            fs.sync_dir(Path::new(STORE)).unwrap();
            mark.set(machine.operation_count());
            destroy_in(&fs, STORE).unwrap();
            assert_eq!(fs.read_dir(Path::new(STORE)).unwrap(), [Path::new("/store/notes.txt")]);
        },
        |point, image, after| {
            let fs: Arc<dyn Fs> = Arc::new(after);
            let context = format!("operation {}, {image:?}, {is_flushed}", point.operation());
            if point.operation() < mark.get() {
                builder(&fs).open().unwrap_or_else(|error| panic!("{context}: {error}"));
                return;
            }
            let is_there = fs.exists(&FileName::Current.path(Path::new(STORE))).unwrap();
            for create in [false, true] {
                if let Ok(db) = builder(&fs).create_if_missing(create).open() {
                    let all = if is_there { expected(numbers.clone(), 1) } else { Pairs::new() };
                    assert!(pairs(&db) == all, "{context}");
                }
            }
            if let Err(error) = destroy_in(&fs, STORE) {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{context}");
            }
            assert!(fs.exists(Path::new("/store/notes.txt")).unwrap(), "{context}");
            assert!(pairs(&open(&fs)).is_empty(), "{context}");
        },
    );
    assert!(images > 20, "{images}");
}

/// Goal: lost log records are reported, even when no file of the log remains.
/// Method: entries in a table and in the log; remove the log's files; verify and repair.
#[test]
fn log_that_is_gone() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    fill(&db, 0..50, 1);
    db.flush().unwrap();
    fill(&db, 50..60, 1);
    drop(db);
    for path in fs.read_dir(Path::new(STORE)).unwrap().iter().filter(|path| cairn_wal::is_log_file(path)) {
        fs.remove(path).unwrap();
    }
    let told = |damage: &[crate::Damage]| matches!(damage, [it] if it.to_string().contains("the log is needed from"));
    let found = verify_in(&fs, STORE).unwrap();
    assert!(told(&found.damage), "{found}");
    let report = fix(&fs);
    assert!(told(&report.damage), "{report}");
    assert_eq!((report.tables, report.log_records), (1, 0));
    assert!(pairs(&open(&fs)) == expected(0..50, 1));
    assert!(fix(&fs).damage.is_empty());
}

/// Goal: repaired tables do not count as the oldest: a FIFO store has all of them afterwards, and
/// drops them when they expire.
/// Method: entries in the log, in tables and in an ingested one, with and without the manifest; a
/// clock that the test moves on from the real time, which a repair uses.
#[test]
fn ages() {
    for lose_manifest in [false, true] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let clock = Arc::new(ManualClock::new(SystemClock::new().wall()));
        let open = || {
            let fifo = FifoOptions { ttl_secs: Some(3600), ..FifoOptions::default() };
            let options = KeyspaceOptions { compaction: StrategyOptions::Fifo(fifo), ..small() };
            builder(&fs).clock(Arc::clone(&clock) as _).default_keyspace(options).open().unwrap()
        };
        let db = open();
        for round in 0..2 {
            fill(&db, 100..102, round);
            db.flush().unwrap();
        }
        let mut table = db.table_builder("/t").unwrap();
        (102..110).for_each(|number| table.put(key(number), value(number, 1)).unwrap());
        table.finish().unwrap();
        db.ingest(&["/t"], &IngestOptions::default()).unwrap();
        fill(&db, 0..100, 1);
        let all = pairs(&db);
        assert_eq!(all.len(), 110);
        drop(db);
        if lose_manifest {
            remove_manifests(&fs, true);
        }
        let report = fix(&fs);
        let db = open();
        db.wait_idle().unwrap();
        assert!(pairs(&db) == all, "{lose_manifest}: {report}");
        clock.advance(Duration::from_secs(3700));
        db.wait_idle().unwrap();
        assert_eq!(pairs(&db).len(), 0, "{lose_manifest}");
    }
}

/// Goal: entries of a repaired store expire.
/// Method: entries in the log, or in tables whose order is unknown without the manifest; options
/// are passed where the manifest is lost; a clock that the test moves.
#[test]
fn expiry() {
    for lose_manifest in [false, true] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
        let options = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..small() };
        let open =
            || builder(&fs).clock(Arc::clone(&clock) as _).default_keyspace(options.clone()).open().unwrap();
        let db = open();
        fill(&db, 0..100, 1);
        if lose_manifest {
            db.flush().unwrap();
            let kept = db.snapshot();
            fill(&db, 50..150, 2);
            db.compact_range(key(40)..key(60)).unwrap();
            drop(kept);
        }
        let all = pairs(&db);
        drop(db);
        let mut repairing = RepairOptions { fs: Arc::clone(&fs), keyspaces: Vec::new() };
        if lose_manifest {
            remove_manifests(&fs, true);
            repairing.keyspaces.push(("default".to_owned(), options.clone()));
        }
        repair(STORE, &repairing).unwrap();
        let db = open();
        assert!(pairs(&db) == all);
        clock.advance(Duration::from_secs(3700));
        db.wait_idle().unwrap();
        assert_eq!(entries(&db), 0, "{lose_manifest}: {}", db.stats());
    }
}

/// Goal: values that only lost tables referred to are garbage after a repair.
/// Method: two tables with values in one blob file, of which one is lost; deleting the rest removes
/// the files.
#[test]
fn garbage_of_lost_tables() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let open = || open_apart(&fs);
    let db = open();
    fill(&db, 0..400, 1);
    db.compact_range(..).unwrap();
    drop(db);
    let tables = files(&fs, STORE, ".table");
    assert!(tables.len() > 1);
    flip(&fs, &tables[0], 99);
    fix(&fs);
    let db = open();
    let left: u64 = pairs(&db).iter().map(|(_, value)| value.len() as u64).sum();
    let blobs = db.core.inner.keyspace(crate::batch::DEFAULT).unwrap().view.load().version.blobs().to_vec();
    let alive: u64 = blobs.iter().map(|blob| blob.file.meta.value_bytes - blob.garbage_bytes).sum();
    assert_eq!(alive, left);
    drop(blobs);
    db.delete_range(key(0), key(400)).unwrap();
    db.compact_range(..).unwrap();
    drop(db);
    drop(open());
    assert_eq!(files(&fs, STORE, ".blob").len(), 0);
}

/// Goal: read errors of a failing disk are not taken for damage, so no data is lost to them.
/// Method: a store with tables, blob files and a log; each operation of a repair fails once, and a
/// failed repair is repeated.
#[test]
fn failing_disk() {
    let mut refused = 0;
    fault_sweep(&FaultOptions::seeded(16), Fault::Io, false, |machine, index| {
        let fs: Arc<dyn Fs> = Arc::new(machine.clone());
        let write = || -> crate::Result<()> {
            let db = builder(&fs).default_keyspace(apart()).open()?;
            (0..12).try_for_each(|number| db.put(key(number), value(number, 1)))?;
            db.flush()?;
            (12..24).try_for_each(|number| db.put(key(number), value(number, 1)))
        };
        if write().is_err() || machine.injected_count() > 0 {
            return;
        }
        let options = RepairOptions { fs: Arc::clone(&fs), keyspaces: Vec::new() };
        let first = repair(STORE, &options);
        machine.clear_rules();
        let is_refused = first.is_err();
        refused += u32::from(is_refused);
        let report = first.unwrap_or_else(|_| fix(&fs));
        assert!(is_refused || report.damage.is_empty(), "operation {index}: {report}");
        assert!(pairs(&open_apart(&fs)) == expected(0..24, 1), "operation {index}: {report}");
    });
    assert!(refused > 30, "{refused}");
}

/// Goal: a log of a later version is refused and not changed.
/// Method: change the version in both copies of a segment's header, then restore it.
#[test]
fn log_of_a_later_version() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    fill(&open(&fs), 0..100, 1);
    let log = files(&fs, STORE, ".wal").into_iter().find(|path| fs.metadata(path).unwrap().len > 0).unwrap();
    let sound = contents(&fs, &log);
    let mut later = sound.clone();
    for header in [0, 2048] {
        later[header + 8] = 99;
        let checksum = xxh3_64(&later[header..header + 56]);
        later[header + 56..header + 64].copy_from_slice(&checksum.to_le_bytes());
    }
    write_file(&fs, &log, &later);
    let options = RepairOptions { fs: Arc::clone(&fs), keyspaces: Vec::new() };
    assert_eq!(repair(STORE, &options).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(contents(&fs, &log) == later);
    write_file(&fs, &log, &sound);
    assert!(pairs(&open(&fs)) == expected(0..100, 1));
}

/// Goal: of two tables whose sequence numbers are 0, the one written later has the newer value.
/// Method: a table of the last level is put back beside the output of a compaction that merged it
/// with a newer value.
#[test]
fn versions_without_numbers() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    db.put("key", "old").unwrap();
    db.compact_range(..).unwrap();
    let old = files(&fs, STORE, ".table").pop().unwrap();
    let bytes = contents(&fs, &old);
    db.put("key", "new").unwrap();
    db.compact_range(..).unwrap();
    drop(db);
    assert!(!fs.exists(&old).unwrap());
    write_file(&fs, &old, &bytes);
    remove_manifests(&fs, true);
    let report = fix(&fs);
    assert_eq!(open(&fs).get("key").unwrap().as_deref(), Some(&b"new"[..]), "{report}");
}

/// Kinds of damage to a blob file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BlobDamage {
    Value,
    Header,
    Version,
    Cut,
    Gone,
}

/// Makes a store with two blob files and damages the second. Returns that file, and the numbers
/// whose values are lost.
fn damaged_blob(fs: &Arc<dyn Fs>, damage: BlobDamage) -> (PathBuf, std::ops::Range<u32>) {
    let db = open_apart(fs);
    fill(&db, 0..20, 1);
    db.flush().unwrap();
    fill(&db, 20..40, 1);
    db.flush().unwrap();
    drop(db);
    let blob = files(fs, STORE, ".blob").pop().unwrap();
    let lost = match damage {
        BlobDamage::Value => {
            flip(fs, &blob, find(fs, &blob, &value(30, 1)));
            30..31
        }
        BlobDamage::Header => {
            flip(fs, &blob, 9);
            0..0
        }
        BlobDamage::Version => {
            flip(fs, &blob, 5);
            0..0
        }
        BlobDamage::Cut => {
            let last = find(fs, &blob, &value(39, 1));
            write_file(fs, &blob, &contents(fs, &blob)[..last as usize + 1]);
            39..40
        }
        BlobDamage::Gone => {
            fs.remove(&blob).unwrap();
            fs.sync_dir(Path::new(STORE)).unwrap();
            20..40
        }
    };
    (blob, lost)
}

/// Goal: after a repair, a store with a damaged or missing blob file has all other values, and can
/// be read, compacted and written to.
/// Method: each kind of damage, with and without the manifest; the remaining pairs are compared.
#[test]
fn damaged_blob_files() {
    use BlobDamage::*;
    for (damage, lose_manifest) in
        [Value, Header, Version, Cut, Gone].map(|it| [(it, false), (it, true)]).concat()
    {
        let context = format!("{damage:?}, {lose_manifest}");
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let (blob, lost) = damaged_blob(&fs, damage);
        if lose_manifest {
            remove_manifests(&fs, true);
        }
        let options = RepairOptions { fs: Arc::clone(&fs), keyspaces: Vec::new() };
        let report = match repair(STORE, &options) {
            // Without the manifest's checksum, a flipped bit in the version cannot be distinguished
            // from a later version.
            Err(error) if (damage, lose_manifest) == (Version, true) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                continue;
            }
            report => report.unwrap(),
        };
        assert_eq!(report.lost_values, u64::from(lost.end - lost.start), "{context}: {report}");
        assert!(report.damage.iter().any(|found| found.file == blob), "{context}: {report}");
        let aside = Path::new("/store/lost").join(blob.file_name().unwrap());
        assert_eq!(fs.exists(&aside).unwrap(), damage != Gone, "{context}: {report}");
        let db = open_apart(&fs);
        let mut all = expected(0..40, 1);
        all.drain(lost.start as usize..lost.end as usize);
        assert!(pairs(&db) == all, "{context}: {report}");
        assert!(db.verify().unwrap().is_sound(), "{context}: {report}");
        go_on(&db);
        drop(db);
        assert!(fix(&fs).damage.is_empty(), "{context}");
    }
}

/// Goal: a lost value does not make an older value visible again.
/// Method: a value in a table under one whose blob file is missing.
#[test]
fn lost_values_hide_older_ones() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open_apart(&fs);
    db.put(key(1), "short").unwrap();
    db.compact_range(..).unwrap();
    fill(&db, 1..3, 1);
    db.flush().unwrap();
    drop(db);
    fs.remove(&files(&fs, STORE, ".blob")[0]).unwrap();
    let report = fix(&fs);
    assert_eq!(report.lost_values, 2, "{report}");
    let db = open_apart(&fs);
    assert!(pairs(&db).is_empty(), "{report}");
    go_on(&db);
}

/// Goal: repeating an interrupted repair that moves values leads to the same result.
/// Method: a crash at every operation of repairs of a store with a damaged blob file, with and
/// without manifest.
#[test]
fn crashes_while_values_move() {
    for lose_manifest in [false, true] {
        let mark = std::cell::Cell::new(0);
        let images = crash_sweep(
            FaultOptions::seeded(17),
            2,
            |machine: &FaultFs| {
                let fs: Arc<dyn Fs> = Arc::new(machine.clone());
                damaged_blob(&fs, BlobDamage::Value);
                if lose_manifest {
                    remove_manifests(&fs, true);
                    fs.sync_dir(Path::new(STORE)).unwrap();
                }
                mark.set(machine.operation_count());
                fix(&fs);
            },
            |point, image, after| {
                if point.operation() < mark.get() {
                    return;
                }
                let fs: Arc<dyn Fs> = Arc::new(after);
                let report = fix(&fs);
                let context = format!("operation {}, {image:?}: {report}", point.operation());
                let mut all = expected(0..40, 1);
                all.remove(30);
                let db = open_apart(&fs);
                assert!(pairs(&db) == all, "{context}");
                assert!(db.verify().unwrap().is_sound(), "{context}");
            },
        );
        assert!(images > 30, "{images}");
    }
}

/// Goal: a value counts once if an input of a compaction remains beside the output and both refer
/// to it. Otherwise more bytes than the blob file has would become garbage.
/// Method: such a table is put back, the manifest is lost, and the store is compacted until its
/// blob files have been collected.
#[test]
fn values_that_two_tables_have() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open_apart(&fs);
    fill(&db, 0..20, 1);
    db.flush().unwrap();
    let input = files(&fs, STORE, ".table").pop().unwrap();
    let bytes = contents(&fs, &input);
    db.compact_range(..).unwrap();
    drop(db);
    assert!(!fs.exists(&input).unwrap());
    write_file(&fs, &input, &bytes);
    remove_manifests(&fs, true);
    let report = fix(&fs);
    let db = open_apart(&fs);
    assert!(pairs(&db) == expected(0..20, 1), "{report}");
    for round in 2..5 {
        fill(&db, 0..15, round);
        db.compact_range(..).unwrap();
        db.wait_idle().unwrap();
    }
    go_on(&db);
}
