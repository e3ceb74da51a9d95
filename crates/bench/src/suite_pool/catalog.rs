//! The contenders, in the order of tables.

use super::cairn::CairnPool;
use super::options::Options;
use super::raw::RawReads;
use super::store::PageStore;
use super::textbook::{self, Textbook};
use crate::error::{Error, Result};
use crate::results::Contender;

/// The contenders that can run, and those that cannot with the reasons.
#[derive(Debug, Default)]
pub struct PoolCatalog {
    /// Ready to be opened.
    pub stores: Vec<Box<dyn PageStore>>,
    /// Unavailable contenders, which the run still lists.
    pub skipped: Vec<Contender>,
}

type Make = fn() -> Result<Box<dyn PageStore>>;

fn makers() -> Vec<(&'static str, Make)> {
    let mut makers: Vec<(&'static str, Make)> = Vec::new();
    makers.push((textbook::NAME, || Ok(Box::new(Textbook))));
    add_peers(&mut makers);
    makers
}

#[cfg(feature = "peers")]
fn add_peers(makers: &mut Vec<(&'static str, Make)>) {
    use crate::peers::{pool, rocksdb};
    makers.push((pool::caches::QUICK_CACHE, || Ok(Box::new(pool::caches::Cache::quick_cache()))));
    makers.push((pool::caches::MOKA, || Ok(Box::new(pool::caches::Cache::moka()))));
    makers.push((rocksdb::NAME, || Ok(Box::new(rocksdb::pool::RocksDbPages::find()?))));
    makers.push((pool::sqlite::NAME, || Ok(Box::new(pool::sqlite::SqlitePages))));
}

#[cfg(not(feature = "peers"))]
fn add_peers(_: &mut Vec<(&'static str, Make)>) {}

/// Returns the names for `--peers`, in the order of tables.
pub fn peer_names() -> Vec<&'static str> {
    makers().into_iter().map(|(name, _)| name).collect()
}

/// Refuses an unknown name, and lists the known ones.
pub fn check(name: &str) -> Result<()> {
    let known = peer_names();
    if known.contains(&name) {
        return Ok(());
    }
    Err(Error::invalid(format!("peer {name:?}: expected {}, all or none", known.join(", "))))
}

/// Returns all requested contenders: Cairn's policies, the first of them also without page checks,
/// the peers, and raw reads.
pub fn select(options: &Options) -> Result<PoolCatalog> {
    let mut catalog = PoolCatalog::default();
    for &policy in &options.policies {
        catalog.stores.push(Box::new(CairnPool::new(policy)));
    }
    if let Some(&policy) = options.policies.first() {
        catalog.stores.push(Box::new(CairnPool::unchecked(policy)));
    }
    for name in &options.peers {
        check(name)?;
        let Some((known, make)) = makers().into_iter().find(|(known, _)| known == name) else { continue };
        match make() {
            Ok(store) => catalog.stores.push(store),
            Err(error) => catalog.skipped.push(Contender::left_out(known, known, &error)),
        }
    }
    catalog.stores.push(Box::new(RawReads::pages()));
    // One window is as large as the read-ahead of Cairn's pool. The other is so large that its cost
    // per read vanishes beside the copy.
    let window = (256 << 10).min(options.buffers / 4 * options.page_size);
    if window > options.page_size {
        catalog.stores.push(Box::new(RawReads::scanning(window)));
    }
    catalog.stores.push(Box::new(RawReads::scanning(1 << 20)));
    Ok(catalog)
}
