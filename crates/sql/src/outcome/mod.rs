//! What statements give back.

mod column;
mod copy;
mod rows;
mod source;
mod tag;

pub use column::Column;
pub use copy::{CopyIn, CopyOut};
pub use rows::Rows;
pub use source::RowView;
pub(crate) use source::Source;
pub use tag::CommandTag;

/// What a statement gave, or what it waits for.
#[derive(Debug)]
pub enum Outcome<'c> {
    /// Rows to be read.
    Rows(Rows<'c>),
    /// It is done.
    Done(CommandTag),
    /// `COPY ... FROM STDIN` waits for its bytes.
    CopyIn(CopyIn<'c>),
    /// `COPY ... TO STDOUT` has bytes to give.
    CopyOut(CopyOut<'c>),
}
