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

pub mod answer;
pub mod catalog;
mod cells;
mod copy;
mod crew;
pub mod data;
pub mod guide;
mod load;
mod options;
pub mod pgbench;
pub mod plan;
pub mod repeat;
mod store;
#[cfg(test)]
mod tests;
pub mod text;
pub mod tpch;
pub mod versus;

use std::path::PathBuf;

use cairn_vfs::SeededRng;

pub use answer::{Answer, Cell};
pub use catalog::SqlCatalog;
pub use cells::Cells;
pub use crate::time::date_text;
pub use copy::{append_text, send_rows};
pub use options::Options;
pub use plan::{Group, SqlCase, Work, name_of, plan};
pub use store::{Address, Dialect, Prepared, Rows, SqlDb, SqlSession, SqlSettings, SqlStore, Visit};

use self::data::{GroupRows, RecordRows};
use self::repeat::{History, Table};
use crate::error::{Error, Result};
use crate::process::Stop;
use crate::results::{Contender, Run};
use crate::runner::begun::{Begun, Ended, was_stopped};
use crate::scratch::{Scratch, remove_tree};
use crate::stats;
use crate::suite_hash::Progress;
use crate::suite_hash::recorder::{BYTES, LATENCY, MEAN_LATENCY, Recorder, THROUGHPUT};
use crate::workload::shuffle;

/// The suite's name in stored runs.
pub const NAME: &str = "sql";

/// Runs the suite with all requested contenders that are available.
///
/// Failures on the way are recorded in the result and do not end the run. When `stop` is reached,
/// the run ends with the results so far.
///
/// Errors: invalid options, a work directory that cannot be written.
pub fn run(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    run_with(options, catalog::select(options)?, progress, stop)
}

/// Like [`run`], with contenders of the caller's choice.
pub fn run_with(options: &Options, catalog: SqlCatalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    options.check()?;
    let begun = Begun::new(NAME, &options.work_dir, options.probes)?;
    let scratch = Scratch::in_dir(&options.work_dir, NAME)?;
    catalog.skipped.iter().filter_map(Contender::why_left_out).for_each(|line| progress.note(&line));
    let mut suite = Suite {
        options,
        catalog,
        progress,
        stop,
        scratch,
        recorder: Recorder::new(options.seed),
        rng: SeededRng::new(options.seed),
    };
    let stopped = was_stopped(suite.all(), &suite.recorder, progress)?;
    let ended = Ended {
        mode: format!("{} iterations, {} rounds", options.iterations, options.rounds),
        seed: options.seed,
        data: options.data_sentence(),
        settings: options.settings(),
        contenders: suite.contenders(),
        stopped,
    };
    Ok(begun.into_run(ended, suite.recorder))
}

struct Suite<'a> {
    options: &'a Options,
    catalog: SqlCatalog,
    progress: &'a dyn Progress,
    stop: &'a Stop,
    scratch: Scratch,
    recorder: Recorder,
    rng: SeededRng,
}

/// A contender's database while a group is measured.
struct Open {
    name: String,
    dir: PathBuf,
    db: Box<dyn SqlDb>,
    history: History,
}

