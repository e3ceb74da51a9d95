//! Blob files as earlier versions wrote them.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, ManualClock, MemFs, OpenOptions};

use crate::batch::DEFAULT;
use crate::blob::BlobWriter;
use crate::db::inner::Inner;
use crate::kind::Kind;
use crate::table::{TableOptions, TableWriter};
use crate::ttl;
use crate::version::{FileName, NewTable, VersionEdit};
use crate::{Background, Db, Error, KeyspaceOptions, Operation, WriteBatch};

/// Installs a table whose entries, in order of their keys and with the number of the last write,
/// have their values in a blob file; the file itself only where that is asked for.
fn add_blobs(inner: &Inner, entries: &[(&str, &[u8])], with_file: bool) {
    let [number, table] = std::array::from_fn(|_| inner.versions.new_file_number());
    let create = |name: FileName| inner.fs.open(&name.path(&inner.path), OpenOptions::create_new()).unwrap();
    let mut edit = VersionEdit::default();
    let change = edit.keyspace(DEFAULT);
    let mut blob = BlobWriter::new(Arc::from(create(FileName::Blob(number))), number).unwrap();
    let file = Arc::from(create(FileName::Table(table)));
    let mut writer = TableWriter::new(file, table, TableOptions::default()).unwrap();
    let mut reference = Vec::new();
    for (key, value) in entries {
        blob.add(value).unwrap().encode(&mut reference);
        writer.add(key.as_bytes(), inner.last_seqno(), Kind::Blob, &reference).unwrap();
        writer.note_blob(number, value.len() as u64);
    }
    let meta = blob.finish().unwrap();
    if with_file {
        change.blobs_added.push(meta);
    } else {
        inner.remove_blobs(&[number]);
    }
    change.added.push(NewTable { level: 0, run: table, meta: writer.finish().unwrap() });
    inner.fs.sync_dir(&inner.path).unwrap();
    inner.install(&inner.keyspace(DEFAULT).unwrap(), edit, &[]).unwrap();
}

/// Goal: empty values that an earlier version has put into blob files are there, also where it has
/// deleted the file under them, and come back into the tables. Method: such a table by hand, with
/// and without its file; another key is compacted with it.
#[test]
fn empty_values_of_earlier_versions() {
    for with_file in [true, false] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let open = || Db::builder("/store").fs(Arc::clone(&fs)).background(Background::Inline).seed(1).open();
        let db = open().unwrap();
        db.put("other", "value").unwrap();
        db.flush().unwrap();
        add_blobs(&db.core.inner, &[("empty", b"")], with_file);
        drop(db);
        let db = open().unwrap();
        for _ in 0..2 {
            assert_eq!(db.get("empty").unwrap().as_deref(), Some(&b""[..]), "{with_file}");
            assert_eq!(db.iter().count(), 2);
            db.compact_range(..).unwrap();
        }
        drop(db);
        let names = fs.read_dir("/store".as_ref()).unwrap();
        assert!(names.iter().all(|name| name.extension().is_none_or(|it| it != "blob")), "{names:?}");
        assert!(open().unwrap().verify().unwrap().is_sound());
    }
}

/// Goal: values with the time of their write behind them that an earlier version has put into blob
/// files are read without it, and expire.
/// Method: such a table by hand, in a keyspace with a time to live; a clock that the test moves.
#[test]
fn values_with_a_time_of_earlier_versions() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).clock(Arc::clone(&clock) as _).seed(1);
    let options = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..KeyspaceOptions::default() };
    let db = builder.background(Background::Inline).default_keyspace(options).open().unwrap();
    db.put("other", "value").unwrap();
    add_blobs(&db.core.inner, &[("long", &ttl::stamp(&[b'v'; 2000], 1_000_000))], true);
    for _ in 0..2 {
        assert_eq!(db.get("long").unwrap().unwrap().len(), 2000);
        assert_eq!(db.multi_get(&["long"]).unwrap()[0].as_ref().unwrap().len(), 2000);
        assert_eq!(db.iter().map(|pair| pair.unwrap().1.len()).collect::<Vec<_>>(), [2000, 5]);
        assert_eq!(db.iter().rev().map(|pair| pair.unwrap().1.len()).collect::<Vec<_>>(), [5, 2000]);
        db.compact_range(..).unwrap();
    }
    clock.advance(Duration::from_secs(59));
    db.put("other", "value").unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(db.get("long").unwrap(), None);
    assert_eq!((db.iter().count(), db.iter().rev().count()), (1, 1));
}

