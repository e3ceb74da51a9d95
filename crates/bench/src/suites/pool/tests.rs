//! The suite on small pools, correct and faulty.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_pool::PolicyKind;

use super::plan::is_chosen;
use super::*;
use crate::catalog::installed;
use crate::core::dashboard::Entry;
use crate::core::error::Error;
use crate::core::progress::Silent;
use crate::core::settings::Settings;
use crate::stores::pages::{Pages, Session};
use crate::stores::textbook_pool::{self, Textbook};

/// Returns options for everything at toy size.
fn tiny() -> Options {
    Options {
        iterations: 4,
        buffers: 8,
        threads: vec![2, 5],
        policies: vec![PolicyKind::Lru, PolicyKind::Clock, PolicyKind::Sieve],
        rounds: 2,
        sample_seconds: 2e-5,
        work_dir: std::env::temp_dir().join("cairn-pool-suite-tests"),
        probes: None,
        ..Options::with_all(&installed().pages)
    }
}

/// Returns [`tiny`] with the textbook pool as the only peer.
fn tinier() -> Options {
    Options { peers: vec![textbook_pool::NAME.to_owned()], ..tiny() }
}

fn filtered(filter: &str) -> Options {
    Options { filter: Some(filter.to_owned()), ..tiny() }
}

fn names(options: &Options) -> Vec<String> {
    plan(options).into_iter().map(|case| case.name).collect()
}

/// Goal: all of the guide's names and tokens exist, each once, with up to 256 threads.
#[test]
fn the_guides_cases_are_there() {
    let names = names(&Options::default());
    let unique: HashSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    let begins = |start: &str| names.iter().any(|name| name.starts_with(start));
    for start in [
        "Pin/Unpin (hit)",
        "Cold Pin (miss)",
        "Dirty Eviction",
        "Sequential Scan",
        "Repeated Access",
        "Random (K=10,",
    ] {
        assert!(begins(start), "{start}");
    }
    for start in [
        "Random (K=50,",
        "Random (K=100,",
        "Zipfian",
        "Pool Size (8 ",
        "Memory Pressure (32 buffers, working set +20",
        "Hit Rate (Zipfian",
    ] {
        assert!(begins(start), "{start}");
    }
    for threads in [2, 4, 8, 16, 32, 64, 128, 256] {
        for start in ["Seq Scan MT x", "Repeated Access MT x", "Zipfian MT x"] {
            assert!(begins(&format!("{start}{threads} (")), "{start}{threads}");
        }
        for k in [10, 50, 100] {
            assert!(begins(&format!("Random MT x{threads} (K={k},")), "{threads} {k}");
        }
        for token in [
            format!("pin:t{threads}"),
            format!("hotset:t{threads}_k4"),
            format!("hotset:t{threads}_k4:optimistic"),
        ] {
            assert!(names.contains(&token), "{token}");
        }
    }
    assert!(
        names.iter().any(|name| name == "pin:t1") && names.iter().any(|name| name == "Buffer Starvation")
    );
}

/// Goal: filters work as the guide says: parts of names, K=10 without K=100, patterns in two
/// phases, whole tokens; a dashboard has all cases.
#[test]
fn filters_choose() {
    assert_eq!(names(&filtered("Random (K=10,")), ["Random (K=10, uniform)"]);
    assert_eq!(
        names(&filtered("Pin/Unpin")),
        ["Pin/Unpin (hit)", "Pin/Unpin (hit, chained)", "Exclusive Pin/Unpin (hit)"]
    );
    let phases: BTreeSet<u8> = plan(&filtered("Zipfian")).iter().map(|case| case.phase).collect();
    assert_eq!(phases, BTreeSet::from([2, 4]));
    assert_eq!(
        names(&Options { filter: Some("pin:t2".to_owned()), ..Options::default() }),
        ["pin:t2", "pin:t2:optimistic"]
    );
    assert_eq!(names(&Options { filter: Some("hotset:t8_k4".to_owned()), ..Options::default() }).len(), 2);
    assert_eq!(
        names(&Options { filter: Some("hotset:t8_k4:opt".to_owned()), ..Options::default() }),
        ["hotset:t8_k4:optimistic"]
    );
    assert!(names(&filtered("no such case")).is_empty());
    assert_eq!(names(&Options { for_dashboard: true, ..filtered("Random") }), names(&tiny()));
    assert!(is_chosen("pin:t256", "pin:t") && !is_chosen("pin:t256", "pin:t25"));
}

