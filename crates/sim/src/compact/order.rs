//! The order in which the files of a level are tried: RocksDB's `compaction_pri`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::options::{CompactionPri, Options};
use crate::tree::{File, Tree};

/// Returns the indices of a level's files in the order in which they are tried. Files in use are
/// left out, except for round robin, which waits for the file whose turn it is. Usually the first
/// of many thousand files is taken, and otherwise one of the next few. So the first is found by a
/// scan, and only the others go through a heap.
pub(super) fn order<'t>(
    tree: &'t Tree,
    options: &Options,
    level: usize,
) -> impl Iterator<Item = usize> + use<'t> {
    let files = tree.level(level).only();
    let (pri, count) = (options.compaction_pri, files.len());
    let from = if pri == CompactionPri::RoundRobin { tree.level(level).next_in_turn() } else { 0 };
    let next = tree.level(level + 1).only();
    let keys = move || Keys { pri, files, next, from, below: 0 };
    let first = keys().first();
    let others = std::iter::once_with(move || {
        let mut keys = keys();
        let all = (0..count).filter_map(|at| Some(Reverse((keys.of(at)?, at))));
        BinaryHeap::from(all.filter(|Reverse((_, at))| Some(*at) != first).collect::<Vec<_>>())
    });
    let others = others.flat_map(|mut heap| std::iter::from_fn(move || heap.pop()));
    first.into_iter().chain(others.map(|Reverse((_, at))| at))
}

/// Computes the sort keys of files. The file with the smallest sort key is tried first; of files
/// with the same one, the first of the level.
struct Keys<'t> {
    pri: CompactionPri,
    files: &'t [File],
    next: &'t [File],
    /// The file whose turn it is.
    from: usize,
    /// The first file of the next level that does not lie before the current file.
    below: usize,
}

impl Keys<'_> {
    /// Returns the sort key of a file, or `None` if a job reads it. Must be called in file order.
    fn of(&mut self, at: usize) -> Option<u64> {
        let file = self.files.get(at)?;
        if self.pri == CompactionPri::MinOverlappingRatio {
            let (above, own) = self.ratio(file);
            return (!file.compacting).then(|| above / own);
        }
        let is_free = self.pri == CompactionPri::RoundRobin || !file.compacting;
        is_free.then(|| match self.pri {
            CompactionPri::ByCompensatedSize => u64::MAX - file.compensated_bytes,
            CompactionPri::OldestLargestSeqFirst => file.seqs.1,
            CompactionPri::OldestSmallestSeqFirst => file.seqs.0,
            _ => ((at + self.files.len() - self.from) % self.files.len().max(1)) as u64,
        })
    }

    /// Returns the file with the smallest sort key.
    fn first(mut self) -> Option<usize> {
        if self.pri != CompactionPri::MinOverlappingRatio {
            let keys = (0..self.files.len()).filter_map(|at| Some((self.of(at)?, at)));
            return keys.min().map(|(_, at)| at);
        }
        // Divides only for files that lower the minimum, which are few among thousands.
        let mut best = None;
        let mut least = u64::MAX;
        for (at, file) in self.files.iter().enumerate() {
            let (above, own) = self.ratio(file);
            if !file.compacting && (best.is_none() || above < least.saturating_mul(own)) {
                (best, least) = (Some(at), above / own);
            }
        }
        best
    }

    /// Returns 1024 times the bytes that a file overlaps in the next level, and its own size.
    fn ratio(&mut self, file: &File) -> (u64, u64) {
        let mut at = self.below;
        while self.next.get(at).is_some_and(|below| below.largest < file.smallest) {
            at += 1;
        }
        let mut bytes = 0;
        while let Some(below) = self.next.get(at).filter(|below| below.smallest < file.largest) {
            bytes += below.bytes;
            if below.largest > file.largest {
                break;
            }
            at += 1;
        }
        self.below = at;
        (bytes.saturating_mul(1024), file.compensated_bytes.max(1))
    }
}
