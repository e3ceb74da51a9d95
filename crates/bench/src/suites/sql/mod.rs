//! The suite of SQL engines: the guide's statements, typical statements of applications, queries,
//! bulk loads, TPC-H and pgbench.
//!
//! ```text
//!   options ─► plan: cases, in groups that share a database
//!                 └─► for each group: every contender creates its database
//!                       └─► for each case, round by round, contenders in shuffled order: one turn
//!                              │   warm-up ─ samples ─ answers compared with the data ─ settle
//!                              └─► recorder: medians of rounds ─► Run ─► text, report, JSON
//! ```
//!
//! Embedded engines run in this process, with one connection per client thread. Servers are queried
//! over their socket.

pub mod data;
pub mod guide;
mod load;
mod options;
pub mod pgbench;
pub mod plan;
pub mod repeat;
mod session_threads;
#[cfg(test)]
mod tests;
pub mod text;
pub mod tpch;
pub mod versus;

use std::path::{Path, PathBuf};

pub use options::Options;
pub use plan::{Group, SqlCase, Work, name_of, plan};

use self::data::{GroupRows, RecordRows};
use self::repeat::{History, Table};
use super::driver::{self, Description, Lab, Order, Setup, Suite};
use crate::core::error::Result;
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::recorder::{BYTES, LATENCY, MEAN_LATENCY, Recorder, THROUGHPUT};
use crate::core::results::{Contender, Run};
use crate::core::scratch::remove_tree;
use crate::core::stats;
use crate::core::workload::Durability;
use crate::stores::catalog::{Catalog, PostgresTools, Selection};
use crate::stores::sql::{Dialect, SqlDb, SqlSettings, SqlStore};

/// The suite's name in stored runs.
pub const NAME: &str = crate::stores::sql::LABEL;

/// Runs the suite with all requested contenders that are available.
///
/// Failures on the way are recorded in the result and do not end the run. When `stop` is reached,
/// the run ends with the results so far.
///
/// Errors: invalid options, a work directory that cannot be written.
pub fn run(options: &Options, catalog: &Catalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    let asked = || options.ours.iter().chain(&options.peers);
    asked().try_for_each(|name| catalog.sql.check(name))?;
    let mut names = catalog.sql.names();
    names.retain(|name| asked().any(|asked| asked == name));
    options.check()?;
    let mut suite = SqlSuite { options, stores: catalog.sql.select(&names)?, postgres: catalog.postgres };
    driver::drive(&mut suite, progress, stop)
}

/// Like [`run`], with contenders of the caller's choice.
pub fn run_with(
    options: &Options,
    stores: Selection<dyn SqlStore>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check()?;
    driver::drive(&mut SqlSuite { options, stores, postgres: None }, progress, stop)
}

struct SqlSuite<'a> {
    options: &'a Options,
    stores: Selection<dyn SqlStore>,
    /// PostgreSQL's programs, of which pgbench is one.
    postgres: Option<PostgresTools>,
}

/// A contender's database while a group is measured.
struct Open {
    name: String,
    dir: PathBuf,
    db: Box<dyn SqlDb>,
    history: History,
}

impl Suite for SqlSuite<'_> {
    fn setup(&self) -> Setup<'_> {
        let Options { ref work_dir, probes, seed, .. } = *self.options;
        Setup { suite: NAME, work_dir, probes, seed }
    }

    fn skipped(&self) -> &[Contender] {
        &self.stores.skipped
    }

    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()> {
        if let Some(scale) = self.options.tpch {
            return tpch::run(self, lab, scale);
        }
        if let Some(scale) = self.options.pgbench {
            return pgbench::run(self, lab, scale);
        }
        let cases = plan(self.options);
        let groups: Vec<Group> =
            Group::ALL.into_iter().filter(|group| cases.iter().any(|case| case.group == *group)).collect();
        for (index, &group) in groups.iter().enumerate() {
            lab.progress.group(index, groups.len(), group.title());
            let of_group: Vec<&SqlCase> = cases.iter().filter(|case| case.group == group).collect();
            self.group(lab, group, &of_group)?;
        }
        Ok(())
    }

    fn description(&self) -> Description {
        let options = self.options;
        Description {
            mode: format!("{} iterations, {} rounds", options.iterations, options.rounds),
            data: options.data_sentence(),
            settings: options.settings(),
        }
    }

    fn contenders(&self, recorder: &Recorder) -> Vec<Contender> {
        let given = self.settings(self.options.durability);
        let measured = self.stores.stores.iter().map(|store| {
            let mut settings = store.settings(&given);
            let promise = store.guarantee(given.durability).sentence();
            settings.insert(format!("durability {}", given.durability), promise);
            let name = store.name();
            driver::contender(recorder, (name, name), (store.version(), store.ours()), settings)
        });
        measured.chain(self.stores.skipped.iter().cloned()).collect()
    }
}

