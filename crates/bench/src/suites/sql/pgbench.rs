//! pgbench, PostgreSQL's own load generator, against every server: its read-only transactions
//! (`-S`) and its TPC-B-like ones.
//!
//! pgbench creates the tables and the load, in a process of its own. The lab starts servers, runs
//! the turns, and checks afterwards that the books balance: the changes of accounts, tellers and
//! branches must match the history.

use std::path::PathBuf;
use std::process::Command;

use super::{SqlSuite, session_threads};
use crate::core::answer::{Answer, Cell};
use crate::core::error::{Error, Result};
use crate::core::process;
use crate::core::recorder::{MEAN_LATENCY, THROUGHPUT};
use crate::core::results::Case;
use crate::stores::sql::{Address, SqlDb, SqlStore, Visit};
use crate::suites::driver::{Lab, Order};

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
}

fn case(operation: &str, scale: u32, clients: u32) -> Case {
    let accounts = u64::from(scale) * ACCOUNTS;
    Case::new(operation, DATASET, accounts).lookups("present", "uniform", clients)
}

/// Starts all contenders that are servers, lets pgbench create its tables, then takes all rounds of
/// each kind with each number of clients.
pub(super) fn run(suite: &SqlSuite<'_>, lab: &mut Lab<'_>, scale: u32) -> Result<()> {
    lab.progress.group(0, 2, "pgbench: tables");
    let mut opens = Vec::new();
    let stores = &suite.stores.stores;
    for (index, store) in stores.iter().enumerate() {
        lab.stop.check()?;
        let name = store.name();
        lab.progress.step(index, stores.len(), name);
        match open(suite, lab, &**store, index, scale) {
            Ok(Some(open)) => opens.push(open),
            Ok(None) => lab.progress.note(&format!("{name} is not a server")),
            Err(error) => {
                lab.progress.note(&format!("{name}: {error}"));
                lab.recorder.discard(name, &case("pgbench -i", scale, 1), error.to_string());
            }
        }
    }
    let cases: Vec<(usize, Case)> = (0..KINDS.len())
        .flat_map(|kind| suite.options.threads.iter().map(move |clients| (kind, *clients)))
        .filter_map(|(kind, clients)| Some((kind, case(KINDS.get(kind)?.0, scale, clients))))
        .collect();
    lab.progress.group(1, 2, "pgbench: transactions");
    let measured = cases.iter().enumerate().try_for_each(|(index, (kind, case))| {
        lab.progress.step(index, cases.len(), &super::name_of(case));
        rounds(suite, lab, &opens, *kind, case)
    });
    for Open { name, dir, db, .. } in opens {
        super::close(lab, &name, db, &dir)?;
    }
    measured
}

fn open(
    suite: &SqlSuite<'_>,
    lab: &Lab<'_>,
    store: &dyn SqlStore,
    index: usize,
    scale: u32,
) -> Result<Option<Open>> {
    let dir = super::dir_of(lab, index)?;
    let settings = suite.settings(suite.options.durability);
    let Some((db, address)) = store.serve(&dir, &settings)? else { return Ok(None) };
    let mut init = pgbench(suite, &address)?;
    // Every server supports client-side generation.
    init.args(["-i", "-I", "dtgvp", "-q", "-s", &scale.to_string()]);
    process::run(with_database(init, &address), b"", lab.stop)?;
    db.settle()?;
    Ok(Some(Open { name: store.name().to_owned(), dir, db, address }))
}

fn pgbench(suite: &SqlSuite<'_>, address: &Address) -> Result<Command> {
    let tools = suite
        .postgres
        .ok_or_else(|| Error::invalid("this build has no peers, so pgbench is not available"))?;
    let mut command = (tools.program)("pgbench")?;
    let Address { host, port, user, .. } = address;
    command.args(["-h", host, "-p", &port.to_string(), "-U", user]).env("PGSSLMODE", "disable");
    Ok(command)
}

fn with_database(mut command: Command, address: &Address) -> Command {
    command.arg(&address.database);
    command
}

fn rounds(suite: &SqlSuite<'_>, lab: &mut Lab<'_>, opens: &[Open], kind: usize, case: &Case) -> Result<()> {
    let contenders: Vec<usize> = (0..opens.len()).collect();
    lab.rounds(contenders, (suite.options.rounds, Order::Carried), |lab, _, &index| {
        let Some(open) = opens.get(index) else { return Ok(false) };
        let turn = turn(suite, lab, open, kind, case.threads).and_then(|printed| {
            check_books(&*open.db)?;
            open.db.settle()?;
            Ok(printed)
        });
        match turn {
            Ok(printed) => {
                lab.recorder.add(&open.name, case, THROUGHPUT, printed.rate);
                lab.recorder.add(&open.name, case, MEAN_LATENCY, printed.latency_ms * 1e6);
                Ok(true)
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => {
                lab.progress.note(&format!("{} in {}: {error}", open.name, case.operation));
                lab.recorder.discard(&open.name, case, error.to_string());
                Ok(false)
            }
        }
    })
}

fn turn(suite: &SqlSuite<'_>, lab: &Lab<'_>, open: &Open, kind: usize, clients: u32) -> Result<Printed> {
    let mut command = pgbench(suite, &open.address)?;
    let (_, words) = KINDS.get(kind).copied().unwrap_or(KINDS[0]);
    // pgbench accepts only whole seconds.
    let seconds = suite.options.seconds.ceil().max(1.0) as u64;
    command.args(words).args(["-n", "-M", "prepared"]);
    command.args(["-c", &clients.to_string(), "-j", &clients.min(2).to_string(), "-T", &seconds.to_string()]);
    let text = process::run(with_database(command, &open.address), b"", lab.stop)?;
    parse(&text).ok_or_else(|| Error::process("pgbench", format!("printed unexpected output: {text}")))
}

/// The results that pgbench prints at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Printed {
    rate: f64,
    latency_ms: f64,
}

/// Parses pgbench's output. Returns `None` if results are missing, or if transactions failed.
fn parse(text: &str) -> Option<Printed> {
    let number = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let failed = number("number of failed transactions: ").unwrap_or(0.0);
    let printed = Printed { rate: number("tps = ")?, latency_ms: number("latency average = ")? };
    (failed == 0.0 && printed.rate > 0.0).then_some(printed)
}

/// Checks that the sums of all four tables are equal.
fn check_books(db: &dyn SqlDb) -> Result<()> {
    let sum = |column: &str, table: &str| -> Result<Answer> {
        let (sql, mut answer) =
            (format!("SELECT coalesce(sum({column}), 0) FROM pgbench_{table}"), Answer::default());
        let visit: &mut Visit<'_> = &mut |row: &[Cell<'_>]| answer.add(row);
        session_threads::once(db, |session| session.select(&sql, visit))?;
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
        assert_eq!(parse(text), Some(Printed { rate: 15_999.12, latency_ms: 0.062 }));
        assert_eq!(parse(&text.replace(": 0 (0.000%)", ": 2 (0.100%)")), None);
        assert_eq!(parse(""), None);
    }
}
