//! Tests of the page about all suites: well-formed markup, wins and losses, omissions, and size.

use std::path::Path;

use super::{BYTES_MAX, document, within};
use crate::core::results::{Probe, Run};
use crate::core::testing::sample_run;
use crate::report::markup::{Page, check, parse};
use crate::suites::all::{
    Content, Journal, Options, Part, PartResult, PartState, Sitting, SuiteName, SuitePlan, Whole,
};
use crate::suites::sim::Report;

const DIR: &str = "results/all-20260101T000000Z";

fn suite(suite: SuiteName, parts: &[&str], missing: Option<&str>) -> SuitePlan {
    let part = |name: &&str| Part::new(*name, 1.0, |_, _| Err(crate::core::error::Error::Interrupted));
    SuitePlan {
        suite,
        parts: parts.iter().map(part).collect(),
        missing: missing.map(str::to_owned),
        notes: Vec::new(),
    }
}

/// The outcome of a suite's part.
type Left = (PartState, Option<Content>);

/// Returns a run of these suites in which each part has the outcome that `left` returns.
fn whole(plans: &[SuitePlan], left: &dyn Fn(SuiteName, &str) -> Left) -> Whole {
    let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
    let probes = vec![Probe { name: "fdatasync p50".to_owned(), value: 0.1, unit: "ms".to_owned() }];
    let machine = vec![("cpu".to_owned(), "Test <CPU>".to_owned()), ("cores".to_owned(), "2".to_owned())];
    let sitting = Sitting::now(machine, probes);
    let mut journal = Journal::begin(&fs, Path::new("/r"), &Options::quick(), sitting).unwrap();
    for plan in plans {
        for part in &plan.parts {
            let (state, content) = left(plan.suite, &part.name);
            let result =
                PartResult { suite: plan.suite, name: part.name.clone(), state, seconds: 61.0, content };
            journal.keep(result).unwrap();
        }
    }
    Whole::of(plans, &journal)
}

fn page(whole: &Whole) -> (String, Page) {
    let html = document(whole, Path::new(DIR));
    let page = sound(&html, BYTES_MAX);
    (html, page)
}

fn sound(html: &str, bytes_max: usize) -> Page {
    let page = parse(html);
    check(&page);
    assert!(html.len() <= bytes_max, "{} bytes", html.len());
    page
}

fn run_of(suite: SuiteName) -> Run {
    Run { suite: suite.word().to_owned(), ..sample_run() }
}

fn simulated() -> Content {
    let verdict = serde_json::json!({ "quantity": "write_amplification", "predicted": 3.1, "measured": 3.0, "error": 0.033, "limit": 0.03 });
    let case = serde_json::json!({ "case": "kv leveled", "base": null, "version": "cairn 1", "verdicts": [verdict] });
    let report =
        serde_json::json!({ "versions": ["cairn 1"], "comparisons": [case], "signs": [], "skipped": [] });
    Content::Sim(serde_json::from_value::<Report>(report).unwrap())
}

