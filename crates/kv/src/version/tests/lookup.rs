//! Tests of searches in versions.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::test_config::cases;
use crate::version::handle::{ObsoleteFiles, TableFile};
use crate::version::levels::Level;
use crate::version::run::Run;

type Key = Vec<u8>;

/// Generates keys of which about half collide in their first eight bytes.
fn key() -> impl Strategy<Value = Key> {
    let letters = vec(prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(255)], 0..4);
    (prop_oneof![Just(""), Just("k"), Just("key/"), Just("key/aaaaaaaa")], letters)
        .prop_map(|(prefix, letters)| [prefix.as_bytes(), &letters].concat())
}

/// Returns a run whose tables end at every second key of a sorted set; some touch their successor.
fn run_of(id: u64, keys: &BTreeSet<Key>, touching: bool) -> Option<Run> {
    let keys: Vec<&Key> = keys.iter().collect();
    let obsolete = Arc::new(ObsoleteFiles::default());
    let tables = keys.chunks_exact(2).enumerate().map(|(at, pair)| {
        let next = keys.get(2 * at + 2).filter(|_| touching && at % 2 == 0 && 2 * at + 3 < keys.len());
        let mut meta = table(id * 1000 + at as u64, "", "");
        meta.smallest.clone_from(pair[0]);
        meta.largest.clone_from(next.unwrap_or(&pair[1]));
        meta.tombstones = 1;
        Arc::new(TableFile::new(meta, false, &obsolete))
    });
    Run::new(id, tables.collect()).ok()
}

fn bound(kind: u8, key: &Key) -> Bound<&[u8]> {
    match kind % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

proptest! {
    #![proptest_config(cases(512))]

    /// Goal: `find`, `seek` and `overlapping` return the tables determined by their keys.
    /// Method: random runs, with touching tables, compared with a walk over all tables.
    #[test]
    fn run_agrees_with_a_walk(
        keys in proptest::collection::btree_set(key(), 2..30),
        probes in vec(key(), 1..20), touching: bool, kinds: (u8, u8),
    ) {
        let Some(run) = run_of(1, &keys, touching) else { return Ok(()) };
        let tables = run.tables();
        for probe in probes.iter().chain(&keys) {
            let mut holders = tables.iter().filter(|t| t.meta.smallest <= *probe && *probe <= t.meta.largest);
            prop_assert_eq!(run.find(probe).map(|t| t.number()), holders.next_back().map(|t| t.number()));
            // Of two tables that touch at the key, only the later one has entries at or after it.
            let first = tables.iter().enumerate().position(|(at, t)| {
                let touched = tables.get(at + 1).is_some_and(|next| next.meta.smallest == *probe);
                t.meta.largest >= *probe && !touched
            });
            prop_assert_eq!(run.seek(probe), first.unwrap_or(tables.len()));
        }
        let (low, high) = (&probes[0], &probes[probes.len() - 1]);
        let (lower, upper) = (bound(kinds.0, low), bound(kinds.1, high));
        let found: BTreeSet<u64> = run.overlapping(lower, upper).iter().map(|t| t.number()).collect();
        for key in keys.iter().filter(|key| { use std::ops::RangeBounds; (lower, upper).contains(&key[..]) }) {
            if let Some(table) = run.find(key) {
                prop_assert!(found.contains(&table.number()), "{:?}", key);
            }
        }
        for table in run.overlapping(lower, upper) {
            let is_above = match lower { Bound::Unbounded => true, Bound::Included(k) => &table.meta.largest[..] >= k, Bound::Excluded(k) => &table.meta.largest[..] > k };
            let is_below = match upper { Bound::Unbounded => true, Bound::Included(k) => &table.meta.smallest[..] <= k, Bound::Excluded(k) => &table.meta.smallest[..] < k };
            prop_assert!(is_above && is_below);
        }
    }

    /// Goal: a lookup visits every table that may have the key, newest run first.
    /// Method: random levels of random runs, compared with a walk.
    #[test]
    fn version_agrees_with_a_walk(
        runs in vec((0..3usize, proptest::collection::btree_set(key(), 2..12)), 0..8),
        probes in vec(key(), 1..20),
    ) {
        let mut levels: Vec<Vec<Arc<Run>>> = vec![Vec::new(); 3];
        for (id, (level, keys)) in runs.iter().enumerate() {
            levels[*level].extend(run_of(id as u64 + 1, keys, false).map(Arc::new));
        }
        let version = Version::new(levels.into_iter().map(Level::new).collect(), Vec::new());
        for probe in &probes {
            let mut found = Vec::new();
            let _ = version.search(probe, |level, table| -> ControlFlow<()> {
                found.push((level, table.number()));
                ControlFlow::Continue(())
            });
            let mut expected = Vec::new();
            for (at, level) in version.levels().iter().enumerate() {
                for run in level.runs() {
                    expected.extend(run.find(probe).map(|table| (at, table.number())));
                }
                prop_assert!(level.runs().is_sorted_by(|a, b| a.id() > b.id()));
            }
            prop_assert_eq!(found, expected);
        }
    }
}

/// Goal: a search ends when its visitor breaks.
/// Method: two runs with the key; break at the first.
#[test]
fn search_breaks() {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let numbers = [set.new_file_number(), set.new_file_number()];
    apply(&set, &add(numbers.map(|n| (0, n, table(n, "a", "z"))).to_vec())).unwrap();
    let version = set.current(KeyspaceId(0)).unwrap();
    let found = version.search(b"m", |_, table| ControlFlow::Break(table.number()));
    assert_eq!(found, ControlFlow::Break(numbers[1]), "the newest");
    assert!(version.search(b"zz", |_, table| ControlFlow::Break(table.number())).is_continue());
}
