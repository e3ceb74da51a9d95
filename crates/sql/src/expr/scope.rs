//! Resolution of column names.

use cairn_table::Table;
use cairn_table::schema::{ColumnType, TableDef};

use super::Failure;
use crate::error::Error;
use crate::sqlstate::{AMBIGUOUS_COLUMN, UNDEFINED_COLUMN, UNDEFINED_TABLE};

/// A column that expressions can refer to.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    pub name: String,
    pub kind: ColumnType,
    pub slot: usize,
}

/// The columns that expressions can refer to. Each table has a distinct name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// For each table its schema, which is `None` if it has an alias, its name or alias, and its
    /// columns.
    tables: Vec<(Option<String>, String, Vec<ScopeColumn>)>,
    /// For each table, whether it is skipped for unqualified names.
    hidden: Vec<bool>,
}

impl Scope {
    /// A scope without columns.
    pub fn empty() -> Self {
        Scope::default()
    }

    /// The columns of a table under its name, or its alias.
    pub fn of_table(table: &Table, alias: Option<&str>) -> Self {
        Scope::of_def(table.def(), alias)
    }

    /// Like [`Scope::of_table`], for a table that may not exist yet.
    pub fn of_def(def: &TableDef, alias: Option<&str>) -> Self {
        let mut scope = Scope::default();
        let schema = if alias.is_none() { Some(def.schema.clone()) } else { None };
        scope.add(schema, alias.unwrap_or(&def.name), def, 0, false);
        scope
    }

    /// Adds another table, whose slots begin at `first`. Returns false, without adding it, if the
    /// name is taken.
    #[must_use]
    pub fn push(&mut self, table: &Table, alias: Option<&str>, first: usize) -> bool {
        let name = alias.unwrap_or(&table.def().name);
        if self.tables.iter().any(|(_, other, _)| other == name) {
            return false;
        }
        let schema = if alias.is_none() { Some(table.def().schema.clone()) } else { None };
        self.add(schema, name, table.def(), first, false);
        true
    }

    /// Adds the row proposed for insertion, after the columns of the table.
    pub fn with_excluded(mut self, table: &Table) -> Self {
        self.add(None, "excluded", table.def(), table.def().columns.len(), true);
        self
    }

    fn add(&mut self, schema: Option<String>, name: &str, def: &TableDef, first: usize, hidden: bool) {
        let column = |(at, column): (usize, &cairn_table::schema::ColumnDef)| ScopeColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
            slot: first + at,
        };
        let columns = def.columns.iter().enumerate().map(column).collect();
        self.tables.push((schema, name.to_owned(), columns));
        self.hidden.push(hidden);
    }

    /// Resolves a column name; `names` are its parts.
    pub fn find(&self, names: &[String]) -> Result<&ScopeColumn, Failure> {
        let Some((name, table)) = names.split_last() else { return Err(Failure::Unknown) };
        let mut found = Vec::new();
        let mut any_table = false;
        for ((schema, alias, columns), hidden) in self.tables.iter().zip(&self.hidden) {
            let meant = match table {
                [] => !hidden,
                [only] => only == alias,
                [first, second] => schema.as_ref() == Some(first) && second == alias,
                _ => return Err(Failure::Unknown),
            };
            any_table |= meant;
            if meant {
                found.extend(columns.iter().find(|column| column.name == *name));
            }
        }
        match found.as_slice() {
            [one] => Ok(one),
            [] if !any_table && !table.is_empty() => {
                let what = format!("missing FROM-clause entry for table \"{}\"", table.join("."));
                Err(Error::new(UNDEFINED_TABLE, what).into())
            }
            // A whole row as a value, which only the general path supports.
            [] if table.is_empty() && self.tables.iter().any(|(_, alias, _)| alias == name) => {
                Err(Failure::Unknown)
            }
            [] => {
                let what = if table.is_empty() {
                    format!("column \"{name}\" does not exist")
                } else {
                    format!("column {} does not exist", names.join("."))
                };
                Err(Error::new(UNDEFINED_COLUMN, what).into())
            }
            _ => {
                Err(Error::new(AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous")).into())
            }
        }
    }

    /// Returns the columns of `*`, or of `table.*`.
    pub fn all(&self, table: Option<&str>) -> impl Iterator<Item = &ScopeColumn> {
        let tables = self.tables.iter().zip(&self.hidden);
        tables
            .filter(move |((_, alias, _), hidden)| table.map_or(!**hidden, |table| table == alias))
            .flat_map(|((_, _, columns), _)| columns)
    }
}
