//! Tests of invalid edits.

use super::*;
use crate::version::names::FileName;

fn bytes_of(fs: &Arc<dyn Fs>, set: &VersionSet) -> Vec<u8> {
    let path = FileName::Manifest(set.manifest_number().unwrap()).path(dir());
    fs.open(&path, cairn_vfs::OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Goal: an edit that breaks an invariant is refused as an internal error, changes neither file nor
/// state, and the set remains usable.
/// Method: one bad edit for each invariant, on a store with a level of two tables, a blob file and
/// two keyspaces.
#[test]
fn bad_edits_are_refused() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let [a, b, c, d, blob] = std::array::from_fn(|_| set.new_file_number());
    let mut edit =
        add(vec![(1, 0, table(a, "a", "f")), (1, 0, table(b, "g", "k")), (0, c, table(c, "m", "n"))]);
    let meta = BlobMeta { number: blob, bytes: 10, values: 1, value_bytes: 10, checksum: 0, footer: 0 };
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
    let mut bad_seqnos = table(d, "x", "y");
    bad_seqnos.seqnos = (2, 1);
    let mut bad_tombstones = table(d, "x", "y");
    bad_tombstones.tombstones = 11;
    let mut bad_blobs = table(d, "x", "y");
    bad_blobs.blobs = vec![(2, 1), (1, 1)];
    let unknown = VersionEdit { dropped: vec![KeyspaceId(9)], ..VersionEdit::default() };
    let too_high = VersionEdit { last_seqno: Some(u64::MAX), ..VersionEdit::default() };

    let cases = [
        ("overlap", add(vec![(1, 0, table(d, "e", "ea"))])),
        ("same bound", add(vec![(1, 0, table(d, "k", "l"))])),
        ("upside down", add(vec![(2, 0, table(d, "y", "x"))])),
        ("seqnos", add(vec![(2, 0, bad_seqnos)])),
        ("tombstones", add(vec![(2, 0, bad_tombstones)])),
        ("blobs of a table", add(vec![(2, 0, bad_blobs)])),
        ("file twice", add(vec![(3, 0, table(a, "x", "y"))])),
        ("file twice in the edit", add(vec![(3, 0, table(d, "x", "y")), (4, 0, table(d, "x", "y"))])),
        ("a blob's number", add(vec![(3, 0, table(blob, "x", "y"))])),
        ("other keyspace's file", elsewhere),
        ("number not drawn", add(vec![(2, 0, table(1 << 40, "x", "y"))])),
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
        assert!(matches!(refused, Err(Error::Bug(_))), "{name}: {refused:?}");
        assert!(bytes_of(&fs, &set) == before && set.summary() == state, "{name}");
    }
    apply(&set, &add(vec![(1, 0, table(d, "ka", "l"))])).unwrap();
}

/// Goal: the start of replay never moves back.
/// Method: a lower position after a higher one, and a restart.
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

/// Goal: tables may touch where a range tombstone was cut, and only there.
/// Method: with and without tombstones.
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

/// Goal: keyspace ids are not reused, not even after a rewrite.
/// Method: drop the last one, reopen, create.
#[test]
fn keyspace_ids_are_used_once() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    apply(&set, &create(1, "a")).unwrap();
    apply(&set, &VersionEdit { dropped: vec![KeyspaceId(1)], ..VersionEdit::default() }).unwrap();
    drop(set);
    let set = VersionSet::open(&fs, dir(), None).unwrap();
    assert_eq!(set.next_keyspace_id(), KeyspaceId(2));
    assert!(apply(&set, &create(1, "a")).is_err());
    apply(&set, &create(2, "a")).unwrap();
}

