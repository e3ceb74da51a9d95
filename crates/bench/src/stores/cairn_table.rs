//! Cairn's own format of constant stores.

use std::path::Path;

use cairn_hash::table::{self, BuildOptions, Builder, Format, Mode, Reader, ReaderOptions};

use super::cairn_hash::CairnReader;
use super::{Built, Compression, ConstantReader, ConstantStore, Variant};
use crate::core::error::Result;
use crate::core::settings::{Settings, settings};
use crate::core::workload::Dataset;

/// Name of the store.
pub const NAME: &str = "cairn";
const FILE: &str = "data.cairn";

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
            ("compression", "each value by itself: snappy, or zstd level 3 with a dictionary of 16 KiB"),
            ("durability", "sync"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        MODES.into_iter().map(variant).collect()
    }

    fn supports(&self, _: Compression) -> bool {
        true
    }

    fn build(&self, dir: &Path, data: &Dataset, compression: Compression) -> Result<Built> {
        let compression = match compression {
            Compression::None => table::Compression::None,
            Compression::Snappy => table::Compression::Snappy,
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
        // If the value must be copied or decompressed anyway, a reused buffer saves an allocation.
        let borrows = mode != Mode::Pread && reader.info().compression == Format::None;
        Ok(Box::new(CairnReader { reader, borrows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: Cairn's table answers correctly, plain and compressed, in every mode.
    #[test]
    fn answers_right() {
        crate::stores::testing::check_store(&CairnTable);
    }
}
