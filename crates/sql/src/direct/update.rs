//! UPDATE and DELETE of one table.
//!
//! The keys of the matching rows are collected before any row is changed, so that no row is met
//! again at its new position. Each row is locked before it is changed. With read committed, another
//! transaction may have changed it meanwhile, so its condition is tested again.

use cairn_table::{Isolation, RowBuf, Table, Transaction};
use cairn_vfs::sync::Arc;
use sqlparser::ast;

use super::arbiter::sets;
use super::insert::changed;
use super::row::slots;
use super::{Access, Binder, Checks, Cursor, Ranges, Returning, Wanted};
use crate::column::Column;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::expr::{Cells, Context, Env, Failure, Node, Scope};

/// A compiled UPDATE.
#[derive(Debug)]
pub(crate) struct Update {
    rows: Rows,
    sets: Vec<(usize, Node)>,
    checks: Checks,
    pub returning: Option<Returning>,
}

/// A compiled DELETE.
#[derive(Debug)]
pub(crate) struct Delete {
    rows: Rows,
    pub returning: Option<Returning>,
}

/// The rows to change.
#[derive(Debug)]
struct Rows {
    access: Access,
    /// The whole condition, to test it again.
    condition: Option<Node>,
}

impl Update {
    /// Compiles an UPDATE.
    ///
    /// Errors: [`Failure::Unknown`] for anything that this path does not support.
    pub fn plan(update: &ast::Update, binder: &mut Binder<'_>) -> Result<(Update, Vec<Column>), Failure> {
        if update.from.is_some()
            || update.or.is_some()
            || !update.order_by.is_empty()
            || update.limit.is_some()
        {
            return Err(Failure::Unknown);
        }
        let (table, alias) = binder.only_table(std::slice::from_ref(&update.table))?;
        let scope = Scope::of_table(&table, alias.as_deref());
        let sets = sets(&update.assignments, &table, &scope, binder)?;
        let rows = Rows::plan(table.clone(), update.selection.as_ref(), &scope, binder)?;
        let (returning, columns) = Returning::plan(update.returning.as_deref(), &scope, &table, binder)?;
        let checks = Checks::new(table.def())?;
        Ok((Update { rows, sets, checks, returning }, columns))
    }

    /// Runs it. Returns the number of rows, and the rows of RETURNING.
    ///
    /// Errors: those of expressions, checks and the table.
    pub fn run(
        &self,
        transaction: &mut Transaction,
        params: &[Datum],
        context: &dyn Context,
    ) -> Result<(u64, Vec<Vec<Datum>>)> {
        let table = &self.rows.access.table;
        let mut results = Vec::new();
        let count = self.rows.each(transaction, params, context, &mut |transaction, key, buffer| {
            let env = Env::new(Cells::Row(buffer.row(table)), params, context);
            let row = changed(&self.sets, &table.def().columns, &env)?;
            let values = row.values();
            let after = Env::new(Cells::Values(&values), params, context);
            if !self.checks.is_empty() {
                self.checks.hold(table, &after)?;
            }
            if !transaction.update(table, key, &values)? {
                return Ok(false);
            }
            if let Some(returning) = &self.returning {
                results.push(returning.row(&after)?);
            }
            Ok(true)
        })?;
        Ok((count, results))
    }
}

impl Delete {
    /// Compiles a DELETE.
    ///
    /// Errors: [`Failure::Unknown`] for anything that this path does not support.
    pub fn plan(delete: &ast::Delete, binder: &mut Binder<'_>) -> Result<(Delete, Vec<Column>), Failure> {
        if delete.using.is_some()
            || !delete.tables.is_empty()
            || !delete.order_by.is_empty()
            || delete.limit.is_some()
        {
            return Err(Failure::Unknown);
        }
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let (table, alias) = binder.only_table(from)?;
        let scope = Scope::of_table(&table, alias.as_deref());
        let rows = Rows::plan(table.clone(), delete.selection.as_ref(), &scope, binder)?;
        let (returning, columns) = Returning::plan(delete.returning.as_deref(), &scope, &table, binder)?;
        Ok((Delete { rows, returning }, columns))
    }

