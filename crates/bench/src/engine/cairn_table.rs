//! Cairn's own format.

use std::path::Path;

use cairn_hash::table::{self, BuildOptions, Builder, Mode, Reader, ReaderOptions};

use super::lookups::{Lookups, in_batches};
use super::{Built, Compression, ConstantReader, ConstantStore, Session, Settings, Variant, settings};
use crate::error::Result;
use crate::workload::{Dataset, KeyBatch};

const NAME: &str = "cairn";
const FILE: &str = "data.cairn";

/// Keys in one call of `get_many`.
const BATCH_KEYS: usize = 256;

const MODES: [Mode; 3] = [Mode::Mmap, Mode::Heap, Mode::Pread];

/// The table of `cairn_hash::table`.
#[derive(Debug, Default)]
pub struct CairnTable;

fn variant(mode: Mode) -> Variant {
    let (way, description) = match mode {
        Mode::Mmap => ("mmap", "mmap"),
        Mode::Heap => ("heap", "heap, on huge pages where there are any"),
        Mode::Pread => ("pread", "index in memory, pread for values"),
    };
    Variant {
        name: format!("{NAME} {way}"),
        settings: settings([("mode", description), ("checksums", "each page when first touched")]),
        batched: true,
        loads_at_open: mode == Mode::Heap,
        compressed: if mode == Mode::Pread { Some(false) } else { None },
    }
}

impl ConstantStore for CairnTable {
    fn name(&self) -> &str {
        NAME
    }

    fn family(&self) -> &str {
        "cairn"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn ours(&self) -> bool {
        true
    }

    fn build_settings(&self) -> Settings {
        settings([
            ("memory", "1 GiB"),
            ("threads", "all processors"),
            ("compression", "each value by itself; zstd level 3 with a dictionary of 16 KiB"),
            ("durability", "sync"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        MODES.into_iter().map(variant).collect()
    }

    fn supports(&self, compression: Compression) -> bool {
        compression != Compression::Snappy
    }

    fn build(&self, dir: &Path, data: &Dataset, compression: Compression) -> Result<Built> {
        let compression = match compression {
            Compression::None | Compression::Snappy => table::Compression::None,
            Compression::Zstd => table::Compression::zstd(),
        };
        let mut builder = Builder::create(dir.join(FILE), BuildOptions::default().compression(compression))?;
        for (key, value) in data.iter() {
            builder.put(key, value)?;
        }
        Ok(Built { index_bytes: Some(builder.finish()?.index_bytes) })
    }

    fn open(&self, dir: &Path, variant: usize) -> Result<Box<dyn ConstantReader>> {
        let mode = MODES.get(variant).copied().unwrap_or_default();
        let reader = Reader::open(dir.join(FILE), ReaderOptions::default().mode(mode))?;
        // Where the value has to be copied or unpacked anyway, a buffer that is kept spares an allocation.
        let borrows = mode != Mode::Pread && !reader.info().compressed;
        Ok(Box::new(Table { reader, borrows }))
    }
}

struct Table {
    reader: Reader,
    borrows: bool,
}

impl ConstantReader for Table {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(if self.borrows {
            Box::new(Borrowing(&self.reader))
        } else {
            Box::new(Copying { reader: &self.reader, value: Vec::new() })
        })
    }
}

struct Borrowing<'a>(&'a Reader);

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
    reader: &'a Reader,
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

    /// Goal: Cairn's table answers right, plain and compressed, in every mode.
    #[test]
    fn answers_right() {
        crate::engine::testing::check_store(&CairnTable);
    }
}
