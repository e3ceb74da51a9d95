//! Shared parts of the memtable tests: the model, and keys that stress prefixes and heads.

mod concurrent;
mod model;
mod parts;
#[cfg(cairn_shuttle)]
mod shuttle;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use cairn_vfs::{Rng, SeededRng};

use super::*;
use crate::cursor::Cursor;

/// The position of an entry in the order of the store.
type Place = (Vec<u8>, Reverse<Seqno>);

/// The expected content of a memtable.
#[derive(Debug, Clone, Default)]
struct Model(BTreeMap<Place, (Kind, Vec<u8>)>);

/// An entry in the form that tests compare.
type Shown = (Vec<u8>, Seqno, Kind, Vec<u8>);

impl Model {
    fn insert(&mut self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        assert!(
            self.0.insert((key.to_vec(), Reverse(seqno)), (kind, value.to_vec())).is_none(),
            "one entry twice"
        );
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = Shown> {
        self.0.iter().map(show)
    }

    /// Returns the first entry at or after a position.
    fn from(&self, key: &[u8], seqno: Seqno) -> Option<Shown> {
        self.0.range((key.to_vec(), Reverse(seqno))..).next().map(show)
    }

    /// Returns the last entry whose key is less than `key`, or less than or equal to it if
    /// `inclusive`.
    fn back_from(&self, key: &[u8], inclusive: bool) -> Option<Shown> {
        let end = if inclusive { (key.to_vec(), Reverse(0)) } else { (key.to_vec(), Reverse(Seqno::MAX)) };
        let end = if inclusive { Bound::Included(end) } else { Bound::Excluded(end) };
        self.0.range((Bound::Unbounded, end)).next_back().map(show)
    }

    fn versions(&self, key: &[u8], at: Seqno) -> Vec<(Seqno, Kind, Vec<u8>)> {
        let range = (key.to_vec(), Reverse(at))..=(key.to_vec(), Reverse(0));
        self.0.range(range).map(|((_, seqno), (kind, value))| (seqno.0, *kind, value.clone())).collect()
    }
}

fn show(((key, seqno), (kind, value)): (&Place, &(Kind, Vec<u8>))) -> Shown {
    (key.clone(), seqno.0, *kind, value.clone())
}

fn shown(cursor: &MemCursor) -> Option<Shown> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.seqno(), cursor.kind(), cursor.value().to_vec()))
}

/// Returns all entries from the first to the last.
fn forwards(cursor: &mut MemCursor) -> Vec<Shown> {
    cursor.seek_first().unwrap();
    let mut all = Vec::new();
    while let Some(entry) = shown(cursor) {
        all.push(entry);
        cursor.next().unwrap();
    }
    all
}

/// Returns all entries from the last to the first.
fn backwards(cursor: &mut MemCursor) -> Vec<Shown> {
    cursor.seek_last().unwrap();
    let mut all = Vec::new();
    while let Some(entry) = shown(cursor) {
        all.push(entry);
        cursor.prev().unwrap();
    }
    all
}

fn versions(memtable: &Memtable, key: &[u8], at: Seqno) -> Vec<(Seqno, Kind, Vec<u8>)> {
    memtable.versions(key, at).map(|version| (version.seqno, version.kind, version.value.to_vec())).collect()
}

/// Checks with scans in both directions and with the counters that `memtable` holds exactly the
/// entries of `model`.
fn check_content(memtable: &Arc<Memtable>, model: &Model) {
    let mut cursor = memtable.cursor();
    assert!(!cursor.valid());
    assert!(forwards(&mut cursor).into_iter().eq(model.all()), "forwards");
    assert!(backwards(&mut cursor).into_iter().eq(model.all().rev()), "backwards");
    assert_eq!(memtable.entries(), model.0.len() as u64);
    assert_eq!(memtable.tombstones(), model.all().filter(|entry| entry.2 == Kind::Delete).count() as u64);
    assert_eq!(
        memtable.raw_bytes(),
        model.all().map(|entry| (entry.0.len() + entry.3.len()) as u64).sum::<u64>()
    );
    let seqnos = || model.all().map(|entry| entry.1);
    assert_eq!(memtable.seqnos(), seqnos().min().zip(seqnos().max()));
    assert_eq!(memtable.is_empty(), model.0.is_empty());
}

/// Checks lookups and seeks at `key` as of `at`, and single moves from there.
fn check_at(memtable: &Memtable, cursor: &mut MemCursor, model: &Model, key: &[u8], at: Seqno) {
    assert_eq!(versions(memtable, key, at), model.versions(key, at), "{key:?} at {at}");
    let neighbours = |entry: &Option<Shown>| {
        let place = entry.as_ref().map(|(key, seqno, ..)| (key.clone(), Reverse(*seqno)));
        let place = place.as_ref();
        let next = place
            .and_then(|place| model.0.range((Bound::Excluded(place), Bound::Unbounded)).next().map(show));
        (next, place.and_then(|place| model.0.range(..place).next_back().map(show)))
    };
    type Seek<'a> = &'a dyn Fn(&mut MemCursor);
    let seeks: [(Seek<'_>, Option<Shown>); 3] = [
        (&|cursor| cursor.seek(key, at).unwrap(), model.from(key, at)),
        (&|cursor| cursor.seek_back(key, true).unwrap(), model.back_from(key, true)),
        (&|cursor| cursor.seek_back(key, false).unwrap(), model.back_from(key, false)),
    ];
    for (number, (seek, expected)) in seeks.into_iter().enumerate() {
        let (next, prev) = neighbours(&expected);
        seek(cursor);
        assert_eq!(shown(cursor), expected, "seek {number} to {key:?} at {at}");
        if cursor.valid() {
            cursor.next().unwrap();
            assert_eq!(shown(cursor), next, "seek {number} to {key:?} at {at}, then next");
            seek(cursor);
            cursor.prev().unwrap();
            assert_eq!(shown(cursor), prev, "seek {number} to {key:?} at {at}, then prev");
        }
    }
}

/// Returns a key that shares up to 40 bytes with others and then differs early, late, in length, in
/// zero bytes or not at all.
fn hard_key(rng: &mut SeededRng) -> Vec<u8> {
    let mut key = vec![b"aab"[rng.below(3) as usize]; rng.below(41) as usize];
    for _ in 0..rng.below(5) {
        key.push([0, 0, 1, b'a', b'z', 255][rng.below(6) as usize]);
    }
    if rng.chance(0.1) {
        let len = rng.below(300) as usize;
        key.resize(key.len().max(len), [0, b'a', 255][rng.below(3) as usize]);
        key.extend((0..rng.below(3)).map(|_| rng.next_u64() as u8));
    }
    key
}

fn kind(rng: &mut SeededRng) -> Kind {
    [Kind::Delete, Kind::Put, Kind::Merge, Kind::Blob][rng.below(4) as usize]
}

fn shuffle<T>(list: &mut [T], rng: &mut SeededRng) {
    for at in (1..list.len()).rev() {
        list.swap(at, rng.below(at as u64 + 1) as usize);
    }
}
