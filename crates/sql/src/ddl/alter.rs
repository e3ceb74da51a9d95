//! ALTER TABLE.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cairn_table::Table;
use cairn_table::row::Type;
use cairn_table::schema::{ForeignKeyDef, TableDef};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, Expr, Ident, RenameTableNameKind, TableConstraint,
};

use super::constraints::{check_is_unique, column_of, without_table};
use super::dependents::Relation;
use super::identity::check_identity;
use crate::command_tag::CommandTag;
use crate::datum::{Datum, DatumRef};
use crate::direct::{Checks, default_of};
use crate::error::{Error, Result, Subject};
use crate::expr::{Cells, Compiler, Env, Node, Scope, assign};
use crate::runtime::sequence::identity_sequence;
use crate::session::Session;
use crate::sqlstate::{
    CHECK_VIOLATION, DEPENDENT_OBJECTS_STILL_EXIST, DUPLICATE_COLUMN, FOREIGN_KEY_VIOLATION,
    INVALID_TABLE_DEFINITION, UNDEFINED_COLUMN, UNDEFINED_OBJECT, WRONG_OBJECT_TYPE,
};
use crate::syntax::walk::visit_expressions_mut;
use crate::syntax::{IdentityChange, column_type, expression, ident, qualified};

impl Session {
    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<CommandTag> {
        let found = self.look_up(|session| match session.table_named(&alter.name) {
            Err(error) if alter.if_exists && error.sqlstate() == crate::sqlstate::UNDEFINED_TABLE => {
                session.notice("00000", format!("{error}, skipping"));
                Ok(None)
            }
            found => found.map(Some),
        })?;
        let Some(mut table) = found else { return Ok(CommandTag::new("ALTER TABLE")) };
        for operation in &alter.operations {
            table = self.alter(&table, operation)?;
        }
        Ok(CommandTag::new("ALTER TABLE"))
    }

    fn rename_constraint(&mut self, table: &Arc<Table>, old: &str, new: &str) -> Result<Arc<Table>> {
        let mut def = table.def().clone();
        if !rename_constraint(&mut def, old, new) {
            let what = format!("constraint \"{old}\" for table \"{}\" does not exist", def.name);
            return Err(Error::new(UNDEFINED_OBJECT, what));
        }
        self.redefine(table, def)
    }

