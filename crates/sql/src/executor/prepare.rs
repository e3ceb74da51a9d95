//! Parses and plans statements.

use std::sync::Arc as StdArc;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, Statement as Tree};

use super::plan::{Declare, Found, LockingSubqueries};
use super::{Executor, Plan, Planned, Statement, StatementKind};
use crate::column::Column;
use crate::copy::Copy;
use crate::direct::{Binder, Delete, Insert, Select, SelectPlan, Update};
use crate::error::{Error, Result};
use crate::expr::Failure;
use crate::session::naming;
use crate::sqlstate::{FEATURE_NOT_SUPPORTED, INVALID_CURSOR_DEFINITION, TOO_MANY_COLUMNS};
use crate::syntax::{Declared, Parsed, Plain, change_of, check_places, ident, last_name, one, planning};

/// The most columns of a result: PostgreSQL's limit, which is within that of the wire protocol.
const MOST_COLUMNS: usize = 1_664;

impl Executor {
    /// Prepares a text that is one statement.
    ///
    /// Errors: any error of the statement.
    pub fn prepare(&mut self, sql: &str, types: &[Option<ColumnType>]) -> Result<Statement> {
        let parsed = one(sql).inspect_err(|_| self.fail_block())?;
        self.prepare_parsed(parsed, types)
    }

    /// Like [`Executor::prepare`], for a parsed statement.
    pub fn prepare_parsed(&mut self, parsed: Parsed<'_>, types: &[Option<ColumnType>]) -> Result<Statement> {
        let text = parsed.text.to_owned();
        let planned = match kind_of(&parsed.statement) {
            // These need no catalog, and must work even in a failed transaction.
            kind @ (StatementKind::Transaction
            | StatementKind::Empty
            | StatementKind::Utility
            | StatementKind::Fetch)
                if !matches!(&*parsed.statement, Plain::Declare { .. }) =>
            {
                self.utility_plan(parsed, kind)
            }
            _ => {
                let joined = self.open.as_ref().is_some_and(|open| !open.failed);
                if !joined {
                    self.begin_statement()?;
                }
                let planned = self.plan(parsed, types).map_err(|error| naming(self.explain(error), &text));
                if !joined {
                    // The statement only read, so a failure to end it loses nothing.
                    let _ = self.end_statement(true);
                } else if planned.is_err() {
                    self.end_statement(false)?;
                }
                planned?
            }
        };
        Ok(Statement::new(text, types.to_vec(), planned))
    }

    /// Plans a statement again after its tables have changed.
    pub fn replan(&mut self, statement: &Statement) -> Result<StdArc<Planned>> {
        let planned = StdArc::new(self.plan(one(statement.sql())?, statement.given())?);
        statement.set(&planned);
        Ok(planned)
    }

    /// Plans a query for the general path, after the direct path has given it up.
    pub fn replan_general(&mut self, statement: &Statement) -> Result<StdArc<Planned>> {
        let parsed = one(statement.sql())?;
        let Plain::Tree(tree) = &*parsed.statement else { return Err(Error::unsupported("preparing this")) };
        let catalog = self.transaction()?.view().catalog().version();
        self.levels = parsed.depth;
        let (query, params, columns) = self.plan_query(tree, statement.given())?;
        let planned = StdArc::new(Planned {
            catalog,
            settings: self.context.settings.version,
            plan: Plan::Query(query),
            parameters: params.into_iter().map(|kind| kind.unwrap_or_else(|| Type::Text.into())).collect(),
            columns: columns.into(),
            kind: kind_of(&parsed.statement),
            levels: self.levels,
        });
        statement.set(&planned);
        Ok(planned)
    }

    fn utility_plan(&self, parsed: Parsed<'_>, kind: StatementKind) -> Planned {
        // The columns of the current cursor or statement of this name. Another one may have the
        // name when this statement runs.
        let columns = match &*parsed.statement {
            Plain::Fetch(fetch) if !fetch.is_move => {
                self.cursors.get(&fetch.name).map(|cursor| StdArc::clone(&cursor.columns))
            }
            Plain::Tree(Tree::Execute { name: Some(name), .. }) => {
                self.named.get(&last_name(name)).map(Statement::own_columns)
            }
            _ => None,
        };
        let columns = columns.unwrap_or_default();
        let levels = parsed.depth;
        let plan = match &*parsed.statement {
            Plain::Empty => Plan::Empty,
            _ => Plan::Utility(parsed.statement),
        };
        Planned {
            catalog: u64::MAX,
            settings: self.context.settings.version,
            plan,
            parameters: Vec::new(),
            columns,
            kind,
            levels,
        }
    }

