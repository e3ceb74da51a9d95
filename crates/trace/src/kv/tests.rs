use std::path::Path;
use std::sync::Arc;

use std::time::Duration;

use cairn_codec::key_hash::KeyHash;
use cairn_vfs::{Fs, ManualClock, MemFs};

use super::*;
use crate::{KeyForm, Kind, Options, Sample, Trace};

/// Goal: each operation on a store becomes one record of the trace, and the store answers as
/// without recording. Method: one operation of each kind, over two keyspaces.
#[test]
fn a_program_is_recorded() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = Options { keys: KeyForm::Raw, ..Options::default() };
    let recorder = Recorder::create_in(&fs, Path::new("/t"), options).unwrap();
    let db = Db::builder("/store").fs(Arc::clone(&fs)).keyspace("other", Default::default()).open().unwrap();
    let db = TracedDb::new(db, Some(recorder.clone()));
    db.put("a", "1").unwrap();
    db.put("b", "22").unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(db.get("nothing").unwrap().is_none());
    let other = db.keyspace("other").unwrap();
    other.put("c", "333").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("d", "4").unwrap();
    batch.add(other.id(), Operation::Delete { key: b"c" }).unwrap();
    db.write(&batch).unwrap();
    assert_eq!(db.multi_get(&["a", "x"]).unwrap().len(), 2);
    assert_eq!(db.iter().count(), 3);
    assert_eq!(db.range("b"..).rev().take(2).count(), 2);
    let mut cursor = db.cursor().unwrap();
    cursor.seek("b").unwrap();
    cursor.next().unwrap();
    assert_eq!(cursor.key(), b"d");
    drop(cursor);
    let mut cursor = db.cursor_in("b".."c", None, &ReadOptions::default()).unwrap();
    cursor.seek_first().unwrap();
    drop(cursor);
    db.delete_range("a", "b").unwrap();
    db.delete("b").unwrap();
    db.flush().unwrap();
    recorder.finish().unwrap();

    let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
    let seen: Vec<(Kind, u32, bool, String)> = trace
        .events()
        .map(|event| event.unwrap())
        .map(|event| {
            (event.kind(), event.keyspace, event.joined, String::from_utf8_lossy(event.key).into_owned())
        })
        .collect();
    let expected = [
        (Kind::Put, 0, false, "a"),
        (Kind::Put, 0, false, "b"),
        (Kind::Get, 0, false, "a"),
        (Kind::Get, 0, false, "nothing"),
        (Kind::Put, 1, false, "c"),
        (Kind::Put, 0, false, "d"),
        (Kind::Delete, 1, true, "c"),
        (Kind::Get, 0, false, "a"),
        (Kind::Get, 0, true, "x"),
        (Kind::Scan, 0, false, ""),
        (Kind::Scan, 0, false, "d"),
        (Kind::Scan, 0, false, "b"),
        (Kind::Scan, 0, false, "b"),
        (Kind::DeleteRange, 0, false, "a"),
        (Kind::Delete, 0, false, "b"),
    ];
    assert_eq!(seen, expected.map(|(kind, keyspace, joined, key)| (kind, keyspace, joined, key.to_owned())));
    let scans: Vec<Detail<'_>> = trace
        .events()
        .map(|event| event.unwrap().detail)
        .filter(|detail| matches!(detail, Detail::Scan { .. }))
        .collect();
    assert_eq!(scans[0], Detail::Scan { entries: 3, backwards: false });
    assert_eq!(scans[1], Detail::Scan { entries: 2, backwards: true });
    assert_eq!(scans[2], Detail::Scan { entries: 2, backwards: false });
}

/// Goal: a scan that finds nothing is recorded like any other, and one that is never advanced is
/// not recorded. Method: ranges without entries, from either end, created in each way.
#[test]
fn empty_scans_are_recorded() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = Options { keys: KeyForm::Raw, ..Options::default() };
    let recorder = Recorder::create_in(&fs, Path::new("/t"), options).unwrap();
    let db = TracedDb::new(Db::builder("/store").fs(Arc::clone(&fs)).open().unwrap(), Some(recorder.clone()));
    assert_eq!(db.iter().count(), 0);
    db.put("m", "1").unwrap();
    assert_eq!(db.range("a".."b").count(), 0);
    assert_eq!(db.range("n"..).rev().count(), 0);
    assert!(db.prefix("x").next().is_none());
    drop(db.iter());
    assert_eq!(db.prefix("m").rev().count(), 1);
    recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
    let scans: Vec<(String, Detail<'_>)> = trace
        .events()
        .map(|event| event.unwrap())
        .filter(|event| event.kind() == Kind::Scan)
        .map(|event| (String::from_utf8_lossy(event.key).into_owned(), event.detail))
        .collect();
    let scan = |key: &str, entries, backwards| (key.to_owned(), Detail::Scan { entries, backwards });
    let mut expected = ["", "a", "n", "x"].map(|key| scan(key, 0, false)).to_vec();
    expected.push(scan("m", 1, true));
    assert_eq!(scans, expected);
}

/// Goal: without a recorder it is a store like any other.
#[test]
fn nothing_is_recorded_without_a_recorder() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = TracedDb::new(Db::builder("/store").fs(Arc::clone(&fs)).open().unwrap(), None);
    db.put("a", "1").unwrap();
    assert_eq!(db.iter().count(), 1);
    assert_eq!(AsRef::<Db>::as_ref(&db).keyspaces().len(), 1);
}

