//! What a builder and a reader may be told.

use cairn_codec::compress::Format;
use cairn_vfs::Load;

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are. Lookups borrow them from the map.
    #[default]
    None,
    /// Each by itself with snappy. Finds what repeats within a value, not what values have in
    /// common; faster than zstd both ways.
    Snappy,
    /// Each by itself with zstd and one dictionary, trained on a sample of the values. A lookup
    /// decompresses just its own value, whatever its neighbours.
    Zstd {
        /// zstd's level, 1 to 22. 3 is its default.
        level: i32,
        /// The size of the dictionary in bytes, 256 to 1 MiB; 0 for none. 16 KiB stays in the cache
        /// beside the index.
        dictionary_bytes: u32,
    },
}

impl Compression {
    /// zstd at level 3 with a dictionary of 16 KiB.
    pub fn zstd() -> Self {
        Compression::Zstd { level: 3, dictionary_bytes: 16 * 1024 }
    }

    /// What a reader needs to know of it.
    pub fn format(self) -> Format {
        match self {
            Compression::None => Format::None,
            Compression::Snappy => Format::Snappy,
            Compression::Zstd { .. } => Format::Zstd,
        }
    }
}

/// How to build a table. The default suits a machine with a few GiB to spare.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildOptions {
    pub(crate) compression: Compression,
    pub(crate) memory_bytes: u64,
    pub(crate) threads: usize,
    pub(crate) fill: f64,
    pub(crate) seed: Option<u64>,
    pub(crate) id: Option<u64>,
    pub(crate) parent: u64,
    pub(crate) generation: u64,
    pub(crate) delta: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            compression: Compression::None,
            memory_bytes: 1 << 30,
            threads: cairn_vfs::thread::available_parallelism(),
            fill: 0.76,
            seed: None,
            id: None,
            parent: 0,
            generation: 0,
            delta: false,
        }
    }
}

impl BuildOptions {
    /// The least memory that [`BuildOptions::memory_bytes`] can be.
    pub const MEMORY_BYTES_MIN: u64 = 16 << 20;

    /// How values are stored. Default: as they are.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Memory for records waiting to be sorted, in bytes; what is over goes to a temporary file
    /// beside the table. Default 1 GiB, at least 16 MiB.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Threads that sort and compress. Default: as many as the machine has processors.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Share of the index slots to fill, 0.1 to 0.95. Default 0.76: 3.0 bytes an entry, and one
    /// lookup in a hundred reads the neighbouring line too. More makes the index smaller and such
    /// lookups more frequent: 0.85 is 2.7 bytes and four in a hundred.
    #[must_use]
    pub fn fill(mut self, fill: f64) -> Self {
        self.fill = fill;
        self
    }

    /// The hash seed. Default: random, so that nobody can prepare keys that collide. Equal input,
    /// seed and [`id`](Self::id) give equal bytes, whatever the memory and the threads.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the table a delta over the generation with this id.
    #[must_use]
    pub(crate) fn delta_over(mut self, parent: u64) -> Self {
        (self.delta, self.parent) = (true, parent);
        self
    }

    #[must_use]
    pub(crate) fn generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// The table's id, by which delta generations name their base. Default: random.
    #[must_use]
    pub fn id(mut self, id: u64) -> Self {
        self.id = Some(id);
        self
    }
}

/// How a reader reaches the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Mapped by the kernel and shared with every process that maps it. Fastest to open.
    #[default]
    Mmap,
    /// Copied to memory of its own on huge pages, where the system has them: fewer
    /// address-translation misses.
    Heap,
    /// Index in memory, one positional read for a value. Errors of the device are errors, not
    /// signals; memory is the index and the checksums.
    Pread,
}

/// Whether a reader believes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Every page is checked before anything in it is believed: when it is first touched, with
    /// [`Mode::Heap`] at open, and pages that [`Mode::Pread`] reads each time anew. A damaged one
    /// is an error, never a wrong value.
    #[default]
    Checked,
    /// Nothing but the header is checked. For files that [`Reader::verify`](super::Reader::verify)
    /// has passed.
    Unchecked,
}

/// How to open a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderOptions {
    pub(crate) mode: Mode,
    pub(crate) trust: Trust,
    pub(crate) load: Load,
}

impl ReaderOptions {
    /// How the bytes are reached. Default: mapped.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether pages are checked. Default: [`Trust::Checked`].
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Whether the file is read in, or pinned, at open. Default: neither. What was achieved stands
    /// in [`Reader::load_report`](super::Reader::load_report).
    #[must_use]
    pub fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }
}
