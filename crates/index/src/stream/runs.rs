//! Runs: ranges of rows whose values increase by a constant step. With a step of 0 this is
//! run-length encoding; a single run is a line.
//!
//! ```text
//!   runs   tag 3 | count varint | bytes of ends u16 | bytes of bases u16
//!          | ends | bases | steps     (basic streams)
//!   run i holds rows ends[i - 1]..ends[i];  value(row) = bases[i] + (row - ends[i - 1]) * steps[i]
//! ```

use std::ops::Range;

use super::basic::{self, Basic, CHUNK};
use crate::cursor::Cursor;
use crate::damage::{Checked, Damage};
use cairn_codec::varint;

pub(crate) const RUNS: u8 = 3;
/// Up to this many runs are decoded at once; more are decoded chunk by chunk.
const FEW: usize = 32;

/// Values divided into runs.
pub(crate) struct Segments {
    ends: Vec<u64>,
    bases: Vec<u64>,
    steps: Vec<u64>,
}

impl Segments {
    /// Divides `values` greedily into runs; `None` if the runs are too short to save space. Takes
    /// about 1 ns per value.
    pub(crate) fn find(values: &[u64]) -> Option<Segments> {
        let most = values.len() / 3 + 4;
        let mut runs = Segments { ends: Vec::new(), bases: Vec::new(), steps: Vec::new() };
        let mut at = 0;
        let mut last_step = 0;
        while at < values.len() {
            let base = values[at];
            let mut end = at + 1;
            let mut step = last_step;
            if let Some(second) = values.get(end) {
                let climb = second.wrapping_sub(base);
                while end < values.len() && values[end].wrapping_sub(values[end - 1]) == climb {
                    end += 1;
                }
                // Two values always lie on a line. Unless they are equal, the second is left to the
                // next run.
                if end - at == 2 && climb != 0 && climb != last_step {
                    end = at + 1;
                } else {
                    step = climb;
                }
            }
            debug_assert!(end > at, "a run has rows");
            runs.ends.push(end as u64);
            runs.bases.push(base);
            runs.steps.push(step);
            if runs.ends.len() > most {
                return None;
            }
            last_step = step;
            at = end;
        }
        debug_assert_eq!(runs.ends.last().copied().unwrap_or(0), values.len() as u64, "every row has a run");
        debug_assert!(runs.bases.len() == runs.len() && runs.steps.len() == runs.len());
        Some(runs)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of bytes that [`Segments::emit`] writes.
    pub(crate) fn bytes(&self) -> usize {
        let parts = [&self.ends, &self.bases, &self.steps].map(|part| basic::plan(part).bytes);
        5 + varint::encoded_len(self.ends.len() as u64) + parts.iter().sum::<usize>()
    }

    /// Appends the runs.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let plans = [&self.ends, &self.bases, &self.steps].map(|part| basic::plan(part));
        debug_assert!(plans[0].bytes.max(plans[1].bytes) <= usize::from(u16::MAX), "a part beyond a page");
        out.push(RUNS);
        varint::push(self.ends.len() as u64, out);
        out.extend_from_slice(&(plans[0].bytes as u16).to_le_bytes());
        out.extend_from_slice(&(plans[1].bytes as u16).to_le_bytes());
        plans[0].emit(&self.ends, out);
        plans[1].emit(&self.bases, out);
        plans[2].emit(&self.steps, out);
    }
}

/// Encoded runs.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a> {
    at: usize,
    count: usize,
    rows: usize,
    ends: Basic<'a>,
    bases: Basic<'a>,
    steps: Basic<'a>,
}

/// A range of rows with values on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first row.
    pub start: usize,
    /// The row after the last one.
    pub end: usize,
    /// The value of the first row.
    pub base: u64,
    /// The difference between the values of successive rows.
    pub step: u64,
}

impl<'a> Runs<'a> {
    /// Parses the head after the tag.
    pub(crate) fn parse(mut part: Cursor<'a>, rows: usize) -> Checked<Self> {
        let at = part.at();
        let count = part.varint()?;
        if count > rows as u64 || (count == 0) != (rows == 0) {
            return Err(Damage::at(at, "at least one run and at most one for each row"));
        }
        let count = count as usize;
        let ends_bytes = usize::from(part.u16()?);
        let bases_bytes = usize::from(part.u16()?);
        let ends = Basic::parse(part.part(ends_bytes)?, count)?;
        let bases = Basic::parse(part.part(bases_bytes)?, count)?;
        let steps = Basic::parse(part, count)?;
        Ok(Runs { at, count, rows, ends, bases, steps })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn start_of(&self, index: usize) -> Checked<usize> {
        debug_assert!(index <= self.count, "run {index} of {}", self.count);
        if index == 0 { Ok(0) } else { Ok(self.ends.get(index - 1)?.min(self.rows as u64) as usize) }
    }

    /// Returns the run that contains `row`.
    fn run_of(&self, row: usize) -> Checked<usize> {
        match row {
            0 => Ok(0),
            _ => self.ends.partition(0..self.count, |end| end <= row as u64),
        }
    }

    /// Returns the first of `rows` whose value does not satisfy `is_before`, which must hold for
    /// all rows before it and for none after. Searches the first values of the runs, then the line
    /// of one run.
    pub(crate) fn partition(&self, rows: Range<usize>, is_before: impl Fn(u64) -> bool) -> Checked<usize> {
        if rows.is_empty() {
            return Ok(rows.start);
        }
        let first = self.run_of(rows.start)?;
        let last = if rows.end >= self.rows { self.count - 1 } else { self.run_of(rows.end - 1)? };
        if first >= self.count || last >= self.count {
            return Err(Damage::at(self.at, "a run for every row"));
        }
        let behind = self.bases.partition(first + 1..last + 1, &is_before)?;
        debug_assert!(behind > first && behind <= self.count, "run {behind}, searched after {first}");
        let (base, step) = (self.bases.get(behind - 1)?, self.steps.get(behind - 1)?);
        if step == 0 {
            // All rows of a constant run are on the same side.
            let end = if is_before(base) { self.start_of(behind)? } else { rows.start };
            return Ok(end.clamp(rows.start, rows.end));
        }
        let (start, end) = (self.start_of(behind - 1)?, self.start_of(behind)?);
        let (mut low, mut high) = (start.max(rows.start), end.min(rows.end));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(base.wrapping_add(step.wrapping_mul((middle - start) as u64))) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.min(rows.end))
    }

