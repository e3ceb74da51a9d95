//! Statements that change rows, with their WITH clause.

use sqlparser::ast::{SetExpr, Statement, With};

/// Returns the INSERT, UPDATE or DELETE of a statement, and the WITH before it; `None` for other
/// statements.
pub(crate) fn change_of(tree: &Statement) -> Option<(&Statement, Option<&With>)> {
    match tree {
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => Some((tree, None)),
        Statement::Query(query) => match &*query.body {
            SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => {
                Some((change, query.with.as_ref()))
            }
            _ => None,
        },
        _ => None,
    }
}
