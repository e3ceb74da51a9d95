//! Cairn's pool, once per policy.

use std::sync::Arc;
use std::time::Duration;

use cairn_pool::{
    BackgroundWriter, Error as PoolError, FileOptions, Format, Lsn, PAGE_HEADER_LEN, PolicyKind, Pool,
    PoolFile,
};
use cairn_vfs::OpenOptions;

use super::page_file::{STAMP_AT, WRITES_AT, word};
use super::pages::{Access, PageStore, Pages, Session, Setup, chained, each};
use super::starvation;
use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};

/// The family of all these contenders.
pub const FAMILY: &str = "cairn";

/// Suffix of the names of contenders without page checks.
pub const UNCHECKED: &str = "unchecked";

/// Cairn's pool with one policy.
#[derive(Debug)]
pub struct CairnPool {
    name: String,
    policy: PolicyKind,
    format: Format,
}

impl CairnPool {
    /// Creates a pool that verifies the checksums of pages on reading, which is how the pool is
    /// meant to be used.
    pub fn new(policy: PolicyKind) -> Self {
        CairnPool { name: format!("{FAMILY} {policy}"), policy, format: Format::Checked }
    }

    /// Creates a pool without page checks, as all peers except RocksDB read their pages.
    pub fn unchecked(policy: PolicyKind) -> Self {
        CairnPool { name: format!("{FAMILY} {policy} {UNCHECKED}"), policy, format: Format::Raw }
    }
}

impl PageStore for CairnPool {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn ours(&self) -> bool {
        true
    }

    fn settings(&self, setup: &Setup<'_>) -> Settings {
        let checks = match self.format {
            Format::Checked => "XXH3 of each page, verified when it is read",
            Format::Raw => "none",
        };
        settings([
            ("policy", self.policy.title()),
            ("page checks", checks),
            ("page cache of the kernel", if setup.file.direct { "bypassed" } else { "used" }),
            ("background writer", "off: the thread that evicts a dirty page writes it"),
            ("Sequential Scan", "read ahead: 256 KiB or a quarter of the pool at a time"),
        ])
    }

    fn can(&self, access: Access, _: u32) -> bool {
        // The pages of the file have checksums, which a pool that does not maintain them would
        // leave wrong.
        self.format == Format::Checked || access != Access::Dirty
    }

    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>> {
        let access = if setup.writes { OpenOptions::write() } else { OpenOptions::read() };
        let builder = Pool::builder()
            .page_size(setup.file.page_size)
            .frames(setup.frames)
            .max_frames(setup.frames)
            .policy(self.policy)
            .background_writer(BackgroundWriter::Off);
        let pool = builder.build().map_err(|error| fail(&self.name, error))?;
        let file = pool.open(setup.file.open(access)?, FileOptions::new().format(self.format));
        let file = file.map_err(|error| fail(&self.name, error))?;
        let skip = match self.format {
            Format::Checked => PAGE_HEADER_LEN,
            Format::Raw => 0,
        };
        Ok(Box::new(Open { name: self.name.clone(), pool, file: Arc::new(file), skip }))
    }
}

fn fail(name: &str, error: PoolError) -> Error {
    Error::engine(name, error)
}

struct Open {
    name: String,
    pool: Pool,
    file: Arc<PoolFile>,
    /// Number of bytes of a page before its payload.
    skip: usize,
}

impl Pages for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(match self.skip {
            PAGE_HEADER_LEN => Box::new(Reader::<PAGE_HEADER_LEN> { open: self }),
            _ => Box::new(Reader::<0> { open: self }),
        })
    }

    fn misses(&self) -> Option<u64> {
        let stats = self.pool.stats();
        Some(stats.misses + stats.prefetched)
    }

    fn starvation(&self, frames: usize, waiting: usize) -> Result<Option<Duration>> {
        let fail = |error| fail(&self.name, error);
        let pinned = (0..frames as u32)
            .map(|page| self.file.read(page))
            .collect::<cairn_pool::Result<Vec<_>>>()
            .map_err(fail)?;
        let ask = |page: u32| -> Result<u64> {
            Ok(word(&self.file.read(page).map_err(fail)?, STAMP_AT - self.skip))
        };
        starvation::measure(&self.name, pinned, waiting, &ask).map(Some)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.file.flush().and_then(|()| self.file.sync()).map_err(|error| fail(&self.name, error))
    }
}

struct Reader<'a, const SKIP: usize> {
    open: &'a Open,
}

impl<const SKIP: usize> Session for Reader<'_, SKIP> {
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64> {
        let (file, name) = (&*self.open.file, &self.open.name);
        let fail = |error| fail(name, error);
        let shared = |page| Ok(word(&file.read(page).map_err(fail)?, STAMP_AT - SKIP));
        let optimistic = |page| file.read_with(page, |view| view.u64(STAMP_AT - SKIP)).map_err(fail);
        match access {
            Access::Shared => each(order, shared),
            Access::SharedChained => chained(order, shared),
            Access::Optimistic => each(order, optimistic),
            Access::OptimisticChained => chained(order, optimistic),
            Access::Exclusive => {
                each(order, |page| Ok(word(&file.write(page).map_err(fail)?, STAMP_AT - SKIP)))
            }
            Access::Dirty => each(order, |page| {
                let mut guard = file.write(page).map_err(fail)?;
                let bytes = guard.payload_mut(Lsn::NONE);
                let writes = word(bytes, WRITES_AT - SKIP) + 1;
                if let Some(place) = bytes.get_mut(WRITES_AT - SKIP..WRITES_AT - SKIP + 8) {
                    place.copy_from_slice(&writes.to_le_bytes());
                }
                Ok(word(bytes, STAMP_AT - SKIP))
            }),
            Access::Scan => scan(file, order, STAMP_AT - SKIP).map_err(fail),
        }
    }
}

/// Scans the runs of consecutive pages that form an order.
fn scan(file: &PoolFile, order: &[u32], stamp_at: usize) -> cairn_pool::Result<u64> {
    let mut sum = 0_u64;
    for run in order.chunk_by(|a, b| a + 1 == *b) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
        for guard in file.scan(first..last + 1) {
            sum = sum.wrapping_add(word(&guard?, stamp_at));
        }
    }
    Ok(sum)
}
