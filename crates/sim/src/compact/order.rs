//! Which file of a level is tried first: RocksDB's `compaction_pri`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::options::{CompactionPri, Options};
use crate::tree::{File, Tree};

/// Indices of the files of a level, the first to be tried first. Of many thousand files few are tried, so that they come from a heap.
pub(super) fn order(tree: &Tree, options: &Options, level: usize) -> impl Iterator<Item = usize> {
    let files = tree.level(level).only();
    let keys: Vec<u64> = match options.compaction_pri {
        CompactionPri::MinOverlappingRatio => ratios(files, tree.level(level + 1).only()),
        CompactionPri::ByCompensatedSize => {
            files.iter().map(|file| u64::MAX - file.compensated_bytes).collect()
        }
        CompactionPri::OldestLargestSeqFirst => files.iter().map(|file| file.seqs.1).collect(),
        CompactionPri::OldestSmallestSeqFirst => files.iter().map(|file| file.seqs.0).collect(),
        CompactionPri::RoundRobin => {
            let (count, from) = (files.len(), tree.level(level).next_in_turn());
            (0..count).map(|at| ((at + count - from) % count) as u64).collect()
        }
    };
    // Of equal ones the smaller key goes first.
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> =
        keys.into_iter().enumerate().map(|(at, key)| Reverse((key, at))).collect();
    std::iter::from_fn(move || heap.pop().map(|Reverse((_, at))| at))
}

/// For each file, what it overlaps in the next level over its size, in 1024ths.
fn ratios(files: &[File], next: &[File]) -> Vec<u64> {
    let mut at = 0;
    files
        .iter()
        .map(|file| {
            while next.get(at).is_some_and(|below| below.largest < file.smallest) {
                at += 1;
            }
            let mut bytes = 0;
            while let Some(below) = next.get(at).filter(|below| below.smallest < file.largest) {
                bytes += below.bytes;
                if below.largest > file.largest {
                    break;
                }
                at += 1;
            }
            bytes.saturating_mul(1024) / file.compensated_bytes.max(1)
        })
        .collect()
}
