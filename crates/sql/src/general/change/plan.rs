//! Plans changes: the query that finds the rows, and the change that consumes its result.

use cairn_table::Table;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use sqlparser::ast::{
    self, AssignmentTarget, Expr, Ident, ObjectNamePart, SelectItem, Statement as Tree, TableFactor,
    TableWithJoins, UpdateTableFromKind,
};

use super::open::Open;
use super::rows::Rows;
use super::star::leave_out_key;
use super::with::leaves_name;
use super::{Change, Kind};
use crate::column::Column;
use crate::direct::{Binder, Checks, Insert, Returning, is_default, is_ignored, may_insert, may_update};
use crate::error::{Error, Result};
use crate::expr::{Failure, Scope};
use crate::general::plan::query::Query;
use crate::general::scan::provider::ROW_KEY;
use crate::session::Session;
use crate::sqlstate::{SYNTAX_ERROR, UNDEFINED_COLUMN};
use crate::syntax::build::{nested, null};
use crate::syntax::{Plain, expression, ident, one};

pub(super) fn insert(
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
    let is_values = matches!(&*source.body, ast::SetExpr::Values(_));
    let mut open = Open::of(&source.body);
    let wildcards = open.iter().filter(|item| matches!(item, Open::Columns)).count();
    if wildcards > 0 && open.iter().any(|item| matches!(item, Open::Literal | Open::Parameter(_))) {
        // The width of the wildcard decides which target columns the expressions after it have.
        let (_, _, given) = Query::plan_for(session, Tree::Query(source.clone()), types, None)?;
        Open::expand(&mut open, given.len());
    }
    let types = Open::parameters(&open, &plan.table, &plan.columns, types);
    let (query, params, given) = Query::plan_for(session, Tree::Query(source), &types, None)?;
    if given.len() > plan.columns.len() {
        return Err(Error::new(SYNTAX_ERROR, "INSERT has more expressions than target columns"));
    }
    if given.len() < plan.columns.len() && !insert.columns.is_empty() {
        return Err(Error::new(SYNTAX_ERROR, "INSERT has more target columns than expressions"));
    }
    let mut plan = plan;
    plan.fed(given.len(), is_values)?;
    check_types(&plan.table, &plan.columns, &given, &open)?;
    let zoned = zoned_texts(&plan.table, &plan.columns, &given);
    Ok((Change { query, kind: Kind::Insert { insert: plan, zoned } }, params, columns))
}

/// Replaces DEFAULT in VALUES by the default of its column.
///
/// Errors: 428C9.
fn put_defaults(source: &mut ast::Query, plan: &Insert) -> Result<()> {
    let ast::SetExpr::Values(values) = &mut *source.body else { return Ok(()) };
    for row in &mut values.rows {
        for (expr, &at) in row.iter_mut().zip(&plan.columns) {
            let Some(column) = plan.table.def().columns.get(at) else { continue };
            if !matches!(expr, Expr::Identifier(name) if is_default(name)) {
                may_insert(column, plan.overriding)?;
                continue;
            }
            *expr = match &column.default {
                // An identity column under OVERRIDING USER VALUE draws its own value and ignores
                // this one.
                Some(default) if !is_ignored(column, plan.overriding) => nested(expression(default)?),
                _ => null(),
            };
        }
    }
    Ok(())
}

/// Checks that the columns of a query are assignable to the target columns.
fn check_types(table: &Table, columns: &[usize], given: &[Column], open: &[Open]) -> Result<()> {
    for (place, (&at, given)) in columns.iter().zip(given).enumerate() {
        let Some(column) = table.def().columns.get(at) else { continue };
        // An untyped literal or parameter is parsed as the type of its target column.
        let is_open = matches!(open.get(place), Some(Open::Literal | Open::Parameter(_)));
        let is_read = is_open && given.kind.kind == Type::Text;
        let list = given.element.as_ref().map(|element| element.clone().list_of());
        if list.is_some() || !is_read && !crate::expr::is_assignable(&given.kind, &column.kind) {
            let what = format!(
                "column \"{}\" is of type {} but expression is of type {}",
                column.name,
                crate::types::name_of(&column.kind),
                crate::types::name_of(list.as_ref().unwrap_or(&given.kind))
            );
            let error = Error::new(crate::sqlstate::DATATYPE_MISMATCH, what);
            return Err(error.with_hint("You will need to rewrite or cast the expression."));
        }
    }
    Ok(())
}

