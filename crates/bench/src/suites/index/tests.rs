//! Tests of the suite without a server where possible, and with a server if there is one.

use super::*;
use crate::core::process::Stop;
use crate::core::progress::Silent;

/// Goal: every set is complete for a run, and names distinguish sets and queries. Method: all of
/// them, at two scales.
#[test]
fn sets_are_whole() {
    for scale in [0.001, 1.0] {
        let options = Options { suites: Suite::ALL.to_vec(), scale, ..Options::default() };
        let all = plan(&options);
        let mut names: Vec<&str> = all.iter().map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for set in &all {
            assert!(!set.keys.is_empty() && !set.queries.is_empty() && set.rows >= 1000, "{set:?}");
            let accesses = sets::accesses(set);
            assert!(accesses.iter().all(|access| sets::CONTENDERS.contains(&access.name)));
            assert_eq!(accesses.iter().filter(|access| access.family == "btree").count(), 2);
        }
    }
    let some =
        Options { suites: Suite::ALL.to_vec(), filter: Some("thrash".to_owned()), ..Options::default() };
    assert_eq!(plan(&some).len(), 2);
}

/// Goal: invalid options are refused by name. Method: one of each.
#[test]
fn wrong_options() {
    let fails = |options: Options, what: &str| {
        let error = options.check().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    fails(Options { rounds: 0, ..Options::default() }, "round");
    fails(Options { scale: 0.0, ..Options::default() }, "scale");
    fails(Options { contenders: vec!["gin".to_owned()], ..Options::default() }, "\"gin\"");
    Options::default().check().unwrap();
}

/// Goal: the buffers are those of the top node. Method: a plan of two nodes, followed by the
/// buffers of planning.
#[cfg(feature = "peers")]
#[test]
fn buffers_of_a_plan() {
    let plan = "Aggregate (actual rows=1 loops=1)|\n  Buffers: shared hit=20 read=3 dirtied=1|\n  ->  Index Only Scan using d_btree on d|\n        \
         Buffers: shared hit=19 read=3|\nPlanning:|\n  Buffers: shared hit=7|\n";
    assert_eq!(session::buffers(plan), (20.0, 3.0));
    assert_eq!(session::buffers("Result|\n"), (0.0, 0.0));
}

/// Goal: a whole run, with every kind of measurement checked. Method: the guide's first query over
/// a thousand rows, on PostgreSQL's own access methods and, if the server has it, ours. Without a
/// server the test does nothing.
#[cfg(feature = "peers")]
#[test]
fn a_small_run() {
    if crate::peers::sql::postgres::Postgres::find().is_err() {
        return;
    }
    let scratch = crate::core::scratch::Scratch::in_dir(&std::env::temp_dir(), "index-test").unwrap();
    let options = Options {
        scale: 0.001,
        filter: Some("Q1".to_owned()),
        rounds: 1,
        seconds: 0.0,
        cold: false,
        work_dir: scratch.path().to_owned(),
        probes: None,
        ..Options::default()
    };
    let run = run(&options, crate::catalog::installed(), &Silent, &Stop::default()).unwrap();
    assert!(run.measurements.iter().all(|m| m.verified), "{:?}", run.measurements);
    let of = |contender: &str, metric: &str| {
        run.measurements.iter().any(|m| m.contender == contender && m.metric == metric && m.median > 0.0)
    };
    assert!(
        of("btree", "latency")
            && of("btree", "time")
            && of("btree", "bytes per entry")
            && of("btree", "pages hit")
    );
    assert!(of("sequential scan", "latency") && of("hash", "latency"));
    let text = text::to_text(&run);
    assert!(text.contains("Q1, shuffled") && text.contains("range of 50 %"), "{text}");
}
