//! Integer arithmetic on columns, many rows at a time.
//!
//! ```text
//!   columns ─► 64-bit values, and the bits of the largest ─► + - * , each distinct step once
//! ```
//!
//! Decimals have 128 bits, but their values rarely need more than 40. Reading a column's rows
//! yields the number of bits that its values take, and the width of computed values follows from
//! that. So no row needs an overflow check. If a result might not fit, [`TooLarge`] is returned,
//! and the caller computes in 128 bits.

use cairn_table::{ColumnBuf, ColumnValues, Validity};

/// The most bits that a result may take besides the sign. A sum of two such results still fits.
const BITS_MAX: u32 = 62;

/// A step of a computation. Operands are the numbers of earlier steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The values of a column of the table.
    Column(usize),
    Constant(i64),
    Add(usize, usize),
    Subtract(usize, usize),
    Multiply(usize, usize),
}

/// A sequence of distinct steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Formulas {
    steps: Vec<Step>,
}

/// Values may not fit into 64 bits, or are not integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Formulas {
    /// Returns the number of a step, and adds it if it is new.
    pub fn step(&mut self, step: Step) -> usize {
        self.steps.iter().position(|known| *known == step).unwrap_or_else(|| {
            self.steps.push(step);
            self.steps.len() - 1
        })
    }
}

/// The result of a step.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// One per row; empty for a constant.
    values: Vec<i64>,
    constant: Option<i64>,
    /// The bits of the largest value, without the sign.
    bits: u32,
    /// A bit for each row; `None` if no row is NULL.
    valid: Option<Vec<u64>>,
}

impl Numbers {
    /// The values, one per row; empty for a constant.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    pub fn constant(&self) -> Option<i64> {
        self.constant
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// A bit for each row, from the lowest of the first word on: 0 for NULL. `None` if no row is
    /// NULL.
    pub fn valid(&self) -> Option<&[u64]> {
        self.valid.as_deref()
    }
}

/// The results of all steps over some rows.
#[derive(Debug, Default)]
pub(super) struct Computed {
    numbers: Vec<Numbers>,
}

impl Computed {
    /// Returns the result of a step.
    pub fn get(&self, step: usize) -> Option<&Numbers> {
        self.numbers.get(step)
    }

    /// Computes all steps.
    ///
    /// Errors: results that may not fit.
    pub fn compute<'c>(
        &mut self,
        formulas: &Formulas,
        column_of: impl Fn(usize) -> Option<&'c ColumnBuf>,
    ) -> Result<(), TooLarge> {
        self.numbers.resize_with(formulas.steps.len(), Numbers::default);
        for (nth, step) in formulas.steps.iter().enumerate() {
            let Some((to, before)) = self.numbers.get_mut(..=nth).and_then(<[_]>::split_last_mut) else {
                return Err(TooLarge);
            };
            let (left, right) = match *step {
                Step::Column(column) => {
                    to.read(column_of(column).ok_or(TooLarge)?)?;
                    continue;
                }
                Step::Constant(value) => {
                    (to.constant, to.bits, to.valid) = (Some(value), bits_of(value.unsigned_abs()), None);
                    continue;
                }
                Step::Add(left, right) | Step::Subtract(left, right) | Step::Multiply(left, right) => {
                    (before.get(left).ok_or(TooLarge)?, before.get(right).ok_or(TooLarge)?)
                }
            };
            to.bits = match step {
                Step::Multiply(..) => left.bits + right.bits,
                _ => left.bits.max(right.bits) + 1,
            };
            if to.bits > BITS_MAX {
                return Err(TooLarge);
            }
            match step {
                Step::Add(..) => to.combine(left, right, |left, right| left + right),
                Step::Subtract(..) => to.combine(left, right, |left, right| left - right),
                _ => to.combine(left, right, |left, right| left * right),
            }
            to.valid = both(left.valid(), right.valid());
        }
        Ok(())
    }
}

impl Numbers {
    /// Reads the values of a column.
    fn read(&mut self, column: &ColumnBuf) -> Result<(), TooLarge> {
        self.values.clear();
        self.constant = None;
        match column.values() {
            ColumnValues::SmallInt(values) => {
                self.values.extend(values.iter().map(|value| i64::from(*value)))
            }
            ColumnValues::Int(values) => self.values.extend(values.iter().map(|value| i64::from(*value))),
            ColumnValues::BigInt(values) => self.values.extend_from_slice(values),
            ColumnValues::Decimal(values) => {
                let mut fits = true;
                self.values.extend(values.iter().map(|value| {
                    let narrow = *value as i64;
                    fits &= i128::from(narrow) == *value;
                    narrow
                }));
                if !fits {
                    return Err(TooLarge);
                }
            }
            _ => return Err(TooLarge),
        }
        // The width of the widest value. A negative number counts by its complement, which may need
        // one bit less than the number itself.
        let any = self.values.iter().fold(0, |any, value| any | (value ^ (value >> 63)));
        self.bits = bits_of(any.unsigned_abs()) + 1;
        self.valid = words_of(column.validity());
        if self.bits > BITS_MAX { Err(TooLarge) } else { Ok(()) }
    }

