//! Groups rows, and aggregates numbers per group: sums, least and greatest values. Rows arrive as
//! columns, some thousands at a time; the numbers are computed from them ([`Formulas`]).
//!
//! ```text
//!   columns ─┬─► group of each row ──┐
//!            └─► 64-bit numbers ─────┴─► per number and group: sum, least, greatest, NULLs
//! ```
//!
//! A sum is kept in 64 bits until the next rows might overflow it, and is then moved to 128 bits.

use cairn_table::ColumnBuf;
use cairn_table::schema::ColumnType;

use super::chosen::Chosen;
use super::formula::{Computed, Formulas, Numbers, TooLarge};
use super::groups::{Failed, GROUPS_MAX, Groups, Key, is_key};
use crate::datum::Datum;

/// The most bits of a sum while it is kept in 64 bits.
const SUM_BITS: u32 = 62;

/// The number of rows after which the number of groups can be predicted.
const MANY_ROWS: u64 = 16_384;

/// A number, given as the step of a formula, and the aggregates of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub step: usize,
    /// Whether to sum it.
    pub sum: bool,
    /// Whether to find the greatest value, or the least; `None` for neither.
    pub greatest: Option<bool>,
}

/// The keys of the groups and their aggregates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gathering {
    keys: Vec<Key>,
    formulas: Formulas,
    asked: Vec<Asked>,
}

impl Gathering {
    /// Groups by columns; `None` for types that groups cannot have as keys.
    pub fn new(keys: &[(usize, ColumnType)], formulas: Formulas, asked: Vec<Asked>) -> Option<Gathering> {
        let key = |(column, kind): &(usize, ColumnType)| {
            is_key(kind.kind).then(|| Key { column: *column, kind: kind.clone() })
        };
        Some(Gathering { keys: keys.iter().map(key).collect::<Option<_>>()?, formulas, asked })
    }
}

/// The reason why there is no result.
#[derive(Debug)]
pub(crate) enum Unable {
    /// Numbers are too large.
    TooLarge,
    Error(crate::Error),
}

impl From<TooLarge> for Unable {
    fn from(TooLarge: TooLarge) -> Self {
        Unable::TooLarge
    }
}

impl From<Failed> for Unable {
    fn from(failed: Failed) -> Self {
        match failed {
            // The caller checks for room before.
            Failed::TooMany => Unable::TooLarge,
            Failed::Error(error) => Unable::Error(error),
        }
    }
}

/// The groups so far.
#[derive(Debug)]
pub(crate) struct Gathered {
    groups: Groups,
    computed: Computed,
    totals: Vec<Total>,
    chosen: Chosen,
    rows: u64,
}

/// The columns of a group's key, and its number of rows.
pub(crate) type Group = (Vec<Datum>, i64);

impl Gathered {
    pub fn new(of: &Gathering) -> Gathered {
        Gathered {
            groups: Groups::new(&of.keys),
            computed: Computed::default(),
            totals: of.asked.iter().map(|asked| Total::new(*asked)).collect(),
            chosen: Chosen::default(),
            rows: 0,
        }
    }

    /// Whether there is room even if each of these rows begins a group.
    pub fn has_room(&self, rows: usize) -> bool {
        self.groups.len() + rows <= GROUPS_MAX
    }

    /// Whether the groups are likely to exceed the limit. It compares them with the number expected
    /// by now if the rows were drawn at random from as many groups as the limit allows. Rows may
    /// also be ordered by group; then the test is fewer than four rows per group over a long input.
    pub fn outgrows(&self) -> bool {
        let (groups, rows, most) = (self.groups.len() as u64, self.rows, GROUPS_MAX as f64);
        let likely = most * (1.0 - (-(rows as f64) / most).exp());
        rows > MANY_ROWS && (groups as f64 > likely || (rows > GROUPS_MAX as u64 && groups * 4 > rows))
    }

