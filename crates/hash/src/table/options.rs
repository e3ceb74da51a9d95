//! Options of a builder and of a reader.

use cairn_codec::compress::Format;
use cairn_vfs::Load;

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Uncompressed. Lookups borrow values from the map.
    #[default]
    None,
    /// Each value by itself with snappy. Exploits repetition within a value, but not similarity
    /// between values; compresses and decompresses faster than zstd.
    Snappy,
    /// Each value by itself with zstd and one dictionary, which is trained on a sample of the
    /// values. A lookup decompresses only its own value.
    Zstd {
        /// The compression level of zstd, 1 to 22. Its default is 3.
        level: i32,
        /// The size of the dictionary in bytes, 256 to 1 MiB; 0 for none. A dictionary of 16 KiB
        /// stays in the processor's cache together with the index.
        dictionary_bytes: u32,
    },
}

impl Compression {
    /// Returns zstd at level 3 with a dictionary of 16 KiB.
    pub fn zstd() -> Self {
        Compression::Zstd { level: 3, dictionary_bytes: 16 * 1024 }
    }

    /// Returns the compression format, which is all that a reader needs to know.
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
    /// The minimum of [`BuildOptions::memory_bytes`].
    pub const MEMORY_BYTES_MIN: u64 = 16 << 20;

    /// Sets how values are stored. Default: uncompressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the memory for records that wait to be sorted, in bytes. Records beyond it go to a
    /// spill file beside the table. Default: 1 GiB; minimum: 16 MiB.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Sets the number of threads that sort and compress. Default: the number of processors.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the share of index slots to fill, 0.1 to 0.95. At the default of 0.76 the index takes
    /// 3.0 bytes per entry, and one lookup in a hundred also reads the neighbouring line. A higher
    /// share makes the index smaller and such lookups more frequent: 0.85 takes 2.7 bytes, and four
    /// lookups in a hundred read two lines.
    #[must_use]
    pub fn fill(mut self, fill: f64) -> Self {
        self.fill = fill;
        self
    }

    /// Sets the hash seed. Default: random, so that nobody can prepare colliding keys. Equal input,
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

    /// Sets the id of the table, by which delta generations refer to it. Default: random.
    #[must_use]
    pub fn id(mut self, id: u64) -> Self {
        self.id = Some(id);
        self
    }
}

/// How a reader accesses the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Mapped by the kernel, and shared with every process that maps the file. Fastest to open.
    #[default]
    Mmap,
    /// Copied to private memory, on huge pages where the system has them, which reduces TLB misses.
    Heap,
    /// Index in memory; one positional read per value. Device errors become errors instead of
    /// signals. Memory holds only the index and the checksums.
    Pread,
}

/// Whether a reader verifies the checksums of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Every page is verified before its content is used: when it is first touched; with
    /// [`Mode::Heap`] at open; with [`Mode::Pread`] on each read, for the pages that are read from
    /// the file. A damaged page causes an error, never a wrong value.
    #[default]
    Checked,
    /// Only the header is verified. For files that [`Reader::verify`](super::Reader::verify) has
    /// passed.
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
    /// Sets how the reader accesses the file. Default: mapped.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether pages are verified. Default: [`Trust::Checked`].
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets whether the file is loaded or pinned at open. Default: neither.
    /// [`Reader::load_report`](super::Reader::load_report) tells how much of it was achieved.
    #[must_use]
    pub fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }
}