impl SqlSuite<'_> {
    fn group(&self, lab: &mut Lab<'_>, group: Group, cases: &[&SqlCase]) -> Result<()> {
        let table = match group {
            Group::Guide | Group::Load => Table::new(0, self.options.seed),
            _ => Table::new(group.rows(self.options), self.options.seed),
        };
        let mut opens = Vec::new();
        for (index, store) in self.stores.stores.iter().enumerate() {
            lab.stop.check()?;
            let dir = dir_of(lab, index)?;
            match self.open(group, &**store, dir.clone(), &table) {
                Ok(open) => opens.push(open),
                Err(error) => {
                    let name = store.name();
                    lab.progress.note(&format!("{name} cannot create a database: {error}"));
                    for case in cases {
                        lab.recorder.discard(name, &case.case, error.to_string());
                    }
                    // A partly created database would conflict with the next group.
                    remove_tree(&dir)?;
                }
            }
        }
        let measured = cases.iter().enumerate().try_for_each(|(index, case)| {
            lab.progress.step(index, cases.len(), &case.name);
            self.case(lab, case, &mut opens, &table)
        });
        for Open { name, dir, db, .. } in opens {
            close(lab, &name, db, &dir)?;
        }
        measured
    }

    fn open(&self, group: Group, store: &dyn SqlStore, dir: PathBuf, table: &Table) -> Result<Open> {
        let db = store.open(&dir, &self.settings(group.durability(self.options)))?;
        match group {
            Group::Guide => guide::create(&*db)?,
            Group::Load => {}
            _ => fill(&*db, store.dialect(), table)?,
        }
        db.settle()?;
        Ok(Open { name: store.name().to_owned(), dir, db, history: History::new(table.records) })
    }

    /// Returns the settings of every engine, with this durability.
    fn settings(&self, durability: Durability) -> SqlSettings {
        let options = self.options;
        SqlSettings { durability, cache_bytes: options.cache_bytes, sessions: options.sessions() }
    }

    /// Runs all rounds of one case.
    fn case(&self, lab: &mut Lab<'_>, case: &SqlCase, opens: &mut [Open], table: &Table) -> Result<()> {
        let contenders: Vec<usize> = (0..opens.len()).collect();
        lab.rounds(contenders, (self.options.rounds, Order::Carried), |lab, round, &index| {
            let Some(open) = opens.get_mut(index) else { return Ok(false) };
            let taken = self
                .turn(lab, case, open, (table, round))
                .and_then(|()| if changes(case) { open.db.settle() } else { Ok(()) });
            let Err(error) = taken else { return Ok(true) };
            let reason = format!("{}: {error}", case.name);
            lab.refuse(&open.name, (&case.name, &case.case), error, reason)?;
            Ok(false)
        })
    }

    fn turn(
        &self,
        lab: &mut Lab<'_>,
        case: &SqlCase,
        open: &mut Open,
        (table, round): (&Table, u32),
    ) -> Result<()> {
        let (name, options, recorder) = (open.name.as_str(), self.options, &mut lab.recorder);
        match case.work {
            Work::Guide(of) => {
                let nanos = guide::take(of, &*open.db, options.samples_each())?;
                let mean = nanos.iter().sum::<f64>() / nanos.len().max(1) as f64;
                recorder.add(name, &case.case, LATENCY, stats::median(&nanos));
                recorder.add(name, &case.case, MEAN_LATENCY, mean);
            }
            Work::Repeat(op) => {
                let seed = options.seed ^ u64::from(round) << 32 ^ case.case.entries;
                let limits = (case.threads, options.seconds, seed);
                let turn = repeat::take(op, &*open.db, table, &mut open.history, limits)?;
                recorder.add(name, &case.case, THROUGHPUT, turn.rate);
                if turn.latencies.count() > 0 {
                    let p50 = turn.latencies.quantile(0.5);
                    recorder.add_latencies(name, &case.case, LATENCY, (p50, &turn.latencies));
                }
            }
            Work::Load => {
                let records = data::Records::new(options.load_rows, options.seed);
                let loaded = load::take(&*open.db, records)?;
                let rate = f64::from(options.load_rows) / loaded.seconds.max(1e-9);
                recorder.add(name, &case.case, THROUGHPUT, rate);
                recorder.add(name, &case.case, BYTES, loaded.bytes_each);
            }
        }
        Ok(())
    }
}

/// Returns the directory of a contender's database. Its name is short, because the path of a Unix
/// socket is limited to about a hundred bytes.
fn dir_of(lab: &Lab<'_>, index: usize) -> Result<PathBuf> {
    lab.scratch.dir(&index.to_string())
}

/// Closes a contender's database and removes its files.
fn close(lab: &Lab<'_>, name: &str, db: Box<dyn SqlDb>, dir: &Path) -> Result<()> {
    if let Err(error) = db.close() {
        lab.progress.note(&format!("{name} does not close cleanly: {error}"));
    }
    remove_tree(dir)
}

fn changes(case: &SqlCase) -> bool {
    match case.work {
        Work::Repeat(op) => op.writes(),
        Work::Guide(_) => false,
        Work::Load => true,
    }
}

/// Creates the tables of most cases.
fn fill(db: &dyn SqlDb, dialect: Dialect, table: &Table) -> Result<()> {
    session_threads::once(db, |session| {
        for sql in data::schema(dialect) {
            session.execute(&sql)?;
        }
        Ok(())
    })?;
    db.load("records", data::COLUMN_COUNT, &mut RecordRows::new(table.records))?;
    db.load("groups", 3, &mut GroupRows(table.records))?;
    session_threads::once(db, |session| {
        for sql in data::indexes() {
            session.execute(&sql)?;
        }
        Ok(())
    })?;
    db.analyze()
}
