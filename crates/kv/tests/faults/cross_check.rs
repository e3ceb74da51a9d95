//! Tests of files that are missing, older than the others, from another store, cut or doubled. In
//! each case the error names the file, or no data is affected.

use std::collections::BTreeMap;

use cairn_kv::{Background, Builder, Durability, IngestOptions, KeyspaceOptions, Options, TableBuilder};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, FaultOptions, Operation, SeededRng};

use super::workload::{Mix, Step};
use super::*;

/// The kind of harm done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Harm {
    Removed,
    /// The file has its content of an earlier time.
    Older(usize),
    /// The file is replaced with the file of the same name from another store, or any of its kind.
    Foreign,
    Cut(usize),
    Doubled,
}

/// A store with the data needed to harm it.
struct Subject {
    disk: FaultFs,
    shape: Shape,
    state: State,
    is_closed: bool,
    /// Earlier contents of files, without the current ones.
    older: BTreeMap<String, Vec<Vec<u8>>>,
    /// The files of another store.
    others: BTreeMap<String, Vec<u8>>,
}

fn contents(fs: &FaultFs) -> BTreeMap<String, Vec<u8>> {
    let mut names = names(fs);
    names.retain(|name| name != "LOCK" && !name.ends_with(".free"));
    names.into_iter().map(|name| (name.clone(), fs.bytes_of(&path_of(&name)).unwrap())).collect()
}

/// Returns a store after some lives and many writes, closed or killed, and all contents that its
/// files ever had.
fn write(seed: u64, is_closed: bool) -> (FaultFs, Shape, State, BTreeMap<String, Vec<Vec<u8>>>) {
    let fs = FaultFs::new(FaultOptions::seeded(seed));
    let shape = Shape::drawn(seed);
    let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(seed).fork("trust"));
    let mut older: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let mut note = |fs: &FaultFs| {
        for (name, bytes) in contents(fs) {
            let all = older.entry(name).or_default();
            if all.last() != Some(&bytes) {
                all.push(bytes);
            }
        }
    };
    for life in 0..3 {
        run.open().unwrap();
        for _ in 0..6 {
            run.steps(6).unwrap();
            if life > 0 {
                run.perform(Step::Flush(life % 2)).unwrap();
            }
            run.perform(Step::Sync).unwrap();
            note(&fs);
        }
        if life < 2 {
            run.close();
            note(&fs);
        }
    }
    let state = run.model.clone();
    if is_closed {
        run.close()
    } else {
        run.kill()
    }
    for (name, bytes) in contents(&fs) {
        older.get_mut(&name).into_iter().for_each(|all| all.retain(|it| *it != bytes));
    }
    (fs, shape, state, older)
}

impl Subject {
    fn new(seed: u64, is_closed: bool) -> Subject {
        let (disk, shape, state, older) = write(seed, is_closed);
        let others = contents(&write(seed ^ 1 << 40, is_closed).0);
        Subject { disk, shape, state, is_closed, older, others }
    }

    /// Returns all kinds of harm that apply to a file.
    fn harms(&self, name: &str, bytes: &[u8]) -> Vec<Harm> {
        let mut harms = vec![Harm::Removed, Harm::Foreign, Harm::Doubled];
        harms.extend([0, bytes.len() / 2, bytes.len().saturating_sub(1)].map(Harm::Cut));
        if name.ends_with(".wal") {
            harms.push(Harm::Cut(4100));
        }
        harms.extend((0..self.older.get(name).map_or(0, Vec::len)).map(Harm::Older));
        harms
    }

    /// Returns the content of the harmed file, or `None` if it is removed or there is no
    /// replacement.
    fn harmed(&self, name: &str, bytes: &[u8], harm: &Harm) -> Option<Vec<u8>> {
        match harm {
            Harm::Removed => None,
            Harm::Older(at) => Some(self.older[name][*at].clone()),
            Harm::Foreign => {
                let kind = |name: &str| name.rsplit_once('.').map_or(name.len(), |(_, end)| end.len());
                let of_kind =
                    || self.others.iter().rfind(|(other, _)| kind(other) == kind(name)).map(|(_, it)| it);
                self.others.get(name).or_else(of_kind).cloned()
            }
            Harm::Cut(len) => Some(bytes[..(*len).min(bytes.len())].to_vec()),
            Harm::Doubled => Some([bytes, bytes].concat()),
        }
    }