    fn plan(&mut self, parsed: Parsed<'_>, types: &[Option<ColumnType>]) -> Result<Planned> {
        let kind = kind_of(&parsed.statement);
        let catalog = self.transaction()?.view().catalog().version();
        let depth = parsed.depth;
        self.snapshots.take();
        self.levels = depth;
        let (plan, params, columns) = planning(depth, || self.plan_tree(&parsed, types))?;
        let levels = self.levels;
        // A plan with a snapshot of the session is replanned for each run: its catalog version
        // matches none. A cursor's query is a separate statement.
        let is_of_now = self.snapshots.take() && !matches!(plan, Plan::Declare(_));
        let catalog = if is_of_now { u64::MAX } else { catalog };
        if columns.len() > MOST_COLUMNS {
            let what = format!("target lists can have at most {MOST_COLUMNS} entries");
            return Err(Error::new(TOO_MANY_COLUMNS, what));
        }
        let parameters = params.into_iter().map(|kind| kind.unwrap_or_else(|| Type::Text.into())).collect();
        Ok(Planned {
            catalog,
            settings: self.context.settings.version,
            plan,
            parameters,
            columns: columns.into(),
            kind,
            levels,
        })
    }

    fn plan_tree(&mut self, parsed: &Parsed<'_>, types: &[Option<ColumnType>]) -> Result<Found> {
        if let Plain::Declare { declared, query } = &*parsed.statement {
            return self.plan_declare(declared, query, types);
        }
        let Plain::Tree(tree) = &*parsed.statement else { return Err(Error::unsupported("preparing this")) };
        check_places(tree)?;
        if self.context.settings.direct_path
            && let Some(found) = self.plan_direct(tree, types)?
        {
            return Ok(found);
        }
        if let Some(found) = LockingSubqueries::plan(self, tree, types)? {
            return Ok(found);
        }
        self.plan_general(tree, types)
    }

    /// Plans DECLARE. The query is a separate statement with its own text, so that it can be
    /// replanned while the cursor is being opened.
    fn plan_declare(
        &mut self,
        declared: &Declared,
        query: &str,
        types: &[Option<ColumnType>],
    ) -> Result<Found> {
        if let Some(words) = declared.contradiction {
            let what = format!("cannot specify both {words}");
            return Err(Error::new(INVALID_CURSOR_DEFINITION, what));
        }
        let parsed = one(query)?;
        if kind_of(&parsed.statement) != StatementKind::Query {
            let what = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(Error::new(FEATURE_NOT_SUPPORTED, what));
        }
        let planned = self.plan(parsed, types)?;
        let parameters = planned.parameters.iter().cloned().map(Some).collect();
        let query = Statement::new(query.to_owned(), types.to_vec(), planned);
        Ok((Plan::Declare(Declare { declared: declared.clone(), query }), parameters, Vec::new()))
    }

    /// Plans a tree from which [`LockingSubqueries`] has taken its subqueries.
    pub(super) fn plan_without_locking(
        &mut self,
        tree: &Tree,
        types: &[Option<ColumnType>],
    ) -> Result<Found> {
        // Queries are excluded, because the direct path may give one up while it runs and then
        // needs its text.
        if !matches!(tree, Tree::Query(_))
            && let Some(found) = self.plan_direct(tree, types)?
        {
            return Ok(found);
        }
        self.plan_general(tree, types)
    }

