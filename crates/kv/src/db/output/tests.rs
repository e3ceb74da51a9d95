//! Blob files as earlier versions wrote them.
#![allow(clippy::unwrap_used)]

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, MemFs, OpenOptions};

use crate::batch::DEFAULT;
use crate::blob::BlobWriter;
use crate::db::inner::Inner;
use crate::kind::Kind;
use crate::table::{TableOptions, TableWriter};
use crate::version::{FileName, NewTable, VersionEdit};
use crate::{Background, Db};

/// Installs a table whose one entry, `empty`, has its empty value in a blob file; the file itself only where that is asked for.
fn add_empty_blob(inner: &Inner, with_file: bool) {
    let [number, table] = std::array::from_fn(|_| inner.versions.new_file_number());
    let create = |name: FileName| inner.fs.open(&name.path(&inner.path), OpenOptions::create_new()).unwrap();
    let mut edit = VersionEdit::default();
    let change = edit.keyspace(DEFAULT);
    let mut blob = BlobWriter::new(Arc::from(create(FileName::Blob(number))), number).unwrap();
    let mut reference = Vec::new();
    blob.add(b"").unwrap().encode(&mut reference);
    let meta = blob.finish().unwrap();
    if with_file {
        change.blobs_added.push(meta);
    } else {
        inner.remove_blobs(&[number]);
    }
    let file = Arc::from(create(FileName::Table(table)));
    let mut writer = TableWriter::new(file, table, TableOptions::default()).unwrap();
    writer.add(b"empty", 1, Kind::Blob, &reference).unwrap();
    writer.note_blob(number, 0);
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
        add_empty_blob(&db.core.inner, with_file);
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
