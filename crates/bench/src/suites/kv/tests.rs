//! The suite on small stores, correct and faulty.

use std::collections::BTreeSet;

use super::testing::{Fault, Planted};
use super::*;
use cairn_vfs::SeededRng;

use crate::core::process::Stop;
use crate::core::progress::Silent;
use crate::core::results::Run;
use crate::core::workload::{Durability, shuffle};
use crate::stores::bare_device;
use crate::stores::catalog::Selection;
use crate::stores::kv::{KvSettings, KvStore};

/// Returns options for everything at toy size, in this process.
fn tiny(modes: &[Mode]) -> Options {
    Options {
        n: 500,
        batch: 64,
        threads: vec![2],
        ops_per_thread: 120,
        sync_n: 400,
        modes: modes.to_vec(),
        value_bytes: Some(200),
        settings: KvSettings { cache_bytes: 1 << 20, write_buffer_bytes: 1 << 20, ..KvSettings::default() },
        data_bytes: 100_000,
        overwrite_bytes: 200_000,
        sweep_bytes: 20_000,
        rounds: 2,
        work_dir: std::env::temp_dir().join("cairn-kv-tests"),
        probes: None,
        ..Options::default()
    }
}

fn planted(fault: Fault) -> Selection<dyn KvStore> {
    let store = |name, fault| Box::new(Planted { name, fault }) as Box<dyn KvStore>;
    Selection { stores: vec![store("right", Fault::None), store("planted", fault)], skipped: Vec::new() }
}

fn measure(options: &Options, stores: Selection<dyn KvStore>) -> Run {
    run_with(options, stores, &Silent, &Stop::default()).unwrap()
}

/// Goal: every mode gives checked measurements for a correct store, with one sample per round,
/// including latencies, and the run describes the store completely. Method: all modes on a map in
/// memory, with a cache that is smaller than the data.
#[test]
fn every_mode_measures() {
    let mut options = tiny(&Mode::parse("all").unwrap());
    let own = "recordcount=100\noperationcount=200\nreadproportion=0.4\nupdateproportion=0.2\nscanproportion=0.2\n\
               insertproportion=0.2\nfieldlength=5\nscanlengthdistribution=zipfian\nmaxscanlength=10";
    options.ycsb = vec![YcsbSpec::from_properties("mine", own, &[]).unwrap().0];
    options.value_bytes = Some(2000);
    let run = measure(&options, planted(Fault::None));
    assert!(!run.stopped && run.measurements.iter().all(|m| m.verified));
    let seen: BTreeSet<(&str, &str)> =
        run.measurements.iter().map(|m| (m.case.dataset.as_str(), m.metric.as_str())).collect();
    for mode in Mode::parse("all").unwrap() {
        let name = mode.name();
        assert!(seen.contains(&(name.as_str(), "throughput")), "{name}: {seen:?}");
        let timed = !matches!(mode, Mode::Batch | Mode::ValueSizes);
        assert_eq!(seen.contains(&(name.as_str(), "latency")), timed, "{name}");
    }
    assert!(seen.contains(&("mine", "throughput")));
    for metric in ["space amplification", "longest operation", "stalled"] {
        assert!(seen.contains(&("overwrite-long", metric)), "{metric}");
    }
    for m in run.measurements.iter().filter(|m| m.metric == "throughput") {
        assert_eq!(
            (m.samples.len(), m.contender == bare_device::NAME),
            (2, m.contender == bare_device::NAME),
            "{m:?}"
        );
        assert!(m.median > 0.0);
    }
    let sizes: BTreeSet<u32> = run
        .measurements
        .iter()
        .filter(|m| m.case.dataset == "value-sizes")
        .map(|m| m.case.value_bytes)
        .collect();
    assert_eq!(sizes.len(), 7);
    let benchmarks: BTreeSet<&str> = run
        .measurements
        .iter()
        .filter(|m| m.case.dataset == "db_bench" && m.metric == "throughput")
        .map(|m| m.case.operation.as_str())
        .collect();
    assert!(Benchmark::ALL.iter().all(|benchmark| benchmarks.contains(benchmark.name())), "{benchmarks:?}");
    let right = run.contenders.iter().find(|contender| contender.name == "right").unwrap();
    assert!(right.settings["durability sync"].starts_with("WEAKER"), "{right:?}");
    let text = matrix::to_text(&run);
    assert!(text.contains("write amplification") || text.contains("space amplification"), "{text}");
    assert!(text.contains("Load generation") && text.contains("p99.9") && text.contains("WEAKER"), "{text}");
    assert!(layout::to_text(&options, &run).contains("\nright (sync-rand, n=400)\n   put:    "));
    let html = crate::report::render_html(&run, None);
    assert!(html.contains("ycsb-f") && html.contains("readwhilewriting"));
}

