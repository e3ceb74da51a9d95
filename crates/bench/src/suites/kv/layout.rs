//! Formats a run in the layout of DKV's driver, for comparison by eye or by script.
//!
//! ```text
//! cairn benchmark suite
//!   n=1000000, batch=50000, threads=8, ops_per_thread=200000, sync_n=10000, seed=12345
//!
//! RocksDB (seq, n=1000000)
//!    put:    1167 ms  (856898 ops/sec)
//! ```
//! As in that driver, times are whole milliseconds, but those under ten have three more digits.
//! Rates are computed from nanoseconds. With several rounds, values are medians.

use super::options::{Mode, Options};
use crate::core::results::{Measurement, Run};
use crate::stores::cairn_kv;

/// Formats those modes of `options` that DKV's driver has, for every store of the run, in its
/// layout.
pub fn to_text(options: &Options, run: &Run) -> String {
    let threads = options.threads.first().copied().unwrap_or(8);
    let Options { n, batch, ops_per_thread, sync_n, seed, .. } = options;
    let mut out = format!(
        "cairn benchmark suite\n  n={n}, batch={batch}, threads={threads}, ops_per_thread={ops_per_thread}, \
         sync_n={sync_n}, seed={seed}\n"
    );
    for contender in &run.contenders {
        for mode in options.modes.iter().filter(|mode| Mode::DKV.contains(mode)) {
            let title = title(&contender.name);
            if *mode == Mode::Mt {
                let threads = if options.threads.is_empty() { &[8][..] } else { &options.threads };
                for &threads in threads {
                    out += &mt(run, &contender.name, &title, threads, *ops_per_thread);
                }
            } else {
                out += &crud(run, &contender.name, &title, &mode.name());
            }
        }
    }
    out
}

/// Returns the store's name in its makers' spelling. The library need not be installed.
fn title(name: &str) -> String {
    match name {
        cairn_kv::NAME => "Cairn",
        "rocksdb" => "RocksDB",
        "leveldb" => "LevelDB",
        "sqlite" => "SQLite",
        "lmdb" => "LMDB",
        other => other,
    }
    .to_owned()
}

fn find<'a>(
    run: &'a Run,
    contender: &str,
    mode: &str,
    operation: &str,
    metric: &str,
    threads: u32,
) -> Option<&'a Measurement> {
    run.measurements.iter().find(|m| {
        m.contender == contender
            && m.case.dataset == mode
            && m.case.operation == operation
            && m.case.threads == threads
            && m.metric == metric
            && m.verified
            && m.median > 0.0
    })
}

fn crud(run: &Run, contender: &str, title: &str, mode: &str) -> String {
    let figure = |operation| find(run, contender, mode, operation, "throughput", 1);
    let Some(put) = figure("put") else { return String::new() };
    let entries = put.case.entries;
    let mut out = format!("\n{title} ({mode}, n={entries})\n");
    for (operation, blanks) in [("put", "    "), ("get", "    "), ("update", " "), ("delete", " ")] {
        if let Some(measured) = figure(operation) {
            let ms = entries as f64 / measured.median * 1e3;
            out += &format!(
                "   {operation}:{blanks}{} ms  ({} ops/sec)\n",
                milliseconds(ms),
                general(measured.median)
            );
        }
    }
    out
}

fn mt(run: &Run, contender: &str, title: &str, threads: u32, each: u64) -> String {
    let figure = |operation, metric| find(run, contender, "mt", operation, metric, threads);
    let worst = "throughput of the slowest thread";
    let (Some(put), Some(get), Some(total)) =
        (figure("put", worst), figure("get", worst), figure("put and get", "throughput"))
    else {
        return String::new();
    };
    let line = |name: &str, measured: &Measurement, count: u64, unit: &str| {
        let ms = count as f64 / measured.median * 1e3;
        format!("  {name}: {} ms  ({} {unit})\n", milliseconds(ms), general(measured.median))
    };
    format!("\n{title} (mt, {threads} threads, {each} ops each)\n")
        + &line("put (worst thread)", put, each, "ops/sec/thread")
        + &line("get (worst thread)", get, each, "ops/sec/thread")
        + &line("total wall time (put+get)", total, 2 * each * u64::from(threads), "ops/sec total")
}

