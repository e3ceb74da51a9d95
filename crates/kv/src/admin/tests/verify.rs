use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, MemFs, OpenOptions, Rng, SeededRng};

use super::*;
use crate::file::TableMeta;
use crate::kind::Kind;
use crate::table::{TableOptions, TableWriter};
use crate::version::{FileName, KeyspaceId, NewKeyspace, NewTable, VersionEdit, VersionSet};
use crate::{IngestOptions, TableBuilder, verify_in};

/// Makes a store with several levels, an ingested table, two keyspaces, tombstones and a log.
fn filled(fs: &Arc<dyn Fs>) -> Db {
    let db = open(fs);
    fill(&db, 0..600, 1);
    db.compact_range(..).unwrap();
    fill(&db, 200..300, 2);
    db.delete_range(key(220), key(240)).unwrap();
    db.flush().unwrap();
    let mut table = TableBuilder::create_in(fs, "/t", &small()).unwrap();
    (290..310).for_each(|number| table.put(key(number), value(number, 3)).unwrap());
    table.finish().unwrap();
    db.ingest(&["/t"], &IngestOptions::default()).unwrap();
    let other = db.create_keyspace("other", small()).unwrap();
    fill(&other, 0..50, 4);
    other.flush().unwrap();
    fill(&db, 250..260, 5);
    db.sync().unwrap();
    db
}

fn flip(fs: &Arc<dyn Fs>, path: &Path, at: u64) {
    let file = fs.open(path, OpenOptions::write()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

/// Goal: a sound store verifies as sound, open and closed, and the report counts everything in it.
#[test]
fn sound() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = filled(&fs);
    let report = db.verify().unwrap();
    assert!(report.is_sound() && report.strays.is_empty(), "{report}");
    let count: usize =
        db.keyspaces().iter().map(|keyspace| keyspace.state.view.load().version.tables().count()).sum();
    assert_eq!(report.tables, count);
    assert!(report.log_records >= 10, "{report}");
    drop(db);
    let closed = verify_in(&fs, STORE).unwrap();
    assert_eq!((closed.tables, closed.entries, closed.bytes), (report.tables, report.entries, report.bytes));
    assert!(closed.is_sound() && closed.log_records == report.log_records, "{closed}");
    assert_eq!(verify_in(&fs, "/nothing").unwrap_err().kind(), ErrorKind::NotFound);
}

/// Goal: the report lists all damage, not only the first, and distinguishes strays from it.
/// Method: flip two tables, remove a third, add an unknown file.
#[test]
fn all_damage() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = filled(&fs);
    let tables = files(&fs, STORE, ".table");
    flip(&fs, &tables[0], 30);
    flip(&fs, &tables[1], fs.metadata(&tables[1]).unwrap().len - 3);
    fs.remove(&tables[2]).unwrap();
    let stray = Path::new("/store/900000.table");
    fs.open(stray, OpenOptions::create()).unwrap();
    for report in [db.verify().unwrap(), verify_in(&fs, STORE).unwrap()] {
        let found: Vec<_> = report.damage.iter().map(|damage| damage.file.clone()).collect();
        assert_eq!(found, tables[..3], "{report}");
        assert!(report.damage.iter().all(|damage| damage.error.kind() == ErrorKind::Corruption));
        assert_eq!(report.strays, [stray]);
    }
}

/// Goal: an open store and a closed one both detect damaged and missing blob files.
/// Method: values in blob files of two flushes; one is flipped in the middle, the other removed.
#[test]
fn blob_files() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = KeyspaceOptions { blob_bytes_min: Some(100), ..small() };
    let db = builder(&fs).default_keyspace(options).open().unwrap();
    for part in 0..2u8 {
        (0..20u8).for_each(|at| db.put([part, at], [at; 500]).unwrap());
        db.flush().unwrap();
    }
    let sound = db.verify().unwrap();
    assert!(sound.is_sound() && sound.blobs == 2, "{sound}");
    let blobs = files(&fs, STORE, ".blob");
    flip(&fs, &blobs[0], fs.metadata(&blobs[0]).unwrap().len / 2);
    fs.remove(&blobs[1]).unwrap();
    for report in [db.verify().unwrap(), verify_in(&fs, STORE).unwrap()] {
        let found: Vec<_> = report.damage.iter().map(|damage| damage.file.clone()).collect();
        assert_eq!(found, blobs, "{report}");
        assert!(report.damage.iter().all(|damage| damage.error.kind() == ErrorKind::Corruption));
    }
}

/// Goal: a flipped bit anywhere in a table, in the manifest or in CURRENT is detected.
/// Method: random offsets in each.
#[test]
fn any_bit() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    drop(filled(&fs));
    let mut rng = SeededRng::new(4);
    let mut paths = files(&fs, STORE, ".table");
    paths.extend(
        fs.read_dir(Path::new(STORE))
            .unwrap()
            .into_iter()
            .filter(|path| matches!(FileName::parse(path), Some(FileName::Manifest(_) | FileName::Current))),
    );
    for path in paths {
        for _ in 0..8 {
            let at = rng.below(fs.metadata(&path).unwrap().len);
            // The last seal of a manifest is written without a sync, so its loss is not damage.
            let seal = 8 * u64::from(path.to_string_lossy().contains("MANIFEST"));
            if at + seal >= fs.metadata(&path).unwrap().len {
                continue;
            }
            flip(&fs, &path, at);
            let report = verify_in(&fs, STORE).unwrap();
            assert!(!report.is_sound(), "{} at {at}", path.display());
            flip(&fs, &path, at);
        }
    }
    assert!(verify_in(&fs, STORE).unwrap().is_sound());
}

/// Goal: an older version in front of a newer one is detected.
/// Method: a store of two sound tables in the wrong order.
#[test]
fn wrong_order() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let dir = Path::new(STORE);
    fs.create_dir_all(dir).unwrap();
    let table = |number: u64, seqno: u64| -> TableMeta {
        let file = fs.open(&FileName::Table(number).path(dir), OpenOptions::create_new()).unwrap();
        let mut writer = TableWriter::new(Arc::from(file), number, TableOptions::default()).unwrap();
        writer.add(b"a", seqno + 100, Kind::Put, b"v").unwrap();
        writer.add(b"k", seqno, Kind::Put, b"v").unwrap();
        writer.finish().unwrap()
    };
    let metas = [table(1, 5), table(2, 6)];
    for (levels, sound) in [([0, 1], false), ([1, 0], true)] {
        let mut edit = VersionEdit { next_file: Some(9), last_seqno: Some(200), ..VersionEdit::default() };
        let options = crate::db::stored_options::StoredOptions::default().encode();
        edit.created.push(NewKeyspace { id: KeyspaceId(0), name: "default".to_owned(), options });
        let added = metas.iter().zip(levels);
        edit.keyspace(KeyspaceId(0)).added =
            added.map(|(meta, level)| NewTable { level, run: 0, meta: meta.clone() }).collect();
        VersionSet::found(&fs, dir, 1, &edit).unwrap();
        let report = verify_in(&fs, STORE).unwrap();
        assert_eq!(report.is_sound(), sound, "{report}");
        assert_eq!(report.damage.len(), usize::from(!sound));
    }
}
