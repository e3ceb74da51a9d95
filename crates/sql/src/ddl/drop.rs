//! DROP and TRUNCATE.

use cairn_table::Table;
use cairn_table::schema::TableDef;
use cairn_vfs::sync::Arc;
use sqlparser::ast::{self, CascadeOption, ObjectName, ObjectType};

use super::dependents::Relation;
use super::identity::owner;
use crate::command_tag::CommandTag;
use crate::direct::table_of;
use crate::error::{Error, Result};
use crate::runtime::sequence::{all as all_sequences, find as find_sequence};
use crate::session::Session;
use crate::sqlstate::{
    DEPENDENT_OBJECTS_STILL_EXIST, INVALID_SCHEMA_NAME, UNDEFINED_TABLE, WRONG_OBJECT_TYPE,
};
use crate::syntax::{TableName, qualified};

impl Session {
    pub(super) fn drop_objects(
        &mut self,
        kind: ObjectType,
        names: &[ObjectName],
        may_miss: bool,
        cascade: bool,
    ) -> Result<CommandTag> {
        match kind {
            ObjectType::Table => {
                self.drop_tables(names, may_miss, cascade)?;
                Ok(CommandTag::new("DROP TABLE"))
            }
            ObjectType::View => {
                self.drop_views(names, may_miss, cascade)?;
                Ok(CommandTag::new("DROP VIEW"))
            }
            ObjectType::Index => {
                names.iter().try_for_each(|name| self.drop_index(name, may_miss))?;
                Ok(CommandTag::new("DROP INDEX"))
            }
            ObjectType::Schema => {
                names.iter().try_for_each(|name| self.drop_schema(name, may_miss, cascade))?;
                Ok(CommandTag::new("DROP SCHEMA"))
            }
            ObjectType::Sequence => {
                names.iter().try_for_each(|name| self.drop_sequence(name, may_miss, cascade))?;
                Ok(CommandTag::new("DROP SEQUENCE"))
            }
            other => Err(Error::unsupported(format_args!("DROP {other}"))),
        }
    }

    fn missing(&mut self, what: &str, name: &TableName, may_miss: bool) -> Result<()> {
        let message = format!("{what} \"{name}\" does not exist");
        if !may_miss {
            return Err(Error::new(UNDEFINED_TABLE, message));
        }
        self.notice("00000", format!("{message}, skipping"));
        Ok(())
    }

    fn drop_tables(&mut self, names: &[ObjectName], may_miss: bool, cascade: bool) -> Result<()> {
        let tables = self.look_up(|session| session.tables_to_go(names, may_miss))?.unwrap_or_default();
        let gone: Vec<Relation> =
            tables.iter().map(|table| (table.def().schema.clone(), table.def().name.clone())).collect();
        self.drop_dependents(&gone, cascade)?;
        let ids: Vec<u32> = tables.iter().map(|table| table.id()).collect();
        // References between tables that are all dropped do not matter, nor do any others with
        // CASCADE.
        for table in &tables {
            self.drop_references_to(table.id(), |other| cascade || ids.contains(&other))?;
        }
        for table in tables {
            let table = self.transaction()?.view().catalog().table_by_id(table.id()).cloned();
            if let Some(table) = table {
                self.drop_table(&table)?;
            }
        }
        Ok(())
    }

    /// Returns the tables of these names; `None` if there are none.
    fn tables_to_go(&mut self, names: &[ObjectName], may_miss: bool) -> Result<Option<Vec<Arc<Table>>>> {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for name in names {
            let name = qualified(name)?;
            let catalog = Arc::clone(self.transaction()?.view().catalog());
            let schema = name.schema.clone().unwrap_or_else(|| self.context.settings.schema().to_owned());
            match table_of(&catalog, &self.context.settings.search_path, &name) {
                Some(table) => tables.push(Arc::clone(table)),
                None if catalog.view(&schema, &name.name).is_some() => {
                    let hint = "Use DROP VIEW to remove a view.";
                    return Err(
                        Error::new(WRONG_OBJECT_TYPE, format!("\"{name}\" is not a table")).with_hint(hint)
                    );
                }
                None => self.missing("table", &name, may_miss)?,
            }
        }
        Ok((!tables.is_empty()).then_some(tables))
    }

    /// Drops a table and the sequences that its columns own.
    fn drop_table(&mut self, table: &Arc<Table>) -> Result<()> {
        self.transaction()?.drop_table(table)?;
        self.drop_sequences_of(table, None)
    }

