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
use crate::{Background, Db, KeyspaceOptions};

/// Installs a table whose one entry, `key`, has its value in a blob file; the file itself only where that is asked for.
fn add_blob(inner: &Inner, key: &str, value: &[u8], with_file: bool) {
    let [number, table] = std::array::from_fn(|_| inner.versions.new_file_number());
    let create = |name: FileName| inner.fs.open(&name.path(&inner.path), OpenOptions::create_new()).unwrap();
    let mut edit = VersionEdit::default();
    let change = edit.keyspace(DEFAULT);
    let mut blob = BlobWriter::new(Arc::from(create(FileName::Blob(number))), number).unwrap();
    let mut reference = Vec::new();
    blob.add(value).unwrap().encode(&mut reference);
    let meta = blob.finish().unwrap();
    if with_file {
        change.blobs_added.push(meta);
    } else {
        inner.remove_blobs(&[number]);
    }
    let file = Arc::from(create(FileName::Table(table)));
    let mut writer = TableWriter::new(file, table, TableOptions::default()).unwrap();
    writer.add(key.as_bytes(), 1, Kind::Blob, &reference).unwrap();
    writer.note_blob(number, value.len() as u64);
    change.added.push(NewTable { level: 0, run: table, meta: writer.finish().unwrap() });
    inner.fs.sync_dir(&inner.path).unwrap();
    inner.install(&inner.keyspace(DEFAULT).unwrap(), edit, &[]).unwrap();
}

/// Goal: empty values that an earlier version has put into blob files are there, also where it has deleted the file under them,
/// and come back into the tables. Method: such a table by hand, with and without its file; another key is compacted with it.
#[test]
fn empty_values_of_earlier_versions() {
    for with_file in [true, false] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let open = || Db::builder("/store").fs(Arc::clone(&fs)).background(Background::Inline).seed(1).open();
        let db = open().unwrap();
        db.put("other", "value").unwrap();
        db.flush().unwrap();
        add_blob(&db.core.inner, "empty", b"", with_file);
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

/// Goal: values with the time of their write behind them that an earlier version has put into blob files are read without it, and expire.
/// Method: such a table by hand, in a keyspace with a time to live; a clock that the test moves.
#[test]
fn values_with_a_time_of_earlier_versions() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).clock(Arc::clone(&clock) as _).seed(1);
    let options = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..KeyspaceOptions::default() };
    let db = builder.background(Background::Inline).default_keyspace(options).open().unwrap();
    db.put("other", "value").unwrap();
    add_blob(&db.core.inner, "long", &ttl::stamp(&[b'v'; 2000], 1_000_000), true);
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
