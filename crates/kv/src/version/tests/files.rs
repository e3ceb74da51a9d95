//! Tests of the lifetime of files.

use cairn_vfs::OpenOptions;

use super::*;
use crate::version::names::FileName;

fn touch(fs: &Arc<dyn Fs>, name: FileName) {
    fs.open(&name.path(dir()), OpenOptions::create()).unwrap();
}

/// Goal: a removed file is reported once, when the last version with it is gone and not before.
/// Method: hold versions across a removal and a move.
#[test]
fn files_die_with_their_last_version() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let [a, b, blob] = std::array::from_fn(|_| set.new_file_number());
    let mut edit = add(vec![(0, a, table(a, "a", "c")), (0, b, table(b, "a", "c"))]);
    let meta = BlobMeta { number: blob, bytes: 10, values: 1, value_bytes: 10, checksum: 0, footer: 0 };
    edit.keyspace(KeyspaceId(0)).blobs_added.push(meta);
    apply(&set, &edit).unwrap();
    let old = set.current(KeyspaceId(0)).unwrap();

    let mut moved = add(vec![(1, 0, table(b, "a", "c"))]);
    let change = moved.keyspace(KeyspaceId(0));
    change.removed = vec![OldTable { level: 0, number: a }, OldTable { level: 0, number: b }];
    change.blobs_removed.push(blob);
    apply(&set, &moved).unwrap();
    assert!(set.obsolete().is_empty(), "somebody still reads the old version");
    let clone = Arc::clone(&old);
    drop(old);
    assert!(set.obsolete().is_empty());
    drop(clone);
    assert!(!set.obsolete().is_empty());
    let mut names = set.obsolete().take();
    names.sort();
    assert_eq!(names, [FileName::Table(a), FileName::Blob(blob)], "the one that moved lives on");
    assert!(set.obsolete().is_empty() && set.obsolete().take().is_empty());

    apply(&set, &VersionEdit { dropped: vec![KeyspaceId(0)], ..VersionEdit::default() }).unwrap();
    assert_eq!(set.obsolete().take(), [FileName::Table(b)], "a dropped keyspace takes its files along");
}

/// Goal: a blob file is dead when all of it is garbage and no table refers to it any more, empty
/// values included.
/// Method: one file with an empty value and one with both kinds. Garbage is added, then the table
/// removed; before each step, the edit of that step is checked.
#[test]
fn dead_blob_files() {
    let set = new_store(&memory()).unwrap();
    let dead = |change: &KeyspaceEdit| set.current(KeyspaceId(0)).unwrap().dead_blobs(change);
    let nothing = KeyspaceEdit::default();
    let [a, empty, mixed] = std::array::from_fn(|_| set.new_file_number());
    let blobs = vec![(empty, 0), (mixed, 10)];
    let mut edit = add(vec![(0, a, TableMeta { blobs, ..table(a, "a", "c") })]);
    let meta =
        |number, value_bytes| BlobMeta { number, bytes: 50, values: 2, value_bytes, checksum: 0, footer: 0 };
    edit.keyspace(KeyspaceId(0)).blobs_added = vec![meta(empty, 0), meta(mixed, 10)];
    apply(&set, &edit).unwrap();
    assert_eq!(dead(&nothing), []);
    let removed = KeyspaceEdit { removed: vec![OldTable { level: 0, number: a }], ..nothing.clone() };
    assert_eq!(dead(&removed), [empty], "the other has bytes that are alive");
    let both = KeyspaceEdit { blob_garbage: vec![(mixed, 10)], ..removed.clone() };
    assert_eq!(dead(&both), [empty, mixed]);
    let new =
        NewTable { level: 1, run: 0, meta: TableMeta { blobs: vec![(mixed, 10)], ..table(9, "a", "c") } };
    let moved = KeyspaceEdit { added: vec![new], ..both };
    assert_eq!(dead(&moved), [empty], "the new table names it");
    let mut garbage = VersionEdit::default();
    garbage.keyspace(KeyspaceId(0)).blob_garbage = vec![(empty, 0), (mixed, 10)];
    apply(&set, &garbage).unwrap();
    assert_eq!(dead(&nothing), [], "an empty value may be alive");
    assert_eq!(dead(&removed), [empty, mixed]);
    apply(&set, &VersionEdit { keyspaces: [(KeyspaceId(0), removed)].into(), ..VersionEdit::default() })
        .unwrap();
    assert_eq!(dead(&nothing), [empty, mixed]);
}

