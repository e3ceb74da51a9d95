//! Compiles predicates.

use cairn_table::row::Type;
use sqlparser::ast::{self, Expr, Value};

use super::{Compiler, Failure, Result, Typed};
use crate::expr::{Comparison, Node};

impl Compiler<'_> {
    pub(super) fn is_null(&mut self, operand: &Expr, negated: bool) -> Result<Typed> {
        let operand = self.output(operand)?.0;
        Ok(Typed::new(Node::IsNull { operand: Box::new(operand), negated }, Type::Boolean.into()))
    }

    pub(super) fn is_truth(&mut self, operand: &Expr, truth: bool, negated: bool) -> Result<Typed> {
        let operand = Box::new(self.boolean(operand, "IS TRUE")?);
        Ok(Typed::new(Node::IsTruth { operand, truth, negated }, Type::Boolean.into()))
    }

    pub(super) fn distinct(&mut self, left: &Expr, right: &Expr, negated: bool) -> Result<Typed> {
        let (left, right) = (self.compile(left)?, self.compile(right)?);
        let (left, right) = self.unify(left, right, "=")?;
        let pair = Box::new([left.node, right.node]);
        Ok(Typed::new(Node::Distinct { pair, negated }, Type::Boolean.into()))
    }

    pub(super) fn between(&mut self, expr: &Expr, negated: bool, low: &Expr, high: &Expr) -> Result<Typed> {
        let value = self.compile(expr)?;
        if value.node.is_volatile() {
            return Err(Failure::Unknown);
        }
        let (low, high) = (self.compile(low)?, self.compile(high)?);
        let above = self.comparison(Comparison::GreaterOrEqual, ">=", value.clone(), low)?.node;
        let below = self.comparison(Comparison::LessOrEqual, "<=", value, high)?.node;
        let both = Node::And(vec![above, below]);
        Ok(Typed::new(if negated { Node::Not(Box::new(both)) } else { both }, Type::Boolean.into()))
    }

    pub(super) fn in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool) -> Result<Typed> {
        let mut operand = self.compile(expr)?;
        let mut nodes = Vec::with_capacity(list.len());
        for item in list {
            let item = self.compile(item)?;
            let before = operand.kind.clone();
            let (left, right) = self.unify(operand, item, "=")?;
            if let (Some(before), Some(now)) = (&before, &left.kind)
                && before.kind != now.kind
            {
                // This item gives the operand another type than the earlier items did, which are
                // converted to it.
                let earlier = std::mem::take(&mut nodes).into_iter();
                let typed = earlier.map(|node| self.coerced(Typed::new(node, before.clone()), now));
                nodes = typed.collect::<Result<_>>()?;
            } else if before.is_none() && left.kind.is_some() && !nodes.is_empty() {
                return Err(Failure::Unknown);
            }
            operand = left;
            nodes.push(right.node);
        }
        let node = Node::In { operand: Box::new(operand.node), list: nodes, negated };
        Ok(Typed::new(node, Type::Boolean.into()))
    }

    pub(super) fn like(
        &mut self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&ast::ValueWithSpan>,
        insensitive: bool,
        negated: bool,
    ) -> Result<Typed> {
        let escape = match escape.map(|value| &value.value) {
            None => Some('\\'),
            Some(Value::SingleQuotedString(text)) => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (first, None) => first,
                    _ => return Err(Failure::Unknown),
                }
            }
            Some(_) => return Err(Failure::Unknown),
        };
        let (text, pattern) = (self.compile(expr)?, self.compile(pattern)?);
        let fits = |typed: &Typed| typed.kind.as_ref().is_none_or(|kind| kind.kind == Type::Text);
        if !fits(&text) || !fits(&pattern) {
            return Err(Failure::Unknown);
        }
        let kind = Type::Text.into();
        let pair = Box::new([self.coerce(text, &kind)?.node, self.coerce(pattern, &kind)?.node]);
        Ok(Typed::new(Node::Like { pair, escape, insensitive, negated }, Type::Boolean.into()))
    }
}
