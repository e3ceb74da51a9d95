//! Which filters a tree sees to, and which ones choose rows of leaves.

use cairn_table::Table;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, Placeholder};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, TableProviderFilterPushDown};

use super::value::datum;
use crate::datum::Datum;
use crate::direct::{Access, Conditions, Wanted};
use crate::expr::{Comparison, Node};

/// A filter as a condition of the direct path; `None` for those that it has no words for.
pub(super) fn condition(filter: &Expr, table: &Table) -> Option<Node> {
    match filter {
        // What a filter has become that was taken before the optimizer knew better.
        Expr::Literal(ScalarValue::Boolean(value), _) => {
            Some(Node::Const(value.map_or(Datum::Null, Datum::Boolean)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            Some(Node::And(vec![condition(left, table)?, condition(right, table)?]))
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            one_of(alternatives(filter).into_iter().map(|part| condition(part, table)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let comparison = comparison_of(*op)?;
            match (&**left, &**right) {
                (Expr::Column(left), Expr::Column(right)) => Some(Node::Compare(
                    comparison,
                    Box::new([slot(&left.name, table)?, slot(&right.name, table)?]),
                )),
                (Expr::Column(column), value) => compared(comparison, &column.name, value, table),
                (value, Expr::Column(column)) => compared(comparison.flipped(), &column.name, value, table),
                _ => None,
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let Expr::Column(column) = &**expr else { return None };
            let low = compared(Comparison::GreaterOrEqual, &column.name, low, table)?;
            let high = compared(Comparison::LessOrEqual, &column.name, high, table)?;
            Some(Node::And(vec![low, high]))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let Expr::Column(column) = &**expr else { return None };
            let operand = slot(&column.name, table)?;
            let list =
                list.iter().map(|item| value(item, &column.name, table)).collect::<Option<Vec<_>>>()?;
            Some(Node::In { operand: Box::new(operand), list, negated: false })
        }
        _ => None,
    }
}

/// The parts of a disjunction, the first one first.
fn alternatives(filter: &Expr) -> Vec<&Expr> {
    let (mut left, mut parts) = (vec![filter], Vec::new());
    while let Some(filter) = left.pop() {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left: one, op: Operator::Or, right: other }) => {
                left.extend([&**other, &**one]);
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Equalities of one column, of which one has to hold, as a list of its values: the optimizer writes short lists of `IN` so. `None` for other conditions.
pub(super) fn one_of(equalities: impl Iterator<Item = Option<Node>>) -> Option<Node> {
    let (mut operand, mut list): (Option<Node>, _) = (None, Vec::new());
    for equality in equalities {
        let Some(Node::Compare(Comparison::Equal, pair)) = equality else { return None };
        let [column, value] = *pair;
        if !matches!(value, Node::Const(_)) {
            return None;
        }
        match (&operand, &column) {
            (None, Node::Slot { .. }) => operand = Some(column),
            (Some(Node::Slot { slot: known, .. }), Node::Slot { slot, .. }) if known == slot => {}
            _ => return None,
        }
        list.push(value);
    }
    Some(Node::In { operand: Box::new(operand?), list, negated: false })
}

/// The comparisons that scans know.
pub(super) fn comparison_of(operator: Operator) -> Option<Comparison> {
    Some(match operator {
        Operator::Eq => Comparison::Equal,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn slot(name: &str, table: &Table) -> Option<Node> {
    let slot = table.def().column(name)?;
    let kind = &table.def().columns.get(slot)?.kind;
    Some(Node::Slot { slot, scale: kind.decimal.map_or(0, |(_, scale)| scale) })
}

fn value(expr: &Expr, column: &str, table: &Table) -> Option<Node> {
    let kind = &table.def().columns.get(table.def().column(column)?)?.kind;
    match expr {
        Expr::Literal(value, _) => datum(value, kind).map(Node::Const),
        // It will be a literal of the column's type when there are rows to read.
        Expr::Placeholder(Placeholder { field: Some(field), .. })
            if *field.data_type() == crate::batch::data_type(kind) =>
        {
            Some(Node::Const(Datum::Null))
        }
        _ => None,
    }
}

fn compared(comparison: Comparison, column: &str, expr: &Expr, table: &Table) -> Option<Node> {
    let pair = Box::new([slot(column, table)?, value(expr, column, table)?]);
    Some(Node::Compare(comparison, pair))
}

/// What a scan does with each of some filters. What the best tree for them all sees to is done. Of others those that are on one column, or on two, choose rows of leaves before their other columns are read; the query filters
/// what is left once more, which costs little, and by which the optimizer knows that not all rows come.
pub(super) fn taken(table: &Arc<Table>, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
    let conditions: Vec<Option<Node>> = filters.iter().map(|filter| condition(filter, table)).collect();
    let conjuncts: Vec<Node> = conditions.iter().flatten().cloned().flat_map(Node::conjuncts).collect();
    let (access, _) = Access::plan(table, conjuncts, &Wanted::default());
    let residual = access.residual.map(Node::conjuncts).unwrap_or_default();
    let mut columns_left = Vec::new();
    residual.iter().for_each(|node| columns_left.push(format!("{node:?}")));
    let taken = |condition: &Option<Node>| {
        let Some(node) = condition else { return TableProviderFilterPushDown::Unsupported };
        if node.clone().conjuncts().iter().all(|part| !columns_left.contains(&format!("{part:?}"))) {
            TableProviderFilterPushDown::Exact
        } else if Conditions::of(Some(node), table).is_some() {
            TableProviderFilterPushDown::Inexact
        } else {
            TableProviderFilterPushDown::Unsupported
        }
    };
    conditions.iter().map(taken).collect()
}
