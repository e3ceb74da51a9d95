//! An index file: built once from rows in any order, then read through a mapping by any number of
//! threads.
//!
//! ```text
//!   header   page 0:  "CAIRNIDX" | version u32, 1 | page bytes u32 | columns u8 | key columns u8
//!                     | kinds u8 each, up to 64 …
//!            at 96:   rows u64 | pages u64 | directory offset u64 | directory bytes u64
//!                     | its xxh3-64 | …
//!            last 8 bytes of the page: xxh3-64 of those before
//!   pages    rows u16 … (see `leaf`), zeros; last 8 bytes: xxh3-64 of those before,
//!            seeded with the page's number
//!   directory   for each page its first row's key columns: 0 | 1, zigzag | 2, length varint, bytes
//! ```
//!
//! Rows are sorted by the key columns, NULLs last, and then by row id. The file appears under its
//! name atomically.

mod build;
#[cfg(test)]
mod faults;
mod read;
mod sort;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use build::{BuildOptions, Builder};
pub use read::{Group, Index, Range, Rows};

use crate::Value;

pub(crate) const MAGIC: &[u8; 8] = b"CAIRNIDX";
pub(crate) const FILE_VERSION: u32 = 1;
pub(crate) const SUM_BYTES: usize = 8;

/// An owned value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// A signed integer.
    Integer(i64),
    /// A byte string, ordered bytewise.
    Bytes(Vec<u8>),
    /// NULL; sorts after all other values.
    Null,
}

impl Cell {
    /// Returns a borrowed value.
    pub fn value(&self) -> Value<'_> {
        match self {
            Cell::Integer(integer) => Value::Integer(*integer as u64),
            Cell::Bytes(bytes) => Value::Bytes(bytes),
            Cell::Null => Value::Null,
        }
    }
}

impl From<Value<'_>> for Cell {
    fn from(value: Value<'_>) -> Cell {
        match value {
            Value::Integer(integer) => Cell::Integer(integer as i64),
            Value::Bytes(bytes) => Cell::Bytes(bytes.to_vec()),
            Value::Null => Cell::Null,
        }
    }
}

/// A row returned by a range.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// All columns, keys first.
    pub cells: Vec<Cell>,
    /// The id under which the row was added.
    pub id: u64,
}

/// Compares the leading columns that both have.
pub(crate) fn compare_prefix(a: &[Cell], b: &[Cell]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
