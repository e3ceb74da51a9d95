//! The rows of the suite's tables, and the expected answers of all queries. Everything follows from
//! the seed.
//!
//! ```text
//!   records                                                     groups
//!   id │ grp ─────────► groups.id │ kind │ amount │ counter …    id │ label │ rank
//!   0…rows, primary key   index             below 1,000,000      rank is unique, with an index
//! ```
//!
//! There is one group for every 100 records. Only `counter` is ever changed, and rows are only
//! added behind the last `id`, so all other answers stay the same.

use crate::core::answer::{Answer, Cell, row_checksum};
use crate::core::error::Result;
use crate::stores::sql::{Dialect, Rows};

/// Average number of records in a group.
pub const GROUP_ROWS: u32 = 100;

/// Number of values of `kind`.
pub const KINDS: u32 = 16;

/// Upper bound of `amount`, exclusive.
pub const AMOUNTS: u32 = 1_000_000;

/// Number of rows in a range read.
pub const RANGE_ROWS: u32 = 100;

const WORDS: [&str; 32] = [
    "river", "stone", "ledger", "harbour", "signal", "copper", "garden", "window", "packet", "market",
    "winter", "orbit", "cable", "meadow", "anchor", "barrel", "candle", "desert", "engine", "forest",
    "glacier", "hammer", "island", "jacket", "kettle", "lantern", "mirror", "needle", "orchard", "pepper",
    "quarry", "ribbon",
];

/// Returns the statements that create `records` and `groups`.
pub fn schema(_: Dialect) -> Vec<String> {
    // INTEGER PRIMARY KEY is SQLite's own row number, and an ordinary key elsewhere.
    vec![
        format!("CREATE TABLE records ({COLUMNS})"),
        "CREATE TABLE groups (id INTEGER PRIMARY KEY, label VARCHAR(32) NOT NULL, rank INTEGER NOT NULL)"
            .to_owned(),
    ]
}

/// The columns of `records`, and of the table for bulk loads.
pub const COLUMNS: &str = "id INTEGER PRIMARY KEY, grp INTEGER NOT NULL, kind INTEGER NOT NULL, amount BIGINT NOT NULL, \
                           counter BIGINT NOT NULL, name VARCHAR(32) NOT NULL, note VARCHAR(120) NOT NULL";

/// Number of these columns.
pub const COLUMN_COUNT: usize = 7;

/// Returns the statements that create indexes after the rows are loaded.
pub fn indexes() -> [String; 2] {
    [
        "CREATE INDEX records_grp ON records (grp)".to_owned(),
        "CREATE UNIQUE INDEX groups_rank ON groups (rank)".to_owned(),
    ]
}

/// A record without its `counter`, which is initially 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The group.
    pub grp: u32,
    /// One of [`KINDS`].
    pub kind: u32,
    /// Below [`AMOUNTS`].
    pub amount: u32,
    /// A name such as `river-0123abcd`.
    pub name: String,
    /// Several words.
    pub note: String,
}

/// Generates records.
#[derive(Debug, Clone, Copy)]
pub struct Records {
    /// Number of records.
    pub rows: u32,
    seed: u64,
}

/// Mixes the bits of a number (the last step of SplitMix64 by Steele, Lea and Flood).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Records {
    /// Creates the generator for a seed.
    pub fn new(rows: u32, seed: u64) -> Self {
        Records { rows, seed }
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> u32 {
        (self.rows / GROUP_ROWS).max(1)
    }

    /// Generates the record of an id into `record`.
    pub fn make(&self, id: u32, record: &mut Record) {
        use std::fmt::Write;
        let (a, b) = (mix(self.seed ^ u64::from(id) << 1), mix(self.seed ^ (u64::from(id) << 1 | 1)));
        record.grp = (a % u64::from(self.groups())) as u32;
        record.kind = (a >> 32) as u32 % KINDS;
        record.amount = (b % u64::from(AMOUNTS)) as u32;
        let word = |index: u32| WORDS.get((b >> (5 * index) & 31) as usize).copied().unwrap_or_default();
        record.name.clear();
        // Writing to a string cannot fail.
        let _ = write!(record.name, "{}-{:08x}", word(0), a as u32);
        record.note.clear();
        for index in 1..=6 + (a >> 60) as u32 % 5 {
            if index > 1 {
                record.note.push(' ');
            }
            record.note.push_str(word(index));
        }
    }

    /// Returns the label and the rank of a group.
    pub fn group(&self, id: u32) -> (String, u32) {
        // The order of ranks differs from that of ids, and each rank occurs once: 2,654,435,761 is
        // prime and larger than any number of groups.
        let groups = u64::from(self.groups());
        (format!("group {id:06}"), ((u64::from(id) * 2_654_435_761 + self.seed % groups) % groups) as u32)
    }
}

