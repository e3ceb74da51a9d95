//! pgbench, PostgreSQL's own load generator, against every server: its read-only transactions
//! (`-S`) and its TPC-B-like ones.
//!
//! pgbench creates the tables and the load, in a process of its own. The lab starts servers, runs
//! the turns, and checks afterwards that the books balance: the changes of accounts, tellers and
//! branches must match the history.

use std::path::PathBuf;
use std::process::Command;

use super::answer::Answer;
use super::crew;
use super::store::{Address, Cell, SqlDb, SqlSettings};
use super::{Suite, Visit};
use crate::error::{Error, Result};
use crate::process;
use crate::results::Case;
use crate::scratch::remove_tree;
use crate::suite_hash::recorder::{MEAN_LATENCY, THROUGHPUT};
use crate::workload::shuffle;

/// Name of the data set in cases.
pub const DATASET: &str = "pgbench";

/// Number of accounts per unit of the scale factor.
const ACCOUNTS: u64 = 100_000;

/// The kinds of transactions: the name in cases, and pgbench's arguments.
const KINDS: [(&str, &[&str]); 2] = [("pgbench -S", &["-S"]), ("pgbench TPC-B-like", &["-b", "tpcb-like"])];

struct Open {
    name: String,
    dir: PathBuf,
    db: Box<dyn SqlDb>,
    address: Address,
    failed: bool,
}

fn case(operation: &str, scale: u32, clients: u32) -> Case {
    Case {
        operation: operation.to_owned(),
        dataset: DATASET.to_owned(),
        entries: u64::from(scale) * ACCOUNTS,
        value_bytes: 0,
        compression: "none".to_owned(),
        keys: "present".to_owned(),
        distribution: "uniform".to_owned(),
        threads: clients,
    }
}

/// Starts all contenders that are servers, lets pgbench create its tables, then takes all rounds of
/// each kind with each number of clients.
pub(super) fn run(suite: &mut Suite<'_>, scale: u32) -> Result<()> {
    suite.progress.group(0, 2, "pgbench: tables");
    let mut opens = Vec::new();
    for index in 0..suite.catalog.stores.len() {
        suite.stop.check()?;
        let name = suite.catalog.stores.get(index).map_or_else(String::new, |store| store.name().to_owned());
        suite.progress.step(index, suite.catalog.stores.len(), &name);
        match open(suite, index, scale) {
            Ok(Some(open)) => opens.push(open),
            Ok(None) => suite.progress.note(&format!("{name} is not a server")),
            Err(error) => {
                suite.progress.note(&format!("{name}: {error}"));
                suite.recorder.discard(&name, &case("pgbench -i", scale, 1), error.to_string());
            }
        }
    }
    let cases: Vec<(usize, Case)> = (0..KINDS.len())
        .flat_map(|kind| suite.options.threads.iter().map(move |clients| (kind, *clients)))
        .filter_map(|(kind, clients)| Some((kind, case(KINDS.get(kind)?.0, scale, clients))))
        .collect();
    suite.progress.group(1, 2, "pgbench: transactions");
    let measured = cases.iter().enumerate().try_for_each(|(index, (kind, case))| {
        suite.progress.step(index, cases.len(), &super::name_of(case));
        opens.iter_mut().for_each(|open| open.failed = false);
        rounds(suite, &mut opens, *kind, case)
    });
    for open in opens {
        if let Err(error) = open.db.close() {
            suite.progress.note(&format!("{} does not close cleanly: {error}", open.name));
        }
        remove_tree(&open.dir)?;
    }
    measured
}

fn open(suite: &Suite<'_>, index: usize, scale: u32) -> Result<Option<Open>> {
    let Some(store) = suite.catalog.stores.get(index) else { return Ok(None) };
    let dir = suite.dir_of(index)?;
    let settings = SqlSettings {
        durability: suite.options.durability,
        cache_bytes: suite.options.cache_bytes,
        sessions: suite.options.sessions(),
    };
    let Some((db, address)) = store.serve(&dir, &settings)? else { return Ok(None) };
    let mut init = pgbench(&address)?;
    // Every server supports client-side generation.
    init.args(["-i", "-I", "dtgvp", "-q", "-s", &scale.to_string()]);
    process::run(with_database(init, &address), b"", suite.stop)?;
    db.settle()?;
    Ok(Some(Open { name: store.name().to_owned(), dir, db, address, failed: false }))
}

