//! Compressed sorted index for read-mostly data.
//!
//! The codec packs sorted rows into pages of a fixed size ([`Packer`]) and reads them without
//! unpacking more than necessary ([`Leaf`]). A page holds row ids and columns of integers or byte
//! strings, each in the encoding that takes the fewest bytes in that page. [`mod@file`] builds an
//! index file from such pages; PostgreSQL's `cairn` access method also uses the codec. Layouts:
//! docs/src/formats/index.md; rationale: docs/src/design/index.md.
// The exception is `bits::group`, which calls functions compiled for a specific processor after
// checking that it is present.
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

/// Compiles the Rust examples of the user documentation under `cargo test --doc`.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/src/engines/index.md")]
    struct Engine;

    #[doc = include_str!("../../../docs/src/tutorials/index.md")]
    struct Tutorial;
}
