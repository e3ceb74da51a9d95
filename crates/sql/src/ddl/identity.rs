//! Identity columns and their sequences in ALTER statements.

use cairn_table::Table;
use cairn_table::row::Type;
use cairn_table::schema::{ColumnDef, TableDef};
use cairn_vfs::sync::Arc;
use sqlparser::ast::AlterColumnOperation;

use super::columns::check_identity_type;
use crate::error::{Error, Result};
use crate::runtime::sequence::{Name, all as all_sequences, bounds_of, identity_column, identity_sequence};
use crate::session::Session;
use crate::sqlstate::{
    DEPENDENT_OBJECTS_STILL_EXIST, INVALID_PARAMETER_VALUE, OBJECT_NOT_IN_PREREQUISITE_STATE, SYNTAX_ERROR,
};
use crate::syntax::{IdentityChange, column_type};

/// Returns the form in which a sequence stores its owning column.
pub(super) fn owner(table: &TableDef, column: &str) -> String {
    format!("{}.{column}", table.name)
}

/// Checks that an operation is allowed on an identity column.
///
/// Errors: 42601 for its default and NULL, 22023 for a type that is not an integer.
pub(super) fn check_identity(relation: &str, column: &ColumnDef, op: &AlterColumnOperation) -> Result<()> {
    if column.identity.is_none() {
        return Ok(());
    }
    let is_one = || {
        let what = format!("column \"{}\" of relation \"{relation}\" is an identity column", column.name);
        Error::new(SYNTAX_ERROR, what)
    };
    match op {
        AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropNotNull => Err(is_one()),
        AlterColumnOperation::DropDefault => {
            Err(is_one().with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."))
        }
        AlterColumnOperation::SetDataType { data_type, .. } => check_identity_type(&column_type(data_type)?),
        AlterColumnOperation::SetNotNull | AlterColumnOperation::AddGenerated { .. } => Ok(()),
    }
}

impl Session {
    /// Runs ADD GENERATED, SET GENERATED and DROP IDENTITY.
    ///
    /// Errors: 55000 for a column that is not an identity column, or is one already; those of
    /// [`super::constraints::Constraints::identity`].
    pub(super) fn alter_identity(
        &mut self,
        table: &Arc<Table>,
        at: usize,
        change: IdentityChange<'_>,
    ) -> Result<Arc<Table>> {
        let mut def = table.def().clone();
        let Some(mut column) = def.columns.get(at).cloned() else { return Ok(Arc::clone(table)) };
        let state = |what: &str| {
            let what = format!("column \"{}\" of relation \"{}\" {what}", column.name, table.def().name);
            Error::new(OBJECT_NOT_IN_PREREQUISITE_STATE, what)
        };
        let (mut made, mut gone) = (Vec::new(), None);
        match change {
            IdentityChange::Add(..) if column.nullable => {
                return Err(state("must be declared NOT NULL before identity can be added"));
            }
            IdentityChange::Add(..) if column.identity.is_some() => {
                return Err(state("is already an identity column"));
            }
            IdentityChange::Add(..) if column.default.is_some() => {
                return Err(state("already has a default value"));
            }
            IdentityChange::Add(identity, options) => {
                (def, ()) = self.with_more(def, Some(table.id()), |constraints| {
                    constraints.identity(&mut column, identity, options, &mut made)
                })?;
            }
            IdentityChange::Drop { may_miss: true } if column.identity.is_none() => {
                let error = state("is not an identity column");
                self.notice("00000", format!("{error}, skipping"));
                return Ok(Arc::clone(table));
            }
            _ if column.identity.is_none() => return Err(state("is not an identity column")),
            IdentityChange::Set(identity) => column.identity = Some(identity),
            IdentityChange::Drop { .. } => {
                gone = identity_sequence(&def, &column);
                column.identity = None;
                column.default = None;
            }
        }
        if let Some(place) = def.columns.get_mut(at) {
            *place = column;
        }
        let new = self.redefine(table, def)?;
        self.make_sequences(made)?;
        if let Some(name) = gone {
            let shared = Arc::clone(&self.shared);
            let (transaction, context) = self.parts()?;
            context.sequences.remove(&shared, transaction, &name)?;
        }
        Ok(new)
    }

    /// Adjusts the bounds of an identity's sequence after its column has changed its type. Explicit
    /// bounds stay.
    ///
    /// Errors: 22023 if its start or its current value is outside the new bounds.
    pub(super) fn retype_sequence(&mut self, name: &Name, old: Type, new: Type) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let (transaction, context) = self.parts()?;
        context.sequences.alter(&shared, transaction, name, |sequence| {
            let (old, new) = (bounds_of(old), bounds_of(new));
            let minimum = if sequence.minimum == old.0 { new.0 } else { sequence.minimum };
            let maximum = if sequence.maximum == old.1 { new.1 } else { sequence.maximum };
            for (what, value) in [("START", sequence.start), ("RESTART", sequence.place())] {
                let what = if value > maximum {
                    format!("{what} value ({value}) cannot be greater than MAXVALUE ({maximum})")
                } else if value < minimum {
                    format!("{what} value ({value}) cannot be less than MINVALUE ({minimum})")
                } else {
                    continue;
                };
                return Err(Error::new(INVALID_PARAMETER_VALUE, what));
            }
            sequence.set_bounds(minimum, maximum);
            Ok(())
        })
    }

    /// Checks that no identity column uses a sequence that is to be dropped.
    ///
    /// Errors: 2BP01.
    pub(super) fn check_is_unused(&mut self, name: &Name) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let Some((table, column)) = identity_column(&catalog, name) else { return Ok(()) };
        let column = format!("column {} of table {}", column.name, table.def().name);
        let what = format!("cannot drop sequence {} because {column} requires it", name.1);
        let hint = format!("You can drop {column} instead.");
        Err(Error::new(DEPENDENT_OBJECTS_STILL_EXIST, what).with_hint(hint))
    }

    /// Checks that a sequence belongs to no identity column, so that its owner may change.
    ///
    /// Errors: 0A000.
    pub(super) fn check_is_free(&mut self, name: &Name) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let Some((table, _)) = identity_column(&catalog, name) else { return Ok(()) };
        let detail = format!("Sequence \"{}\" is linked to table \"{}\".", name.1, table.def().name);
        Err(Error::unsupported("changing the ownership of an identity sequence").with_detail(detail))
    }

    /// Updates the owners of sequences after a table or its columns have been renamed. Call it once
    /// this transaction holds the schema lock, so that it does not wait for sessions that draw
    /// values.
    ///
    /// Errors: those of the table of sequences.
    pub(super) fn move_sequences(&mut self, old: &TableDef, new: &TableDef) -> Result<()> {
        let mut moves = Vec::new();
        for (name, sequence) in all_sequences(self.transaction()?.view())? {
            let columns = old.columns.iter().zip(&new.columns);
            let Some(of) = sequence.owner.filter(|_| name.0 == old.schema) else { continue };
            let column = columns.into_iter().find(|(column, _)| owner(old, &column.name) == of);
            let now = column.map(|(_, column)| owner(new, &column.name));
            moves.extend(now.filter(|now| *now != of).map(|now| (name, now)));
        }
        let shared = Arc::clone(&self.shared);
        for (name, owner) in moves {
            let (transaction, context) = self.parts()?;
            context.sequences.alter(&shared, transaction, &name, |sequence| {
                sequence.owner = Some(owner);
                Ok(())
            })?;
        }
        Ok(())
    }
}
