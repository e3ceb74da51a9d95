//! Computes the size of a query with its views before planning.
//!
//! A view is planned at each reference, also from other views. Nested views make a plan deep, and a
//! chain of views that each refer to the next one twice doubles the plan with each step. Therefore
//! the size is counted first, from the texts of the views, each of which is visited once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cairn_table::schema::ViewDef;
use cairn_table::{Catalog, PUBLIC};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{self, ObjectName, Statement as Tree, Visitor};

use crate::error::{Error, Result};
use crate::sqlstate::{INVALID_OBJECT_DEFINITION, STATEMENT_TOO_COMPLEX};
use crate::syntax::walk;
use crate::syntax::{MAX_LEVELS, MAX_RELATIONS, Plain, TableName, deeper, ident, one, qualified};

/// The maximum nesting depth of views.
const MOST_VIEWS: usize = 200;
/// Levels that a view adds to a plan besides those of its text: its columns, and its name.
const VIEW_LEVELS: usize = 3;

/// The size of a query.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// Levels that the deepest view adds to the plan.
    pub levels: usize,
    /// Relations read, counted at each reference.
    pub relations: usize,
}

/// Counts a query. `is_of_view`: the query is to define a view.
///
/// Errors: 42P17 for a view that refers to itself, 54001 for too many views or relations.
pub(crate) fn size_of(tree: &Tree, catalog: &Catalog, path: &[String], is_of_view: bool) -> Result<Size> {
    let mut views = Views { catalog, known: HashMap::new(), within: Vec::new() };
    // The view has no id yet.
    views.within.extend(is_of_view.then_some(u32::MAX));
    views.size(tree, path)
}

/// Like [`size_of`], for a view.
pub(crate) fn size_of_view(catalog: &Catalog, view: &ViewDef) -> Result<Size> {
    let mut views = Views { catalog, known: HashMap::new(), within: Vec::new() };
    match catalog.view_id(&view.schema, &view.name) {
        Some(id) => views.view(id, view),
        None => Ok(Size::default()),
    }
}

/// The state of counting views.
struct Views<'a> {
    catalog: &'a Catalog,
    known: HashMap<u32, Size>,
    /// The views being counted, outermost first.
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
                if size.relations > MAX_RELATIONS {
                    let what = format!(
                        "the statement reads more than {MAX_RELATIONS} relations, with those of its views"
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
                "view \"{}\" is nested too deeply (limit: {MOST_VIEWS} views, {MAX_LEVELS} levels)",
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
            // The names in a view are resolved in the schema where it was created.
            Plain::Tree(tree) => {
                let path = [view.schema.clone(), PUBLIC.to_owned()];
                deeper(parsed.depth, || self.size(tree, &path))?
            }
            _ => Size::default(),
        };
        self.within.pop();
        size.levels += parsed.depth + VIEW_LEVELS;
        if size.levels > MAX_LEVELS {
            return Err(too_many());
        }
        self.known.insert(id, size);
        Ok(size)
    }
}

/// The names of a WITH, and the relations of its queries that have been counted.
struct With {
    names: Vec<String>,
    relations: Vec<usize>,
    /// Whether its queries may refer to themselves and to later ones.
    recursive: bool,
}

impl With {
    /// Whether a name refers to one of its queries at the current position. Without RECURSIVE, a
    /// query is visible only after its definition.
    fn has(&self, name: &str) -> bool {
        let known = if self.recursive { self.names.len() } else { self.relations.len() };
        self.names.iter().take(known).any(|own| own == name)
    }
}

/// Counts the relations of a query.
struct Counting<'v, 'a> {
    views: &'v mut Views<'a>,
    path: &'v [String],
    size: Size,
    /// The relations of each enclosing query, outermost first, and their WITH clauses.
    counts: Vec<usize>,
    within: Vec<With>,
}

impl Counting<'_, '_> {
    /// Returns the number of relations behind a name.
    fn named(&mut self, name: &TableName) -> Result<usize> {
        if name.schema.is_none() {
            for with in self.within.iter().rev() {
                if let Some(at) = with.names.iter().position(|own| *own == name.name) {
                    // A query that has not been counted yet is either the current, recursive one,
                    // or the name refers to a relation.
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
        // The visitor reaches the queries of WITH first, in order.
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
