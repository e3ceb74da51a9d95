//! Which file of a level is tried first: RocksDB's `compaction_pri`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::options::{CompactionPri, Options};
use crate::tree::{File, Tree};

/// Indices of the files of a level, the first to be tried first; those that a job reads are left out, but for round robin, which waits
/// for its turn. Of many thousand files mostly one is tried, and then a few: the first is looked for, the others come from a heap.
pub(super) fn order(tree: &Tree, options: &Options, level: usize) -> impl Iterator<Item = usize> {
    let files = tree.level(level).only();
    let in_turn = options.compaction_pri == CompactionPri::RoundRobin;
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
    let candidates = files.iter().zip(keys).enumerate();
    let candidates = candidates.filter(|(_, (file, _))| in_turn || !file.compacting);
    // Of equal ones the smaller key goes first.
    let mut rest: Vec<Candidate> = candidates.map(|(at, (_, key))| Reverse((key, at))).collect();
    let first = (0..rest.len()).max_by_key(|&place| rest.get(place)).map(|place| rest.swap_remove(place));
    let others = std::iter::once_with(move || BinaryHeap::from(rest))
        .flat_map(|mut heap| std::iter::from_fn(move || heap.pop()));
    first.into_iter().chain(others).map(|Reverse((_, at))| at)
}

/// What a file is tried by, and its place; the largest comes first.
type Candidate = Reverse<(u64, usize)>;

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
