//! Results of statements.

mod copy;
mod rows;

pub use copy::{CopyIn, CopyOut};
pub use rows::Rows;

use crate::command_tag::CommandTag;

/// The result of a statement, or the input that it waits for.
#[derive(Debug)]
pub enum Outcome<'c> {
    /// Rows to be read.
    Rows(Rows<'c>),
    /// The statement is done.
    Done(CommandTag),
    /// `COPY ... FROM STDIN` waits for bytes.
    CopyIn(CopyIn<'c>),
    /// `COPY ... TO STDOUT` has bytes to read.
    CopyOut(CopyOut<'c>),
}