    /// Adds rows, given as columns.
    ///
    /// Errors: numbers that are too large, after which the state is unusable; invalid texts.
    pub fn take<'c>(
        &mut self,
        of: &Gathering,
        column_of: impl Fn(usize) -> Option<&'c ColumnBuf>,
        rows: usize,
    ) -> Result<(), Unable> {
        self.computed.compute(&of.formulas, &column_of)?;
        let keys: Vec<&ColumnBuf> = of.keys.iter().filter_map(|key| column_of(key.column)).collect();
        self.chosen.all(rows);
        self.groups.assign(&keys, rows, &self.chosen)?;
        let (count, of_rows) = (self.groups.len(), self.groups.of_rows());
        for total in &mut self.totals {
            let numbers = self.computed.get(total.asked.step).ok_or(TooLarge)?;
            total.take(numbers, rows, count, of_rows);
        }
        self.rows += rows as u64;
        Ok(())
    }

    /// Returns the groups in the order of their first rows, and the totals of each number.
    pub fn finish(self) -> (Vec<Group>, Vec<Total>) {
        let groups: Vec<Group> = self.groups.into_values().collect();
        let mut totals = self.totals;
        for total in &mut totals {
            total.grow(groups.len());
        }
        (groups, totals)
    }
}

/// The aggregates of a number, by group.
#[derive(Debug)]
pub(crate) struct Total {
    asked: Asked,
    /// Sums since the last move to `wide`, and the sums moved there.
    narrow: Vec<i64>,
    wide: Vec<i128>,
    /// Rows since the last move, and the bits of the largest number among them.
    added: u64,
    bits: u32,
    best: Vec<i64>,
    nulls: Vec<i64>,
}

impl Total {
    fn new(asked: Asked) -> Total {
        Total {
            asked,
            narrow: Vec::new(),
            wide: Vec::new(),
            added: 0,
            bits: 0,
            best: Vec::new(),
            nulls: Vec::new(),
        }
    }

    fn grow(&mut self, groups: usize) {
        if self.asked.sum {
            self.narrow.resize(groups, 0);
            self.wide.resize(groups, 0);
        }
        if let Some(greatest) = self.asked.greatest {
            self.best.resize(groups, if greatest { i64::MIN } else { i64::MAX });
        }
        self.nulls.resize(groups, 0);
    }

    /// The sum of a group.
    pub fn sum(&self, group: usize) -> i128 {
        let narrow = self.narrow.get(group).copied().unwrap_or_default();
        self.wide.get(group).copied().unwrap_or_default() + i128::from(narrow)
    }

    /// The least or greatest value of a group that has values.
    pub fn best(&self, group: usize) -> i64 {
        self.best.get(group).copied().unwrap_or_default()
    }

    /// Returns how many of a group's `rows` rows are not NULL.
    pub fn values(&self, group: usize, rows: i64) -> i64 {
        rows - self.nulls.get(group).copied().unwrap_or_default()
    }

    fn take(&mut self, numbers: &Numbers, rows: usize, groups: usize, of_rows: Option<&[u32]>) {
        self.grow(groups);
        if self.asked.sum {
            self.make_room(rows as u64, numbers.bits());
        }
        let nobody = [];
        let of_rows = of_rows.unwrap_or(&nobody);
        match (numbers.constant(), numbers.valid()) {
            (Some(value), _) => self.each((0..rows).map(|row| (value, group_of(of_rows, row)))),
            (None, None) if of_rows.is_empty() => self.all(numbers.values()),
            (None, None) => self.each(numbers.values().iter().copied().zip(of_rows.iter().copied())),
            (None, Some(words)) => {
                let is_valid =
                    |row: usize| words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
                for row in (0..rows).filter(|row| !is_valid(*row)) {
                    if let Some(nulls) = self.nulls.get_mut(group_of(of_rows, row) as usize) {
                        *nulls += 1;
                    }
                }
                let values = numbers.values().iter().copied().enumerate();
                self.each(
                    values
                        .filter(|(row, _)| is_valid(*row))
                        .map(|(row, value)| (value, group_of(of_rows, row))),
                );
            }
        }
    }

    /// Moves the sums to 128 bits if `rows` more numbers might overflow 64.
    fn make_room(&mut self, rows: u64, bits: u32) {
        let most = self.bits.max(bits);
        if most + bits_of_count(self.added + rows) > SUM_BITS {
            for (narrow, wide) in self.narrow.iter_mut().zip(&mut self.wide) {
                *wide += i128::from(std::mem::take(narrow));
            }
            (self.added, self.bits) = (rows, bits);
        } else {
            (self.added, self.bits) = (self.added + rows, most);
        }
    }

    /// Whether the rows added since the last move can be summed in 64 bits.
    fn is_narrow(&self) -> bool {
        self.bits + bits_of_count(self.added) <= SUM_BITS
    }

