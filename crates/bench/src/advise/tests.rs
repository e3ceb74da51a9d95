use std::collections::BTreeMap;

use super::*;
use crate::catalog::installed;
use crate::core::progress::{Progress, Silent};
use crate::core::stats::{self, Estimate};
use crate::core::workload::{Distribution, Durability};
use crate::stores::kv::KvSettings;
use crate::suites::kv::Mix;

fn options(dir: &std::path::Path) -> Options {
    let effort = Effort { finalists: 2, rounds: 2, load_secs: 2.0, turn_secs: 0.1 };
    Options { stores: &installed().kv, work_dir: dir.to_owned(), worker: None, effort, seed: 1, probes: None }
}

fn question(mix: Mix, stores: &[&str]) -> Question {
    let workload = Workload { records: 2_000, mix, ..Workload::default() };
    let stores = stores.iter().map(|name| (*name).to_owned()).collect();
    Question { trace: None, workload, constraints: Constraints { stores, ..Constraints::default() } }
}

fn verified(name: &str, samples: &[f64]) -> Verified {
    let Estimate { value, low, high } = stats::estimate(samples, 1);
    Verified {
        name: name.to_owned(),
        // The name begins with the store, as names of candidates do.
        store: name.split(',').next().unwrap_or_default().to_owned(),
        samples: samples.to_vec(),
        median: value,
        low,
        high,
        predicted: value,
        growth: 1.0,
        too_few: BTreeMap::new(),
        p99_us: BTreeMap::new(),
        bytes_per_entry: 1.0,
        memory_bytes: None,
        entries: 0,
    }
}

/// Goal: the adviser answers from end to end, its advice was run, and the constant store takes part
/// in read-only workloads. Method: a small workload of lookups, and one with writes.
#[test]
fn an_answer_from_end_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let stop = Stop::after(None);
    let only_reads = question(Mix { read: 1.0, ..Mix::default() }, &["cairn", "cairn-hash"]);
    let advice = advise(&only_reads, &options(dir.path()), &Silent, &stop).unwrap();
    let mut names: Vec<&str> = advice.verified.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cairn", "cairn-hash"], "{:?}", advice.discarded);
    assert!(advice.choice.name().is_some_and(|name| names.contains(&name)));
    assert!(advice.verified.iter().all(|one| one.samples.len() == 2 && one.median > 0.0));
    let text = to_text(&advice);
    assert!(text.contains("Settings of") && text.contains("predicted"), "{text}");
    let again: Advice = serde_json::from_str(&serde_json::to_string(&advice).unwrap()).unwrap();
    assert_eq!(again.choice, advice.choice);

    let writes = question(Mix { read: 0.5, update: 0.5, ..Mix::default() }, &["cairn", "cairn-hash"]);
    let advice = advise(&writes, &options(dir.path()), &Silent, &stop).unwrap();
    assert!(advice.discarded.iter().any(|one| one.name == "cairn-hash"), "{:?}", advice.discarded);
    assert!(advice.choice.name().is_some_and(|name| name.starts_with("cairn")));
}

/// Goal: a candidate that breaks a constraint is not an answer, and the reason names the
/// constraint. Method: constraints that no candidate can meet.
#[test]
fn constraints_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let stop = Stop::after(None);
    let mut asked = question(Mix { read: 1.0, ..Mix::default() }, &["cairn"]);
    asked.constraints.disk_bytes = Some(1000);
    let advice = advise(&asked, &options(dir.path()), &Silent, &stop).unwrap();
    assert_eq!(advice.choice, Choice::NoStore);
    assert!(advice.discarded.iter().any(|one| one.reason.contains("disk")), "{:?}", advice.discarded);
    asked.constraints =
        Constraints { p99_us: Some(1e-6), stores: vec!["cairn".to_owned()], ..Constraints::default() };
    let advice = advise(&asked, &options(dir.path()), &Silent, &stop).unwrap();
    assert_eq!(advice.choice, Choice::NoStore);
    assert!(to_text(&advice).contains("1 of 100"), "{:?}", advice.discarded);
    asked.constraints.stores = vec!["nosuch".to_owned()];
    let error = advise(&asked, &options(dir.path()), &Silent, &stop).unwrap_err().to_string();
    assert!(error.contains("nosuch") && error.contains("cairn-hash"), "{error}");
}