/// A store of such a keyspace in `fs`, whose entries live for a minute, and its clock.
fn open_expiring(fs: &Arc<dyn Fs>, clock: &Arc<ManualClock>) -> Db {
    let options = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::clone(fs)).clock(Arc::clone(clock) as _).seed(1);
    builder.background(Background::Inline).default_keyspace(options).open().unwrap()
}

/// Blob files in the directory, entries of tables, and when the first of those expires.
fn blobs_and_entries(fs: &Arc<dyn Fs>, db: &Db) -> (usize, u64, u64) {
    let names = fs.read_dir("/store".as_ref()).unwrap();
    let blobs = names.iter().filter(|name| name.extension().is_some_and(|it| it == "blob")).count();
    let view = db.core.inner.keyspace(DEFAULT).unwrap().view.load_full();
    let tables = || view.version.tables().map(|(_, table)| &table.meta);
    let expires = tables().map(|meta| meta.expires_secs).min();
    (blobs, tables().map(|meta| meta.entries).sum(), expires.unwrap_or(u64::MAX))
}

/// Goal: values that expire and are in a blob file of an earlier version do not stay there: what
/// has expired goes, the rest comes back into tables that say when it expires, and the file goes.
/// Nobody has to ask for it, and a snapshot does not keep it. Method: such a table by hand, of
/// values of which some have expired; the store is opened again, or the next flush begins it. Then
/// the rest expires.
#[test]
fn values_with_a_time_leave_blob_files() {
    for reopens in [true, false] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
        let mut db = open_expiring(&fs, &clock);
        db.put("below", "older, and what hides it has expired").unwrap();
        db.put("long", "older").unwrap();
        db.flush().unwrap();
        db.put("other", "value").unwrap();
        let [gone, alive] = [999_940, 999_990].map(|secs| ttl::stamp(&[b'v'; 2000], secs));
        add_blobs(&db.core.inner, &[("below", &gone), ("gone", &gone), ("long", &alive)], true);
        assert_eq!(blobs_and_entries(&fs, &db).0, 1);
        let mut snapshot = None;
        if reopens {
            drop(db);
            db = open_expiring(&fs, &clock);
        } else {
            snapshot = Some(db.snapshot());
            db.put("other", "value").unwrap();
            db.flush().unwrap();
        }
        let (blobs, _, expires) = blobs_and_entries(&fs, &db);
        assert_eq!((blobs, expires), (0, 999_990 + 60), "{reopens}");
        assert_eq!(db.stats().keyspaces[0].blob_bytes, 0);
        assert_eq!(db.get("long").unwrap().as_deref(), Some(&[b'v'; 2000][..]));
        let expected = [("long", vec![b'v'; 2000]), ("other", b"value".to_vec())];
        let expected = expected.map(|(key, value)| (key.as_bytes().to_vec(), value));
        assert_eq!(db.iter().map(Result::unwrap).collect::<Vec<_>>(), expected, "{reopens}");
        assert!(db.verify().unwrap().is_sound());
        drop(snapshot);
        db.compact_range(..).unwrap();
        assert_eq!(blobs_and_entries(&fs, &db).1, 2, "what has expired is no more than a key");
        assert!(db.stats().dropped.filtered >= 2, "{}", db.stats());
        clock.advance(Duration::from_secs(60));
        db.compact_range(..).unwrap();
        assert_eq!(blobs_and_entries(&fs, &db), (0, 0, u64::MAX));
    }
}

/// Goal: such a value comes back from below operands as well, which nobody can merge in a keyspace
/// whose entries expire; else its file would be collected again and again. Method: a batch with an
/// operand over it; the store is opened again, which ends.
#[test]
fn values_with_a_time_below_operands() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
    let db = open_expiring(&fs, &clock);
    db.put("other", "value").unwrap();
    add_blobs(&db.core.inner, &[("long", &ttl::stamp(&[b'v'; 2000], 1_000_000))], true);
    let mut batch = WriteBatch::new();
    batch.add(DEFAULT, Operation::Merge { key: b"long", operand: b"!" }).unwrap();
    db.write(&batch).unwrap();
    db.flush().unwrap();
    drop(db);
    let db = open_expiring(&fs, &clock);
    db.compact_range(..).unwrap();
    assert_eq!(blobs_and_entries(&fs, &db), (0, 3, 1_000_060));
    let refused = db.get("long").unwrap_err();
    assert!(matches!(refused, Error::NoMergeOperator { .. }), "{refused}");
}