/// Goal: a benchmark that is requested again has separate measurements, even after another fill,
/// and a chosen value size applies to YCSB's workloads too. Method: db_bench's usual order with
/// reads before and after an overwrite.
#[test]
fn repeated_benchmarks_have_separate_measurements() {
    let mut options = tiny(&[Mode::DbBench, Mode::Ycsb('c')]);
    options.benchmarks = ["fillrandom", "readrandom", "overwrite", "readrandom", "fillseq", "readrandom"]
        .map(|name| name.parse().unwrap())
        .to_vec();
    let run = measure(&options, planted(Fault::None));
    let throughput =
        || run.measurements.iter().filter(|m| m.contender == "right" && m.metric == "throughput");
    assert!(throughput().all(|m| m.samples.len() == 2), "{:?}", run.measurements);
    let named = |name: &str| throughput().filter(|m| m.case.operation.starts_with(name)).count();
    assert_eq!((named("readrandom"), named("overwrite")), (3, 1));
    assert!(throughput().any(|m| m.case.dataset == "ycsb-c" && m.case.value_bytes == 200));
    assert!(throughput().all(|m| m.case.value_bytes == 200));
}

/// Goal: runs whose options influence the results are not compared with each other, but options
/// that only choose contenders and rounds do not prevent a comparison. Method: one option at a
/// time.
#[test]
fn settings_tell_options_apart() {
    let of = |change: &dyn Fn(&mut Options)| {
        let mut options = tiny(&[Mode::DbBench]);
        change(&mut options);
        options.settings()
    };
    let same = of(&|_| {});
    let own = |text: &str| YcsbSpec::from_properties("mine", text, &[]).unwrap().0;
    let reads = own("readproportion=1");
    let base = of(&|options| options.ycsb = vec![reads.clone()]);
    let changes: [&dyn Fn(&mut Options); 6] = [
        &|options| options.n = 501,
        &|options| options.overwrite_bytes = 1,
        &|options| options.benchmarks.reverse(),
        &|options| options.ycsb = vec![reads.clone()],
        &|options| options.ycsb = vec![own("updateproportion=1")],
        &|options| options.ycsb = vec![own("readproportion=1\noperationcount=7")],
    ];
    let others: BTreeSet<String> = changes.iter().map(|change| format!("{:?}", of(*change))).collect();
    assert!(
        others.len() == changes.len()
            && !others.contains(&format!("{same:?}"))
            && others.contains(&format!("{base:?}"))
    );
    assert_eq!(of(&|options| options.rounds = 9), same);
    assert_eq!(of(&|options| options.dbs.truncate(1)), same);
}

/// Goal: every planted fault is detected where it can show, costs the store its measurements there,
/// and costs the other store nothing.
/// Method: one fault at a time, in the modes that must see it.
#[test]
fn wrong_stores_are_caught() {
    let db_bench = || vec![Mode::DbBench];
    let cases: Vec<(Fault, Vec<Mode>)> = vec![
        (
            Fault::LosesPuts,
            vec![Mode::Seq, Mode::Mt, Mode::SyncWriters, Mode::OverwriteLong, Mode::Ycsb('a')],
        ),
        (Fault::KeepsOldValues, vec![Mode::Rand, Mode::OverwriteLong, Mode::Ycsb('a'), Mode::Ycsb('f')]),
        (Fault::MixesUpKeys, vec![Mode::Seq, Mode::Mt, Mode::Ycsb('b'), Mode::LargerThanCache]),
        (Fault::KeepsDeleted, vec![Mode::Seq, Mode::Rand, Mode::Batch, Mode::DbBench]),
        (Fault::CutsBatches, vec![Mode::Batch]),
        (Fault::FindsTheAbsent, vec![Mode::Rand, Mode::SyncRand, Mode::DbBench]),
        (Fault::ScansWithGaps, vec![Mode::Ycsb('e'), Mode::LargerThanCache]),
        (Fault::ShiftsMultiGets, db_bench()),
        (Fault::FlipsBytes, vec![Mode::Seq, Mode::Batch, Mode::DbBench]),
    ];
    for (fault, modes) in cases {
        for mode in modes {
            // With one thread, it is known which write each read must see.
            let options = Options { threads: vec![1], ..tiny(&[mode]) };
            let run = measure(&options, planted(fault));
            let has = |name: &str| run.measurements.iter().any(|m| m.contender == name);
            assert!(has("right"), "{fault:?} in {mode:?}: the right one lost its figures");
            assert!(!has("planted"), "{fault:?} is not caught by {mode:?}");
            let planted = run.contenders.iter().find(|contender| contender.name == "planted").unwrap();
            let reason = planted.skipped.as_deref().unwrap_or_default();
            assert!(reason.contains("wrong results from planted"), "{fault:?} in {mode:?}: {reason}");
        }
    }
}

