//! Cairn's reader and writer of Sparkey files.

use std::path::Path;

use cairn_hash::sparkey::{
    Compression as Sparkey, IndexOptions, LogOptions, LogWriter, Mode, ReaderOptions, SparkeyReader,
    build_index, index_path,
};
use cairn_vfs::{Fs, StdFs};

use super::cairn_hash::CairnReader;
use super::{Built, Compression, ConstantReader, ConstantStore, Variant};
use crate::core::error::Result;
use crate::core::settings::{Settings, settings};
use crate::core::workload::Dataset;

/// Name of the store.
pub const NAME: &str = "cairn-sparkey";

/// Block size of compressed logs in bytes, the same as for Sparkey's Java library.
pub const BLOCK_BYTES: u32 = 4096;
const FILE: &str = "data.spl";

/// The ways to open a file, in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    Mmap,
    Heap,
    Pread,
    Uncached,
}

const WAYS: [ReadMode; 4] = [ReadMode::Mmap, ReadMode::Heap, ReadMode::Pread, ReadMode::Uncached];

impl ReadMode {
    fn variant(self) -> Variant {
        let (way, pairs, compressed): (_, &[(&str, &str)], _) = match self {
            ReadMode::Mmap => ("mmap", &[("mode", "mmap"), ("block cache", "64 MiB where compressed")], None),
            ReadMode::Heap => ("heap", &[("mode", "heap, on huge pages where there are any")], Some(false)),
            ReadMode::Pread => ("pread", &[("mode", "pread")], Some(false)),
            // Comparable with Sparkey, which caches no blocks.
            ReadMode::Uncached => ("mmap uncached", &[("mode", "mmap"), ("block cache", "none")], Some(true)),
        };
        let settings = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Variant {
            name: format!("{NAME} {way}"),
            settings,
            batched: true,
            loads_at_open: self == ReadMode::Heap,
            compressed,
        }
    }

    fn options(self) -> ReaderOptions {
        let options = ReaderOptions::default();
        match self {
            ReadMode::Mmap => options.mode(Mode::Mmap),
            ReadMode::Heap => options.mode(Mode::Heap),
            ReadMode::Pread => options.mode(Mode::Pread),
            ReadMode::Uncached => options.mode(Mode::Mmap).block_cache_bytes(0),
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
        WAYS.into_iter().map(ReadMode::variant).collect()
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
        let way = WAYS.get(variant).copied().unwrap_or(ReadMode::Mmap);
        let reader = SparkeyReader::open(dir.join(FILE), &way.options())?;
        // If the value must be copied or decompressed anyway, a reused buffer saves an allocation.
        let borrows = matches!(way, ReadMode::Mmap | ReadMode::Heap);
        Ok(Box::new(CairnReader { reader, borrows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: Cairn's Sparkey files answer correctly in every compression and mode.
    #[test]
    fn answers_right() {
        crate::stores::testing::check_store(&CairnSparkey);
    }
}
