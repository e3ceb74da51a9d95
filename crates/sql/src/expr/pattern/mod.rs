//! `to_char`, `to_date`, `to_timestamp` and `to_number`, with the patterns of PostgreSQL's manual
//! ("Data Type Formatting Functions").

mod number;
mod print;
mod read;
mod template;

pub(super) use number::{number_from, number_text, scale_of};
pub(super) use print::{moment_text, span_text};
pub(super) use read::moment_from;
