//! Block compression: snappy (raw blocks, no framing) and zstd (one frame per block), with trained
//! dictionaries.
//!
//! A [`Compressor`] and a [`Decompressor`] own the working memory of their algorithm, which costs
//! far more to set up than a small block costs to process. So keep one of each per thread.
//! [`Decompressor::local`] lends the calling thread's own.
//!
//! Decompression never trusts a stored length. The caller limits the output, and nothing is
//! allocated beyond that limit or beyond the maximum expansion of the compressed bytes.

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
    /// Stored uncompressed.
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

/// The decompressor that a block needs: a [`Compression`] without the settings that only the writer
/// needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Stored uncompressed.
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

    /// Returns the format of its blocks, which is all a reader needs to know.
    pub fn format(self) -> Format {
        match self {
            Compression::None => Format::None,
            Compression::Snappy => Format::Snappy,
            Compression::Zstd { .. } => Format::Zstd,
        }
    }
}

impl Format {
    /// Returns the name for display: `none`, `snappy` or `zstd`.
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
