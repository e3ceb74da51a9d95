//! The suite with all available contenders, on little data.

use std::collections::BTreeSet;

use super::plan::{Group, name_of};
use super::*;
use crate::catalog::installed;
use crate::core::answer::Cell;
use crate::core::progress::Silent;
use crate::core::scratch::Scratch;
use crate::core::settings::Settings;
use crate::core::time::date_text;
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::sql::*;

fn options(scratch: &Scratch) -> Options {
    Options {
        iterations: 2,
        durability: Durability::Buffered,
        rows: 400,
        load_rows: 300,
        threads: vec![1, 2],
        writers: vec![2],
        clients: 3,
        cache_bytes: 8 << 20,
        rounds: 2,
        seconds: 0.01,
        work_dir: scratch.path().to_owned(),
        probes: None,
        ..Options::with_all(&installed().sql)
    }
}

/// Returns the operations that a contender could not do.
fn problems_of(contender: &Contender) -> impl Iterator<Item = &String> {
    let problems = contender.settings.iter().filter(|(name, _)| name.starts_with("not measured"));
    problems.map(|(_, problem)| problem)
}

/// Returns whether a problem is a feature that the engine lacks so far. The engine's own tests
/// cover these.
fn is_unsupported(problem: &str) -> bool {
    problem.contains("(0A000)")
}

/// Goal: every available contender measures every case, every answer is correct, and the list for
/// dashboards has each of the guide's names once. Method: a whole run on little data.
#[test]
fn every_case_measures() {
    let scratch = Scratch::temporary("sqlsuite").unwrap();
    let options = options(&scratch);
    let run = run(&options, installed(), &Silent, &Stop::default()).unwrap();
    let here: Vec<&Contender> = run.contenders.iter().filter(|c| c.skipped.is_none()).collect();
    assert!(!here.is_empty() && !run.stopped);
    for contender in &here {
        let problems: Vec<&String> = problems_of(contender).collect();
        assert!(problems.iter().all(|problem| is_unsupported(problem)), "{}: {problems:?}", contender.name);
        for case in plan(&options) {
            let found =
                run.measurements.iter().find(|m| m.contender == contender.name && m.case == case.case);
            let Some(found) = found else {
                assert!(!problems.is_empty(), "{} has no {}", contender.name, case.name);
                continue;
            };
            assert!(found.verified && found.median > 0.0 && found.samples.len() == 2, "{found:?}");
        }
    }
    let list: serde_json::Value = serde_json::from_str(&text::to_json(&run)).unwrap();
    let names: BTreeSet<&str> =
        list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), list.as_array().unwrap().len());
    let whole = here.iter().all(|contender| problems_of(contender).next().is_none());
    assert!(!whole || names.len() == plan(&options).len() * here.len());
    for name in ["INSERT (single record)", "SELECT (table scan)", "SELECT COUNT(*)", "UPDATE (single record)"]
    {
        assert!(names.contains(name), "{names:?}");
    }
    let shown = text::to_text(&run);
    for group in Group::ALL {
        assert!(shown.contains(group.title()), "{shown}");
    }
    assert!(shown.contains("mixed load, 80 % reads t3"), "{shown}");
}