    /// Opens a copy of the store with one harmed file. Returns true if that failed. The test fails
    /// unless the outcome is the right data or an error that names the file.
    fn try_harm(&self, name: &str, bytes: &[u8], harm: &Harm) -> bool {
        let context = format!("shape {}, closed {}, {name} {harm:?}", self.shape.seed, self.is_closed);
        let disk = self.disk.crash_point().image(CrashImage::All);
        match self.harmed(name, bytes, harm) {
            Some(other) => disk.install(&path_of(name), &other).unwrap(),
            None => disk.remove(&path_of(name)).unwrap(),
        }
        let before = contents(&disk);
        let report = cairn_kv::verify_in(&shared(&disk), DIR);
        let is_sound = report.as_ref().is_ok_and(cairn_kv::VerifyReport::is_sound);
        let opened = open(&disk, &self.shape);
        let is_refused = opened.is_err();
        let result = opened.and_then(|db| {
            let found = scan(&db)?;
            let again = db.verify()?;
            Ok((found, again))
        });
        let newest_log = self.disk_names().into_iter().filter(|name| name.ends_with(".wal")).max();
        // For a killed store, the end of the newest segment is recorded nowhere.
        let nobody_knows =
            !self.is_closed && matches!(harm, Harm::Older(_)) && newest_log.as_deref() == Some(name);
        match result {
            Ok((found, again)) if found == self.state => {
                // A file that is not read any more, such as a garbage blob file, may be wrong
                // without effect. Verification then names it.
                let named =
                    |report: &cairn_kv::VerifyReport| report.is_sound() || report.to_string().contains(name);
                assert!(named(&again), "{context}: {again}");
                assert!(report.as_ref().is_ok_and(named), "{context}: all is there: {report:?}");
                false
            }
            Ok((found, _)) => {
                let difference = |at: usize| self.state[at].difference(&found[at]);
                assert!(nobody_knows, "{context}: {} {}", difference(0), difference(1));
                false
            }
            Err(error) => {
                let says = error.to_string();
                // Files that an older or truncated manifest refers to may be deleted since. The
                // error then names one of them.
                let is_manifest =
                    name.starts_with("MANIFEST") && matches!(harm, Harm::Older(_) | Harm::Cut(_));
                assert!(says.contains(name) || is_manifest, "{context}: it is not named: {says}");
                assert!(!is_sound, "{context}: verify says sound, and open: {says}");
                if is_refused {
                    // Nothing was changed: with the file restored, all data is there.
                    let mut after = contents(&disk);
                    after.retain(|name, _| before.contains_key(name));
                    assert!(after == before, "{context}: a store that was refused was changed");
                    disk.install(&path_of(name), bytes).unwrap();
                    let db = open(&disk, &self.shape)
                        .unwrap_or_else(|error| panic!("{context}: put back: {error}"));
                    assert!(scan(&db).unwrap() == self.state, "{context}: put back");
                }
                true
            }
        }
    }

    fn disk_names(&self) -> Vec<String> {
        names(&self.disk)
    }
}

/// Goal: whichever file of a store is missing, older than the others, from another store, cut or
/// doubled, opening and reading the store gives the right data or an error that names the file;
/// `verify` agrees; and a refused store is not changed, so that the file can be restored.
/// Method: stores after three lives, closed or killed, with tables, blob files and segments; each
/// file in turn, with each kind of harm; the earlier contents are those that the files had while
/// the store was written.
#[test]
fn files_that_do_not_belong_together() {
    let own = seed(41);
    let (mut tried, mut refused) = (0, 0);
    for round in 0..rounds(4, 200) {
        let subject = Subject::new(own.wrapping_add(round), round % 2 == 0);
        for (name, bytes) in contents(&subject.disk) {
            for harm in subject.harms(&name, &bytes) {
                refused += u64::from(subject.try_harm(&name, &bytes, &harm));
                tried += 1;
            }
        }
    }
    println!("files that do not belong together: {tried} tried, {refused} refused");
    assert!(tried > 300 && refused * 2 > tried, "{tried} {refused}");
}

fn plain(fs: &FaultFs) -> Builder {
    let options =
        Options { background: Background::Inline, wal_segment_bytes: 64 << 10, ..Options::default() };
    Db::builder(DIR).fs(shared(fs)).options(options)
}

