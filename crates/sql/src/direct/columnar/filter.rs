//! Conditions on one column, for all values of a block at once.
//!
//! A comparison of integers or decimals becomes an inclusive range of the column's values. That
//! takes two comparisons of integers per value, whatever the operator and the types were.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_table::{Block, ColumnBuf, ColumnValues};
use cairn_vfs::sync::Arc;

use super::chosen::Chosen;
use super::members::Members;
use crate::datum::{Datum, DatumRef, pow10};
use crate::error::Result;
use crate::expr::{Comparison, Env, Node, values_of};

/// A condition on a column whose other operand does not depend on the row.
#[derive(Debug)]
pub(super) struct Filter {
    pub column: usize,
    pub kind: ColumnType,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Compare(Comparison, Node),
    OneOf(Vec<Node>),
    Null { wanted: bool },
}

/// A condition whose values are known.
#[derive(Debug)]
pub(super) struct Bound {
    pub column: usize,
    check: Check,
}

#[derive(Debug)]
enum Check {
    /// Inside or outside of an inclusive range.
    Range {
        low: i128,
        high: i128,
        inside: bool,
    },
    /// Sorted, without duplicates.
    Numbers(Vec<i128>),
    Members {
        members: Arc<Members>,
        /// The least and the greatest member.
        range: Option<(i128, i128)>,
    },
    Bytes(Comparison, Vec<u8>),
    Texts(Vec<Vec<u8>>),
    Null {
        wanted: bool,
    },
}

/// A filter with its parameters bound.
#[derive(Debug)]
pub(super) enum Meaning {
    Check(Bound),
    /// No row meets it.
    Never,
    /// This path cannot evaluate it.
    Unknown,
}

/// Whether values of a type are integers in some unit.
pub(super) fn is_whole(kind: Type) -> bool {
    matches!(
        kind,
        Type::SmallInt | Type::Int | Type::BigInt | Type::Decimal | Type::Date | Type::Time | Type::Timestamp
    )
}

impl Filter {
    /// Returns the filter for a conjunct; `None` if it has another form.
    pub fn of(conjunct: &Node, kind_of: impl Fn(usize) -> Option<ColumnType>) -> Option<Filter> {
        let (column, test) = match conjunct {
            Node::Compare(comparison, pair) => {
                let [left, right] = &**pair;
                match (column_of(left, &kind_of), column_of(right, &kind_of)) {
                    (Some(column), None) if is_value(right) => {
                        (column, Test::Compare(*comparison, right.clone()))
                    }
                    (None, Some(column)) if is_value(left) => {
                        (column, Test::Compare(comparison.flipped(), left.clone()))
                    }
                    _ => return None,
                }
            }
            Node::In { operand, list, negated: false } if list.iter().all(is_value) => {
                (column_of(operand, &kind_of)?, Test::OneOf(list.clone()))
            }
            Node::IsNull { operand, negated } => match &**operand {
                Node::Slot { slot, .. } => (*slot, Test::Null { wanted: !negated }),
                _ => return None,
            },
            _ => return None,
        };
        let kind = kind_of(column)?;
        let is_known = is_whole(kind.kind) || matches!(kind.kind, Type::Text | Type::Blob);
        (is_known || matches!(test, Test::Null { .. })).then_some(Filter { column, kind, test })
    }

    /// Binds the parameters.
    ///
    /// Errors: those of computing the values.
    pub fn bind(&self, env: &Env<'_>) -> Result<Meaning> {
        let check = match &self.test {
            Test::Null { wanted } => Check::Null { wanted: *wanted },
            Test::Compare(comparison, value) => {
                let value = value.eval(env)?;
                match value.get() {
                    DatumRef::Null => return Ok(Meaning::Never),
                    DatumRef::Text(text) if self.kind.kind == Type::Text => {
                        Check::Bytes(*comparison, text.as_bytes().to_vec())
                    }
                    DatumRef::Blob(bytes) if self.kind.kind == Type::Blob => {
                        Check::Bytes(*comparison, bytes.to_vec())
                    }
                    value => match Place::of(value, &self.kind) {
                        Some(place) => match place.range(*comparison) {
                            Some(range) => range,
                            None => return Ok(Meaning::Never),
                        },
                        None => return Ok(Meaning::Unknown),
                    },
                }
            }
            Test::OneOf(list) => match self.list(&values_of(list, env)?) {
                Some(check) => check,
                None => return Ok(Meaning::Unknown),
            },
        };
        Ok(Meaning::Check(Bound { column: self.column, check }))
    }

