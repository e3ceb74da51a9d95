//! Results as text for people.

use std::fmt::Write;

use cairn_sim::Results;
use cairn_sim::results::{Bottleneck, Outcome};

use crate::output::{counted, human};

const MIB: f64 = 1048576.0;

/// A resource or a stall, in words.
pub fn bottleneck(what: Bottleneck) -> String {
    match what {
        Bottleneck::Nothing => "nothing: the store takes all that comes".to_owned(),
        Bottleneck::Writers => "the writers' own processor time or log".to_owned(),
        Bottleneck::Resource(resource) => format!("{resource:?} is full"),
        Bottleneck::Stall(cause) => format!("writes stall: {cause:?}"),
    }
}

/// One result.
pub fn to_text(results: &Results) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:22} {value}");
    };
    let outcome = match results.outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::OutOfMemory => {
            format!("OUT OF MEMORY after {:.0} s: writers fell too far behind their traffic", results.secs)
        }
        Outcome::Stuck => {
            format!("STUCK after {:.0} s: writers are stopped and nothing can let them go on", results.secs)
        }
        other => format!("{other:?}"),
    };
    line("outcome", outcome);
    line(
        "virtual time",
        format!("{:.0} s, {} events, one key in {} followed", results.secs, results.events, results.sample),
    );
    line(
        "throughput",
        format!("{:.1} MB/s accepted, {:.0} MB behind", results.user_mb_per_sec, results.backlog_mb),
    );
    let bound = if results.is_cpu_bound { "CPU-bound" } else { "I/O-bound" };
    let counters = &results.counters;
    line(
        "background work",
        format!(
            "{bound}: {} jobs wait for cores, {} for the disk",
            counters.cpu_bound_jobs, counters.io_bound_jobs
        ),
    );
    line(
        "write amplification",
        format!(
            "{:.2}; with the log, by user bytes {:.2}",
            results.write_amplification, results.write_amplification_user
        ),
    );
    line("space amplification", format!("{:.3}", results.space_amplification));
    let waits = 100.0 * results.stopped;
    line(
        "stalls",
        format!(
            "{waits:.1} % stopped, {:.1} % delayed; at the end {:?}",
            100.0 * results.delayed,
            results.stall_at_end
        ),
    );
    line("debt at the end", format!("{} to compact", human(results.debt_bytes)));
    for (what, share) in results.bottlenecks.iter().take(3) {
        line("bottleneck", format!("{:.1} % of the time {}", share * 100.0, bottleneck(*what)));
    }
    for cause in results.stall_secs.keys() {
        line("", cause.explain().to_owned());
    }
    let percent = |value: f64| format!("{:.0} %", value * 100.0);
    line(
        "use",
        format!(
            "cores {}, disk reads {}, disk writes {}",
            percent(results.cpu),
            percent(results.disk_read),
            percent(results.disk_write)
        ),
    );
    let us = |it: &cairn_sim::histogram::Percentiles| {
        format!(
            "p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.0} µs",
            it.p50_us, it.p99_us, it.p999_us, it.max_us
        )
    };
    if results.put.max_us > 0.0 {
        line("put", us(&results.put));
    }
    if let Some(reads) = &results.reads {
        line("get", us(&results.get));
        line(
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
        line("scan", us(&results.scan));
    }
    line("memory", human(results.memory_bytes));
    line("tree", format!("{}, {} live keys", human(results.tree_bytes), results.live_keys));
    for level in results.levels.iter().filter(|level| level.files > 0) {
        let target =
            level.target_bytes.map_or(String::new(), |bytes| format!(", target {:.0}", bytes as f64 / MIB));
        line(
            &format!("  level {}", level.level),
            format!(
                "{:.1} MiB{target}; {} in {}; mean {:.1} MiB; {:.1} MiB written",
                level.bytes as f64 / MIB,
                counted(level.files as u64, "file", "files"),
                counted(level.runs as u64, "run", "runs"),
                level.mean_bytes / MIB,
                level.written_bytes as f64 / MIB
            ),
        );
    }
    text
}