    /// Runs it. Returns the number of rows, and the rows of RETURNING.
    ///
    /// Errors: those of expressions and the table.
    pub fn run(
        &self,
        transaction: &mut Transaction,
        params: &[Datum],
        context: &dyn Context,
    ) -> Result<(u64, Vec<Vec<Datum>>)> {
        let table = &self.rows.access.table;
        // The row itself is not needed, so it is deleted by its key.
        if self.returning.is_none()
            && self.rows.access.residual.is_none()
            && self.rows.is_at_once(transaction)
        {
            let env = Env::new(Cells::None, params, context);
            let is_out = match self.rows.key(&env)? {
                Some(key) => transaction.delete(table, &key)?,
                None => false,
            };
            return Ok((is_out.into(), Vec::new()));
        }
        let mut results = Vec::new();
        let count = self.rows.each(transaction, params, context, &mut |transaction, key, buffer| {
            if let Some(returning) = &self.returning {
                let env = Env::new(Cells::Row(buffer.row(table)), params, context);
                results.push(returning.row(&env)?);
            }
            Ok(transaction.delete(table, key)?)
        })?;
        Ok((count, results))
    }
}

/// Changes a row that has been locked and read. Returns false if it no longer exists.
type Change<'f> = dyn FnMut(&mut Transaction, &[u8], &RowBuf) -> Result<bool> + 'f;

impl Rows {
    fn plan(
        table: Arc<Table>,
        selection: Option<&ast::Expr>,
        scope: &Scope,
        binder: &mut Binder<'_>,
    ) -> Result<Rows, Failure> {
        let condition = match selection {
            Some(expr) => Some(binder.compiler(scope).condition(expr)?),
            None => None,
        };
        let conjuncts = condition.clone().map(Node::conjuncts).unwrap_or_default();
        let looked_at = slots(conjuncts.iter());
        let wanted = Wanted { columns: &looked_at, order: &[] };
        let (access, _) = Access::plan(&table, conjuncts, &wanted);
        Ok(Rows { access, condition })
    }

    fn each(
        &self,
        transaction: &mut Transaction,
        params: &[Datum],
        context: &dyn Context,
        change: &mut Change<'_>,
    ) -> Result<u64> {
        let env = Env::new(Cells::None, params, context);
        let table = &self.access.table;
        let mut buffer = RowBuf::default();
        if self.is_at_once(transaction) {
            let Some(key) = self.key(&env)? else { return Ok(0) };
            if !transaction.lock(table, &key, &mut buffer)? {
                return Ok(0);
            }
            return Ok(self
                .change(transaction, &key, &mut buffer, &self.access.residual, &env, change)?
                .into());
        }
        let mut keys = Keys::default();
        let mut cursor = Cursor::new(&self.access, transaction.view(), &env, Vec::new(), RowBuf::default())?;
        while cursor.advance(&self.access, &env)? {
            keys.push(cursor.row(&self.access)?.key());
        }
        drop(cursor);
        let mut count = 0;
        for key in keys.iter() {
            if transaction.canceller().is_cancelled() {
                return Err(Error::from(cairn_table::Error::Cancelled));
            }
            if transaction.lock(table, key, &mut buffer)? {
                count +=
                    u64::from(self.change(transaction, key, &mut buffer, &self.condition, &env, change)?);
            }
        }
        Ok(count)
    }

    /// Whether the row can be locked by its key without a search. With read committed, it does not
    /// matter whether the row existed when the statement began.
    fn is_at_once(&self, transaction: &Transaction) -> bool {
        self.access.range.is_point
            && self.access.index.is_none()
            && transaction.isolation() == Isolation::ReadCommitted
    }

    /// Returns the key of that row; `None` if no row can match.
    fn key(&self, env: &Env<'_>) -> Result<Option<Vec<u8>>> {
        let mut key = Vec::with_capacity(32);
        let is_point = self.access.ranges(env, &mut key)? == Ranges::Point;
        Ok(is_point.then_some(key))
    }

    fn change(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        buffer: &mut RowBuf,
        condition: &Option<Node>,
        env: &Env<'_>,
        change: &mut Change<'_>,
    ) -> Result<bool> {
        if let Some(condition) = condition {
            let row = Env { row: Cells::Row(buffer.row(&self.access.table)), ..*env };
            if !condition.holds(&row)? {
                return Ok(false);
            }
        }
        change(transaction, key, buffer)
    }
}

/// A list of keys in one buffer.
#[derive(Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend(key);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default())
    }
}
