//! INSERT.

use cairn_table::schema::{ColumnDef, TableDef};
use cairn_table::{BulkLoad, RowBuf, Table, Transaction};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{self, Expr, OnInsert, SetExpr, TableObject};

use super::arbiter::{Conflict, ConflictUpdate, is_default};
use super::identity::{is_ignored, may_insert};
use super::row::{default_of, refuse_nulls};
use super::source::column_of;
use super::{Assigned, Binder, Checks, Returning};
use crate::column::Column;
use crate::datum::{Datum, DatumRef};
use crate::error::{Error, Result};
use crate::expr::{Cells, Context, Env, Failure, Node, Scope, Val};
use crate::sqlstate::{CARDINALITY_VIOLATION, DUPLICATE_COLUMN, SYNTAX_ERROR};
use crate::syntax::{Overriding, ident};

/// A compiled INSERT.
#[derive(Debug)]
pub(crate) struct Insert {
    pub table: Arc<Table>,
    /// The columns for which values are given.
    pub columns: Vec<usize>,
    /// For each column: the position of the given value that it takes; `None` for its default.
    takes: Vec<Option<usize>>,
    /// The OVERRIDING clause.
    pub overriding: Overriding,
    /// For each column: the expression of its value if none is given.
    defaults: Vec<Node>,
    /// The rows of VALUES, with an expression for each column of the table. `None` if the rows come
    /// from a query.
    pub rows: Option<Vec<Vec<Node>>>,
    checks: Checks,
    conflict: Option<Conflict>,
    pub returning: Option<Returning>,
}

impl Insert {
    /// Compiles an INSERT. Unless its rows come from VALUES, [`Insert::rows`] is `None`, and the
    /// caller provides them.
    ///
    /// Errors: [`Failure::Unknown`] for anything that this path does not support.
    pub fn plan(insert: &ast::Insert, binder: &mut Binder<'_>) -> Result<(Insert, Vec<Column>), Failure> {
        if !insert.assignments.is_empty()
            || insert.or.is_some()
            || insert.replace_into
            || insert.overwrite
            || insert.partitioned.is_some()
        {
            return Err(Error::unsupported("this form of INSERT").into());
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(Error::unsupported("INSERT into this").into());
        };
        let table = binder.target(name)?;
        let alias = insert.table_alias.as_ref().map(|alias| ident(&alias.alias));
        let columns = columns(insert, &table)?;
        let overriding = Overriding::of(insert);
        let def = table.def();
        let defaults = def.columns.iter().map(default_of).collect::<Result<Vec<_>>>()?;
        let rows = match insert.source.as_deref() {
            None => Some(vec![defaults.clone()]),
            Some(query) => match &*query.body {
                SetExpr::Values(values)
                    if query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() =>
                {
                    let into = Target { table: &table, columns: &columns, overriding };
                    rows(values, into, &defaults, insert.columns.is_empty(), binder)?
                }
                _ => None,
            },
        };
        let conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(on)) => Some(Conflict::plan(on, &table, alias.as_deref(), binder)?),
            Some(_) => return Err(Error::unsupported("ON DUPLICATE KEY").into()),
        };
        let scope = Scope::of_table(&table, alias.as_deref());
        let (returning, results) = Returning::plan(insert.returning.as_deref(), &scope, &table, binder)?;
        let checks = Checks::new(def)?;
        let takes = taken(def, &columns);
        let plan = Insert { columns, takes, overriding, defaults, rows, checks, conflict, returning, table };
        Ok((plan, results))
    }

    /// Makes the rows come from a query of `given` columns. For VALUES, the values of identity
    /// columns have been checked before.
    ///
    /// Errors: 428C9.
    pub fn fed(&mut self, given: usize, is_values: bool) -> Result<()> {
        self.columns.truncate(given);
        let def = self.table.def();
        self.takes = taken(def, &self.columns);
        for (column, takes) in def.columns.iter().zip(&mut self.takes).filter(|(_, takes)| takes.is_some()) {
            if !is_values {
                may_insert(column, self.overriding)?;
            }
            if is_ignored(column, self.overriding) {
                *takes = None;
            }
        }
        Ok(())
    }

    /// Returns the table as the transaction sees it. After a TRUNCATE in the same transaction it
    /// has other trees.
    pub fn table_now(&self, transaction: &Transaction) -> Arc<Table> {
        let now = transaction.view().catalog().table_by_id(self.table.id()).cloned();
        now.unwrap_or_else(|| Arc::clone(&self.table))
    }
}

