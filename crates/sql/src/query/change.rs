//! Changes whose rows a query finds: INSERT ... SELECT, UPDATE ... FROM, DELETE ... USING, and conditions with subqueries.
//!
//! A query gives the keys of the rows and what they become; then each row is locked and changed. With read committed a row may be another one by then than the
//! query saw: then everything is taken back and done again on what there is now. The locks stay, so that this comes to an end.

use arrow::array::RecordBatch;
use cairn_table::schema::ColumnType;
use cairn_table::{Isolation, RowBuf, Table};
use cairn_vfs::sync::Arc;
use datafusion::sql::sqlparser::ast::{
    self, AssignmentTarget, Expr, Ident, ObjectNamePart, SelectItem, Statement as Tree, TableFactor,
    TableWithJoins, UpdateTableFromKind,
};

use super::Batches;
use super::plan::Query;
use super::provider::ROW_KEY;
use crate::batch::BatchReader;
use crate::datum::{Datum, DatumRef};
use crate::direct::{Assigned, Binder, Checks, Insert, InsertRun, Returning, is_default};
use crate::error::{Error, Result};
use crate::expr::{Cells, Env, Failure, Scope, Val};
use crate::outcome::Column;
use crate::session::Session;
use crate::sqlstate::{SERIALIZATION_FAILURE, SYNTAX_ERROR, UNDEFINED_COLUMN};
use crate::syntax::build::{nested, null};
use crate::syntax::{Plain, expression, ident, one};

/// Times that a statement is done again because others were faster.
const MOST_TRIES: usize = 100;

/// A planned change.
#[derive(Debug)]
pub(crate) struct Change {
    query: Query,
    kind: Kind,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each statement")]
enum Kind {
    Insert(Insert),
    Update { table: Arc<Table>, columns: Vec<usize>, checks: Checks, returning: Option<Returning> },
    Delete { table: Arc<Table>, returning: Option<Returning> },
}

/// What a change gives: rows changed, and what they give back.
type Changed = (u64, Vec<Vec<Datum>>);

impl Change {
    /// Plans a change.
    ///
    /// Errors: whatever is wrong with it.
    pub fn plan(
        session: &mut Session,
        tree: &Tree,
        types: &[Option<ColumnType>],
    ) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
        match tree {
            Tree::Insert(insert) => plan_insert(session, insert, types),
            Tree::Update(update) => plan_update(session, update, types),
            Tree::Delete(delete) => plan_delete(session, delete, types),
            other => Err(Error::unsupported(other)),
        }
    }

    pub fn verb(&self) -> &'static str {
        match self.kind {
            Kind::Insert(_) => "INSERT",
            Kind::Update { .. } => "UPDATE",
            Kind::Delete { .. } => "DELETE",
        }
    }

    pub fn tag(&self) -> &'static str {
        match self.kind {
            Kind::Insert(_) => "INSERT 0",
            _ => self.verb(),
        }
    }

    pub fn returns(&self) -> bool {
        match &self.kind {
            Kind::Insert(insert) => insert.returning.is_some(),
            Kind::Update { returning, .. } | Kind::Delete { returning, .. } => returning.is_some(),
        }
    }

    /// Runs it.
    ///
    /// Errors: those of the query, and of the rows.
    pub fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Changed> {
        for _ in 0..MOST_TRIES {
            let savepoint = session.transaction()?.savepoint();
            if let Some(changed) = self.once(session, params)? {
                return Ok(changed);
            }
            let transaction = session.transaction()?;
            transaction.rollback_to(savepoint)?;
            transaction.begin_statement()?;
        }
        Err(Error::new(SERIALIZATION_FAILURE, "could not serialize access due to concurrent update"))
    }

    /// `None` when somebody has changed a row since the query has seen it.
    fn once(&self, session: &mut Session, params: &[Datum]) -> Result<Option<Changed>> {
        // All rows first: what is changed is not to be seen by what finds it.
        let mut batches = self.query.run(session, params)?;
        let mut all = Vec::new();
        while let Some(batch) = batches.next()? {
            all.push(batch);
        }
        match &self.kind {
            Kind::Insert(insert) => {
                let (transaction, context) = session.parts()?;
                let mut run = InsertRun::new(insert, params, context);
                for batch in all {
                    let reader = batches.reader(&batch)?;
                    for row in 0..reader.rows() {
                        run.given(|at| reader.get(row, at), transaction)?;
                    }
                }
                Ok(Some((run.count, run.results)))
            }
            Kind::Update { table, columns, checks, returning } => {
                let rows = all_rows(&batches, &all)?;
                update(session, table, columns, checks, returning.as_ref(), params, &rows)
            }
            Kind::Delete { table, returning } => {
                let rows = all_rows(&batches, &all)?;
                delete(session, table, returning.as_ref(), params, &rows)
            }
        }
    }
}