    fn alter(&mut self, table: &Arc<Table>, operation: &AlterTableOperation) -> Result<Arc<Table>> {
        use AlterTableOperation as A;
        match operation {
            A::AddColumn { column_def, if_not_exists, .. } => {
                self.add_column(table, column_def, *if_not_exists)
            }
            A::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let cascade = *drop_behavior == Some(ast::DropBehavior::Cascade);
                let mut table = Arc::clone(table);
                for name in column_names {
                    let old = Arc::clone(&table);
                    let (new, views) = self
                        .views_changed_by(|session| session.drop_column(&old, name, *if_exists, cascade))?;
                    self.without_views(&old, &ident(name), views, cascade)?;
                    table = new;
                }
                Ok(table)
            }
            A::RenameColumn { old_column_name, new_column_name } => {
                self.keeping_views(|session| session.rename_column(table, old_column_name, new_column_name))
            }
            A::RenameTable { table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name) } => {
                let name = qualified(name)?.name;
                self.is_taken(&table.def().schema, &name, false)?;
                let mut def = table.def().clone();
                change_checks(&mut def, |_| {})?;
                def.name = name;
                let new = self.keeping_views(|session| session.redefine(table, def))?;
                self.move_sequences(table.def(), new.def())?;
                Ok(new)
            }
            A::AlterColumn { column_name, op } => self.alter_column(table, column_name, op),
            A::AddConstraint { constraint, .. } => self.add_constraint(table, constraint),
            A::DropConstraint { if_exists, name, drop_behavior } => {
                let (name, mut table) = (ident(name), Arc::clone(table));
                if *drop_behavior == Some(ast::DropBehavior::Cascade) {
                    table = self.drop_what_needs(&table, &name)?;
                }
                self.drop_constraint(&table, &name, *if_exists)
            }
            A::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(table, &ident(old_name), &ident(new_name))
            }
            A::ValidateConstraint { name } => validated(table, &ident(name)),
            A::OwnerTo { .. } | A::SetOptionsParens { .. } | A::ReplicaIdentity { .. } => {
                Ok(Arc::clone(table))
            }
            other => Err(Error::unsupported(format_args!("ALTER TABLE {other}"))),
        }
    }

    fn add_column(
        &mut self,
        table: &Arc<Table>,
        column: &ast::ColumnDef,
        may_exist: bool,
    ) -> Result<Arc<Table>> {
        let name = ident(&column.name);
        if table.def().column(&name).is_some() {
            let what = format!("column \"{name}\" of relation \"{}\" already exists", table.def().name);
            if may_exist {
                self.notice(DUPLICATE_COLUMN, format!("{what}, skipping"));
                return Ok(Arc::clone(table));
            }
            return Err(Error::new(DUPLICATE_COLUMN, what));
        }
        let mut sequences = Vec::new();
        let (def, ()) = self.with_more(table.def().clone(), Some(table.id()), |constraints| {
            constraints.add_column(column, &mut sequences)
        })?;
        self.make_sequences(sequences)?;
        let Some(added) = def.columns.last() else { return Ok(Arc::clone(table)) };
        let node = default_of(added)?;
        if node.is_volatile() && self.has_rows(table)? {
            return Err(Error::unsupported(
                "adding a column with a volatile default to a table that has rows",
            ));
        }
        let value = {
            let env = Env::new(Cells::None, &[], &self.context);
            if node.is_volatile() {
                Datum::Null
            } else {
                assign(node.eval(&env)?.get(), &added.kind)?.into_datum()
            }
        };
        let old = table.def().columns.len();
        let columns: Vec<Option<usize>> = (0..def.columns.len()).map(|at| (at < old).then_some(at)).collect();
        let mut fill = vec![cairn_table::row::Value::Null; old];
        fill.push(value.borrow().to_value());
        let checks = def.checks.len() > table.def().checks.len();
        let keys = table.def().foreign_keys.len()..def.foreign_keys.len();
        let new = self.transaction()?.alter_table(table, def, &columns, &fill)?;
        if checks {
            self.check_rows(&new)?;
        }
        for key in keys {
            self.check_references(&new, key)?;
        }
        Ok(new)
    }

    fn drop_column(
        &mut self,
        table: &Arc<Table>,
        name: &Ident,
        may_miss: bool,
        cascade: bool,
    ) -> Result<Arc<Table>> {
        let name = ident(name);
        let Some(gone) = table.def().column(&name) else {
            let what = format!("column \"{name}\" of relation \"{}\" does not exist", table.def().name);
            if may_miss {
                self.notice("00000", format!("{what}, skipping"));
                return Ok(Arc::clone(table));
            }
            return Err(Error::new(UNDEFINED_COLUMN, what));
        };
        if table.def().columns.len() == 1 {
            return Err(Error::unsupported("a table without columns"));
        }
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let mut children = BTreeSet::new();
        for (child, at) in catalog.references_to(table.id()) {
            let Some(key) = child.def().foreign_keys.get(at).filter(|key| key.references.contains(&gone))
            else {
                continue;
            };
            // A foreign key of this table that includes the column is dropped with it.
            if child.id() == table.id() && key.columns.contains(&gone) {
                continue;
            }
            if !cascade {
                let what = format!(
                    "cannot drop column {name} of table {} because other objects depend on it",
                    table.def().name
                );
                let detail = format!("constraint {} on table {} depends on it", key.name, child.def().name);
                return Err(Error::new(DEPENDENT_OBJECTS_STILL_EXIST, what).with_detail(detail));
            }
            if child.id() != table.id() {
                children.insert(child.id());
            }
        }
        // All keys of a child at once, because redefining it makes it another table.
        for child in children.into_iter().filter_map(|id| catalog.table_by_id(id)) {
            let mut def = child.def().clone();
            def.foreign_keys.retain(|key| key.table != table.id() || !key.references.contains(&gone));
            self.redefine(child, def)?;
        }
        let def = without_column(table, gone)?;
        let columns: Vec<Option<usize>> =
            (0..table.def().columns.len()).filter(|&at| at != gone).map(Some).collect();
        let new = self.transaction()?.alter_table(table, def, &columns, &[])?;
        self.shift_references(&new, gone)?;
        self.drop_sequences_of(&new, Some(&name))?;
        Ok(new)
    }

    /// Handles the views that used a dropped column.
    ///
    /// Errors: 2BP01 without CASCADE.
    fn without_views(
        &mut self,
        table: &Table,
        column: &str,
        views: Vec<Relation>,
        cascade: bool,
    ) -> Result<()> {
        if views.is_empty() {
            return Ok(());
        }
        let table = &table.def().name;
        if !cascade {
            let what =
                format!("cannot drop column {column} of table {table} because other objects depend on it");
            let detail: Vec<String> = views
                .iter()
                .map(|(_, view)| format!("view {view} depends on column {column} of table {table}"))
                .collect();
            return Err(Error::new(DEPENDENT_OBJECTS_STILL_EXIST, what)
                .with_detail(detail.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for (schema, view) in views {
            self.notice("00000", format!("drop cascades to view {view}"));
            self.transaction()?.drop_view(&schema, &view)?;
        }
        Ok(())
    }

    /// Makes a change that views cannot follow, because they are stored as text.
    ///
    /// Errors: 0A000 if a view's columns would change.
    fn keeping_views<T>(&mut self, change: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let (result, views) = self.views_changed_by(change)?;
        match views.first() {
            None => Ok(result),
            Some((_, view)) => {
                let what = format!("view {view} depends on it");
                Err(Error::unsupported("changing the name or type of a column that a view depends on")
                    .with_detail(what))
            }
        }
    }

    /// Adjusts the foreign keys of other tables after a column has been removed and those behind it
    /// have moved.
    fn shift_references(&mut self, table: &Arc<Table>, gone: usize) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let mut children: Vec<Arc<Table>> =
            catalog.references_to(table.id()).map(|(child, _)| Arc::clone(child)).collect();
        children.dedup_by_key(|child| child.id());
        for child in children.into_iter().filter(|child| child.id() != table.id()) {
            let mut def = child.def().clone();
            for key in def.foreign_keys.iter_mut().filter(|key| key.table == table.id()) {
                key.references.iter_mut().filter(|at| **at > gone).for_each(|at| *at -= 1);
            }
            self.redefine(&child, def)?;
        }
        Ok(())
    }

    fn rename_column(&mut self, table: &Arc<Table>, old: &Ident, new: &Ident) -> Result<Arc<Table>> {
        let mut def = table.def().clone();
        let at = column_of(&def, old)?;
        let (old, new_name) = (ident(old), ident(new));
        if def.column(&new_name).is_some() {
            let what = format!("column \"{new_name}\" of relation \"{}\" already exists", def.name);
            return Err(Error::new(DUPLICATE_COLUMN, what));
        }
        change_checks(&mut def, |name| {
            if ident(name) == old {
                *name = Ident::with_quote('"', &new_name);
            }
        })?;
        if let Some(column) = def.columns.get_mut(at) {
            column.name = new_name;
        }
        let new = self.redefine(table, def)?;
        self.move_sequences(table.def(), new.def())?;
        Ok(new)
    }

    fn alter_column(
        &mut self,
        table: &Arc<Table>,
        name: &Ident,
        op: &AlterColumnOperation,
    ) -> Result<Arc<Table>> {
        let mut def = table.def().clone();
        let at = column_of(&def, name)?;
        if let Some(change) = IdentityChange::of(op)? {
            return self.alter_identity(table, at, change);
        }
        let relation = def.name.clone();
        let Some(column) = def.columns.get_mut(at) else { return Ok(Arc::clone(table)) };
        check_identity(&relation, column, op)?;
        match op {
            AlterColumnOperation::SetNotNull => column.nullable = false,
            AlterColumnOperation::DropNotNull => {
                if def.primary_key.iter().any(|key| key.column == at) {
                    let what = format!("column \"{}\" is in a primary key", ident(name));
                    return Err(Error::new(INVALID_TABLE_DEFINITION, what));
                }
                column.nullable = true;
            }
            AlterColumnOperation::SetDefault { value } => {
                column.default = Some(value.to_string());
                default_of(column)?;
            }
            AlterColumnOperation::DropDefault => column.default = None,
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                let (old, new) = (column.kind.kind, column_type(data_type)?);
                let (kind, own) = (new.kind, identity_sequence(table.def(), column));
                let table = self.keeping_views(|session| session.retype(table, at, new, using.as_ref()))?;
                own.map_or(Ok(()), |name| self.retype_sequence(&name, old, kind))?;
                return Ok(table);
            }
            // Handled before.
            AlterColumnOperation::AddGenerated { .. } => {}
        }
        self.redefine(table, def)
    }

    fn add_constraint(&mut self, table: &Arc<Table>, constraint: &TableConstraint) -> Result<Arc<Table>> {
        let (def, ()) =
            self.with_more(table.def().clone(), Some(table.id()), |constraints| constraints.add(constraint))?;
        let new = self.redefine(table, def)?;
        match constraint {
            TableConstraint::Check(_) => self.check_rows(&new)?,
            TableConstraint::ForeignKey(_) => {
                self.check_references(&new, new.def().foreign_keys.len() - 1)?
            }
            _ => {}
        }
        Ok(new)
    }

    /// Drops the foreign keys that depend on a constraint of this table for a unique key to refer
    /// to. Returns the table as it is afterwards.
    fn drop_what_needs(&mut self, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
        let mut without = table.def().clone();
        without.indexes.retain(|index| index.name != name || !index.is_constraint);
        if without.primary_key_name.as_deref() == Some(name) {
            without.primary_key.clear();
        }
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let children: BTreeSet<u32> =
            catalog.references_to(table.id()).map(|(child, _)| child.id()).collect();
        for child in children.into_iter().filter_map(|id| catalog.table_by_id(id)) {
            let mut def = child.def().clone();
            def.foreign_keys
                .retain(|key| key.table != table.id() || check_is_unique(&without, &key.references).is_ok());
            if def.foreign_keys.len() < child.def().foreign_keys.len() {
                self.redefine(child, def)?;
            }
        }
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        Ok(catalog.table_by_id(table.id()).map_or_else(|| Arc::clone(table), Arc::clone))
    }

    fn drop_constraint(&mut self, table: &Arc<Table>, name: &str, may_miss: bool) -> Result<Arc<Table>> {
        let mut def = table.def().clone();
        if let Some(at) = def.indexes.iter().position(|index| index.name == name && index.is_constraint) {
            return Ok(self.transaction()?.drop_index(table, at)?);
        }
        let before = (def.checks.len(), def.foreign_keys.len());
        def.checks.retain(|check| check.name != name);
        def.foreign_keys.retain(|key| key.name != name);
        if before != (def.checks.len(), def.foreign_keys.len()) {
            return self.redefine(table, def);
        }
        if def.primary_key_name.as_deref() == Some(name) {
            def.primary_key.clear();
            def.primary_key_name = None;
            return self.redefine(table, def);
        }
        let what = format!("constraint \"{name}\" of relation \"{}\" does not exist", def.name);
        if may_miss {
            self.notice("00000", format!("{what}, skipping"));
            return Ok(Arc::clone(table));
        }
        Err(Error::new(UNDEFINED_OBJECT, what))
    }

    pub(super) fn has_rows(&mut self, table: &Arc<Table>) -> Result<bool> {
        use std::ops::Bound::Unbounded;
        let view = self.transaction()?.current_rows()?;
        let mut scan = view.scan(table, None, (Unbounded, Unbounded), cairn_table::Direction::Forward)?;
        Ok(scan.advance()?)
    }

    /// Checks that all existing rows satisfy the checks.
    pub(super) fn check_rows(&mut self, table: &Arc<Table>) -> Result<()> {
        use std::ops::Bound::Unbounded;
        let checks = Checks::new(table.def())?;
        let view = self.transaction()?.current_rows()?;
        let mut scan = view.scan(table, None, (Unbounded, Unbounded), cairn_table::Direction::Forward)?;
        while let Some(row) = scan.next()? {
            checks.hold(table, &Env::new(Cells::Row(row), &[], &self.context)).map_err(|error| {
                let Some(name) = &error.subject().constraint else { return error };
                let what = format!(
                    "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                    table.def().name
                );
                Error::new(CHECK_VIOLATION, what).about(error.subject().clone())
            })?;
        }
        Ok(())
    }

    /// Checks that the rows to which existing rows refer exist.
    pub(super) fn check_references(&mut self, table: &Arc<Table>, at: usize) -> Result<()> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let view = self.transaction()?.current_rows()?;
        let Some(key) = table.def().foreign_keys.get(at) else { return Ok(()) };
        let Some(parent) = view.catalog().table_by_id(key.table).cloned() else { return Ok(()) };
        let Some((index, columns)) = referenced(&parent, key) else { return Ok(()) };
        let format = match index {
            None => Some(parent.key_format()),
            Some(index) => parent.index_key_format(index),
        };
        let Some(format) = format else { return Ok(()) };
        let mut scan = view.scan(table, None, (Unbounded, Unbounded), cairn_table::Direction::Forward)?;
        while let Some(row) = scan.next()? {
            let values: Vec<_> = columns.iter().map(|&(column, _)| row.get(column)).collect();
            if values.contains(&cairn_table::row::Value::Null) {
                continue;
            }
            let there = values.iter().zip(&columns).map(|(value, &(_, kind))| value.with_type(kind));
            let there: Option<Vec<_>> = there.collect();
            let mut start = Vec::new();
            let mut found = there.is_some_and(|there| format.encode(&there, &mut start));
            if found {
                let end = [&start[..], &[0xff]].concat();
                let mut there = view.scan(
                    &parent,
                    index,
                    (Included(&start), Excluded(&end)),
                    cairn_table::Direction::Forward,
                )?;
                found = there.advance()?;
            }
            if !found {
                let what = format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                    table.def().name,
                    key.name
                );
                let shown: Vec<String> =
                    values.iter().map(|value| DatumRef::from_value(*value, 0).to_string()).collect();
                let detail =
                    format!("Key ({}) is not present in table \"{}\".", shown.join(", "), parent.def().name);
                let subject = Subject::constraint(&table.def().schema, &table.def().name, &key.name);
                return Err(Error::new(FOREIGN_KEY_VIOLATION, what).with_detail(detail).about(subject));
            }
        }
        Ok(())
    }
}

