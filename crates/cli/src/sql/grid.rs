//! Aligned columns, as in psql.

use cairn_bench::core::text::{Align, padded, width};

use crate::error::Result;

use super::sink::Sink;

/// The number of rows from which the column widths are computed. A wider value in a later row moves
/// the rest of its line.
const SAMPLE_ROWS: usize = 1000;

/// A table that is printed while its rows arrive.
#[derive(Debug)]
pub struct Grid {
    names: Vec<String>,
    aligns: Vec<Align>,
    has_headers: bool,
    /// The buffered rows from which the widths are computed.
    sample: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
}

impl Grid {
    /// Creates a table with these column names; true marks a right-aligned column.
    pub fn new<'a>(columns: impl Iterator<Item = (&'a str, bool)>, has_headers: bool) -> Self {
        let align = |is_right: bool| if is_right { Align::Right } else { Align::Left };
        let (names, aligns) = columns.map(|(name, is_right)| (name.to_owned(), align(is_right))).unzip();
        Grid { names, aligns, has_headers, sample: Vec::new(), widths: None }
    }

    /// Prints a whole table of strings.
    pub fn print(out: &mut Sink, names: &[&str], rows: Vec<Vec<String>>) -> Result<()> {
        let mut grid = Grid::new(names.iter().map(|name| (*name, false)), true);
        rows.into_iter().try_for_each(|row| grid.row(out, row))?;
        grid.end(out)
    }

    /// Adds a row.
    pub fn row(&mut self, out: &mut Sink, cells: Vec<String>) -> Result<()> {
        if self.widths.is_some() {
            return self.line(out, &cells);
        }
        self.sample.push(cells);
        if self.sample.len() >= SAMPLE_ROWS { self.settle(out) } else { Ok(()) }
    }

    /// Prints the remaining rows after the last one.
    pub fn end(&mut self, out: &mut Sink) -> Result<()> {
        if self.widths.is_none() { self.settle(out) } else { Ok(()) }
    }

    /// Computes the widths, and prints the buffered rows.
    fn settle(&mut self, out: &mut Sink) -> Result<()> {
        let named = self.has_headers;
        let mut widths: Vec<usize> =
            self.names.iter().map(|name| if named { width(name) } else { 0 }).collect();
        for cells in &self.sample {
            for (widest, cell) in widths.iter_mut().zip(cells) {
                *widest = (*widest).max(cell.split('\n').map(width).max().unwrap_or(0));
            }
        }
        if named {
            let names = self.names.iter().zip(&widths).map(|(name, column)| {
                let free = column - width(name);
                format!(" {}{name}{} ", " ".repeat(free / 2), " ".repeat(free - free / 2))
            });
            out.line(names.collect::<Vec<_>>().join("|"))?;
            out.line(widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+"))?;
        }
        self.widths = Some(widths);
        for cells in std::mem::take(&mut self.sample) {
            self.line(out, &cells)?;
        }
        Ok(())
    }

    /// Prints a row as one line, or as several if a value has line breaks. A plus marks a value
    /// that continues on the next line.
    fn line(&self, out: &mut Sink, cells: &[String]) -> Result<()> {
        let parts: Vec<Vec<&str>> = cells.iter().map(|cell| cell.split('\n').collect()).collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or(1);
        for at in 0..height {
            let mut line = String::new();
            for (number, align) in self.aligns.iter().enumerate() {
                let lines = parts.get(number).map(Vec::as_slice).unwrap_or_default();
                let column = self.widths.as_ref().and_then(|widths| widths.get(number)).copied().unwrap_or(0);
                let part = lines.get(at).copied().unwrap_or_default();
                let goes_on = lines.len() > at + 1;
                let is_last = number + 1 == self.aligns.len();
                line.push(' ');
                // Do not pad the end of a line.
                if is_last && !goes_on && *align == Align::Left {
                    line.push_str(part);
                } else {
                    line.push_str(&padded(part, column, *align));
                }
                if !is_last || goes_on {
                    line.push(if goes_on { '+' } else { ' ' });
                }
                if !is_last {
                    line.push('|');
                }
            }
            out.line(line)?;
        }
        Ok(())
    }
}
