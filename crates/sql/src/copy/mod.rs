//! COPY.

mod decode;
mod encode;
mod format;
mod plan;
mod read;
mod write;

pub(crate) use plan::{Copy, Started};
pub(crate) use read::Reader;
pub(crate) use write::Writer;