/// Goal: benchmarks that only seek or that read on several threads detect faults too. Method: each
/// alone after a fill.
#[test]
fn single_benchmarks_check() {
    for (fault, benchmark) in [
        (Fault::FindsTheAbsent, Benchmark::ReadRandom),
        // Absent keys are not tested: the writer may have filled all of them in before the first
        // read.
        (Fault::MixesUpKeys, Benchmark::ReadWhileWriting),
        (Fault::ScansWithGaps, Benchmark::ReadSeq),
        (Fault::ShiftsMultiGets, Benchmark::MultiReadRandom),
    ] {
        let mut options = tiny(&[Mode::DbBench]);
        options.benchmarks = vec![Benchmark::FillRandom, benchmark];
        let run = measure(&options, planted(fault));
        assert!(run.measurements.iter().all(|m| m.contender == "right"), "{fault:?}, {benchmark:?}");
    }
}

/// Goal: a store that fails is left out of that mode with its error message, and the run continues.
#[test]
fn failures_are_survived() {
    let mut options = tiny(&[Mode::Seq, Mode::SyncSeq]);
    options.sync_n = 20;
    let run = measure(&options, planted(Fault::Fails));
    let modes: BTreeSet<&str> = run
        .measurements
        .iter()
        .filter(|m| m.contender == "planted")
        .map(|m| m.case.dataset.as_str())
        .collect();
    assert_eq!(modes.into_iter().collect::<Vec<_>>(), ["sync-seq"]);
    let planted = run.contenders.iter().find(|contender| contender.name == "planted").unwrap();
    assert!(planted.settings["not measured 1"].contains("the disk is gone"), "{planted:?}");
    assert!(planted.skipped.is_none());
}

/// Goal: a run that is stopped keeps its results and is marked as stopped.
#[test]
fn stopped_runs_say_so() {
    let stop = Stop::default();
    stop.ask();
    let run = run_with(&tiny(&[Mode::Seq]), planted(Fault::None), &Silent, &stop).unwrap();
    assert!(run.stopped && run.measurements.is_empty());
}

/// Goal: invalid options are refused by name before any work.
#[test]
fn options_are_checked() {
    let check = |change: &dyn Fn(&mut Options)| {
        let mut options = tiny(&Mode::DKV);
        change(&mut options);
        options.check().unwrap_err().to_string()
    };
    type Change = Box<dyn Fn(&mut Options)>;
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|o| o.n = 0), "n 0"),
        (Box::new(|o| o.batch = 0), "batch 0"),
        (Box::new(|o| o.ops_per_thread = 0), "ops-per-thread 0"),
        (Box::new(|o| o.sync_n = 0), "sync-n 0"),
        (Box::new(|o| o.rounds = 0), "rounds 0"),
        (Box::new(|o| o.threads = vec![2, 0]), "threads 0"),
        (Box::new(|o| o.dbs.clear()), "no dbs"),
        (Box::new(|o| o.modes.clear()), "no modes"),
        (Box::new(|o| o.key_bytes = 4), "key size 4"),
        (Box::new(|o| o.value_bytes = Some(4)), "value size 4"),
        (Box::new(|o| o.settings.cache_bytes = 10), "cache size 10"),
        (Box::new(|o| o.settings.write_buffer_bytes = 10), "write buffer size 10"),
        (
            Box::new(|o| {
                o.modes = vec![Mode::DbBench];
                o.benchmarks.clear();
            }),
            "no benchmarks",
        ),
    ];
    for (change, word) in cases {
        let error = check(&*change);
        assert!(error.contains(word), "{word}: {error}");
    }
    tiny(&Mode::DKV).check().unwrap();
    let error = Mode::parse("fast").unwrap_err().to_string();
    assert!(
        error.contains("fast") && error.contains("sync-rand") && error.contains("overwrite-long"),
        "{error}"
    );
    assert!("fillfast".parse::<Benchmark>().unwrap_err().to_string().contains("fillseq"));
}

/// Goal: defaults are those of DKV's guide, and each of its words selects its mode.
#[test]
fn defaults_are_dkvs() {
    let options = Options::default();
    let Options { n, batch, ops_per_thread, sync_n, seed, .. } = options;
    assert_eq!((n, batch, ops_per_thread, sync_n, seed), (1_000_000, 50_000, 200_000, 10_000, 12_345));
    let words = ["seq", "rand", "batch", "mt", "sync-seq", "sync-rand"];
    let modes: Vec<Mode> = words.iter().flat_map(|word| Mode::parse(word).unwrap()).collect();
    assert_eq!(options.modes, modes);
    let groups = plan(&options);
    assert_eq!(groups.len(), 6);
    let job::KvWorkload::Threads(threads) = &groups[3].workload else { panic!("{:?}", groups[3]) };
    assert_eq!((threads.threads, threads.operations_each), (8, 200_000));
    assert_eq!(groups[4].settings.durability, Durability::Sync);
    assert_eq!(groups[4].numbers(), 10_000);
}

/// Goal: the orders of different seeds differ, and one seed always gives the same order.
#[test]
fn turns_are_shuffled() {
    let order = |seed| {
        let mut rng = SeededRng::new(seed);
        let mut items: Vec<u32> = (0..20).collect();
        shuffle(&mut items, &mut rng);
        items
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    let mut sorted = order(3);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..20).collect::<Vec<_>>());
}