impl Suite<'_> {
    fn all(&mut self) -> Result<()> {
        if let Some(scale) = self.options.tpch {
            return tpch::run(self, scale);
        }
        if let Some(scale) = self.options.pgbench {
            return pgbench::run(self, scale);
        }
        let cases = plan(self.options);
        let groups: Vec<Group> =
            Group::ALL.into_iter().filter(|group| cases.iter().any(|case| case.group == *group)).collect();
        for (index, &group) in groups.iter().enumerate() {
            self.progress.group(index, groups.len(), group.title());
            let of_group: Vec<&SqlCase> = cases.iter().filter(|case| case.group == group).collect();
            self.group(group, &of_group)?;
        }
        Ok(())
    }

    fn group(&mut self, group: Group, cases: &[&SqlCase]) -> Result<()> {
        let table = match group {
            Group::Guide | Group::Load => Table::new(0, self.options.seed),
            _ => Table::new(group.rows(self.options), self.options.seed),
        };
        let mut opens = Vec::new();
        for store in 0..self.catalog.stores.len() {
            self.stop.check()?;
            match self.open(group, store, &table) {
                Ok(open) => opens.push(open),
                Err(error) => {
                    let name = self.catalog.stores.get(store).map_or("", |store| store.name()).to_owned();
                    self.progress.note(&format!("{name} cannot create a database: {error}"));
                    for case in cases {
                        self.recorder.discard(&name, &case.case, error.to_string());
                    }
                    // A partly created database would conflict with the next group.
                    remove_tree(&self.dir_of(store)?)?;
                }
            }
        }
        let measured = cases.iter().enumerate().try_for_each(|(index, case)| {
            self.progress.step(index, cases.len(), &case.name);
            self.case(case, &mut opens, &table)
        });
        for Open { name, dir, db, .. } in opens {
            if let Err(error) = db.close() {
                self.progress.note(&format!("{name} does not close cleanly: {error}"));
            }
            remove_tree(&dir)?;
        }
        measured
    }

    fn open(&self, group: Group, index: usize, table: &Table) -> Result<Open> {
        let none = || Error::engine("the suite", "no such engine");
        let store = self.catalog.stores.get(index).ok_or_else(none)?;
        let dir = self.dir_of(index)?;
        let db = store.open(&dir, &self.settings(group))?;
        match group {
            Group::Guide => guide::create(&*db)?,
            Group::Load => {}
            _ => fill(&*db, store.dialect(), table)?,
        }
        db.settle()?;
        Ok(Open { name: store.name().to_owned(), dir, db, history: History::new(table.records) })
    }

    /// Returns the directory of a contender's database. Its name is short, because the path of a
    /// Unix socket is limited to about a hundred bytes.
    fn dir_of(&self, index: usize) -> Result<PathBuf> {
        self.scratch.dir(&index.to_string())
    }

    fn settings(&self, group: Group) -> SqlSettings {
        SqlSettings {
            durability: group.durability(self.options),
            cache_bytes: self.options.cache_bytes,
            sessions: self.options.sessions(),
        }
    }

    /// Runs all rounds of one case.
    fn case(&mut self, case: &SqlCase, opens: &mut [Open], table: &Table) -> Result<()> {
        let mut taking_part: Vec<usize> = (0..opens.len()).collect();
        for round in 0..self.options.rounds {
            shuffle(&mut taking_part, &mut self.rng);
            let mut failed = Vec::new();
            for &index in &taking_part {
                self.stop.check()?;
                let Some(open) = opens.get_mut(index) else { continue };
                let taken = self
                    .turn(case, open, table, round)
                    .and_then(|()| if changes(case) { open.db.settle() } else { Ok(()) });
                if let Err(error) = taken {
                    self.progress.note(&format!("{} in {}: {error}", open.name, case.name));
                    let problem = format!("{}: {error}", case.name);
                    if error.is_wrong_result() {
                        self.recorder.disqualify(&open.name, &case.case, problem);
                    } else {
                        self.recorder.discard(&open.name, &case.case, error.to_string());
                    }
                    failed.push(index);
                }
            }
            taking_part.retain(|index| !failed.contains(index));
        }
        Ok(())
    }

    fn turn(&mut self, case: &SqlCase, open: &mut Open, table: &Table, round: u32) -> Result<()> {
        let (name, options) = (open.name.clone(), self.options);
        match case.work {
            Work::Guide(of) => {
                let nanos = guide::take(of, &*open.db, options.samples_each())?;
                let mean = nanos.iter().sum::<f64>() / nanos.len().max(1) as f64;
                self.recorder.add(&name, &case.case, LATENCY, stats::median(&nanos));
                self.recorder.add(&name, &case.case, MEAN_LATENCY, mean);
            }
            Work::Repeat(op) => {
                let seed = options.seed ^ u64::from(round) << 32 ^ case.case.entries;
                let limits = (case.threads, options.seconds, seed);
                let turn = repeat::take(op, &*open.db, table, &mut open.history, limits)?;
                self.recorder.add(&name, &case.case, THROUGHPUT, turn.rate);
                if turn.latencies.count() > 0 {
                    let p50 = turn.latencies.quantile(0.5);
                    self.recorder.add_latencies(&name, &case.case, LATENCY, (p50, &turn.latencies));
                }
            }
            Work::Load => {
                let records = data::Records::new(options.load_rows, options.seed);
                let loaded = load::take(&*open.db, records)?;
                let rate = f64::from(options.load_rows) / loaded.seconds.max(1e-9);
                self.recorder.add(&name, &case.case, THROUGHPUT, rate);
                self.recorder.add(&name, &case.case, BYTES, loaded.bytes_each);
            }
        }
        Ok(())
    }

    /// Returns all requested contenders, with all settings.
    fn contenders(&self) -> Vec<Contender> {
        let given = self.settings(Group::Statements);
        let mut contenders: Vec<Contender> = Vec::new();
        for store in &self.catalog.stores {
            let mut settings = store.settings(&given);
            let promise = store.guarantee(given.durability).sentence();
            settings.insert(format!("durability {}", given.durability), promise);
            let skipped = self.recorder.explain(store.name(), &mut settings);
            contenders.push(Contender {
                name: store.name().to_owned(),
                family: store.name().to_owned(),
                version: store.version(),
                ours: store.ours(),
                settings,
                skipped,
            });
        }
        contenders.extend(self.catalog.skipped.iter().cloned());
        contenders
    }
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
    crew::once(db, |session| {
        for sql in data::schema(dialect) {
            session.execute(&sql)?;
        }
        Ok(())
    })?;
    db.load("records", data::COLUMN_COUNT, &mut RecordRows::new(table.records))?;
    db.load("groups", 3, &mut GroupRows(table.records))?;
    crew::once(db, |session| {
        for sql in data::indexes() {
            session.execute(&sql)?;
        }
        Ok(())
    })?;
    db.analyze()
}