/// Goal: a lead within the noise is not a lead. Method: samples that overlap, samples that do not,
/// and samples that differ by an irrelevant amount.
#[test]
fn leads_within_the_noise_do_not_count() {
    let fast = verified("fast", &[100.0, 101.0, 99.0, 100.5, 100.2]);
    let near = verified("near", &[99.0, 102.0, 98.0, 100.4, 99.9]);
    let slow = verified("slow", &[50.0, 51.0, 49.0, 50.1, 50.0]);
    let of = |all: &[&Verified]| choose(&all.iter().map(|one| (*one).clone()).collect::<Vec<_>>(), 1, 1.0);
    assert_eq!(of(&[]), Choice::NoStore);
    assert!(matches!(of(&[&fast]), Choice::Winner { ahead_of: None, .. }));
    assert!(
        matches!(of(&[&fast, &slow]), Choice::Winner { ahead_of: Some((_, ratio, ..)), .. } if ratio > 1.9)
    );
    let names = vec!["fast".to_owned(), "near".to_owned()];
    assert_eq!(of(&[&fast, &near, &slow]), Choice::NoClearWinner { names });
    // The range of three samples holds the true median only three times of four, whatever their
    // interval claims.
    let short = |one: &Verified| Verified { samples: one.samples[..3].to_vec(), ..one.clone() };
    assert!(matches!(of(&[&short(&fast), &short(&slow)]), Choice::NoClearWinner { .. }));
    assert!(matches!(of(&[&short(&fast)]), Choice::Winner { ahead_of: None, .. }));
}

/// Returns advice that is put together by hand.
fn advice(question: Question, choice: Choice, verified: Vec<Verified>) -> Advice {
    Advice {
        question,
        machine: Vec::new(),
        probes: Vec::new(),
        choice,
        stopped: false,
        notes: Vec::new(),
        settings: String::new(),
        changes: Vec::new(),
        verified,
        verified_records: 2_000,
        predictions: Vec::new(),
        discarded: Vec::new(),
        costs: BTreeMap::new(),
    }
}

/// Goal: a store that is clearly ahead wins even if two of its settings are indistinguishable, and
/// then its default settings are taken. Method: overlapping settings far ahead of another store;
/// settings that do not overlap; and a case in which only the settings with the best median are
/// clearly ahead of the other store.
#[test]
fn settings_do_not_hide_the_store() {
    let large = verified("rocksdb, large buffers", &[100.0, 101.0, 99.0, 100.5, 100.2]);
    let usual = verified("rocksdb", &[99.0, 102.0, 98.0, 100.4, 99.9]);
    let slow = verified("sqlite", &[28.0, 28.1, 27.9, 28.05, 28.0]);
    let all = vec![large.clone(), usual.clone(), slow.clone()];
    let choice = choose(&all, 1, 1.0);
    let Choice::Winner { name, ahead_of: Some((second, ratio, low, high)), .. } = &choice else {
        panic!("{choice:?}")
    };
    assert_eq!((name.as_str(), second.as_str()), ("rocksdb", "sqlite"));
    assert!(3.4 < *low && low <= ratio && ratio <= high && *high < 3.7, "{choice:?}");
    let json = serde_json::to_value(&choice).unwrap();
    assert_eq!(json["winner"]["alike"], serde_json::json!(["rocksdb", "rocksdb, large buffers"]), "{json}");
    let asked = question(Mix { read: 0.5, update: 0.5, ..Mix::default() }, &[]);
    let text = to_text(&advice(asked, choice, all));
    assert!(text.contains("Take rocksdb: 3.5") && text.contains("x as fast as sqlite ("), "{text}");
    let settings = "Its settings rocksdb and rocksdb, large buffers cannot be told apart on this workload";
    assert!(text.contains(settings) && !text.contains("No clear winner"), "{text}");

    let behind = verified("rocksdb", &[80.0; 5]);
    let choice = choose(&[large.clone(), behind, slow], 1, 1.0);
    assert!(
        matches!(&choice, Choice::Winner { name, ahead_of: Some((second, ..)), .. } if *name == large.name && second == "sqlite"),
        "{choice:?}"
    );
    // The default settings are not clearly ahead of the other store, so the ones that are win.
    let wide = verified("rocksdb", &[60.0, 140.0, 60.0, 140.0, 99.0]);
    let near = verified("sqlite", &[90.0, 90.5, 89.5, 90.2, 90.1]);
    let choice = choose(&[large.clone(), wide, near.clone()], 1, 1.0);
    assert!(matches!(&choice, Choice::Winner { name, .. } if *name == large.name), "{choice:?}");
    // At the full size the settings change places while the store stays ahead; then a case in which
    // it does not.
    let grown = |of: &Verified, growth: f64| Verified { growth, ..of.clone() };
    let choice = choose(
        &[grown(&large, 0.5), grown(&verified("rocksdb", &[80.0; 5]), 0.9), grown(&near, 0.3)],
        1,
        1.0,
    );
    assert!(
        matches!(&choice, Choice::Winner { name, alike, .. } if *name == large.name && alike.len() == 2),
        "{choice:?}"
    );
    // No settings are ahead at both sizes.
    let choice = choose(
        &[grown(&large, 0.5), grown(&verified("rocksdb", &[80.0; 5]), 0.9), grown(&near, 0.7)],
        1,
        1.0,
    );
    assert!(matches!(&choice, Choice::NoClearWinner { names } if names.len() == 3), "{choice:?}");
    let choice = choose(&[grown(&large, 0.5), grown(&usual, 0.5), grown(&near, 0.9)], 1, 1.0);
    assert!(matches!(&choice, Choice::NoClearWinner { names } if names.len() == 3), "{choice:?}");
}

