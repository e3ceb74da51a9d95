//! `to_char`, `to_date`, `to_timestamp` and `to_number`: values by patterns, as PostgreSQL's manual
//! has them ("Data Type Formatting Functions").

mod number;
mod print;
mod read;
mod template;

pub(super) use number::{number_from, number_text, scale_of};
pub(super) use print::{moment_text, span_text};
pub(super) use read::moment_from;
