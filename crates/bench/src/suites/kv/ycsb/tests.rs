//! Streams of operations, without a store.

use super::draw::Drawing;
use super::*;
use crate::core::scratch::Scratch;
use crate::core::workload::Distribution;
use crate::stores::kv::KvSettings;
use crate::suites::kv::job::{KvJob, KvWorkload};
use crate::suites::kv::outcome::{Shape, TurnSetup};
use crate::suites::kv::testing::{COPY_BYTES, Fault, Planted, SETTLES_IN};

/// Goal: shares match the workload, and every operation accesses a record that exists by then.
/// Method: each core workload with one thread and with three; per thread, earlier records and its
/// own inserts.
#[test]
fn streams_follow_their_workload() {
    for letter in 'a'..='f' {
        for threads in [1, 3] {
            let spec = Spec::core(letter).unwrap();
            let mut drawing = Drawing::new(1000, 7);
            let streams = drawing.draw(&spec, 30_000, threads);
            assert_eq!(streams.len(), threads as usize);
            let mut counts = [0_u64; 5];
            let mut inserted = std::collections::BTreeSet::new();
            for stream in &streams {
                let mut own = std::collections::BTreeSet::new();
                for operation in stream.operations() {
                    counts[operation.kind as usize] += 1;
                    if operation.kind == Kind::Insert {
                        assert!(operation.number >= 1000 && inserted.insert(operation.number));
                        own.insert(operation.number);
                    } else {
                        assert!(operation.number < 1000 || own.contains(&operation.number), "{operation:?}");
                        assert!((1..=100).contains(&operation.length) == (operation.kind == Kind::Scan));
                    }
                }
            }
            assert_eq!(counts.iter().sum::<u64>(), 30_000);
            for (count, share) in counts.into_iter().zip(spec.mix.shares()) {
                assert!((count as f64 / 30_000.0 - share).abs() < 0.02, "{letter}: {counts:?}");
            }
            assert!(inserted.last().is_none_or(|last| *last < drawing.records()));
            assert_eq!(drawing.model().is_some(), threads == 1);
        }
    }
}

/// Goal: reads see the write before them. Method: one thread of workload A, with versions tracked
/// by client.
#[test]
fn versions_are_followed() {
    let mut drawing = Drawing::new(50, 1);
    let mut versions = [LOADED; 50];
    for _ in 0..2 {
        let streams = drawing.draw(&Spec::core('a').unwrap(), 5_000, 1);
        for operation in streams[0].operations() {
            let version = &mut versions[operation.number as usize];
            assert_eq!(operation.sees, *version);
            if operation.kind == Kind::Update {
                assert!(operation.writes > *version);
                *version = operation.writes;
            }
        }
    }
    let model = drawing.model().unwrap();
    assert!((0..50).all(|number| model.version(number) == versions[number as usize]));
}

/// Goal: workload D accesses the newest records. Method: half of its reads access the newest tenth
/// of the records that exist by then.
#[test]
fn latest_is_latest() {
    let spec = Spec::core('d').unwrap();
    assert!(matches!(spec.distribution, Distribution::Latest { .. }));
    let mut drawing = Drawing::new(1000, 3);
    let streams = drawing.draw(&spec, 20_000, 1);
    let (mut count, mut new, mut reads) = (1000, 0, 0);
    for operation in streams[0].operations() {
        match operation.kind {
            Kind::Insert => count += 1,
            _ => {
                reads += 1;
                new += u64::from(operation.number * 10 >= count * 9);
            }
        }
    }
    assert!(new * 2 > reads, "{new} of {reads}");
}

fn figure(fault: Fault, metric: KvMetric) -> Option<f64> {
    let scratch = Scratch::in_dir(&std::env::temp_dir(), "ycsb-test").unwrap();
    let spec = Spec { operations: Some(400), value_bytes: 20, ..Spec::core('a').unwrap() };
    let run = YcsbRun { records: 500, operations: 1, threads: 1, specs: vec![spec], settled: true };
    let setup = TurnSetup {
        store: "planted".to_owned(),
        dir: scratch.dir("store").unwrap(),
        settings: KvSettings::default(),
        shape: Shape { key_bytes: 16, value_bytes: 20 },
        seed: 1,
        timed: false,
    };
    let job = KvJob { setup, workload: KvWorkload::Ycsb(run) };
    let outcome = job.carry_out_with(&Planted { name: "planted", fault }).unwrap();
    let found =
        outcome.figures.into_iter().find(|figure| figure.metric == metric && figure.done.operation != "load");
    found.map(|figure| figure.values[0])
}

/// Goal: work that a pass leaves to the background is part of its settled throughput, and of no
/// other.
/// Method: a store whose every flush takes a while; of the two passes the first has four fifths of
/// the operations.
#[test]
fn background_work_is_part_of_settled_throughput() {
    let of = |metric| figure(Fault::SettlesLate, metric).unwrap();
    let (plain, settled) = (of(KvMetric::Throughput), of(KvMetric::SettledThroughput));
    let most = 400.0 / (SETTLES_IN.as_secs_f64() * 0.8);
    assert!(settled <= most * 1.001, "{settled}, at most {most}");
    assert!(plain > settled, "{plain} {settled}");
}

/// Goal: the memory of the final check does not count as the store's. Method: a store that copies
/// everything in a full scan.
#[test]
fn checks_are_not_the_stores_memory() {
    // Unknown if the process had a higher peak before.
    if let Some(bytes) = figure(Fault::CopiesInScans, KvMetric::PeakMemory) {
        assert!(bytes < COPY_BYTES as f64 / 2.0, "{bytes}");
    }
}
