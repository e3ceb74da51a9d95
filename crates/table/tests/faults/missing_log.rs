//! Databases whose log was removed, or is incomplete.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_table::row::Value;
use cairn_table::{Database, Durability, Isolation, Result};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, OpenOptions, SeededRng};

use super::transactions::{Tables, content, def, key, options};

const LOG: &str = "/db-log";
const COPIES: &str = "/db-pages";

fn open(disk: &FaultFs) -> Result<Database> {
    let mut options = options();
    // All changes are in one segment, and pages are not written earlier than necessary.
    options.store.frames = 200;
    options.store.log = cairn_wal::Options::default().segment_bytes(1 << 20).background(false);
    options.checkpoint_bytes = u64::MAX;
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    Database::open_seeded(&fs, Path::new("/db"), &options, &mut SeededRng::new(7).fork("salt"))
}

/// Returns a closed database with rows, some of which were changed and some deleted: everything is
/// in its pages, and everything since it was opened is in its log.
fn closed() -> (FaultFs, Tables) {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let db = open(&disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    for id in 0..100 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(0), Value::Text("w")]).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    db.checkpoint().unwrap();
    for id in 0..100 {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let row = [Value::Int(id), Value::Int(1), Value::Text("ww")];
        match id % 3 {
            0 => assert!(transaction.delete(&table, &key(&table, id)).unwrap()),
            _ => assert!(transaction.update(&table, &key(&table, id), &row).unwrap()),
        }
        transaction.commit(Durability::Sync).unwrap();
    }
    let found = content(&db).unwrap();
    drop((table, db));
    (disk, found)
}

/// Returns all files and their bytes.
fn files(disk: &FaultFs) -> Vec<(PathBuf, Vec<u8>)> {
    disk.files().into_iter().map(|path| (path.clone(), disk.bytes_of(&path).unwrap())).collect()
}

/// Opens the database repeatedly: each time it reports that the log is incomplete, and nothing is
/// created or changed.
fn is_refused(disk: &FaultFs, context: &str) {
    let before = files(disk);
    for attempt in 0..3 {
        let error = open(disk).map(|_| ()).expect_err(context);
        let text = error.to_string();
        let ends = ["the log ends at", "it ends at"].iter().any(|ends| text.contains(ends));
        // The error lists the other files, for users who have copied the main file alone.
        let named = text.contains("-log and ") && text.contains("-pages belong to the file");
        // The header of a segment states the length of its file, so an error names a truncated one.
        let cut = text.contains(".wal is damaged") && text.contains("the file was truncated");
        let is_told = cut || ends && named;
        assert!(error.kind() == ErrorKind::Corruption && is_told, "{context}, {attempt}: {text}");
        assert_eq!(files(disk), before, "{context}, {attempt}");
    }
}

/// Goal: a database without its log is refused, however often it is opened, and nothing is left
/// behind that could be taken for a log. Method: removes the log; removes the log and the double
/// write.
#[test]
fn missing_log_is_refused() {
    for with_copies in [true, false] {
        let (disk, _) = closed();
        for path in disk.read_dir(Path::new(LOG)).unwrap() {
            disk.remove(&path).unwrap();
        }
        if !with_copies {
            disk.remove(Path::new(COPIES)).unwrap();
        }
        is_refused(&disk, &format!("with copies: {with_copies}"));
    }
}

/// Goal: the loss of the log's end is detected, wherever the log ends now, because pages have
/// changes that the log lacks. Method: truncates the newest segment at many positions, with and
/// without the double write; if nothing is lost, the database is unchanged.
#[test]
fn shortened_log_is_refused() {
    let (mut refused, mut whole) = (0, 0);
    for with_copies in [true, false] {
        for cut in (0..).map(|step| 4096 + step * 488) {
            let (disk, expected) = closed();
            let files = disk.read_dir(Path::new(LOG)).unwrap().into_iter();
            let newest = files.filter(|path| cairn_wal::is_log_file(path)).max().unwrap();
            let bytes = disk.bytes_of(&newest).unwrap();
            let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
            disk.open(&newest, OpenOptions::write()).unwrap().set_len(cut).unwrap();
            if !with_copies {
                disk.remove(Path::new(COPIES)).unwrap();
            }
            if cut < end {
                refused += 1;
                is_refused(&disk, &format!("cut at {cut} of {end}, with copies: {with_copies}"));
                continue;
            }
            whole += 1;
            assert_eq!(content(&open(&disk).unwrap()).unwrap(), expected);
            break;
        }
    }
    assert!(refused > 40 && whole == 2, "{refused}");
}

/// Goal: in a closed database, a flipped bit in the log loses no commit unnoticed, not even the
/// last one: everything is present, or opening is refused; and closing has freed the space
/// allocated ahead. Method: flips bits at intervals in the bytes written.
#[test]
fn flipped_bits_of_closed_log_are_detected() {
    let (disk, found) = closed();
    let point = disk.crash_point();
    let (mut flips, mut refused) = (0, 0);
    for path in disk.read_dir(Path::new(LOG)).unwrap() {
        let bytes = disk.bytes_of(&path).unwrap();
        // A segment takes 1 MiB while it is written; closing frees the space allocated ahead.
        assert!(bytes.len() < 1 << 20, "{} has {} bytes", path.display(), bytes.len());
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for at in (0..written).step_by(super::rounds(97, 7) as usize) {
            let disk = point.image(CrashImage::All);
            assert!(disk.flip_bit(&path, at as u64, (at % 8) as u8));
            flips += 1;
            match open(&disk) {
                Ok(db) => assert_eq!(content(&db).unwrap(), found, "byte {at} of {}", path.display()),
                Err(error) => {
                    assert_eq!(
                        error.kind(),
                        ErrorKind::Corruption,
                        "byte {at} of {}: {error}",
                        path.display()
                    );
                    refused += 1;
                }
            }
        }
    }
    println!("flipped bits of a closed log: {flips}, {refused} refused");
    assert!(flips > 200 && refused > flips / 2, "{flips} {refused}");
}
