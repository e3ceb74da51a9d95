//! What a writer, an index builder and a reader may be told.

use cairn_codec::compress::{Compression, Format};
use cairn_vfs::Load;

use super::log_header::BLOCK_BYTES_MAX;
use crate::{Error, Result};

/// How to write a new log. The default is uncompressed, handed to the kernel at each flush.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    pub(super) compression: Compression,
    pub(super) block_bytes: u32,
    pub(super) identifier: Option<u32>,
    pub(super) sync: bool,
    pub(super) replace: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            compression: Compression::None,
            block_bytes: 4096,
            identifier: None,
            sync: false,
            replace: false,
        }
    }
}

impl LogOptions {
    /// The smallest block that can be asked for, in bytes; smaller ones would be nothing but
    /// headers.
    pub const BLOCK_BYTES_MIN: u32 = 16;
    /// The largest block that can be asked for, in bytes.
    pub const BLOCK_BYTES_MAX: u32 = 1 << 30;

    /// How blocks of records are compressed. Default: not at all. Sparkey's own writers use zstd at
    /// level 3.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Records of this many bytes are compressed together, 16 bytes to 1 GiB. Default 4096: a
    /// lookup decompresses a whole block, so larger ones save space and cost time. Means nothing
    /// without compression.
    #[must_use]
    pub fn block_bytes(mut self, bytes: u32) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// The number by which an index knows its log. Default: random. Two logs must not share one, or
    /// the index of one could be used with the other.
    #[must_use]
    pub fn identifier(mut self, identifier: u32) -> Self {
        self.identifier = Some(identifier);
        self
    }

    /// Whether a flush returns only when the data is on stable storage. Default: no, as with
    /// Sparkey; a power loss can then leave a header that counts data which is not there.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Whether an existing log, and its index, are removed first. Default: no, creating over a log
    /// is an error.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let range = LogOptions::BLOCK_BYTES_MIN..=LogOptions::BLOCK_BYTES_MAX;
        if self.compression.format() != Format::None && !range.contains(&self.block_bytes) {
            let what = format!("block_bytes is {}, expected {range:?}", self.block_bytes);
            return Err(Error::invalid(what));
        }
        Ok(())
    }
}

const _: () = assert!(LogOptions::BLOCK_BYTES_MAX <= BLOCK_BYTES_MAX);

/// How many bits of a key's hash a slot of an index keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HashWidth {
    /// 32 below 2^23 puts, 64 from there on.
    #[default]
    Auto,
    /// 32 bits: smaller, but with many millions of keys more lookups read a second record in vain.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// How an index is built.
///
/// With a limit the log is read, without one it is mapped: pages of a mapping stay in memory for as
/// long as there is any. Of a compressed log the last blocks that were needed again are kept
/// decompressed, in an eighth of the limit and in at most 64 MiB.
///
/// Both ways give a sound index, and equal bytes when no key occurs twice in the log. Else entries
/// of one home slot may stand in another order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Construction {
    /// In memory, entry by entry in the order of the log. Takes as much memory as the index has
    /// bytes.
    InMemory,
    /// Entries are first sorted by home slot, in a temporary file beside the index when memory is
    /// short, so that the index can be written from front to back.
    Sorting {
        /// Memory to use, in bytes; at least 64 KiB.
        memory_bytes: u64,
    },
    /// In memory when the index fits, else by sorting.
    Auto {
        /// Memory to use, in bytes; at least 64 KiB.
        memory_bytes: u64,
    },
}

impl Default for Construction {
    /// Up to 1 GiB of memory.
    fn default() -> Self {
        Construction::Auto { memory_bytes: 1 << 30 }
    }
}

/// How to build an index. The default is what sparkey-java builds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexOptions {
    pub(super) hash_width: HashWidth,
    pub(super) seed: Option<u32>,
    pub(super) construction: Construction,
    pub(super) sparsity: Option<f64>,
}

impl IndexOptions {
    /// Memory that sorting needs at least.
    pub const MEMORY_BYTES_MIN: u64 = 64 << 10;
    /// Slots per put: the least, as the format wants it.
    pub const SPARSITY_MIN: f64 = 1.3;
    /// Slots per put: more would be a mistake.
    pub const SPARSITY_MAX: f64 = 100.0;