/// Goal: the text of an answer is accurate: that only one candidate ran, latencies under a
/// microsecond, sizes in the units of the question. Method: one store alone, without constraints
/// and with one; a lookup of 43 ns; each unit of a memory size.
#[test]
fn answers_are_in_the_words_of_the_question() {
    let mut only = verified("sqlite", &[100.0; 5]);
    only.p99_us = [("read".to_owned(), 0.043)].into();
    let alone = choose(&[only.clone()], 1, 1.0);
    let mut asked = question(Mix { read: 1.0, ..Mix::default() }, &["sqlite"]);
    let text = to_text(&advice(asked.clone(), alone.clone(), vec![only.clone()]));
    assert!(
        text.contains("Take sqlite: it is the only one that was run.") && !text.contains("constraints"),
        "{text}"
    );
    assert!(text.contains(" 0.043 "), "{text}");
    asked.constraints.p99_us = Some(100.0);
    let text = to_text(&advice(asked.clone(), alone.clone(), vec![only.clone()]));
    assert!(text.contains("the only one that was run, and it meets the constraints."), "{text}");
    let mut limited = advice(asked, alone, vec![only]);
    limited.discarded.push(Discarded { name: "cairn".to_owned(), reason: "took too long".to_owned() });
    assert!(to_text(&limited).contains("the only measured store that meets the constraints."));
    let shown = [1024.0, 1000.0, 65_536.0, 1.5 * 1_048_576.0, 3_221_225_472.0].map(bytes);
    assert_eq!(shown, ["1 KiB", "1000 B", "64 KiB", "1.5 MiB", "3 GiB"]);
}

/// Goal: a lead on a smaller store does not count if the prediction reverses the order at full
/// size. Method: the leader falls behind as the store grows, or stays ahead.
#[test]
fn lead_must_last_to_the_full_size() {
    let of = |growth: [f64; 2]| {
        let mut all = vec![verified("fast", &[100.0; 5]), verified("slow", &[50.0; 5])];
        all.iter_mut().zip(growth).for_each(|(one, growth)| one.growth = growth);
        choose(&all, 1, 1.0)
    };
    assert!(
        matches!(of([0.8, 0.9]), Choice::Winner { name, ahead_of: Some((_, ratio, ..)), .. } if name == "fast" && (ratio - 1.6 / 0.9).abs() < 1e-9)
    );
    let names = vec!["fast".to_owned(), "slow".to_owned()];
    assert_eq!(of([0.4, 0.9]), Choice::NoClearWinner { names });
}

