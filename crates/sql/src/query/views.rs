//! How much the views of a query come to, before it is planned.
//!
//! A view is planned where it is named, and again in each view that names it: views over views make
//! a plan deep, and those that name another one twice double it with each step. So what a query
//! comes to is counted first, from the texts of its views, each of which is looked at once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cairn_table::schema::ViewDef;
use cairn_table::{Catalog, PUBLIC};
use cairn_vfs::sync::Arc;
use datafusion::sql::sqlparser::ast::{self, ObjectName, Statement as Tree, Visitor};

use crate::error::{Error, Result};
use crate::sqlstate::{INVALID_OBJECT_DEFINITION, STATEMENT_TOO_COMPLEX};
use crate::syntax::walk;
use crate::syntax::{DEEPEST, MOST_RELATIONS, Plain, TableName, deeper, ident, one, qualified};

/// Views that are each over the next one, at most.
const MOST_VIEWS: usize = 200;
/// Levels of a plan that a view has besides those of its text: its columns, and its name.
const VIEW_LEVELS: usize = 3;

/// What a query comes to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// Levels that the deepest view in it adds to its plan.
    pub levels: usize,
    /// Relations that it reads, each as often as it is named.
    pub relations: usize,
}

/// Counts a query. `is_of_view`: it is to be that of a view.
///
/// Errors: 42P17 for a view that asks for itself, 54001 for more views or relations than there may
/// be.
pub(super) fn size_of(tree: &Tree, catalog: &Catalog, path: &[String], is_of_view: bool) -> Result<Size> {
    let mut views = Views { catalog, known: HashMap::new(), within: Vec::new() };
    // That view has no number yet.
    views.within.extend(is_of_view.then_some(u32::MAX));
    views.size(tree, path)
}

/// As [`size_of`], of a view.
pub(super) fn size_of_view(catalog: &Catalog, view: &ViewDef) -> Result<Size> {
    let mut views = Views { catalog, known: HashMap::new(), within: Vec::new() };
    match catalog.view_id(&view.schema, &view.name) {
        Some(id) => views.view(id, view),
        None => Ok(Size::default()),
    }
}

/// Views that were counted.
struct Views<'a> {
    catalog: &'a Catalog,
    known: HashMap<u32, Size>,
    /// Those that are being counted, each named by the one before it.
    within: Vec<u32>,
}

impl Views<'_> {
    fn size(&mut self, tree: &Tree, path: &[String]) -> Result<Size> {
        let mut counting =
            Counting { views: self, path, size: Size::default(), counts: Vec::new(), within: Vec::new() };
        match walk::visit(tree, &mut counting) {
            ControlFlow::Break(error) => Err(*error),
            ControlFlow::Continue(()) => {
                let mut size = counting.size;
                size.relations =
                    counting.counts.iter().fold(size.relations, |all, one| all.saturating_add(*one));
                if size.relations > MOST_RELATIONS {
                    let what = format!(
                        "the statement reads more than {MOST_RELATIONS} relations, with those of its views"
                    );
                    return Err(Error::new(STATEMENT_TOO_COMPLEX, what));
                }
                Ok(size)
            }
        }
    }

    fn view(&mut self, id: u32, view: &ViewDef) -> Result<Size> {
        if let Some(size) = self.known.get(&id) {
            return Ok(*size);
        }
        if self.within.contains(&id) {
            let what = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
            return Err(Error::new(INVALID_OBJECT_DEFINITION, what));
        }
        let too_many = || {
            let what = format!(
                "view \"{}\" is made of too many other views: {MOST_VIEWS} are the most, and {DEEPEST} levels",
                view.name
            );
            Error::new(STATEMENT_TOO_COMPLEX, what)
        };
        if self.within.len() >= MOST_VIEWS {
            return Err(too_many());
        }
        self.within.push(id);
        let parsed = one(&view.query)?;
        let mut size = match &*parsed.statement {
            // What a view names it found where it was made.
            Plain::Tree(tree) => {
                let path = [view.schema.clone(), PUBLIC.to_owned()];
                deeper(parsed.depth, || self.size(tree, &path))?
            }
            _ => Size::default(),
        };
        self.within.pop();
        size.levels += parsed.depth + VIEW_LEVELS;
        if size.levels > DEEPEST {
            return Err(too_many());
        }
        self.known.insert(id, size);
        Ok(size)
    }
}

/// The names that a query's WITH gives, and what their queries that have been looked at come to.
struct With {
    names: Vec<String>,
    relations: Vec<usize>,
    /// Whether its queries may name themselves and those behind them.
    recursive: bool,
}

impl With {
    /// Whether a name is one of its own where the count is now: without RECURSIVE, only behind the
    /// query that it names.
    fn has(&self, name: &str) -> bool {
        let known = if self.recursive { self.names.len() } else { self.relations.len() };
        self.names.iter().take(known).any(|own| own == name)
    }
}

/// Counts a query.
struct Counting<'v, 'a> {
    views: &'v mut Views<'a>,
    path: &'v [String],
    size: Size,
    /// Relations of each of the queries that are being looked at, from the outermost one, and their
    /// WITH.
    counts: Vec<usize>,
    within: Vec<With>,
}

impl Counting<'_, '_> {
    /// What a name comes to in relations.
    fn named(&mut self, name: &TableName) -> Result<usize> {
        if name.schema.is_none() {
            for with in self.within.iter().rev() {
                if let Some(at) = with.names.iter().position(|own| *own == name.name) {
                    // One that is not through yet is the query itself, which is recursive, or a
                    // relation of that name.
                    if let Some(relations) = with.relations.get(at) {
                        return Ok(*relations);
                    }
                }
            }
        }
        let catalog = self.views.catalog;
        let schemas: Vec<&str> = match &name.schema {
            Some(schema) => vec![schema],
            None => self.path.iter().map(String::as_str).collect(),
        };
        let found = schemas.into_iter().find_map(|schema| {
            let id = catalog.view_id(schema, &name.name)?;
            Some((id, Arc::clone(catalog.view(schema, &name.name)?)))
        });
        let is_own = name.schema.is_none() && self.within.iter().any(|with| with.has(&name.name));
        let Some((id, view)) = found.filter(|_| !is_own) else { return Ok(1) };
        let size = self.views.view(id, &view)?;
        self.size.levels = self.size.levels.max(size.levels);
        Ok(size.relations.max(1))
    }
}

impl Visitor for Counting<'_, '_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<Self::Break> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| ident(&cte.alias.name));
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.within.push(With { names: names.collect(), relations: Vec::new(), recursive });
        self.counts.push(0);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<Self::Break> {
        self.within.pop();
        let count = self.counts.pop().unwrap_or_default();
        // The queries of WITH come first, in their order.
        match self.within.last_mut() {
            Some(with) if with.relations.len() < with.names.len() => with.relations.push(count.max(1)),
            _ => match self.counts.last_mut() {
                Some(around) => *around = around.saturating_add(count),
                None => self.size.relations = self.size.relations.saturating_add(count),
            },
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
        let Ok(name) = qualified(relation) else { return ControlFlow::Continue(()) };
        match self.named(&name) {
            Ok(count) => {
                let place = self.counts.last_mut().unwrap_or(&mut self.size.relations);
                *place = place.saturating_add(count);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}