fn rows_of(reader: &BatchReader) -> Vec<Vec<Datum>> {
    let cells = |row| (0..reader.columns()).map(move |column| reader.get(row, column).to_owned());
    (0..reader.rows()).map(|row| cells(row).collect()).collect()
}

fn all_rows(batches: &Batches, all: &[RecordBatch]) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    for batch in all {
        rows.extend(rows_of(&batches.reader(batch)?));
    }
    Ok(rows)
}

fn update(
    session: &mut Session,
    table: &Arc<Table>,
    columns: &[usize],
    checks: &Checks,
    returning: Option<&Returning>,
    params: &[Datum],
    rows: &[Vec<Datum>],
) -> Result<Option<Changed>> {
    let (transaction, context) = session.parts()?;
    let (mut count, mut results) = (0, Vec::new());
    let (mut seen, mut now) = (RowBuf::default(), RowBuf::default());
    let mut done = std::collections::HashSet::new();
    for row in rows {
        let Some((Datum::Blob(key), given)) = row.split_first() else { continue };
        // A row that is joined with several is changed once.
        if !done.insert(key) {
            continue;
        }
        if !is_as_seen(transaction, table, key, &mut seen, &mut now)? {
            return Ok(None);
        }
        let old = now.row(table);
        let mut new = Assigned(Vec::with_capacity(table.def().columns.len()));
        for (at, column) in table.def().columns.iter().enumerate() {
            match columns.iter().position(|&other| other == at).and_then(|place| given.get(place)) {
                Some(value) => new.push(Val::Ref(value.borrow()), column)?,
                None => new.push(
                    Val::Ref(DatumRef::from_value(
                        old.get(at),
                        column.kind.decimal.map_or(0, |(_, scale)| scale),
                    )),
                    column,
                )?,
            }
        }
        let values = new.values();
        let env = Env::new(Cells::Values(&values), params, context);
        checks.hold(table, &env)?;
        if transaction.update(table, key, &values)? {
            count += 1;
            if let Some(returning) = returning {
                results.push(returning.row(&env)?);
            }
        }
    }
    Ok(Some((count, results)))
}

fn delete(
    session: &mut Session,
    table: &Arc<Table>,
    returning: Option<&Returning>,
    params: &[Datum],
    rows: &[Vec<Datum>],
) -> Result<Option<Changed>> {
    let (transaction, context) = session.parts()?;
    let (mut count, mut results) = (0, Vec::new());
    let (mut seen, mut now) = (RowBuf::default(), RowBuf::default());
    let mut done = std::collections::HashSet::new();
    for row in rows {
        let Some(Datum::Blob(key)) = row.first() else { continue };
        if !done.insert(key) {
            continue;
        }
        if !is_as_seen(transaction, table, key, &mut seen, &mut now)? {
            return Ok(None);
        }
        if let Some(returning) = returning {
            let env = Env::new(Cells::Row(now.row(table)), params, context);
            results.push(returning.row(&env)?);
        }
        count += u64::from(transaction.delete(table, key)?);
    }
    Ok(Some((count, results)))
}