#[cfg(feature = "peers")]
fn pgbench(address: &Address) -> Result<Command> {
    let mut command = crate::peers::sql::postgres::program("pgbench")?;
    let Address { host, port, user, .. } = address;
    command.args(["-h", host, "-p", &port.to_string(), "-U", user]).env("PGSSLMODE", "disable");
    Ok(command)
}

#[cfg(not(feature = "peers"))]
fn pgbench(_: &Address) -> Result<Command> {
    Err(Error::invalid("this build has no peers, so pgbench is not available"))
}

fn with_database(mut command: Command, address: &Address) -> Command {
    command.arg(&address.database);
    command
}

fn rounds(suite: &mut Suite<'_>, opens: &mut [Open], kind: usize, case: &Case) -> Result<()> {
    let mut order: Vec<usize> = (0..opens.len()).collect();
    for _ in 0..suite.options.rounds {
        shuffle(&mut order, &mut suite.rng);
        for &index in &order {
            suite.stop.check()?;
            let Some(open) = opens.get_mut(index).filter(|open| !open.failed) else { continue };
            let turn = turn(suite, open, kind, case.threads).and_then(|said| {
                check_books(&*open.db)?;
                open.db.settle()?;
                Ok(said)
            });
            match turn {
                Ok(said) => {
                    suite.recorder.add(&open.name, case, THROUGHPUT, said.rate);
                    suite.recorder.add(&open.name, case, MEAN_LATENCY, said.latency_ms * 1e6);
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    open.failed = true;
                    suite.progress.note(&format!("{} in {}: {error}", open.name, case.operation));
                    suite.recorder.discard(&open.name, case, error.to_string());
                }
            }
        }
    }
    Ok(())
}

fn turn(suite: &Suite<'_>, open: &Open, kind: usize, clients: u32) -> Result<Said> {
    let mut command = pgbench(&open.address)?;
    let (_, words) = KINDS.get(kind).copied().unwrap_or(KINDS[0]);
    // pgbench accepts only whole seconds.
    let seconds = suite.options.seconds.ceil().max(1.0) as u64;
    command.args(words).args(["-n", "-M", "prepared"]);
    command.args(["-c", &clients.to_string(), "-j", &clients.min(2).to_string(), "-T", &seconds.to_string()]);
    let text = process::run(with_database(command, &open.address), b"", suite.stop)?;
    said(&text).ok_or_else(|| Error::process("pgbench", format!("printed unexpected output: {text}")))
}

/// The results that pgbench prints at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Said {
    rate: f64,
    latency_ms: f64,
}

/// Parses pgbench's output. Returns `None` if results are missing, or if transactions failed.
fn said(text: &str) -> Option<Said> {
    let number = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let failed = number("number of failed transactions: ").unwrap_or(0.0);
    let said = Said { rate: number("tps = ")?, latency_ms: number("latency average = ")? };
    (failed == 0.0 && said.rate > 0.0).then_some(said)
}

/// Checks that the sums of all four tables are equal.
fn check_books(db: &dyn SqlDb) -> Result<()> {
    let sum = |column: &str, table: &str| -> Result<Answer> {
        let (sql, mut answer) =
            (format!("SELECT coalesce(sum({column}), 0) FROM pgbench_{table}"), Answer::default());
        let visit: &mut Visit<'_> = &mut |row: &[Cell<'_>]| answer.add(row);
        crew::once(db, |session| session.select(&sql, visit))?;
        Ok(answer)
    };
    let history = sum("delta", "history")?;
    for (column, table) in [("abalance", "accounts"), ("tbalance", "tellers"), ("bbalance", "branches")] {
        Error::expect_answer(&format!("the sum of {column}"), history, sum(column, table)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: pgbench's output is parsed, and failed transactions give no result. Method: the output
    /// of version 15.
    #[test]
    fn reports_are_understood() {
        let text = "transaction type: <builtin: select only>\nnumber of transactions actually processed: 9\n\
                    number of failed transactions: 0 (0.000%)\nlatency average = 0.062 ms\ninitial connection time = 4 ms\n\
                    tps = 15999.12 (without initial connection time)\n";
        assert_eq!(said(text), Some(Said { rate: 15_999.12, latency_ms: 0.062 }));
        assert_eq!(said(&text.replace(": 0 (0.000%)", ": 2 (0.100%)")), None);
        assert_eq!(said(""), None);
    }
}