/// Goal: a stored case has its original name.
#[test]
fn names_survive_storing() {
    for case in plan(&Options::default()) {
        assert_eq!(name_of(&case.case), case.name);
    }
}

/// Goal: every available peer measures, and counts its hits, with one thread and with several.
#[test]
fn every_peer_measures() {
    let run = run(&filtered("K=50"), installed(), &Silent, &Stop::default()).unwrap();
    for contender in
        run.contenders.iter().filter(|contender| !contender.ours && !contender.name.starts_with("raw"))
    {
        if let Some(reason) = &contender.skipped {
            assert!(reason.contains("CAIRN_ROCKSDB_LIB"), "{reason}");
            continue;
        }
        let of = |metric: &str, threads: u32| {
            let found = |m: &&crate::core::results::Measurement| {
                m.metric == metric && m.case.threads == threads && m.contender == contender.name
            };
            run.measurements.iter().find(found).map(|m| m.median)
        };
        let threads: &[u32] = if contender.name == "sqlite" { &[1] } else { &[1, 2, 5] };
        for &threads in threads {
            assert!(of("throughput", threads).unwrap() > 0.0, "{}", contender.name);
            let hits = of("hit rate", threads).unwrap();
            assert!(
                (5.0..95.0).contains(&hits),
                "{} with {threads} threads: {hits} % of 50 pages in 8",
                contender.name
            );
        }
    }
}

