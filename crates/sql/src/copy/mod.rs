//! COPY: decodes rows from bytes and encodes them.
//!
//! PostgreSQL's text, CSV and binary formats are decoded by a [`Decoder`], which takes bytes in
//! pieces of any size and buffers at most one row, and encoded by an [`Encoder`]. Parquet is not a
//! stream: [`ParquetReader`] reads a file at random positions, and both directions work on Arrow's
//! batches. None of these knows the source or target of the bytes; [`Copy`] does.
//!
//! Malformed rows are rejected as in PostgreSQL, with its messages (22P04) and the line.

mod binary;
mod columnar;
mod decode;
mod encode;
mod fields;
mod lines;
mod options;
mod parquet;
mod plan;
mod read;
mod write;

use decode::{Cell, Decoder, RawRow};
use encode::Encoder;
use options::{Format, Header, Options};
use parquet::{ParquetReader, ParquetWriter};

pub(crate) use plan::{Copy, Started};
pub(crate) use read::Reader;
pub(crate) use write::Writer;

#[cfg(test)]
mod tests;
