//! Views that depend on objects that a statement drops or changes.

use std::ops::ControlFlow;

use cairn_table::schema::ViewDef;
use cairn_table::{Catalog, PUBLIC};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{ObjectName, Query, Visitor};

use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
use crate::syntax::walk;
use crate::syntax::{Plain, TableName, ident, one, qualified};

/// Namespace and name of a table or view.
pub(super) type Relation = (String, String);

/// Collects the relations that a query refers to, without those of its own WITH clauses.
#[derive(Default)]
struct Named {
    relations: Vec<TableName>,
    /// The queries around the current position, outermost first.
    within: Vec<With>,
}

/// The names in a query's WITH clause, and the number of its members that have been visited. A
/// member can refer to those before it only, unless the clause is recursive.
struct With {
    names: Vec<String>,
    seen: usize,
    recursive: bool,
}

impl With {
    fn has(&self, name: &str) -> bool {
        let known = if self.recursive { self.names.len() } else { self.seen };
        self.names.iter().take(known).any(|own| own == name)
    }
}

impl Visitor for Named {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| ident(&cte.alias.name));
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.within.push(With { names: names.collect(), seen: 0, recursive });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.within.pop();
        // The members of the WITH clause are visited first, in their order.
        if let Some(with) = self.within.last_mut().filter(|with| with.seen < with.names.len()) {
            with.seen += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let is_own =
            |name: &TableName| name.schema.is_none() && self.within.iter().any(|with| with.has(&name.name));
        self.relations.extend(qualified(relation).ok().filter(|name| !is_own(name)));
        ControlFlow::Continue(())
    }
}

/// Returns the tables and views that a view refers to.
fn asked_for(catalog: &Catalog, view: &ViewDef) -> Vec<Relation> {
    let mut named = Named::default();
    let Ok(parsed) = one(&view.query) else { return Vec::new() };
    if let Plain::Tree(tree) = &*parsed.statement {
        let _ = walk::visit(tree, &mut named);
    }
    let has = |schema: &str, name: &str| {
        catalog.table(schema, name).is_some() || catalog.view(schema, name).is_some()
    };
    let place = |relation: TableName| match relation.schema {
        Some(schema) => Some((schema, relation.name)),
        // The search path of views: see the planner of views.
        None => [view.schema.as_str(), PUBLIC]
            .into_iter()
            .find(|schema| has(schema, &relation.name))
            .map(|schema| (schema.to_owned(), relation.name)),
    };
    named.relations.into_iter().filter_map(place).collect()
}

/// Returns the views that depend on `gone`, directly or through other views, each with the relation
/// that it depends on.
fn dependents(catalog: &Catalog, gone: &[Relation]) -> Vec<(Relation, Relation)> {
    let views: Vec<(Relation, Vec<Relation>)> = catalog
        .views()
        .map(|(_, view)| ((view.schema.clone(), view.name.clone()), asked_for(catalog, view)))
        .collect();
    let mut found: Vec<(Relation, Relation)> = Vec::new();
    loop {
        let is_gone =
            |name: &Relation| gone.contains(name) || found.iter().any(|(dependent, _)| dependent == name);
        let next = views.iter().find_map(|(view, asks)| {
            let asked = asks.iter().find(|asked| is_gone(asked))?;
            (!is_gone(view)).then(|| (view.clone(), asked.clone()))
        });
        match next {
            Some(next) => found.push(next),
            None => return found,
        }
    }
}

impl Session {
    /// Drops the views that depend on relations that are to be dropped.
    ///
    /// Errors: 2BP01 without CASCADE.
    pub(super) fn drop_dependents(&mut self, gone: &[Relation], cascade: bool) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        if catalog.views().next().is_none() {
            return Ok(());
        }
        let found = dependents(&catalog, gone);
        if found.is_empty() {
            return Ok(());
        }
        let kind = |(schema, name): &Relation| match catalog.view(schema, name) {
            Some(_) => format!("view {name}"),
            None => format!("table {name}"),
        };
        if !cascade {
            let what = match gone {
                [only] => kind(only),
                _ => "desired object(s)".to_owned(),
            };
            let what = format!("cannot drop {what} because other objects depend on it");
            let detail: Vec<String> = found
                .iter()
                .map(|(view, asked)| format!("{} depends on {}", kind(view), kind(asked)))
                .collect();
            return Err(Error::new(DEPENDENT_OBJECTS_STILL_EXIST, what)
                .with_detail(detail.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        match found.as_slice() {
            [(only, _)] => self.notice("00000", format!("drop cascades to {}", kind(only))),
            many => self.notice("00000", format!("drop cascades to {} other objects", many.len())),
        }
        for ((schema, name), _) in &found {
            self.transaction()?.drop_view(schema, name)?;
        }
        Ok(())
    }

    /// Changes a table, and returns the views whose columns have changed, or that are no longer
    /// valid.
    pub(super) fn views_changed_by<T>(
        &mut self,
        change: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<(T, Vec<Relation>)> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        if catalog.views().next().is_none() {
            return Ok((change(self)?, Vec::new()));
        }
        let before = self.view_columns(&catalog)?;
        let result = change(self)?;
        self.schema_changed();
        // These columns must not be cached, because the statement may still fail.
        self.view_columns = None;
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let after = self.view_columns(&catalog)?;
        self.view_columns = None;
        let changed = catalog
            .views()
            .filter(|(id, _)| before.contains_key(id) && before.get(id) != after.get(id))
            .map(|(_, view)| (view.schema.clone(), view.name.clone()))
            .collect();
        Ok((result, changed))
    }
}
