//! CDB through cdb2: D. J. Bernstein's constant database, two probes into a mapped file.
//!
//! The crate maps the file but copies the key and the value of every lookup to the heap. The
//! figures are those of the crate, not the best that the format allows.

use std::path::Path;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use cdb2::{CDB, CDBWriter};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::{Dataset, KeyBatch};
use crate::stores::lookups::Lookups;
use crate::stores::{Built, Compression, ConstantReader, ConstantStore, Session, Variant};

/// Name of the store.
pub const NAME: &str = "cdb";

/// CDB files of at most 4 GiB.
#[derive(Debug, Default)]
pub struct Cdb;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

impl ConstantStore for Cdb {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        "cdb2 0.8".to_owned()
    }

    fn build_settings(&self) -> Settings {
        settings([("durability", "sync (file synced after the crate's rename)")])
    }

    fn variants(&self) -> Vec<Variant> {
        let settings = settings([("values", "copied to the heap by the crate")]);
        vec![Variant::new(NAME, settings)]
    }

    fn build(&self, dir: &Path, data: &Dataset, _: Compression) -> Result<Built> {
        let path = dir.join("data.cdb");
        let mut writer = CDBWriter::create(&path).map_err(fail)?;
        for (key, value) in data.iter() {
            writer.add(key, value).map_err(fail)?;
        }
        writer.finish().map_err(fail)?;
        let fs = StdFs::new();
        fs.open(&path, OpenOptions::write())?.sync_data()?;
        fs.sync_dir(dir)?;
        // A header of 256 table positions, and two 8-byte slots per record in the tables.
        Ok(Built { index_bytes: Some(2048 + 16 * data.len() as u64) })
    }

    fn open(&self, dir: &Path, _: usize) -> Result<Box<dyn ConstantReader>> {
        Ok(Box::new(Reader(CDB::open(dir.join("data.cdb")).map_err(fail)?)))
    }
}

struct Reader(CDB);

impl ConstantReader for Reader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Shared(&self.0)))
    }
}

struct Shared<'a>(&'a CDB);

impl Lookups for Shared<'_> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            let value = self.0.get(key).transpose().map_err(fail)?;
            visit(value.as_deref());
        }
        Ok(())
    }
}