/// The rows of [`Records`] for loading. Also sums up their amounts.
#[derive(Debug)]
pub struct RecordRows {
    records: Records,
    /// The sum of all amounts generated so far.
    pub amounts: u64,
}

impl RecordRows {
    /// Creates the rows of all records.
    pub fn new(records: Records) -> Self {
        RecordRows { records, amounts: 0 }
    }
}

impl Rows for RecordRows {
    fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        let mut record = Record::default();
        for id in 0..self.records.rows {
            self.records.make(id, &mut record);
            self.amounts += u64::from(record.amount);
            let Record { grp, kind, amount, name, note } = &record;
            visit(&[
                int(id),
                int(*grp),
                int(*kind),
                int(*amount),
                int(0),
                Cell::Text(name),
                Cell::Text(note),
            ])?;
        }
        Ok(())
    }
}

/// The groups of [`Records`].
#[derive(Debug)]
pub struct GroupRows(pub Records);

impl Rows for GroupRows {
    fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        for id in 0..self.0.groups() {
            let (label, rank) = self.0.group(id);
            visit(&[int(id), Cell::Text(&label), int(rank)])?;
        }
        Ok(())
    }
}

fn int(value: u32) -> Cell<'static> {
    Cell::Int(i64::from(value))
}

/// A range of amounts: the lower end is inclusive, the upper end is exclusive.
pub type Window = (u32, u32);

/// The expected answers of the queries.
#[derive(Debug)]
pub struct Expected {
    /// Checksums of single records.
    points: Vec<u64>,
    /// Prefix sums of the checksums of id, amount and name.
    ranges: Vec<u64>,
    /// Answers of the join, by rank.
    joins: Vec<Answer>,
    /// Answers of the filter, by window.
    windows: Vec<(Window, Answer)>,
    kinds: Answer,
    rows: u32,
}

impl Expected {
    /// Computes all expected answers.
    pub fn new(records: Records) -> Self {
        let mut record = Record::default();
        let labels: Vec<(String, u32)> = (0..records.groups()).map(|id| records.group(id)).collect();
        let (mut points, mut ranges) = (Vec::new(), vec![0_u64]);
        let mut joins = vec![Answer::default(); labels.len()];
        let mut windows: Vec<(Window, u64, u64)> = windows().map(|window| (window, 0, 0)).collect();
        let mut kinds = vec![(0_u64, 0_u64, AMOUNTS, 0_u32); KINDS as usize];
        let mut sum = 0_u64;
        for id in 0..records.rows {
            records.make(id, &mut record);
            let Record { grp, kind, amount, name, note } = &record;
            let texts = (Cell::Text(name), Cell::Text(note));
            points.push(row_checksum(&[int(id), int(*grp), int(*kind), int(*amount), texts.0, texts.1]));
            sum = sum.wrapping_add(row_checksum(&[int(id), int(*amount), texts.0]));
            ranges.push(sum);
            if let Some((label, rank)) = labels.get(*grp as usize)
                && let Some(join) = joins.get_mut(*rank as usize)
            {
                join.add(&[Cell::Text(label), int(id), int(*amount)]);
            }
            for ((low, high), count, total) in &mut windows {
                if (*low..*high).contains(amount) {
                    *count += 1;
                    *total += u64::from(*amount);
                }
            }
            if let Some((count, total, least, most)) = kinds.get_mut(*kind as usize) {
                *count += 1;
                *total += u64::from(*amount);
                (*least, *most) = ((*least).min(*amount), (*most).max(*amount));
            }
        }
        let number = |value: u64| Cell::Int(value as i64);
        let sums = |count: u64, total: u64| {
            let total = if count == 0 { Cell::Null } else { number(total) };
            Answer::of([&[number(count), total][..]])
        };
        let windows =
            windows.into_iter().map(|(window, count, total)| (window, sums(count, total))).collect();
        let mut by_kind = Answer::default();
        for (kind, (count, total, least, most)) in kinds.iter().enumerate().filter(|(_, of)| of.0 > 0) {
            by_kind.add(&[number(kind as u64), number(*count), number(*total), int(*least), int(*most)]);
        }
        Expected { points, ranges, joins, windows, kinds: by_kind, rows: records.rows }
    }