/// Goal: a lead that is smaller than the uncertainty of the extrapolation does not count, and the
/// interval includes that uncertainty. Method: a lead of 10 %, with a smaller and a larger
/// uncertainty.
#[test]
fn the_way_to_the_full_size_is_doubtful() {
    let all = [verified("fast", &[110.0; 5]), verified("slow", &[100.0; 5])];
    let Choice::Winner { ahead_of: Some((_, ratio, low, high)), .. } = choose(&all, 1, 1.05) else {
        panic!()
    };
    assert!(low < ratio / 1.04 && ratio * 1.04 < high && low > 1.0, "{low} {ratio} {high}");
    assert!(matches!(choose(&all, 1, 1.15), Choice::NoClearWinner { .. }));
    let doubt = predict::doubt_of_growth(100_000, 6_400_000);
    assert!((doubt - 1.18).abs() < 1e-9 && predict::doubt_of_growth(100, 100) == 1.0, "{doubt}");
}

/// Ends the run at a step of the verification.
struct EndsAt<'a>(&'a Stop, usize);

impl Progress for EndsAt<'_> {
    fn group(&self, _: usize, _: usize, _: &str) {}

    fn step(&self, done: usize, _: usize, what: &str) {
        if done == self.1 && what.contains("round") {
            self.0.ask();
        }
    }

    fn note(&self, _: &str) {}
}

/// Goal: a run that ended early compares only whole rounds, names no winner from a single round,
/// and says so. Method: end in the third turn of two stores, and in the first.
#[test]
fn an_early_end_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let asked = question(Mix { read: 1.0, ..Mix::default() }, &["cairn", "cairn-hash"]);
    let stop = Stop::after(None);
    let advice = advise(&asked, &options(dir.path()), &EndsAt(&stop, 3), &stop).unwrap();
    assert!(advice.verified.iter().all(|one| one.samples.len() == 1), "{:?}", advice.verified);
    assert!(matches!(&advice.choice, Choice::NoClearWinner { names } if names.len() == 2));
    let text = to_text(&advice);
    assert!(text.contains("ended early, after 1 of 2 rounds"), "{text}");
    let stop = Stop::after(None);
    let error = advise(&asked, &options(dir.path()), &EndsAt(&stop, 1), &stop).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
}

/// Goal: all candidates run before the answer is that nobody meets the constraints. Method: one
/// store at a time, and a latency that none of them reaches.
#[test]
fn all_candidates_run_before_no_store_is_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut asked = question(Mix { read: 1.0, ..Mix::default() }, &["cairn", "cairn-hash"]);
    asked.constraints.p99_us = Some(1e-6);
    let mut options = options(dir.path());
    options.effort.finalists = 1;
    let advice = advise(&asked, &options, &Silent, &Stop::after(None)).unwrap();
    assert_eq!(advice.choice, Choice::NoStore);
    let mut out: Vec<&str> = advice.discarded.iter().map(|out| out.name.as_str()).collect();
    out.sort_unstable();
    assert_eq!(out, ["cairn", "cairn-hash"]);
    assert!(advice.discarded.iter().all(|out| out.reason.contains("1 of 100")), "{:?}", advice.discarded);
}

/// Goal: a percentile is reported only of enough operations. Method: a mix with a kind of operation
/// that makes up 1 %.
#[test]
fn rare_kinds_have_no_percentile() {
    let dir = tempfile::tempdir().unwrap();
    let mut asked = question(Mix { read: 0.99, update: 0.01, ..Mix::default() }, &["cairn"]);
    asked.constraints.p99_us = Some(1e9);
    let mut options = options(dir.path());
    options.effort.turn_secs = 1e-6;
    let advice = advise(&asked, &options, &Silent, &Stop::after(None)).unwrap();
    let one = &advice.verified[0];
    assert!(!one.p99_us.contains_key("update") && one.too_few["update"] < 1_000, "{one:?}");
    assert!(advice.notes.iter().any(|note| note.contains("kind update are too few")), "{:?}", advice.notes);
}

/// Goal: the memory limit is divided among the caches and buffers that a store has. Method: stores
/// with write buffers, stores without, and one with a cache per connection.
#[test]
fn memory_is_shared_out() {
    let mut asked = question(Mix { read: 0.9, update: 0.1, ..Mix::default() }, &[]);
    asked.workload.threads = 4;
    asked.workload.durability = Durability::Sync;
    asked.constraints.memory_bytes = Some(256 << 20);
    let (candidates, _) = candidate::candidates(&asked, &installed().kv).unwrap();
    for Candidate { store, settings, .. } in &candidates {
        let mib = settings.cache_bytes >> 20;
        let expected = match store.as_str() {
            "cairn" | "rocksdb" | "leveldb" | "fjall" => 160,
            "sqlite" => 56,
            _ => 224,
        };
        assert_eq!(mib, expected, "{store}");
    }
}

