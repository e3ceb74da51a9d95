//! Formats results as text.

use std::fmt::Write;

use cairn_sim::Results;
use cairn_sim::results::{Bottleneck, LevelResult, Outcome};
use cairn_workload::Percentiles;

use crate::output::{counted, human};

const MIB: f64 = 1048576.0;

/// Formats one result.
pub fn to_text(results: &Results) -> String {
    let mut table = Table(String::new());
    table.course(results);
    table.amplification(results);
    table.waits(results);
    table.latencies(results);
    table.tree(results);
    table.0
}

/// Describes a resource or a stall.
fn bottleneck(what: Bottleneck) -> String {
    match what {
        Bottleneck::Nothing => "none: the store keeps up with its load".to_owned(),
        Bottleneck::Writers => "the writers' own processor time or log".to_owned(),
        Bottleneck::Resource(resource) => format!("{resource} saturated"),
        Bottleneck::Stall(cause) => format!("writes stall: {cause}"),
    }
}

/// Describes how a run ended.
fn outcome(results: &Results) -> String {
    let after = seconds(results.secs);
    match results.outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::OutOfMemory => {
            format!("OUT OF MEMORY after {after}: writers fell too far behind their traffic")
        }
        Outcome::Stuck => format!("STUCK after {after}: writers are stopped and nothing can release them"),
        Outcome::TooManyEvents => {
            format!("TOO MANY EVENTS: ended after {after}, with more than a run may have")
        }
        Outcome::Running => "not finished yet".to_owned(),
    }
}

/// Formats seconds to a thousandth, without trailing zeros.
fn seconds(secs: f64) -> String {
    format!("{} s", (secs * 1e3).round() / 1e3)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Lines that consist of a name and a value.
struct Table(String);

impl Table {
    fn line(&mut self, name: &str, value: impl AsRef<str>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name:22} {}", value.as_ref());
    }

    /// Adds the outcome, the duration, the throughput and the amplifications.
    fn course(&mut self, results: &Results) {
        self.line("outcome", outcome(results));
        let (virtual_time, events) = (seconds(results.secs), results.events);
        self.line(
            "virtual time",
            format!("{virtual_time}, {events} events, one key in {} sampled", results.sample),
        );
        self.line(
            "throughput",
            format!("{:.1} MB/s accepted, {:.0} MB behind", results.user_mb_per_sec, results.backlog_mb),
        );
        let (cores, disk) = (results.counters.cpu_bound_jobs, results.counters.io_bound_jobs);
        let bound = match results.is_cpu_bound {
            _ if cores + disk == 0 => "none has finished".to_owned(),
            true => format!(
                "CPU-bound: {cores} took longer for cores than for the disk, {disk} the other way round"
            ),
            false => format!(
                "I/O-bound: {disk} took longer for the disk than for cores, {cores} the other way round"
            ),
        };
        self.line("compactions", bound);
    }

    fn amplification(&mut self, results: &Results) {
        let (flushed, user) = (results.write_amplification, results.write_amplification_user);
        self.line("write amplification", format!("{flushed:.2}; with the log, by user bytes {user:.2}"));
        self.line("space amplification", format!("{:.3}", results.space_amplification));
    }

    /// Adds the stalls, their causes and remedies.
    fn waits(&mut self, results: &Results) {
        let (stopped, delayed) = (100.0 * results.stopped, 100.0 * results.delayed);
        self.line(
            "stalls",
            format!("{stopped:.1} % stopped, {delayed:.1} % delayed; at the end {}", results.stall_at_end),
        );
        self.line("debt at the end", format!("{} to compact", human(results.debt_bytes)));
        for (what, share) in results.bottlenecks.iter().take(3) {
            self.line("bottleneck", format!("{:.1} % of the time {}", share * 100.0, bottleneck(*what)));
        }
        for cause in results.stall_secs.keys() {
            self.line("", cause.explain());
        }
        let (reads, writes) = (percent(results.disk_read), percent(results.disk_write));
        self.line("use", format!("cores {}, disk reads {reads}, disk writes {writes}", percent(results.cpu)));
    }

    fn latencies(&mut self, results: &Results) {
        let us = |it: &Percentiles| {
            format!(
                "p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.1} µs",
                it.p50_us, it.p99_us, it.p999_us, it.max_us
            )
        };
        if results.put.max_us > 0.0 {
            self.line("put", us(&results.put));
        }
        if let Some(reads) = &results.reads {
            self.line("get", us(&results.get));
            self.line(
                "",
                format!(
                    "{:.2} filters skip and {:.3} blocks a present key, {:.2} and {:.3} an absent one; cache hits {:.1} %",
                    reads.filters_skipping,
                    reads.blocks,
                    reads.absent_filters,
                    reads.absent_blocks,
                    100.0 * reads.cache_hit
                ),
            );
        }
        if results.scan.max_us > 0.0 {
            self.line("scan", us(&results.scan));
        }
    }

    /// Adds the tree at the end of the run.
    fn tree(&mut self, results: &Results) {
        self.line("memory", human(results.memory_bytes));
        self.line("tree", format!("{}, {} live keys", human(results.tree_bytes), results.live_keys));
        for level in results.levels.iter().filter(|level| level.files > 0) {
            self.level(level);
        }
    }

    fn level(&mut self, level: &LevelResult) {
        let target =
            level.target_bytes.map_or(String::new(), |bytes| format!(", target {:.0}", bytes as f64 / MIB));
        let [bytes, mean, written] =
            [level.bytes as f64, level.mean_bytes, level.written_bytes as f64].map(|bytes| bytes / MIB);
        let (files, runs) =
            (counted(level.files as u64, "file", "files"), counted(level.runs as u64, "run", "runs"));
        self.line(
            &format!("  level {}", level.level),
            format!(
                "{bytes:.1} MiB{target}; {files} in {runs}; mean {mean:.1} MiB; {written:.1} MiB written"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use cairn_sim::resource;
    use cairn_sim::stall::Cause;

    use super::*;

    /// Goal: bottlenecks are described in words, never by identifiers of the code. Method: every
    /// resource and cause; no capital letter inside a word.
    #[test]
    fn bottlenecks_are_words() {
        let resources = resource::ALL.map(Bottleneck::Resource).into_iter();
        let causes = [Cause::Memtables, Cause::LevelZero, Cause::PendingCompaction].map(Bottleneck::Stall);
        let said: Vec<String> = resources
            .chain(causes)
            .chain([Bottleneck::Nothing, Bottleneck::Writers])
            .map(bottleneck)
            .collect();
        for words in &said {
            assert!(words.contains(' ') && !words.contains(char::is_uppercase), "{words}");
        }
        let mut different = said.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), said.len(), "{said:?}");
    }

    /// Goal: seconds keep their fraction: a run of 1.5 s is not reported as 2 s.
    #[test]
    fn parts_of_a_second_are_kept() {
        assert_eq!([0.25, 1.5, 900.0, 2.000_04].map(seconds), ["0.25 s", "1.5 s", "900 s", "2 s"]);
    }
}
