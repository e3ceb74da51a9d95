//! One run on a private server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::sets::{Access, DataSet, Query, accesses};
use super::{NAME, Options, plan, session};
use crate::core::answer::Answer;
use crate::core::error::{Error, Result};
use crate::core::page_cache::make_cold;
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::recorder::{BYTES, LATENCY, Metric, Recorder, TIME};
use crate::core::results::{Case, Contender, Run};
use crate::core::workload::shuffle;
use crate::core::{results, stats};
use crate::stores::catalog::{PostgresTools, StartServer};
use crate::stores::sql::{PrivateServer, SqlSession};
use crate::suites::driver::{self, Description, Lab, Setup, Suite};

const HIT: Metric = Metric { name: "pages hit", unit: "pages", higher_is_better: false };
const READ: Metric = Metric { name: "pages read", unit: "pages", higher_is_better: false };

/// Settings of every session. JIT is off because it would measure the compiler.
const SESSION: &str = "SET jit = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; \
     SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0";

struct IndexSuite<'a> {
    options: &'a Options,
    start: StartServer,
    /// PostgreSQL's version, once the server runs.
    version: String,
    /// Whether the server has the extension; if not, the reason.
    cairn: std::result::Result<(), String>,
    definitions: BTreeMap<&'static str, BTreeMap<String, String>>,
}

/// A run with its server.
struct Bench<'r, 'lab> {
    options: &'r Options,
    lab: &'r mut Lab<'lab>,
    server: Box<dyn PrivateServer>,
    /// Whether the server has the extension.
    has_cairn: bool,
    definitions: &'r mut BTreeMap<&'static str, BTreeMap<String, String>>,
}

fn settings(options: &Options) -> Vec<(&'static str, String)> {
    [
        ("shared_buffers", format!("{}kB", options.shared_buffers / 1024)),
        ("fsync", "off".to_owned()),
        ("max_wal_size", "8GB".to_owned()),
        ("checkpoint_timeout", "1h".to_owned()),
        ("autovacuum", "off".to_owned()),
        ("work_mem", "64MB".to_owned()),
        ("maintenance_work_mem", "256MB".to_owned()),
        ("max_worker_processes", "16".to_owned()),
        ("max_parallel_workers", "8".to_owned()),
        ("max_parallel_maintenance_workers", "0".to_owned()),
    ]
    .into()
}

pub(super) fn run(
    options: &Options,
    tools: PostgresTools,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    let mut suite = IndexSuite {
        options,
        start: tools.start,
        version: String::new(),
        cairn: Ok(()),
        definitions: BTreeMap::new(),
    };
    driver::drive(&mut suite, progress, stop)
}

impl Suite for IndexSuite<'_> {
    fn setup(&self) -> Setup<'_> {
        let Options { ref work_dir, probes, seed, .. } = *self.options;
        Setup { suite: NAME, work_dir, probes, seed }
    }

    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()> {
        let server = (self.start)(&lab.scratch.dir("pg")?, &settings(self.options))?;
        self.version = format!("PostgreSQL {}", server.version());
        server.with_session(&mut |session| {
            if let Err(error) = session.execute("CREATE EXTENSION cairn") {
                self.cairn = Err(format!("{error}; make install in bindings/postgres installs it"));
            }
            Ok(())
        })?;
        if let Err(reason) = &self.cairn {
            lab.progress.note(&format!("cairn is left out: {reason}"));
        }
        let IndexSuite { options, ref cairn, ref mut definitions, .. } = *self;
        let mut bench = Bench { options, lab, server, has_cairn: cairn.is_ok(), definitions };
        let measured = bench.all();
        match measured {
            // An interrupted run keeps its figures only if the server ends well.
            Ok(()) | Err(Error::Interrupted) => bench.server.close().and(measured),
            Err(error) => Err(error),
        }
    }

    fn description(&self) -> Description {
        let options = self.options;
        let rows: Vec<String> =
            plan(options).iter().map(|set| format!("{} of {} rows", set.name, set.rows)).collect();
        Description {
            mode: format!("{} rounds, {} times the guide's rows", options.rounds, options.scale),
            data: format!("Made by SQL from the seed: {}", rows.join("; ")),
            settings: results::named([
                ("shared buffers, bytes", options.shared_buffers.to_string()),
                ("seconds of a turn", options.seconds.to_string()),
            ]),
        }
    }

    fn contenders(&self, recorder: &Recorder) -> Vec<Contender> {
        let families = |name: &str| match name {
            "sequential scan" => "seqscan".to_owned(),
            name => name.split(' ').next().unwrap_or_default().to_owned(),
        };
        let given = settings(self.options);
        let one = |name: &String| {
            let mut all: BTreeMap<String, String> =
                given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let defined = self.definitions.get(name.as_str()).into_iter().flatten();
            all.extend(defined.map(|(name, value)| (name.clone(), value.clone())));
            let (family, version) = (families(name), &self.version);
            let ours = family == "cairn";
            let version =
                if ours { format!("{} in {version}", env!("CARGO_PKG_VERSION")) } else { version.clone() };
            match self.cairn.as_ref().err().filter(|_| ours) {
                None => driver::contender(recorder, (name, &family), (version, ours), all),
                missing => Contender {
                    name: name.clone(),
                    family,
                    version,
                    ours,
                    settings: all,
                    skipped: missing.cloned(),
                },
            }
        };
        self.options.contenders.iter().map(one).collect()
    }
}

