//! Comparisons and three-valued logic.

use std::cmp::Ordering;

use super::operator::Comparison;
use super::{Env, Node};
use crate::datum::{Datum, DatumRef, pow10};
use crate::error::Result;

/// Compares two values of one type, neither of them NULL. NaN sorts after every number.
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
        // A number that overflows at the larger scale is farther from zero than any that does not.
        None => a.cmp(&0),
    }
}

impl Comparison {
    /// Compares two values; `None` if one is NULL.
    pub fn of(self, left: DatumRef<'_>, right: DatumRef<'_>) -> Option<bool> {
        compare(left, right).map(|order| self.holds(order))
    }

    /// Whether the comparison holds for this order.
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

/// Whether two values are distinct. Two NULLs are not.
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

/// Whether a value is in a list. A node that evaluates to a list stands for its items.
pub(super) fn is_in<'a>(operand: &'a Node, list: &'a [Node], env: &Env<'a>) -> Result<Option<bool>> {
    let operand = operand.eval(env)?;
    let mut result = Some(false);
    for node in list {
        let value = node.eval(env)?;
        let found = match value.get() {
            DatumRef::List(items) => is_among(operand.get(), items),
            value => Comparison::Equal.of(operand.get(), value),
        };
        match found {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// Whether a value is an item of a list. For an empty list, that is false even for NULL.
fn is_among(value: DatumRef<'_>, items: &[Datum]) -> Option<bool> {
    let mut result = Some(false);
    for item in items {
        match is_equal(value, item.borrow()) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => result = None,
        }
    }
    result
}

/// Whether two values are equal. Numbers may have different widths.
fn is_equal(left: DatumRef<'_>, right: DatumRef<'_>) -> Option<bool> {
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        return Some(left == right);
    }
    match (left, right) {
        (DatumRef::Decimal { unscaled, scale }, other) | (other, DatumRef::Decimal { unscaled, scale }) => {
            match whole(other) {
                Some(other) => Some(compare_decimals(unscaled, scale, other.into(), 0).is_eq()),
                None => Comparison::Equal.of(left, right),
            }
        }
        _ => Comparison::Equal.of(left, right),
    }
}

/// Returns the value of an integer of any width.
fn whole(value: DatumRef<'_>) -> Option<i64> {
    match value {
        DatumRef::SmallInt(value) => Some(value.into()),
        DatumRef::Int(value) => Some(value.into()),
        DatumRef::BigInt(value) => Some(value),
        _ => None,
    }
}

/// Returns the values of nodes, with lists replaced by their items.
///
/// Errors: those of computing them.
pub(crate) fn values_of(list: &[Node], env: &Env<'_>) -> Result<Vec<Datum>> {
    let mut values = Vec::with_capacity(list.len());
    for node in list {
        let value = node.eval(env)?;
        match value.get() {
            DatumRef::List(items) => values.extend_from_slice(items),
            value => values.push(value.to_owned()),
        }
    }
    Ok(values)
}
