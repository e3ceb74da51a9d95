//! Statistics about the fill of an index.

use super::format::LINE_BYTES;
use super::line::SLOTS;
use super::probe::line_at;
use super::reader::Reader;
use crate::{Error, Result};

/// The fill of the lines of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fill {
    /// Number of lines with 0, 1, 2 ... used slots, up to all [`Fill::SLOTS`].
    pub lines_by_slots: Vec<u64>,
    /// Number of home lines.
    pub home_lines: u64,
    /// Number of lines that take entries which the last home lines of a partition could not hold.
    pub tail_lines: u64,
    /// Number of lines that passed entries on to the next line. They make a search read a second
    /// line.
    pub passed_on: u64,
    /// Number of partitions of the index.
    pub partitions: u64,
}

impl Fill {
    /// Number of slots of a line.
    pub const SLOTS: usize = SLOTS;

    /// Returns the share of slots that are used.
    pub fn share(&self) -> f64 {
        let lines: u64 = self.lines_by_slots.iter().sum();
        let used: u64 = self.lines_by_slots.iter().zip(0..).map(|(lines, slots)| lines * slots).sum();
        if lines == 0 { 0.0 } else { used as f64 / (lines * SLOTS as u64) as f64 }
    }
}

impl Reader {
    /// Counts the slots of every line of the index. Cost: reads the index, and verifies those of
    /// its pages that were not touched before.
    /// Errors: [`Error::Corruption`].
    pub fn fill(&self) -> Result<Fill> {
        let partitions = self.partitions.as_slice();
        let mut fill = Fill {
            lines_by_slots: vec![0; SLOTS + 1],
            home_lines: partitions.iter().map(|partition| u64::from(partition.home_lines)).sum(),
            tail_lines: partitions.iter().map(|partition| u64::from(partition.tail_lines)).sum(),
            passed_on: 0,
            partitions: partitions.len() as u64,
        };
        debug_assert_eq!(fill.home_lines + fill.tail_lines, self.header.index_lines, "checked at open");
        for number in 0..self.header.index_lines {
            let line = line_at(self, number)?;
            if let Some(detail) = line.problem() {
                return Err(Error::corruption(
                    &self.path,
                    self.header.index_offset + LINE_BYTES * number,
                    detail,
                ));
            }
            if let Some(lines) = fill.lines_by_slots.get_mut(line.count()) {
                *lines += 1;
            }
            fill.passed_on += u64::from(!line.is_last());
        }
        let lines: u64 = fill.lines_by_slots.iter().sum();
        debug_assert_eq!(lines, self.header.index_lines, "every line has a number of used slots");
        Ok(fill)
    }
}