/// Locks a row and reads it. False when it is not what the statement sees any more. That was somebody else then: each row is changed once, and rows that follow because of a
/// foreign key do so when the statement is through.
fn is_as_seen(
    transaction: &mut cairn_table::Transaction,
    table: &Arc<Table>,
    key: &[u8],
    seen: &mut RowBuf,
    now: &mut RowBuf,
) -> Result<bool> {
    let there = transaction.lock(table, key, now)?;
    if transaction.isolation() != Isolation::ReadCommitted {
        return Ok(there);
    }
    let was = transaction.view().get(table, key, seen)?;
    if was != there {
        return Ok(false);
    }
    let (a, b) = (seen.row(table), now.row(table));
    Ok((0..table.def().columns.len()).all(|column| {
        let (a, b) = (a.get(column), b.get(column));
        a == b || a.order(&b).is_some_and(|order| order.is_eq())
    }))
}

fn plan_insert(
    session: &mut Session,
    insert: &ast::Insert,
    types: &[Option<ColumnType>],
) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
    let catalog = Arc::clone(session.transaction()?.view().catalog());
    let mut binder = Binder {
        catalog: &catalog,
        search_path: &session.context.settings.search_path,
        params: types.to_vec(),
    };
    let (plan, columns) = Insert::plan(insert, &mut binder)
        .map_err(|failure| crate::direct::unsupported(failure, "this form of INSERT"))?;
    let Some(source) = &insert.source else { return Err(Error::unsupported("this form of INSERT")) };
    let mut source = source.clone();
    put_defaults(&mut source, &plan)?;
    let tree = Tree::Query(source);
    let (query, params, given) = Query::plan_for(session, tree, types, None)?;
    if given.len() > plan.columns.len() {
        return Err(Error::new(SYNTAX_ERROR, "INSERT has more expressions than target columns"));
    }
    if given.len() < plan.columns.len() && !insert.columns.is_empty() {
        return Err(Error::new(SYNTAX_ERROR, "INSERT has more target columns than expressions"));
    }
    let mut plan = plan;
    plan.columns.truncate(given.len());
    check_types(&plan.table, &plan.columns, &given)?;
    Ok((Change { query, kind: Kind::Insert(plan) }, params, columns))
}

/// Puts what columns have by themselves where VALUES says DEFAULT.
fn put_defaults(source: &mut ast::Query, plan: &Insert) -> Result<()> {
    let ast::SetExpr::Values(values) = &mut *source.body else { return Ok(()) };
    for row in &mut values.rows {
        for (expr, &at) in row.iter_mut().zip(&plan.columns) {
            let Some(column) = plan.table.def().columns.get(at) else { continue };
            if matches!(expr, Expr::Identifier(name) if is_default(name)) {
                *expr = match &column.default {
                    Some(default) => nested(expression(default)?),
                    None => null(),
                };
            }
        }
    }
    Ok(())
}

/// Sees that what a query gives can go into columns.
fn check_types(table: &Table, columns: &[usize], given: &[Column]) -> Result<()> {
    for (&at, given) in columns.iter().zip(given) {
        let Some(column) = table.def().columns.get(at) else { continue };
        // Texts may be literals that have found no other type.
        if given.kind.kind != cairn_table::row::Type::Text
            && !crate::expr::is_assignable(&given.kind, &column.kind)
        {
            let what = format!(
                "column \"{}\" is of type {} but expression is of type {}",
                column.name,
                crate::types::name_of(&column.kind),
                crate::types::name_of(&given.kind)
            );
            return Err(Error::new(crate::sqlstate::DATATYPE_MISMATCH, what));
        }
    }
    Ok(())
}

/// A SELECT over these tables, to be filled.
fn select(
    items: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
    with: Option<ast::With>,
) -> Result<Tree> {
    let parsed = one("SELECT 1")?;
    let Plain::Tree(Tree::Query(template)) = &*parsed.statement else {
        return Err(Error::unsupported("SELECT"));
    };
    let mut query = template.clone();
    query.with = with;
    if let ast::SetExpr::Select(select) = &mut *query.body {
        (select.projection, select.from, select.selection) = (items, from, selection);
    }
    Ok(Tree::Query(query))
}