/// Returns for each given value whether it is a timestamp with a time zone for a column of texts,
/// which stores the zone as well. Values themselves do not know whether they have one.
fn zoned_texts(table: &Table, columns: &[usize], given: &[Column]) -> Vec<bool> {
    let is_text =
        |at: usize| table.def().columns.get(at).is_some_and(|column| column.kind.kind == Type::Text);
    columns.iter().zip(given).map(|(&at, given)| given.kind.is_zoned && is_text(at)).collect()
}

/// Builds a SELECT over the given tables, the first of which is the target.
fn select(
    session: &mut Session,
    table: &Table,
    items: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
    with: Option<&ast::With>,
) -> Result<Tree> {
    let catalog = Arc::clone(session.transaction()?.view().catalog());
    let path = &session.context.settings.search_path;
    let (mut items, mut from, mut selection, mut with) = (items, from, selection, with.cloned());
    leave_out_key(&mut items, table, &catalog, path);
    leave_out_key(&mut from, table, &catalog, path);
    leave_out_key(&mut selection, table, &catalog, path);
    leave_out_key(&mut with, table, &catalog, path);
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

/// Returns the target table and the name that the statement gives it.
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

/// Plans RETURNING, which refers to the changed row only.
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

pub(super) fn update(
    session: &mut Session,
    update: &ast::Update,
    with: Option<&ast::With>,
    types: &[Option<ColumnType>],
) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
    if update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some() {
        return Err(Error::unsupported("this form of UPDATE"));
    }
    leaves_name(with, &update.table.relation)?;
    let (table, called) = target(session, &update.table.relation)?;
    let (mut items, mut columns, mut open) = (vec![key_item(&called)], Vec::new(), Vec::new());
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
            (value, column) => {
                column.map_or(Ok(()), may_update)?;
                value.clone()
            }
        };
        columns.push(at);
        open.push(Open::of_value(&value));
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
    let tree = select(session, &table, items, from, update.selection.clone(), with)?;
    let types = &Open::parameters(&open, &table, &columns, types);
    let (query, params, given) = Query::plan_for(session, tree, types, Some(table.id()))?;
    let given = given.get(1..).unwrap_or_default();
    check_types(&table, &columns, given, &open)?;
    let zoned = zoned_texts(&table, &columns, given);
    let (returning, results) = returning(session, update.returning.as_deref(), &table, &called, types)?;
    let checks = Checks::new(table.def())?;
    let rows = Rows { table, may_repeat: update.from.is_some() };
    Ok((Change { query, kind: Kind::Update { rows, columns, zoned, checks, returning } }, params, results))
}

pub(super) fn delete(
    session: &mut Session,
    delete: &ast::Delete,
    with: Option<&ast::With>,
    types: &[Option<ColumnType>],
) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
    if !delete.tables.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some() {
        return Err(Error::unsupported("this form of DELETE"));
    }
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let [only] = from.as_slice() else { return Err(Error::unsupported("DELETE from several tables")) };
    leaves_name(with, &only.relation)?;
    let (table, called) = target(session, &only.relation)?;
    let mut from = vec![only.clone()];
    from.extend(delete.using.iter().flatten().cloned());
    let items = vec![key_item(&called)];
    let tree = select(session, &table, items, from, delete.selection.clone(), with)?;
    let (query, params, _) = Query::plan_for(session, tree, types, Some(table.id()))?;
    let (returning, results) = returning(session, delete.returning.as_deref(), &table, &called, types)?;
    let rows = Rows { table, may_repeat: delete.using.is_some() };
    Ok((Change { query, kind: Kind::Delete { rows, returning } }, params, results))
}
