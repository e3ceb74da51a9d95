//! Messages of the protocol as bytes: what clients send ([`frontend`]), what we send ([`backend`]).
//!
//! ```text
//! +-----+----------------+---------------------+
//! | tag | length i32 BE  | body                |   the length counts itself and the body, not the tag
//! +-----+----------------+---------------------+
//! ```
//! The first message of a connection has no tag ([`crate::startup`]). Strings end with a zero byte.
//! All numbers are big-endian.

pub mod backend;
pub mod cursor;
pub mod frontend;

/// Bytes of the tag and the length.
pub const HEADER_BYTES: usize = 5;