fn case(set: &DataSet, operation: &str, state: &str, workers: u32) -> Case {
    let keys = if state.is_empty() { "" } else { "present" };
    Case::new(operation, format!("index: {}", set.name), set.rows).lookups(keys, state, workers)
}

impl Bench<'_, '_> {
    fn all(&mut self) -> Result<()> {
        let sets = plan(self.options);
        for (index, set) in sets.iter().enumerate() {
            self.lab.progress.group(index, sets.len(), &set.name);
            let taking_part: Vec<Access> = accesses(set)
                .into_iter()
                .filter(|access| self.options.contenders.iter().any(|name| name == access.name))
                .filter(|access| !access.ours() || self.has_cairn)
                .collect();
            self.set(set, &taking_part)?;
        }
        Ok(())
    }

    fn sql(&self, sql: &str) -> Result<()> {
        self.server.with_session(&mut |session| session::execute(session, sql))
    }

    fn set(&mut self, set: &DataSet, all: &[Access]) -> Result<()> {
        let order = if set.shuffled { "ORDER BY random()" } else { "" };
        let seed = (self.options.seed % 1000) as f64 / 1000.0;
        self.lab.progress.step(0, set.queries.len() + 1, "build");
        let rows = format!(
            "SELECT setseed({seed}); DROP TABLE IF EXISTS d; DROP TABLE IF EXISTS s; \
             CREATE UNLOGGED TABLE s AS SELECT {} FROM generate_series(1, {}) g; \
             CREATE UNLOGGED TABLE d AS SELECT * FROM s {order}; DROP TABLE s; VACUUM (FREEZE, ANALYZE) d",
            set.columns, set.rows
        );
        self.sql(&rows)?;
        self.build(set, all)?;
        for (index, query) in set.queries.iter().enumerate() {
            self.lab.progress.step(index + 1, set.queries.len() + 1, &query.name);
            self.query(set, query, all)?;
            if self.options.cold && index == 0 {
                self.cold(set, query, all)?;
            }
        }
        if set.writes {
            self.writes(set, all)?;
        }
        self.sql("DROP TABLE d")
    }

    /// Builds every index, once per round. Large tables have three rounds at most, very large ones
    /// only one.
    fn build(&mut self, set: &DataSet, all: &[Access]) -> Result<()> {
        let mut indexes: Vec<&Access> = Vec::new();
        for access in all.iter().filter(|access| access.index.is_some()) {
            if !indexes.iter().any(|known| known.index == access.index) {
                indexes.push(access);
            }
        }
        let rounds = if set.rows > 10_000_000 {
            1
        } else if set.rows > 2_000_000 {
            3
        } else {
            self.options.rounds
        };
        let (build, size) = (case(set, "build", "", 0), case(set, "size", "", 0));
        for _ in 0..rounds.min(self.options.rounds) {
            shuffle(&mut indexes, &mut self.lab.rng);
            for access in &indexes {
                self.lab.stop.check()?;
                let index = access.index.unwrap_or_default();
                let (mut nanos, mut bytes) = (0.0, 0.0);
                self.server.with_session(&mut |session| {
                    session::execute(session, &format!("{SESSION}; DROP INDEX IF EXISTS {index}"))?;
                    nanos =
                        session::time(session, &format!("CREATE INDEX {index} ON d {}", access.definition))?;
                    bytes = session::number(session, &format!("SELECT pg_relation_size('{index}')"))?;
                    Ok(())
                })?;
                for user in all.iter().filter(|user| user.index == access.index) {
                    self.definitions
                        .entry(user.name)
                        .or_default()
                        .insert(format!("index on {}", set.name), access.definition.clone());
                    self.lab.recorder.add(user.name, &build, TIME, nanos / 1e9);
                    self.lab.recorder.add(user.name, &size, BYTES, bytes / set.rows as f64);
                }
            }
        }
        for user in all {
            self.lab.recorder.verify(user.name, &build);
        }
        Ok(())
    }

