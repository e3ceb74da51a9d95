//! What a serializable transaction has read, to be compared with what others have changed meanwhile.
//!
//! A transaction that has read nothing which another one has changed since its snapshot could have run as a whole at the moment of its commit. So that is what is
//! checked there: Neumann, Mühlbauer, Kemper, "Fast Serializable Multi-Version Concurrency Control for Main-Memory Database Systems", SIGMOD 2015, with ranges of
//! keys as predicates.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use super::rows::Write;

/// From where to where, in the order of keys.
type Range = (Bound<Box<[u8]>>, Bound<Box<[u8]>>);

/// Keys and ranges of keys, by tree.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    trees: HashMap<u32, Reads>,
}

#[derive(Debug, Default)]
struct Reads {
    keys: HashSet<Box<[u8]>>,
    ranges: Vec<Range>,
}

impl ReadSet {
    /// Notes that a key was looked up, whether or not it was there.
    pub(crate) fn key(&mut self, tree: u32, key: &[u8]) {
        let keys = &mut self.trees.entry(tree).or_default().keys;
        if !keys.contains(key) {
            keys.insert(key.into());
        }
    }

    /// Notes that a range was looked through.
    pub(crate) fn range(&mut self, tree: u32, range: (Bound<&[u8]>, Bound<&[u8]>)) {
        let reads = self.trees.entry(tree).or_default();
        let range = (range.0.map(Into::into), range.1.map(Into::into));
        if reads.ranges.last() != Some(&range) {
            reads.ranges.push(range);
        }
    }

    /// Whether a change is one of what was read.
    pub(crate) fn has(&self, write: &Write) -> bool {
        let Some(reads) = self.trees.get(&write.tree) else { return false };
        reads.keys.contains(&*write.key) || reads.ranges.iter().any(|range| is_in(range, &write.key))
    }
}

fn is_in(range: &Range, key: &[u8]) -> bool {
    let begins = match &range.0 {
        Bound::Unbounded => true,
        Bound::Included(start) => **start <= *key,
        Bound::Excluded(start) => **start < *key,
    };
    begins
        && match &range.1 {
            Bound::Unbounded => true,
            Bound::Included(end) => *key <= **end,
            Bound::Excluded(end) => *key < **end,
        }
}
