//! Cairn reading and writing Sparkey's files.

use std::path::Path;

use cairn_hash::sparkey::{
    Compression as Sparkey, IndexOptions, LogOptions, LogWriter, Mode, ReaderOptions, SparkeyReader,
    build_index, index_path,
};
use cairn_vfs::{Fs, StdFs};

use super::lookups::{Lookups, in_batches};
use super::{Built, Compression, ConstantReader, ConstantStore, Session, Settings, Variant, settings};
use crate::error::Result;
use crate::peers::sparkey_java::BLOCK_BYTES;
use crate::workload::{Dataset, KeyBatch};

const NAME: &str = "cairn-sparkey";
const FILE: &str = "data.spl";

/// Keys in one call of `get_many`.
const BATCH_KEYS: usize = 256;

/// The ways to open, in the order of the variants.
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
            // The figure to hold against Sparkey's, which keeps no blocks.
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

    fn family(&self) -> &str {
        "cairn-sparkey"
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
        // Where the value has to be copied or unpacked anyway, a buffer that is kept spares an allocation.
        let borrows = matches!(way, Way::Mmap | Way::Heap);
        Ok(Box::new(Reader { reader, borrows }))
    }
}

struct Reader {
    reader: SparkeyReader,
    borrows: bool,
}

impl ConstantReader for Reader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(if self.borrows {
            Box::new(Borrowing(&self.reader))
        } else {
            Box::new(Copying { reader: &self.reader, value: Vec::new() })
        })
    }
}

struct Borrowing<'a>(&'a SparkeyReader);

impl Lookups for Borrowing<'_> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            visit(self.0.get(key)?.as_deref());
        }
        Ok(())
    }

    fn each_batched(
        &mut self,
        keys: KeyBatch<'_>,
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        in_batches(keys, BATCH_KEYS, |first, keys| {
            Ok(self.0.get_many(keys, |position, value| visit(first + position, value))?)
        })
    }
}

struct Copying<'a> {
    reader: &'a SparkeyReader,
    value: Vec<u8>,
}

impl Lookups for Copying<'_> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            let found = self.reader.get_into(key, &mut self.value)?;
            visit(found.then_some(self.value.as_slice()));
        }
        Ok(())
    }

    fn each_batched(
        &mut self,
        keys: KeyBatch<'_>,
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        in_batches(keys, BATCH_KEYS, |first, keys| {
            Ok(self.reader.get_many(keys, |position, value| visit(first + position, value))?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: Cairn's Sparkey files answer right in every compression and mode.
    #[test]
    fn answers_right() {
        crate::engine::testing::check_store(&CairnSparkey);
    }
}