/// The table that is changed, and what the statement calls it.
fn target(session: &mut Session, relation: &TableFactor) -> Result<(Arc<Table>, Ident)> {
    let TableFactor::Table { name, alias, .. } = relation else {
        return Err(Error::unsupported("changing this"));
    };
    let table = session.table_named(name)?;
    let called = match alias {
        Some(alias) => alias.name.clone(),
        None => match name.0.last() {
            Some(ObjectNamePart::Identifier(last)) => last.clone(),
            _ => return Err(Error::unsupported("changing this")),
        },
    };
    Ok((table, called))
}

fn key_item(called: &Ident) -> SelectItem {
    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![called.clone(), Ident::new(ROW_KEY)]))
}

/// RETURNING looks at the changed row only.
fn returning(
    session: &mut Session,
    items: Option<&[SelectItem]>,
    table: &Arc<Table>,
    called: &Ident,
    types: &[Option<ColumnType>],
) -> Result<(Option<Returning>, Vec<Column>)> {
    let catalog = Arc::clone(session.transaction()?.view().catalog());
    let mut binder = Binder {
        catalog: &catalog,
        search_path: &session.context.settings.search_path,
        params: types.to_vec(),
    };
    let scope = Scope::of_table(table, Some(&ident(called)));
    Returning::plan(items, &scope, table, &mut binder).map_err(|failure| match failure {
        Failure::Error(error) => error,
        Failure::Unknown => Error::unsupported("this expression in RETURNING"),
    })
}

fn plan_update(
    session: &mut Session,
    update: &ast::Update,
    types: &[Option<ColumnType>],
) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
    if update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some() {
        return Err(Error::unsupported("this form of UPDATE"));
    }
    let (table, called) = target(session, &update.table.relation)?;
    let (mut items, mut columns) = (vec![key_item(&called)], Vec::new());
    let mut set = |name: &ast::ObjectName, value: &Expr| -> Result<()> {
        let Some(ObjectNamePart::Identifier(last)) = name.0.last() else {
            return Err(Error::unsupported("this form of SET"));
        };
        let name = ident(last);
        let at = table.def().column(&name).ok_or_else(|| {
            Error::new(
                UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.def().name),
            )
        })?;
        let value = match (value, table.def().columns.get(at)) {
            (Expr::Identifier(word), Some(column))
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
            {
                crate::syntax::expression(column.default.as_deref().unwrap_or("NULL"))?
            }
            (value, _) => value.clone(),
        };
        columns.push(at);
        items.push(SelectItem::ExprWithAlias { expr: value, alias: Ident::new(format!("set_{at}")) });
        Ok(())
    };
    for assignment in &update.assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => set(name, value)?,
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                names.iter().zip(values).try_for_each(|(name, value)| set(name, value))?;
            }
            _ => return Err(Error::unsupported("this form of SET")),
        }
    }
    let mut from = vec![update.table.clone()];
    if let Some(UpdateTableFromKind::BeforeSet(more) | UpdateTableFromKind::AfterSet(more)) = &update.from {
        from.extend(more.iter().cloned());
    }
    let tree = select(items, from, update.selection.clone(), None)?;
    let (query, params, given) = Query::plan_for(session, tree, types, Some(table.id()))?;
    check_types(&table, &columns, given.get(1..).unwrap_or_default())?;
    let (returning, results) = returning(session, update.returning.as_deref(), &table, &called, types)?;
    let checks = Checks::new(table.def())?;
    Ok((Change { query, kind: Kind::Update { table, columns, checks, returning } }, params, results))
}

fn plan_delete(
    session: &mut Session,
    delete: &ast::Delete,
    types: &[Option<ColumnType>],
) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
    if !delete.tables.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some() {
        return Err(Error::unsupported("this form of DELETE"));
    }
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let [only] = from.as_slice() else { return Err(Error::unsupported("DELETE from several tables")) };
    let (table, called) = target(session, &only.relation)?;
    let mut from = vec![only.clone()];
    from.extend(delete.using.iter().flatten().cloned());
    let tree = select(vec![key_item(&called)], from, delete.selection.clone(), None)?;
    let (query, params, _) = Query::plan_for(session, tree, types, Some(table.id()))?;
    let (returning, results) = returning(session, delete.returning.as_deref(), &table, &called, types)?;
    Ok((Change { query, kind: Kind::Delete { table, returning } }, params, results))
}
