//! Prepared statements and portals of a session.

use cairn_sql::{ColumnType, Datum, Statement};

use crate::codec::frontend::Formats;
use crate::types;

/// A prepared statement, with the types that the client was told.
#[derive(Debug)]
pub struct Prepared {
    /// What runs.
    pub statement: Statement,
    /// The number of each parameter's type: the client's word, or what the statement made of it.
    pub types: Vec<u32>,
}

impl Prepared {
    /// Takes the client's types where it gave them.
    pub fn new(statement: Statement, given: &[u32]) -> Self {
        let told = |(at, kind): (usize, &ColumnType)| match given.get(at) {
            Some(given) if types::kind_of(*given).is_some() || *given == types::oid::NUMERIC => *given,
            _ => types::oid_of(kind),
        };
        let types = statement.parameters().iter().enumerate().map(told).collect();
        Prepared { statement, types }
    }
}

/// How the columns of a result are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultFormats {
    /// All the same.
    All {
        /// Whether that is binary.
        is_binary: bool,
    },
    /// Each its own: whether it is binary.
    Each(Vec<bool>),
}

impl ResultFormats {
    /// As a Bind has them.
    pub fn new(formats: Formats<'_>) -> Self {
        match formats.len() {
            0 | 1 => ResultFormats::All { is_binary: formats.is_binary(0) },
            count => ResultFormats::Each((0..count).map(|column| formats.is_binary(column)).collect()),
        }
    }

    /// Whether a column is binary.
    #[inline]
    pub fn is_binary(&self, column: usize) -> bool {
        match self {
            ResultFormats::All { is_binary } => *is_binary,
            ResultFormats::Each(each) => each.get(column).copied().unwrap_or_default(),
        }
    }

    /// Whether they fit a result of so many columns.
    pub fn fits(&self, columns: usize) -> bool {
        match self {
            ResultFormats::All { .. } => true,
            ResultFormats::Each(each) => each.len() == columns,
        }
    }
}

/// A statement with its parameters.
#[derive(Debug)]
pub struct Portal {
    /// The statement.
    pub prepared: std::sync::Arc<Prepared>,
    /// Its parameters.
    pub parameters: Vec<Datum>,
    /// How rows are written.
    pub formats: ResultFormats,
    /// How far it is.
    pub progress: Progress,
}

/// How far a portal is.
#[derive(Debug)]
pub enum Progress {
    /// It has not run.
    Ready,
    /// It has run in part; the rows that are left are kept as messages.
    Kept(Kept),
    /// It has run to its end.
    Done,
}

/// Rows that nobody has fetched yet.
#[derive(Debug, Default)]
pub struct Kept {
    /// DataRow messages, one after the other.
    pub messages: Vec<u8>,
    /// How many of their bytes are sent.
    pub sent: usize,
    /// What ends them.
    pub verb: String,
}