    /// NULL in a list never makes the condition true.
    fn list(&self, values: &[Datum]) -> Option<Check> {
        let there = values.iter().filter(|value| !value.is_null());
        if matches!(self.kind.kind, Type::Text | Type::Blob) {
            let bytes = |value: &Datum| match (value, self.kind.kind) {
                (Datum::Text(text), Type::Text) => Some(text.as_bytes().to_vec()),
                (Datum::Blob(bytes), Type::Blob) => Some(bytes.clone()),
                _ => None,
            };
            let mut texts = there.map(bytes).collect::<Option<Vec<_>>>()?;
            texts.sort_unstable();
            texts.dedup();
            return Some(Check::Texts(texts));
        }
        let places = there.map(|value| Place::of(value.borrow(), &self.kind)).collect::<Option<Vec<_>>>()?;
        let mut numbers: Vec<i128> =
            places.iter().filter(|place| place.is_exact).map(|place| place.floor).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Some(Check::Numbers(numbers))
    }
}

/// Returns the column that one operand is. An integer column that is widened for the comparison
/// counts, because its values stay the same.
fn column_of(node: &Node, kind_of: &impl Fn(usize) -> Option<ColumnType>) -> Option<usize> {
    let is_integer = |kind: Type| matches!(kind, Type::SmallInt | Type::Int | Type::BigInt);
    match node {
        Node::Slot { slot, .. } => Some(*slot),
        Node::Cast { operand, to } => match &**operand {
            Node::Slot { slot, .. } => {
                let from = kind_of(*slot)?.kind;
                let widens = is_integer(from) && is_integer(to.kind) && from.width() <= to.kind.width();
                widens.then_some(*slot)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is independent of the row, and constant for the whole statement.
fn is_value(node: &Node) -> bool {
    node.is_free() && !node.is_volatile()
}

/// The position of a value among those of a column: at one of them, or between two.
#[derive(Debug, Clone, Copy)]
struct Place {
    floor: i128,
    is_exact: bool,
}

impl Place {
    /// `None` for values of other types.
    fn of(value: DatumRef<'_>, kind: &ColumnType) -> Option<Place> {
        let whole = |value: i64| DatumRef::Decimal { unscaled: value.into(), scale: 0 };
        let exact = |value: i64| Some(Place { floor: value.into(), is_exact: true });
        match (kind.kind, value) {
            (Type::SmallInt | Type::Int | Type::BigInt, DatumRef::SmallInt(value)) => exact(value.into()),
            (Type::SmallInt | Type::Int | Type::BigInt, DatumRef::Int(value)) => exact(value.into()),
            (Type::SmallInt | Type::Int | Type::BigInt, DatumRef::BigInt(value)) => exact(value),
            // Members of a list may be of another type than the column.
            (Type::Decimal, DatumRef::SmallInt(value)) => Place::of(whole(value.into()), kind),
            (Type::Decimal, DatumRef::Int(value)) => Place::of(whole(value.into()), kind),
            (Type::Decimal, DatumRef::BigInt(value)) => Place::of(whole(value), kind),
            (Type::Date, DatumRef::Date(value)) => exact(value.into()),
            (Type::Time, DatumRef::Time(value)) => exact(value),
            (Type::Timestamp, DatumRef::Timestamp(value)) => exact(value),
            (Type::Decimal, DatumRef::Decimal { unscaled, scale }) => {
                let own = kind.decimal.map(|(_, scale)| scale)?;
                if own >= scale {
                    let floor = unscaled.checked_mul(pow10((own - scale).into())?)?;
                    return Some(Place { floor, is_exact: true });
                }
                let unit = pow10((scale - own).into())?;
                let is_exact = unscaled.rem_euclid(unit) == 0;
                Some(Place { floor: unscaled.div_euclid(unit), is_exact })
            }
            _ => None,
        }
    }

    /// Returns the range of values for which the comparison holds; `None` if it is empty.
    fn range(self, comparison: Comparison) -> Option<Check> {
        let Place { floor, is_exact } = self;
        let (low, high, inside) = match comparison {
            Comparison::Equal if is_exact => (floor, floor, true),
            Comparison::Equal => return None,
            Comparison::NotEqual if is_exact => (floor, floor, false),
            Comparison::NotEqual => (i128::MIN, i128::MAX, true),
            Comparison::Less if is_exact => (i128::MIN, floor.checked_sub(1)?, true),
            Comparison::Less | Comparison::LessOrEqual => (i128::MIN, floor, true),
            Comparison::GreaterOrEqual if is_exact => (floor, i128::MAX, true),
            Comparison::Greater | Comparison::GreaterOrEqual => (floor.checked_add(1)?, i128::MAX, true),
        };
        Some(Check::Range { low, high, inside })
    }
}

impl Bound {
    /// Returns the condition that a column's value is one of these numbers.
    pub fn among(column: usize, members: Arc<Members>) -> Bound {
        // Computed once and not per block, because the bitmap of a set may begin and end with many
        // empty words.
        let range = members.range().map(|(low, high)| (low.into(), high.into()));
        Bound { column, check: Check::Members { members, range } }
    }

    /// Returns an inclusive range that contains all values that meet the condition, if one is
    /// known.
    fn range(&self) -> Option<(i128, i128)> {
        match &self.check {
            Check::Range { low, high, inside: true } => Some((*low, *high)),
            Check::Members { range, .. } => *range,
            _ => None,
        }
    }

    /// Merges another condition on the same column, if the result is one range; otherwise returns
    /// it.
    pub fn narrow(&mut self, other: Bound) -> Option<Bound> {
        match (&mut self.check, &other.check) {
            (
                Check::Range { low, high, inside: true },
                Check::Range { low: other_low, high: other_high, inside: true },
            ) if self.column == other.column => {
                (*low, *high) = ((*low).max(*other_low), (*high).min(*other_high));
                None
            }
            _ => Some(other),
        }
    }

    /// Removes rows of a block that do not meet the condition, without decoding the column. Returns
    /// false if the rows left must still be tested on the decoded column.
    ///
    /// Errors: those of the table.
    pub fn keep_packed(&self, block: &Block<'_>, chosen: &mut Chosen) -> Result<bool> {
        let rows = chosen.words_mut();
        Ok(match (&self.check, self.range()) {
            (Check::Range { inside: true, .. }, Some(range)) => {
                block.keep_within(self.column, range, rows)?
            }
            (Check::Members { .. }, Some(range)) => {
                block.keep_within(self.column, range, rows)?;
                false
            }
            (check @ (Check::Bytes(..) | Check::Texts(_)), _) => {
                block.keep_texts(self.column, |value| check.holds_bytes(value), rows)?
            }
            _ => false,
        })
    }

    /// Removes chosen rows that do not meet the condition.
    pub fn keep(&self, column: &ColumnBuf, chosen: &mut Chosen) {
        if let Check::Null { wanted } = self.check {
            return chosen.keep_null(column.validity(), wanted);
        }
        chosen.keep_null(column.validity(), false);
        match (column.values(), &self.check) {
            (ColumnValues::Bytes(values), check) => {
                chosen.keep_each(|at| values.get(at).is_some_and(|value| check.holds_bytes(value)));
            }
            (ColumnValues::SmallInt(values), check) => check.keep(values, chosen),
            (ColumnValues::Int(values), check) => check.keep(values, chosen),
            (ColumnValues::BigInt(values), check) => check.keep(values, chosen),
            (ColumnValues::Decimal(values), check) => check.keep(values, chosen),
            // `Filter::of` takes no others.
            _ => chosen.none(),
        }
    }
}

impl Check {
    fn keep<T: Copy + Ord + Into<i128> + TryFrom<i128>>(&self, values: &[T], chosen: &mut Chosen) {
        match self {
            Check::Range { low, high, inside } => {
                let (low, high, inside) = (*low, *high, *inside);
                // Compared in the column's own width. Ends beyond it impose no restriction, or
                // exclude everything.
                match (clamp::<T>(low, Side::Low), clamp::<T>(high, Side::High)) {
                    (Some(None), Some(None)) if inside => {}
                    (Some(low), Some(high)) => match (low, high) {
                        (Some(low), Some(high)) => {
                            chosen.keep(values, |value| (value >= low && value <= high) == inside);
                        }
                        (Some(low), None) => chosen.keep(values, |value| (value >= low) == inside),
                        (None, Some(high)) => chosen.keep(values, |value| (value <= high) == inside),
                        (None, None) => chosen.none(),
                    },
                    _ if inside => chosen.none(),
                    _ => {}
                }
            }
            Check::Numbers(numbers) => {
                chosen.keep_each(|at| {
                    values.get(at).is_some_and(|value| numbers.binary_search(&(*value).into()).is_ok())
                });
            }
            Check::Members { members, .. } => {
                chosen.keep(values, |value| {
                    i64::try_from(value.into()).is_ok_and(|value| members.holds(value))
                });
            }
            Check::Bytes(..) | Check::Texts(_) | Check::Null { .. } => chosen.none(),
        }
    }

    fn holds_bytes(&self, value: &[u8]) -> bool {
        match self {
            Check::Bytes(comparison, other) => comparison.holds(value.cmp(other)),
            Check::Texts(texts) => texts.binary_search_by(|text| text.as_slice().cmp(value)).is_ok(),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

/// Converts an end of a range to the width of a column: `Some(None)` if all values of the column
/// are on the inner side of it, `None` if none is.
fn clamp<T: TryFrom<i128>>(end: i128, side: Side) -> Option<Option<T>> {
    match T::try_from(end) {
        Ok(end) => Some(Some(end)),
        // Out of the type's range, which surrounds zero.
        Err(_) if (end < 0) == (side == Side::Low) => Some(None),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(kind: ColumnType, comparison: Comparison, value: DatumRef<'_>, held: i128) -> bool {
        let place = Place::of(value, &kind).unwrap();
        let mut chosen = Chosen::default();
        chosen.all(1);
        match place.range(comparison) {
            None => return false,
            Some(check) => match kind.kind {
                Type::SmallInt => check.keep(&[held as i16], &mut chosen),
                Type::Int => check.keep(&[held as i32], &mut chosen),
                Type::BigInt => check.keep(&[held as i64], &mut chosen),
                _ => check.keep(&[held], &mut chosen),
            },
        }
        chosen.any()
    }

    const ALL: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    /// Goal: a range agrees with the comparison of two values. Method: all comparisons, values at
    /// and beyond the ends of each width, and decimals with more digits than the column has.
    #[test]
    fn ranges_are_comparisons() {
        let ends = [i64::MIN, -40_000, -1, 0, 1, 40_000, i64::MAX];
        for comparison in ALL {
            for value in ends {
                for (kind, held) in [
                    (Type::SmallInt, &[i64::from(i16::MIN), -1, 0, 1, i64::from(i16::MAX)][..]),
                    (Type::Int, &[i64::from(i32::MIN), -40_000, 40_000, i64::from(i32::MAX)][..]),
                    (Type::BigInt, &ends[..]),
                ] {
                    for held in held {
                        let expected = comparison.of(DatumRef::BigInt(*held), DatumRef::BigInt(value));
                        let found = holds(kind.into(), comparison, DatumRef::BigInt(value), (*held).into());
                        assert_eq!(Some(found), expected, "{kind:?} {held} {comparison:?} {value}");
                    }
                }
            }
            for (unscaled, scale) in [(125, 2), (1255, 3), (-1255, 3), (-125, 2), (1, 0), (-1, 1), (0, 5)] {
                for held in [-126, -125, -124, -1, 0, 1, 100, 125, 126] {
                    let value = DatumRef::Decimal { unscaled, scale };
                    let expected = comparison.of(DatumRef::Decimal { unscaled: held, scale: 2 }, value);
                    let found = holds(ColumnType::decimal(10, 2), comparison, value, held);
                    assert_eq!(Some(found), expected, "{held} {comparison:?} {unscaled} e-{scale}");
                }
            }
        }
    }
}
