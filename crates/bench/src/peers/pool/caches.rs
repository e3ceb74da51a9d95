//! Library caches over the file of pages: a lookup returns the page, or reads and inserts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::{File, OpenOptions};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::stores::page_buffer::Buffer;
use crate::stores::page_file::{STAMP_AT, word};
use crate::stores::pages::{Access, PageStore, Pages, Session, Setup, chained, each};

/// Name of quick_cache.
pub const QUICK_CACHE: &str = "quick_cache";
/// Name of moka.
pub const MOKA: &str = "moka";

/// A reference-counted page in memory: a session that has looked it up keeps it even if the cache
/// evicts it.
type Page = Arc<Buffer>;
type Hasher = quick_cache::DefaultHashBuilder;

/// The operation that a library's cache must provide.
trait PageCache: Send + Sync + 'static {
    /// Returns the page, read by `read` if it is not in the cache.
    fn get(&self, page: u32, read: impl FnOnce() -> Result<Page>) -> Result<Page>;
}

impl PageCache for quick_cache::sync::Cache<u32, Page> {
    #[inline]
    fn get(&self, page: u32, read: impl FnOnce() -> Result<Page>) -> Result<Page> {
        self.get_or_insert_with(&page, read)
    }
}

impl PageCache for moka::sync::Cache<u32, Page, Hasher> {
    #[inline]
    fn get(&self, page: u32, read: impl FnOnce() -> Result<Page>) -> Result<Page> {
        match moka::sync::Cache::get(self, &page) {
            Some(found) => Ok(found),
            None => self.try_get_with(page, read).map_err(|error| Error::engine(MOKA, error)),
        }
    }
}

/// One of the libraries.
#[derive(Debug, Clone, Copy)]
pub struct Cache(&'static str);

impl Cache {
    /// quick_cache: a variant of Clock-PRO, in shards.
    pub fn quick_cache() -> Self {
        Cache(QUICK_CACHE)
    }

    /// moka: W-TinyLFU, as in Caffeine.
    pub fn moka() -> Self {
        Cache(MOKA)
    }
}

impl PageStore for Cache {
    fn name(&self) -> &str {
        self.0
    }

    fn family(&self) -> &str {
        self.0
    }

    fn version(&self) -> String {
        let version = match self.0 {
            MOKA => "0.12",
            _ => "0.6",
        };
        version.to_owned()
    }

    fn settings(&self, setup: &Setup<'_>) -> Settings {
        let (policy, capacity) = match self.0 {
            MOKA => ("W-TinyLFU", "max_capacity in pages, which it exceeds until somebody tidies up"),
            _ => ("Clock-PRO's kind", "items_capacity in pages; shards by the library's choice"),
        };
        settings([
            ("policy", policy),
            ("capacity", capacity),
            ("hash", "ahash"),
            ("values", "counted references to pages, allocated and read when they are missed"),
            ("page checks", "none"),
            ("page cache of the kernel", if setup.file.direct { "bypassed" } else { "used" }),
            (
                "cannot",
                "change pages, hold one alone, read without counting a reference, keep a page from being evicted, read ahead",
            ),
        ])
    }

    fn can(&self, access: Access, _: u32) -> bool {
        matches!(access, Access::Shared | Access::SharedChained | Access::Scan)
    }

    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>> {
        let file = setup.file.open(OpenOptions::read())?;
        let page_size = setup.file.page_size;
        Ok(match self.0 {
            MOKA => {
                let builder = moka::sync::Cache::builder().max_capacity(setup.frames as u64);
                let cache = builder.build_with_hasher(Hasher::default());
                Box::new(Open { name: MOKA, cache, file, page_size, misses: AtomicU64::new(0) })
            }
            _ => {
                let cache = quick_cache::sync::Cache::new(setup.frames);
                Box::new(Open { name: QUICK_CACHE, cache, file, page_size, misses: AtomicU64::new(0) })
            }
        })
    }
}

struct Open<C> {
    name: &'static str,
    cache: C,
    file: Box<dyn File>,
    page_size: usize,
    misses: AtomicU64,
}

impl<C: PageCache> Open<C> {
    #[cold]
    fn read(&self, page: u32) -> Result<Page> {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let mut buffer = Buffer::new(self.page_size);
        self.file.read_exact_at(buffer.bytes_mut(self.page_size), u64::from(page) * self.page_size as u64)?;
        Ok(Arc::new(buffer))
    }

    #[inline]
    fn stamp(&self, page: u32) -> Result<u64> {
        let found = self.cache.get(page, || self.read(page))?;
        Ok(word(found.bytes(), STAMP_AT))
    }
}

impl<C: PageCache> Pages for Open<C> {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Reader(self)))
    }

    fn misses(&self) -> Option<u64> {
        Some(self.misses.load(Ordering::Relaxed))
    }
}

struct Reader<'a, C>(&'a Open<C>);

impl<C: PageCache> Session for Reader<'_, C> {
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64> {
        let open = self.0;
        match access {
            Access::Shared | Access::Scan => each(order, |page| open.stamp(page)),
            Access::SharedChained => chained(order, |page| open.stamp(page)),
            _ => Err(Error::engine(open.name, "it cannot do that")),
        }
    }
}