    /// Adds numbers of a single group.
    fn all(&mut self, values: &[i64]) {
        if self.asked.sum {
            match (self.is_narrow(), self.narrow.first_mut(), self.wide.first_mut()) {
                (true, Some(sum), _) => *sum += values.iter().sum::<i64>(),
                (_, _, Some(sum)) => *sum += values.iter().map(|value| i128::from(*value)).sum::<i128>(),
                _ => {}
            }
        }
        if let (Some(greatest), Some(best)) = (self.asked.greatest, self.best.first_mut()) {
            let found = if greatest { values.iter().max() } else { values.iter().min() };
            if let Some(found) = found {
                *best = if greatest { (*best).max(*found) } else { (*best).min(*found) };
            }
        }
    }

    /// Adds numbers, each with its group.
    fn each(&mut self, values: impl Iterator<Item = (i64, u32)> + Clone) {
        if self.asked.sum && self.is_narrow() {
            for (value, group) in values.clone() {
                if let Some(sum) = self.narrow.get_mut(group as usize) {
                    *sum += value;
                }
            }
        } else if self.asked.sum {
            for (value, group) in values.clone() {
                if let Some(sum) = self.wide.get_mut(group as usize) {
                    *sum += i128::from(value);
                }
            }
        }
        if let Some(greatest) = self.asked.greatest {
            for (value, group) in values {
                if let Some(best) = self.best.get_mut(group as usize) {
                    *best = if greatest { (*best).max(value) } else { (*best).min(value) };
                }
            }
        }
    }
}

/// Without keys there is one group.
fn group_of(of_rows: &[u32], row: usize) -> u32 {
    of_rows.get(row).copied().unwrap_or_default()
}