    pub(crate) fn get(&self, row: usize) -> Checked<u64> {
        let index = self.run_of(row)?;
        if index >= self.count {
            return Err(Damage::at(self.at, "a run for every row"));
        }
        let into = row.wrapping_sub(self.start_of(index)?) as u64;
        Ok(self.bases.get(index)?.wrapping_add(into.wrapping_mul(self.steps.get(index)?)))
    }

    /// Calls `each` with the runs of rows `from..to`, cut at both ends.
    pub(crate) fn walk(&self, from: usize, to: usize, each: impl FnMut(Run)) -> Checked<()> {
        self.walk_some(from, to, |_| false, each)
    }

    /// Does the same as [`Runs::walk`], but skips chunks of constant runs for whose values `idle`
    /// returns true. Skipped runs take about 1 ns each.
    pub(crate) fn walk_some(
        &self,
        from: usize,
        to: usize,
        idle: impl Fn(&[u64]) -> bool,
        each: impl FnMut(Run),
    ) -> Checked<()> {
        // Initializing the buffers for a whole chunk would take longer than a few runs.
        if self.count <= FEW {
            self.walk_by::<FEW>(from, to, idle, each)
        } else {
            self.walk_by::<CHUNK>(from, to, idle, each)
        }
    }

    /// Does the same as [`Runs::walk_some`], `AHEAD` runs at a time.
    fn walk_by<const AHEAD: usize>(
        &self,
        from: usize,
        to: usize,
        idle: impl Fn(&[u64]) -> bool,
        mut each: impl FnMut(Run),
    ) -> Checked<()> {
        let mut index = self.run_of(from)?;
        // The start of the current run. `None` after runs were skipped in a range that extends to
        // the last row; it is looked up when it is needed.
        let mut start = Some(self.start_of(index)?);
        let mut row = from;
        let (mut ends, mut bases, mut steps) = ([0; AHEAD], [0; AHEAD], [0; AHEAD]);
        let constant = matches!(self.steps, Basic::Line { base: 0, step: 0 });
        while row < to {
            // Whole chunks, so that none is unpacked twice. A range of few rows needs few runs.
            let ahead = (AHEAD - index % AHEAD).min(self.count.saturating_sub(index)).min(to - row);
            if ahead == 0 {
                return if start.is_none() {
                    Ok(())
                } else {
                    Err(Damage::at(self.at, "a run for every row"))
                };
            }
            self.bases.decode(index, &mut bases[..ahead])?;
            if constant && idle(&bases[..ahead]) {
                index += ahead;
                start = None;
                if to < self.rows {
                    row = self.start_of(index)?.max(row);
                    start = Some(row);
                }
                continue;
            }
            let mut first = match start {
                Some(first) => first,
                None => {
                    row = self.start_of(index)?.max(row);
                    row
                }
            };
            self.ends.decode(index, &mut ends[..ahead])?;
            // If the steps are constant, the buffer already holds zeros.
            if !constant {
                self.steps.decode(index, &mut steps[..ahead])?;
            }
            for at in 0..ahead {
                let end = ends[at].min(self.rows as u64) as usize;
                if end <= first {
                    return Err(Damage::at(self.at, "ends of runs that ascend"));
                }
                if end > row {
                    let base =
                        bases[at].wrapping_add((row.wrapping_sub(first) as u64).wrapping_mul(steps[at]));
                    debug_assert!(row < to, "row {row} beyond {to}");
                    each(Run { start: row, end: end.min(to), base, step: steps[at] });
                    row = end;
                }
                first = end;
                if row >= to {
                    return Ok(());
                }
            }
            start = Some(first);
            index += ahead;
        }
        Ok(())
    }

    pub(crate) fn decode(&self, from: usize, out: &mut [u64]) -> Checked<()> {
        self.walk(from, from + out.len(), |run| {
            let slots = &mut out[run.start - from..run.end - from];
            if run.step == 0 {
                slots.fill(run.base);
            } else {
                for (index, slot) in slots.iter_mut().enumerate() {
                    *slot = run.base.wrapping_add(run.step.wrapping_mul(index as u64));
                }
            }
        })
    }
}
