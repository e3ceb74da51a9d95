//! Comparisons and three-valued logic.

use std::cmp::Ordering;

use super::{Comparison, Env, Node};
use crate::datum::{DatumRef, pow10};
use crate::error::Result;

/// The order of two values of one type, neither of them NULL. Not-a-number is after every number.
pub(crate) fn compare(left: DatumRef<'_>, right: DatumRef<'_>) -> Option<Ordering> {
    if let (DatumRef::Decimal { unscaled: a, scale: m }, DatumRef::Decimal { unscaled: b, scale: n }) =
        (left, right)
    {
        return Some(compare_decimals(a, m, b, n));
    }
    if left.is_null() || right.is_null() {
        return None;
    }
    left.to_value().order(&right.to_value())
}

fn compare_decimals(a: i128, m: u8, b: i128, n: u8) -> Ordering {
    if m == n {
        return a.cmp(&b);
    }
    if m > n {
        return compare_decimals(b, n, a, m).reverse();
    }
    let unit = pow10((n - m).into());
    match unit.and_then(|unit| a.checked_mul(unit)) {
        Some(a) => a.cmp(&b),
        // What does not fit with more digits is farther from zero than anything that does.
        None => a.cmp(&0),
    }
}

impl Comparison {
    /// What it says of two values; `None` when one is NULL.
    pub fn of(self, left: DatumRef<'_>, right: DatumRef<'_>) -> Option<bool> {
        compare(left, right).map(|order| self.holds(order))
    }

    /// Whether it is true of two values in this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Two NULLs are not distinct.
pub(super) fn is_distinct(left: DatumRef<'_>, right: DatumRef<'_>) -> bool {
    match (left.is_null(), right.is_null()) {
        (true, true) => false,
        (false, false) => compare(left, right) != Some(Ordering::Equal),
        _ => true,
    }
}

pub(super) fn all<'a>(nodes: &'a [Node], env: &Env<'a>) -> Result<Option<bool>> {
    let mut result = Some(true);
    for node in nodes {
        match node.eval(env)?.truth() {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

pub(super) fn any<'a>(nodes: &'a [Node], env: &Env<'a>) -> Result<Option<bool>> {
    let mut result = Some(false);
    for node in nodes {
        match node.eval(env)?.truth() {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

pub(super) fn is_in<'a>(operand: &'a Node, list: &'a [Node], env: &Env<'a>) -> Result<Option<bool>> {
    let operand = operand.eval(env)?;
    if operand.is_null() {
        return Ok(None);
    }
    let mut result = Some(false);
    for node in list {
        match Comparison::Equal.of(operand.get(), node.eval(env)?.get()) {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}
