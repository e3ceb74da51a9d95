//! Blob files as written by earlier versions.
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

/// Installs a table whose values are in a blob file. Its entries are in key order and have the
/// number of the last write. The blob file itself is kept only if `with_file`.
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

/// Goal: empty values that an earlier version put into blob files can be read, even if it has
/// deleted their file, and move back into tables. Method: such a table made by hand, with and
/// without its file, which is compacted together with another key.
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

/// Goal: time-stamped values that an earlier version put into blob files are read without the
/// stamp, and expire.
/// Method: such a table made by hand in a keyspace with a TTL, and a clock that the test advances.
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

/// Opens a store in `fs` whose default keyspace has a TTL of one minute.
fn open_expiring(fs: &Arc<dyn Fs>, clock: &Arc<ManualClock>) -> Db {
    let options = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::clone(fs)).clock(Arc::clone(clock) as _).seed(1);
    builder.background(Background::Inline).default_keyspace(options).open().unwrap()
}

/// Returns the number of blob files in the directory, the number of entries in tables, and the
/// earliest expiry of the tables.
fn blobs_and_entries(fs: &Arc<dyn Fs>, db: &Db) -> (usize, u64, u64) {
    let names = fs.read_dir("/store".as_ref()).unwrap();
    let blobs = names.iter().filter(|name| name.extension().is_some_and(|it| it == "blob")).count();
    let view = db.core.inner.keyspace(DEFAULT).unwrap().view.load_full();
    let tables = || view.version.tables().map(|(_, table)| &table.meta);
    let expires = tables().map(|meta| meta.expires_secs).min();
    (blobs, tables().map(|meta| meta.entries).sum(), expires.unwrap_or(u64::MAX))
}

/// Goal: expiring values do not stay in a blob file of an earlier version. Expired values are
/// dropped, the others move back into tables that record their expiry, and the file is removed. No
/// request is needed for that, and a snapshot does not prevent it. Method: such a table made by
/// hand, some of whose values have expired; reopening the store or the next flush starts the move.
/// Then the remaining values expire.
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

/// Goal: such a value also moves back from below operands that cannot be merged, since a keyspace
/// with a TTL has no merge operator. Otherwise its file would be collected over and over. Method: a
/// batch with an operand over the value; reopening the store terminates.
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
