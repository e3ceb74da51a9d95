//! What can be wrong with encoded bytes.

/// Bytes that do not decode, or an encoder that was asked for something it cannot do.
///
/// None of these name a file: the caller knows which one the bytes came from and adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable-length integer runs past the end of its bytes.
    #[error("a variable-length integer is cut off after {have} bytes")]
    VarintTruncated {
        /// How many bytes there were.
        have: usize,
    },
    /// A variable-length integer is longer than its value needs, or does not fit 64 bits.
    #[error("a variable-length integer is not in its shortest form or exceeds 64 bits")]
    VarintOverlong,
    /// Compressed bytes say that they decompress to more than the caller allows.
    #[error("a compressed block claims {claimed} bytes, expected at most {limit}")]
    TooLarge {
        /// The length that the block claims, or 0 where the format does not tell.
        claimed: u64,
        /// The most that the caller, or the length of the compressed bytes, allows.
        limit: u64,
    },
    /// Compressed bytes that the decompressor rejects.
    #[error("{format} cannot decompress a block of {len} bytes: {what}")]
    Decompress {
        /// `lz4`, `snappy` or `zstd`.
        format: &'static str,
        /// The length of the compressed bytes.
        len: usize,
        /// What the decompressor says.
        what: String,
    },
    /// The compressor failed. With sound options this means that memory ran out or the input is
    /// over 4 GiB.
    #[error("{format} cannot compress {len} bytes: {what}")]
    Compress {
        /// `lz4`, `snappy` or `zstd`.
        format: &'static str,
        /// The length of the input.
        len: usize,
        /// What the compressor says.
        what: String,
    },
    /// A dictionary that cannot be trained or loaded.
    #[error("zstd dictionary: {what}")]
    Dictionary {
        /// Why.
        what: String,
    },
    /// Bytes that are not a filter, or a filter that nobody can build.
    #[error("filter: {what}")]
    Filter {
        /// What was found and what was expected.
        what: String,
    },
    /// A compression level outside the range that zstd knows.
    #[error("zstd level {level}, expected {min} to {max}")]
    Level {
        /// The level asked for.
        level: i32,
        /// The lowest level.
        min: i32,
        /// The highest level.
        max: i32,
    },
}

/// The result of encoding or decoding.
pub type Result<T> = std::result::Result<T, Error>;
