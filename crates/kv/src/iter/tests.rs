//! Compares the cursors of this module with sorted vectors and maps.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_vfs::sync::Arc;
use proptest::prelude::*;

use crate::Result;
use crate::compaction::stream::{Rules, Stream};
use crate::cursor::Cursor;
use crate::iter::merge::MergeCursor;
use crate::iter::testing::{Entry, VecCursor};
use crate::iter::visible::{BlobSource, Bounds, RangeTombstoneSource, ReadContext, VisibleCursor};
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::merge_operator::{Append, MergeOperator, Operator};
use crate::range_del::{RangeTombstone, RangeTombstones};

/// A blob source in which a reference is its value in capitals.
#[derive(Debug)]
struct Capitals;

impl BlobSource for Capitals {
    fn load(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend(reference.to_ascii_lowercase());
        Ok(())
    }
}

fn operator() -> Operator {
    Some(Arc::new(Append) as Arc<dyn MergeOperator>)
}

/// A merge operator that combines operands but refuses to produce values.
#[derive(Debug)]
struct Refuses;

impl MergeOperator for Refuses {
    fn name(&self) -> &str {
        Append.name()
    }

    fn merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> std::result::Result<Vec<u8>, String> {
        Err("it does not want to".to_owned())
    }

    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Append.merge_operands(key, operands)
    }
}

/// The operators that a compaction may have, while readers have the right one.
fn any_operator() -> impl Strategy<Value = Operator> {
    prop_oneof![
        2 => Just(operator()),
        1 => Just(None),
        1 => Just(Some(Arc::new(Refuses) as Arc<dyn MergeOperator>)),
    ]
}

/// Generates entries of few keys and many versions, each with its own sequence number, and range
/// tombstones among them.
fn history() -> impl Strategy<Value = (Vec<Entry>, Vec<RangeTombstone>)> {
    let key = prop::collection::vec(0u8..3, 0..4);
    let one = (key.clone(), 0u8..10, "[a-z]{0,3}", key);
    prop::collection::vec(one, 0..60).prop_map(|all| {
        let (mut entries, mut tombstones) = (Vec::new(), Vec::new());
        for (at, (key, what, value, end)) in all.into_iter().enumerate() {
            let seqno = at as Seqno + 1;
            match what {
                0 if key < end => tombstones.push(RangeTombstone { start: key, end, seqno }),
                0..=2 => entries.push((key, seqno, Kind::Delete, Vec::new())),
                3..=5 => entries.push((key, seqno, Kind::Merge, value.into_bytes())),
                6 => entries.push((key, seqno, Kind::Blob, value.to_ascii_uppercase().into_bytes())),
                _ => entries.push((key, seqno, Kind::Put, value.into_bytes())),
            }
        }
        (entries, tombstones)
    })
}