/// Goal: every method that reads or writes a keyspace is recorded. Method: those that take a
/// durability or a snapshot.
#[test]
fn all_ways_are_recorded() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = Options { keys: KeyForm::Raw, ..Options::default() };
    let recorder = Recorder::create_in(&fs, Path::new("/t"), options).unwrap();
    let keyspace =
        cairn_kv::KeyspaceOptions { merge_operator: Some(Arc::new(cairn_kv::AddU64)), ..Default::default() };
    let db = Db::builder("/store").fs(Arc::clone(&fs)).default_keyspace(keyspace).open().unwrap();
    let db = TracedDb::new(db, Some(recorder.clone()));
    let buffered = cairn_kv::Durability::Buffered;
    db.put_with("a", 1_u64.to_le_bytes(), buffered).unwrap();
    db.merge_with("a", 2_u64.to_le_bytes(), buffered).unwrap();
    let snapshot = db.as_ref().snapshot();
    assert!(db.get_at("a", &snapshot).unwrap().is_some());
    assert_eq!(db.multi_get_at(&["a", "b"], &snapshot).unwrap().len(), 2);
    assert_eq!(db.range_at("a".., &snapshot).count(), 1);
    db.delete_range_with("a", "b", buffered).unwrap();
    db.delete_with("a", buffered).unwrap();
    recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
    let kinds: Vec<Kind> = trace.events().map(|event| event.unwrap().kind()).collect();
    let expected = [
        Kind::Put,
        Kind::Merge,
        Kind::Get,
        Kind::Get,
        Kind::Get,
        Kind::Scan,
        Kind::DeleteRange,
        Kind::Delete,
    ];
    assert_eq!(kinds, expected);
}

/// Goal: the trace holds exactly those operations of a batch whose keys are in the sample, in
/// order.
/// Method: batches of all operation types, with keys of many lengths, in two keyspaces; the sample
/// is computed independently.
#[test]
fn batches_are_sampled() {
    const SEED: u64 = 11;
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options =
        Options { keys: KeyForm::Raw, sample: Sample::OneIn(3), hash_seed: Some(SEED), ..Options::default() };
    let recorder = Recorder::create_in(&fs, Path::new("/t"), options).unwrap();
    let keyspace =
        cairn_kv::KeyspaceOptions { merge_operator: Some(Arc::new(cairn_kv::AddU64)), ..Default::default() };
    let db = Db::builder("/store").fs(Arc::clone(&fs)).default_keyspace(keyspace.clone());
    let db = db.keyspace("other", keyspace).open().unwrap();
    let db = TracedDb::new(db, Some(recorder.clone()));
    let other = db.keyspace("other").unwrap().id();
    let mut expected = Vec::new();
    for round in 0..20_u64 {
        let mut batch = WriteBatch::new();
        let mut joined = false;
        for number in 0..100 {
            let mut key = (round * 100 + number).to_be_bytes().to_vec();
            // Ten keys at a time have the same length, as in real programs. The lengths cover all
            // code paths of the hash function.
            key.resize([8, 16, 17, 200, 12, 9, 300, 8, 128, 127][number as usize / 10], 7);
            key.rotate_left(4);
            key.drain(..if number / 10 == 7 { 1 + number as usize % 7 } else { 0 });
            let (id, value) = (if number % 25 == 24 { other } else { cairn_kv::KeyspaceId(0) }, [1; 8]);
            let (kind, operation) = match number % 23 {
                20 => (Kind::Delete, Operation::Delete { key: &key }),
                21 => (Kind::Merge, Operation::Merge { key: &key, operand: &value }),
                22 => (Kind::DeleteRange, Operation::DeleteRange { start: &key, end: &[255; 9] }),
                _ => (Kind::Put, Operation::Put { key: &key, value: &value[..number as usize % 2 * 8] }),
            };
            batch.add(id, operation).unwrap();
            if KeyHash::new(SEED).of(&key) <= crate::sample::threshold(3) {
                expected.push((kind, id.0, joined, key.clone()));
                joined = true;
            }
        }
        db.write(&batch).unwrap();
    }
    recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
    let seen: Vec<_> = trace
        .events()
        .map(|event| event.unwrap())
        .map(|event| (event.kind(), event.keyspace, event.joined, event.key.to_vec()))
        .collect();
    assert!((500..800).contains(&seen.len()), "{} of 2,000", seen.len());
    assert!(seen == expected, "another sample than that of one key in three");
}

/// Goal: each operation of a batch counts when the recorder measures a thread's speed. Method:
/// batches of ten operations in 20 us, for longer than the measurement takes. Not all keys can be
/// recorded at 2 us per operation; they could at 20 us.
#[test]
fn operations_of_batches_are_counted() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(ManualClock::new(Duration::ZERO));
    let recorder =
        Recorder::with_clock(&fs, Path::new("/t"), Options::default(), Arc::<ManualClock>::clone(&clock))
            .unwrap();
    let db = Db::builder("/store").fs(Arc::clone(&fs)).open().unwrap();
    let db = TracedDb::new(db, Some(recorder.clone()));
    for round in 0..4_000_u64 {
        let mut batch = WriteBatch::new();
        for number in 0..10 {
            batch.put((round * 10 + number).to_be_bytes(), [1; 8]).unwrap();
        }
        db.write(&batch).unwrap();
        clock.advance(Duration::from_micros(20));
    }
    assert!(recorder.finish().unwrap().sample > 1, "all keys are recorded");
}