    /// Makes only one index visible to the planner, and runs `work` in a session with a contender's
    /// settings.
    fn with_access(
        &self,
        access: &Access,
        workers: u32,
        work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>,
    ) -> Result<()> {
        let only =
            access.index.map_or("false".to_owned(), |index| format!("indexrelid = '{index}'::regclass"));
        self.sql(&format!("UPDATE pg_index SET indisvalid = ({only}) WHERE indrelid = 'd'::regclass"))?;
        self.server.with_session(&mut |session| {
            // The library must be loaded before its settings exist.
            if access.ours() {
                session.execute("LOAD 'cairn'")?;
            }
            session::execute(session, &format!("{SESSION}; {}", access.settings))?;
            session::execute(session, &format!("SET max_parallel_workers_per_gather = {workers}"))?;
            work(session)
        })
    }

    fn query(&mut self, set: &DataSet, query: &Query, all: &[Access]) -> Result<()> {
        let mut taking_part: Vec<&Access> = all.iter().collect();
        let of = case(set, &query.name, "warm", query.workers);
        let mut expected: Option<Answer> = None;
        for round in 0..self.options.rounds {
            shuffle(&mut taking_part, &mut self.lab.rng);
            let mut out = Vec::new();
            for access in &taking_part {
                self.lab.stop.check()?;
                // Pages are counted in two rounds, because a value that differs between them is not
                // a count.
                let taken = self.turn(query, access, round < 2, &mut expected);
                match taken {
                    Ok(Some((nanos, buffers))) => {
                        self.lab.recorder.add(access.name, &of, LATENCY, nanos);
                        if let Some((hit, read)) = buffers {
                            self.lab.recorder.add(access.name, &of, HIT, hit);
                            self.lab.recorder.add(access.name, &of, READ, read);
                        }
                    }
                    Ok(None) => out.push(access.name),
                    Err(error) => {
                        self.refuse(access, &query.name, &of, &error);
                        out.push(access.name);
                    }
                }
            }
            taking_part.retain(|access| !out.contains(&access.name));
        }
        Ok(())
    }

    /// Removes a contender from a case and reports the reason. A wrong answer disqualifies it on
    /// the whole data set; any other error only drops its samples of this case.
    fn refuse(&mut self, access: &Access, what: &str, of: &Case, error: &Error) {
        self.lab.progress.note(&format!("{} in {what}: {error}", access.name));
        if error.is_wrong_result() {
            self.lab.recorder.disqualify(access.name, of, error.to_string());
        } else {
            self.lab.recorder.discard(access.name, of, error.to_string());
        }
    }

    /// Runs a contender's turn. Returns the nanoseconds of a query, and its buffers if `counts` is
    /// set, or `None` if the planner does not use the contender's index.
    #[allow(clippy::type_complexity, reason = "a pair of a figure and a pair of figures")]
    fn turn(
        &self,
        query: &Query,
        access: &Access,
        counts: bool,
        expected: &mut Option<Answer>,
    ) -> Result<Option<(f64, Option<(f64, f64)>)>> {
        let mut taken = None;
        self.with_access(access, query.workers, &mut |session| {
            if !session::plan(session, &query.sql, false)?.contains(access.plan) {
                return Ok(());
            }
            // The first execution warms up the session's own caches, like those of a persistent
            // connection.
            let found = session::answer(session, &query.sql)?;
            Error::expect_answer(&query.sql, *expected.get_or_insert(found), found)?;
            let nanos = stats::median(&session::times(session, &query.sql, self.options.seconds)?);
            let buffers = if counts {
                Some(session::buffers(&session::plan(session, &query.sql, true)?))
            } else {
                None
            };
            taken = Some((nanos, buffers));
            Ok(())
        })?;
        Ok(taken)
    }

    /// Measures the first answer of a server that has just been started, with the table and its
    /// indexes only on disk. The catalogs have been read already to make the plan.
    fn cold(&mut self, set: &DataSet, query: &Query, all: &[Access]) -> Result<()> {
        let of = case(set, &query.name, "cold", query.workers);
        let mut taking_part: Vec<&Access> = all.iter().collect();
        let mut expected: Option<Answer> = None;
        for _ in 0..self.options.rounds {
            shuffle(&mut taking_part, &mut self.lab.rng);
            let mut out = Vec::new();
            for access in &taking_part {
                self.lab.stop.check()?;
                match self.cold_turn(query, access, &mut expected) {
                    Ok(Some(nanos)) => self.lab.recorder.add(access.name, &of, LATENCY, nanos),
                    Ok(None) => {}
                    Err(error) => {
                        self.refuse(access, &query.name, &of, &error);
                        out.push(access.name);
                    }
                }
            }
            taking_part.retain(|access| !out.contains(&access.name));
        }
        Ok(())
    }