fn costs(records: u64, read: f64, update: f64, mixed: f64) -> Costs {
    Costs {
        records,
        secs: [(Kind::Read, read), (Kind::Update, update)].into(),
        mixed,
        loads_per_sec: 1e6,
        bytes_per_entry: 100.0,
        memory_bytes: None,
        entries: records,
    }
}

/// Goal: predictions follow their inputs. Method: growth with size, data that does not fit in
/// memory, background work.
#[test]
fn predictions_follow_their_inputs() {
    let candidate = Candidate {
        name: "lmdb".to_owned(),
        store: "lmdb".to_owned(),
        ours: false,
        settings: KvSettings::default(),
    };
    let machine = Machine { cache_bytes: Some(1e12), read_secs: 100e-6, write_bytes_per_sec: 1e9, cores: 4 };
    let workload = Workload { records: 320_000, distribution: Distribution::Uniform, ..Workload::default() };
    let all = [costs(20_000, 1e-6, 2e-6, 1e-6), costs(80_000, 1.2e-6, 3e-6, 1.2e-6)];
    // Two doublings added 0.2 µs, so the next two add as much.
    let prediction = predict::predict(&candidate, &all, &workload, &machine);
    assert!((prediction.per_sec * 1.4e-6 - 1.0).abs() < 1e-6, "{prediction:?}");
    assert!(prediction.range.0 < prediction.per_sec && prediction.per_sec < prediction.range.1);
    let small = Machine { cache_bytes: Some(16e6), ..machine };
    let missing = predict::predict(&candidate, &all, &workload, &small);
    assert!((missing.secs[1] - 0.95 * 0.5 * 100e-6).abs() < 1e-9, "{missing:?}");
    let hot = Workload {
        distribution: Distribution::HotSet { fraction: 0.25, probability: 0.9 },
        ..workload.clone()
    };
    assert!(predict::predict(&candidate, &all, &hot, &small).secs[1] < missing.secs[1] / 5.0);
    let half = Mix { read: 0.5, update: 0.5, ..Mix::default() };
    let only = Mix { update: 1.0, ..Mix::default() };
    let reads = Workload { mix: Mix { read: 1.0, ..Mix::default() }, records: 80_000, ..workload };
    let seconds = |mix| predict::seconds_of_mix(&all, &reads, mix, 80_000).unwrap();
    assert!((seconds(half) / 2.1e-6 - 1.0).abs() < 1e-6 && (seconds(only) / 3e-6 - 1.0).abs() < 1e-6);
}

