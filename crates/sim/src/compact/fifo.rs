//! FIFO compaction: drops the oldest files. Merges only small files, and only if that is allowed.

use super::inputs::by_run;
use super::leveled::{falling_cost, zero_job};
use super::{Draft, Job, JobKind, Reason};
use crate::options::Options;
use crate::tree::{File, Tree};

/// Picks by age, then by total size, then small files to merge.
pub(super) fn pick(tree: &Tree, options: &Options, now_secs: f64) -> Option<Job> {
    if tree.running.iter().any(|job| job.from_level == 0) {
        return None;
    }
    let files: Vec<&File> = tree.level(0).files().collect();
    let oldest_first = || files.iter().rev().copied();
    if options.ttl > 0 {
        let limit = now_secs - options.ttl as f64;
        let old: Vec<&File> = oldest_first().take_while(|file| file.newest_secs < limit).collect();
        if !old.is_empty() {
            return drop_files(tree, &old, Reason::Age);
        }
    }
    let fifo = &options.compaction_options_fifo;
    let mut bytes = tree.level(0).bytes();
    if bytes > fifo.max_table_files_size {
        let mut dropped = Vec::new();
        for file in oldest_first() {
            if bytes <= fifo.max_table_files_size {
                break;
            }
            bytes -= file.bytes;
            dropped.push(file);
        }
        return drop_files(tree, &dropped, Reason::Size);
    }
    if fifo.allow_compaction && files.len() >= options.level0_file_num_compaction_trigger {
        let chosen = falling_cost(&files, options.compaction_bytes_max());
        let bytes: u64 = chosen.iter().map(|file| file.bytes).sum();
        let is_cheap = |count: usize| bytes as f64 / count as f64 <= options.write_buffer_size as f64 * 1.1;
        let is_worth = chosen.len() >= options.level0_file_num_compaction_trigger.max(2);
        return (is_worth && is_cheap(chosen.len() - 1)).then(|| zero_job(tree, chosen)).flatten();
    }
    None
}

fn drop_files(tree: &Tree, files: &[&File], reason: Reason) -> Option<Job> {
    let draft = Draft { reason, inputs: by_run(tree, 0, files), output_level: 0, output_run: 0 };
    draft.finish(tree, JobKind::Drop, u64::MAX)
}