    /// Runs a contender's turn on a server that has just been started. Returns nanoseconds, or
    /// `None` if the planner does not use the contender's index.
    fn cold_turn(
        &mut self,
        query: &Query,
        access: &Access,
        expected: &mut Option<Answer>,
    ) -> Result<Option<f64>> {
        // A server writes its dirty pages at shutdown, so the index must be chosen before it.
        self.with_access(access, query.workers, &mut |session| session.execute("CHECKPOINT").map(drop))?;
        let mut database = PathBuf::new();
        self.server.with_session(&mut |session| {
            let path = session::text(session, "SELECT pg_relation_filepath('d')::text")?;
            database = PathBuf::from(path.trim_end_matches(['|', '\n']));
            Ok(())
        })?;
        let folder = database.parent().map(PathBuf::from).unwrap_or_default();
        self.server.restart(&mut |data| make_cold(&data.join(&folder)))?;
        let mut nanos = None;
        self.with_access(access, query.workers, &mut |session| {
            if session::plan(session, &query.sql, false)?.contains(access.plan) {
                let taken = session::time(session, &query.sql)?;
                // The query runs once more for its answer, because adding up rows would be part of
                // the time.
                let found = session::answer(session, &query.sql)?;
                Error::expect_answer(&query.sql, *expected.get_or_insert(found), found)?;
                nanos = Some(taken);
            }
            Ok(())
        })?;
        Ok(nanos)
    }

    /// Writes rows to a table with an index, and measures the insert, a scan that includes the new
    /// rows, VACUUM, and the scan again.
    fn writes(&mut self, set: &DataSet, all: &[Access]) -> Result<()> {
        let key = set.keys.first().map_or("", String::as_str);
        let scan = format!("SELECT count(*) FROM w WHERE {key} > {}", set.rows / 2);
        let rows = format!(
            "INSERT INTO w SELECT (random() * {})::int FROM generate_series(1, {})",
            set.rows,
            set.rows / 10
        );
        let mut taking_part: Vec<&Access> =
            all.iter().filter(|access| matches!(access.name, "cairn scan" | "btree")).collect();
        for round in 0..self.options.rounds.min(3) {
            // All contenders get the same rows, so all must find the same.
            let seed = f64::from((self.options.seed % 1000) as u32 + round) / 2000.0;
            let mut expected: Option<Answer> = None;
            shuffle(&mut taking_part, &mut self.lab.rng);
            let mut out = Vec::new();
            for access in &taking_part {
                self.lab.stop.check()?;
                let mut figures = Vec::new();
                let measured = self.server.with_session(&mut |session| {
                    if access.ours() {
                        session.execute("LOAD 'cairn'")?;
                    }
                    session::execute(
                        session,
                        &format!("{SESSION}; {}; SET max_parallel_workers_per_gather = 0", access.settings),
                    )?;
                    session::text(session, &format!("SELECT setseed({seed})::text"))?;
                    session::execute(
                        session,
                        "DROP TABLE IF EXISTS w; CREATE UNLOGGED TABLE w AS SELECT * FROM d",
                    )?;
                    session::execute(
                        session,
                        &format!("CREATE INDEX w_i ON w {}; VACUUM (FREEZE, ANALYZE) w", access.definition),
                    )?;
                    figures.push(("insert of a tenth more", session::time(session, &rows)?));
                    session::time(session, &scan)?;
                    figures.push(("scan before VACUUM", session::time(session, &scan)?));
                    figures.push(("VACUUM", session::time(session, "VACUUM w")?));
                    session::time(session, &scan)?;
                    figures.push(("scan after VACUUM", session::time(session, &scan)?));
                    let found = session::answer(session, &scan)?;
                    Error::expect_answer(&scan, *expected.get_or_insert(found), found)?;
                    session.execute("DROP TABLE w").map(drop)
                });
                if let Err(error) = measured {
                    let of = case(set, "scan after VACUUM", "warm", 0);
                    self.refuse(access, "scan after VACUUM", &of, &error);
                    out.push(access.name);
                    continue;
                }
                for (name, nanos) in figures {
                    self.lab.recorder.add(access.name, &case(set, name, "warm", 0), LATENCY, nanos);
                }
            }
            taking_part.retain(|access| !out.contains(&access.name));
        }
        Ok(())
    }
}
