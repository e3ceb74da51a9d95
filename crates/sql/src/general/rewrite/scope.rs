//! Resolves the tables and columns of a SELECT from its text and the catalog.

use std::ops::ControlFlow;

use cairn_table::Catalog;
use sqlparser::ast::{self, Expr, TableFactor};

use crate::pg_catalog::system_columns;
use crate::syntax::walk;
use crate::syntax::{TableName, ident, last_name, qualified};

/// The context in which table names are resolved.
#[derive(Debug, Clone, Copy)]
pub(in crate::general) struct Lookup<'a> {
    pub catalog: &'a Catalog,
    pub search_path: &'a [String],
    /// The WITH queries of the statement, with their columns. They hide tables of the catalog.
    pub own: &'a [Own],
}

/// The name of a WITH query, and its columns if they are known.
pub(in crate::general) type Own = (String, Option<Vec<String>>);

/// Returns the WITH queries of a statement. The columns of a name that is defined twice are
/// unknown.
pub(super) fn own_names(tree: &ast::Statement, lookup: Lookup<'_>) -> Vec<Own> {
    struct Names(Vec<ast::Cte>);
    impl ast::Visitor for Names {
        type Break = ();

        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
            self.0.extend(query.with.iter().flat_map(|with| &with.cte_tables).cloned());
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(Vec::new());
    let _ = walk::visit(tree, &mut names);
    let mut own: Vec<Own> = names.0.iter().map(|cte| (ident(&cte.alias.name), None)).collect();
    for (at, cte) in names.0.iter().enumerate() {
        let (name, is_known_once) = (ident(&cte.alias.name), |own: &[Own], name: &String| {
            own.iter().filter(|(other, _)| other == name).count() == 1
        });
        if !is_known_once(&own, &name) {
            continue;
        }
        // The queries before it are resolved already.
        let columns = Lookup { own: &own, ..lookup }.results(&cte.query.body);
        let columns = renamed(&cte.alias, columns);
        if let Some((_, place)) = own.get_mut(at) {
            *place = columns;
        }
    }
    own
}

/// Applies the column aliases of a table alias.
fn renamed(alias: &ast::TableAlias, columns: Option<Vec<String>>) -> Option<Vec<String>> {
    if alias.columns.is_empty() {
        return columns;
    }
    let own = alias.columns.iter().map(|column| ident(&column.name));
    let rest = columns.unwrap_or_default().into_iter().skip(alias.columns.len());
    Some(own.chain(rest).collect())
}

/// A table of a SELECT.
#[derive(Debug)]
pub(super) struct From {
    /// Its name in the SELECT.
    pub name: Option<String>,
    /// Its columns, if the text and the catalog determine them.
    pub columns: Option<Vec<String>>,
}

impl Lookup<'_> {
    /// Returns the tables of a SELECT.
    pub(super) fn tables(&self, select: &ast::Select) -> Vec<From> {
        let joined = |from: &'_ ast::TableWithJoins| {
            from.joins.iter().map(|join| join.relation.clone()).collect::<Vec<_>>()
        };
        select
            .from
            .iter()
            .flat_map(|from| std::iter::once(from.relation.clone()).chain(joined(from)))
            .map(|factor| self.table(&factor))
            .collect()
    }

    pub(super) fn table(&self, factor: &TableFactor) -> From {
        let renamed = |alias: &Option<ast::TableAlias>, columns: Option<Vec<String>>| match alias {
            Some(alias) => renamed(alias, columns),
            None => columns,
        };
        let called = |alias: &Option<ast::TableAlias>| alias.as_ref().map(|alias| ident(&alias.name));
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => From {
                name: called(alias).or_else(|| Some(last_name(name))),
                columns: renamed(alias, self.columns(name)),
            },
            TableFactor::Table { name, alias, .. } => {
                From { name: called(alias).or_else(|| Some(last_name(name))), columns: renamed(alias, None) }
            }
            TableFactor::Derived { alias, subquery, .. } => {
                From { name: called(alias), columns: renamed(alias, self.results(&subquery.body)) }
            }
            _ => From { name: None, columns: None },
        }
    }

    /// Returns the positions of the primary key columns of a catalog table; none for anything else.
    pub(super) fn primary_key(&self, factor: &TableFactor) -> Vec<usize> {
        let table = self.own_table(factor);
        table.map_or_else(Vec::new, |table| table.def().primary_key.iter().map(|key| key.column).collect())
    }

    /// Returns a NOT NULL column of a catalog table, by its name in the SELECT.
    pub(super) fn never_null(&self, factor: &TableFactor) -> Option<String> {
        let at = self.own_table(factor)?.def().columns.iter().position(|column| !column.nullable)?;
        self.table(factor).columns?.get(at).cloned()
    }

    /// Returns the catalog table that an item of FROM refers to; `None` for anything else.
    fn own_table(&self, factor: &TableFactor) -> Option<&cairn_table::Table> {
        let TableFactor::Table { name, args: None, .. } = factor else { return None };
        let name = qualified(name).ok()?;
        let schema = self.schema_of(&name)?;
        self.catalog.table(&schema, &name.name).map(|table| &**table)
    }

    /// Returns the schema in which a name resolves to a table or view; `None` for names of WITH,
    /// and where it does not resolve.
    pub(super) fn schema_of(&self, name: &TableName) -> Option<String> {
        let is_own = name.schema.is_none() && self.own.iter().any(|(own, _)| *own == name.name);
        // The first match counts, even if it is a view.
        let is_it = |schema: &&str| {
            self.catalog.table(schema, &name.name).is_some()
                || self.catalog.view(schema, &name.name).is_some()
        };
        self.schemas(name).into_iter().find(is_it).filter(|_| !is_own).map(str::to_owned)
    }

    /// Returns the schemas in which a name is looked up.
    fn schemas<'n>(&'n self, name: &'n TableName) -> Vec<&'n str> {
        match &name.schema {
            Some(schema) => vec![schema],
            None => self.search_path.iter().map(String::as_str).collect(),
        }
    }

    /// Returns the columns of a table or view; `None` where they are not known, as for some names
    /// of WITH.
    fn columns(&self, name: &ast::ObjectName) -> Option<Vec<String>> {
        let name = qualified(name).ok()?;
        if name.schema.is_none()
            && let Some((_, columns)) = self.own.iter().find(|(own, _)| *own == name.name)
        {
            return columns.clone();
        }
        let own = self.schemas(&name).into_iter().find_map(|schema| {
            let table = self.catalog.table(schema, &name.name);
            let columns = table.map(|table| {
                table.def().columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()
            });
            columns.or_else(|| self.catalog.view(schema, &name.name).map(|view| view.columns.clone()))
        });
        own.or_else(|| system_columns(&name)).filter(|columns| !columns.is_empty())
    }

    /// Returns the names of the result columns of a query; `None` where its text does not determine
    /// them.
    fn results(&self, body: &ast::SetExpr) -> Option<Vec<String>> {
        match body {
            ast::SetExpr::Select(select) => {
                let mut all = Vec::with_capacity(select.projection.len());
                for item in &select.projection {
                    match item {
                        ast::SelectItem::UnnamedExpr(expr) => all.push(crate::direct::name_of(expr)),
                        ast::SelectItem::ExprWithAlias { alias, .. } => all.push(ident(alias)),
                        // The columns that joins merge are resolved elsewhere.
                        ast::SelectItem::Wildcard(_) => match select.from.as_slice() {
                            [from] if from.joins.is_empty() => {
                                all.extend(self.table(&from.relation).columns?)
                            }
                            _ => return None,
                        },
                        _ => return None,
                    }
                }
                Some(all)
            }
            ast::SetExpr::SetOperation { left, .. } => self.results(left),
            ast::SetExpr::Query(query) => self.results(&query.body),
            ast::SetExpr::Values(values) => {
                let width = values.rows.iter().map(|row| row.len()).max()?;
                Some((1..=width).map(|at| format!("column{at}")).collect())
            }
            _ => None,
        }
    }

    /// Whether a query refers to columns of outer queries, that is, whether it is a correlated
    /// subquery.
    pub fn looks_outside(&self, query: &ast::Query) -> bool {
        self.body_looks_outside(&query.body, &[])
    }

    fn body_looks_outside(&self, body: &ast::SetExpr, around: &[From]) -> bool {
        match body {
            ast::SetExpr::SetOperation { left, right, .. } => {
                self.body_looks_outside(left, around) || self.body_looks_outside(right, around)
            }
            ast::SetExpr::Query(query) => self.body_looks_outside(&query.body, around),
            ast::SetExpr::Select(select) => {
                let tables = self.tables(select);
                let mut outside = false;
                // Names in nested subqueries may refer to their own tables, so these count as
                // known.
                let mut inner: Vec<From> = Vec::new();
                let _ = walk::visit_expressions(select, |expr| {
                    let nested = match expr {
                        Expr::Subquery(query) => Some(query),
                        Expr::Exists { subquery, .. } | Expr::InSubquery { subquery, .. } => Some(subquery),
                        _ => None,
                    };
                    if let Some(ast::SetExpr::Select(select)) = nested.map(|query| &*query.body) {
                        inner.extend(self.tables(select));
                    }
                    ControlFlow::<()>::Continue(())
                });
                let all = || tables.iter().chain(&inner).chain(around);
                let _ = walk::visit_expressions(select, |expr| {
                    match expr {
                        Expr::CompoundIdentifier(names) => {
                            let table = names.len().checked_sub(2).and_then(|at| names.get(at)).map(ident);
                            outside |= !all().any(|from| from.name == table);
                        }
                        Expr::Identifier(name) => {
                            let name = ident(name);
                            let known = all().all(|from| from.columns.is_some());
                            let own = |from: &From| {
                                from.columns.as_ref().is_some_and(|columns| columns.contains(&name))
                            };
                            outside |= known && !all().any(own);
                        }
                        _ => {}
                    }
                    ControlFlow::<()>::Continue(())
                });
                outside
            }
            _ => false,
        }
    }
}
