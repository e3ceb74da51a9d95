//! The cases: the guide's by its names, then what an application does all day.

use super::guide::{self, Guide};
use super::options::Options;
use crate::results::Case;
use crate::workload::Durability;

/// Cases that share a database, which is made once for each contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// The table of a hundred rows of the guide.
    Guide,
    /// Prepared reads and writes of the large table.
    Statements,
    /// As many commits as can be made durable.
    Commits,
    /// Queries over the whole large table.
    Queries,
    /// An empty database that rows are loaded into.
    Load,
}

impl Group {
    /// In the order in which they are measured.
    pub const ALL: [Group; 5] =
        [Group::Guide, Group::Statements, Group::Commits, Group::Queries, Group::Load];

    /// What it is called in tables, and as a case's data set.
    pub fn title(self) -> &'static str {
        match self {
            Group::Guide => "SQL: guide",
            Group::Statements => "SQL: prepared statements",
            Group::Commits => "SQL: durable commits",
            Group::Queries => "SQL: queries",
            Group::Load => "SQL: bulk load",
        }
    }

    /// What its database promises.
    pub fn durability(self, options: &Options) -> Durability {
        if self == Group::Commits { Durability::Sync } else { options.durability }
    }

    /// The rows of its table.
    pub fn rows(self, options: &Options) -> u32 {
        match self {
            Group::Guide => guide::ROWS,
            Group::Statements | Group::Queries => options.rows,
            Group::Commits => options.rows.min(10_000),
            Group::Load => options.load_rows,
        }
    }
}

/// What is done over and over, for as long as a turn measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// A row by its primary key.
    Point,
    /// A hundred rows by a range of primary keys, in order.
    Range,
    /// A row behind the last one, each a transaction.
    Insert,
    /// One column of a row by its primary key, each a transaction; threads have rows of their own.
    Update,
    /// A row by its primary key, each a transaction.
    Delete,
    /// As [`Op::Insert`], many in a transaction.
    InsertMany,
    /// As [`Op::Update`], many in a transaction.
    UpdateMany,
    /// As [`Op::Delete`], many in a transaction.
    DeleteMany,
    /// Four of five times [`Op::Point`], otherwise an update of any row.
    Mixed,
    /// A group by an index, and its records by another one.
    Join,
    /// How many rows there are.
    Count,
    /// How many have an amount in a range, and the sum of it.
    Filter,
    /// Four aggregates of each of sixteen groups.
    GroupBy,
}

impl Op {
    /// True when rows change.
    pub fn writes(self) -> bool {
        !matches!(self, Op::Point | Op::Range | Op::Join | Op::Count | Op::Filter | Op::GroupBy)
    }

    /// Statements in a transaction.
    pub fn at_once(self) -> u64 {
        if matches!(self, Op::InsertMany | Op::UpdateMany | Op::DeleteMany) { 500 } else { 1 }
    }
}

/// What a case measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One of the guide's.
    Guide(Guide),
    /// An operation by several client threads.
    Repeat(Op),
    /// All rows of a table, and what it takes on the disk.
    Load,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCase {
    /// With whom it shares a database.
    pub group: Group,
    /// By what filters and lists know it.
    pub name: String,
    /// As it is stored.
    pub case: Case,
    /// What is done.
    pub work: Work,
    /// By how many client threads.
    pub threads: u32,
}

/// The name of a stored case: what [`SqlCase::name`] was.
pub fn name_of(case: &Case) -> String {
    if case.threads <= 1 { case.operation.clone() } else { format!("{} t{}", case.operation, case.threads) }
}

/// All cases that the options ask for, in the order in which they are measured.
pub fn plan(options: &Options) -> Vec<SqlCase> {
    let mut cases = Vec::new();
    let mut add = |group: Group, operation: &str, threads: u32, work: Work| {
        let case = Case {
            operation: operation.to_owned(),
            dataset: group.title().to_owned(),
            entries: u64::from(group.rows(options)),
            value_bytes: 0,
            compression: "none".to_owned(),
            keys: "present".to_owned(),
            distribution: "uniform".to_owned(),
            threads,
        };
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