/// Goal: every policy and the textbook pool complete every case, checked, and every output form
/// shows the whole run. Method: everything at toy size.
#[test]
fn every_case_measures() {
    let run = run(&tinier(), installed(), &Silent, &Stop::default()).unwrap();
    assert!(!run.stopped && run.measurements.iter().all(|m| m.verified && m.median.is_finite()));
    for contender in run.contenders.iter().filter(|contender| contender.ours) {
        let problems: Vec<_> =
            contender.settings.iter().filter(|(name, _)| name.starts_with("not measured")).collect();
        assert!(problems.is_empty(), "{}: {problems:?}", contender.name);
    }
    let whole = run.contenders.iter().filter(|c| c.ours && !c.name.ends_with("unchecked"));
    for contender in whole {
        let have: HashSet<String> = run
            .measurements
            .iter()
            .filter(|m| m.contender == contender.name)
            .map(|m| name_of(&m.case))
            .collect();
        for name in names(&tiny()) {
            assert!(have.contains(&name), "{} lacks {name}", contender.name);
        }
    }
    for metric in ["latency", "mean latency", "standard deviation", "throughput", "hit rate", "recovery time"]
    {
        assert!(run.measurements.iter().any(|m| m.metric == metric), "{metric}");
    }
    let repeated =
        run.measurements.iter().find(|m| m.metric == "hit rate" && m.case.operation == "Hit Rate (Repeated)");
    assert!(repeated.unwrap().median > 99.0);
    let scanned = run
        .measurements
        .iter()
        .find(|m| m.metric == "hit rate" && m.case.operation == "Hit Rate (Sequential)");
    assert!(scanned.unwrap().median < 10.0);

    let text = text::to_text(&run);
    for words in
        ["Phase 1: core latency", "against raw read", "Phase 5", "pin:t5:optimistic", "takes", "cairn sieve"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let html = crate::report::render_html(&run, None);
    for id in ["id=\"pages\"", "id=\"pool-threads\"", "id=\"frames\"", "id=\"hits\""] {
        assert!(html.contains(id), "{id}");
    }
    the_list_is_the_guides(&run);
    the_tables_are_whole(&run);
}

/// Goal: the list has the guide's names for the first contender, every name once, and only
/// nanoseconds and shares of misses.
fn the_list_is_the_guides(run: &Run) {
    let list: Vec<Entry> = serde_json::from_str(&text::to_json(run)).unwrap();
    let unique: HashSet<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(unique.len(), list.len());
    for name in names(&tiny()) {
        assert!(unique.contains(name.as_str()), "{name}");
        let other = format!("{name} [cairn clock]");
        assert!(unique.contains(other.as_str()), "{other}");
    }
    assert!(list.iter().all(|entry| entry.value >= 0.0 && matches!(entry.unit.as_str(), "ns" | "% misses")));
    assert!(text::to_json(run).starts_with("[{\"name\":\"Pin/Unpin (hit)\",\"unit\":\"ns\",\"value\":"));
}

fn the_tables_are_whole(run: &Run) {
    let summary = tables::summary(run);
    let head = summary.lines().next().unwrap();
    assert_eq!(head, "| Benchmark | cairn lru | cairn clock | cairn sieve | textbook |");
    for row in [
        "| Pin/Unpin (hit) |",
        "| Cold Pin (miss) |",
        "| Seq Scan MT x2 (80 blocks) |",
        "| pin:t2 |",
        "| hotset:t2_k4 |",
    ] {
        let line =
            summary.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row}: {summary}"));
        assert!(line.matches("**").count() <= 2, "{line}");
    }
    assert!(summary.contains("**") && summary.contains("12 buffers") == run.mode.contains("12 buffers"));
    let page = tables::platform_page(run, "test");
    for words in [
        "# Buffer pool by replacement policy: test",
        "| commit |",
        "| Memory Pressure (32 buffers, working set +20) |",
        "- **textbook**",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

/// Goal: the best cell is bold, for metrics of both directions, and none is if two are equal.
/// Method: a run made by hand.
#[test]
fn the_best_cell_is_bold() {
    let mut run = run(
        &Options { peers: Vec::new(), ..filtered("Hit Rate (Repeated)") },
        installed(),
        &Silent,
        &Stop::default(),
    )
    .unwrap();
    assert!(!tables::summary(&run).contains("**"), "all have the same");
    let set = |run: &mut Run, contender: &str, value: f64| {
        let found = run.measurements.iter_mut().find(|m| m.contender == contender).unwrap();
        found.median = value;
    };
    set(&mut run, "cairn clock", 100.5);
    assert!(tables::summary(&run).contains("| **100.5 %** |"), "{}", tables::summary(&run));
    for m in &mut run.measurements {
        (m.metric, m.unit, m.higher_is_better) = ("latency".to_owned(), "ns".to_owned(), false);
    }
    set(&mut run, "cairn sieve", 12.25);
    assert!(tables::summary(&run).contains("| **12.2 ns** |"), "{}", tables::summary(&run));
}

/// A store with a planted fault.
#[derive(Debug)]
struct Planted(Fault);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Returns a wrong page once in a while.
    MixesPages,
    /// Loses every tenth change.
    LosesWrites,
    /// Returns an error after some requests.
    Fails,
}

impl PageStore for Planted {
    fn name(&self) -> &str {
        "planted"
    }

    fn family(&self) -> &str {
        "planted"
    }

    fn version(&self) -> String {
        String::new()
    }

    fn settings(&self, _: &pages::Setup<'_>) -> Settings {
        Settings::new()
    }

    fn can(&self, access: Access, threads: u32) -> bool {
        Textbook.can(access, threads)
    }

    fn open(&self, setup: &pages::Setup<'_>) -> Result<Box<dyn Pages>> {
        Ok(Box::new(PlantedPages {
            right: Textbook.open(setup)?,
            fault: self.0,
            requests: AtomicU64::new(0),
        }))
    }
}

struct PlantedPages {
    right: Box<dyn Pages>,
    fault: Fault,
    requests: AtomicU64,
}

impl Pages for PlantedPages {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(PlantedSession { right: self.right.session()?, pages: self }))
    }

    fn misses(&self) -> Option<u64> {
        self.right.misses()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.right.close()
    }
}

