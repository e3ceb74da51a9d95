//! Cairn's reader and writer of Sparkey files.

use std::path::Path;

use cairn_hash::sparkey::{
    Compression as Sparkey, IndexOptions, LogOptions, LogWriter, Mode, ReaderOptions, SparkeyReader,
    build_index, index_path,
};
use cairn_vfs::{Fs, StdFs};

use super::cairn::CairnReader;
use super::{Built, Compression, ConstantReader, ConstantStore, Settings, Variant, settings};
use crate::error::Result;
use crate::workload::Dataset;

/// Name of the store.
pub const NAME: &str = "cairn-sparkey";

/// Block size of compressed logs in bytes, the same as for Sparkey's Java library.
pub const BLOCK_BYTES: u32 = 4096;
const FILE: &str = "data.spl";

/// The ways to open a file, in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Mmap,
    Heap,
    Pread,
    Uncached,
}

const WAYS: [Way; 4] = [Way::Mmap, Way::Heap, Way::Pread, Way::Uncached];

impl Way {
    fn variant(self) -> Variant {
        let (way, pairs, compressed): (_, &[(&str, &str)], _) = match self {
            Way::Mmap => ("mmap", &[("mode", "mmap"), ("block cache", "64 MiB where compressed")], None),
            Way::Heap => ("heap", &[("mode", "heap, on huge pages where there are any")], Some(false)),
            Way::Pread => ("pread", &[("mode", "pread")], Some(false)),
            // Comparable with Sparkey, which caches no blocks.
            Way::Uncached => ("mmap uncached", &[("mode", "mmap"), ("block cache", "none")], Some(true)),
        };
        let settings = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Variant {
            name: format!("{NAME} {way}"),
            settings,
            batched: true,
            loads_at_open: self == Way::Heap,
            compressed,
        }
    }

    fn options(self) -> ReaderOptions {
        let options = ReaderOptions::default();
        match self {
            Way::Mmap => options.mode(Mode::Mmap),
            Way::Heap => options.mode(Mode::Heap),
            Way::Pread => options.mode(Mode::Pread),
            Way::Uncached => options.mode(Mode::Mmap).block_cache_bytes(0),
        }
    }
}

/// Sparkey's format through `cairn_hash::sparkey`.
#[derive(Debug, Default)]
pub struct CairnSparkey;

impl ConstantStore for CairnSparkey {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn ours(&self) -> bool {
        true
    }

    fn build_settings(&self) -> Settings {
        settings([
            ("construction", "in memory up to 1 GiB"),
            ("block size", "4096 where compressed"),
            ("zstd level", "3"),
            ("durability", "sync"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        WAYS.into_iter().map(Way::variant).collect()
    }

    fn supports(&self, _: Compression) -> bool {
        true
    }

    fn build(&self, dir: &Path, data: &Dataset, compression: Compression) -> Result<Built> {
        let path = dir.join(FILE);
        let compression = match compression {
            Compression::None => Sparkey::None,
            Compression::Snappy => Sparkey::Snappy,
            Compression::Zstd => Sparkey::ZSTD,
        };
        let options = LogOptions::default().compression(compression).block_bytes(BLOCK_BYTES).sync(true);
        let mut log = LogWriter::create(&path, &options)?;
        for (key, value) in data.iter() {
            log.put(key, value)?;
        }
        log.close()?;
        build_index(&path, &IndexOptions::default())?;
        Ok(Built { index_bytes: Some(StdFs::new().metadata(&index_path(&path))?.len) })
    }

    fn open(&self, dir: &Path, variant: usize) -> Result<Box<dyn ConstantReader>> {
        let way = WAYS.get(variant).copied().unwrap_or(Way::Mmap);
        let reader = SparkeyReader::open(dir.join(FILE), &way.options())?;
        // If the value must be copied or decompressed anyway, a reused buffer saves an allocation.
        let borrows = matches!(way, Way::Mmap | Way::Heap);
        Ok(Box::new(CairnReader { reader, borrows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: Cairn's Sparkey files answer correctly in every compression and mode.
    #[test]
    fn answers_right() {
        crate::engine::testing::check_store(&CairnSparkey);
    }
}