/// Returns the pairs visible at `at`, computed by replay. This is the definition of visibility.
fn model(entries: &[Entry], tombstones: &[RangeTombstone], at: Seqno) -> BTreeMap<Vec<u8>, Vec<u8>> {
    enum Change<'a> {
        Entry(&'a Entry),
        Range(&'a RangeTombstone),
    }
    let mut changes: Vec<(Seqno, Change<'_>)> = entries.iter().map(|e| (e.1, Change::Entry(e))).collect();
    changes.extend(tombstones.iter().map(|t| (t.seqno, Change::Range(t))));
    changes.sort_by_key(|(seqno, _)| *seqno);
    let mut map: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (_, change) in changes.into_iter().filter(|(seqno, _)| *seqno <= at) {
        match change {
            Change::Range(range) => map.retain(|key, _| !(range.start <= *key && *key < range.end)),
            Change::Entry((key, _, kind, value)) => match kind {
                Kind::Delete => drop(map.remove(key)),
                Kind::Put => drop(map.insert(key.clone(), value.clone())),
                Kind::Blob => drop(map.insert(key.clone(), value.to_ascii_lowercase())),
                Kind::Merge => map.entry(key.clone()).or_default().extend_from_slice(value),
            },
        }
    }
    map
}

fn set(tombstones: &[RangeTombstone]) -> Arc<RangeTombstones> {
    Arc::new(RangeTombstones::new(tombstones.to_vec()))
}

fn visible<C: Cursor>(
    inner: C,
    covers: &Arc<RangeTombstones>,
    at: Seqno,
    bounds: Bounds,
) -> VisibleCursor<C> {
    let covers =
        if covers.is_empty() { Vec::new() } else { vec![RangeTombstoneSource::Set(Arc::clone(covers))] };
    let store = Arc::new(PathBuf::from("/store"));
    let context = ReadContext {
        at,
        covers,
        operator: operator(),
        ttl: None,
        blobs: Arc::new(Capitals),
        store,
        keyspace: String::new(),
    };
    VisibleCursor::new(inner, context, bounds)
}

/// Returns the pairs visible at `at`, read by iterating forwards.
fn walk<C: Cursor>(inner: C, covers: &Arc<RangeTombstones>, at: Seqno) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut cursor = visible(inner, covers, at, Bounds::default());
    let mut map = BTreeMap::new();
    cursor.seek_first().unwrap();
    while cursor.valid() {
        map.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next().unwrap();
    }
    map
}

/// Distributes entries over `count` cursors.
fn deal(entries: &[Entry], count: usize) -> Vec<VecCursor> {
    let mut hands = vec![Vec::new(); count];
    for entry in entries {
        hands[(entry.1 as usize * 7) % count].push(entry.clone());
    }
    hands.into_iter().map(VecCursor::new).collect()
}

#[derive(Debug, Clone)]
enum Move {
    First,
    Last,
    Seek(Vec<u8>, Seqno),
    SeekBack(Vec<u8>, bool),
    Next,
    Prev,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let key = || prop::collection::vec(0u8..3, 0..4);
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => (key(), 0..60u64).prop_map(|(key, seqno)| Move::Seek(key, seqno)),
        2 => (key(), any::<bool>()).prop_map(|(key, inclusive)| Move::SeekBack(key, inclusive)),
        6 => Just(Move::Next),
        6 => Just(Move::Prev),
    ];
    prop::collection::vec(one, 0..60)
}

