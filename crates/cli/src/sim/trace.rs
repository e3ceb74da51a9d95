//! A recorded trace as the simulator's workload.
//!
//! The workload writes and deletes the recorded keys in their recorded order, and starts again
//! after the last one. Keys are numbered in sort order, so that neighbours stay neighbours. They
//! include keys that were only found by lookups, because the store begins with all of them. Rates
//! are means over the recording, and a write has the mean size. For reads the simulator needs a
//! distribution: the zipf law that fits the lookups best.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cairn_sim::config::{Reads, Workload};
use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Distribution};
use cairn_trace::{Detail, KeyForm, Trace, stats};

use crate::error::{Error, Result};

/// The maximum number of writes taken from a trace, at four bytes each.
const WRITES_MAX: usize = 20_000_000;
/// Smaller exponents than this are treated as uniform use.
const THETA_MIN: f64 = 0.05;

/// Totals over a trace.
#[derive(Default)]
struct Sums {
    writes: u64,
    deletes: u64,
    values: (u64, u64),
    gets: u64,
    absent: u64,
    scans: u64,
    scan_entries: u64,
    key_bytes: u64,
    records: u64,
}

/// The result of a pass over a trace.
#[derive(Default)]
struct Gathered {
    sums: Sums,
    /// The number of distinct keys.
    keys: u64,
    /// The first writes in recorded order, as ranks of their keys in sort order.
    writes: Vec<u32>,
    /// The indexes of those writes that are deletions.
    deletes: Vec<u32>,
    /// The byte values that occur in keys, if keys are known.
    symbols: HashSet<u8>,
}

fn gather(trace: &Trace) -> Result<Gathered> {
    let Gathered { mut sums, mut writes, mut deletes, mut symbols, .. } = Gathered::default();
    // Maps each key to the number of distinct keys met before it. Its rank in sort order is only
    // known at the end, and with these numbers the writes need not keep their keys until then.
    let mut numbers: BTreeMap<(u32, &[u8]), u32> = BTreeMap::new();
    for event in trace.events() {
        let event = event?;
        let key = (event.keyspace, event.key);
        sums.records += 1;
        sums.key_bytes += u64::from(event.key_bytes);
        let is_key = match event.detail {
            Detail::Get(found) => {
                let is_absent = found == Some(None);
                sums.gets += 1;
                sums.absent += u64::from(is_absent);
                !is_absent
            }
            Detail::Block { .. } => {
                sums.gets += 1;
                false
            }
            Detail::Scan { entries, .. } => {
                sums.scans += 1;
                sums.scan_entries += entries;
                false
            }
            Detail::Put(bytes) | Detail::Merge(bytes) => {
                sums.values = (sums.values.0 + bytes, sums.values.1 + 1);
                true
            }
            Detail::Delete => {
                sums.deletes += 1;
                if writes.len() < WRITES_MAX {
                    deletes.push(writes.len() as u32);
                }
                true
            }
            Detail::DeleteRange { .. } | Detail::Statement(_) => continue,
        };
        if trace.header().keys == KeyForm::Raw && symbols.len() < 256 {
            symbols.extend(event.key);
        }
        let met = numbers.len() as u32;
        let number = is_key.then(|| *numbers.entry(key).or_insert(met));
        if event.kind().is_write() {
            sums.writes += 1;
            writes.extend(number.filter(|_| writes.len() < WRITES_MAX));
        }
    }
    let mut places = vec![0; numbers.len()];
    for (place, number) in (0..).zip(numbers.values()) {
        if let Some(slot) = places.get_mut(*number as usize) {
            *slot = place;
        }
    }
    writes.iter_mut().for_each(|write| *write = places.get(*write as usize).copied().unwrap_or(0));
    Ok(Gathered { sums, keys: numbers.len() as u64, writes, deletes, symbols })
}

/// Sets the workload of `config` to that of a trace, and returns notes for the user.
pub fn apply(trace: &Trace, config: &mut Config) -> Result<Vec<String>> {
    let Gathered { sums, keys, writes, deletes, symbols } = gather(trace)?;
    if sums.writes == 0 {
        return Err(Error::usage(format!(
            "{}: no writes, so a log-structured store has nothing to do",
            trace.path().display()
        )));
    }
    let key_bytes = (sums.key_bytes / sums.records.max(1)).max(1);
    let value_bytes = sums.values.0.checked_div(sums.values.1).unwrap_or(0).max(1);
    let seconds = trace.last_ns() as f64 / 1e9;
    let timed = trace.header().timed && seconds > 0.0;
    let rate = |count: u64| if timed { count as f64 / seconds } else { 0.0 };
    let (reads, mut notes) = reads(trace, &sums, &rate)?;
    config.workload = Workload {
        keys,
        key_bytes,
        key_radix: if symbols.is_empty() { 256 } else { symbols.len().clamp(2, 256) as u64 },
        value_bytes,
        distribution: Distribution::Trace { keys: Arc::new(writes), deletes: Arc::new(deletes) },
        deletes: sums.deletes as f64 / sums.writes as f64,
        traffic: if timed {
            let values = rate(sums.writes - sums.deletes) * value_bytes as f64;
            Traffic::Constant { mb_per_sec: (rate(sums.writes) * key_bytes as f64 + values) / 1e6 }
        } else {
            Traffic::Unlimited
        },
        reads,
    };
    if timed {
        config.duration_secs = seconds.max(1.0);
    } else {
        notes.push(
            "the trace has no times: writes come as fast as the store takes them, reads are left out"
                .to_owned(),
        );
    }
    if trace.sample() > 1 {
        notes.push(format!(
            "the trace is of one key in {}: rates and keys are those of the sample",
            trace.sample()
        ));
    }
    if sums.writes as usize > WRITES_MAX {
        notes.push(format!("the first {WRITES_MAX} of {} writes are used repeatedly", sums.writes));
    }
    Ok(notes)
}