/// Goal: an error in a workload file is reported with its line or its field. Method: files with one
/// error each, and a correct one.
#[test]
fn workload_files() {
    let right = r#"{"workload": {"records": 5000, "mix": {"read": 1, "update": 0, "scan": 0, "insert": 0, "read_modify_write": 0},
        "distribution": "hot set 0.2 0.8", "durability": "sync"}, "constraints": {"memory_bytes": 1000000}}"#;
    let question = from_json(right, "w.json", &installed().kv).unwrap();
    assert_eq!(question.workload.durability, Durability::Sync);
    assert_eq!(
        from_json(&serde_json::to_string(&question).unwrap(), "w.json", &installed().kv).unwrap(),
        question
    );
    let sizes = r#"{"workload": {"key_bytes": "32", "value_bytes": "64KiB"},
        "constraints": {"memory_bytes": "64MiB", "disk_bytes": "2 GiB"}}"#;
    let Question { workload, constraints, .. } = from_json(sizes, "w.json", &installed().kv).unwrap();
    assert_eq!((workload.key_bytes, workload.value_bytes), (32, 65_536));
    assert_eq!((constraints.memory_bytes, constraints.disk_bytes), (Some(64 << 20), Some(2 << 30)));
    let none = r#"{"constraints": {"memory_bytes": null}}"#;
    assert_eq!(from_json(none, "w.json", &installed().kv).unwrap().constraints, Constraints::default());
    let mix =
        from_json(r#"{"workload": {"mix": {"scan": 3}}}"#, "w.json", &installed().kv).unwrap().workload.mix;
    assert_eq!(mix, Mix { scan: 3.0, ..Mix::default() });
    for (text, what) in [
        ("{", "line 1: the text ends within an object"),
        ("5", "line 1: found 5, expected an object with settings"),
        (
            "{\n\"workload\": {\"recrods\": 1}}",
            "line 2: workload: unknown setting `recrods`, expected one of `name`, ",
        ),
        (
            "{\"workload\": {\n\"records\": \"many\"}}",
            "line 2: workload.records: found the string \"many\", expected a whole number from 100 to \
             4294967295",
        ),
        (
            "{\"workload\": {\"name\": \"a\",\n\"records\": 0\n}}",
            "line 2: workload.records: found 0, expected a whole number from 100 to ",
        ),
        (
            "{\"workload\": {\"threads\": 0}}",
            "line 1: workload.threads: found 0, expected a whole number from 1 to 256",
        ),
        (
            "{\"workload\": {\"records\": -1}}",
            "line 1: workload.records: found -1, expected a whole number from 100 to 4294967295",
        ),
        (
            "{\"workload\": {\n\"value_bytes\": 3}}",
            "line 2: workload.value_bytes: found 3, expected a size from 8 B to 16 MiB, such as 512 or \"64KiB\"",
        ),
        (
            "{\"constraints\": {\"memory_bytes\": -1}}",
            "line 1: constraints.memory_bytes: found -1, expected a size over 0, such as 268435456 or \"256MiB\"",
        ),
        (
            "{\"constraints\": {\"disk_bytes\": \"64QiB\"}}",
            "line 1: constraints.disk_bytes: found the string \"64QiB\", expected a size over 0",
        ),
        (
            "{\"workload\": {\"distribution\": \"zipfian 7\"}}",
            "line 1: workload.distribution: zipfian theta 7: expected over 0 and at most 5",
        ),
        (
            "{\"workload\": {\n\"distribution\": \"zipf\"\n}\n}",
            "line 2: workload.distribution: distribution \"zipf\": expected uniform, ",
        ),
        (
            "{\"workload\": {\"distribution\": {\"zipfian\": 1}}}",
            "line 1: workload.distribution: found an object, expected a distribution such as ",
        ),
        (
            "{\"workload\": {\"mix\":\n{\"raed\": 1}}}",
            "line 2: workload.mix: unknown setting `raed`, expected one of `read`, ",
        ),
        (
            "{\"workload\": {\n\"mix\": {\"read\": -1}}}",
            "line 2: workload.mix.read: found -1, expected a number of 0 or more",
        ),
        (
            "{\"workload\": {\n\"mix\": {\"read\": 0}}}",
            "line 2: workload.mix: found no share over 0, expected at least one of read, update, insert, scan and read_modify_write",
        ),
        (
            "{\"workload\": {\"durability\": \"fast\"}}",
            "line 1: workload.durability: unknown name `fast`, expected one of `memory`, `buffered`, `sync`",
        ),
        (
            "{\"constraints\":\n{\"p99_us\": 0}}",
            "line 2: constraints.p99_us: found 0, expected a number over 0",
        ),
        (
            "{\"constraints\":\n{\"p99_micros\": 0}}",
            "line 2: constraints.p99_us: found 0, expected a number over 0",
        ),
        (
            "{\"constraints\": {\n\"stores\": [\"cairn\", \"rocksbd\"]}}",
            "line 2: constraints.stores: found \"rocksbd\", expected cairn, ",
        ),
        (
            "{\"constraints\": {\"stores\": [\"cairn\", 5]}}",
            "line 1: constraints.stores[1]: found 5, expected a text",
        ),
    ] {
        let error = from_json(text, "w.json", &installed().kv).unwrap_err().to_string();
        assert!(error.starts_with(&format!("w.json, {what}")), "{text}: {error}");
    }
}

/// Goal: a store that maps its file accepts the map size that it gets. Method: workloads whose
/// bytes are not whole pages; the map has room for the data and is a multiple of every page size.
#[test]
fn maps_are_whole_pages() {
    for (records, value_bytes) in
        [(2_000_001, 101), (12_345_679, 37), (300, 8), (u64::from(u32::MAX), 1 << 24)]
    {
        let workload = Workload { records, value_bytes, ..Workload::default() };
        let question = Question { workload, ..Question::default() };
        let (candidates, _) = candidate::candidates(&question, &installed().kv).unwrap();
        for candidate in candidates {
            let map_bytes = candidate.settings.map_bytes;
            assert!(map_bytes.is_multiple_of(1 << 16) && map_bytes < 1 << 47, "{map_bytes}");
            assert!(map_bytes >= question.workload.data_bytes().min(1 << 45), "{map_bytes}");
        }
    }
}

