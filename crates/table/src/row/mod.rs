//! Column values, and their encodings in keys and rows.

mod format;
mod key;
mod make;
mod value;

pub(crate) use format::Place;
pub use format::{Row, RowFormat};
pub(crate) use key::FixedKey;
pub use key::{KeyFormat, Order};
pub use make::Make;
pub(crate) use make::OrNull;
pub use value::{Interval, Type, Value};
