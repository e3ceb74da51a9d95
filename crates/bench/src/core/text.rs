//! Formats figures as text, and tables for terminals and Markdown.

use unicode_width::UnicodeWidthStr;

use crate::core::results::Case;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Returns the columns of a terminal that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns a cell with blanks on the side that its alignment leaves free, as wide as its column.
pub fn padded(cell: &str, column_width: usize, align: Align) -> String {
    let blanks = " ".repeat(column_width.saturating_sub(width(cell)));
    if align == Align::Right { blanks + cell } else { cell.to_owned() + &blanks }
}

/// Rows under headings.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these columns and no rows.
    pub fn new(headings: &[(&str, Align)]) -> Self {
        let headings = headings.iter().map(|&(name, align)| (name.to_owned(), align)).collect();
        Table { headings, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.headings.len(), String::new());
        self.rows.push(cells);
    }

    /// Renders the table for a terminal: columns padded with spaces, a line under the headings.
    pub fn to_text(&self) -> String {
        let widths: Vec<usize> = self.widths();
        let names: Vec<String> = self.headings.iter().map(|(name, _)| name.clone()).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        let lines = [&names, &rule].into_iter().chain(&self.rows);
        lines.map(|cells| self.line(cells, &widths, "  ").trim_end().to_owned() + "\n").collect()
    }

    /// Renders the table in Markdown, with escaped cell separators.
    pub fn to_markdown(&self) -> String {
        let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let names: Vec<String> = self.headings.iter().map(|(name, _)| escape(name)).collect();
        let rule =
            |(_, align): &(String, Align)| if *align == Align::Right { "---:" } else { "---" }.to_owned();
        let rules: Vec<String> = self.headings.iter().map(rule).collect();
        let rows =
            self.rows.iter().map(|cells| row(&cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>()));
        row(&names) + &row(&rules) + &rows.collect::<String>()
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| width(&row[column]));
            cells.chain([width(&self.headings[column].0)]).max().unwrap_or(0)
        };
        (0..self.headings.len()).map(widest).collect()
    }

    fn line(&self, cells: &[String], widths: &[usize], between: &str) -> String {
        let columns = cells.iter().zip(widths).zip(&self.headings);
        let cells = columns.map(|((cell, &width), (_, align))| padded(cell, width, *align));
        cells.collect::<Vec<_>>().join(between)
    }
}

fn escape(cell: &str) -> String {
    cell.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " ")
}

/// Parses a size such as `64`, `512MiB`, `2G`. Units are powers of 1024; `iB` is optional. `None`
/// if the text is not a size.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Formats bytes in the units in which sizes are entered, whole numbers without a fraction: `1
/// KiB`, `1.5 MiB`.
pub fn bytes(of: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB")];
    match UNITS.into_iter().find(|(size, _)| of >= *size) {
        None => format!("{of:.0} B"),
        Some((size, unit)) if of % size == 0.0 => format!("{:.0} {unit}", of / size),
        Some((size, unit)) => format!("{:.1} {unit}", of / size),
    }
}

/// Formats a value with its unit, scaled to one to four digits before the point: `12.0 M/s`, `83.3
/// ns`, `1.2 GiB`.
pub fn value(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match unit {
        "ops/s" => scaled(value, &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
        "s" => scaled(value * 1e9, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
        "ns" => scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
        "B" => {
            scaled(value, &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (10_240.0, "KiB"), (1.0, "B")])
        }
        _ => format!("{} {unit}", three_digits(value)),
    }
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let fits = |(size, _): &&(f64, &str)| value.abs() >= *size;
    let (size, name) = steps.iter().find(fits).or(steps.last()).copied().unwrap_or((1.0, ""));
    let size = if name == "KiB" { 1024.0 } else { size };
    format!("{} {name}", three_digits(value / size))
}

/// Formats three significant digits, without an exponent.
fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a factor: `3.42x`.
pub fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{}x", three_digits(value)) } else { "–".to_owned() }
}

/// Formats a count, with a unit letter if it is round: `100 k`, `1 M`, `234,908`.
pub fn count(count: u64) -> String {
    match count {
        0 => "0".to_owned(),
        _ if count.is_multiple_of(1_000_000) => format!("{} M", count / 1_000_000),
        _ if count.is_multiple_of(1_000) => format!("{} k", count / 1_000),
        _ => {
            let digits = count.to_string();
            let mut out = String::new();
            for (index, digit) in digits.chars().enumerate() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
    }
}

/// Formats a case in a line: `get, present, 2 threads · synthetic 1 M x 6 B, none`.
pub fn case(case: &Case) -> String {
    let mut line = case.operation.clone();
    if !case.keys.is_empty() {
        line += &format!(", {}", case.keys);
        if case.distribution != "uniform" {
            line += &format!(", {}", case.distribution);
        }
        line += &format!(", {} thread{}", case.threads, if case.threads == 1 { "" } else { "s" });
    }
    line + &format!(
        " · {} {} x {} B, {}",
        case.dataset,
        count(case.entries),
        case.value_bytes,
        case.compression
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: figures have three digits and a suitable unit, also at the limits of a unit.
    #[test]
    fn values_are_readable() {
        for (figure, unit, text) in [
            (12e6, "ops/s", "12.0 M/s"),
            (999.0, "ops/s", "999 /s"),
            (0.25, "s", "250 ms"),
            (0.000_000_083_3, "s", "83.3 ns"),
            (83.0, "ns", "83.0 ns"),
            (1_500.0, "ns", "1.50 µs"),
            (20.5, "B", "20.5 B"),
            (2_000.0, "B", "2000 B"),
            (1_288_490_189.0, "B", "1.20 GiB"),
            (0.0, "s", "0.00 ns"),
            (99.96, "MB/s", "100 MB/s"),
            (f64::NAN, "s", "–"),
        ] {
            assert_eq!(value(figure, unit), text);
        }
        assert_eq!(
            (ratio(3.4159), ratio(0.05), ratio(f64::INFINITY)),
            ("3.42x".into(), "0.05x".into(), "–".into())
        );
        assert_eq!(
            [count(100_000), count(10_000_000), count(234_908), count(7), count(0)].join(";"),
            "100 k;10 M;234,908;7;0"
        );
    }

    /// Goal: columns are aligned for all characters, and Markdown cells cannot contain separators.
    #[test]
    fn tables_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("µ", Align::Right)]);
        table.row(vec!["a|b".to_owned(), "1".to_owned()]);
        table.row(vec!["longer".to_owned(), "22".to_owned()]);
        table.row(vec!["x".to_owned()]);
        assert_eq!(table.to_text(), "name     µ\n──────  ──\na|b      1\nlonger  22\nx\n");
        assert_eq!(
            table.to_markdown(),
            "| name | µ |\n| --- | ---: |\n| a\\|b | 1 |\n| longer | 22 |\n| x |  |\n"
        );
    }
}