/// Writes a trace of `rounds` rounds over 300 keys that exist before it. In each round, every key
/// is looked up twice and written once, then twenty new keys are written, and a scan follows.
fn make_trace(path: &std::path::Path, rounds: u64) {
    use cairn_trace::{Detail, Event, Header, KeyForm, Writer};
    let fs: std::sync::Arc<dyn Fs> = std::sync::Arc::new(StdFs::new());
    let header = Header {
        keys: KeyForm::Raw,
        timed: true,
        started_ns: 0,
        file_id: 1,
        sample: 1,
        adaptive: None,
        source: "a test".to_owned(),
    };
    let mut writer = Writer::create(&fs, path, &header).unwrap();
    let mut time_ns = 0;
    let mut add = |key: String, detail: Detail<'_>| {
        time_ns += 10_000;
        let (joined, key) = (false, key.as_bytes());
        let event = Event { time_ns, lane: 0, joined, keyspace: 0, key, key_bytes: key.len() as u32, detail };
        writer.add(&event).unwrap();
    };
    let key = |number: u64| format!("key of a program {number:04}");
    for round in 0..rounds {
        for number in 0..300 {
            add(key(number), Detail::Get(Some(Some(50))));
            add(key(number), Detail::Get(Some(Some(50))));
            add(key(number), Detail::Put(50));
        }
        (0..20).for_each(|number| add(key(1000 + round * 20 + number), Detail::Put(50)));
        add(key(0), Detail::Scan { entries: 10, backwards: false });
    }
    writer.finish().unwrap();
}

/// Goal: the question from a trace has the trace's mix, sizes, keys, skew and threads. Method: a
/// trace with known ones.
#[test]
fn a_trace_is_a_question() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.trace");
    make_trace(&path, 10);
    let Question { trace, workload, .. } = from_trace(&path, None).unwrap();
    assert_eq!(trace.as_deref(), Some(path.as_path()));
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let mix = workload.shares();
    let all = 10.0 * 921.0;
    assert!(close(mix.read, 6000.0 / all) && close(mix.update, 3000.0 / all), "{mix:?}");
    assert!(close(mix.insert, 200.0 / all) && close(mix.scan, 10.0 / all), "{mix:?}");
    // 300 entries existed before, and 200 were inserted.
    assert_eq!((workload.records, workload.key_bytes, workload.value_bytes), (500, 21, 50));
    assert_eq!((workload.scan_records, workload.threads, workload.name.as_str()), (19, 1, "app"));
    assert_eq!(workload.distribution, Distribution::Uniform);
    assert_eq!(from_trace(&path, Some(3)).unwrap().workload.threads, 3);
    // A workload file with a trace asks the same question, whatever other fields it has, except for
    // fields that a trace does not determine.
    let file = |workload: &str| {
        let trace = serde_json::to_string(&path).unwrap();
        from_json(&format!("{{\"trace\": {trace}, \"workload\": {{{workload}}}}}"), "w.json", &installed().kv)
            .unwrap()
            .workload
    };
    let told = file("\"records\": 7000, \"threads\": 3, \"durability\": \"sync\"");
    assert_eq!((told.records, told.threads, told.durability), (500, 3, Durability::Sync));
    assert_eq!(file(""), workload);
    workload.check().unwrap();
    let missing = from_trace(&dir.path().join("nothing"), None).unwrap_err().to_string();
    assert!(missing.contains("nothing"), "{missing}");
}

