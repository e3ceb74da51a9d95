//! Options of a log writer, an index builder and a reader.

use cairn_codec::compress::{Compression, Format};
use cairn_vfs::Load;

use super::log_header::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::{Error, Result};

/// How to write a new log. By default it is uncompressed, and a flush hands the data to the kernel
/// without a sync.
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
    /// The smallest accepted block size in bytes; smaller blocks would consist of little but
    /// headers.
    pub const BLOCK_BYTES_MIN: u32 = 16;
    /// The largest accepted block size in bytes.
    pub const BLOCK_BYTES_MAX: u32 = 1 << 30;

    /// Sets how blocks of records are compressed. Default: uncompressed. Sparkey's own writers use
    /// zstd at level 3.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets how many bytes of records are compressed together, 16 bytes to 1 GiB. Default: 4096. A
    /// lookup decompresses a whole block, so larger blocks save space and cost time. Has no effect
    /// without compression.
    #[must_use]
    pub fn block_bytes(mut self, bytes: u32) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Sets the number by which an index recognizes its log. Default: random. Two logs must not
    /// share an identifier, because the index of one could then be used with the other.
    #[must_use]
    pub fn identifier(mut self, identifier: u32) -> Self {
        self.identifier = Some(identifier);
        self
    }

    /// Sets whether a flush returns only after the data is on stable storage. Default: no, as in
    /// Sparkey; after a power loss, the header may then count records that were lost.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Sets whether an existing log and its index are removed first. Default: no; creating a log
    /// over an existing one is an error.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let range = LogOptions::BLOCK_BYTES_MIN..=LogOptions::BLOCK_BYTES_MAX;
        if self.compression.format() != Format::None && !range.contains(&self.block_bytes) {
            let detail = format!("block_bytes is {}, expected {range:?}", self.block_bytes);
            return Err(Error::invalid(detail));
        }
        Ok(())
    }
}

const _: () = assert!(LogOptions::BLOCK_BYTES_MAX <= BLOCK_BYTES_MAX);
const _: () = assert!(LogOptions::BLOCK_BYTES_MIN >= BLOCK_BYTES_MIN);
const _: () = assert!(IndexOptions::SPARSITY_MIN > 1.0, "every put finds a free slot");

/// How many bits of a key's hash each slot of an index stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HashWidth {
    /// 32 bits below 2^23 puts, 64 bits from there on.
    #[default]
    Auto,
    /// 32 bits: smaller, but with many millions of keys more lookups read a second record in vain.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// How an index is built.
///
/// With a memory limit the log is read and not mapped, because the pages of a mapping stay in
/// memory as long as there is free memory. Without a limit it is mapped. Blocks of a compressed log
/// that lookups needed are kept decompressed, in an eighth of the limit and in at most 64 MiB.
///
/// All variants give a valid index. They give equal bytes if no key occurs twice in the log.
/// Otherwise the entries of one home slot may differ in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Construction {
    /// In memory, entry by entry in log order. Needs as much memory as the index has bytes.
    InMemory,
    /// Entries are first sorted by home slot, so that the index can be written from front to back.
    /// The sort uses a temporary file beside the index if memory is short.
    Sorting {
        /// Memory to use, in bytes; at least 64 KiB.
        memory_bytes: u64,
    },
    /// In memory if the index fits, otherwise by sorting.
    Auto {
        /// Memory to use, in bytes; at least 64 KiB.
        memory_bytes: u64,
    },
}

impl Default for Construction {
    /// Returns [`Construction::Auto`] with 1 GiB of memory.
    fn default() -> Self {
        Construction::Auto { memory_bytes: 1 << 30 }
    }
}

/// How to build an index. The defaults are those of sparkey-java.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexOptions {
    pub(super) hash_width: HashWidth,
    pub(super) seed: Option<u32>,
    pub(super) construction: Construction,
    pub(super) sparsity: Option<f64>,
}

impl IndexOptions {
    /// Minimum memory for sorting, in bytes.
    pub const MEMORY_BYTES_MIN: u64 = 64 << 10;
    /// Minimum number of slots per put, as the format requires.
    pub const SPARSITY_MIN: f64 = 1.3;
    /// Maximum number of slots per put; a larger value can only be a mistake.
    pub const SPARSITY_MAX: f64 = 100.0;

    /// Sets how many bits of the hash to store. Default: depends on the number of puts.
    #[must_use]
    pub fn hash_width(mut self, width: HashWidth) -> Self {
        self.hash_width = width;
        self
    }

    /// Sets the seed of the hash function. Default: random, so that nobody can prepare colliding
    /// keys. Equal logs and seeds give equal indexes.
    #[must_use]
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how to build the index. Default: in memory up to 1 GiB, otherwise by sorting.
    #[must_use]
    pub fn construction(mut self, construction: Construction) -> Self {
        self.construction = construction;
        self
    }

    /// Sets the number of slots per put, 1.3 to 100. Default: 1.3, which fills 77 % of the slots. A
    /// higher number makes the index larger and lookups a little faster.
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

/// How a reader accesses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Mapped by the kernel, and shared with every process that maps the file. Fastest to open.
    #[default]
    Mmap,
    /// Copied to private memory, on huge pages where the system has them, which reduces TLB misses.
    Heap,
    /// Positional reads at each lookup. Takes no memory, and device errors become errors instead of
    /// signals.
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
    /// Sets how both files are accessed. Default: mapped.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        self.index_mode(mode).log_mode(mode)
    }

    /// Sets how the index is accessed. Default: mapped.
    #[must_use]
    pub fn index_mode(mut self, mode: Mode) -> Self {
        self.index_mode = mode;
        self
    }

    /// Sets how the log is accessed. Default: mapped.
    #[must_use]
    pub fn log_mode(mut self, mode: Mode) -> Self {
        self.log_mode = mode;
        self
    }

    /// Sets whether the index is loaded or pinned at open. Default: neither.
    #[must_use]
    pub fn index_load(mut self, load: Load) -> Self {
        self.index_load = load;
        self
    }

    /// Sets whether the log is loaded or pinned at open. Default: neither.
    #[must_use]
    pub fn log_load(mut self, load: Load) -> Self {
        self.log_load = load;
        self
    }

    /// Sets the memory for decompressed blocks of a compressed log. Default: 64 MiB; 0 disables the
    /// cache. Blocks stay until the reader is dropped; blocks that do not fit are decompressed at
    /// each lookup.
    #[must_use]
    pub fn block_cache_bytes(mut self, bytes: u64) -> Self {
        self.block_cache_bytes = bytes;
        self
    }

    /// Sets whether a lookup that finds nothing reads the record of every slot that it passed, and
    /// reports an error if the key of the record does not have the hash of the slot. Default: no. A
    /// damaged slot may then make its key seem absent, if the damaged hash still fits the place of
    /// the slot. Costs a cache miss per slot, three in total on average, and nothing if the key is
    /// found.
    #[must_use]
    pub fn check_absent(mut self, check: bool) -> Self {
        self.check_absent = check;
        self
    }
}
