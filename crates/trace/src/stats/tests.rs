use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, MemFs, Rng, SeededRng};

use super::*;
use crate::format::{Header, KeyForm};
use crate::writer::Writer;

/// Creates a trace of these events.
fn trace_of(timed: bool, fill: impl FnOnce(&mut dyn FnMut(u64, &[u8], Detail<'_>, bool))) -> Trace {
    sample_of(1, timed, fill)
}

/// Creates a trace that is a sample of one key in `sample`.
fn sample_of(
    sample: u32,
    timed: bool,
    fill: impl FnOnce(&mut dyn FnMut(u64, &[u8], Detail<'_>, bool)),
) -> Trace {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let path = Path::new("/t");
    let header = Header {
        keys: KeyForm::Raw,
        timed,
        started_ns: 0,
        file_id: 1,
        sample,
        adaptive: None,
        source: String::new(),
    };
    let mut writer = Writer::create(&fs, path, &header).unwrap();
    fill(&mut |time_ns, key, detail, joined| {
        let key_bytes = key.len() as u32;
        writer.add(&Event { time_ns, lane: 0, joined, keyspace: 0, key, key_bytes, detail }).unwrap();
    });
    writer.finish().unwrap();
    Trace::open(&*fs, path).unwrap()
}

fn gets(keys: impl Iterator<Item = u64>) -> Trace {
    trace_of(false, |add| keys.for_each(|key| add(0, &key.to_le_bytes(), Detail::Get(Some(Some(10))), false)))
}

/// Computes the LRU stack distance of each use with a plain list.
fn distances(keys: &[u64]) -> Vec<Option<usize>> {
    let mut stack: Vec<u64> = Vec::new();
    keys.iter()
        .map(|key| {
            let found = stack.iter().rev().position(|other| other == key);
            stack.retain(|other| other != key);
            stack.push(*key);
            found
        })
        .collect()
}

/// Draws keys from a zipf law, by its cumulative weights.
fn zipf(keys: u64, theta: f64, draws: usize, seed: u64) -> Vec<u64> {
    let mut sums = Vec::new();
    let mut sum = 0.0;
    for rank in 1..=keys {
        sum += (rank as f64).powf(-theta);
        sums.push(sum);
    }
    let mut rng = SeededRng::new(seed);
    let mut draw = || {
        let point = rng.unit() * sum;
        sums.partition_point(|below| *below < point) as u64
    };
    (0..draws).map(|_| draw()).collect()
}

/// Goal: the predicted hit shares are those of an LRU cache. Method: 8,000 draws of a skewed law
/// against a plain LRU stack, at every size of the curve. Small sizes are exact, larger ones within
/// the histogram's 3 %.
#[test]
fn caches_are_predicted() {
    let keys = zipf(1_000, 0.9, 8_000, 1);
    let plain = distances(&keys);
    let stats = of(&gets(keys.iter().copied()), &Options::default()).unwrap();
    let reuse = stats.reuse.unwrap();
    assert!(reuse.exact && reuse.caches.len() > 20);
    for point in &reuse.caches {
        let hits = plain.iter().flatten().filter(|distance| (**distance as f64) < point.keys).count();
        let real = hits as f64 / keys.len() as f64;
        let slack = if point.keys < 64.0 { 1e-9 } else { 0.01 };
        assert!((real - point.hit_share).abs() <= slack, "{point:?}: {real}");
    }
    let first = plain.iter().filter(|distance| distance.is_none()).count();
    assert!((reuse.first_share - first as f64 / 8_000.0).abs() < 1e-9);
    assert_eq!(stats.keys, first as f64);
}

/// Returns the hit share of a cache of about this many keys.
fn hit_share(reuse: &Reuse, size: f64) -> f64 {
    let point = reuse.caches.iter().min_by(|a, b| (a.keys - size).abs().total_cmp(&(b.keys - size).abs()));
    point.unwrap().hit_share
}

/// Goal: a sample of the keys predicts well enough. Method: 4,000 of 20,000 keys tracked, against
/// all of them.
#[test]
fn samples_predict_caches() {
    let keys = zipf(20_000, 0.7, 100_000, 2);
    let trace = gets(keys.iter().copied());
    let exact = of(&trace, &Options::default()).unwrap();
    let sampled = of(&trace, &Options { keys_max: 4_000, ..Options::default() }).unwrap();
    let (exact, sampled, keys) = (exact.reuse.unwrap(), sampled.reuse.unwrap(), (exact.keys, sampled.keys));
    assert!(exact.exact && !sampled.exact && sampled.rate < 0.3, "{sampled:?}");
    assert!((keys.1 / keys.0 - 1.0).abs() < 0.1, "{keys:?}");
    for size in [100.0, 1_000.0, 5_000.0, 15_000.0] {
        let (exact, sampled) = (hit_share(&exact, size), hit_share(&sampled, size));
        assert!((exact - sampled).abs() < 0.08, "{size}: {exact} {sampled}");
    }
}

/// Goal: a key with a large part of all uses does not distort predictions from a sample, whether or
/// not it is in the sample. Method: one key gets 30 % of the uses; it has the smallest hash of all,
/// or the largest. 1,000 of 20,000 keys are tracked, against all of them.
#[test]
fn hot_keys_do_not_spoil_samples() {
    let id = |key: &u64| cairn_codec::checksum::xxh3_64_seeded(&key.to_le_bytes(), 0);
    let (first, last) = ((0..20_000).min_by_key(id).unwrap(), (0..20_000).max_by_key(id).unwrap());
    for hot in [first, last] {
        let mut rng = SeededRng::new(5);
        let trace = gets((0..100_000).map(|_| if rng.unit() < 0.3 { hot } else { rng.below(20_000) }));
        let exact = of(&trace, &Options::default()).unwrap();
        let sampled = of(&trace, &Options { keys_max: 1_000, ..Options::default() }).unwrap();
        let hottest = |stats: &Stats| stats.skew.as_ref().unwrap().hottest_key;
        // The hottest tracked key's share of the uses of all keys.
        let expected = if hot == first { hottest(&exact) } else { 0.000_2 };
        assert!((hottest(&sampled) - expected).abs() < 0.000_2, "{}, {expected}", hottest(&sampled));
        let (exact, sampled) = (exact.reuse.unwrap(), sampled.reuse.unwrap());
        assert!((exact.first_share - sampled.first_share).abs() < 0.03, "{exact:?} {sampled:?}");
        for size in [1_000.0, 5_000.0, 15_000.0] {
            let (exact, sampled) = (hit_share(&exact, size), hit_share(&sampled, size));
            assert!((exact - sampled).abs() < 0.08, "{size}: {exact} {sampled}");
        }
    }
}

/// Goal: the skew of a sample is scaled to that of the whole. Method: one key in ten, with the uses
/// that a zipf law with exponent 1 gives to every tenth rank; the hottest key's share of all uses.
#[test]
fn skew_is_scaled() {
    let uses = |at: u64| (100_000.0 / (at as f64 * 10.0 + 5.5)).round() as u64;
    let trace = sample_of(10, false, |add| {
        for key in 0..200_u64 {
            (0..uses(key)).for_each(|_| add(0, &key.to_le_bytes(), Detail::Get(None), false));
        }
    });
    let skew = of(&trace, &Options::default()).unwrap().skew.unwrap();
    assert!((skew.zipf.theta - 1.0).abs() < 0.01 && skew.rate == 0.1, "{skew:?}");
    let all: u64 = (0..200).map(uses).sum();
    assert!((skew.hottest_key - uses(0) as f64 / (all * 10) as f64).abs() < 1e-9, "{skew:?}");
}

/// Goal: the skew of lookups ignores other operations, and the rest of the statistics does not.
/// Method: keys that are looked up, written and scanned.
#[test]
fn lookups_have_a_skew_of_their_own() {
    let trace = trace_of(false, |add| {
        (0..6).for_each(|_| add(0, b"a", Detail::Get(None), false));
        (0..2).for_each(|_| add(0, b"b", Detail::Block { bytes: 0, hit: None }, false));
        (0..5).for_each(|_| add(0, b"c", Detail::Put(1), false));
        (0..9).for_each(|_| add(0, b"a", Detail::Scan { entries: 1, backwards: false }, false));
    });
    let skew = |skew_of_lookups: bool| {
        let stats = of(&trace, &Options { skew_of_lookups, ..Options::default() }).unwrap();
        assert_eq!((stats.records, stats.keys), (22, 3.0));
        let skew = stats.skew.unwrap();
        (skew.uses_mean, skew.hottest_key)
    };
    assert_eq!(skew(true), (4.0, 0.75));
    assert_eq!(skew(false), (22.0 / 3.0, 15.0 / 22.0));
}

/// Goal: a zipf law's exponent is recovered, and other distributions are not reported as zipf.
/// Method: draws of three laws; a hot set.
#[test]
fn zipf_laws_are_found() {
    for theta in [0.6, 0.99, 1.3] {
        let skew =
            of(&gets(zipf(2_000, theta, 40_000, 3).into_iter()), &Options::default()).unwrap().skew.unwrap();
        assert!((skew.zipf.theta - theta).abs() < 0.06 && skew.zipf.fits, "{theta}: {:?}", skew.zipf);
    }
    let mut rng = SeededRng::new(4);
    let hot = (0..40_000).map(|_| if rng.unit() < 0.8 { rng.below(10) } else { rng.below(5_000) });
    let skew = of(&gets(hot), &Options::default()).unwrap().skew.unwrap();
    assert!(!skew.zipf.fits && skew.hottest_1_percent > 0.79, "{:?}", skew.zipf);
    let even = of(&gets((0..40_000).map(|number| number % 1000)), &Options::default()).unwrap().skew.unwrap();
    assert!(even.zipf.theta < 0.01 && even.zipf.fits && (even.hottest_10_percent - 0.1).abs() < 1e-9);
    let once = of(&gets(0..1000), &Options::default()).unwrap();
    assert!(!once.skew.unwrap().zipf.fits && once.reuse.unwrap().caches.is_empty());
}

/// Goal: mix, sizes, batches and times are correct. Method: a small trace with known numbers.
#[test]
fn operations_are_counted() {
    let trace = trace_of(true, |add| {
        for second in 0..10_u64 {
            let at = second * 1_000_000_000;
            add(at, b"key", Detail::Put(100), false);
            add(at, b"key", Detail::Delete, true);
            add(at, b"other key", Detail::Get(Some(None)), false);
            add(at, b"key", Detail::Scan { entries: 50, backwards: false }, false);
            add(at, b"key", Detail::Get(None), false);
        }
    });
    let stats = of(&trace, &Options { windows: 10, ..Options::default() }).unwrap();
    assert_eq!((stats.records, stats.secs, stats.batches, stats.batch_mean), (50, 9.0, 10, 2.0));
    assert_eq!((stats.read_share, stats.write_share, stats.found_share), (Some(0.6), Some(0.4), Some(0.0)));
    assert_eq!((stats.keys, stats.keyspaces, stats.ending, stats.dropped), (2.0, 1, "complete", Some(0)));
    assert_eq!(stats.scan_entries.unwrap().p50, 50);
    assert_eq!(stats.value_bytes.unwrap().mean, 100.0);
    assert_eq!((stats.key_bytes.unwrap().min, stats.key_bytes.unwrap().max), (3, 9));
    assert!(
        stats.windows.iter().all(|window| window.operations == 5 && window.writes == 2 && window.keys == 2.0)
    );
    assert_eq!(stats.windows.iter().map(|window| window.new_keys).sum::<f64>(), 2.0);
    let arrival = stats.arrival.unwrap();
    assert!((arrival.mean_per_sec - 50.0 / 9.0).abs() < 1e-9, "{arrival:?}");
    assert_eq!((arrival.slice_secs, arrival.dispersion, arrival.idle_share), (1.0, 0.0, 0.0));
    assert_eq!(serde_json::to_value(&stats.kinds).unwrap()[0]["kind"], "get");
}

/// Goal: statements count as reads or writes of rows, or as neither. Method: each kind, with
/// comments, parentheses and strings that look like other kinds.
#[test]
fn statements_are_classified() {
    let reads = [
        "SELECT 1",
        "  select * from t for update",
        "VALUES (1)",
        "TABLE t",
        "-- delete\n /* insert /* nested */ */ (SELECT 1)",
        "((SELECT 1) UNION SELECT 2)",
        "WITH a AS (SELECT 'insert into' FROM t), b AS (VALUES (1)) SELECT * FROM a FOR UPDATE",
        "WITH RECURSIVE a (update) AS NOT MATERIALIZED (SELECT 1) TABLE a",
        "WITH a AS (SELECT a AS update, $1, $x$ $1 delete $x$ FROM t) SELECT a AS \"insert\" FROM a",
        "COPY t TO STDOUT",
        "COPY (SELECT x FROM t) TO STDOUT",
    ];
    let writes = [
        "INSERT INTO t SELECT 1",
        "update t set a = 1",
        "DELETE FROM t",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
        "COPY t (a, b) FROM STDIN",
        "TRUNCATE t",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "with gone as (delete from t returning *) select * from gone",
        "WITH a AS MATERIALIZED (UPDATE t SET a = 1 RETURNING a) TABLE a",
    ];
    let others =
        ["CREATE TABLE t (a int)", "BEGIN", "", "/* open", "EXPLAIN SELECT 1", "SET a = 'select'", "WITH"];
    let shares = |texts: &[&str]| {
        let trace = trace_of(false, |add| {
            texts.iter().for_each(|text| add(0, text.as_bytes(), Detail::Statement(1), false));
        });
        let stats = of(&trace, &Options { windows: 1, ..Options::default() }).unwrap();
        let json = serde_json::to_value(&stats).unwrap();
        (json["read_share"].as_f64(), json["write_share"].as_f64(), stats.windows[0].writes)
    };
    for text in reads {
        assert_eq!(shares(&[text]), (Some(1.0), Some(0.0), 0), "{text}");
    }
    for text in writes {
        assert_eq!(shares(&[text]), (Some(0.0), Some(1.0), 1), "{text}");
    }
    for text in others {
        assert_eq!(shares(&[text]), (Some(0.0), Some(0.0), 0), "{text}");
    }
    assert_eq!(shares(&["SELECT 1", "BEGIN", "DELETE FROM t", "COMMIT"]), (Some(0.25), Some(0.25), 1));
}

/// Goal: an empty trace has statistics too.
#[test]
fn empty_trace_has_statistics() {
    let stats = of(&trace_of(true, |_| ()), &Options::default()).unwrap();
    assert_eq!((stats.records, stats.skew, stats.reuse, stats.arrival), (0, None, None, None));
}

/// Goal: a clock of whole seconds does not look like bursts, and real bursts are detected. Method:
/// three operations a second for an hour, with a clock of whole seconds and with one of
/// nanoseconds; more than two hours, whose slices are longer than a second.
#[test]
fn coarse_clocks_make_no_bursts() {
    let arrival = |seconds: u64, odd_ns: u64| {
        let trace = trace_of(true, |add| {
            for number in 0..seconds * 3 {
                add(number / 3 * 1_000_000_000 + number * odd_ns, b"key", Detail::Get(None), false);
            }
        });
        of(&trace, &Options::default()).unwrap().arrival.unwrap()
    };
    let coarse = arrival(3_600, 0);
    assert_eq!((coarse.slice_secs, coarse.dispersion, coarse.idle_share), (1.0, 0.0, 0.0));
    let fine = arrival(3_600, 7);
    assert!(fine.slice_secs < 0.5 && fine.dispersion > 1.0 && fine.idle_share > 0.5, "{fine:?}");
    let long = arrival(15_000, 0);
    assert_eq!((long.slice_secs, long.dispersion), (2.0, 0.0));
}

/// Goal: the peak rate is never below the mean rate. Method: a trace that is shorter than a slice.
#[test]
fn short_traces_arrive_too() {
    let trace = trace_of(true, |add| {
        for at in [0, 100_000] {
            add(at, b"key", Detail::Get(None), false);
        }
    });
    let arrival = of(&trace, &Options::default()).unwrap().arrival.unwrap();
    assert_eq!((arrival.mean_per_sec, arrival.peak_per_sec), (20_000.0, 20_000.0));
}