/// Goal: the page has an article for each suite with ids of its own, an overview with wins, losses,
/// failures and missing software, probes, and all raw results. Method: two suites with the same
/// values, one that was left out, one that failed, and the simulator.
#[test]
fn everything_is_on_the_page() {
    let plans = [
        suite(SuiteName::Hash, &["a", "b"], None),
        suite(SuiteName::Kv, &["seq"], None),
        suite(SuiteName::Pool, &["one"], None),
        suite(SuiteName::Index, &[], Some("no initdb; install postgresql-15")),
        suite(SuiteName::Sim, &["kv leveled"], None),
    ];
    let whole = whole(&plans, &|suite, part| match (suite, part) {
        (SuiteName::Pool, _) => (PartState::Failed("the <disk> is full".to_owned()), None),
        (SuiteName::Sim, _) => (PartState::Done, Some(simulated())),
        (SuiteName::Hash, "b") => (PartState::Cut, None),
        _ => (PartState::Done, Some(Content::Run(run_of(suite)))),
    });
    let (html, page) = page(&whole);
    let articles: Vec<&str> = page
        .tags
        .iter()
        .filter(|tag| tag.name == "article")
        .map(|tag| tag.get("id").unwrap_or_default())
        .collect();
    assert_eq!(articles, ["overview", "hash", "kv", "sim", ""]);
    // An engine's article is elements only to a browser without scripts. Otherwise the page would
    // open too slowly.
    let begins = |id: &str| html.contains(&format!("<article id=\"{id}\"><noscript><h2"));
    assert!(["hash", "kv", "sim"].into_iter().all(begins) && !begins("overview"));
    assert_eq!(html.matches("</noscript></article>").count(), 3);
    let ids: Vec<&str> = page.tags.iter().filter(|tag| !tag.inert).filter_map(|tag| tag.get("id")).collect();
    for id in [
        "hash-verdict",
        "kv-verdict",
        "hash-lookups",
        "kv-lookups",
        "hash-rows",
        "machine",
        "repeat",
        "sim-verdict",
    ] {
        assert!(ids.contains(&id), "{id}: {ids:?}");
    }
    for words in [
        "Constant store",
        "done, 1 cut",
        "cairn mmap does 2.00 times",
        "as much as lmdb",
        "Failures",
        "the <disk> is full",
        "no initdb; install postgresql-15",
        "Key-value store: sqlite",
        "fdatasync p50",
        "over its limit",
        "2 min 2 s",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let raw: serde_json::Value = serde_json::from_str(&page.scripts[0]).unwrap();
    assert_eq!(raw["runs"].as_array().unwrap().len(), 2);
    assert!(raw["runs"][0]["measurements"][0]["samples"].as_array().unwrap().len() == 5);
    assert_eq!(html, document(&whole, Path::new(DIR)), "equal runs give equal pages");
}

/// Goal: an empty run has a page too.
#[test]
fn an_empty_run_has_a_page() {
    let whole = whole(&[suite(SuiteName::Kv, &[], Some("nothing here"))], &|_, _| (PartState::Done, None));
    let (_, page) = page(&whole);
    assert!(page.text.contains("nothing here") && page.text.contains("Left out"), "{}", page.text);
}

/// Goal: a page stays below its limit however much was measured, and says what it gave up and where
/// to find it. Method: more and more cases, and settings that are too long by themselves, against a
/// tenth of the real limit.
#[test]
fn pages_have_a_bound() {
    const BOUND: usize = BYTES_MAX / 10;
    let plans = [suite(SuiteName::Kv, &["seq"], None)];
    let told = |run: &Run| {
        let whole = whole(&plans, &|_, _| (PartState::Done, Some(Content::Run(run.clone()))));
        sound(&within(&whole, Path::new(DIR), BOUND), BOUND).text
    };
    let mut notes = Vec::new();
    for cases in (8..=40).step_by(4) {
        let mut run = run_of(SuiteName::Kv);
        let base = std::mem::take(&mut run.measurements);
        for case in 0..cases {
            run.measurements.extend(base.iter().cloned().map(|mut m| {
                m.case.entries = 1000 + case;
                // Unverified results are not compared. A bootstrap for each would take minutes.
                m.verified = false;
                m
            }));
        }
        let text = told(&run);
        let note = text.lines().find(|line| line.contains("this page leaves out")).unwrap_or_default();
        assert!(note.is_empty() || text.contains(&format!("{DIR}/suites")), "{note}");
        notes.push(note.len());
    }
    assert!(notes[0] == 0 && notes.is_sorted(), "more is given up the more there is: {notes:?}");
    notes.dedup();
    assert!(notes.len() > 2, "one thing after the other: {notes:?}");
    let mut run = run_of(SuiteName::Kv);
    run.contenders[0].settings.insert("endless".to_owned(), "x".repeat(BOUND));
    assert!(told(&run).contains("Too many figures for this page"));
}

/// Goal: if ours failed, the page says so in the verdict and does not list it as left out. Method:
/// a suite with measurements of peers only.
#[test]
fn our_failures_are_no_ties() {
    let plans = [suite(SuiteName::Kv, &["seq"], None)];
    let whole = whole(&plans, &|suite, _| {
        let mut run = run_of(suite);
        run.contenders.retain(|contender| !contender.ours || contender.name == "cairn");
        run.measurements.retain(|measured| !measured.contender.starts_with("cairn"));
        run.contenders[0].skipped = Some("seq: <no> space".to_owned());
        run.contenders[0].settings.insert("not measured 1".to_owned(), "seq: <no> space".to_owned());
        (PartState::Done, Some(Content::Run(run)))
    });
    let (_, page) = page(&whole);
    let told = "cairn: failed in 1 case: seq: <no> space";
    // The failure is listed beside the wins, among the failures, and in the suite's own article: in
    // its sentence and in its notes on trust.
    assert!(page.text.matches(told).count() >= 4, "{}", page.text);
    assert!(page.text.contains("done, cairn failed in 1"), "{}", page.text);
    assert!(!page.text.contains("Key-value store: cairn"), "it was not left out: {}", page.text);
    let text = crate::report::whole::text::to_text(&whole);
    assert!(text.contains("largest differences first:\n  kv    cairn: failed in 1 case"), "{text}");
}
