//! Encoding of protocol messages: from clients ([`frontend`]) and to clients ([`backend`]).
//!
//! ```text
//! +-----+----------------+---------------------+
//! | tag | length i32 BE  | body                |   the length includes itself, but not the tag
//! +-----+----------------+---------------------+
//! ```
//! The first message of a connection has no tag ([`crate::startup`]). Strings end with a zero byte.
//! All numbers are big-endian.

pub mod backend;
pub mod cursor;
pub mod frontend;

/// Bytes of the tag and the length.
pub const HEADER_BYTES: usize = 5;
