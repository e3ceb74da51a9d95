//! Which file of a level is tried first: RocksDB's `compaction_pri`.

use crate::options::{CompactionPri, Options};
use crate::tree::{File, Tree};

/// Indices of the files of a level, the first to be tried first.
pub(super) fn order(tree: &Tree, options: &Options, level: usize) -> Vec<usize> {
    let files = tree.level(level).only();
    let mut order: Vec<usize> = (0..files.len()).collect();
    match options.compaction_pri {
        CompactionPri::MinOverlappingRatio => {
            let ratios = ratios(files, tree.level(level + 1).only());
            // Stable: of equal ratios the smaller key goes first.
            order.sort_by_key(|&at| ratios.get(at).copied().unwrap_or(u64::MAX));
        }
        CompactionPri::ByCompensatedSize => {
            order
                .sort_by_key(|&at| std::cmp::Reverse(files.get(at).map_or(0, |file| file.compensated_bytes)));
        }
        CompactionPri::OldestLargestSeqFirst => {
            order.sort_by_key(|&at| files.get(at).map_or(0, |file| file.flushes.1));
        }
        CompactionPri::OldestSmallestSeqFirst => {
            order.sort_by_key(|&at| files.get(at).map_or(0, |file| file.flushes.0));
        }
        CompactionPri::RoundRobin => {
            // The cursor stands behind the file that went last: the one made first is the one not yet passed.
            let from = (0..files.len()).min_by_key(|&at| files.get(at).map_or(0, |file| file.number));
            order.rotate_left(from.unwrap_or(0));
        }
    }
    order
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
