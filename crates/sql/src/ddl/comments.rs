//! COMMENT ON: comments on tables, views, columns, indexes, sequences, namespaces and the database.
//!
//! Comments are rows of a hidden table (`pg_catalog/comments.rs`). Subjects are renamed and
//! dropped, so every change of the schema moves the comments of renamed subjects and deletes those
//! of dropped ones.

use cairn_table::{Catalog, View};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{
    AlterIndexOperation, AlterTableOperation, CommentObject, ObjectName, ObjectNamePart, Statement as Tree,
};

use crate::error::{Error, Result};
use crate::pg_catalog::comments::{About, Kind, TABLE, all, key_of, put, table};
use crate::runtime::sequence::{HIDDEN, all as all_sequences};
use crate::session::Session;
use crate::sqlstate::{
    INVALID_SCHEMA_NAME, SYNTAX_ERROR, UNDEFINED_COLUMN, UNDEFINED_TABLE, WRONG_OBJECT_TYPE,
};
use crate::syntax::{ident, last_name, qualified};

/// Whether the subject of a comment exists.
fn is_there(about: &About, catalog: &Catalog, view: &View) -> Result<bool> {
    let table = || catalog.table_by_id(about.relation);
    let is_view = catalog.views().any(|(id, _)| id == about.relation);
    Ok(match about.kind {
        Kind::Relation => is_view || table().is_some(),
        Kind::Column => is_view || table().is_some_and(|table| table.def().column(&about.name).is_some()),
        Kind::Index => table().is_some_and(|table| {
            table.def().primary_key_name.as_deref() == Some(&about.name)
                || table.def().indexes.iter().any(|index| index.name == about.name)
        }),
        Kind::Sequence => {
            let is_it = |(schema, name): &(String, String)| format!("{schema}.{name}") == about.name;
            all_sequences(view)?.iter().any(|(name, _)| is_it(name))
        }
        Kind::Schema => catalog.has_schema(&about.name),
        Kind::Database => true,
    })
}

impl Session {
    /// Runs COMMENT ON.
    ///
    /// Errors: the subject does not exist or is of another kind; 0A000 for kinds without comments.
    pub(super) fn comment(
        &mut self,
        kind: &CommentObject,
        name: &ObjectName,
        comment: Option<&str>,
    ) -> Result<()> {
        let about = self.about(kind, name)?;
        let transaction = self.transaction()?;
        match comment.filter(|text| !text.is_empty()) {
            Some(text) => {
                let table = table(transaction)?;
                put(transaction, &table, &about, text)
            }
            None => {
                if let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() {
                    transaction.delete(&table, &key_of(&table, &about))?;
                }
                Ok(())
            }
        }
    }

