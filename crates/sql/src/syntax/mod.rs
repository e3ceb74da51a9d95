//! Parses text to syntax trees.

mod balance;
pub(crate) mod build;
mod change;
mod cursors;
mod dialect;
mod identity;
mod limits;
mod names;
mod overriding;
mod parse;
mod places;
mod precedence;
mod quotes;
mod row_tests;
pub(crate) mod shape;
mod spans;
mod strengths;
mod switches;
mod symmetric;
mod tokens;
mod types;
pub(crate) mod walk;
mod words;

pub(crate) use change::change_of;
pub(crate) use cursors::{Declared, Direction, Fetch};
pub(crate) use identity::{IdentityChange, kind_of, sequence_name};
pub(crate) use limits::{MAX_LEVELS, MAX_RELATIONS, deep, deeper, levels, planning, too_deep, too_involved};
pub(crate) use names::{TableName, fold, ident, last_name, name_parts, qualified};
pub(crate) use overriding::{Overriding, sql_of};
pub use parse::split;
pub(crate) use parse::{Parsed, Plain, Tree, expression, one, parse};
pub(crate) use places::check as check_places;
pub(crate) use switches::HEADER_MATCH;
pub(crate) use types::{check_collation, column_type, is_serial, parameter_type};
pub(crate) use words::{COLUMN_WORDS, TYPE_WORDS};
pub use words::{RESERVED_WORDS, quote_ident};

#[cfg(test)]
mod tests;
