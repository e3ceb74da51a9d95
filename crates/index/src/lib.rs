//! Compressed sorted index for read-mostly data.
//!
//! The codec turns sorted rows into pages of a fixed size ([`Packer`]) and reads them without
//! unpacking more than it needs ([`Leaf`]): row ids and columns of integers or byte strings, each
//! encoded in the way that takes the fewest bytes in that page. [`mod@file`] is an index in a file
//! over it; PostgreSQL's `cairn` access method stands on it too. Layouts:
//! docs/src/formats/index.md; reasons: docs/src/design/index.md.
// The exception is `bits::group`, which calls what it has compiled for a processor after asking for
// that processor.
#![deny(unsafe_code)]

mod bits;
mod cursor;
mod damage;
pub mod error;
pub mod file;
#[doc(hidden)]
pub mod fuzz;
mod leaf;
mod packer;
mod stream;
mod strings;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
#[cfg(test)]
mod tests;

pub use damage::{Checked, Damage};
pub use error::{Error, Result};
pub use file::{BuildOptions, Builder, Cell, Index, Row};
pub use leaf::{ColumnStats, Kind, Leaf, MAX_COLUMNS, MAX_ROWS, VERSION};
pub use packer::{PackError, Packer, Value};
pub use stream::{Extremes, Run};

/// The Rust on the pages for users is compiled by `cargo test --doc`.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/src/engines/index.md")]
    struct Engine;

    #[doc = include_str!("../../../docs/src/tutorials/index.md")]
    struct Tutorial;
}
