//! The cases: those of the guide by its names, then typical operations of applications.

use super::guide::{self, Guide};
use super::options::Options;
use crate::core::results::Case;
use crate::core::workload::Durability;

/// Cases that share a database, which each contender creates once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// The guide's table of a hundred rows.
    Guide,
    /// Prepared reads and writes of the large table.
    Statements,
    /// As many durable commits as possible.
    Commits,
    /// Queries over the whole large table.
    Queries,
    /// An empty database into which rows are loaded.
    Load,
}

impl Group {
    /// All groups, in the order in which they are measured.
    pub const ALL: [Group; 5] =
        [Group::Guide, Group::Statements, Group::Commits, Group::Queries, Group::Load];

    /// Returns the group's title in tables, which is also a case's data set.
    pub fn title(self) -> &'static str {
        match self {
            Group::Guide => "SQL: guide",
            Group::Statements => "SQL: prepared statements",
            Group::Commits => "SQL: durable commits",
            Group::Queries => "SQL: queries",
            Group::Load => "SQL: bulk load",
        }
    }

    /// Returns the durability of the group's database.
    pub fn durability(self, options: &Options) -> Durability {
        if self == Group::Commits { Durability::Sync } else { options.durability }
    }

    /// Returns the number of rows in the group's table.
    pub fn rows(self, options: &Options) -> u32 {
        match self {
            Group::Guide => guide::ROWS,
            Group::Statements | Group::Queries => options.rows,
            Group::Commits => options.rows.min(10_000),
            Group::Load => options.load_rows,
        }
    }
}

/// The operation that is repeated for the duration of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads a row by its primary key.
    Point,
    /// Reads a hundred rows by a range of primary keys, in order.
    Range,
    /// Inserts a row behind the last one, each in a transaction of its own.
    Insert,
    /// Updates one column of a row by its primary key, each in a transaction of its own. Threads
    /// have separate rows.
    Update,
    /// Deletes a row by its primary key, each in a transaction of its own.
    Delete,
    /// Like [`Op::Insert`], many in a transaction.
    InsertMany,
    /// Like [`Op::Update`], many in a transaction.
    UpdateMany,
    /// Like [`Op::Delete`], many in a transaction.
    DeleteMany,
    /// Four fifths [`Op::Point`], one fifth updates of any row.
    Mixed,
    /// Joins a group found by an index with its records found by another index.
    Join,
    /// Counts all rows.
    Count,
    /// Counts rows with an amount in a range, and sums up their amounts.
    Filter,
    /// Computes four aggregates of each of sixteen groups.
    GroupBy,
}

impl Op {
    /// Returns true if the operation changes rows.
    pub fn writes(self) -> bool {
        !matches!(self, Op::Point | Op::Range | Op::Join | Op::Count | Op::Filter | Op::GroupBy)
    }

    /// Returns the number of statements in a transaction.
    pub fn at_once(self) -> u64 {
        if matches!(self, Op::InsertMany | Op::UpdateMany | Op::DeleteMany) { 500 } else { 1 }
    }
}

/// The measurement of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One of the guide's cases.
    Guide(Guide),
    /// An operation by several client threads.
    Repeat(Op),
    /// The bulk load of a table, and its size on disk.
    Load,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCase {
    /// The group with which it shares a database.
    pub group: Group,
    /// Name in filters and lists.
    pub name: String,
    /// The case as it is stored.
    pub case: Case,
    /// The work to measure.
    pub work: Work,
    /// Number of client threads.
    pub threads: u32,
}

/// Returns the [`SqlCase::name`] of a stored case.
pub fn name_of(case: &Case) -> String {
    if case.threads <= 1 { case.operation.clone() } else { format!("{} t{}", case.operation, case.threads) }
}

/// Returns all cases that the options select, in the order in which they are measured.
pub fn plan(options: &Options) -> Vec<SqlCase> {
    let mut cases = Vec::new();
    let mut add = |group: Group, operation: &str, threads: u32, work: Work| {
        let case = Case::new(operation, group.title(), u64::from(group.rows(options)));
        let case = case.lookups("present", "uniform", threads);
        cases.push(SqlCase { group, name: name_of(&case), case, work, threads });
    };
    for of_guide in Guide::ALL {
        add(Group::Guide, of_guide.name(), of_guide.workers(), Work::Guide(of_guide));
    }
    for (operation, op) in [
        ("point read", Op::Point),
        ("range read of 100 rows", Op::Range),
        ("index join", Op::Join),
        ("insert in a transaction", Op::InsertMany),
        ("update in a transaction", Op::UpdateMany),
        ("delete in a transaction", Op::DeleteMany),
        ("insert, autocommitted", Op::Insert),
        ("update, autocommitted", Op::Update),
        ("delete, autocommitted", Op::Delete),
    ] {
        for &threads in &options.threads {
            add(Group::Statements, operation, threads, Work::Repeat(op));
        }
    }
    add(Group::Statements, "mixed load, 80 % reads", options.clients, Work::Repeat(Op::Mixed));
    for &writers in &options.writers {
        add(Group::Commits, "commit at sync", writers, Work::Repeat(Op::Update));
    }
    for (operation, op) in
        [("count(*)", Op::Count), ("filtered sum", Op::Filter), ("aggregates of groups", Op::GroupBy)]
    {
        add(Group::Queries, operation, 1, Work::Repeat(op));
    }
    add(Group::Load, "bulk load", 1, Work::Load);
    let filter = options.filter.as_deref().filter(|_| !options.for_dashboard);
    cases.retain(|case| options.groups.contains(&case.group));
    cases.retain(|case| filter.is_none_or(|filter| case.name.contains(filter)));
    cases
}
