//! Explicit casts, and conversions to a common type.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, CaseWhen, Expr};

use super::constant::fold;
use super::{Compiler, Failure, Result, Typed, converted};
use crate::datum::{Datum, parse_decimal};
use crate::expr::operator_types::common;
use crate::expr::{Comparison, Node};
use crate::syntax::column_type;

impl Compiler<'_> {
    pub(super) fn cast(&mut self, expr: &Expr, data_type: &ast::DataType) -> Result<Typed> {
        if matches!(data_type, ast::DataType::Regclass | ast::DataType::Custom(..) | ast::DataType::Array(_))
        {
            return Err(Failure::Unknown);
        }
        let typed = self.compile(expr)?;
        let to = match open_numeric(data_type) {
            true => numeric_of(&typed),
            false => column_type(data_type)?,
        };
        if typed.kind.is_none() {
            if let Node::Param(_) = typed.node {
                let node = self.coerce_unbounded(typed, &to)?;
                let node = if to.length.is_some() || to.decimal.is_some() {
                    Node::Cast { operand: Box::new(node), to: to.clone() }
                } else {
                    node
                };
                return Ok(Typed::new(node, to));
            }
            let text = self.coerce(typed, &Type::Text.into())?;
            return Ok(Typed::new(fold(Node::Cast { operand: Box::new(text.node), to: to.clone() }), to));
        }
        let node = match &typed.kind {
            Some(from) => converted(typed.node, from, &to),
            None => typed.node,
        };
        Ok(Typed::new(node, to))
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Result<Typed> {
        let operand = operand.map(|operand| self.compile(operand)).transpose()?;
        if operand.as_ref().is_some_and(|operand| operand.node.is_volatile()) {
            return Err(Failure::Unknown);
        }
        let (mut whens, mut results) = (Vec::new(), Vec::new());
        for CaseWhen { condition, result } in conditions {
            whens.push(match &operand {
                None => self.boolean(condition, "CASE/WHEN")?,
                Some(operand) => {
                    let condition = self.compile(condition)?;
                    self.comparison(Comparison::Equal, "=", operand.clone(), condition)?.node
                }
            });
            results.push(self.compile(result)?);
        }
        if let Some(otherwise) = otherwise {
            results.push(self.compile(otherwise)?);
        }
        let (mut results, kind) = self.same_type(results)?;
        let otherwise = if results.len() > whens.len() { results.pop().map(Box::new) } else { None };
        let whens = whens.into_iter().zip(results).collect();
        Ok(Typed { node: Node::Case { whens, otherwise }, kind })
    }

    /// Converts several expressions to their common type.
    pub(super) fn same_type(&mut self, all: Vec<Typed>) -> Result<(Vec<Node>, Option<ColumnType>)> {
        let mut kind: Option<ColumnType> = None;
        for typed in &all {
            kind = match (kind, &typed.kind) {
                (None, other) => other.clone(),
                (some, None) => some,
                (Some(a), Some(b)) => Some(common(&a, b).ok_or(Failure::Unknown)?),
            };
        }
        let Some(kind) = kind else {
            let text: ColumnType = Type::Text.into();
            let nodes =
                all.into_iter().map(|typed| Ok(self.coerce(typed, &text)?.node)).collect::<Result<_>>()?;
            return Ok((nodes, Some(text)));
        };
        let nodes =
            all.into_iter().map(|typed| Ok(self.coerce(typed, &kind)?.node)).collect::<Result<_>>()?;
        Ok((nodes, Some(kind)))
    }
}

/// Whether a type is numeric without precision and scale.
fn open_numeric(kind: &ast::DataType) -> bool {
    use ast::{DataType, ExactNumberInfo};
    matches!(
        kind,
        DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None)
    )
}

/// Returns the numeric type with the scale of a value: integers have none, literals the scale as
/// written. Other values get ten digits.
fn numeric_of(typed: &Typed) -> ColumnType {
    const DEFAULT_SCALE: u8 = 10;
    let scale = match (&typed.kind, &typed.node) {
        (Some(kind), _) if matches!(kind.kind, Type::SmallInt | Type::Int | Type::BigInt) => Some(0),
        (Some(kind), _) if kind.kind == Type::Decimal => return kind.clone(),
        (None, Node::Const(Datum::Text(text))) => parse_decimal(text.trim()).map(|(_, scale)| scale),
        _ => None,
    };
    ColumnType::decimal(38, scale.unwrap_or(DEFAULT_SCALE))
}