    fn combine(&mut self, left: &Numbers, right: &Numbers, compute: impl Fn(i64, i64) -> i64) {
        self.values.clear();
        self.constant = None;
        match (left.constant, right.constant) {
            (Some(left), Some(right)) => self.constant = Some(compute(left, right)),
            (Some(left), None) => {
                self.values.extend(right.values.iter().map(|right| compute(left, *right)));
            }
            (None, Some(right)) => self.values.extend(left.values.iter().map(|left| compute(*left, right))),
            (None, None) => {
                let pairs = left.values.iter().zip(&right.values);
                self.values.extend(pairs.map(|(left, right)| compute(*left, *right)));
            }
        }
    }
}

fn bits_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

fn words_of(validity: &Validity) -> Option<Vec<u64>> {
    let bits = validity.bits()?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Some(bits.chunks(8).map(word).collect())
}

fn both(left: Option<&[u64]>, right: Option<&[u64]>) -> Option<Vec<u64>> {
    match (left, right) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.to_vec()),
        (Some(left), Some(right)) => Some(left.iter().zip(right).map(|(left, right)| left & right).collect()),
    }
}

#[cfg(test)]
mod tests {
    use cairn_table::row::{Type, Value};
    use cairn_vfs::{Rng, SeededRng};

    use super::*;

    fn decimals(values: &[Option<i128>]) -> ColumnBuf {
        let mut column = ColumnBuf::new(Type::Decimal);
        for value in values {
            assert!(column.push(value.map_or(Value::Null, Value::Decimal)));
        }
        column
    }

    /// Goal: results equal those of 128-bit arithmetic, NULLs included, or [`TooLarge`] is
    /// returned.
    /// Method: random values of all widths in random formulas, compared with 128 bits; and narrow
    /// values must not be rejected.
    #[test]
    fn as_in_128_bits() {
        let mut rng = SeededRng::new(7);
        let (mut computed, mut refused) = (0, 0);
        for _ in 0..2_000 {
            let widths: Vec<u32> = (0..3).map(|_| rng.below(66) as u32).collect();
            let rows = rng.below(200) as usize;
            let mut columns: Vec<Vec<Option<i128>>> = Vec::new();
            for width in &widths {
                let value = |rng: &mut SeededRng| {
                    let value = i128::from(rng.next_u64()) & ((1 << width) - 1);
                    (rng.below(20) > 0).then_some(if rng.below(2) == 0 { value } else { -value - 1 })
                };
                columns.push((0..rows).map(|_| value(&mut rng)).collect());
            }
            let buffers: Vec<ColumnBuf> = columns.iter().map(|column| decimals(column)).collect();
            let mut formulas = Formulas::default();
            for _ in 0..6 {
                let count = formulas.steps.len() as u64;
                let pair = |rng: &mut SeededRng| (rng.below(count) as usize, rng.below(count) as usize);
                let step = match rng.below(if count > 1 { 5 } else { 2 }) {
                    0 => Step::Column(rng.below(3) as usize),
                    1 => Step::Constant(rng.below(200) as i64 - 100),
                    2 => {
                        let (left, right) = pair(&mut rng);
                        Step::Add(left, right)
                    }
                    3 => {
                        let (left, right) = pair(&mut rng);
                        Step::Subtract(left, right)
                    }
                    _ => {
                        let (left, right) = pair(&mut rng);
                        Step::Multiply(left, right)
                    }
                };
                formulas.step(step);
            }
            let mut found = Computed::default();
            if found.compute(&formulas, |column| buffers.get(column)).is_err() {
                refused += 1;
                continue;
            }
            computed += 1;
            for row in 0..rows {
                let mut expected: Vec<Option<i128>> = Vec::new();
                for (nth, step) in formulas.steps.iter().enumerate() {
                    let of = |left: usize, right: usize| expected[left].zip(expected[right]);
                    let value = match *step {
                        Step::Column(column) => columns[column][row],
                        Step::Constant(value) => Some(value.into()),
                        Step::Add(left, right) => of(left, right).map(|(left, right)| left + right),
                        Step::Subtract(left, right) => of(left, right).map(|(left, right)| left - right),
                        Step::Multiply(left, right) => of(left, right).map(|(left, right)| left * right),
                    };
                    expected.push(value);
                    let numbers = found.get(nth).unwrap();
                    let is_valid = numbers.valid().is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1);
                    let got = numbers.constant().unwrap_or_else(|| numbers.values()[row]);
                    assert_eq!(is_valid.then_some(i128::from(got)), value, "{step:?} of {formulas:?}");
                    assert!(!is_valid || got.unsigned_abs() >> numbers.bits() == 0, "{step:?}: {got}");
                }
            }
        }
        assert!(computed > 300 && refused > 300, "{computed} {refused}");
    }
}