/// Returns the bits that a sum of `count` numbers needs beyond those of the numbers.
fn bits_of_count(count: u64) -> u32 {
    u64::BITS - count.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use cairn_table::row::{Type, Value};
    use cairn_vfs::{Rng, SeededRng};

    use super::*;
    use crate::direct::columnar::formula::Step;

    /// Goal: groups and totals equal those of row-by-row aggregation in 128 bits. Method: keys of
    /// all short types, alone and together, with NULLs and texts that are too long to be packed;
    /// numbers so wide that sums have to be moved, or do not fit 64 bits at all.
    #[test]
    fn as_row_by_row() {
        let mut rng = SeededRng::new(11);
        for round in 0..200 {
            let kinds = [Type::Text, Type::Int, Type::SmallInt, Type::Boolean, Type::BigInt, Type::Text];
            let keys: Vec<(usize, ColumnType)> = (0..rng.below(4) as usize)
                .map(|at| (at + 1, ColumnType::from(kinds[rng.below(6) as usize])))
                .collect();
            let width = [3, 20, 49, 60][rng.below(4) as usize];
            let mut formulas = Formulas::default();
            let step = formulas.step(Step::Column(0));
            let asked = [(true, None), (false, Some(true)), (false, Some(false))]
                .map(|(sum, greatest)| Asked { step, sum, greatest })
                .to_vec();
            let gathering = Gathering::new(&keys, formulas, asked).unwrap();
            let mut gathered = Gathered::new(&gathering);
            let mut expected: Vec<(Vec<String>, i64, i64, i128, i64, i64)> = Vec::new();
            if keys.is_empty() {
                expected.push((Vec::new(), 0, 0, 0, i64::MIN, i64::MAX));
            }
            for _ in 0..rng.below(6) {
                let rows = rng.below(3_000) as usize;
                let mut columns = vec![(0, ColumnBuf::new(Type::BigInt))];
                columns.extend(keys.iter().map(|(at, kind)| (*at, ColumnBuf::new(kind.kind))));
                for _ in 0..rows {
                    let value = (rng.next_u64() & ((1 << width) - 1)) as i64 - (1 << (width - 1));
                    let value = (rng.below(10) > 0 || round % 2 == 0).then_some(value);
                    assert!(columns[0].1.push(value.map_or(Value::Null, Value::BigInt)));
                    let mut key = Vec::new();
                    for ((_, kind), (_, column)) in keys.iter().zip(&mut columns[1..]) {
                        let number = rng.below(4);
                        let text = ["", "a", "\0", "a text that is not packed"][number as usize];
                        let value = match kind.kind {
                            _ if rng.below(9) == 0 => Value::Null,
                            Type::Text => Value::Text(text),
                            Type::Int => Value::Int(number as i32 - 2),
                            Type::SmallInt => Value::SmallInt(number as i16 * 9_000 - 20_000),
                            Type::Boolean => Value::Boolean(number > 1),
                            _ => Value::BigInt(number as i64 * i64::from(u32::MAX)),
                        };
                        key.push(format!("{value:?}"));
                        assert!(column.push(value));
                    }
                    let at = expected.iter().position(|(known, ..)| *known == key).unwrap_or_else(|| {
                        expected.push((key, 0, 0, 0, i64::MIN, i64::MAX));
                        expected.len() - 1
                    });
                    let (_, count, values, sum, most, least) = &mut expected[at];
                    *count += 1;
                    if let Some(value) = value {
                        *values += 1;
                        *sum += i128::from(value);
                        (*most, *least) = ((*most).max(value), (*least).min(value));
                    }
                }
                assert!(gathered.has_room(rows));
                let of =
                    |number: usize| columns.iter().find(|(at, _)| *at == number).map(|(_, column)| column);
                gathered.take(&gathering, of, rows).unwrap();
            }
            assert_eq!(gathered.groups.len(), expected.len());
            let (groups, totals) = gathered.finish();
            for (nth, ((key, rows), (names, count, values, sum, most, least))) in
                groups.iter().zip(&expected).enumerate()
            {
                let found: Vec<String> =
                    key.iter().map(|datum| format!("{:?}", datum.borrow().to_value())).collect();
                assert_eq!((&found, *rows), (names, *count), "round {round}");
                assert_eq!((totals[0].values(nth, *rows), totals[0].sum(nth)), (*values, *sum));
                if *values > 0 {
                    assert_eq!((totals[1].best(nth), totals[2].best(nth)), (*most, *least));
                }
            }
        }
    }

    /// Goal: the memory limit applies to few groups with long keys as well. Method: a thousand keys
    /// of 20,000 bytes, and as many again.
    #[test]
    fn long_keys_have_a_bound() {
        let keys = [(0, ColumnType::from(Type::Text))];
        let gathering = Gathering::new(&keys, Formulas::default(), Vec::new()).unwrap();
        let mut gathered = Gathered::new(&gathering);
        for (from, fits) in [(0, true), (0, true), (1000, false)] {
            let mut column = ColumnBuf::new(Type::Text);
            for number in from..from + 1000 {
                assert!(column.push(Value::Text(&format!("{number:020000}"))));
            }
            let taken = gathered.take(&gathering, |_| Some(&column), 1000);
            assert_eq!(taken.is_ok(), fits, "{taken:?}");
        }
    }

    /// Goal: too many groups are detected early, without false alarms. Method: keys in random
    /// order, some fewer and some more than the limit, and keys in order with some rows each.
    #[test]
    fn too_many_groups_are_told_early() {
        let mut rng = SeededRng::new(5).fork("groups");
        for (keys, rows_each, latest) in [
            (1_000, None, None),
            (10_000, None, None),
            (16_000, None, None),
            (90_000, None, Some(30_000)),
            (1 << 30, None, Some(20_000)),
            (0, Some(1), Some(20_000)),
            (0, Some(3), Some(70_000)),
            (0, Some(8), None),
        ] {
            let kind = ColumnType::from(Type::Int);
            let gathering = Gathering::new(&[(0, kind)], Formulas::default(), Vec::new()).unwrap();
            let mut gathered = Gathered::new(&gathering);
            let mut rows = 0;
            while rows < 100_000 && gathered.has_room(2_000) && !gathered.outgrows() {
                let mut column = ColumnBuf::new(Type::Int);
                for row in rows..rows + 2_000 {
                    let key = rows_each.map_or_else(|| rng.below(keys), |each| row / each);
                    assert!(column.push(Value::Int(key as i32)));
                }
                gathered.take(&gathering, |_| Some(&column), 2_000).unwrap();
                rows += 2_000;
            }
            match latest {
                None => assert_eq!(rows, 100_000, "of {keys}, {rows_each:?} each"),
                Some(latest) => assert!(rows < latest, "{rows} rows of {keys}, {rows_each:?} each"),
            }
        }
    }
}