struct PlantedSession<'a> {
    right: Box<dyn Session + 'a>,
    pages: &'a PlantedPages,
}

impl Session for PlantedSession<'_> {
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64> {
        let before = self.pages.requests.fetch_add(1, Ordering::Relaxed);
        let is_due = before % 3 == 2;
        match self.pages.fault {
            Fault::MixesPages if is_due => {
                let mut other = order.to_vec();
                other[0] = if other[0] == 0 { 1 } else { 0 };
                self.right.run(access, &other)
            }
            Fault::LosesWrites if access == Access::Dirty => self.right.run(Access::Exclusive, order),
            Fault::Fails if is_due => Err(Error::engine("planted", "the disk is gone")),
            _ => self.right.run(access, order),
        }
    }
}

/// Goal: a contender that returns a wrong page, loses a change or fails has no measurement there,
/// others keep theirs, and failed threads do not block the others.
#[test]
fn wrong_stores_are_caught() {
    for (fault, filters, words) in [
        (
            Fault::MixesPages,
            &[
                "Pin/Unpin (hit)",
                "Cold Pin",
                "pin:t5",
                "Sequential Scan (80 blocks)",
                "Hit Rate (Random K=50",
            ][..],
            "wrong answer",
        ),
        (Fault::LosesWrites, &["Dirty Eviction"], "lost changes"),
        (Fault::Fails, &["Pin/Unpin (hit)", "pin:t5", "Hit Rate (Repeated"], "the disk is gone"),
    ] {
        for filter in filters {
            let stores: Vec<Box<dyn PageStore>> = vec![Box::new(Textbook), Box::new(Planted(fault))];
            let selection = Selection { stores, skipped: Vec::new() };
            let run = run_with(&filtered(filter), selection, &Silent, &Stop::default()).unwrap();
            let has = |name: &str| run.measurements.iter().any(|m| m.contender == name);
            assert!(has("textbook") && !has("planted"), "{fault:?} in {filter}");
            let planted = run.contenders.iter().find(|contender| contender.name == "planted").unwrap();
            assert!(
                planted.skipped.as_deref().unwrap_or_default().contains(words),
                "{fault:?} in {filter}: {planted:?}"
            );
        }
    }
}

/// Goal: a run that is stopped keeps its results and is marked as stopped.
#[test]
fn runs_end_early() {
    let stop = Stop::default();
    stop.ask();
    let notes = crate::core::testing::Notes::default();
    let run = run(&filtered("pin:t2"), installed(), &notes, &stop).unwrap();
    assert!(run.stopped && run.measurements.is_empty());
    assert!(!notes.0.borrow().iter().any(|note| note.contains("kept")), "there is nothing: {notes:?}");
}

/// Goal: invalid options and unknown peers are refused by name.
#[test]
fn options_are_checked() {
    for (wrong, word) in [
        (Options { iterations: 0, ..tiny() }, "iterations 0"),
        (Options { buffers: 3, ..tiny() }, "buffers 3"),
        (Options { rounds: 9, ..tiny() }, "rounds 9"),
        (Options { page_size: 5000, ..tiny() }, "page size 5000"),
        (Options { page_size: 128 << 10, ..tiny() }, "page size 131072"),
        (Options { threads: vec![1], ..tiny() }, "threads 1"),
        (Options { peers: Vec::new(), policies: Vec::new(), ..tiny() }, "no policies"),
    ] {
        let error = wrong.check().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let unknown = Options { peers: vec!["foyer".to_owned()], ..tiny() };
    let error = run(&unknown, installed(), &Silent, &Stop::default()).unwrap_err().to_string();
    assert!(error.contains("peer \"foyer\": expected "), "{error}");
    assert!(tables::check_platform("../x").is_err() && tables::check_platform("linux").is_ok());
}