/// Goal: an edit that puts a table above a newer one that it overlaps is refused, and an edit that
/// keeps the order is not.
/// Method: a tree with two runs in level 0, three in level 1 and one in level 3; valid compactions
/// of neighbours, and each way to get them wrong; the message must name both tables.
#[test]
fn the_order_of_tables_is_kept() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let [base, old, middle, young, first, second, new, other] =
        std::array::from_fn(|_| set.new_file_number());
    for (level, number) in [(3, base), (1, old), (1, middle), (1, young), (0, first), (0, second)] {
        let run = if level == 3 { 0 } else { number };
        apply(&set, &add(vec![(level, run, table(number, "c", "m"))])).unwrap();
    }
    let merge = |inputs: &[(usize, u64)], level: usize, run: u64, (smallest, largest): (&str, &str)| {
        let mut edit = add(vec![(level, run, table(new, smallest, largest))]);
        let removed = inputs.iter().map(|&(level, number)| OldTable { level, number });
        edit.keyspace(KeyspaceId(0)).removed = removed.collect();
        edit
    };
    let whole = ("c", "m");
    let moved = |level: usize, number: u64, to: usize, run: u64| {
        let mut edit = add(vec![(to, run, table(number, "c", "m"))]);
        edit.keyspace(KeyspaceId(0)).removed = vec![OldTable { level, number }];
        edit
    };
    let flushed = |level: usize, run: u64, low: u64| {
        add(vec![(level, run, TableMeta { seqnos: (low, 1000), ..table(new, "a", "d") })])
    };
    let pair = |above: (usize, u64, u64), below: (usize, u64, u64)| {
        let meta = |number, seqno| TableMeta { seqnos: (seqno, seqno), ..table(number, "x", "z") };
        add(vec![(above.0, above.1, meta(new, above.2)), (below.0, below.1, meta(other, below.2))])
    };
    let wrong = [
        ("what the issue did", merge(&[(1, old), (1, middle)], 0, middle, whole), (new, young)),
        ("a run of level 0 passes one", merge(&[(0, first)], 0, second + 100, whole), (new, second)),
        ("past an older one", moved(1, middle, 2, 0), (old, middle)),
        ("past the last", moved(1, old, 4, 0), (base, old)),
        ("up", moved(3, base, 0, 1), (base, young)),
        ("with one between left out", merge(&[(1, young), (1, old)], 1, young, whole), (new, middle)),
        ("and below it", merge(&[(1, young), (1, old)], 1, old, whole), (middle, new)),
        ("a flush below level 0", flushed(2, 0, 500), (second, new)),
        ("a flush below a run", flushed(0, 1, 500), (second, new)),
        ("two of one edit", pair((0, 900, 5), (1, 1, 9)), (new, other)),
    ];
    for (name, edit, (above, newer)) in wrong {
        let text = apply(&set, &edit).expect_err(name).to_string();
        let what = format!("table {above} would be above table {newer}, which is newer");
        assert!(text.contains(&what), "{name}: {text}");
    }
    let right = [
        ("neighbours", merge(&[(1, old), (1, middle)], 1, middle, whole)),
        ("into the gap", merge(&[(1, old), (1, middle), (1, young)], 2, 0, whole)),
        ("the last ones down", moved(1, old, 2, 0)),
        ("over two levels", merge(&[(0, first), (1, young)], 1, young, whole)),
        ("up to the next newer one", moved(1, young, 0, 1)),
        (
            "everything",
            merge(&[(0, second), (0, first), (1, young), (1, middle), (1, old), (3, base)], 6, 0, whole),
        ),
        ("nothing else has its keys", add(vec![(6, 0, table(new, "n", "z"))])),
        ("a flush", flushed(0, 1 << 20, 500)),
        ("two of one edit", pair((0, 900, 9), (1, 1, 5))),
    ];
    let image = set.summary();
    for (name, edit) in right {
        let fs = memory();
        let next_file = Some(1 << 30);
        let copy =
            VersionSet::create(&fs, dir(), STORE, &VersionEdit { next_file, ..image.clone() }).unwrap();
        apply(&copy, &edit).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
