//! ON CONFLICT.

use cairn_table::Table;
use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Expr, ObjectNamePart, OnConflict, OnConflictAction,
};

use super::Binder;
use super::identity::may_update;
use super::row::default_of;
use super::source::column_of;
use crate::error::Error;
use crate::expr::{Failure, Node, Scope};
use crate::sqlstate::{DUPLICATE_COLUMN, INVALID_COLUMN_REFERENCE, SYNTAX_ERROR, UNDEFINED_OBJECT};
use crate::syntax::{ident, last_name};

type Result<T, E = Failure> = std::result::Result<T, E>;

/// The action on a conflict with an existing row.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// The keys that may conflict: the primary key (`None`) or an index.
    pub arbiters: Vec<Option<usize>>,
    /// `None` for DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

#[derive(Debug)]
pub(crate) struct ConflictUpdate {
    pub sets: Vec<(usize, Node)>,
    pub condition: Option<Node>,
}

impl Conflict {
    pub fn plan(
        on: &OnConflict,
        table: &Table,
        alias: Option<&str>,
        binder: &mut Binder<'_>,
    ) -> Result<Conflict> {
        let arbiters = arbiters(on.conflict_target.as_ref(), table)?;
        let update = match &on.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(_) if on.conflict_target.is_none() => {
                let what = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(Error::new(SYNTAX_ERROR, what).into());
            }
            OnConflictAction::DoUpdate(update) => {
                let scope = Scope::of_table(table, alias).with_excluded(table);
                let sets = sets(&update.assignments, table, &scope, binder)?;
                let condition = match &update.selection {
                    Some(expr) => Some(binder.compiler(&scope).condition(expr)?),
                    None => None,
                };
                Some(ConflictUpdate { sets, condition })
            }
        };
        Ok(Conflict { arbiters, update })
    }
}

fn arbiters(target: Option<&ConflictTarget>, table: &Table) -> Result<Vec<Option<usize>>> {
    let def = table.def();
    let unique = def.indexes.iter().enumerate().filter(|(_, index)| index.unique);
    match target {
        None => {
            let own = (!def.primary_key.is_empty()).then_some(None);
            Ok(own.into_iter().chain(unique.map(|(at, _)| Some(at))).collect())
        }
        Some(ConflictTarget::Columns(names)) => {
            let mut wanted =
                names.iter().map(|name| column_of(table, name)).collect::<Result<Vec<_>, Error>>()?;
            wanted.sort_unstable();
            wanted.dedup();
            let same = |columns: &[cairn_table::schema::KeyColumn]| {
                let mut columns: Vec<usize> = columns.iter().map(|key| key.column).collect();
                columns.sort_unstable();
                columns == wanted
            };
            if same(&def.primary_key) && !wanted.is_empty() {
                return Ok(vec![None]);
            }
            let found = unique.clone().find(|(_, index)| same(&index.columns)).map(|(at, _)| vec![Some(at)]);
            found.ok_or_else(|| {
                let what =
                    "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                Error::new(INVALID_COLUMN_REFERENCE, what).into()
            })
        }
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = last_name(name);
            if def.primary_key_name.as_ref() == Some(&name) {
                return Ok(vec![None]);
            }
            let found = unique.clone().find(|(_, index)| index.name == name).map(|(at, _)| vec![Some(at)]);
            found.ok_or_else(|| {
                let what = format!("constraint \"{name}\" for table \"{}\" does not exist", def.name);
                Error::new(UNDEFINED_OBJECT, what).into()
            })
        }
    }
}

/// Returns the assignments of SET: columns and their new values.
pub(crate) fn sets(
    assignments: &[Assignment],
    table: &Table,
    scope: &Scope,
    binder: &mut Binder<'_>,
) -> Result<Vec<(usize, Node)>> {
    let mut sets: Vec<(usize, Node)> = Vec::with_capacity(assignments.len());
    let mut set = |name: &sqlparser::ast::ObjectName, value: &Expr| -> Result<()> {
        let Some(ObjectNamePart::Identifier(last)) = name.0.last() else { return Err(Failure::Unknown) };
        let at = column_of(table, last)?;
        let Some(column) = table.def().columns.get(at) else { return Err(Failure::Unknown) };
        if sets.iter().any(|(other, _)| *other == at) {
            let what = format!("multiple assignments to same column \"{}\"", column.name);
            return Err(Error::new(DUPLICATE_COLUMN, what).into());
        }
        let node = match value {
            Expr::Identifier(name) if is_default(name) => default_of(column)?,
            value => {
                may_update(column)?;
                binder.compiler(scope).assignment(value, &column.name, &column.kind)?
            }
        };
        sets.push((at, node));
        Ok(())
    };
    for assignment in assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => set(name, value)?,
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                names.iter().zip(values).try_for_each(|(name, value)| set(name, value))?;
            }
            _ => return Err(Failure::Unknown),
        }
    }
    Ok(sets)
}

/// Whether an identifier is the keyword DEFAULT in place of a value.
pub(crate) fn is_default(name: &sqlparser::ast::Ident) -> bool {
    name.quote_style.is_none() && ident(name) == "default"
}
