//! Packed leaves: leaves whose records are split into columns, each encoded as compactly as its
//! values allow.
//!
//! ```text
//!   0    as in every node (node.rs): kind 5, level 0, number of records;
//!        at 4 start of the fences u16; at 6 end of the packed part u16; at 8 zero;
//!        the fences at 10 and 14; at 18 zero
//!   20   number of streams u8 | form of the lead u8: 0 none, 1 a length u16, 2 a length u16 and as
//!        many bytes | form of the keys u8 | 0
//!   24   keys, 32 bytes:
//!          form 0, words:  0 length of each key u16     2 a key u16
//!                          4 number of positions u8
//!                          5 bits of high words u8      6 bits of low words u8
//!                          8 low words u16              10 high words u16
//!                          12 positions u16
//!                          16 lowest low word u64       24 lowest high word u64
//!          form 1, bytes:  0 length of the prefix u16   2 the prefix u16
//!                          6 bits of ends u8            8 ends u16
//!                          14 bytes after the prefix u16
//!                          16 slope of ends u32         20 base of ends i32
//!   56   streams, 24 bytes each:
//!          0   width u8: 0 bytes; 1, 2, 4, 8 a number; 16 the low half of a 16-byte number,
//!              17 the high half that belongs to the stream before
//!          1   form u8
//!          2   bits u8
//!          4   packed numbers u16
//!          6   NULL bits u16: 0 no value is NULL, ffff all are
//!          8   base i64, or slope u32 and base i32 of ends
//!          16  heap u16
//!          18  length of the heap, or number of dictionary values u16
//!          20  table u16
//!        the data that these offsets point to
//!        free, at least 8 bytes
//!        fences
//!
//!   numbers, form 0    base + packed number
//!            form 1    the packed number is an index into the heap of values, 8 bytes each
//!   bytes,   form 2    in the heap, back to back; the packed numbers give the end of each
//!            form 3    the packed number is an index of a value in the heap; the table has the
//!                      ends of the values, u16 each
//!            form 4    as form 2, but codes: 255 stands for the byte after it, others for a symbol
//!                      of the table
//!            symbols   number of symbols of 1, 2, ... 8 bytes, u8 each
//!                      | those of 1 byte | those of 2 bytes | ...
//!
//!   packed number      a fixed number of bits, lowest first, without gaps: 0 to 56, or 64
//!   end of the n-th    base + ((n + 1) * slope >> 8) + packed number
//! ```
//!
//! Numbers are little endian, and a place is an offset in the page. The data of the keys comes
//! first, then the data of each stream in order, so that some can be read without the others. The
//! *words* of a key are its bytes at the positions in which the keys of the page differ, as
//! big-endian numbers: the last eight bytes are the low word, and up to eight before them the high
//! word. The *lead* of a record is what precedes its columns after the flags. Records are rows and
//! index entries as described in `catalog/table.rs`. A leaf with ghosts, long rows or wide rows is
//! not packed.
//!
//! Reconstruction returns exactly the original bytes, from the page alone, so the layers above see
//! no difference. The idea is that of HyPer's Data Blocks (Lang et al., SIGMOD 2016); symbols are
//! those of FSST (Boncz, Neumann, Leis, VLDB 2020).

mod bits;
mod columns;
mod copy_columns;
mod forms;
pub mod fuzz;
mod keys;
mod pack;
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

/// Number of records that are reconstructed at once if the number wanted is unknown.
pub(crate) const CHUNK: usize = 64;

/// The node kind of a packed leaf.
pub(crate) const PACKED: u8 = 5;

const END: usize = 6;
const STREAMS: usize = 20;
const KEYS: usize = 24;
const HEADER: usize = 56;
const STREAM: usize = 24;
/// The number of streams, the keys and the streams follow one another.
const _: () = assert!(STREAMS + size_of::<u32>() == KEYS && KEYS + 4 * size_of::<u64>() == HEADER);
const _: () = assert!(STREAM == 3 * size_of::<u64>() && END + size_of::<u16>() <= STREAMS);

/// Number of bytes after the packed part that reads of its last bytes may touch.
pub(crate) const SLACK: usize = 8;
const _: () = assert!(SLACK == size_of::<u64>());

/// Widths of streams that are not widths of columns.
const BYTES: u8 = 0;
const LOW: u8 = 16;
const HIGH: u8 = 17;

/// Forms of streams.
const NUMBERS: u8 = 0;
const VALUES: u8 = 1;
const PLAIN: u8 = 2;
const TEXTS: u8 = 3;
const CODES: u8 = 4;
/// No form is taken for another, and no half of a number for a column of its own.
const _: () = assert!(NUMBERS < VALUES && VALUES < PLAIN && PLAIN < TEXTS && TEXTS < CODES);
const _: () = assert!(BYTES < LOW && LOW + 1 == HIGH);

/// Values of the NULL bits' offset for a stream without NULLs, or of NULLs only.
const NO_NULLS: u16 = 0;
const ALL_NULL: u16 = u16::MAX;
/// Neither is a place of NULL bits, which come after the header and before the end of a page.
const _: () = assert!((NO_NULLS as usize) < HEADER && ALL_NULL as usize >= (64 << 10) - SLACK);

/// The code that precedes a byte without a symbol.
const ESCAPE: u8 = 255;
/// Codes of symbols are below it.
const _: () = assert!(ESCAPE == u8::MAX);

#[cfg(test)]
mod tests;
