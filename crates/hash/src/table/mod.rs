//! Cairn's own constant table: one immutable file, built in one pass; a lookup costs two cache
//! misses.
//!
//! Layout: `docs/src/formats/table.md`; rationale: `docs/src/design/table.md`. [`Builder`] writes a
//! table and [`Reader`] looks up keys in it. A published table never changes: new data goes to a
//! new file, or to a delta generation over it (see [`crate::generations`]).

mod assemble;
mod batch;
mod build;
mod compression;
mod fast_path;
mod fill_stats;
mod format;
mod ingest;
mod layout;
mod line;
mod options;
mod pages;
mod place;
mod probe;
mod reader;
mod record;
mod running_sum;
mod scan;
mod source;
mod stats;
mod stream;
mod value;
mod verify;

pub use cairn_codec::compress::Format;

pub use build::{BuildSummary, Builder, Progress, Stage};
pub use fill_stats::Fill;
pub use options::{BuildOptions, Compression, Mode, ReaderOptions, Trust};
pub use reader::Reader;
pub use scan::{Entry, Scan};
pub use stats::TableInfo;
pub use stream::ValueReader;
pub use verify::VerifyReport;

pub(crate) use batch::GROUP;
pub(crate) use build::remove_leftovers;
pub(crate) use format::{word32, word64};
pub use reader::is_table;
pub(crate) use reader::{Found, read_header};
pub(crate) use record::Tag;

#[cfg(test)]
mod tests;
