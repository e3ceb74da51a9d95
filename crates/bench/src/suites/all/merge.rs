//! Merges the parts of a suite into one run, as if they had been measured together.

use std::collections::BTreeMap;

use super::journal::Head;
use super::options::SuiteName;
use crate::core::results::{Contender, NOT_MEASURED, Probe, Run, SCHEMA_VERSION};

/// Merges the runs of a suite's parts; `None` if there are none. Parts keep their order.
pub(super) fn runs(head: &Head, suite: SuiteName, parts: &[&Run]) -> Option<Run> {
    let first = parts.first()?;
    let sitting = head.sittings.first();
    let mut run = Run {
        schema: SCHEMA_VERSION,
        suite: suite.word().to_owned(),
        started: first.started.clone(),
        mode: head.options.mode_word(),
        seed: head.options.seed,
        machine: sitting.map_or_else(|| first.machine.clone(), |sitting| sitting.machine.clone()),
        probes: sitting.map(|sitting| sitting.probes.clone()).unwrap_or_default(),
        contenders: Vec::new(),
        data: String::new(),
        settings: BTreeMap::new(),
        measurements: Vec::new(),
        stopped: false,
    };
    for part in parts {
        add_probes(&mut run.probes, &part.probes);
        part.contenders.iter().for_each(|contender| add_contender(&mut run.contenders, contender));
        // Each part describes its data, and most descriptions are the same.
        if !run.data.contains(&part.data) {
            run.data =
                if run.data.is_empty() { part.data.clone() } else { format!("{} {}", run.data, part.data) };
        }
        part.settings.iter().for_each(|setting| add_setting(&mut run.settings, setting));
        run.measurements.extend(part.measurements.iter().cloned());
        run.stopped |= part.stopped;
    }
    Some(run)
}

/// Parts may be measured with different settings, for example fewer rounds for long ones. The
/// merged run lists all values.
fn add_setting(all: &mut BTreeMap<String, String>, (name, value): (&String, &String)) {
    add(all.entry(name.clone()).or_default(), value);
}

/// Appends a value to the known ones, unless it is already one of them.
fn add(known: &mut String, value: &str) {
    if known.is_empty() {
        value.clone_into(known);
    } else if !value.is_empty() && !known.split("; ").any(|one| one == value) {
        *known = format!("{known}; {value}");
    }
}

fn add_probes(all: &mut Vec<Probe>, more: &[Probe]) {
    for probe in more {
        if !all.iter().any(|known| known.name == probe.name) {
            all.push(probe.clone());
        }
    }
}

/// Adds a contender of a part. A contender that ran in any part counts as having run. The reason
/// that it did not run in another part is listed among its settings, as within a part.
fn add_contender(all: &mut Vec<Contender>, more: &Contender) {
    let Some(known) = all.iter_mut().find(|known| known.name == more.name) else {
        all.push(more.clone());
        return;
    };
    let mut problems: Vec<String> = Vec::new();
    for (name, value) in known.settings.iter().chain(&more.settings) {
        if name.starts_with(NOT_MEASURED) && !problems.contains(value) {
            problems.push(value.clone());
        }
    }
    let mut absent = None;
    match (known.skipped.take(), more.skipped.clone()) {
        (Some(reason), Some(_)) => known.skipped = Some(reason),
        (Some(reason), None) | (None, Some(reason)) if !problems.contains(&reason) => absent = Some(reason),
        _ => {}
    }
    // A library whose version changed between two sittings lists both versions.
    add(&mut known.version, &more.version);
    known.ours |= more.ours;
    known.settings.extend(more.settings.clone());
    Contender::set_failures(&mut known.settings, problems);
    // A contender that does not take part in a part has not failed, since it may not support that
    // part's operations.
    known.settings.extend(absent.map(|reason| (LEFT_OUT.to_owned(), reason)));
}

/// The setting that says why a contender did not take part in some of the parts.
const LEFT_OUT: &str = "left out of a part";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::sample_run;
    use crate::suites::all::{Options, Sitting};

    fn head() -> Head {
        let probes = vec![Probe { name: "random read".to_owned(), value: 1.0, unit: "ns".to_owned() }];
        Head::of(&Options::quick(), Sitting::now(vec![("cpu".to_owned(), "x".to_owned())], probes))
    }

    /// Goal: a suite in two parts reads like one run: all measurements, every contender once,
    /// probes of the sitting first, problems of both parts.
    #[test]
    fn parts_make_one_run() {
        let (mut one, mut two) = (sample_run(), sample_run());
        one.probes = vec![Probe { name: "load".to_owned(), value: 1.5, unit: "ns".to_owned() }];
        let problem = |text: &str| (format!("{NOT_MEASURED} 1"), text.to_owned());
        one.contenders[0].settings.extend([problem("no space"), ("cache".to_owned(), "1".to_owned())]);
        two.contenders[0].settings.extend([problem("no time")]);
        two.contenders[4].skipped = Some("wrong answers".to_owned());
        two.contenders[4].version = "2.0".to_owned();
        let versions = format!("{}; 2.0", one.contenders[4].version);
        two.stopped = true;
        let of = |operations: &str| BTreeMap::from([("operations".to_owned(), operations.to_owned())]);
        (one.settings, two.settings) = (of("7"), of("9"));
        let run = runs(&head(), SuiteName::Hash, &[&one, &two]).unwrap();
        assert_eq!(run.measurements.len(), one.measurements.len() + two.measurements.len());
        assert_eq!(run.contenders.len(), one.contenders.len());
        let of = |name: &str| run.contenders.iter().find(|known| known.name == name).unwrap();
        let settings: Vec<&str> = of("cairn").settings.values().map(String::as_str).collect();
        assert_eq!(settings, ["1", "no space", "no time"]);
        assert_eq!((of("lmdb").skipped.as_ref(), of("sqlite").skipped.as_deref()), (None, Some("not here")));
        assert_eq!(of("lmdb").settings[LEFT_OUT], "wrong answers");
        assert_eq!((of("lmdb").failures(), of("cairn").failures()), (0, 2));
        assert_eq!(
            run.probes.iter().map(|probe| probe.name.as_str()).collect::<Vec<_>>(),
            ["random read", "load"]
        );
        assert!(run.stopped && run.mode == "quick" && run.data == one.data && run.machine[0].1 == "x");
        assert_eq!((run.settings["operations"].as_str(), &of("lmdb").version), ("7; 9", &versions));
        assert_eq!(runs(&head(), SuiteName::Hash, &[]), None);
    }
}