/// Goal: the cases reported in an issue are detected.
/// Method: after 1,000 writes with `Sync` and a clean close, all segments are removed; of twelve
/// segments the newest is removed; after two commands the second's segment is removed, and cut to
/// 4,100 bytes. In each case `verify` and `open` name the segment.
#[test]
fn what_was_synced_is_missed() {
    let filled = |count: u32, is_closed: bool| {
        let fs = FaultFs::new(FaultOptions::seeded(1));
        let db = plain(&fs).open().unwrap();
        for number in 0..count {
            db.put_with(number.to_be_bytes(), [7; 400], Durability::Sync).unwrap();
        }
        if !is_closed {
            fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io).persistent());
        }
        drop(db);
        fs.clear_rules();
        fs
    };
    let is_missed = |fs: &FaultFs, name: &str| {
        let report = cairn_kv::verify_in(&shared(fs), DIR).unwrap();
        assert!(!report.is_sound() && report.to_string().contains(name), "{name}: {report}");
        let says = plain(fs).open().map(|_| ()).expect_err(name).to_string();
        assert!(says.contains(name), "{says}");
        let says = plain(fs).read_only(true).open().map(|_| ()).expect_err(name).to_string();
        assert!(says.contains(name), "read only: {says}");
    };
    let segments = |fs: &FaultFs| {
        let mut all: Vec<String> = names(fs).into_iter().filter(|name| name.ends_with(".wal")).collect();
        all.sort_unstable();
        all
    };
    for is_closed in [true, false] {
        let fs = filled(1000, is_closed);
        let all = segments(&fs);
        let all: Vec<&String> = all
            .iter()
            .filter(|name| {
                // A prepared segment that was not begun is not needed.
                fs.bytes_of(&path_of(name)).unwrap().starts_with(b"CAIRNWAL")
            })
            .collect();
        assert!(all.len() > 5, "{all:?}");
        let newest = fs.crash_point().image(CrashImage::All);
        newest.remove(&path_of(all.last().unwrap())).unwrap();
        is_missed(&newest, all.last().unwrap());
        segments(&fs).iter().for_each(|name| fs.remove(&path_of(name)).unwrap());
        is_missed(&fs, all.last().unwrap());
    }
    let fs = FaultFs::new(FaultOptions::seeded(1));
    for key in ["a", "b"] {
        plain(&fs).open().unwrap().put(key, "1").unwrap();
    }
    let second = segments(&fs).pop().unwrap();
    let bytes = fs.bytes_of(&path_of(&second)).unwrap();
    fs.install(&path_of(&second), &bytes[..4100]).unwrap();
    is_missed(&fs, &second);
    fs.remove(&path_of(&second)).unwrap();
    is_missed(&fs, &second);
    fs.install(&path_of(&second), &bytes).unwrap();
    assert_eq!(plain(&fs).open().unwrap().get("b").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Goal: data that is only in tables is also missed if the manifest is an older state of itself:
/// ingested tables, flushed `Memory` writes, keyspaces.
/// Method: the manifest of a killed store, and of a closed one, is restored to its state before
/// each of them.
#[test]
fn a_manifest_that_is_older() {
    for is_closed in [true, false] {
        for what in ["ingest", "flush", "keyspace"] {
            let fs = FaultFs::new(FaultOptions::seeded(1));
            let db = plain(&fs).open().unwrap();
            db.put_with("logged", "1", Durability::Sync).unwrap();
            let name = names(&fs).into_iter().find(|name| name.starts_with("MANIFEST")).unwrap();
            let older = fs.bytes_of(&path_of(&name)).unwrap();
            match what {
                "ingest" => {
                    let mut table =
                        TableBuilder::create_in(&shared(&fs), "outside", &KeyspaceOptions::default())
                            .unwrap();
                    table.put("taken in", "1").unwrap();
                    table.finish().unwrap();
                    db.ingest(&["outside"], &IngestOptions::default()).unwrap();
                }
                "flush" => {
                    db.put_with("memory", "1", Durability::Memory).unwrap();
                    db.flush().unwrap();
                }
                _ => _ = db.create_keyspace("another", KeyspaceOptions::default()).unwrap(),
            }
            if !is_closed {
                fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io).persistent());
            }
            drop(db);
            fs.clear_rules();
            fs.install(&path_of(&name), &older).unwrap();
            let report = cairn_kv::verify_in(&shared(&fs), DIR).unwrap();
            assert!(!report.is_sound(), "{what}, closed {is_closed}: {report}");
            let says = plain(&fs).open().map(|_| ()).expect_err(what).to_string();
            assert!(
                says.contains(&name) && says.contains("older than the log"),
                "{what}, closed {is_closed}: {says}"
            );
        }
    }
}

/// Goal: a table and a blob file of another store with the same number, length and keys are
/// detected as foreign.
/// Method: two stores written identically except for their values; each file of one replaces the
/// other's.
#[test]
fn files_of_the_same_shape() {
    let write = |byte: u8| {
        let fs = FaultFs::new(FaultOptions::seeded(1));
        let keyspace = KeyspaceOptions { blob_bytes_min: Some(300), ..KeyspaceOptions::default() };
        let db = plain(&fs).seed(1).default_keyspace(keyspace).open().unwrap();
        for number in 0..50u32 {
            db.put(number.to_be_bytes(), vec![byte; if number % 2 == 0 { 100 } else { 400 }]).unwrap();
        }
        db.flush().unwrap();
        drop(db);
        fs
    };
    let (one, two) = (write(1), write(2));
    let theirs = contents(&two);
    let mut count = 0;
    for (name, bytes) in contents(&one) {
        if !name.ends_with(".table") && !name.ends_with(".blob") {
            continue;
        }
        assert_eq!(bytes.len(), theirs[&name].len(), "{name}");
        let fs = one.crash_point().image(CrashImage::All);
        fs.install(&path_of(&name), &theirs[&name]).unwrap();
        let report = cairn_kv::verify_in(&shared(&fs), DIR).unwrap();
        assert!(!report.is_sound() && report.to_string().contains(&name), "{report}");
        let read = plain(&fs).open().and_then(|db| db.iter().collect::<Result<Vec<_>>>());
        let says = read.map(|_| ()).expect_err(&name).to_string();
        assert!(says.contains(&name) && says.contains("it is a different"), "{says}");
        count += 1;
    }
    assert_eq!(count, 2);
}
