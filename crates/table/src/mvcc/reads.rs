//! The read set of a serializable transaction, validated against concurrent changes.
//!
//! A transaction that has read nothing that another one has changed since its snapshot could have
//! run entirely at the moment of its commit. The commit checks exactly this: Neumann, Mühlbauer,
//! Kemper, "Fast Serializable Multi-Version Concurrency Control for Main-Memory Database Systems",
//! SIGMOD 2015, with key ranges as predicates.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use super::rows::Write;
use crate::hook;

/// Lower and upper bound, in key order.
type Range = (Bound<Box<[u8]>>, Bound<Box<[u8]>>);

/// Keys and key ranges that were read, by tree.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    trees: HashMap<u32, Reads>,
}

#[derive(Debug, Default)]
struct Reads {
    keys: HashSet<Box<[u8]>>,
    /// After [`ReadSet::sort`]: in order, disjoint and not adjacent.
    ranges: Vec<Range>,
    /// Whether no range was added since the ranges were sorted.
    is_sorted: bool,
}

impl ReadSet {
    /// Records the lookup of a key, whether or not it was found.
    pub(crate) fn key(&mut self, tree: u32, key: &[u8]) {
        let keys = &mut self.trees.entry(tree).or_default().keys;
        if !keys.contains(key) {
            keys.insert(key.into());
        }
    }

    /// Records the scan of a range.
    pub(crate) fn range(&mut self, tree: u32, range: (Bound<&[u8]>, Bound<&[u8]>)) {
        let reads = self.trees.entry(tree).or_default();
        let range = (range.0.map(Into::into), range.1.map(Into::into));
        if reads.ranges.last() != Some(&range) {
            reads.ranges.push(range);
            reads.is_sorted = false;
        }
    }

    /// Sorts and merges the ranges, as [`ReadSet::has`] requires. Call it before taking locks that
    /// others wait for: a nested loop reads one range per row.
    pub(crate) fn sort(&mut self) {
        for reads in self.trees.values_mut() {
            let mut ranges = std::mem::take(&mut reads.ranges);
            reads.is_sorted = true;
            ranges.retain(|range| !is_empty(range));
            ranges.sort_unstable_by(|a, b| start(a).cmp(&start(b)));
            for range in ranges {
                match reads.ranges.last_mut() {
                    Some(last) if touches(last, &range) => {
                        if end(last) < end(&range) {
                            last.1 = range.1;
                        }
                    }
                    _ => reads.ranges.push(range),
                }
            }
            debug_assert!(
                reads.ranges.windows(2).all(|pair| match pair {
                    [first, second] => start(first) < start(second) && !touches(first, second),
                    _ => false,
                }),
                "ranges that were merged still overlap: {:?}",
                reads.ranges
            );
        }
    }

    /// Returns whether a write changed anything that was read. Cost: logarithmic in the number of
    /// ranges.
    pub(crate) fn has(&self, write: &Write) -> bool {
        self.has_key(write.tree, &write.key)
    }

    fn has_key(&self, tree: u32, key: &[u8]) -> bool {
        let Some(reads) = self.trees.get(&tree) else { return false };
        if reads.keys.contains(key) {
            return true;
        }
        debug_assert!(
            reads.is_sorted || reads.ranges.is_empty(),
            "a key is searched in ranges that are not sorted"
        );
        let begun = reads.ranges.partition_point(|range| {
            hook::at("compares a key with a range");
            begins(range, key)
        });
        // Ranges are disjoint, so only the last one that begins before the key can contain it.
        begun.checked_sub(1).and_then(|at| reads.ranges.get(at)).is_some_and(|range| !ends(range, key))
    }
}

/// Returns the start of a range for comparison: `None` if unbounded, or the key and whether it is
/// excluded.
fn start(range: &Range) -> Option<(&[u8], bool)> {
    match &range.0 {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((key, false)),
        Bound::Excluded(key) => Some((key, true)),
    }
}

/// Returns the end of a range for comparison: whether it is unbounded, the key, and whether the key
/// is included.
fn end(range: &Range) -> (bool, &[u8], bool) {
    match &range.1 {
        Bound::Unbounded => (true, &[], false),
        Bound::Included(key) => (false, key, true),
        Bound::Excluded(key) => (false, key, false),
    }
}

/// Returns whether a range begins at or before a key.
fn begins(range: &Range, key: &[u8]) -> bool {
    start(range).is_none_or(|start| start <= (key, false))
}

/// Returns whether a range ends before a key.
fn ends(range: &Range, key: &[u8]) -> bool {
    end(range) < (false, key, true)
}

fn is_empty((start, end): &Range) -> bool {
    match (start, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
            start >= end
        }
    }
}

/// Returns whether the first range reaches the second, which must not begin earlier: no key lies
/// between them.
fn touches(first: &Range, second: &Range) -> bool {
    match (&first.1, &second.0) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Excluded(end), Bound::Excluded(start)) => start < end,
        (Bound::Included(end) | Bound::Excluded(end), Bound::Included(start) | Bound::Excluded(start)) => {
            start <= end
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    fn bound(inclusive: u8, key: u8) -> Bound<Box<[u8]>> {
        match inclusive {
            0 => Bound::Unbounded,
            1 => Bound::Included([key].into()),
            _ => Bound::Excluded([key].into()),
        }
    }

    fn is_in(range: &Range, key: &[u8]) -> bool {
        std::ops::RangeBounds::contains(
            &(range.0.as_ref().map(|key| &**key), range.1.as_ref().map(|key| &**key)),
            key,
        )
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(2_000))]

        /// Goal: sorting does not change the set of keys read, for ranges that overlap, touch, are
        /// empty or reversed.
        #[test]
        fn scans_equal_map_ranges(given in prop::collection::vec((0u8..3, 0u8..12, 0u8..3, 0u8..12), 0..8)) {
            let given: Vec<Range> = given.iter().map(|&(a, from, b, to)| (bound(a, from), bound(b, to))).collect();
            let mut set = ReadSet::default();
            for (from, to) in &given {
                set.range(1, (from.as_ref().map(|key| &**key), to.as_ref().map(|key| &**key)));
            }
            set.sort();
            let kept = set.trees.get(&1).map_or(0, |reads| reads.ranges.len());
            prop_assert!(kept <= 7, "{kept} ranges of twelve keys");
            // Also tests keys between the bounds of the ranges.
            for key in (0u8..13).flat_map(|key| [vec![key], vec![key, 0]]) {
                let expected = given.iter().any(|range| is_in(range, &key));
                prop_assert_eq!(set.has_key(1, &key), expected, "{:?} in {:?}", key, given);
            }
        }
    }

    /// Goal: validation does not compare each change with each range under the lock that all
    /// commits wait for. Method: counts comparisons.
    #[test]
    fn validation_is_logarithmic() {
        let mut set = ReadSet::default();
        let key = |number: u32| number.to_be_bytes();
        for at in (0..20_000).rev() {
            set.range(1, (Bound::Included(&key(at * 10)), Bound::Excluded(&key(at * 10 + 3))));
        }
        set.sort();
        let count = Rc::new(Cell::new(0u64));
        let own = Rc::clone(&count);
        hook::set(move |_| own.set(own.get() + 1));
        let found = (0..20_000).filter(|at| set.has_key(1, &key(at * 10 + at % 10))).count();
        hook::clear();
        assert_eq!(found, 6_000);
        assert!(count.get() <= 20_000 * 16, "{} comparisons", count.get());
    }
}
