//! Constraints of tables.

use std::ops::ControlFlow;

use cairn_table::Catalog;
use cairn_table::row::Order;
use cairn_table::schema::{CheckDef, ColumnDef, ForeignKeyDef, IndexDef, KeyColumn, Referential, TableDef};
use sqlparser::ast::{
    CheckConstraint, ConstraintCharacteristics, ConstraintReferenceMatchKind, DeferrableInitial, Expr,
    ForeignKeyConstraint, Ident, IndexColumn, NullsDistinctOption, ReferentialAction, TableConstraint,
};

use super::{free_name, has_constraint};
use crate::direct::table_of;
use crate::error::{Error, Result};
use crate::runtime::sequence::{Name, all as all_sequences};
use crate::session::Session;
use crate::sqlstate::{
    DATATYPE_MISMATCH, DUPLICATE_OBJECT, INVALID_FOREIGN_KEY, INVALID_TABLE_DEFINITION, UNDEFINED_COLUMN,
    UNDEFINED_TABLE,
};
use crate::syntax::walk::visit_expressions_mut;
use crate::syntax::{ident, qualified};

/// Adds constraints to a definition, and resolves other tables.
#[derive(Debug)]
pub(super) struct Constraints<'a> {
    pub catalog: &'a Catalog,
    pub search_path: &'a [String],
    pub def: &'a mut TableDef,
    /// The existing sequences, whose names are taken.
    pub sequences: &'a [Name],
    pub id: Option<u32>,
}