    /// Returns the answer of `SELECT id, grp, kind, amount, name, note … WHERE id = $1`.
    pub fn point(&self, id: u32) -> Answer {
        self.points.get(id as usize).map_or_else(Answer::default, |sum| Answer { rows: 1, sum: *sum })
    }

    /// Returns the answer of `SELECT id, amount, name … WHERE id >= $1 AND id < $2`.
    pub fn range(&self, from: u32, to: u32) -> Answer {
        let to = to.min(self.rows);
        match (self.ranges.get(from as usize), self.ranges.get(to as usize)) {
            (Some(before), Some(after)) if from < to => {
                Answer { rows: u64::from(to - from), sum: after.wrapping_sub(*before) }
            }
            _ => Answer::default(),
        }
    }

    /// Returns the answer of `SELECT label, id, amount … WHERE rank = $1`.
    pub fn join(&self, rank: u32) -> Answer {
        self.joins.get(rank as usize).copied().unwrap_or_default()
    }

    /// Returns a window and the answer of `SELECT count(*), sum(amount) … WHERE amount >= $1 AND
    /// amount < $2`.
    pub fn window(&self, index: usize) -> (Window, Answer) {
        self.windows.get(index % self.windows.len().max(1)).copied().unwrap_or_default()
    }

    /// Returns the answer of `SELECT kind, count(*), sum(amount), min(amount), max(amount) … GROUP
    /// BY kind`.
    pub fn kinds(&self) -> Answer {
        self.kinds
    }

    /// Returns the answer of `SELECT count(*) …`.
    pub fn count(&self) -> Answer {
        Answer::of([&[int(self.rows)][..]])
    }
}

/// Returns windows at different places, each a tenth of the amounts.
fn windows() -> impl Iterator<Item = Window> {
    (0..7).map(|index| {
        let low = AMOUNTS / 8 * index;
        (low, low + AMOUNTS / 10)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: records are reproducible by seed, spread over groups and kinds, and fit their columns;
    /// each rank occurs once.
    #[test]
    fn records_are_what_they_say() {
        let records = Records::new(10_000, 7);
        let (mut one, mut two) = (Record::default(), Record::default());
        let mut of_group = vec![0_u32; records.groups() as usize];
        for id in 0..records.rows {
            records.make(id, &mut one);
            Records::new(10_000, 7).make(id, &mut two);
            assert_eq!(one, two);
            assert!(one.kind < KINDS && one.amount < AMOUNTS);
            assert!(one.name.len() <= 32 && one.note.len() <= 120 && one.note.len() >= 30, "{one:?}");
            of_group[one.grp as usize] += 1;
        }
        assert!(of_group.iter().all(|&count| count > 50 && count < 200), "{of_group:?}");
        Records::new(10_000, 8).make(5, &mut one);
        records.make(5, &mut two);
        assert_ne!(one, two);
        let mut ranks: Vec<u32> = (0..records.groups()).map(|id| records.group(id).1).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, (0..records.groups()).collect::<Vec<_>>());
    }

    /// Goal: expected answers match the rows. Method: each query is answered by another scan of all
    /// rows.
    #[test]
    fn expectations_follow_from_rows() {
        let records = Records::new(1_000, 3);
        let expected = Expected::new(records);
        let (mut all, mut joined, mut in_window) = (Answer::default(), Answer::default(), (0_i64, 0_i64));
        let ((low, high), window) = expected.window(2);
        RecordRows::new(records)
            .each(&mut |row| {
                let [Cell::Int(id), Cell::Int(grp), kind, Cell::Int(amount), _, name, note] = *row else {
                    panic!()
                };
                let id_cell = Cell::Int(id);
                let of_point = [id_cell, Cell::Int(grp), kind, Cell::Int(amount), name, note];
                assert_eq!(expected.point(id as u32), Answer::of([&of_point[..]]));
                all.add(&[id_cell, Cell::Int(amount), name]);
                let (label, rank) = records.group(grp as u32);
                if rank == 4 {
                    joined.add(&[Cell::Text(&label), id_cell, Cell::Int(amount)]);
                }
                if (i64::from(low)..i64::from(high)).contains(&amount) {
                    in_window = (in_window.0 + 1, in_window.1 + amount);
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(expected.range(0, 1_000), all);
        assert_eq!(expected.range(0, 400).merge(expected.range(400, 2_000)), all);
        assert_eq!((expected.join(4), expected.kinds().rows), (joined, u64::from(KINDS)));
        assert_eq!(window, Answer::of([&[Cell::Int(in_window.0), Cell::Int(in_window.1)][..]]));
        assert_eq!((expected.point(1_000), expected.range(5, 5)), (Answer::default(), Answer::default()));
    }
}