/// Goal: candidates for a trace replay it, and the answer reports the recorded rate and that the
/// trace is incomplete. Method: Cairn's own store on a trace with writes and without an end record.
#[test]
fn a_trace_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.trace");
    make_trace(&path, 4);
    let file = StdFs::new().open(&path, cairn_vfs::OpenOptions::write()).unwrap();
    file.set_len(file.len().unwrap() - 1).unwrap();
    let mut asked = from_trace(&path, None).unwrap();
    asked.constraints.stores = vec!["cairn".to_owned()];
    let advice = advise(&asked, &options(dir.path()), &Silent, &Stop::after(None)).unwrap();
    let one = &advice.verified[0];
    assert!(one.median > 0.0 && one.growth == 1.0 && one.bytes_per_entry > 0.0, "{one:?}");
    // Kinds have the names that traces use.
    assert!(one.p99_us.contains_key("get") || one.too_few.contains_key("get"), "{one:?}");
    assert!(
        advice.notes.iter().any(|note| note.contains("operations a second on average")),
        "{:?}",
        advice.notes
    );
    let told = advice.notes.iter().filter(|note| note.contains("the trace has no end")).count();
    assert_eq!(told, 1, "{:?}", advice.notes);
    assert_eq!(advice.question.trace, Some(path.clone()));
    // A turn shorter than the trace replays its last operations, on all of its entries.
    let mut short = options(dir.path());
    short.effort.turn_secs = 1e-6;
    let advice = advise(&asked, &short, &Silent, &Stop::after(None)).unwrap();
    assert!(advice.notes.iter().any(|note| note.contains("the last 2000 of its 368")), "{:?}", advice.notes);
    assert_eq!((advice.verified_records, advice.verified[0].growth), (asked.workload.records, 1.0));
    let again: Question = serde_json::from_str(&serde_json::to_string(&asked).unwrap()).unwrap();
    assert_eq!(again, asked);
}

/// Goal: a replay of the last part of a trace starts from the state that the earlier part leaves.
/// Method: the last round of four, and the first.
#[test]
fn last_part_of_a_trace_starts_from_the_state_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.trace");
    make_trace(&path, 4);
    let traced = Traced::new(&path, 1).unwrap();
    let of = |is_whole: bool| {
        let loaded = traced.part(921, is_whole).load().unwrap();
        (loaded.operations(), loaded.initial(), loaded.left(), loaded.inserts())
    };
    assert_eq!((of(true), of(false)), ((921, 360, 380, 20), (921, 300, 320, 20)));
    assert_eq!((traced.records, traced.entries_of_first(921).unwrap()), (380, 320));
}

/// Goal: the limit of finalists counts stores, so that additional settings of one store do not take
/// the place of another store, and a store that is left alone gets a rival. Method: predictions of
/// which the first two belong to one store.
#[test]
fn stores_are_finalists() {
    let dir = tempfile::tempdir().unwrap();
    let stop = Stop::after(None);
    let asked = question(Mix { update: 1.0, ..Mix::default() }, &["cairn", "cairn-hash"]);
    let (options, silent) = (options(dir.path()), Silent);
    let mut adviser = Adviser::new(&asked, &options, &silent, &stop).unwrap();
    let one = |name: &str, store: &str| Candidate {
        name: name.to_owned(),
        store: store.to_owned(),
        ours: false,
        settings: KvSettings::default(),
    };
    adviser.candidates =
        vec![one("a", "a"), one("a, large buffers", "a"), one("b", "b"), one("c", "c"), one("d", "d")];
    let prediction = |name: &str, per_sec: f64| Prediction {
        name: name.to_owned(),
        per_sec,
        range: (per_sec / 2.0, per_sec * 2.0),
        disk_bytes: 1.0,
        write_amp: None,
        secs: [1.0 / per_sec, 0.0, 0.0],
    };
    let all = [
        prediction("a", 100.0),
        prediction("a, large buffers", 99.0),
        prediction("b", 90.0),
        prediction("c", 80.0),
        prediction("d", 10.0),
    ];
    let names = |left: &[usize], kept: &[usize]| {
        let of = |places: &[usize]| places.iter().map(|at| &all[*at]).collect::<Vec<_>>();
        let found = adviser.finalists(&of(left), &of(kept));
        found.iter().map(|one| one.candidate.name.clone()).collect::<Vec<_>>().join("; ")
    };
    // Two stores run here, with whatever settings they have.
    assert_eq!(names(&[0, 1, 2, 3, 4], &[]), "a; a, large buffers; b");
    // A store that is left alone gets a rival, if there is one that could be as fast.
    assert_eq!(names(&[3, 4], &[2]), "b; c");
    assert_eq!(names(&[4], &[2]), "b");
    assert_eq!(names(&[4], &[]), "d");
}
