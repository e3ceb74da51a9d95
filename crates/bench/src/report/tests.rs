//! Tests of the whole report: it is well-formed for any run, honest about its data, and
//! self-contained.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::markup::{Page, check, parse};
use super::render_html;
use super::testing::{case, contender, measurement, run};
use crate::core::results::{Contender, Measurement, Probe, Run};
use crate::test_config::cases;

/// Renders the page, parses it strictly and checks everything that must hold for each report.
fn page(run: &Run, other: Option<&Run>) -> Page {
    let html = render_html(run, other);
    let page = parse(&html);
    check(&page);
    assert_eq!(html, render_html(run, other), "equal runs give equal pages");
    page
}

/// Returns a run of one of ours and two peers, with every kind of measurement that has a section of
/// its own. Ours is twice as fast as `slow` and takes twice as long to build as `quick`.
fn small_run() -> Run {
    let mut measurements = Vec::new();
    for (name, speed, build) in [("cairn mmap", 2.0, 2.0), ("slow", 1.0, 4.0), ("quick", 1.0, 1.0)] {
        for (entries, threads) in [(1_000_000, 1), (1_000_000, 2), (10_000_000, 1)] {
            let samples = [0.99, 1.0, 1.01, 1.0, 1.0].map(|noise| 1e6 * speed * noise);
            let mut get = measurement(name, "get", "throughput", &samples);
            (get.case.entries, get.case.threads) = (entries, threads);
            if threads == 1 {
                let tail = [("p50", 100.0), ("p99.9", 900.0), ("max", 5e6), ("p90", 200.0)];
                get.percentiles = tail.map(|(name, ns)| (name.to_owned(), ns / speed)).into_iter().collect();
            }
            measurements.push(get);
        }
        let store = |operation: &str, metric: &str, samples: &[f64]| {
            let mut m = measurement(name, operation, metric, samples);
            (m.case.keys, m.case.distribution, m.case.threads) = (String::new(), String::new(), 1);
            m
        };
        measurements.push(store("build", "time", &[1.0, 1.01, 0.99].map(|noise| build * noise)));
        measurements.push(store("build", "peak memory", &[1e8, 1.1e8, 1.2e8]));
        measurements.push(store("size", "bytes per entry", &[20.0 + build]));
        measurements.push(store("size", "index bytes per entry", &[4.0]));
        measurements.push(store("open", "time", &[1e-4, 2e-4]));
        measurements.push(measurement(name, "cold get", "mean latency", &[1e5, 2e5]));
        measurements.push(measurement(name, "scan", "throughput", &[1e8, 1.1e8]));
    }
    let contenders = vec![
        contender("cairn mmap", "cairn", true),
        contender("slow", "slow", false),
        contender("quick", "quick", false),
    ];
    run(contenders, measurements)
}

fn text_of(run: &Run) -> String {
    page(run, None).text
}

/// Returns the part of the text between two headings.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let start = text.find(from).unwrap_or_else(|| panic!("no {from:?}"));
    let length = text[start..].find(to).unwrap_or_else(|| panic!("no {to:?} after {from:?}"));
    &text[start..start + length]
}

/// Goal: every section exists, in order, and the navigation bar links to each. Method: ids of the
/// sections of a full run.
#[test]
fn sections_stand_in_order() {
    let page = page(&small_run(), None);
    let sections: Vec<&str> =
        page.tags.iter().filter(|tag| tag.name == "section").filter_map(|tag| tag.get("id")).collect();
    let expected = [
        "verdict",
        "lookups",
        "threads",
        "entries",
        "latency",
        "build",
        "size",
        "trade-off",
        "cold",
        "other",
        "all",
        "contenders",
        "machine",
        "repeat",
    ];
    assert_eq!(sections, expected);
    let links: Vec<&str> =
        page.tags.iter().filter(|tag| tag.name == "a").filter_map(|tag| tag.get("href")).collect();
    for id in expected {
        assert!(links.contains(&format!("#{id}").as_str()), "no link to {id}");
    }
}