/// VALIDATE CONSTRAINT. Constraints are always valid, so only an unknown name is an error.
fn validated(table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
    let mut def = table.def().clone();
    let mut names =
        def.checks.iter().map(|check| &check.name).chain(def.foreign_keys.iter().map(|key| &key.name));
    if names.any(|other| *other == *name) {
        return Ok(Arc::clone(table));
    }
    let of = format!("constraint \"{name}\" of relation \"{}\"", table.def().name);
    if rename_constraint(&mut def, name, name) {
        let what = format!("{of} is not a foreign key or check constraint");
        return Err(Error::new(WRONG_OBJECT_TYPE, what));
    }
    Err(Error::new(UNDEFINED_OBJECT, format!("{of} does not exist")))
}

/// A unique key that a foreign key refers to: its index, `None` for the primary key, and the
/// referring columns in its order, with its types.
type ReferencedKey = (Option<usize>, Vec<(usize, Type)>);

/// Returns the unique key that a foreign key refers to.
fn referenced(parent: &Table, key: &ForeignKeyDef) -> Option<ReferencedKey> {
    // Returns the referring columns in the order of the referenced key, with the types of that
    // key; `None` if the key does not match.
    let own = |columns: &[cairn_table::schema::KeyColumn]| -> Option<Vec<(usize, Type)>> {
        if columns.len() != key.references.len() {
            return None;
        }
        columns
            .iter()
            .map(|column| {
                let at = key.references.iter().position(|&other| other == column.column)?;
                Some((*key.columns.get(at)?, parent.def().columns.get(column.column)?.kind.kind))
            })
            .collect()
    };
    let by_index = || {
        parent
            .def()
            .indexes
            .iter()
            .enumerate()
            .filter(|(_, index)| index.unique)
            .find_map(|(at, index)| Some((Some(at), own(&index.columns)?)))
    };
    own(&parent.def().primary_key).map(|columns| (None, columns)).or_else(by_index)
}

