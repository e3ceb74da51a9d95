//! Sums, extremes and filters over encoded values: run by run if the stream has runs, otherwise by
//! blocks of unpacked values.

use super::{Basic, Kind, Run, Stream};
use crate::damage::Checked;

/// Number of values unpacked at a time. The values and their bits stay in the L1 cache.
const BLOCK: usize = 512;
const _: () = assert!(BLOCK.is_multiple_of(64), "a block begins at a word of the mask");
const _: () = assert!(BLOCK < 1 << 31, "the sum of so many halves cannot overflow");

/// The least and the greatest of some values, as signed integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    /// The least.
    pub least: i64,
    /// The greatest.
    pub most: i64,
}

/// Clears bits `from..to`.
fn clear(mask: &mut [u64], from: usize, to: usize) {
    if from >= to {
        return;
    }
    debug_assert!(to <= 64 * mask.len(), "bits {from}..{to} of {} words", mask.len());
    let (first, last) = (from / 64, to / 64);
    let head = u64::MAX << (from % 64);
    let tail = if to.is_multiple_of(64) { 0 } else { u64::MAX >> (64 - to % 64) };
    if first == last {
        mask[first] &= !(head & tail);
        return;
    }
    mask[first] &= !head;
    mask[first + 1..last].fill(0);
    if tail != 0 {
        mask[last] &= !tail;
    }
}

fn last_of(run: &Run) -> i64 {
    debug_assert!(run.start < run.end, "{run:?} has no last row");
    run.base.wrapping_add(run.step.wrapping_mul((run.end - run.start) as u64 - 1)) as i64
}

/// Returns the extremes, or `None` if no value has narrowed the initial bounds.
fn extremes(least: i64, most: i64) -> Option<Extremes> {
    (least <= most).then_some(Extremes { least, most })
}

/// Returns the sum of a line. It cannot overflow, because values have 64 bits and rows are far
/// fewer than 2^32.
fn sum_of_run(run: &Run) -> i128 {
    let rows = (run.end - run.start) as i128;
    if run.step == 0 {
        return i128::from(run.base as i64) * rows;
    }
    (i128::from(run.base as i64) + i128::from(last_of(run))) * rows / 2
}

/// Returns true if the values of the line rise or fall without wrapping, so that its ends are its
/// extremes.
fn is_straight(run: &Run) -> bool {
    if run.step == 0 {
        return true;
    }
    let rows = (run.end - run.start) as i128;
    let last = i128::from(run.base as i64) + i128::from(run.step as i64) * (rows - 1);
    i64::try_from(last).is_ok()
}

