//! Tests of the suite with every build and every repetition in a process of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cairn_bench::catalog::{installed, serve};
use cairn_bench::core::process::Stop;
use cairn_bench::core::progress::Silent;
use cairn_bench::core::results::Contender;
use cairn_bench::core::scratch::Scratch;
use cairn_bench::core::worker::Worker;
use cairn_bench::core::workload::{KeyShape, Lookup, ValueShape};
use cairn_bench::stores::Compression;
use cairn_bench::suites::hash::job::{Build, DataSource, Effort};
use cairn_bench::suites::hash::{Matrix, Options, run_with};

fn worker() -> Worker {
    Worker { program: PathBuf::from(env!("CARGO_BIN_EXE_bench_worker")), arguments: Vec::new() }
}

fn synthetic(entries: u64) -> DataSource {
    DataSource::Synthetic { entries, keys: KeyShape::default(), values: ValueShape::default() }
}

/// Goal: a run in fresh processes has figures for every contender, and the builds' own peak memory.
/// Method: all available stores, two rounds at a small size.
#[test]
fn every_repetition_has_its_process() {
    let work = Scratch::temporary("fresh-test").unwrap();
    let mut options = Options::full();
    options.rounds = 2;
    options.probes = None;
    options.effort = Effort { order_keys: 2_000, warm_up_seconds: 1.0, seconds: 0.002 };
    options.work_dir = work.path().to_owned();
    options.worker = Some(worker());
    options.matrix = Some(Matrix {
        entries: vec![2_000],
        value_bytes: vec![56],
        compressions: vec![Compression::None],
        threads: vec![1, 2],
        lookups: vec![Lookup::Present, Lookup::Absent],
    });
    let skipped = Contender::left_out("sparkey-java", "sparkey-java", &cairn_bench::Error::Interrupted);
    let run =
        run_with(&options, installed().constant.all(), Err(&skipped), &Silent, &Stop::default()).unwrap();
    let with = |operation: &str, metric: &str| -> BTreeSet<String> {
        let found = run.measurements.iter().filter(|m| m.case.operation == operation && m.metric == metric);
        found.map(|m| m.contender.clone()).collect()
    };
    for store in installed().constant.all().stores {
        assert!(with("build", "time").contains(store.name()), "{}", store.name());
        assert!(with("build", "peak memory").contains(store.name()), "{}", store.name());
        for variant in store.variants().into_iter().filter(|variant| variant.suits(Compression::None)) {
            assert!(with("get", "throughput").contains(&variant.name), "{}", variant.name);
            assert!(with("get", "latency").contains(&variant.name), "{}", variant.name);
        }
    }
    let throughputs: Vec<_> = run.measurements.iter().filter(|m| m.metric == "throughput").collect();
    assert!(throughputs.len() > 20 && throughputs.iter().all(|m| m.verified && m.samples.len() == 2));
}

/// Goal: a failing job, an invalid job and a program that is not a worker yield errors with the
/// reason.
#[test]
fn failures_come_back() {
    let scratch = Scratch::temporary("fresh-test").unwrap();
    let job = |store: &str| Build {
        data: synthetic(10),
        store: store.to_owned(),
        compression: Compression::None,
        dir: scratch.path().to_owned(),
    };
    let error = worker().run(&job("no such store"), &Stop::default()).unwrap_err().to_string();
    assert!(error.contains("no such store"), "{error}");
    assert!(serve("{]").contains("the job cannot be read"));
    let cat = Worker { program: PathBuf::from("cat"), arguments: Vec::new() };
    let error = cat.run(&job("cairn-sparkey"), &Stop::default()).unwrap_err().to_string();
    assert!(error.contains("gave no valid answer"), "{error}");
    let outcome = worker().run(&job("cairn-sparkey"), &Stop::default()).unwrap();
    assert!(outcome.seconds > 0.0 && outcome.disk_bytes > 100, "{outcome:?}");
}