impl Session {
    /// Extends a definition by `add`. `id` is the number of the table, if it has one.
    ///
    /// Errors: those of `add`.
    pub(super) fn with_more<T>(
        &mut self,
        mut def: TableDef,
        id: Option<u32>,
        add: impl FnOnce(&mut Constraints<'_>) -> Result<T>,
    ) -> Result<(TableDef, T)> {
        let view = self.transaction()?.view().clone();
        let sequences: Vec<Name> = all_sequences(&view)?.into_iter().map(|(name, _)| name).collect();
        let added = add(&mut Constraints {
            catalog: view.catalog(),
            search_path: &self.context.settings.search_path,
            def: &mut def,
            sequences: &sequences,
            id,
        })?;
        Ok((def, added))
    }
}

impl Constraints<'_> {
    /// Adds a constraint.
    ///
    /// Errors: names that are taken or do not exist, a second primary key.
    pub fn add(&mut self, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                check_characteristics(key.characteristics.as_ref())?;
                let columns = self.key_columns(&key.columns)?;
                self.primary_key(key.name.as_ref(), columns)
            }
            TableConstraint::Unique(unique) => {
                check_characteristics(unique.characteristics.as_ref())?;
                if unique.nulls_distinct == NullsDistinctOption::NotDistinct {
                    return Err(Error::unsupported("NULLS NOT DISTINCT"));
                }
                let columns = self.key_columns(&unique.columns)?;
                self.unique(unique.name.as_ref(), columns)
            }
            TableConstraint::Check(check) => self.check(check, None),
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(|name| self.column(name)).collect::<Result<Vec<_>>>()?;
                self.foreign_key(key, columns)
            }
            other => Err(Error::unsupported(format_args!("the constraint {other}"))),
        }
    }

    pub fn primary_key(&mut self, name: Option<&Ident>, columns: Vec<KeyColumn>) -> Result<()> {
        if !self.def.primary_key.is_empty() {
            let what = format!("multiple primary keys for table \"{}\" are not allowed", self.def.name);
            return Err(Error::new(INVALID_TABLE_DEFINITION, what));
        }
        let name = self.name(name, format!("{}_pkey", self.def.name))?;
        for key in &columns {
            if let Some(column) = self.def.columns.get_mut(key.column) {
                column.nullable = false;
            }
        }
        self.def.primary_key = columns;
        self.def.primary_key_name = Some(name);
        Ok(())
    }

    pub fn unique(&mut self, name: Option<&Ident>, columns: Vec<KeyColumn>) -> Result<()> {
        let names: Vec<&str> = columns
            .iter()
            .filter_map(|key| self.def.columns.get(key.column))
            .map(|column| column.name.as_str())
            .collect();
        let name = self.name(name, format!("{}_{}_key", self.def.name, names.join("_")))?;
        self.def.indexes.push(IndexDef {
            name,
            columns,
            include: Vec::new(),
            unique: true,
            is_constraint: true,
        });
        Ok(())
    }

    pub fn check(&mut self, check: &CheckConstraint, column: Option<&str>) -> Result<()> {
        if check.enforced == Some(false) {
            return Err(Error::unsupported("NOT ENFORCED"));
        }
        let base = match column {
            Some(column) => format!("{}_{column}_check", self.def.name),
            None => format!("{}_check", self.def.name),
        };
        let name = self.name(check.name.as_ref(), base)?;
        let expression = without_table((*check.expr).clone(), self.def).to_string();
        self.def.checks.push(CheckDef { name, expression });
        Ok(())
    }

    pub fn foreign_key(&mut self, key: &ForeignKeyConstraint, columns: Vec<usize>) -> Result<()> {
        check_characteristics(key.characteristics.as_ref())?;
        if let Some(ConstraintReferenceMatchKind::Full | ConstraintReferenceMatchKind::Partial) =
            &key.match_kind
        {
            return Err(Error::unsupported("MATCH FULL and MATCH PARTIAL"));
        }
        let target = qualified(&key.foreign_table)?;
        let is_own = target.name == self.def.name
            && target.schema.as_ref().is_none_or(|schema| *schema == self.def.schema);
        let other = if is_own { None } else { table_of(self.catalog, self.search_path, &target) };
        let (table, parent) = match other {
            Some(other) => (other.id(), other.def().clone()),
            None if is_own => (self.id.unwrap_or(0), self.def.clone()),
            None => return Err(Error::new(UNDEFINED_TABLE, format!("relation \"{target}\" does not exist"))),
        };
        let references: Vec<usize> = if key.referred_columns.is_empty() {
            if parent.primary_key.is_empty() {
                let what = format!("there is no primary key for referenced table \"{}\"", parent.name);
                return Err(Error::new("42704", what));
            }
            parent.primary_key.iter().map(|key| key.column).collect()
        } else {
            key.referred_columns.iter().map(|name| column_of(&parent, name)).collect::<Result<_>>()?
        };
        if references.len() != columns.len() {
            return Err(Error::new(
                INVALID_FOREIGN_KEY,
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        let names: Vec<&str> = columns
            .iter()
            .filter_map(|&at| self.def.columns.get(at))
            .map(|column| column.name.as_str())
            .collect();
        let name = self.name(key.name.as_ref(), format!("{}_{}_fkey", self.def.name, names.join("_")))?;
        for (&own, &other) in columns.iter().zip(&references) {
            let (Some(own), Some(other)) = (self.def.columns.get(own), parent.columns.get(other)) else {
                continue;
            };
            check_may_refer(&name, own, other)?;
        }
        check_is_unique(&parent, &references)?;
        let (on_delete, on_update) = (action(key.on_delete), action(key.on_update));
        self.def.foreign_keys.push(ForeignKeyDef { name, columns, table, references, on_delete, on_update });
        Ok(())
    }

    fn name(&self, given: Option<&Ident>, base: String) -> Result<String> {
        let Some(given) = given.map(ident) else {
            let taken =
                |name: &str| has_constraint(self.def, name) || self.catalog.has_name(&self.def.schema, name);
            return Ok(free_name(base, taken));
        };
        if has_constraint(self.def, &given) {
            let what = format!("constraint \"{given}\" for relation \"{}\" already exists", self.def.name);
            return Err(Error::new(DUPLICATE_OBJECT, what));
        }
        Ok(given)
    }

    fn column(&self, name: &Ident) -> Result<usize> {
        column_of(self.def, name)
    }

    pub fn key_columns(&self, columns: &[IndexColumn]) -> Result<Vec<KeyColumn>> {
        key_columns(self.def, columns)
    }
}

/// Constraints are always checked, at the end of the statement.
///
/// Errors: 0A000 for constraints that are deferrable or not enforced.
pub(super) fn check_characteristics(given: Option<&ConstraintCharacteristics>) -> Result<()> {
    let Some(given) = given else { return Ok(()) };
    if given.deferrable == Some(true) || given.initially == Some(DeferrableInitial::Deferred) {
        return Err(Error::unsupported("DEFERRABLE"));
    }
    if given.enforced == Some(false) {
        return Err(Error::unsupported("NOT ENFORCED"));
    }
    Ok(())
}

/// Returns the columns of a key or an index, with their order.
pub(super) fn key_columns(def: &TableDef, columns: &[IndexColumn]) -> Result<Vec<KeyColumn>> {
    let mut keys: Vec<KeyColumn> = Vec::with_capacity(columns.len());
    for column in columns {
        let Expr::Identifier(name) = &column.column.expr else {
            return Err(Error::unsupported("an index on an expression"));
        };
        let at = column_of(def, name)?;
        if keys.iter().any(|key| key.column == at) {
            let what = format!("column \"{}\" appears twice in a key", ident(name));
            return Err(Error::new(crate::sqlstate::DUPLICATE_COLUMN, what));
        }
        let descending = column.column.options.asc == Some(false);
        let nulls_first = column.column.options.nulls_first.unwrap_or(descending);
        keys.push(KeyColumn { column: at, order: Order { descending, nulls_first } });
    }
    Ok(keys)
}

/// Checks that the type of a column allows it to refer to another one.
///
/// Errors: 42804.
pub(super) fn check_may_refer(constraint: &str, own: &ColumnDef, other: &ColumnDef) -> Result<()> {
    if own.kind.may_refer_to(&other.kind) {
        return Ok(());
    }
    let what = format!("foreign key constraint \"{constraint}\" cannot be implemented");
    let detail = format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        own.name, other.name, own.kind, other.kind
    );
    Err(Error::new(DATATYPE_MISMATCH, what).with_detail(detail))
}

/// Removes the table's name from its columns in an expression, because the table may be renamed.
pub(super) fn without_table(mut expr: Expr, def: &TableDef) -> Expr {
    let _ = visit_expressions_mut(&mut expr, |expr| {
        let Expr::CompoundIdentifier(names) = expr else { return ControlFlow::<()>::Continue(()) };
        let is_own = match names.as_slice() {
            [table, _] => ident(table) == def.name,
            [schema, table, _] => ident(schema) == def.schema && ident(table) == def.name,
            _ => false,
        };
        if let Some(column) = names.last().filter(|_| is_own).cloned() {
            *expr = Expr::Identifier(column);
        }
        ControlFlow::Continue(())
    });
    expr
}

pub(super) fn check_is_unique(parent: &TableDef, references: &[usize]) -> Result<()> {
    let same = |columns: &[KeyColumn]| {
        columns.len() == references.len() && columns.iter().all(|key| references.contains(&key.column))
    };
    if same(&parent.primary_key) || parent.indexes.iter().any(|index| index.unique && same(&index.columns)) {
        return Ok(());
    }
    let what =
        format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name);
    Err(Error::new(INVALID_FOREIGN_KEY, what))
}

/// Returns the position of a column.
pub(super) fn column_of(def: &TableDef, name: &Ident) -> Result<usize> {
    let name = ident(name);
    def.column(&name).ok_or_else(|| {
        let what = format!("column \"{name}\" of relation \"{}\" does not exist", def.name);
        Error::new(UNDEFINED_COLUMN, what)
    })
}

fn action(action: Option<ReferentialAction>) -> Referential {
    match action {
        Some(ReferentialAction::Cascade) => Referential::Cascade,
        Some(ReferentialAction::SetNull) => Referential::SetNull,
        Some(ReferentialAction::SetDefault) => Referential::SetDefault,
        Some(ReferentialAction::Restrict) => Referential::Restrict,
        Some(ReferentialAction::NoAction) | None => Referential::NoAction,
    }
}