impl Stream<'_> {
    /// Calls `each` with runs that cover rows `from..to`, if the stream is stored as runs. Returns
    /// whether it is. Constant runs may be skipped if `idle` returns true for their values.
    fn walk_runs(
        &self,
        from: usize,
        to: usize,
        idle: impl Fn(&[u64]) -> bool,
        mut each: impl FnMut(Run),
    ) -> Checked<bool> {
        match &self.kind {
            Kind::Runs(runs) => runs.walk_some(from, to, idle, each).map(|()| true),
            Kind::Basic(Basic::Line { base, step }) if from < to => {
                let first = base.wrapping_add(step.wrapping_mul(from as u64));
                each(Run { start: from, end: to, base: first, step: *step });
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Calls `each` with the first row and the values of each block.
    fn walk_blocks(&self, from: usize, to: usize, each: impl FnMut(usize, &[u64])) -> Checked<()> {
        self.walk_blocks_masked(from, to, None, each)
    }

    /// Does the same as [`Stream::walk_blocks`], but skips blocks that have no row in the mask,
    /// without unpacking them.
    fn walk_blocks_masked(
        &self,
        from: usize,
        to: usize,
        mask: Option<&[u64]>,
        mut each: impl FnMut(usize, &[u64]),
    ) -> Checked<()> {
        let mut block = [0; BLOCK];
        let mut row = from;
        while row < to {
            // Block boundaries coincide with group boundaries of the unpacker.
            let count = (BLOCK - row % BLOCK).min(to - row);
            let words = (row - from) / 64..(row - from + count).div_ceil(64);
            if mask.and_then(|mask| mask.get(words)).is_some_and(|words| words.iter().all(|word| *word == 0))
            {
                row += count;
                continue;
            }
            self.decode(row, &mut block[..count])?;
            each(row, &block[..count]);
            row += count;
        }
        Ok(())
    }

    /// Returns the sum of rows `from..to` as signed integers. Runs take a few nanoseconds each,
    /// other encodings less than one per row.
    pub(crate) fn sum(&self, from: usize, to: usize) -> Checked<i128> {
        let mut sum = 0i128;
        let mut bent = false;
        if self.walk_runs(
            from,
            to,
            |_| false,
            |run| {
                bent |= !is_straight(&run);
                sum += sum_of_run(&run);
            },
        )? && !bent
        {
            return Ok(sum);
        }
        if let Kind::Basic(Basic::Packed { least, width, data }) = &self.kind {
            let distances = crate::bits::sum(data, from, to, *width) as i128;
            return Ok(distances + i128::from(*least as i64) * to.saturating_sub(from) as i128);
        }
        sum = 0;
        self.walk_blocks(from, to, |_, values| sum += sum_of(values))?;
        Ok(sum)
    }

    /// Returns the sum of those of rows `from..to` that are in `mask`, which has a bit per row.
    pub(crate) fn sum_masked(&self, from: usize, to: usize, mask: &[u64]) -> Checked<i128> {
        debug_assert!(to.saturating_sub(from) <= 64 * mask.len(), "{} words of a mask", mask.len());
        let mut sum = 0i128;
        self.walk_blocks_masked(from, to, Some(mask), |row, values| {
            for (index, value) in values.iter().enumerate() {
                let at = row - from + index;
                let keep = ((mask[at / 64] >> (at % 64)) & 1).wrapping_neg();
                sum += i128::from((value & keep) as i64);
            }
        })?;
        Ok(sum)
    }

    /// Returns the least and the greatest value of rows `from..to` (with `mask`, of the rows in
    /// it); `None` if there are no rows.
    pub(crate) fn extremes(&self, from: usize, to: usize, mask: Option<&[u64]>) -> Checked<Option<Extremes>> {
        debug_assert!(mask.is_none_or(|mask| to.saturating_sub(from) <= 64 * mask.len()));
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut take = |least: i64, most: i64| (low, high) = (low.min(least), high.max(most));
        let mut bent = false;
        if mask.is_none()
            && self.walk_runs(
                from,
                to,
                |_| false,
                |run| {
                    bent |= !is_straight(&run);
                    let (first, last) = (run.base as i64, last_of(&run));
                    take(first.min(last), first.max(last));
                },
            )?
            && !bent
        {
            return Ok(extremes(low, high));
        }
        self.walk_blocks_masked(from, to, mask, |row, values| match mask {
            None => {
                let (least, most) = crate::bits::extremes(values);
                take(least, most);
            }
            Some(mask) => {
                for (index, value) in values.iter().enumerate() {
                    let at = row - from + index;
                    if (mask[at / 64] >> (at % 64)) & 1 == 1 {
                        take(*value as i64, *value as i64);
                    }
                }
            }
        })?;
        Ok(extremes(low, high))
    }

    /// Clears in `mask` the bits of those of rows `from..to` whose value is not within
    /// `least..=most`. Bit 0 is row `from`. Returns false if it is certain that no row is left.
    pub(crate) fn filter(
        &self,
        from: usize,
        to: usize,
        least: i64,
        most: i64,
        mask: &mut [u64],
    ) -> Checked<bool> {
        let within = |value: u64| (least..=most).contains(&(value as i64));
        // One unsigned comparison checks both bounds.
        debug_assert!(from <= to && to - from <= 64 * mask.len(), "{} words of a mask", mask.len());
        let span = (most as u64).wrapping_sub(least as u64);
        if least > most {
            clear(mask, 0, to - from);
            return Ok(false);
        }
        let idle = |values: &[u64]| !crate::bits::any_within(values, least as u64, span);
        // Adjacent failing runs are cleared together.
        let mut failing = 0;
        let mut found = false;
        let by_runs = self.walk_runs(from, to, idle, |run| {
            debug_assert!(failing <= run.start - from, "{run:?} precedes the run before it");
            if run.step == 0 {
                if within(run.base) {
                    found = true;
                    clear(mask, failing, run.start - from);
                    failing = run.end - from;
                }
                return;
            }
            found = true;
            clear(mask, failing, run.start - from);
            failing = run.end - from;
            let mut value = run.base;
            for row in run.start - from..run.end - from {
                if !within(value) {
                    mask[row / 64] &= !(1 << (row % 64));
                }
                value = value.wrapping_add(run.step);
            }
        })?;
        if by_runs {
            clear(mask, failing, to - from);
            return Ok(found);
        }
        // The zone map of the column. Most filters end here if they match no row of the page, or
        // all rows.
        if let Some((low, high)) = self.hull()? {
            if high < least || most < low {
                clear(mask, 0, to - from);
                return Ok(false);
            }
            if least <= low && high <= most {
                return Ok(true);
            }
        }
        self.walk_blocks(from, to, |row, values| {
            let mut at = row - from;
            for lane in values.chunks(64) {
                let mut bits = 0u64;
                for (index, value) in lane.iter().enumerate() {
                    bits |= u64::from(value.wrapping_sub(least as u64) <= span) << index;
                }
                // A lane may begin anywhere in a word of the mask.
                let outside = !bits & (u64::MAX >> (64 - lane.len()));
                mask[at / 64] &= !(outside << (at % 64));
                if !at.is_multiple_of(64) && at / 64 + 1 < mask.len() {
                    mask[at / 64 + 1] &= !(outside >> (64 - at % 64));
                }
                at += lane.len();
            }
        })?;
        Ok(true)
    }
}

/// Returns the sum of signed values. Sums halves of 32 bits separately, so that no step of the loop
/// can overflow and the compiler can vectorize it.
fn sum_of(values: &[u64]) -> i128 {
    debug_assert!(values.len() <= BLOCK, "the sums of {} halves may overflow", values.len());
    let (mut low, mut high) = (0u64, 0i64);
    for &value in values {
        low += value & 0xffff_ffff;
        high += (value as i64) >> 32;
    }
    i128::from(low) + (i128::from(high) << 32)
}