    /// Drops the sequences that a table's columns own, or one of them.
    pub(super) fn drop_sequences_of(&mut self, table: &Table, column: Option<&str>) -> Result<()> {
        let def = table.def();
        let own = |of: &str| match column {
            Some(column) => of == owner(def, column),
            None => is_of(of, def),
        };
        let sequences = all_sequences(self.transaction()?.view())?;
        let shared = Arc::clone(&self.shared);
        for (name, sequence) in sequences {
            if name.0 == def.schema && sequence.owner.as_deref().is_some_and(own) {
                let (transaction, context) = self.parts()?;
                context.sequences.remove(&shared, transaction, &name)?;
            }
        }
        Ok(())
    }

    /// Drops the foreign keys to a table in all tables for which `allowed` is true.
    fn drop_references_to(&mut self, id: u32, allowed: impl Fn(u32) -> bool) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let mut children: Vec<u32> = catalog.references_to(id).map(|(child, _)| child.id()).collect();
        children.dedup();
        for child in children.into_iter().filter(|&child| child != id && allowed(child)) {
            let Some(child) = self.transaction()?.view().catalog().table_by_id(child).cloned() else {
                continue;
            };
            let mut def = child.def().clone();
            def.foreign_keys.retain(|key| key.table != id);
            self.redefine(&child, def)?;
        }
        Ok(())
    }

    fn drop_views(&mut self, names: &[ObjectName], may_miss: bool, cascade: bool) -> Result<()> {
        let gone = self.look_up(|session| session.views_to_go(names, may_miss))?.unwrap_or_default();
        self.drop_dependents(&gone, cascade)?;
        for (schema, name) in gone {
            self.transaction()?.drop_view(&schema, &name)?;
        }
        Ok(())
    }

    /// Returns the views of these names; `None` if there are none.
    fn views_to_go(&mut self, names: &[ObjectName], may_miss: bool) -> Result<Option<Vec<Relation>>> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let mut gone: Vec<Relation> = Vec::new();
        for name in names {
            let name = qualified(name)?;
            let schema = name.schema.clone().unwrap_or_else(|| self.context.settings.schema().to_owned());
            if catalog.view(&schema, &name.name).is_some() {
                gone.push((schema, name.name));
            } else if catalog.table(&schema, &name.name).is_some() {
                let hint = "Use DROP TABLE to remove a table.";
                return Err(
                    Error::new(WRONG_OBJECT_TYPE, format!("\"{name}\" is not a view")).with_hint(hint)
                );
            } else {
                self.missing("view", &name, may_miss)?;
            }
        }
        gone.dedup();
        Ok((!gone.is_empty()).then_some(gone))
    }

    fn drop_schema(&mut self, name: &ObjectName, may_miss: bool, cascade: bool) -> Result<()> {
        let name = qualified(name)?.name;
        let found = self.look_up(|session| {
            let catalog = Arc::clone(session.transaction()?.view().catalog());
            if catalog.has_schema(&name) && name != crate::runtime::sequence::HIDDEN {
                return Ok(Some(catalog));
            }
            let what = format!("schema \"{name}\" does not exist");
            if may_miss {
                session.notice("00000", format!("{what}, skipping"));
                return Ok(None);
            }
            Err(Error::new(INVALID_SCHEMA_NAME, what))
        })?;
        let Some(catalog) = found else { return Ok(()) };
        if cascade {
            let views: Vec<String> = catalog
                .views()
                .filter(|(_, view)| view.schema == name)
                .map(|(_, view)| view.name.clone())
                .collect();
            let tables = catalog.tables().filter(|table| table.def().schema == name);
            let all = tables.map(|table| table.def().name.clone()).chain(views.iter().cloned());
            let gone: Vec<Relation> = all.map(|relation| (name.clone(), relation)).collect();
            self.drop_dependents(&gone, true)?;
            for view in views {
                self.transaction()?.drop_view(&name, &view)?;
            }
            let tables: Vec<Arc<Table>> =
                catalog.tables().filter(|table| table.def().schema == name).cloned().collect();
            for table in &tables {
                self.drop_references_to(table.id(), |_| true)?;
            }
            for table in tables {
                if let Some(table) = self.transaction()?.view().catalog().table_by_id(table.id()).cloned() {
                    self.drop_table(&table)?;
                }
            }
        }
        Ok(self.transaction()?.drop_schema(&name)?)
    }

    fn drop_sequence(&mut self, name: &ObjectName, may_miss: bool, cascade: bool) -> Result<()> {
        let given = qualified(name)?;
        let schema = given.schema.clone().unwrap_or_else(|| self.context.settings.schema().to_owned());
        let name = (schema, given.name.clone());
        let found = self.look_up(|session| {
            let found = find_sequence(session.transaction()?.view(), &name)?;
            if found.is_none() {
                session.missing("sequence", &given, may_miss)?;
            }
            Ok(found)
        })?;
        let Some(sequence) = found else { return Ok(()) };
        self.check_is_unused(&name)?;
        if let Some(owner) = sequence.owner.filter(|_| !cascade) {
            let what = format!("cannot drop sequence {given} because other objects depend on it");
            let detail = format!("default value for column {owner} depends on sequence {given}");
            return Err(Error::new(DEPENDENT_OBJECTS_STILL_EXIST, what).with_detail(detail));
        }
        let shared = Arc::clone(&self.shared);
        let (transaction, context) = self.parts()?;
        context.sequences.remove(&shared, transaction, &name)?;
        Ok(())
    }

    pub(super) fn truncate(&mut self, truncate: &ast::Truncate) -> Result<CommandTag> {
        let found = self.look_up(|session| session.tables_to_empty(truncate).map(Some))?;
        let tables = found.unwrap_or_default();
        if let [only] = tables.as_slice() {
            self.transaction()?.truncate(only)?;
        } else {
            self.truncate_together(&tables)?;
        }
        if truncate.identity == Some(ast::TruncateIdentityOption::Restart) {
            for table in &tables {
                self.restart_sequences_of(table)?;
            }
        }
        Ok(CommandTag::new("TRUNCATE TABLE"))
    }

    /// Returns the tables that a TRUNCATE names, and those that refer to them.
    fn tables_to_empty(&mut self, truncate: &ast::Truncate) -> Result<Vec<Arc<Table>>> {
        let mut tables = Vec::new();
        for target in &truncate.table_names {
            let table = self.table_named(&target.name)?;
            if !tables.iter().any(|other: &Arc<Table>| other.id() == table.id()) {
                tables.push(table);
            }
        }
        // Tables that refer to one of these must be truncated with it.
        let mut at = 0;
        while let Some(table) = tables.get(at).cloned() {
            at += 1;
            let catalog = Arc::clone(self.transaction()?.view().catalog());
            for (child, _) in catalog.references_to(table.id()) {
                if tables.iter().any(|other| other.id() == child.id()) {
                    continue;
                }
                if truncate.cascade != Some(CascadeOption::Cascade) {
                    let what = "cannot truncate a table referenced in a foreign key constraint";
                    let detail =
                        format!("Table \"{}\" references \"{}\".", child.def().name, table.def().name);
                    return Err(Error::unsupported(what).with_detail(detail));
                }
                tables.push(Arc::clone(child));
            }
        }
        Ok(tables)
    }

    /// Truncates tables that refer to each other. Their foreign keys are removed before, and
    /// restored afterwards.
    fn truncate_together(&mut self, tables: &[Arc<Table>]) -> Result<()> {
        let mut alone = Vec::new();
        for table in tables {
            let mut def = table.def().clone();
            def.foreign_keys.clear();
            alone.push(self.redefine(table, def)?);
        }
        for table in &alone {
            self.transaction()?.truncate(table)?;
        }
        for (table, alone) in tables.iter().zip(&alone) {
            self.redefine(alone, table.def().clone())?;
        }
        Ok(())
    }

    /// Restarts the sequences of a table's columns; a rollback undoes that.
    fn restart_sequences_of(&mut self, table: &Table) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let sequences = all_sequences(self.transaction()?.view())?;
        for (name, sequence) in sequences {
            let own = sequence.owner.as_deref().is_some_and(|of| is_of(of, table.def()));
            if name.0 == table.def().schema && own {
                let (transaction, context) = self.parts()?;
                context.sequences.alter(&shared, transaction, &name, |sequence| {
                    sequence.next = Some(sequence.start);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// Whether a sequence is owned by a column of a table. Names may contain dots, so they are compared
/// as a whole.
fn is_of(of: &str, table: &TableDef) -> bool {
    table.columns.iter().any(|column| of == owner(table, &column.name))
}
