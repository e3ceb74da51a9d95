//! Listing the keyspaces of a store without opening it.

use std::path::Path;
use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, StdFs};

use crate::db::stored_options::StoredOptions;
use crate::version::VersionSet;
use crate::{Error, Result};

/// How often the manifest is read again after a writer has replaced it during the read.
const ATTEMPTS: usize = 16;

/// Describes a keyspace and the options that its data depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceInfo {
    /// Its name.
    pub name: String,
    /// The time to live of its entries.
    pub ttl: Option<Duration>,
    /// The name of its merge operator ([`crate::MergeOperator::name`]).
    pub merge_operator: Option<String>,
}

/// Returns the keyspaces of the store in `path`, the default one first, whether or not a process
/// has the store open. From them, a program that did not create the store learns which options it
/// must open it with.
///
/// Reads the manifest. Writes nothing and takes no lock.
///
/// Errors: [`Error::NotFound`] when there is no store; as [`crate::Builder::open`] for a damaged or
/// newer manifest.
///
/// ```
/// # fn main() -> cairn_kv::Result<()> {
/// # let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
/// use cairn_kv::{Db, KeyspaceOptions, list_keyspaces_in};
///
/// let db = Db::builder("/store")
///     .fs(fs.clone())
///     .keyspace("users", KeyspaceOptions::default())
///     .open()?;
/// let keyspaces = list_keyspaces_in(&fs, "/store")?;
/// let names: Vec<String> = keyspaces.into_iter().map(|it| it.name).collect();
/// assert_eq!(names, ["default", "users"]);
/// # Ok(())
/// # }
/// ```
pub fn list_keyspaces_in(fs: &Arc<dyn Fs>, path: impl AsRef<Path>) -> Result<Vec<KeyspaceInfo>> {
    let path = path.as_ref();
    let no_store = || Error::NotFound { what: format!("there is no store in {}", path.display()) };
    if !fs.exists(path)? {
        return Err(no_store());
    }
    if !VersionSet::exists(fs, path)? {
        VersionSet::check_no_orphans(fs, path)?;
        return Err(no_store());
    }
    let mut versions = VersionSet::open_read_only(fs, path);
    // BOUND: the loop could only repeat if a writer began a new manifest during every read. A
    // damaged manifest fails every time too.
    for _ in 1..ATTEMPTS {
        if versions.is_ok() {
            break;
        }
        versions = VersionSet::open_read_only(fs, path);
    }
    let info = |(_, state): (_, crate::version::KeyspaceState)| {
        let stored = StoredOptions::decode(&state.options, path)?;
        let merge_operator = Some(stored.merge_operator).filter(|name| !name.is_empty());
        let ttl = (stored.ttl_secs > 0).then(|| Duration::from_secs(stored.ttl_secs));
        Ok(KeyspaceInfo { name: state.name, ttl, merge_operator })
    };
    versions?.keyspaces().into_iter().map(info).collect()
}

/// Lists the keyspaces of a store on the machine's file system, as [`list_keyspaces_in`] does.
pub fn list_keyspaces(path: impl AsRef<Path>) -> Result<Vec<KeyspaceInfo>> {
    list_keyspaces_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path)
}