proptest! {
    #![proptest_config(crate::test_config::cases(512))]

    /// Goal: a merge behaves like one sorted cursor over everything, for all moves and changes of
    /// direction.
    /// Method: the same random moves over a merge of distributed entries and over one vector of all
    /// entries.
    #[test]
    fn merge_is_the_whole((entries, _) in history(), count in 1usize..5, moves in moves()) {
        let mut merge = MergeCursor::new(deal(&entries, count));
        let mut whole = VecCursor::new(entries);
        for step in moves {
            if matches!(step, Move::Next | Move::Prev) && !whole.valid() {
                continue;
            }
            for cursor in [&mut merge as &mut dyn Cursor, &mut whole] {
                match &step {
                    Move::First => cursor.seek_first(),
                    Move::Last => cursor.seek_last(),
                    Move::Seek(key, seqno) => cursor.seek(key, *seqno),
                    Move::SeekBack(key, inclusive) => cursor.seek_back(key, *inclusive),
                    Move::Next => cursor.next(),
                    Move::Prev => cursor.prev(),
                }.unwrap();
            }
            prop_assert_eq!(merge.valid(), whole.valid());
            if whole.valid() {
                prop_assert_eq!((merge.key(), merge.seqno(), merge.kind(), merge.value()),
                    (whole.key(), whole.seqno(), whole.kind(), whole.value()));
            }
        }
    }

    /// Goal: a reader sees the result of a replay up to its sequence number, within its bounds, for
    /// all moves.
    /// Method: random moves over the visible cursor and a map.
    #[test]
    fn visible_is_replay(
        (entries, tombstones) in history(),
        at in 0..70u64,
        lower in prop::option::of(prop::collection::vec(0u8..3, 0..3)),
        upper in prop::option::of(prop::collection::vec(0u8..3, 0..3)),
        moves in moves(),
    ) {
        let mut map = model(&entries, &tombstones, at);
        map.retain(|key, _| lower.as_ref().is_none_or(|l| l <= key) && upper.as_ref().is_none_or(|u| key < u));
        let pairs: Vec<_> = map.into_iter().collect();
        let merge = MergeCursor::new(deal(&entries, 3));
        let mut cursor = visible(merge, &set(&tombstones), at, Bounds { lower, upper });
        let mut place: Option<usize> = None;
        for step in moves {
            let next = match &step {
                Move::First => Some(0),
                Move::Last => pairs.len().checked_sub(1),
                Move::Seek(key, _) => Some(pairs.partition_point(|pair| pair.0 < *key)),
                Move::SeekBack(key, _) => pairs.partition_point(|pair| pair.0 <= *key).checked_sub(1),
                Move::Next => place.map(|place| place + 1),
                Move::Prev => place.and_then(|place| place.checked_sub(1)),
            };
            place = next.filter(|place| *place < pairs.len());
            match &step {
                Move::First => cursor.seek_first(),
                Move::Last => cursor.seek_last(),
                Move::Seek(key, _) => cursor.seek(key),
                Move::SeekBack(key, _) => cursor.seek_for_prev(key),
                Move::Next => cursor.next(),
                Move::Prev => cursor.prev(),
            }.unwrap();
            prop_assert_eq!(cursor.valid(), place.is_some(), "{:?}", step);
            if let Some(place) = place {
                prop_assert_eq!((cursor.key(), cursor.value()), (&pairs[place].0[..], &pairs[place].1[..]));
            }
        }
    }

    /// Goal: a compaction changes nothing for any existing reader, drops entries that no reader can
    /// distinguish, and at the bottom leaves neither tombstones nor sequence numbers where no
    /// snapshot needs them.
    /// Method: entries are split by age into the compacted ones and those below; iterate at each
    /// snapshot and at the end, before and after. The compaction's operator may be missing or may
    /// refuse.
    #[test]
    fn compaction_changes_nothing(
        (entries, tombstones) in history(),
        snapshots in prop::collection::btree_set(0..70u64, 0..4),
        bottom in 0..70u64,
        operator in any_operator(),
    ) {
        let snapshots: Vec<Seqno> = snapshots.into_iter().collect();
        let (below, input): (Vec<Entry>, Vec<Entry>) = entries.iter().cloned().partition(|e| e.1 <= bottom);
        // Tombstones below take effect only for readers. The compaction leaves them where they are.
        let (covers_below, covers): (Vec<_>, Vec<_>) = tombstones.iter().cloned().partition(|t| t.seqno <= bottom);
        let has_older = |key: &[u8]| {
            Ok(below.iter().any(|e| e.0 == key)
                || covers_below.iter().any(|t| t.start.as_slice() <= key && key < t.end.as_slice()))
        };
        let rules = Rules {
            snapshots: snapshots.clone(),
            tombstones: set(&covers),
            operator,
            ttl: None,
            blobs: Some(Arc::new(Capitals)),
            filter: None,
            level: 1,
            interrupt: None,
            store: Arc::new(PathBuf::from("/store")),
            keyspace: "default",
            keeps_unmerged: false,
        };
        let mut cursor = VecCursor::new(input.clone());
        cursor.seek_first().unwrap();
        let mut stream = Stream::new(cursor, rules, has_older);
        let mut output: Vec<Entry> = Vec::new();
        while stream.advance().unwrap() {
            output.push((stream.key().to_vec(), stream.seqno(), stream.kind(), stream.value().to_vec()));
        }
        prop_assert!(output.windows(2).all(|pair| (&pair[0].0, std::cmp::Reverse(pair[0].1))
            < (&pair[1].0, std::cmp::Reverse(pair[1].1))), "{:?}", output);
        let after: Vec<Entry> = below.iter().cloned().chain(output.iter().cloned()).collect();
        let all = set(&tombstones);
        for at in snapshots.iter().copied().chain([SEQNO_MAX]) {
            let expected = model(&entries, &tombstones, at);
            prop_assert_eq!(&walk(VecCursor::new(after.clone()), &all, at), &expected, "at {}", at);
        }
        if snapshots.is_empty() {
            for (at, (key, seqno, kind, _)) in output.iter().enumerate() {
                let older = below.iter().any(|e| e.0 == *key) || covers_below.iter().any(|t| t.start <= *key && *key < t.end);
                let is_alone = output.iter().filter(|other| other.0 == *key).count() == 1;
                prop_assert!(older || *kind != Kind::Delete, "a tombstone hides nothing: {:?}", output[at]);
                prop_assert!(older || *kind == Kind::Merge || *seqno == 0 || !covers.is_empty() || !is_alone, "{:?}", output[at]);
                prop_assert!(is_alone || *kind != Kind::Put || output[at - 1].2 == Kind::Merge, "{:?}", output);
            }
        }
    }
}