/// Goal: closing a store deletes nothing.
/// Method: drop a set and its last version.
#[test]
fn closing_keeps_files() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let a = set.new_file_number();
    apply(&set, &add(vec![(0, a, table(a, "a", "c"))])).unwrap();
    let version = set.current(KeyspaceId(0)).unwrap();
    let obsolete = Arc::clone(set.obsolete());
    drop((set, version));
    assert!(obsolete.is_empty());
}

/// Goal: opening finds files left by a crash and missing files, and new files never get the number
/// of a leftover.
/// Method: files of each kind are added and removed by hand.
#[test]
fn strays() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let [a, b] = std::array::from_fn(|_| set.new_file_number());
    apply(&set, &add(vec![(0, a, table(a, "a", "c")), (0, b, table(b, "a", "c"))])).unwrap();
    touch(&fs, FileName::Table(a));
    drop(set);
    let strays =
        [FileName::Table(70), FileName::Blob(71), FileName::Manifest(69), FileName::CurrentTemporary];
    for name in strays {
        touch(&fs, name);
    }
    for other in ["LOCK", "notes.txt", "000001.wal"] {
        fs.open(&dir().join(other), OpenOptions::create()).unwrap();
    }
    let set = VersionSet::open(&fs, dir(), None).unwrap();
    let found = set.stray_files().unwrap();
    // The temporary file was replaced during the opening.
    let mut expected: Vec<_> = strays[..3].iter().map(|name| name.path(dir())).collect();
    expected.sort();
    assert_eq!(found.unreferenced, expected);
    assert_eq!(found.missing, [FileName::Table(b)]);
    assert!(set.new_file_number() > 72);
}

/// Goal: a store is not created over another one, nor over the remains of one.
/// Method: create where a store exists, and where only its tables exist.
#[test]
fn create_refuses() {
    let fs = memory();
    drop(new_store(&fs).unwrap());
    assert!(matches!(new_store(&fs), Err(Error::Invalid { .. })));
    fs.remove(&FileName::Current.path(dir())).unwrap();
    touch(&fs, FileName::Table(5));
    assert!(matches!(new_store(&fs), Err(Error::Corruption { .. })));
    fs.remove(&FileName::Table(5).path(dir())).unwrap();
    let set = new_store(&fs).unwrap();
    assert_eq!(set.stray_files().unwrap().unreferenced.len(), 1, "the first manifest");
    drop(set);
    fs.remove(&FileName::Current.path(dir())).unwrap();
    assert_eq!(VersionSet::open(&fs, dir(), None).unwrap_err().kind(), cairn_vfs::ErrorKind::NotFound);
}

/// Goal: a reader beside the writer sees a complete state, writes nothing and cannot write.
/// Method: read-only opens between edits, while the manifest is rewritten repeatedly.
#[test]
fn reading_beside_a_writer() {
    let fs = memory();
    let set = new_store(&fs).unwrap().rewrite_bytes(200);
    let mut edits = Edits::new(seed());
    let mut manifests = std::collections::BTreeSet::new();
    for _ in 0..60 {
        let edit = edits.next(&set);
        let mut installed = Vec::new();
        set.log_and_apply(edit.clone(), |id, version| installed.push((id, Arc::clone(version)))).unwrap();
        for (id, version) in installed {
            assert!(set.current(id).is_some_and(|current| Arc::ptr_eq(&current, &version)));
        }
        let files = fs.read_dir(dir()).unwrap();
        let reader = VersionSet::open_read_only(&fs, dir()).unwrap();
        assert_eq!((reader.summary(), reader.store_id()), (set.summary(), STORE));
        assert!(matches!(apply(&reader, &edit), Err(Error::Invalid { .. })));
        assert_eq!(fs.read_dir(dir()).unwrap(), files);
        manifests.insert(set.manifest_number());
    }
    assert!(manifests.len() > 5, "it was rewritten");
    assert_eq!(fs.read_dir(dir()).unwrap().len(), 2, "old manifests are removed");
}
