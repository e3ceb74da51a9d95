//! Packed leaves: a leaf whose records are taken apart into columns, each written as small as its
//! values allow.
//!
//! ```text
//!   0      as of every node (node.rs): kind 5, level 0, records; at 4 where the fences begin u16; at 6 where the packed part ends u16; at 8 zero;
//!          the fences at 10 and 14; at 18 zero
//!   20     streams u8 | what records begin with u8: 0 nothing, 1 a length u16, 2 a length u16 and as many bytes | form of the keys u8 | 0
//!   24     keys, 32 bytes:
//!            form 0, words    0 length of each key u16     2 a key u16     4 positions u8    5 bits of high words u8   6 bits of low words u8
//!                             8 low words u16             10 high words u16              12 positions u16           16 lowest low word u64   24 lowest high word u64
//!            form 1, bytes    0 length of the prefix u16   2 the prefix u16                   6 bits of ends u8         8 ends u16
//!                            14 the bytes behind it u16   16 slope of ends u32           20 base of ends i32
//!   56     streams, 24 bytes each:
//!            0 width u8: 0 bytes, 1, 2, 4, 8 a number, 16 the low half of one of 16 bytes, 17 the high half of the one before
//!            1 form u8     2 bits u8     4 packed numbers u16     6 NULL bits u16: 0 none is NULL, ffff all are
//!            8 base i64, or slope u32 and base i32 of ends     16 heap u16     18 length of the heap, or how many values u16     20 table u16
//!          what they point to
//!          free, 8 bytes at least
//!          fences
//!
//!   numbers, form 0    base + packed number
//!            form 1    the packed number says which of the values in the heap, 8 bytes each
//!   bytes,   form 2    in the heap, one after the other; the packed numbers say where each ends
//!            form 3    the packed number says which of the values in the heap; where they end is in the table, u16 each
//!            form 4    as form 2, of codes: 255 and the byte after it stand for that byte, others for a symbol of the table
//!            symbols   how many of 1, 2, ... 8 bytes there are, u8 each | those of 1 byte | those of 2 bytes | ...
//!
//!   packed number      so many bits each, the lowest first, without gaps: 0 to 56, or 64
//!   end of the n-th    base + ((n + 1) * slope >> 8) + packed number
//! ```
//!
//! Little endian; a place is an offset in the page. What the keys have comes first, then what each
//! stream has, in their order, so that some can be read without the others. A key's *words* are its
//! bytes at the positions in which keys of the page differ, as big-endian numbers: the last eight
//! are the low word, up to eight before them the high one. Records are rows and entries of indexes
//! as `catalog/table.rs` has them; a leaf with ghosts, long or wide rows is not packed.
//!
//! What is taken apart comes together to the same bytes, from the page alone: nobody above knows
//! the difference. The idea is that of HyPer's Data Blocks (Lang et al., SIGMOD 2016); symbols are
//! those of FSST (Boncz, Neumann, Leis, VLDB 2020).

mod bits;
mod columns;
mod forms;
pub mod fuzz;
mod keys;
mod pack;
mod partial;
mod plan;
mod read;
mod repack;
mod select;
mod symbols;
mod unpacked;
mod write;

pub(crate) use columns::Column;
pub use forms::StreamForm;
pub(crate) use pack::{Layout, Lead, Packer};
pub(crate) use read::{ColumnSet, Packed};
pub(crate) use unpacked::Unpacked;

/// As many records are put together at once where nobody knows how many are wanted.
pub(crate) const CHUNK: usize = 64;

/// The kind of a packed leaf.
pub(crate) const PACKED: u8 = 5;

const END: usize = 6;
const STREAMS: usize = 20;
const KEYS: usize = 24;
const HEADER: usize = 56;
const STREAM: usize = 24;

/// Bytes behind the packed part that are there to be read with it.
pub(crate) const SLACK: usize = 8;

/// Widths of streams that are no widths of columns.
const BYTES: u8 = 0;
const LOW: u8 = 16;
const HIGH: u8 = 17;

/// Forms of streams.
const NUMBERS: u8 = 0;
const VALUES: u8 = 1;
const PLAIN: u8 = 2;
const TEXTS: u8 = 3;
const CODES: u8 = 4;

/// No value of a stream is NULL, or all are.
const NO_NULLS: u16 = 0;
const ALL_NULL: u16 = u16::MAX;

/// The code before a byte that is no symbol.
const ESCAPE: u8 = 255;

#[cfg(test)]
mod tests;
