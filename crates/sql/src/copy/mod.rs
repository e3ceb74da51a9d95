//! COPY: rows from bytes and into them.
//!
//! PostgreSQL's text, CSV and binary formats are read by a [`Decoder`], which takes bytes in pieces
//! of any size and keeps no more than one row, and written by an [`Encoder`]. Parquet is not a
//! stream: [`ParquetReader`] reads a file where it needs it, and both sides have Arrow's batches.
//! None of these knows where bytes come from or go to; [`Copy`] does.
//!
//! What is not a row is refused as PostgreSQL refuses it, with its words (22P04), and the line.

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

pub(crate) use options::HEADER_MATCH;
pub(crate) use plan::{Copy, Started};
pub(crate) use read::Reader;
pub(crate) use write::Writer;

#[cfg(test)]
mod tests;
