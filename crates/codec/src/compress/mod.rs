//! Block compression: snappy (raw blocks, no framing) and zstd (one frame a block), with trained
//! dictionaries.
//!
//! A [`Compressor`] and a [`Decompressor`] own the working memory of their algorithm, which costs
//! far more to set up than a small block costs to process: keep them, one a thread.
//! [`Decompressor::local`] lends the calling thread's own.
//!
//! Decompression never trusts a stored length. The caller says how much may come out, and nothing
//! is allocated beyond that or beyond what the compressed bytes could possibly expand to.

mod compressor;
mod decompressor;
mod dictionary;
#[cfg(test)]
mod tests;

pub use compressor::Compressor;
pub use decompressor::{Decompressor, expansion_max};
pub use dictionary::{CompressionDictionary, DecompressionDictionary, Dictionary};

/// How a block is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Stored as it is.
    #[default]
    None,
    /// Snappy: fast both ways, moderate ratio.
    Snappy,
    /// zstd at a level from -7 (fastest) to 22 (smallest). 3 is the library's own default.
    Zstd {
        /// The level; 0 means zstd's default.
        level: i32,
    },
}

/// Which decompressor a block needs: [`Compression`] without what only the writer has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Stored as it is.
    #[default]
    None,
    /// A raw snappy block.
    Snappy,
    /// One zstd frame.
    Zstd,
}

impl Compression {
    /// zstd at its default level, 3.
    pub const ZSTD: Compression = Compression::Zstd { level: 3 };

    /// What a reader needs to know of it.
    pub fn format(self) -> Format {
        match self {
            Compression::None => Format::None,
            Compression::Snappy => Format::Snappy,
            Compression::Zstd { .. } => Format::Zstd,
        }
    }
}

impl Format {
    /// The name for people: `none`, `snappy` or `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Format::None => "none",
            Format::Snappy => "snappy",
            Format::Zstd => "zstd",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
