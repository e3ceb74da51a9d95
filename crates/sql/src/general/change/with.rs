//! WITH before INSERT, UPDATE and DELETE: it moves to the query that finds the rows.

use sqlparser::ast::{Insert, ObjectNamePart, SetExpr, TableFactor, With};

use crate::error::{Error, Result};
use crate::syntax::ident;

/// Checks that no query of a WITH changes rows.
///
/// Errors: 0A000.
pub(super) fn only_reads(with: &With) -> Result<()> {
    let changes = |body: &SetExpr| {
        matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
    };
    match with.cte_tables.iter().any(|cte| changes(&cte.query.body)) {
        true => Err(Error::unsupported("a statement that changes rows in WITH")),
        false => Ok(()),
    }
}

/// Moves the WITH of an INSERT to its query, before the query's own WITH.
pub(super) fn inserted(insert: &Insert, with: &With) -> Insert {
    let mut insert = insert.clone();
    if let Some(source) = &mut insert.source {
        source.with = Some(match source.with.take() {
            None => with.clone(),
            Some(own) => {
                let mut both = with.clone();
                both.recursive |= own.recursive;
                both.cte_tables.extend(own.cte_tables);
                both
            }
        });
    }
    insert
}

/// Checks that no WITH query has the name of the target table. Otherwise the meaning of the name
/// would depend on its position in the statement.
///
/// Errors: 0A000.
pub(super) fn leaves_name(with: Option<&With>, target: &TableFactor) -> Result<()> {
    let TableFactor::Table { name, .. } = target else { return Ok(()) };
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return Ok(()) };
    let name = ident(name);
    let mut names = with.into_iter().flat_map(|with| &with.cte_tables).map(|cte| ident(&cte.alias.name));
    match names.any(|other| other == name) {
        true => Err(Error::unsupported(format_args!(
            "a WITH query \"{name}\" beside a change of the table \"{name}\""
        ))),
        false => Ok(()),
    }
}
