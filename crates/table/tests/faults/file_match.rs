//! Files that do not match: each file of a database is missing, empty, truncated, duplicated, from
//! an earlier time, or from another database. Either opening is refused, with nothing changed, by
//! an error that names a file; or everything that was committed is present.

use std::path::{Path, PathBuf};

use cairn_table::row::Value;
use cairn_table::{Database, Durability, Isolation};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, OpenOptions, Rng, SeededRng};

use super::transactions::{Tables, content, def, key, open};
use super::{rounds, seed};

const MAIN: &str = "/db";
const COPIES: &str = "/db-pages";
const LOG: &str = "/db-log";

/// The files of a database at one moment, and everything committed by then.
#[derive(Clone)]
struct Moment {
    files: Vec<(PathBuf, Vec<u8>)>,
    content: Tables,
    /// Whether it was closed; otherwise it was killed, with everything written so far.
    is_closed: bool,
}

impl Moment {
    fn of(disk: &FaultFs, content: &Tables, is_closed: bool) -> Moment {
        let files = files(disk);
        Moment { files, content: content.clone(), is_closed }
    }

    fn disk(&self) -> FaultFs {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        disk.create_dir_all(Path::new(LOG)).unwrap();
        self.files.iter().for_each(|(path, bytes)| put(&disk, path, bytes));
        disk
    }

    fn bytes(&self, path: &Path) -> Option<&[u8]> {
        self.files.iter().find(|(other, _)| other == path).map(|(_, bytes)| &bytes[..])
    }

    /// Returns its files of a kind: `MAIN`, `COPIES`, or all of `LOG`.
    fn kind(&self, kind: &str) -> impl Iterator<Item = &(PathBuf, Vec<u8>)> {
        self.files.iter().filter(move |(path, _)| is_of(path, kind))
    }
}

fn is_of(path: &Path, kind: &str) -> bool {
    if kind == LOG { path.parent() == Some(Path::new(LOG)) } else { path == Path::new(kind) }
}

fn files(disk: &FaultFs) -> Vec<(PathBuf, Vec<u8>)> {
    let bytes = |path: PathBuf| (Path::new("/").join(&path), disk.bytes_of(&path).unwrap());
    disk.files().into_iter().map(bytes).collect()
}

fn put(disk: &FaultFs, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenOptions::create()).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
}

