//! Column values, and their encodings in keys and rows.

mod convert;
mod format;
mod key;
mod value;

pub use convert::Make;
pub(crate) use convert::OrNull;
pub(crate) use format::Place;
pub use format::{Row, RowFormat};
pub(crate) use key::FixedKey;
pub use key::{KeyFormat, Order};
pub use value::{Interval, Type, Value};