/// Goal: every measurement of the run is in the big table, with its unit. Method: count rows, look
/// for one of them.
#[test]
fn all_measurements_are_in_the_table() {
    let run = small_run();
    let html = render_html(&run, None);
    let table = &html[html.find("id=\"rows\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    assert_eq!(table.matches("<tr").count(), run.measurements.len() + 1);
    assert!(table.contains("2.00 M/s") && table.contains(">ops/s<") && table.contains("1.98 to 2.02 M/s"));
    assert!(table.contains("▲ 2.00×"), "ours against slow");
    assert!(table.contains("▼ 0.50×"), "ours against quick, in build time");
}

/// Goal: a loss is reported as plainly as a win. Method: ours takes twice as long to build as one
/// peer.
#[test]
fn losses_are_as_visible_as_wins() {
    let text = text_of(&small_run());
    let ahead = between(&text, "▲ Cairn is ahead", "▼ Cairn is behind");
    assert!(ahead.contains("Point lookups") && ahead.contains("slow") && ahead.contains("2.00× ("));
    let behind = between(&text, "▼ Cairn is behind", "~ No clear difference");
    assert!(
        behind.contains("Build time") && behind.contains("quick") && behind.contains("0.50× ("),
        "{behind}"
    );
    let opening = between(&text, "Verdict", "Cairn’s best against each peer’s best");
    assert!(opening.contains("Cairn is behind in") && opening.contains("build time"), "{opening}");
    assert!(opening.contains("▼ behind quick, the best peer: 0.50×"), "the tile says it too");
}

/// Goal: unverified results do not affect the verdict, and the page says so. Method: mark the
/// results of one peer as not verified.
#[test]
fn unverified_results_take_no_part() {
    let mut run = small_run();
    for m in run.measurements.iter_mut().filter(|m| m.contender == "slow") {
        m.verified = false;
    }
    let text = text_of(&run);
    assert!(text.contains("not verified"));
    assert!(!between(&text, "▲ Cairn is ahead", "How far to trust this").contains("slow"));
}

/// Goal: batched lookups are compared with the best way that a peer has, and build times across
/// thread counts.
/// Method: a peer without batches; builds with different numbers of threads.
#[test]
fn unlike_cases_are_compared_where_that_is_fair() {
    let fast = [4e6, 4.01e6, 4.02e6];
    let slow = [1e6, 1.01e6, 1.02e6];
    let mut build = measurement("cairn", "build", "time", &[1.0, 1.01, 1.01]);
    let mut peer_build = measurement("peer", "build", "time", &[3.0, 3.01, 3.01]);
    (build.case.threads, peer_build.case.threads) = (2, 1);
    (build.case.keys, peer_build.case.keys) = (String::new(), String::new());
    let measurements = vec![
        measurement("cairn", "get_many", "throughput", &fast),
        measurement("cairn", "get", "throughput", &slow),
        measurement("peer", "get", "throughput", &slow),
        build,
        peer_build,
    ];
    let run = run(vec![contender("cairn", "cairn", true), contender("peer", "peer", false)], measurements);
    let text = text_of(&run);
    let ahead = between(&text, "▲ Cairn is ahead", "▼ Cairn is behind");
    assert!(ahead.contains("Batched lookups") && ahead.contains("3.97×"), "{ahead}");
    assert!(ahead.contains("Build time") && ahead.contains("2.98×"), "{ahead}");
    let unclear = between(&text, "~ No clear difference", "Over all cases");
    assert!(unclear.contains("Point lookups") && unclear.contains("1.00×"), "{unclear}");
}

/// The beginning of a choice that is stored as text.
const KEPT: &str = "<script type=\"text/html\" data-key=";

/// Goal: the page shows the plainest case first, keeps each choice as text, and names the
/// contenders that are missing from it.
/// Method: count the choices of the small run; drop one contender from one case.
#[test]
fn choices_are_all_there() {
    let mut run = small_run();
    run.measurements.retain(|m| !(m.contender == "slow" && m.case.threads == 2));
    let html = render_html(&run, None);
    let start = html.find("id=\"lookups\"").unwrap();
    let figure = &html[start..start + html[start..].find("</section>").unwrap()];
    assert_eq!(figure.matches(KEPT).count(), 3);
    let first = &figure[..figure.find(KEPT).unwrap()];
    assert!(
        first.contains("1 M entries · 6 B values · uncompressed · present keys · uniform · 1 thread"),
        "{first}"
    );
    assert!(!first.contains("Not measured"));
    assert!(figure.contains("Not measured in this case: slow."));
}

/// Goal: the run embedded in the page equals the original. Method: parse the embedded JSON.
#[test]
fn the_embedded_run_is_the_run() {
    let run = small_run();
    let page = page(&run, None);
    let back: Run = serde_json::from_str(&page.scripts[0]).unwrap();
    assert_eq!(back, run);
}

/// Goal: no text of a run becomes markup or script. Method: hostile text in every text field.
#[test]
fn hostile_text_stays_text() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`--><!--&lt;\u{202e}\0{{x}}";
    let mut run = small_run();
    let text = || evil.to_owned();
    (run.suite, run.started, run.mode, run.data) = (text(), text(), text(), text());
    run.machine = vec![(text(), text()), ("cpu".to_owned(), text()), ("command".to_owned(), text())];
    run.probes = vec![Probe { name: text(), value: 1.0, unit: text() }];
    run.contenders.push(Contender { skipped: Some(text()), ..contender(evil, evil, false) });
    let ran = format!("{evil} ran");
    let settings = BTreeMap::from([(text(), text())]);
    run.contenders.push(Contender { settings, version: text(), ..contender(&ran, evil, true) });
    for name in [ran.as_str(), "never listed <b>"] {
        let mut m = measurement(name, "get", "throughput", &[1.0, 2.0]);
        m.percentiles = BTreeMap::from([(text(), 1.0)]);
        run.measurements.push(m);
        let mut m = measurement(name, evil, evil, &[1.0, 2.0]);
        m.unit = text();
        (m.case.dataset, m.case.compression) = (text(), text());
        (m.case.keys, m.case.distribution) = (text(), text());
        run.measurements.push(m);
    }
    let html = render_html(&run, Some(&run));
    let page = parse(&html);
    check(&page);
    let kept = html.matches(KEPT).count();
    assert!(kept > 0, "no choices");
    assert_eq!(html.matches("<script").count(), 2 + kept);
    assert_eq!(html.matches("</script").count(), 2 + kept);
    assert!(!html.contains("<img"));
    let back: Run = serde_json::from_str(&page.scripts[0]).unwrap();
    assert_eq!(back, run);
}

/// Goal: a run with nothing to show gives a page that says so. Method: no measurements; no
/// contenders; only skipped ones.
#[test]
fn empty_runs_have_a_page() {
    assert!(text_of(&run(Vec::new(), Vec::new())).contains("Nothing was measured."));
    let skipped = Contender { skipped: Some("no JDK".to_owned()), ..contender("java", "java", false) };
    let text = text_of(&run(vec![skipped], Vec::new()));
    assert!(text.contains("no JDK") && text.contains("No contender ran."));
}

/// Goal: unusable values are shown as a dash and drawn nowhere. Method: every kind of them, as
/// sample, median and interval.
#[test]
fn figures_that_are_none_are_dashes() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, 1e-300] {
        let mut run = small_run();
        for m in run.measurements.iter_mut().step_by(2) {
            (m.median, m.low, m.high) = (bad, bad, bad);
            m.samples = vec![bad, bad];
            m.percentiles.values_mut().for_each(|value| *value = bad);
        }
        run.probes.push(Probe { name: "odd".to_owned(), value: bad, unit: "ns".to_owned() });
        let other = small_run();
        page(&run, Some(&other));
        page(&other, Some(&run));
    }
}

/// Goal: one sample, no samples, one contender and no peers each give a complete page without a
/// verdict.
/// Method: cut the small run down.
#[test]
fn little_data_gives_no_verdict() {
    let mut single = small_run();
    for m in &mut single.measurements {
        m.samples.truncate(1);
        (m.low, m.high) = (m.median, m.median);
    }
    let text = text_of(&single);
    let ahead = between(&text, "▲ Cairn is ahead", "▼ Cairn is behind");
    assert!(!ahead.contains("Point lookups"), "one sample decides nothing: {ahead}");
    assert!(text.contains("(too few samples)") && text.contains("fewer than 5 samples"));

    let mut none = small_run();
    none.measurements.iter_mut().for_each(|m| m.samples.clear());
    page(&none, None);

    let mut alone = small_run();
    alone.contenders.retain(|contender| contender.ours);
    alone.measurements.retain(|m| m.contender == "cairn mmap");
    assert!(text_of(&alone).contains("there is nothing to compare"));

    let mut peers = small_run();
    peers.contenders.retain(|contender| !contender.ours);
    peers.measurements.retain(|m| m.contender != "cairn mmap");
    assert!(text_of(&peers).contains("there is nothing to compare"));
}

/// Goal: all intervals have 95 % confidence, however few the samples, and the page says so. Method:
/// a run with five samples of everything that is timed, and one with three.
#[test]
fn all_intervals_are_equally_sure() {
    for samples in [5, 3] {
        let mut run = small_run();
        for m in run.measurements.iter_mut().filter(|m| m.samples.len() > 1) {
            m.samples = [0.99, 1.0, 1.01, 1.0, 0.995].map(|noise| noise * m.median)[..samples].to_vec();
        }
        let text = text_of(&run);
        for words in [
            "ratio of medians with its 95 % interval",
            "Intervals are of 95 %",
            "20 comparisons at 95 %: if nothing differed, one in 20 would look clear by chance",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

/// Goal: the verdict covers a case with enough samples. If there is none, it reports too few
/// samples and not that the sides are level. Method: the plainest case with one and two samples
/// beside another with five; then all with two.
#[test]
fn the_verdict_is_of_a_case_with_samples() {
    let samples = [0.99, 1.0, 1.01, 1.0, 0.995];
    let few = |count: usize, case: fn(&crate::core::results::Case) -> bool| {
        let mut run = small_run();
        for m in run.measurements.iter_mut().filter(|m| m.samples.len() > 1) {
            let count = if case(&m.case) { count } else { 5 };
            m.samples = samples.map(|noise| noise * m.median)[..count].to_vec();
        }
        run
    };
    for count in [1, 2] {
        let run = few(count, |case| case.threads == 1 && case.operation == "get");
        let text = text_of(&run);
        let verdict = between(&text, "Verdict", "Over all cases");
        assert!(verdict.contains("Cairn is ahead") && !verdict.contains("too few samples"), "{verdict}");
        let run = few(count, |_| true);
        let text = text_of(&run);
        let verdict = between(&text, "Verdict", "Over all cases");
        assert!(verdict.contains("Too few samples") && verdict.contains("too few samples to compare with"));
        // Only the size of the index, which is exact, may be level.
        assert!(verdict.matches("level with").count() <= 1, "{verdict}");
    }
}

/// Goal: every length is a valid CSS length, without a space before the percent sign, which
/// browsers reject. Method: all widths, places and styles of a page.
#[test]
fn lengths_are_lengths() {
    let html = render_html(&small_run(), None);
    let mut seen = 0;
    for name in ["width", "height", "x", "x1", "x2", "y", "cx", "style"] {
        for value in html.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()) {
            seen += 1;
            let refused = value.contains(" %") || value.contains("NaN") || value.contains("inf");
            assert!(!refused, "{name}=\"{value}\"");
        }
    }
    assert!(seen > 100, "{seen}");
}

/// Goal: a run compared with itself shows no change; a faster one is better; unrelated runs have
/// nothing in common; different conditions are named. Method: each.
#[test]
fn comparisons_tell_change_from_noise() {
    let now = small_run();
    let same = page(&now, Some(&now)).text;
    assert!(
        between(&same, "Against an earlier run", "Point lookups a second")
            .contains("Nothing changed significantly.")
    );

    let mut slower = small_run();
    slower.machine[0].1 = "Other CPU".to_owned();
    for m in slower.measurements.iter_mut().filter(|m| m.contender == "slow" && m.metric == "throughput") {
        m.samples.iter_mut().for_each(|sample| *sample *= 0.5);
        (m.median, m.low, m.high) = (m.median * 0.5, m.low * 0.5, m.high * 0.5);
    }
    let faster = page(&now, Some(&slower)).text;
    let section = between(&faster, "Against an earlier run", "Point lookups a second");
    assert!(section.contains("▲ 2.00×") && section.contains("Test CPU, before Other CPU"), "{section}");
    let back = page(&slower, Some(&now)).text;
    assert!(between(&back, "Against an earlier run", "Point lookups a second").contains("▼ 0.50×"));

    let mut stranger = small_run();
    stranger.measurements.iter_mut().for_each(|m| m.case.dataset = "another".to_owned());
    assert!(page(&now, Some(&stranger)).text.contains("no measurement in common"));
}

/// Goal: the command that repeats the run is the recorded one, or follows from mode and seed.
/// Method: both.
#[test]
fn the_run_can_be_repeated() {
    let mut run = small_run();
    assert!(text_of(&run).contains("cairn bench hash --full --seed 42"));
    run.machine.push(("command".to_owned(), "cairn bench hash --entries 5".to_owned()));
    assert!(text_of(&run).contains("cairn bench hash --entries 5"));
}

/// Goal: more contenders than colours and shapes still give a complete page. Method: forty
/// families.
#[test]
fn many_contenders_fit() {
    let names: Vec<String> =
        (0..40).map(|index| format!("engine number {index} with a rather long name")).collect();
    let contenders =
        names.iter().enumerate().map(|(index, name)| contender(name, name, index % 4 == 0)).collect();
    let mut measurements = Vec::new();
    for (index, name) in names.iter().enumerate() {
        for threads in [1, 2, 8] {
            let speed = 1e5 * (index + 1) as f64;
            let mut m = measurement(name, "get", "throughput", &[speed, speed * 1.01]);
            m.case.threads = threads;
            measurements.push(m);
        }
    }
    page(&run(contenders, measurements), None);
}

fn any_measurement() -> impl Strategy<Value = Measurement> {
    let operation = prop_oneof!["get", "get_many", "build", "open", "cold get", "size", "\\PC{0,6}"];
    let metric = prop_oneof![
        "throughput",
        "time",
        "bytes per entry",
        "index bytes per entry",
        "peak memory",
        "\\PC{0,6}"
    ];
    let unit = prop_oneof!["ops/s", "ns", "s", "B", "\\PC{0,3}"];
    let figures = proptest::collection::vec(any::<f64>(), 0..4);
    let shape = ("[abc]", operation, metric, unit, any::<bool>(), any::<bool>());
    let numbers = (figures, any::<f64>(), any::<f64>(), any::<f64>(), any::<u64>(), 0..40_u32);
    (shape, numbers, "\\PC{0,4}").prop_map(|(shape, numbers, word)| {
        let (contender, operation, metric, unit, higher_is_better, verified) = shape;
        let (samples, median, low, high, entries, threads) = numbers;
        let mut case = case(&operation);
        (case.entries, case.threads, case.compression) = (entries, threads, word.clone());
        let percentiles = samples.iter().map(|value| (word.clone(), *value)).collect();
        Measurement {
            one_turn: false,
            contender,
            case,
            metric,
            unit,
            higher_is_better,
            samples,
            median,
            low,
            high,
            percentiles,
            verified,
        }
    })
}

proptest! {
    #![proptest_config(cases(64))]

    /// Goal: every run gives a well-formed page. Method: random numbers, of all bit patterns, and
    /// random words.
    #[test]
    fn any_run_gives_a_well_formed_page(measurements in proptest::collection::vec(any_measurement(), 0..12)) {
        let contenders = vec![contender("a", "ours", true), contender("b", "peer", false)];
        let run = run(contenders, measurements);
        page(&run, Some(&run));
    }
}

/// Goal: readers find the size of the store that they read, even if builders are contenders of
/// their own. Method: two readers of one builder, and a peer whose readers' names do not begin with
/// the builder's.
#[test]
fn readers_show_the_size_of_their_store() {
    let names = [("cairn", "cairn", true), ("cairn mmap", "cairn", true), ("cairn heap", "cairn", true)];
    let peers = [("java in-memory build", "java", false), ("java READER", "java", false)];
    let contenders =
        names.into_iter().chain(peers).map(|(name, family, ours)| contender(name, family, ours)).collect();
    let mut measurements = Vec::new();
    for (builder, bytes) in [("cairn", 20.0), ("java in-memory build", 37.0)] {
        let mut size = measurement(builder, "size", "bytes per entry", &[bytes]);
        (size.case.keys, size.case.distribution, size.case.threads) = (String::new(), String::new(), 0);
        measurements.push(size);
    }
    for reader in ["cairn mmap", "cairn heap", "java READER"] {
        measurements.push(measurement(reader, "get", "throughput", &[1e6, 1.1e6]));
    }
    let text = text_of(&run(contenders, measurements));
    let section = between(&text, "Speed against space", "All measurements");
    let rows: Vec<&str> = section.lines().collect();
    for expected in [
        ["cairn mmap", "1.10 M/s", "20 B"],
        ["cairn heap", "1.10 M/s", "20 B"],
        ["java READER", "1.10 M/s", "37 B"],
    ] {
        assert!(rows.windows(3).any(|row| row == expected), "{expected:?} not in {section}");
    }
    assert!(!text.contains("Not measured in this case"), "builders do not look up, readers do not build");
}

/// Goal: a quick run, which measures only one store in detail, opens with that store. Method:
/// builds and openings of only the smaller store.
#[test]
fn the_best_measured_store_comes_first() {
    let mut run = small_run();
    run.measurements.retain(|m| m.case.entries == 1_000_000 && m.case.threads == 1);
    for m in &mut run.measurements {
        (m.case.entries, m.case.dataset) = (100_000, "words".to_owned());
    }
    let mut large: Vec<Measurement> =
        run.measurements.iter().filter(|m| m.case.operation == "get").cloned().collect();
    for m in &mut large {
        (m.case.entries, m.case.dataset) = (1_000_000, "synthetic".to_owned());
    }
    run.measurements.extend(large);
    let text = text_of(&run);
    assert!(between(&text, "Verdict", "Point lookups").contains("words · 100 k entries"));
}

/// Goal: of a family with many contenders only the leaders are shown at once, and none is lost.
/// Method: one peer with thirty readers.
#[test]
fn large_families_show_only_their_leaders() {
    let readers: Vec<String> = (0..30).map(|index| format!("java reader {index}")).collect();
    let mut contenders: Vec<Contender> = readers.iter().map(|name| contender(name, "java", false)).collect();
    contenders.push(contender("cairn", "cairn", true));
    let speed = |index: usize| 1e5 * (index + 1) as f64;
    let mut measurements: Vec<Measurement> = readers
        .iter()
        .enumerate()
        .map(|(index, name)| measurement(name, "get", "throughput", &[speed(index), speed(index)]))
        .collect();
    measurements.push(measurement("cairn", "get", "throughput", &[1e5, 1e5]));
    let html = render_html(&run(contenders, measurements), None);
    let start = html.find("id=\"lookups\"").unwrap();
    let figure = &html[start..start + html[start..].find("</section>").unwrap()];
    let (shown, folded) = figure.split_once("27 more rows of the same families").unwrap();
    assert_eq!((shown.matches("<g class=\"bar").count(), folded.matches("<g class=\"bar").count()), (4, 27));
    assert!(
        shown.contains("java reader 29") && shown.contains(">cairn<") && !shown.contains("java reader 26")
    );
}

/// Goal: a run of buffer pools has its own figures, with one line per policy, and does not appear
/// in the others. Reads without a pool and the optimum are drawn, but do not take part in the
/// verdict.
#[test]
fn pools_have_their_figures() {
    let phase = |m: Measurement, phase: &str, threads: u32, frames: u64| {
        let mut m = m;
        (m.case.dataset, m.case.threads, m.case.entries) = (phase.to_owned(), threads, frames);
        m
    };
    let mut measurements = Vec::new();
    for (name, speed) in [("cairn lru", 2.0), ("cairn sieve", 3.0), ("textbook", 1.0), ("raw read", 9.0)] {
        let samples = |at: f64| [0.99, 1.0, 1.01].map(|noise| at * noise);
        measurements.push(phase(
            measurement(name, "Cold Pin (miss)", "latency", &samples(1e3 / speed)),
            "phase 1",
            1,
            12,
        ));
        for threads in [1, 2, 256] {
            let m = measurement(name, "pin", "throughput", &samples(1e6 * speed));
            measurements.push(phase(m, "phase 5", threads, 4096));
        }
        for frames in [8, 16] {
            let operation = format!("Pool Size ({frames} buffers, K=100)");
            let mut m =
                phase(measurement(name, &operation, "hit rate", &samples(speed)), "phase 3", 1, frames);
            (m.unit, m.higher_is_better) = ("%".to_owned(), true);
            measurements.push(m.clone());
            (m.case.operation, m.case.dataset) = ("Hit Rate (Sequential)".to_owned(), "phase 4".to_owned());
            measurements.push(m.clone());
            (m.case.operation, m.case.dataset) = ("sprite".to_owned(), "trace".to_owned());
            measurements.push(m);
        }
    }
    let contenders = [("cairn lru", true), ("cairn sieve", true), ("textbook", false), ("raw read", false)];
    let contenders = contenders.map(|(name, ours)| contender(name, name, ours)).to_vec();
    let run = Run { suite: "pool".to_owned(), ..run(contenders, measurements) };
    let shown = page(&run, None);
    for id in ["pages", "pool-threads", "frames", "hits", "traces"] {
        assert!(render_html(&run, None).contains(&format!("<section class=\"figure\" id=\"{id}\"")), "{id}");
    }
    assert!(!render_html(&run, None).contains("id=\"other\""));
    assert!(
        shown.text.contains("Buffer pools, measured") && shown.text.contains("phase 5, throughput"),
        "{}",
        shown.text
    );
    let verdict = shown.text.split("Cost of a page").next().unwrap_or_default();
    assert!(verdict.contains("textbook") && !verdict.contains("raw read"), "{verdict}");
}