fn milliseconds(ms: f64) -> String {
    if ms < 9.9995 { format!("{ms:.3}") } else { format!("{ms:.0}") }
}

/// Formats six significant digits as a C++ stream does: with an exponent from a million on, and
/// without trailing zeros.
fn general(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let bare = |digits: &str| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        return bare(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", bare(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::results::{Case, Contender};
    use crate::core::testing;

    /// Goal: numbers look as a C++ stream writes them. Method: the values of the guide, and edge
    /// cases.
    #[test]
    fn numbers_look_like_a_stream() {
        for (value, text) in [
            (856_898.0, "856898"),
            (2_638_522.4, "2.63852e+06"),
            (61_671.34, "61671.3"),
            (53.239_58, "53.2396"),
            (1_000_000.0, "1e+06"),
            (999_999.6, "1e+06"),
            (942_008.0, "942008"),
            (11_904.8, "11904.8"),
            (0.000_012, "1.2e-05"),
            (10.0, "10"),
        ] {
            assert_eq!(general(value), text);
        }
        assert_eq!([milliseconds(1167.4), milliseconds(0.4123)], ["1167", "0.412"]);
    }

    /// Goal: the layout is DKV's, character by character except for the name of the suite. Method:
    /// the first tables of its guide, from their own rates.
    #[test]
    fn layout_is_dkvs() {
        let case = |dataset: &str, operation: &str, threads, entries| Case {
            operation: operation.to_owned(),
            dataset: dataset.to_owned(),
            entries,
            ..testing::case("get", "present", threads)
        };
        let rate = ("throughput", "ops/s", true);
        let worst = ("throughput of the slowest thread", "ops/s", true);
        let figure = |case: &Case, metric, value| testing::measurement("leveldb", case, metric, &[value]);
        let seq = |operation: &str| case("seq", operation, 1, 1_000_000);
        let mt = |operation: &str| case("mt", operation, 8, 1_600_000);
        let mut run = testing::sample_run();
        run.contenders = vec![Contender { name: "leveldb".to_owned(), ..run.contenders[0].clone() }];
        run.measurements = vec![
            figure(&seq("put"), rate, 1e9 / 1167.0),
            figure(&seq("get"), rate, 1e9 / 379.0),
            figure(&seq("update"), rate, 1e9 / 1124.0),
            figure(&seq("delete"), rate, 1e9 / 1007.0),
            figure(&mt("put"), worst, 2e8 / 3243.0),
            figure(&mt("get"), worst, 2e8 / 172.0),
            figure(&mt("put and get"), rate, 3.2e9 / 3397.0),
        ];
        let options = Options { sync_n: 1000, ..Options::default() };
        assert_eq!(
            to_text(&options, &run),
            "cairn benchmark suite\n  n=1000000, batch=50000, threads=8, ops_per_thread=200000, sync_n=1000, seed=12345\n\n\
             LevelDB (seq, n=1000000)\n   put:    1167 ms  (856898 ops/sec)\n   get:    379 ms  (2.63852e+06 ops/sec)\n   \
             update: 1124 ms  (889680 ops/sec)\n   delete: 1007 ms  (993049 ops/sec)\n\n\
             LevelDB (mt, 8 threads, 200000 ops each)\n  put (worst thread): 3243 ms  (61671.3 ops/sec/thread)\n  \
             get (worst thread): 172 ms  (1.16279e+06 ops/sec/thread)\n  \
             total wall time (put+get): 3397 ms  (942008 ops/sec total)\n"
        );
    }
}
