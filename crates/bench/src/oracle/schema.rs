//! Random tables for the statements.

use super::draw::Draw;
use super::expr::TEXTS;
use super::{Kind, Statement};

/// The type of a column, as far as expressions distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Integers of 16, 32 or 64 bits.
    Int,
    /// Text.
    Text,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    declared: &'static str,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns; the first is the primary key.
    pub columns: Vec<Column>,
    /// The rows may have ids from 1 to this.
    pub ids: i64,
}

const COLUMNS: [Column; 6] = [
    Column { name: "a", kind: Type::Int, declared: "INTEGER" },
    Column { name: "b", kind: Type::Int, declared: "INTEGER" },
    Column { name: "c", kind: Type::Int, declared: "BIGINT" },
    Column { name: "s", kind: Type::Text, declared: "VARCHAR(40)" },
    Column { name: "t", kind: Type::Text, declared: "TEXT" },
    Column { name: "d", kind: Type::Int, declared: "SMALLINT" },
];

impl Table {
    /// Draws a table with three to six columns besides its key.
    pub fn draw(draw: &mut Draw, number: usize) -> Self {
        let id = Column { name: "id", kind: Type::Int, declared: "INTEGER" };
        let count = 3 + draw.below(4);
        // There are always numbers and text: the first column is a number, and with three columns
        // the third is text.
        let mut columns: Vec<Column> = std::iter::once(id).chain(COLUMNS.into_iter().take(count)).collect();
        if count == 3 {
            columns.pop();
            columns.extend(COLUMNS.into_iter().skip(3).take(1));
        }
        Table { name: format!("t{number}"), columns, ids: 6 + draw.between(0, 14) }
    }

    /// Returns the statements that create the table and insert its rows.
    pub fn create(&self, draw: &mut Draw) -> Vec<Statement> {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let key = if column.name == "id" { " PRIMARY KEY" } else { "" };
                format!("{} {}{key}", column.name, column.declared)
            })
            .collect();
        let mut all = vec![Statement::new(
            Kind::Control,
            format!("CREATE TABLE {} ({})", self.name, columns.join(", ")),
        )];
        let rows: Vec<String> =
            (1..=self.ids).map(|id| format!("({})", self.row(draw, id).join(", "))).collect();
        for some in rows.chunks(7) {
            all.push(Statement::new(
                Kind::Change,
                format!("INSERT INTO {} VALUES {}", self.name, some.join(", ")),
            ));
        }
        all
    }

    /// Draws the values of a row.
    pub fn row(&self, draw: &mut Draw, id: i64) -> Vec<String> {
        let value = |column: &Column, draw: &mut Draw| match column.kind {
            _ if column.name == "id" => id.to_string(),
            _ if draw.chance(20) => "NULL".to_owned(),
            Type::Int => draw.between(-9, 20).to_string(),
            Type::Text => format!("'{}'", draw.pick(&TEXTS)),
        };
        self.columns.iter().map(|column| value(column, draw)).collect()
    }
}