/// Applies a change to the column names in a table's checks. Files of older versions may qualify
/// them with the table's name.
fn change_checks(def: &mut TableDef, change: impl Fn(&mut Ident)) -> Result<()> {
    let mut checks = std::mem::take(&mut def.checks);
    for check in &mut checks {
        let mut expr = without_table(expression(&check.expression)?, def);
        let _ = visit_expressions_mut(&mut expr, |expr| {
            if let Expr::Identifier(name) = expr {
                change(name);
            }
            ControlFlow::<()>::Continue(())
        });
        check.expression = expr.to_string();
    }
    def.checks = checks;
    Ok(())
}

fn rename_constraint(def: &mut TableDef, old: &str, new: &str) -> bool {
    let indexes = def.indexes.iter_mut().filter(|index| index.is_constraint).map(|index| &mut index.name);
    let checks = def.checks.iter_mut().map(|check| &mut check.name);
    let keys = def.foreign_keys.iter_mut().map(|key| &mut key.name);
    let found =
        def.primary_key_name.iter_mut().chain(indexes).chain(checks).chain(keys).find(|name| *name == old);
    match found {
        Some(name) => {
            name.clear();
            name.push_str(new);
            true
        }
        None => false,
    }
}

/// Returns the definition without a column, and without the objects that are built on it or refer
/// to it.
fn without_column(table: &Table, gone: usize) -> Result<TableDef> {
    let mut def = table.def().clone();
    let scope = Scope::of_def(table.def(), None);
    let mut checks = Vec::new();
    for check in def.checks.drain(..) {
        let expr = expression(&check.expression)?;
        let node = Compiler::new(&scope, &mut Vec::new()).condition(&expr);
        let mut looks = false;
        if let Ok(node) = node {
            node.walk(&mut |node| looks |= matches!(node, Node::Slot { slot, .. } if *slot == gone));
        }
        if !looks {
            checks.push(check);
        }
    }
    def.checks = checks;
    if def.primary_key.iter().any(|key| key.column == gone) {
        def.primary_key.clear();
        def.primary_key_name = None;
    }
    def.indexes.retain(|index| {
        !index.columns.iter().any(|key| key.column == gone) && !index.include.contains(&gone)
    });
    let is_own = |key: &ForeignKeyDef| key.table == table.id();
    def.foreign_keys
        .retain(|key| !(key.columns.contains(&gone) || is_own(key) && key.references.contains(&gone)));
    def.columns.remove(gone);
    let shift = |at: &mut usize| {
        if *at > gone {
            *at -= 1;
        }
    };
    def.primary_key.iter_mut().for_each(|key| shift(&mut key.column));
    for index in &mut def.indexes {
        index.columns.iter_mut().for_each(|key| shift(&mut key.column));
        index.include.iter_mut().for_each(shift);
    }
    for key in &mut def.foreign_keys {
        key.columns.iter_mut().for_each(shift);
        if is_own(key) {
            key.references.iter_mut().for_each(shift);
        }
    }
    Ok(def)
}
