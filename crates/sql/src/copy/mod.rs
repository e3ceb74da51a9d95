//! Formats of COPY: bytes into rows and rows into bytes. Nothing here knows where bytes come from or go to.
//!
//! PostgreSQL's text, CSV and binary formats are read by a [`Decoder`], which takes bytes in pieces of any size and keeps no more than one row, and written by an
//! [`Encoder`]. Parquet is not a stream: [`ParquetReader`] reads a file where it needs it, and both sides have Arrow's batches.
//!
//! What is not a row is refused as PostgreSQL refuses it, with its words (22P04), and the line.

mod binary;
mod decode;
mod encode;
mod fields;
mod lines;
mod options;
mod parquet;

pub(crate) use decode::{Cell, Decoder, RawRow};
pub(crate) use encode::Encoder;
pub(crate) use options::{Format, Header, Options};
pub(crate) use parquet::{ParquetReader, ParquetWriter};

#[cfg(test)]
mod tests;