    fn plan_general(&mut self, tree: &Tree, types: &[Option<ColumnType>]) -> Result<Found> {
        if let Some((change, with)) = change_of(tree) {
            let general = self.general;
            let (change, params, columns) = general.plan_change(&mut self.session, change, with, types)?;
            return Ok((Plan::Change(change), params, columns));
        }
        match tree {
            Tree::Query(_) | Tree::Explain { .. } => {
                let (query, params, columns) = self.plan_query(tree, types)?;
                Ok((Plan::Query(query), params, columns))
            }
            Tree::Copy { .. } => {
                let (copy, columns) = Copy::plan(&mut self.session, tree)?;
                Ok((Plan::Copy(copy), Vec::new(), columns))
            }
            Tree::ShowVariable { variable } => {
                let name = variable_name(variable);
                let columns =
                    if name == "all" { vec!["name", "setting", "description"] } else { vec![name.as_str()] };
                let columns = columns.into_iter().map(|name| Column::new(name, Type::Text.into())).collect();
                Ok((Plan::Show(name), Vec::new(), columns))
            }
            other => {
                Err(Error::unsupported(format_args!("the statement {}", first_words(&other.to_string()))))
            }
        }
    }

    /// Returns the direct path's plan; `None` if it does not support the statement.
    fn plan_direct(&mut self, tree: &Tree, types: &[Option<ColumnType>]) -> Result<Option<Found>> {
        if let Tree::Query(query) = tree
            && matches!(&*query.body, ast::SetExpr::Select(select) if select.projection.is_empty() && !select.from.is_empty())
        {
            // Rows without columns still have to be counted.
            return Ok(None);
        }
        let catalog = StdArc::clone(self.transaction()?.view().catalog());
        let mut binder = Binder {
            catalog: &catalog,
            search_path: &self.context.settings.search_path,
            params: types.to_vec(),
        };
        let planned = match tree {
            Tree::Query(query) => Select::plan(query, &mut binder).map(|(plan, columns)| {
                let plan = SelectPlan::new(plan, columns.clone().into(), self.levels);
                (Plan::Select(StdArc::new(plan)), columns)
            }),
            Tree::Insert(insert) => match Insert::plan(insert, &mut binder) {
                Ok((plan, columns)) if plan.rows.is_some() => Ok((Plan::Insert(plan), columns)),
                Ok(_) => Err(Failure::Unknown),
                Err(failure) => Err(failure),
            },
            Tree::Update(update) => {
                Update::plan(update, &mut binder).map(|(plan, columns)| (Plan::Update(plan), columns))
            }
            Tree::Delete(delete) => {
                Delete::plan(delete, &mut binder).map(|(plan, columns)| (Plan::Delete(plan), columns))
            }
            _ => Err(Failure::Unknown),
        };
        match planned {
            Ok((plan, columns)) => Ok(Some((plan, binder.params, columns))),
            Err(Failure::Unknown) => Ok(None),
            Err(Failure::Error(error)) => Err(error),
        }
    }
}

pub(super) fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Returns the setting's name for SET. `TRANSACTION ISOLATION LEVEL` and `TIME ZONE` are
/// alternative names.
pub(super) fn variable_name(words: &[ast::Ident]) -> String {
    let name = words.iter().map(|word| ident(word).to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
    match name.as_str() {
        "transaction isolation level" => "transaction_isolation".to_owned(),
        "time zone" => "timezone".to_owned(),
        "session authorization" => "session_authorization".to_owned(),
        _ => name.replace(' ', "."),
    }
}

/// Returns the kind of a statement.
pub(super) fn kind_of(statement: &Plain) -> StatementKind {
    match statement {
        Plain::Empty => StatementKind::Empty,
        Plain::Tree(tree) => match tree {
            tree if change_of(tree).is_some() => StatementKind::Change,
            Tree::Query(_) | Tree::Explain { .. } | Tree::ShowVariable { .. } => StatementKind::Query,
            Tree::Copy { .. } => StatementKind::Copy,
            Tree::StartTransaction { .. }
            | Tree::Commit { .. }
            | Tree::Rollback { .. }
            | Tree::Savepoint { .. }
            | Tree::ReleaseSavepoint { .. } => StatementKind::Transaction,
            Tree::Execute { .. } => StatementKind::Fetch,
            _ => StatementKind::Utility,
        },
        Plain::Fetch(fetch) if !fetch.is_move => StatementKind::Fetch,
        _ => StatementKind::Utility,
    }
}