/// Goal: the filter selects by name, but not for dashboards; names follow from stored cases;
/// invalid options and unknown engines are refused.
#[test]
fn plans_and_options() {
    let scratch = Scratch::temporary("sqlsuite").unwrap();
    let filtered = |filter: &str| Options { filter: Some(filter.to_owned()), ..options(&scratch) };
    let names =
        |options: &Options| -> Vec<String> { plan(options).iter().map(|case| case.name.clone()).collect() };
    let all = names(&options(&scratch));
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(names(&filtered("SELECT (")), ["SELECT (table scan)"]);
    assert_eq!(names(&filtered("point read")), ["point read", "point read t2"]);
    assert!(names(&filtered("no such case")).is_empty());
    assert_eq!(names(&Options { for_dashboard: true, ..filtered("INSERT") }), all);
    for case in plan(&options(&scratch)) {
        assert_eq!(name_of(&case.case), case.name);
    }
    let refused: [fn(&mut Options); 5] = [
        |o| o.rounds = 0,
        |o| o.rows = 10,
        |o| o.threads = vec![0],
        |o| (o.peers, o.ours) = (Vec::new(), Vec::new()),
        |o| o.tpch = Some(0.0),
    ];
    for wrong in refused {
        let mut options = options(&scratch);
        wrong(&mut options);
        assert!(options.check().is_err(), "{options:?}");
    }
    assert!(Options::default().check().is_ok());
    let unknown = Options { peers: vec!["oracle".to_owned()], ..options(&scratch) };
    let error = run(&unknown, installed(), &Silent, &Stop::default()).unwrap_err().to_string();
    assert!(error.contains("engine \"oracle\": expected "), "{error}");
}

/// An engine that gives wrong answers.
#[derive(Debug)]
struct WrongEngine(Box<dyn SqlStore>, &'static str);

struct WrongDb(Box<dyn SqlDb>, &'static str);

struct WrongSession<'s>(&'s mut dyn SqlSession, &'static str, Vec<String>);

impl SqlStore for WrongEngine {
    fn name(&self) -> &str {
        "wrong"
    }
    fn version(&self) -> String {
        self.0.version()
    }
    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }
    fn guarantee(&self, durability: Durability) -> Guarantee {
        self.0.guarantee(durability)
    }
    fn settings(&self, settings: &SqlSettings) -> Settings {
        self.0.settings(settings)
    }
    fn open(&self, dir: &std::path::Path, settings: &SqlSettings) -> Result<Box<dyn SqlDb>> {
        Ok(Box::new(WrongDb(self.0.open(dir, settings)?, self.1)))
    }
}

impl SqlDb for WrongDb {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        self.0.with_session(&mut |session| work(&mut WrongSession(session, self.1, Vec::new())))
    }
    fn load(&self, table: &str, columns: usize, rows: &mut dyn Rows) -> Result<u64> {
        self.0.load(table, columns, rows)
    }
    fn analyze(&self) -> Result<()> {
        self.0.analyze()
    }
    fn settle(&self) -> Result<()> {
        self.0.settle()
    }
    fn bytes(&self, tables: &[&str]) -> Result<u64> {
        self.0.bytes(tables)
    }
    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

impl WrongSession<'_> {
    fn lies(&self, sql: &str) -> bool {
        sql.contains(self.1)
    }
}

impl SqlSession for WrongSession<'_> {
    fn execute(&mut self, sql: &str) -> Result<u64> {
        if self.lies(sql) { Ok(1) } else { self.0.execute(sql) }
    }
    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()> {
        if self.lies(sql) { Ok(()) } else { self.0.select(sql, visit) }
    }
    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.2.push(sql.to_owned());
        self.0.prepare(sql)
    }
    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64> {
        if self.lies(&self.2[statement.0]) { Ok(1) } else { self.0.run(statement, parameters) }
    }
    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()> {
        if self.lies(&self.2[statement.0]) { Ok(()) } else { self.0.query(statement, parameters, visit) }
    }
    fn begin(&mut self) -> Result<()> {
        self.0.begin()
    }
    fn commit(&mut self) -> Result<()> {
        self.0.commit()
    }
    fn rollback(&mut self) -> Result<()> {
        self.0.rollback()
    }
}

