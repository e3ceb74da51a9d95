//! Edits that do not fit.

use super::*;
use crate::version::names::FileName;

fn bytes_of(fs: &Arc<dyn Fs>, set: &VersionSet) -> Vec<u8> {
    let path = FileName::Manifest(set.manifest_number().unwrap()).path(dir());
    fs.open(&path, cairn_vfs::OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Goal: an edit that breaks an invariant is refused as corruption, changes neither file nor state, and the set goes on.
/// Method: one bad edit for each invariant, on a store with a level of two tables, a blob file and two keyspaces.
#[test]
fn bad_edits_are_refused() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let [a, b, c, d, blob] = std::array::from_fn(|_| set.new_file_number());
    let mut edit =
        add(vec![(1, 0, table(a, "a", "f")), (1, 0, table(b, "g", "k")), (0, c, table(c, "a", "z"))]);
    let meta = BlobMeta { number: blob, bytes: 10, values: 1, value_bytes: 10, checksum: 0 };
    edit.keyspace(KeyspaceId(0)).blobs_added.push(meta.clone());
    edit.keyspace(KeyspaceId(0)).log_start = Some(100);
    apply(&set, &edit).unwrap();
    apply(&set, &create(1, "second")).unwrap();

    let keyspace = |change: &dyn Fn(&mut KeyspaceEdit)| {
        let mut edit = VersionEdit::default();
        change(edit.keyspace(KeyspaceId(0)));
        edit
    };
    let remove = |level, number| keyspace(&|edit| edit.removed.push(OldTable { level, number }));
    let mut elsewhere = VersionEdit::default();
    elsewhere.keyspace(KeyspaceId(1)).added.push(NewTable { level: 0, run: 1, meta: table(a, "a", "f") });
    let mut changed_move = remove(1, a);
    changed_move.keyspace(KeyspaceId(0)).added.push(NewTable { level: 2, run: 0, meta: table(a, "a", "e") });
    let mut twice = remove(1, a);
    twice.keyspace(KeyspaceId(0)).removed.push(OldTable { level: 1, number: a });
    let mut bad_seqnos = table(d, "a", "b");
    bad_seqnos.seqnos = (2, 1);
    let mut bad_tombstones = table(d, "a", "b");
    bad_tombstones.tombstones = 11;
    let mut bad_blobs = table(d, "a", "b");
    bad_blobs.blobs = vec![(2, 1), (1, 1)];
    let unknown = VersionEdit { dropped: vec![KeyspaceId(9)], ..VersionEdit::default() };
    let too_high = VersionEdit { last_seqno: Some(u64::MAX), ..VersionEdit::default() };

    let cases = [
        ("overlap", add(vec![(1, 0, table(d, "e", "ea"))])),
        ("same bound", add(vec![(1, 0, table(d, "k", "l"))])),
        ("upside down", add(vec![(2, 0, table(d, "b", "a"))])),
        ("seqnos", add(vec![(2, 0, bad_seqnos)])),
        ("tombstones", add(vec![(2, 0, bad_tombstones)])),
        ("blobs of a table", add(vec![(2, 0, bad_blobs)])),
        ("file twice", add(vec![(3, 0, table(a, "a", "b"))])),
        ("file twice in the edit", add(vec![(3, 0, table(d, "a", "b")), (4, 0, table(d, "a", "b"))])),
        ("a blob's number", add(vec![(3, 0, table(blob, "a", "b"))])),
        ("other keyspace's file", elsewhere),
        ("number not drawn", add(vec![(2, 0, table(1 << 40, "a", "b"))])),
        ("not there", remove(1, d)),
        ("wrong level", remove(2, a)),
        ("removed twice", twice),
        ("changed while moved", changed_move),
        ("blob twice", keyspace(&|edit| edit.blobs_added.push(meta.clone()))),
        ("blob not there", keyspace(&|edit| edit.blobs_removed.push(d))),
        ("garbage of nothing", keyspace(&|edit| edit.blob_garbage.push((d, 1)))),
        ("more garbage than values", keyspace(&|edit| edit.blob_garbage.push((blob, 11)))),
        ("id used", create(1, "third")),
        ("name taken", create(2, "second")),
        ("no name", create(2, "")),
        ("no such keyspace", unknown),
        ("sequence number", too_high),
    ];
    let (before, state) = (bytes_of(&fs, &set), set.summary());
    for (name, edit) in cases {
        let refused = apply(&set, &edit);
        assert!(matches!(refused, Err(Error::Corruption { .. })), "{name}: {refused:?}");
        assert!(bytes_of(&fs, &set) == before && set.summary() == state, "{name}");
    }
    apply(&set, &add(vec![(1, 0, table(d, "ka", "l"))])).unwrap();
}

/// Goal: the start of replay never moves back. Method: a lower position after a higher one, and a restart.
#[test]
fn log_start_moves_forward() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    for (position, expected) in [(100, 100), (99, 100), (101, 101)] {
        let mut edit = VersionEdit::default();
        edit.keyspace(KeyspaceId(0)).log_start = Some(position);
        apply(&set, &edit).unwrap();
        assert_eq!(set.keyspaces()[0].1.log_start, expected);
        assert_eq!(VersionSet::open_read_only(&fs, dir()).unwrap().keyspaces()[0].1.log_start, expected);
    }
}

/// Goal: tables may touch where a range tombstone was cut, and only there. Method: with and without tombstones.
#[test]
fn touching_tables() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let [a, b] = std::array::from_fn(|_| set.new_file_number());
    let mut cut = table(a, "a", "f");
    assert!(apply(&set, &add(vec![(1, 0, cut.clone()), (1, 0, table(b, "f", "k"))])).is_err());
    cut.tombstones = 1;
    apply(&set, &add(vec![(1, 0, cut), (1, 0, table(b, "f", "k"))])).unwrap();
    let version = set.current(KeyspaceId(0)).unwrap();
    assert_eq!(version.levels()[1].runs()[0].find(b"f").map(|table| table.number()), Some(b));
}

/// Goal: keyspace ids are not used again, also not after a rewrite. Method: drop the last one, reopen, create.
#[test]
fn keyspace_ids_are_used_once() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    apply(&set, &create(1, "a")).unwrap();
    apply(&set, &VersionEdit { dropped: vec![KeyspaceId(1)], ..VersionEdit::default() }).unwrap();
    drop(set);
    let set = VersionSet::open(&fs, dir()).unwrap();
    assert_eq!(set.next_keyspace_id(), KeyspaceId(2));
    assert!(apply(&set, &create(1, "a")).is_err());
    apply(&set, &create(2, "a")).unwrap();
}
