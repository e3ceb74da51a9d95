//! Prints rows for people and for programs.

use cairn_sql::{Column, DatumRef, RowView, Type};
use unicode_width::UnicodeWidthStr;

use crate::args::shell::Mode;
use crate::error::Result;

use super::grid::Grid;
use super::literal;
use super::sink::Sink;

/// The output format of rows.
#[derive(Debug, Clone)]
pub struct Look {
    /// The mode.
    pub mode: Mode,
    /// True if column names and row counts are printed.
    pub has_headers: bool,
    /// The text for NULL, in modes without a notation for it.
    pub null: String,
    /// The table of mode `insert`.
    pub table: String,
    /// True for one line per column in mode `table`.
    pub is_expanded: bool,
}

/// Prints a result while its rows arrive.
#[derive(Debug)]
pub struct Printer<'a> {
    look: &'a Look,
    columns: &'a [Column],
    grid: Grid,
    count: u64,
}

impl<'a> Printer<'a> {
    /// Creates a printer for a result with these columns.
    pub fn new(look: &'a Look, columns: &'a [Column]) -> Self {
        let names = columns.iter().map(|column| (column.name.as_str(), is_number(column)));
        Printer { look, columns, grid: Grid::new(names, look.has_headers), count: 0 }
    }

    /// Prints the part before the rows.
    pub fn begin(&mut self, out: &mut Sink) -> Result<()> {
        let names = || self.columns.iter().map(|column| column.name.as_str());
        match self.look.mode {
            Mode::Json => out.text("["),
            Mode::Csv if self.look.has_headers => out.line(names().map(csv).collect::<Vec<_>>().join(",")),
            Mode::Tabs if self.look.has_headers => out.line(names().map(tab).collect::<Vec<_>>().join("\t")),
            Mode::Markdown => {
                out.line(format_args!("| {} |", names().map(markdown).collect::<Vec<_>>().join(" | ")))?;
                let marks = self.columns.iter().map(|column| if is_number(column) { "---:" } else { "---" });
                out.line(format_args!("|{}|", marks.collect::<Vec<_>>().join("|")))
            }
            _ => Ok(()),
        }
    }

    /// Prints a row.
    pub fn row(&mut self, out: &mut Sink, row: &RowView<'_>) -> Result<()> {
        self.count += 1;
        let values = || (0..self.columns.len()).map(|at| row.get(at));
        let null = self.look.null.as_str();
        match self.look.mode {
            Mode::Table if self.look.is_expanded => self.expanded(out, row),
            Mode::Table => {
                let cells = values().map(|value| cell(value, null)).collect();
                self.grid.row(out, cells)
            }
            Mode::Csv => {
                out.line(values().map(|value| field(value, null, csv)).collect::<Vec<_>>().join(","))
            }
            Mode::Tabs => {
                out.line(values().map(|value| field(value, null, tab)).collect::<Vec<_>>().join("\t"))
            }
            Mode::Markdown => {
                let cells: Vec<_> = values().map(|value| field(value, null, markdown)).collect();
                out.line(format_args!("| {} |", cells.join(" | ")))
            }
            Mode::Json | Mode::Jsonl => {
                if self.look.mode == Mode::Json && self.count > 1 {
                    out.text(",\n")?;
                }
                out.text(&self.object(row))?;
                if self.look.mode == Mode::Jsonl { out.text("\n") } else { Ok(()) }
            }
            Mode::Line => {
                if self.count > 1 {
                    out.text("\n")?;
                }
                let width = self.columns.iter().map(|column| column.name.width()).max().unwrap_or(0);
                for (column, value) in self.columns.iter().zip(values()) {
                    let indent = " ".repeat(width - column.name.width());
                    out.line(format_args!("{indent}{} = {}", column.name, cell(value, null)))?;
                }
                Ok(())
            }
            Mode::Insert => {
                let values: Vec<_> = values().map(literal::value).collect();
                out.line(format_args!("INSERT INTO {} VALUES ({});", self.look.table, values.join(", ")))
            }
        }
    }

    /// Prints the part after the rows.
    pub fn end(&mut self, out: &mut Sink) -> Result<()> {
        match self.look.mode {
            Mode::Json => out.text("]\n"),
            Mode::Table => {
                if !self.look.is_expanded {
                    self.grid.end(out)?;
                }
                if !self.look.has_headers {
                    return Ok(());
                }
                if self.count > 0 && self.look.is_expanded {
                    return out.text("\n");
                }
                out.line(format_args!("({})\n", counted_rows(self.count)))
            }
            _ => Ok(()),
        }
    }

    fn expanded(&self, out: &mut Sink, row: &RowView<'_>) -> Result<()> {
        let width = self.columns.iter().map(|column| column.name.width()).max().unwrap_or(0);
        out.line(format_args!("-[ RECORD {} ]{}", self.count, "-".repeat(width.saturating_sub(8))))?;
        for (at, column) in self.columns.iter().enumerate() {
            let free = " ".repeat(width - column.name.width());
            out.line(format_args!("{}{free} | {}", column.name, cell(row.get(at), &self.look.null)))?;
        }
        Ok(())
    }

    fn object(&self, row: &RowView<'_>) -> String {
        let members = self.columns.iter().enumerate().map(|(at, column)| {
            format!("{}:{}", literal::json_text(&column.name), literal::json(row.get(at), column))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// Formats a row count: `1 row`, `5 rows`.
pub fn counted_rows(count: u64) -> String {
    crate::output::counted(count, "row", "rows")
}

fn is_number(column: &Column) -> bool {
    matches!(
        column.kind.kind,
        Type::SmallInt | Type::Int | Type::BigInt | Type::Real | Type::Double | Type::Decimal
    )
}

/// Formats a value for people: escapes control characters except line breaks.
fn cell(value: DatumRef<'_>, null: &str) -> String {
    if value.is_null() {
        return null.to_owned();
    }
    let text = value.to_string();
    if !text.chars().any(|character| character.is_control() && character != '\n') {
        return text;
    }
    let shown = |character: char| match character {
        '\n' => "\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "        ".to_owned(),
        control if control.is_control() => format!("\\x{:02X}", u32::from(control)),
        other => other.to_string(),
    };
    text.chars().map(shown).collect()
}

fn field(value: DatumRef<'_>, null: &str, write: fn(&str) -> String) -> String {
    match value {
        DatumRef::Null => null.to_owned(),
        value => write(&value.to_string()),
    }
}

/// Formats a field according to RFC 4180. An empty string is quoted, because it is not NULL.
fn csv(text: &str) -> String {
    if text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Escapes delimiters as COPY's text format does.
fn tab(text: &str) -> String {
    if !text.contains(['\t', '\n', '\r', '\\']) {
        return text.to_owned();
    }
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn markdown(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "<br>")
}