/// Goal: an engine that gives wrong answers, or that reports work that it has not done, has no
/// measurement. Method: engines that skip one kind of statement each.
#[cfg(feature = "peers")]
#[test]
fn wrong_engines_are_caught() {
    for (lie, case) in [
        ("SELECT id, grp", "point read"),
        ("ORDER BY id", "range read of 100 rows"),
        ("UPDATE records", "update, autocommitted"),
        ("DELETE FROM records", "insert, autocommitted"),
        ("JOIN", "index join"),
        ("GROUP BY", "aggregates of groups"),
        ("SELECT COUNT(*)", "SELECT COUNT(*)"),
        ("SET age = 99 WHERE id = 0", "UPDATE (single record)"),
        ("VALUES (88888", "INSERT (single record)"),
    ] {
        let scratch = Scratch::temporary("sqlsuite").unwrap();
        let options = Options { filter: Some(case.to_owned()), threads: vec![1], ..options(&scratch) };
        let wrong = WrongEngine(Box::new(crate::peers::sql::sqlite::Sqlite), lie);
        let selection = Selection::<dyn SqlStore> { stores: vec![Box::new(wrong)], skipped: Vec::new() };
        let run = run_with(&options, selection, &Silent, &Stop::default()).unwrap();
        assert!(run.measurements.is_empty() && run.contenders[0].skipped.is_some(), "{lie}: {run:?}");
    }
}

/// Goal: a run that is stopped is marked as stopped and keeps its results.
#[test]
fn a_stopped_run_says_so() {
    let scratch = Scratch::temporary("sqlsuite").unwrap();
    let stop = Stop::default();
    stop.ask();
    let notes = crate::core::testing::Notes::default();
    let run = run(&options(&scratch), installed(), &notes, &stop).unwrap();
    assert!(run.stopped && run.measurements.is_empty());
    assert!(!notes.0.borrow().iter().any(|note| note.contains("kept")), "there is nothing: {notes:?}");
}

/// Goal: days are formatted as the right dates.
#[test]
fn days_are_formatted_as_dates() {
    for (days, text) in [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (10_957, "2000-01-01"),
        (11_016, "2000-02-29"),
        (20_778, "2026-11-21"),
    ] {
        assert_eq!(date_text(days), text);
    }
}

/// Goal: every available contender loads TPC-H, all answers to the 22 queries agree, and each query
/// is timed. Method: a two-hundredth of scale factor 1.
#[test]
fn tpch_answers_agree() {
    let scratch = Scratch::temporary("sqlsuite").unwrap();
    let options = Options { tpch: Some(0.005), rounds: 1, ..options(&scratch) };
    let run = run(&options, installed(), &Silent, &Stop::default()).unwrap();
    for contender in run.contenders.iter().filter(|contender| contender.skipped.is_none()) {
        let mut cases: Vec<&str> = run
            .measurements
            .iter()
            .filter(|m| m.contender == contender.name && m.metric == "time")
            .map(|m| m.case.operation.as_str())
            .collect();
        cases.sort_unstable();
        let mut expected: Vec<String> = (1..=tpch::QUERIES).map(|number| format!("Q{number}")).collect();
        expected.extend(["all 22 queries".to_owned(), "load".to_owned()]);
        expected.sort_unstable();
        let is_whole = !problems_of(contender).any(|problem| is_unsupported(problem));
        assert!(!is_whole || cases == expected, "{}: {cases:?} {:?}", contender.name, contender.settings);
    }
}

/// Goal: pgbench runs against every available server, and its books balance.
#[cfg(feature = "peers")]
#[test]
fn pgbench_runs() {
    let scratch = Scratch::temporary("sqlsuite").unwrap();
    let options = Options { pgbench: Some(1), rounds: 1, threads: vec![2], ..options(&scratch) };
    let run = run(&options, installed(), &Silent, &Stop::default()).unwrap();
    let Ok(_) = crate::peers::sql::postgres::Postgres::find() else { return };
    for operation in ["pgbench -S", "pgbench TPC-B-like"] {
        let found = run
            .measurements
            .iter()
            .find(|m| m.contender == "postgres" && m.case.operation == operation && m.metric == "throughput");
        assert!(found.is_some_and(|m| m.verified && m.median > 0.0), "{operation}: {run:?}");
    }
}
