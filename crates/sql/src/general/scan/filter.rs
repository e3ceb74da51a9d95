//! Filter pushdown: which filters the bounds of a tree scan enforce, and which ones select rows
//! within leaves.

use cairn_table::Table;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Cast, InList, Placeholder};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, TableProviderFilterPushDown};

use crate::batch::kind_of;
use crate::datum::Datum;
use crate::direct::{Access, Conditions, Wanted, keeps_values};
use crate::expr::{Comparison, Node};
use crate::general::tree::values::datum;

/// Translates a filter into a condition of the direct path; `None` where it cannot be expressed.
pub(crate) fn condition(filter: &Expr, table: &Table) -> Option<Node> {
    match filter {
        // A filter that was accepted earlier and that the optimizer has since folded to a constant.
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
                (left, right) => match (Operand::of(left, table), Operand::of(right, table)) {
                    (Some(column), None) => column.compared(comparison, right),
                    (None, Some(column)) => column.compared(comparison.flipped(), left),
                    _ => None,
                },
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let column = Operand::of(expr, table)?;
            let low = column.compared(Comparison::GreaterOrEqual, low)?;
            let high = column.compared(Comparison::LessOrEqual, high)?;
            Some(Node::And(vec![low, high]))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let column = Operand::of(expr, table)?;
            let list = list.iter().map(|item| column.value(item)).collect::<Option<Vec<_>>>()?;
            Some(Node::In { operand: Box::new(column.node), list, negated: false })
        }
        _ => None,
    }
}

/// Returns the operands of a chain of ORs, left to right.
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

/// Turns a disjunction of equalities on one column back into an IN list: the optimizer expands
/// short `IN` lists into disjunctions. `None` for other conditions.
pub(crate) fn one_of(equalities: impl Iterator<Item = Option<Node>>) -> Option<Node> {
    let (mut operand, mut list): (Option<Node>, _) = (None, Vec::new());
    for equality in equalities {
        let Some(Node::Compare(Comparison::Equal, pair)) = equality else { return None };
        let [column, value] = *pair;
        if !matches!(value, Node::Const(_)) {
            return None;
        }
        match &operand {
            None if is_column(&column) => operand = Some(column),
            Some(known) if are_same(known, &column) => {}
            _ => return None,
        }
        list.push(value);
    }
    Some(Node::In { operand: Box::new(operand?), list, negated: false })
}

/// Whether the node is a column, possibly under casts.
fn is_column(node: &Node) -> bool {
    match node {
        Node::Slot { .. } => true,
        Node::Cast { operand, .. } => is_column(operand),
        _ => false,
    }
}

/// Whether both are the same column with the same casts.
fn are_same(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Slot { slot, .. }, Node::Slot { slot: other, .. }) => slot == other,
        (Node::Cast { operand, to }, Node::Cast { operand: other, to: other_to }) => {
            to == other_to && are_same(operand, other)
        }
        _ => false,
    }
}

/// Returns the comparison for an operator that scans support.
pub(crate) fn comparison_of(operator: Operator) -> Option<Comparison> {
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

/// A column to be compared with values of its type, or of a wider type that it is cast to.
struct Operand {
    node: Node,
    kind: ColumnType,
}

impl Operand {
    fn of(expr: &Expr, table: &Table) -> Option<Operand> {
        match expr {
            Expr::Column(column) => {
                let kind = &table.def().columns.get(table.def().column(&column.name)?)?.kind;
                Some(Operand { node: slot(&column.name, table)?, kind: kind.clone() })
            }
            Expr::Cast(Cast { expr, field }) => {
                let Operand { node, kind } = Operand::of(expr, table)?;
                let to = kind_of(field);
                keeps_values(&kind, &to).then(|| Operand {
                    node: Node::Cast { operand: Box::new(node), to: to.clone() },
                    kind: to,
                })
            }
            _ => None,
        }
    }

    fn value(&self, expr: &Expr) -> Option<Node> {
        match expr {
            Expr::Literal(value, _) => datum(value, &self.kind).map(Node::Const),
            // It is replaced by a literal of the column's type before rows are read.
            Expr::Placeholder(Placeholder { field: Some(field), .. })
                if *field.data_type() == crate::batch::data_type(&self.kind) =>
            {
                Some(Node::Const(Datum::Null))
            }
            _ => None,
        }
    }

    fn compared(&self, comparison: Comparison, value: &Expr) -> Option<Node> {
        Some(Node::Compare(comparison, Box::new([self.node.clone(), self.value(value)?])))
    }
}

/// Decides for each filter how a scan handles it. A filter that the bounds of the best tree enforce
/// is exact. Other filters on one or two columns are inexact: they select rows of a leaf before its
/// other columns are read, and the query applies them again. That costs little, and tells the
/// optimizer that not all rows are returned.
pub(crate) fn taken(table: &Arc<Table>, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
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