    /// How many bits of the hash to keep. Default: by the number of puts.
    #[must_use]
    pub fn hash_width(mut self, width: HashWidth) -> Self {
        self.hash_width = width;
        self
    }

    /// The seed of the hash function. Default: random, so that nobody can prepare keys that
    /// collide. Equal logs and seeds give equal indexes.
    #[must_use]
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How to build it. Default: in memory up to 1 GiB, else by sorting.
    #[must_use]
    pub fn construction(mut self, construction: Construction) -> Self {
        self.construction = construction;
        self
    }

    /// Slots per put, 1.3 to 100. Default 1.3: full to 77 %. More makes the index larger and
    /// lookups a little faster.
    #[must_use]
    pub fn sparsity(mut self, sparsity: f64) -> Self {
        self.sparsity = Some(sparsity);
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let range = IndexOptions::SPARSITY_MIN..=IndexOptions::SPARSITY_MAX;
        if let Some(sparsity) = self.sparsity
            && !range.contains(&sparsity)
        {
            return Err(Error::invalid(format!("sparsity is {sparsity}, expected {range:?}")));
        }
        match self.construction {
            Construction::Sorting { memory_bytes } | Construction::Auto { memory_bytes }
                if memory_bytes < IndexOptions::MEMORY_BYTES_MIN =>
            {
                let least = IndexOptions::MEMORY_BYTES_MIN;
                Err(Error::invalid(format!("memory_bytes is {memory_bytes}, expected at least {least}")))
            }
            _ => Ok(()),
        }
    }
}

/// How a reader reaches the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Mapped by the kernel and shared with every process that maps it. Fastest to open.
    #[default]
    Mmap,
    /// Copied to memory of its own, on huge pages where the system has them: fewer
    /// address-translation misses.
    Heap,
    /// Positional reads at each lookup. Takes no memory, and an error of the device is an error,
    /// not a signal.
    Pread,
}

/// How to open an index and its log. The default maps both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderOptions {
    pub(super) index_mode: Mode,
    pub(super) log_mode: Mode,
    pub(super) index_load: Load,
    pub(super) log_load: Load,
    pub(super) block_cache_bytes: u64,
    pub(super) check_absent: bool,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        ReaderOptions {
            index_mode: Mode::Mmap,
            log_mode: Mode::Mmap,
            index_load: Load::None,
            log_load: Load::None,
            block_cache_bytes: 64 << 20,
            check_absent: false,
        }
    }
}

impl ReaderOptions {
    /// How both files are reached. Default: mapped.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        self.index_mode(mode).log_mode(mode)
    }

    /// How the index is reached. Default: mapped.
    #[must_use]
    pub fn index_mode(mut self, mode: Mode) -> Self {
        self.index_mode = mode;
        self
    }

    /// How the log is reached. Default: mapped.
    #[must_use]
    pub fn log_mode(mut self, mode: Mode) -> Self {
        self.log_mode = mode;
        self
    }

    /// Whether the index is read in, or pinned, at open. Default: neither.
    #[must_use]
    pub fn index_load(mut self, load: Load) -> Self {
        self.index_load = load;
        self
    }

    /// Whether the log is read in, or pinned, at open. Default: neither.
    #[must_use]
    pub fn log_load(mut self, load: Load) -> Self {
        self.log_load = load;
        self
    }

    /// Memory for decompressed blocks of a compressed log. Default 64 MiB; 0 keeps none. Blocks
    /// stay until the reader is dropped: what does not fit is decompressed at each lookup.
    #[must_use]
    pub fn block_cache_bytes(mut self, bytes: u64) -> Self {
        self.block_cache_bytes = bytes;
        self
    }

    /// Whether a lookup that finds nothing reads the record behind every slot that it passed, and
    /// says so when its key does not have the slot's hash. Default: no; a damaged slot then may
    /// make its key absent, where its hash still fits the place. Costs a cache miss a slot, three
    /// in all on average, and nothing where the key is found.
    #[must_use]
    pub fn check_absent(mut self, check: bool) -> Self {
        self.check_absent = check;
        self
    }
}
