//! Errors of encoded bytes.

/// An error of decoding invalid bytes, or of an encoder with an unsupported request.
///
/// None of these name a file. The caller knows which one the bytes came from and adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable-length integer runs past the end of its bytes.
    #[error("a variable-length integer is cut off after {have} bytes")]
    VarintTruncated {
        /// The number of bytes available.
        have: usize,
    },
    /// A variable-length integer is not in its shortest form or exceeds 64 bits.
    #[error("a variable-length integer is not in its shortest form or exceeds 64 bits")]
    VarintOverlong,
    /// Compressed bytes claim a decompressed size above the caller's limit.
    #[error("a compressed block claims {claimed} bytes, expected at most {limit}")]
    TooLarge {
        /// The claimed length, or 0 where the format does not record it.
        claimed: u64,
        /// The limit set by the caller, or implied by the length of the compressed bytes.
        limit: u64,
    },
    /// Compressed bytes that the decompressor rejects.
    #[error("{format} cannot decompress a block of {len} bytes: {what}")]
    Decompress {
        /// `lz4`, `snappy` or `zstd`.
        format: &'static str,
        /// The length of the compressed bytes.
        len: usize,
        /// The error of the decompressor.
        what: String,
    },
    /// The compressor failed. With valid options this means that memory ran out or the input
    /// exceeds 4 GiB.
    #[error("{format} cannot compress {len} bytes: {what}")]
    Compress {
        /// `lz4`, `snappy` or `zstd`.
        format: &'static str,
        /// The length of the input.
        len: usize,
        /// The error of the compressor.
        what: String,
    },
    /// A dictionary that cannot be trained or loaded.
    #[error("zstd dictionary: {what}")]
    Dictionary {
        /// The reason.
        what: String,
    },
    /// Bytes that are not a filter, or a filter that cannot be built.
    #[error("filter: {what}")]
    Filter {
        /// The problem: found and expected values.
        what: String,
    },
    /// A compression level outside the range that zstd supports.
    #[error("zstd level {level}, expected {min} to {max}")]
    Level {
        /// The requested level.
        level: i32,
        /// The lowest level.
        min: i32,
        /// The highest level.
        max: i32,
    },
}

/// The result of encoding or decoding.
pub type Result<T> = std::result::Result<T, Error>;