/// Returns for each column its position among those given.
fn taken(def: &TableDef, columns: &[usize]) -> Vec<Option<usize>> {
    (0..def.columns.len()).map(|at| columns.iter().position(|&column| column == at)).collect()
}

fn columns(insert: &ast::Insert, table: &Table) -> Result<Vec<usize>> {
    if insert.columns.is_empty() {
        return Ok((0..table.def().columns.len()).collect());
    }
    let mut columns = Vec::with_capacity(insert.columns.len());
    for name in &insert.columns {
        let Some(ast::ObjectNamePart::Identifier(name)) = name.0.last() else {
            return Err(Error::new(SYNTAX_ERROR, format!("{name} is no column")));
        };
        let column = column_of(table, name)?;
        if columns.contains(&column) {
            let what = format!("column \"{}\" specified more than once", ident(name));
            return Err(Error::new(DUPLICATE_COLUMN, what));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The target of rows of VALUES.
#[derive(Clone, Copy)]
struct Target<'a> {
    table: &'a Table,
    columns: &'a [usize],
    overriding: Overriding,
}

/// Compiles the rows of VALUES; `None` if an expression needs the general path.
fn rows(
    values: &ast::Values,
    Target { table, columns, overriding }: Target<'_>,
    defaults: &[Node],
    fewer_allowed: bool,
    binder: &mut Binder<'_>,
) -> Result<Option<Vec<Vec<Node>>>, Failure> {
    let scope = Scope::empty();
    let mut rows = Vec::with_capacity(values.rows.len());
    for given in &values.rows {
        if given.len() > columns.len() {
            return Err(Error::new(SYNTAX_ERROR, "INSERT has more expressions than target columns").into());
        }
        if given.len() < columns.len() && !fewer_allowed {
            return Err(Error::new(SYNTAX_ERROR, "INSERT has more target columns than expressions").into());
        }
        let mut row = defaults.to_vec();
        for (expr, &at) in given.iter().zip(columns) {
            let (Some(column), Some(place)) = (table.def().columns.get(at), row.get_mut(at)) else {
                continue;
            };
            if matches!(expr, Expr::Identifier(name) if is_default(name)) {
                continue;
            }
            may_insert(column, overriding)?;
            match binder.compiler(&scope).assignment(expr, &column.name, &column.kind) {
                Ok(_) if is_ignored(column, overriding) => {}
                Ok(node) => *place = node,
                Err(Failure::Unknown) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        rows.push(row);
    }
    Ok(Some(rows))
}

/// A running INSERT.
#[derive(Debug)]
pub(crate) struct InsertRun<'a> {
    insert: &'a Insert,
    params: &'a [Datum],
    context: &'a dyn Context,
    buffer: RowBuf,
    /// The number of rows inserted, or updated instead.
    pub count: u64,
    /// The rows of RETURNING.
    pub results: Vec<Vec<Datum>>,
    /// Keys of rows that were inserted, or updated instead. None may be changed twice.
    touched: std::collections::HashSet<Vec<u8>>,
}

impl<'a> InsertRun<'a> {
    pub fn new(insert: &'a Insert, params: &'a [Datum], context: &'a dyn Context) -> Self {
        InsertRun {
            insert,
            params,
            context,
            buffer: RowBuf::default(),
            count: 0,
            results: Vec::new(),
            touched: Default::default(),
        }
    }

    /// Inserts the rows of VALUES.
    ///
    /// Errors: those of expressions, checks and the table.
    pub fn values(&mut self, transaction: &mut Transaction) -> Result<()> {
        let insert = self.insert;
        let env = Env::new(Cells::None, self.params, self.context);
        for nodes in insert.rows.iter().flatten() {
            let mut row = Assigned(Vec::with_capacity(nodes.len()));
            for (node, column) in nodes.iter().zip(&insert.table.def().columns) {
                row.push_node(node, &env, column)?;
            }
            self.row(&row, transaction)?;
        }
        Ok(())
    }

    /// Inserts a row. `given` returns the values of the named columns.
    ///
    /// Errors: as [`InsertRun::values`].
    pub fn given<'v>(&mut self, given: impl Fn(usize) -> Val<'v>, transaction: &mut Transaction) -> Result<()>
    where
        'a: 'v,
    {
        let row = self.assigned(given)?;
        self.row(&row, transaction)
    }

    /// Like [`InsertRun::given`], as part of a bulk load.
    ///
    /// Errors: as [`InsertRun::values`].
    pub fn bulk<'v>(
        &mut self,
        given: impl Fn(usize) -> DatumRef<'v>,
        load: &mut BulkLoad,
        transaction: &mut Transaction,
    ) -> Result<()>
    where
        'a: 'v,
    {
        let row = self.assigned(|place| Val::Ref(given(place)))?;
        let values = row.values();
        if !self.insert.checks.is_empty() {
            let env = Env::new(Cells::Values(&values), self.params, self.context);
            self.insert.checks.hold(&self.insert.table, &env)?;
        }
        Ok(load.push(transaction, &values)?)
    }

    /// Returns a full row of given values and defaults.
    fn assigned<'v>(&self, given: impl Fn(usize) -> Val<'v>) -> Result<Assigned<'v>>
    where
        'a: 'v,
    {
        let insert = self.insert;
        let env = Env::new(Cells::None, self.params, self.context);
        let def = insert.table.def();
        let mut row = Assigned(Vec::with_capacity(def.columns.len()));
        for ((column, default), takes) in def.columns.iter().zip(&insert.defaults).zip(&insert.takes) {
            let value = match takes {
                Some(place) => given(*place),
                None => default.eval(&env)?,
            };
            row.push(value, column)?;
        }
        Ok(row)
    }

    fn row(&mut self, row: &Assigned<'_>, transaction: &mut Transaction) -> Result<()> {
        if transaction.canceller().is_cancelled() {
            return Err(Error::from(cairn_table::Error::Cancelled));
        }
        let insert = self.insert;
        let values = row.values();
        let env = Env::new(Cells::Values(&values), self.params, self.context);
        insert.checks.hold(&insert.table, &env)?;
        match &insert.conflict {
            None => transaction.insert(&insert.table, &values)?,
            Some(conflict) => {
                // A row that violates NOT NULL is an error even if it conflicts with another row.
                refuse_nulls(insert.table.def(), &env)?;
                if !self.insert_or(conflict, &env, &values, transaction)? {
                    return Ok(());
                }
            }
        }
        self.count += 1;
        if let Some(returning) = &insert.returning {
            self.results.push(returning.row(&env)?);
        }
        Ok(())
    }

    /// Inserts a row unless it conflicts with another one. Returns false if there was a conflict,
    /// which has been handled.
    fn insert_or(
        &mut self,
        conflict: &Conflict,
        env: &Env<'_>,
        values: &[cairn_table::row::Value<'_>],
        transaction: &mut Transaction,
    ) -> Result<bool> {
        let table = &self.insert.table;
        loop {
            if let Some(update) = &conflict.update {
                let mut standing = None;
                for arbiter in &conflict.arbiters {
                    standing = transaction.conflict(table, *arbiter, values)?;
                    if standing.is_some() {
                        break;
                    }
                }
                if let Some(key) = standing {
                    if self.update_instead((conflict, update), key, env, transaction)? {
                        return Ok(false);
                    }
                    continue;
                }
            } else {
                // DO NOTHING does not lock the conflicting row.
                for arbiter in &conflict.arbiters {
                    if transaction.has_conflict(table, *arbiter, values)? {
                        return Ok(false);
                    }
                }
            }
            let savepoint = transaction.savepoint();
            match transaction.insert(table, values) {
                Ok(()) => {
                    self.remember(conflict, values, transaction)?;
                    return Ok(true);
                }
                // Another transaction has inserted the row first.
                Err(cairn_table::Error::UniqueViolation { index, .. })
                    if is_arbiter(conflict, table, &index) =>
                {
                    transaction.rollback_to(savepoint)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Records an inserted row, so that a later row of the same command that would change it is an
    /// error.
    fn remember(
        &mut self,
        conflict: &Conflict,
        values: &[cairn_table::row::Value<'_>],
        transaction: &mut Transaction,
    ) -> Result<()> {
        let is_only = self.insert.rows.as_ref().is_some_and(|rows| rows.len() == 1);
        if is_only || conflict.update.is_none() {
            return Ok(());
        }
        for arbiter in &conflict.arbiters {
            if let Some(key) = transaction.conflict(&self.insert.table, *arbiter, values)? {
                self.touched.insert(key);
                break;
            }
        }
        Ok(())
    }

    /// Updates the conflicting row. Returns false if it no longer exists.
    fn update_instead(
        &mut self,
        (conflict, update): (&Conflict, &ConflictUpdate),
        key: Vec<u8>,
        proposed: &Env<'_>,
        transaction: &mut Transaction,
    ) -> Result<bool> {
        let table = &self.insert.table;
        if self.touched.contains(&key) {
            let what = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
            return Err(Error::new(CARDINALITY_VIOLATION, what).with_hint(hint));
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        if !transaction.lock(table, &key, &mut buffer)? {
            return Ok(false);
        }
        let old = buffer.row(table);
        let env = Env {
            row: Cells::Row(old),
            excluded: proposed.row,
            width: table.def().columns.len(),
            ..*proposed
        };
        if let Some(condition) = &update.condition
            && !condition.holds(&env)?
        {
            return Ok(true);
        }
        let row = changed(&update.sets, &table.def().columns, &env)?;
        let values = row.values();
        let after = Env::new(Cells::Values(&values), self.params, self.context);
        self.insert.checks.hold(table, &after)?;
        transaction.update(table, &key, &values)?;
        if let Some(returning) = &self.insert.returning {
            self.results.push(returning.row(&after)?);
        }
        self.count += 1;
        self.touched.insert(key);
        // The update may have changed its key.
        self.remember(conflict, &values, transaction)?;
        Ok(true)
    }
}

fn is_arbiter(conflict: &Conflict, table: &Table, index: &str) -> bool {
    conflict.arbiters.iter().any(|arbiter| match arbiter {
        None => {
            table.def().primary_key_name.as_deref() == Some(index)
                || !table.def().indexes.iter().any(|other| other.name == index)
        }
        Some(at) => table.def().indexes.get(*at).is_some_and(|other| other.name == index),
    })
}

/// Returns a row after SET.
///
/// Errors: those of expressions, and of values out of range.
pub(super) fn changed<'v>(
    sets: &'v [(usize, Node)],
    columns: &[ColumnDef],
    env: &Env<'v>,
) -> Result<Assigned<'v>> {
    let mut row = Assigned(Vec::with_capacity(columns.len()));
    for (at, column) in columns.iter().enumerate() {
        match sets.iter().find(|(set, _)| *set == at) {
            Some((_, node)) => row.push_node(node, env, column)?,
            None => {
                let scale = column.kind.decimal.map_or(0, |(_, scale)| scale);
                row.0.push(Val::Ref(DatumRef::from_value(env.row.get(at), scale)));
            }
        }
    }
    Ok(row)
}