/// Inserts, changes and deletes some rows, each in a transaction of its own, with occasional
/// checkpoints.
fn work(db: &Database, rng: &mut SeededRng, count: u64) {
    let transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.view().catalog().table("public", "t").unwrap().clone();
    drop(transaction);
    for _ in 0..count {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let id = rng.below(400) as i32;
        let text = "w".repeat(rng.below(300) as usize);
        let row = [Value::Int(id), Value::Int(rng.below(50) as i32), Value::Text(&text)];
        let is_there = match rng.below(4) {
            0 => transaction.delete(&table, &key(&table, id)).unwrap(),
            _ => transaction.update(&table, &key(&table, id), &row).unwrap(),
        };
        if !is_there {
            transaction.insert(&table, &row).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
        if rng.below(40) == 0 {
            db.checkpoint().unwrap();
        }
    }
}

/// Returns a database at several moments, in order of time, closed and killed.
fn life(seed: u64) -> Vec<Moment> {
    let mut rng = SeededRng::new(seed).fork("life");
    let mut disk = FaultFs::new(FaultOptions::seeded(seed));
    let db = open(&disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    transaction.create_table(def("t")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    drop(db);
    let mut moments = Vec::new();
    for turn in 0..4 {
        let db = open(&disk).unwrap();
        let count = 30 + rng.below(90);
        work(&db, &mut rng, count);
        let (found, killed) = (content(&db).unwrap(), disk.crash_point().image(CrashImage::All));
        if turn % 2 == 1 {
            moments.push(Moment::of(&killed, &found, false));
        }
        drop(db);
        moments.push(Moment::of(&disk, &found, true));
        if turn == 1 {
            // Continues from the kill.
            disk = killed;
        }
    }
    moments
}

/// Opens the database: either it fails with an error that names a file and has changed nothing, or
/// everything that was committed is present. Returns true if it was opened.
fn is_right(disk: &FaultFs, expected: &Tables, context: &str) -> bool {
    let before = files(disk);
    match open(disk).and_then(|db| content(&db).map(|found| (db, found))) {
        Ok((db, found)) => {
            assert!(found == *expected, "{context}: it was opened with other rows");
            db.check().unwrap_or_else(|error| panic!("{context}: {error}"));
            true
        }
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{context}: {text}");
            assert!(text.contains("/db"), "{context}: {text}");
            // As the error promises.
            if text.contains("nothing was changed") {
                assert!(files(disk) == before, "{context}: {text}");
            }
            false
        }
    }
}

/// Goal: see the module. Method: the files of two databases at several moments, with one kind of
/// file replaced by that of another moment or of the other database, or with each file truncated,
/// emptied, removed or duplicated. After a kill, only the newest segment knows its latest records,
/// so the log of a killed database is not replaced by an older one, and its newest segment is kept.
#[test]
fn files_of_different_databases_are_refused() {
    let own = seed();
    let (mut right, mut refused) = (0, 0);
    let mut look = |disk: &FaultFs, expected: &Tables, context: &str| {
        if is_right(disk, expected, context) { right += 1 } else { refused += 1 }
    };
    for round in 0..rounds(3, 300) {
        let seed = own.wrapping_add(round);
        let (life, other) = (life(seed), life(seed ^ 0x5eed));
        for (at, moment) in life.iter().enumerate() {
            look(&moment.disk(), &moment.content, &format!("seed {seed}, moment {at} as it is"));
            for kind in [MAIN, COPIES, LOG] {
                let strangers =
                    life.iter().enumerate().map(|(from, moment)| (format!("moment {from}"), moment));
                let others =
                    other.iter().enumerate().map(|(from, moment)| (format!("stranger {from}"), moment));
                for (name, stranger) in strangers.chain(others) {
                    let is_older = std::ptr::from_ref(stranger) < std::ptr::from_ref(moment);
                    if kind == LOG && !moment.is_closed && is_older && name.starts_with("moment") {
                        continue;
                    }
                    let disk = moment.disk();
                    moment.kind(kind).for_each(|(path, _)| disk.remove(path).unwrap());
                    stranger.kind(kind).for_each(|(path, bytes)| put(&disk, path, bytes));
                    let context = format!("seed {seed}, moment {at} with {kind} of {name}");
                    look(&disk, &moment.content, &context);
                }
                let disk = moment.disk();
                if kind != LOG || moment.is_closed {
                    moment.kind(kind).for_each(|(path, _)| disk.remove(path).unwrap());
                    look(&disk, &moment.content, &format!("seed {seed}, moment {at} without {kind}"));
                }
            }
            single_files(moment, &other, &mut look, &format!("seed {seed}, moment {at}"));
        }
    }
    println!("{right} right, {refused} refused");
    assert!(right > 50 && refused > 200, "{right} {refused}");
}

/// Does the same with each single file.
fn single_files(
    moment: &Moment,
    other: &[Moment],
    look: &mut impl FnMut(&FaultFs, &Tables, &str),
    context: &str,
) {
    let newest = moment.kind(LOG).map(|(path, _)| path).max().cloned();
    for (path, bytes) in &moment.files {
        if !moment.is_closed && Some(path) == newest.as_ref() {
            continue;
        }
        let name = path.display();
        for part in [0, 1, 2, 3] {
            let disk = moment.disk();
            put(&disk, path, &bytes[..bytes.len() * part / 4]);
            look(&disk, &moment.content, &format!("{context}, {part}/4 of {name}"));
        }
        let disk = moment.disk();
        disk.remove(path).unwrap();
        look(&disk, &moment.content, &format!("{context}, without {name}"));
        if is_of(path, LOG) {
            // Duplicated, as the newest segment.
            let disk = moment.disk();
            put(&disk, &Path::new(LOG).join("000999.wal"), bytes);
            look(&disk, &moment.content, &format!("{context}, {name} twice"));
        }
        // A file of the same name from another database.
        for (at, stranger) in other.iter().enumerate() {
            if let Some(bytes) = stranger.bytes(path) {
                let disk = moment.disk();
                put(&disk, path, bytes);
                look(&disk, &moment.content, &format!("{context}, {name} of stranger {at}"));
            }
        }
    }
}

/// Goal: a database and a copy of it that are both changed afterwards are two databases: no file of
/// one is accepted for the other. Method: all files are copied while it is closed, both are opened
/// and changed, and then files are exchanged.
#[test]
fn diverged_copies_are_different_databases() {
    let own = seed();
    let (mut right, mut refused) = (0, 0);
    for round in 0..rounds(6, 300) {
        let seed = own.wrapping_add(round);
        let base = life(seed).pop().unwrap();
        let mut rng = SeededRng::new(seed).fork("copies");
        let [one, two] = [7, 8].map(|salt| {
            let disk = base.disk();
            // The random numbers depend on the number of operations.
            (0..salt).for_each(|_| put(&disk, Path::new("/count"), b"x"));
            disk.remove(Path::new("/count")).unwrap();
            let db = open(&disk).unwrap();
            work(&db, &mut rng, 60);
            let found = content(&db).unwrap();
            drop(db);
            Moment::of(&disk, &found, true)
        });
        for kind in [MAIN, COPIES, LOG] {
            let disk = one.disk();
            one.kind(kind).for_each(|(path, _)| disk.remove(path).unwrap());
            two.kind(kind).for_each(|(path, bytes)| put(&disk, path, bytes));
            let context = format!("seed {seed}, {kind} of the other one");
            // With the other main file, its rows are those of the other database, if it opens at
            // all.
            let expected = if kind == MAIN { &two.content } else { &one.content };
            if is_right(&disk, expected, &context) { right += 1 } else { refused += 1 }
        }
    }
    println!("{right} right, {refused} refused");
    assert!(refused > 10, "{right} {refused}");
}

/// Goal: the loss of a commit that changed no further page is detected too, if the log is older
/// than the close. Method: a checkpoint writes the pages of a transaction, it commits, and the
/// database is closed; then the log from before the commit is put back.
#[test]
fn lost_commit_without_page_changes_is_detected() {
    let disk = FaultFs::new(FaultOptions::seeded(seed()));
    let db = open(&disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    transaction.create_table(def("t")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.view().catalog().table("public", "t").unwrap().clone();
    transaction.insert(&table, &[Value::Int(1), Value::Int(1), Value::Text("w")]).unwrap();
    db.checkpoint().unwrap();
    let before = Moment::of(&disk.crash_point().image(CrashImage::All), &Tables::new(), false);
    transaction.commit(Durability::Sync).unwrap();
    let found = content(&db).unwrap();
    drop((table, db));
    let closed = Moment::of(&disk, &found, true);
    let disk = closed.disk();
    closed.kind(LOG).for_each(|(path, _)| disk.remove(path).unwrap());
    before.kind(LOG).for_each(|(path, bytes)| put(&disk, path, bytes));
    assert!(!is_right(&disk, &found, "the log of before the commit"));
    assert!(is_right(&closed.disk(), &found, "as it was closed"));
}

/// Goal: matching files may be moved anywhere: a database that is renamed with its log and its
/// double write remains valid.
#[test]
fn renamed_database_opens() {
    let moment = life(seed()).pop().unwrap();
    let disk = FaultFs::new(FaultOptions::seeded(1));
    disk.create_dir_all(Path::new("/else/other.db-log")).unwrap();
    for (path, bytes) in &moment.files {
        let text = path.to_str().unwrap();
        put(&disk, Path::new(&text.replacen("/db", "/else/other.db", 1)), bytes);
    }
    let fs: std::sync::Arc<dyn Fs> = std::sync::Arc::new(disk);
    let mut rng = SeededRng::new(9);
    let options = super::transactions::options();
    let db = Database::open_seeded(&fs, Path::new("/else/other.db"), &options, &mut rng).unwrap();
    assert!(content(&db).unwrap() == moment.content);
}