    fn about(&mut self, kind: &CommentObject, name: &ObjectName) -> Result<About> {
        let part = |kind, relation, name: String| Ok(About { kind, relation, name });
        match kind {
            CommentObject::Table => part(Kind::Relation, self.relation(name, Some(false))?, String::new()),
            CommentObject::View => part(Kind::Relation, self.relation(name, Some(true))?, String::new()),
            CommentObject::Column => {
                let Some((ObjectNamePart::Identifier(column), of)) = name.0.split_last() else {
                    return Err(Error::new(SYNTAX_ERROR, "column name must be qualified"));
                };
                if of.is_empty() {
                    return Err(Error::new(SYNTAX_ERROR, "column name must be qualified"));
                }
                let (column, of) = (ident(column), ObjectName(of.to_vec()));
                let relation = self.relation(&of, None)?;
                self.column_of(relation, &of, &column)?;
                part(Kind::Column, relation, column)
            }
            CommentObject::Index => {
                let (schemas, index) = self.places(name)?;
                let catalog = Arc::clone(self.transaction()?.view().catalog());
                let found = schemas.iter().find_map(|schema| {
                    let by_name = catalog.index(schema, &index).map(|(table, _)| table);
                    let mut tables = catalog.tables();
                    by_name.or_else(|| {
                        tables.find(|table| {
                            table.def().schema == *schema
                                && table.def().primary_key_name.as_deref() == Some(&index)
                        })
                    })
                });
                match found {
                    Some(table) => part(Kind::Index, table.id(), index),
                    None => Err(undefined(&index)),
                }
            }
            CommentObject::Sequence => {
                let (schemas, sequence) = self.places(name)?;
                let known = all_sequences(self.transaction()?.view())?;
                let is_it =
                    |schema: &&String| known.iter().any(|((of, name), _)| of == *schema && *name == sequence);
                match schemas.iter().find(is_it) {
                    Some(schema) => part(Kind::Sequence, 0, format!("{schema}.{sequence}")),
                    None => Err(undefined(&sequence)),
                }
            }
            CommentObject::Schema => {
                let name = last_name(name);
                if !self.transaction()?.view().catalog().has_schema(&name) || name == HIDDEN {
                    return Err(Error::new(INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")));
                }
                part(Kind::Schema, 0, name)
            }
            CommentObject::Database => part(Kind::Database, 0, String::new()),
            other => Err(Error::unsupported(format_args!("COMMENT ON {other}"))),
        }
    }

    /// Returns the namespaces to search for a name, and the name within them.
    fn places(&mut self, name: &ObjectName) -> Result<(Vec<String>, String)> {
        let name = qualified(name)?;
        let path = self.context.settings.search_path.clone();
        Ok((name.schema.map_or(path, |schema| vec![schema]), name.name))
    }

    /// Returns the number of a table or view.
    fn relation(&mut self, name: &ObjectName, is_view: Option<bool>) -> Result<u32> {
        let (schemas, relation) = self.places(name)?;
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        for schema in schemas.iter().filter(|schema| *schema != HIDDEN) {
            let table = catalog.table(schema, &relation).map(|table| table.id());
            let view = catalog.view_id(schema, &relation);
            let wrong =
                |what: &str| Err(Error::new(WRONG_OBJECT_TYPE, format!("\"{relation}\" is not a {what}")));
            match (table, view) {
                (Some(_), _) if is_view == Some(true) => return wrong("view"),
                (None, Some(_)) if is_view == Some(false) => return wrong("table"),
                (Some(id), _) | (None, Some(id)) => return Ok(id),
                (None, None) => {}
            }
        }
        Err(undefined(&relation))
    }

    fn column_of(&mut self, relation: u32, of: &ObjectName, column: &str) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let is_there = match catalog.table_by_id(relation) {
            Some(table) => table.def().column(column).is_some(),
            None => {
                let views = self.view_columns(&catalog)?;
                views.get(&relation).is_none_or(|columns| columns.iter().any(|(name, _)| name == column))
            }
        };
        if is_there {
            return Ok(());
        }
        let what = format!("column \"{column}\" of relation \"{}\" does not exist", last_name(of));
        Err(Error::new(UNDEFINED_COLUMN, what))
    }

    /// Updates comments after a change of the schema: moves those of renamed subjects, and deletes
    /// those of dropped ones.
    ///
    /// Errors: those of the table.
    pub(super) fn tidy_comments(&mut self, tree: &Tree) -> Result<()> {
        if !matches!(tree, Tree::AlterTable(_) | Tree::AlterIndex { .. } | Tree::Drop { .. }) {
            return Ok(());
        }
        let transaction = self.transaction()?;
        let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() else { return Ok(()) };
        let (catalog, view) = (Arc::clone(transaction.view().catalog()), transaction.view().clone());
        for (mut about, text) in all(&view)? {
            if is_there(&about, &catalog, &view)? {
                continue;
            }
            transaction.delete(&table, &key_of(&table, &about))?;
            let Some(name) = renamed(tree, &about) else { continue };
            about.name = name;
            if is_there(&about, &catalog, &view)? {
                put(transaction, &table, &about, &text)?;
            }
        }
        Ok(())
    }
}

fn undefined(name: &str) -> Error {
    Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

/// Returns the new name of a missing subject, if the statement has renamed it.
fn renamed(tree: &Tree, about: &About) -> Option<String> {
    match tree {
        Tree::AlterTable(alter) => alter.operations.iter().find_map(|operation| match operation {
            AlterTableOperation::RenameColumn { old_column_name, new_column_name }
                if about.kind == Kind::Column && ident(old_column_name) == about.name =>
            {
                Some(ident(new_column_name))
            }
            AlterTableOperation::RenameConstraint { old_name, new_name }
                if about.kind == Kind::Index && ident(old_name) == about.name =>
            {
                Some(ident(new_name))
            }
            _ => None,
        }),
        Tree::AlterIndex { name, operation: AlterIndexOperation::RenameIndex { index_name } } => {
            (about.kind == Kind::Index && last_name(name) == about.name).then(|| last_name(index_name))
        }
        _ => None,
    }
}
