//! CREATE INDEX and DROP INDEX.

use cairn_table::Table;
use cairn_table::schema::IndexDef;
use cairn_vfs::sync::Arc;
use sqlparser::ast::{self, ObjectName};

use super::constraints::{column_of, key_columns};
use super::free_name;
use crate::command_tag::CommandTag;
use crate::direct::table_of;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::{DEPENDENT_OBJECTS_STILL_EXIST, UNDEFINED_OBJECT, UNDEFINED_TABLE, WRONG_OBJECT_TYPE};
use crate::syntax::qualified;

impl Session {
    /// Returns the table of this name.
    ///
    /// Errors: 42P01; 42809 for a view.
    pub(crate) fn table_named(&mut self, name: &ObjectName) -> Result<Arc<Table>> {
        let name = qualified(name)?;
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        if let Some(table) = table_of(&catalog, &self.context.settings.search_path, &name) {
            return Ok(Arc::clone(table));
        }
        let schema = name.schema.as_deref().unwrap_or(self.context.settings.schema());
        if catalog.view(schema, &name.name).is_some() {
            return Err(Error::new(WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", name.name)));
        }
        Err(Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")))
    }

    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> Result<CommandTag> {
        if create.predicate.is_some() {
            return Err(Error::unsupported("a partial index"));
        }
        if create.nulls_distinct == Some(false) {
            return Err(Error::unsupported("NULLS NOT DISTINCT"));
        }
        if let Some((table, index)) = self.look_up(|session| session.index_of(create))? {
            self.transaction()?.create_index(&table, index)?;
        }
        Ok(CommandTag::new("CREATE INDEX"))
    }

    /// Returns the definition of a new index, and its table; `None` if the name is taken and IF NOT
    /// EXISTS allows that.
    fn index_of(&mut self, create: &ast::CreateIndex) -> Result<Option<(Arc<Table>, IndexDef)>> {
        let table = self.table_named(&create.table_name)?;
        let def = table.def();
        let columns = key_columns(def, &create.columns)?;
        let include = create.include.iter().map(|name| column_of(def, name)).collect::<Result<Vec<_>>>()?;
        let name = match &create.name {
            Some(name) => {
                let name = qualified(name)?.name;
                if self.is_taken(&def.schema, &name, create.if_not_exists)? {
                    return Ok(None);
                }
                name
            }
            None => {
                let names: Vec<&str> = columns
                    .iter()
                    .filter_map(|key| def.columns.get(key.column))
                    .map(|column| column.name.as_str())
                    .collect();
                let catalog = Arc::clone(self.transaction()?.view().catalog());
                free_name(format!("{}_{}_idx", def.name, names.join("_")), |name| {
                    catalog.has_name(&def.schema, name)
                })
            }
        };
        let index = IndexDef { name, columns, include, unique: create.unique, is_constraint: false };
        Ok(Some((table, index)))
    }

    pub(super) fn drop_index(&mut self, name: &ObjectName, may_miss: bool) -> Result<()> {
        if let Some((table, at)) = self.look_up(|session| session.index_named(name, may_miss))? {
            self.transaction()?.drop_index(&table, at)?;
        }
        Ok(())
    }

    /// Finds an index that may be dropped: its table, and its position there.
    fn index_named(&mut self, name: &ObjectName, may_miss: bool) -> Result<Option<(Arc<Table>, usize)>> {
        let name = qualified(name)?;
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let schemas: Vec<String> = match &name.schema {
            Some(schema) => vec![schema.clone()],
            None => self.context.settings.search_path.clone(),
        };
        let found = schemas.iter().find_map(|schema| catalog.index(schema, &name.name));
        let Some((table, at)) = found else {
            let what = format!("index \"{name}\" does not exist");
            if may_miss {
                self.notice("00000", format!("{what}, skipping"));
                return Ok(None);
            }
            return Err(Error::new(UNDEFINED_OBJECT, what));
        };
        if table.def().indexes.get(at).is_some_and(|index| index.is_constraint) {
            let what = format!(
                "cannot drop index {name} because constraint {name} on table {} requires it",
                table.def().name
            );
            return Err(Error::new(DEPENDENT_OBJECTS_STILL_EXIST, what));
        }
        Ok(Some((Arc::clone(table), at)))
    }

    pub(super) fn rename_index(&mut self, old: &ObjectName, new: &ObjectName) -> Result<CommandTag> {
        let old = qualified(old)?;
        let name = qualified(new)?.name;
        let found = self.look_up(|session| {
            let catalog = Arc::clone(session.transaction()?.view().catalog());
            let schema = old.schema.clone().unwrap_or_else(|| session.context.settings.schema().to_owned());
            let Some((table, at)) = catalog.index(&schema, &old.name) else {
                return Err(Error::new(UNDEFINED_TABLE, format!("relation \"{old}\" does not exist")));
            };
            let table = Arc::clone(table);
            session.is_taken(&schema, &name, false)?;
            Ok(Some((table, at)))
        })?;
        if let Some((table, at)) = found {
            let mut def = table.def().clone();
            if let Some(index) = def.indexes.get_mut(at) {
                index.name = name;
            }
            self.redefine(&table, def)?;
        }
        Ok(CommandTag::new("ALTER INDEX"))
    }

    /// Replaces the definition of a table by one with the same columns.
    pub(super) fn redefine(
        &mut self,
        table: &Arc<Table>,
        def: cairn_table::schema::TableDef,
    ) -> Result<Arc<Table>> {
        let columns: Vec<Option<usize>> = (0..def.columns.len()).map(Some).collect();
        Ok(self.transaction()?.alter_table(table, def, &columns, &[])?)
    }
}