fn reads(trace: &Trace, sums: &Sums, rate: &dyn Fn(u64) -> f64) -> Result<(Reads, Vec<String>)> {
    let mut notes = Vec::new();
    let mut reads = Reads {
        gets_per_sec: rate(sums.gets),
        absent: sums.absent as f64 / sums.gets.max(1) as f64,
        scans_per_sec: rate(sums.scans),
        scan_entries: sums.scan_entries.checked_div(sums.scans).unwrap_or(1).max(1),
        distribution: None,
    };
    let options = stats::Options { skew_of_lookups: true, ..stats::Options::default() };
    if reads.gets_per_sec + reads.scans_per_sec > 0.0
        && let Some(skew) = stats::of(trace, &options)?.skew
    {
        let theta = skew.zipf.theta;
        let even = theta < THETA_MIN;
        reads.distribution = Some(if even { Distribution::Uniform } else { Distribution::Zipfian { theta } });
        let law = if even { "even".to_owned() } else { format!("a zipf law of {theta:.2}") };
        let off = skew.zipf.distance * 100.0;
        notes.push(format!("reads of the trace are taken as {law}, which is up to {off:.1} % off"));
    }
    Ok((reads, notes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use cairn_trace::{Options, Recorder, Sample};
    use cairn_vfs::{Fs, ManualClock, MemFs};

    use super::*;

    /// Goal: a trace becomes an equivalent workload, and one without writes is refused. Method: a
    /// recording with known rates, including lookups of absent keys.
    #[test]
    fn traces_become_workloads() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let clock = Arc::new(ManualClock::new(std::time::Duration::ZERO));
        let options = Options { keys: KeyForm::Raw, ..Options::default() };
        let recorder = Recorder::with_clock(&fs, Path::new("/t"), options, clock.clone()).unwrap();
        for number in 0..1_000_u32 {
            clock.advance(std::time::Duration::from_millis(10));
            let key = format!("{:04}", number * 37 % 500);
            recorder.put(0, key.as_bytes(), 96);
            recorder.get(0, key.as_bytes(), None);
            recorder.get(0, format!("{}", 5_000 + number).as_bytes(), None);
            if number % 10 == 0 {
                recorder.delete(0, key.as_bytes());
            }
        }
        recorder.finish().unwrap();
        let mut config = Config::default();
        let open = |path: &str| Trace::open(&*fs, Path::new(path)).unwrap();
        let notes = apply(&open("/t"), &mut config).unwrap();
        let workload = &config.workload;
        assert_eq!(
            (workload.keys, workload.key_bytes, workload.key_radix, workload.value_bytes),
            (500, 4, 10, 96)
        );
        let Distribution::Trace { keys, deletes } = &workload.distribution else { panic!("{workload:?}") };
        assert_eq!((keys.len(), keys[0], keys[1], keys[2]), (1_100, 0, 0, 37));
        assert_eq!((deletes.len(), deletes[0], deletes[1]), (100, 1, 12));
        assert!((workload.deletes - 100.0 / 1_100.0).abs() < 1e-9);
        assert!((workload.reads.gets_per_sec - 200.0).abs() < 4.0 && workload.reads.absent == 1.0);
        let Traffic::Constant { mb_per_sec } = workload.traffic else { panic!("{workload:?}") };
        // A hundred puts of 100 bytes and ten deletions of four bytes per second.
        assert!((mb_per_sec - 0.010_04).abs() < 0.000_2, "{mb_per_sec}");
        assert!(notes.len() == 1 && notes[0].contains("reads of the trace"), "{notes:?}");
        config.check().unwrap();

        let recorder = Recorder::create_in(&fs, Path::new("/reads"), Options::default()).unwrap();
        recorder.get(0, b"a", None);
        recorder.finish().unwrap();
        let error = apply(&open("/reads"), &mut config).unwrap_err().to_string();
        assert!(error.contains("no writes"), "{error}");
    }

    /// Goal: the distribution of reads is fitted to lookups only. Method: zipf-distributed lookups
    /// among uniform writes and scans; scans alone, which yield no distribution.
    #[test]
    fn the_law_is_of_lookups() {
        let reads = |lookups: u32| {
            let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
            let clock = Arc::new(ManualClock::new(std::time::Duration::ZERO));
            let options = Options { keys: KeyForm::Raw, sample: Sample::OneIn(1), ..Options::default() };
            let recorder = Recorder::with_clock(&fs, Path::new("/t"), options, clock.clone()).unwrap();
            for number in 1..=100_u32 {
                clock.advance(std::time::Duration::from_millis(10));
                let key = number.to_be_bytes();
                (0..lookups / number).for_each(|_| recorder.get(0, &key, None));
                (0..50).for_each(|_| recorder.put(0, &key, 96));
                (0..50).for_each(|_| recorder.scan(0, &key, 5, false));
            }
            recorder.finish().unwrap();
            let mut config = Config::default();
            apply(&Trace::open(&*fs, Path::new("/t")).unwrap(), &mut config).unwrap();
            config.workload.reads.distribution
        };
        let Some(Distribution::Zipfian { theta }) = reads(10_000) else { panic!("no law") };
        assert!((theta - 1.0).abs() < 0.02, "{theta}");
        assert!(reads(0).is_none());
    }
}
