//! Conditions on two columns of a row, for all values of a block at once.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_table::{ColumnBuf, ColumnValues};

use super::buffers::Buffers;
use super::chosen::Chosen;
use super::filter::is_whole;
use crate::expr::{Comparison, Node};

/// A comparison of two columns of the same type, whose values are integers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub left: usize,
    pub right: usize,
    pub kind: Type,
    comparison: Comparison,
}

impl Pair {
    /// Returns the pair for a conjunct; `None` if it has another form.
    pub fn of(conjunct: &Node, kind_of: impl Fn(usize) -> Option<ColumnType>) -> Option<Pair> {
        let Node::Compare(comparison, pair) = conjunct else { return None };
        let (Node::Slot { slot: left, .. }, Node::Slot { slot: right, .. }) = (&pair[0], &pair[1]) else {
            return None;
        };
        let (kind, other) = (kind_of(*left)?, kind_of(*right)?);
        let scale = |kind: &ColumnType| kind.decimal.map(|(_, scale)| scale);
        let is_known = is_whole(kind.kind) && kind.kind == other.kind && scale(&kind) == scale(&other);
        is_known.then_some(Pair { left: *left, right: *right, kind: kind.kind, comparison: *comparison })
    }

    /// Removes chosen rows that do not meet the condition. The columns must have been read.
    pub fn keep(&self, columns: &Buffers, chosen: &mut Chosen) {
        if let (Some(left), Some(right)) = (columns.get(self.left), columns.get(self.right)) {
            self.keep_values(left, right, chosen);
        }
    }

    /// A NULL in either column fails the condition.
    fn keep_values(&self, left: &ColumnBuf, right: &ColumnBuf, chosen: &mut Chosen) {
        chosen.keep_null(left.validity(), false);
        chosen.keep_null(right.validity(), false);
        match (left.values(), right.values()) {
            (ColumnValues::SmallInt(left), ColumnValues::SmallInt(right)) => {
                self.keep_of(left, right, chosen);
            }
            (ColumnValues::Int(left), ColumnValues::Int(right)) => self.keep_of(left, right, chosen),
            (ColumnValues::BigInt(left), ColumnValues::BigInt(right)) => self.keep_of(left, right, chosen),
            (ColumnValues::Decimal(left), ColumnValues::Decimal(right)) => self.keep_of(left, right, chosen),
            // `Pair::of` accepts no others.
            _ => chosen.none(),
        }
    }

    fn keep_of<T: Copy + Ord>(&self, left: &[T], right: &[T], chosen: &mut Chosen) {
        match self.comparison {
            Comparison::Equal => chosen.keep_pairs(left, right, |left, right| left == right),
            Comparison::NotEqual => chosen.keep_pairs(left, right, |left, right| left != right),
            Comparison::Less => chosen.keep_pairs(left, right, |left, right| left < right),
            Comparison::LessOrEqual => chosen.keep_pairs(left, right, |left, right| left <= right),
            Comparison::Greater => chosen.keep_pairs(left, right, |left, right| left > right),
            Comparison::GreaterOrEqual => chosen.keep_pairs(left, right, |left, right| left >= right),
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_table::row::Value;

    use super::*;
    use crate::datum::DatumRef;

    type Make = fn(i64) -> Value<'static>;

    /// Goal: columns compare as their values do. Method: all comparisons of all pairs of the ends
    /// of each type and NULL, compared with comparisons of two values.
    #[test]
    fn columns_compare_as_values_do() {
        let whole = |most: i64, least: i64| vec![None, Some(least), Some(-1), Some(0), Some(7), Some(most)];
        let kinds: [(ColumnType, Vec<Option<i64>>, Make); 5] = [
            (Type::SmallInt.into(), whole(32_767, -32_768), |value| Value::SmallInt(value as i16)),
            (Type::Int.into(), whole(i32::MAX.into(), i32::MIN.into()), |value| Value::Int(value as i32)),
            (Type::BigInt.into(), whole(i64::MAX, i64::MIN), Value::BigInt),
            (Type::Date.into(), whole(40_000, -40_000), |value| Value::Date(value as i32)),
            (ColumnType::decimal(30, 2), whole(i64::MAX, i64::MIN), |value| Value::Decimal(value.into())),
        ];
        let all = [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ];
        for (kind, values, value) in kinds {
            let (mut left, mut right) = (ColumnBuf::new(kind.kind), ColumnBuf::new(kind.kind));
            let pairs: Vec<_> = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
            for (a, b) in &pairs {
                assert!(left.push(a.map_or(Value::Null, value)) && right.push(b.map_or(Value::Null, value)));
            }
            for comparison in all {
                let slot = |slot| Node::Slot { slot, scale: 0 };
                let node = Node::Compare(comparison, Box::new([slot(3), slot(5)]));
                let pair = Pair::of(&node, |_| Some(kind.clone())).unwrap();
                assert_eq!((pair.left, pair.right, pair.kind), (3, 5, kind.kind));
                let mut chosen = Chosen::default();
                chosen.all(pairs.len());
                pair.keep_values(&left, &right, &mut chosen);
                let mut found = vec![false; pairs.len()];
                chosen.each(|at| found[at] = true);
                for ((a, b), found) in pairs.iter().zip(found) {
                    let datum = |value: &Option<i64>| value.map_or(DatumRef::Null, DatumRef::BigInt);
                    let expected = comparison.of(datum(a), datum(b)).unwrap_or(false);
                    assert_eq!(found, expected, "{kind:?}: {a:?} {comparison:?} {b:?}");
                }
            }
        }
    }

    /// Goal: columns whose values have different units are left to other paths. Method: differing
    /// types and scales, and types that are not integers.
    #[test]
    fn others_are_no_pairs() {
        let slot = |slot| Node::Slot { slot, scale: 0 };
        let node = Node::Compare(Comparison::Less, Box::new([slot(0), slot(1)]));
        let of = |left: ColumnType, right: ColumnType| {
            Pair::of(&node, |column| [left.clone(), right.clone()].get(column).cloned()).is_some()
        };
        assert!(of(ColumnType::decimal(10, 2), ColumnType::decimal(12, 2)));
        assert!(!of(ColumnType::decimal(10, 2), ColumnType::decimal(10, 3)));
        assert!(!of(Type::Int.into(), Type::BigInt.into()));
        assert!(!of(Type::Text.into(), Type::Text.into()));
        assert!(!of(Type::Double.into(), Type::Double.into()));
        assert!(!of(Type::Boolean.into(), Type::Boolean.into()));
    }
}
