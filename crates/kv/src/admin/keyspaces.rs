//! Creating and dropping keyspaces while the store is open.
//!
//! The manifest decides: a keyspace exists when the edit that creates it is durable, and is gone
//! when the edit that drops it is. Ids are never reused, so records of a dropped keyspace that are
//! still in the log are ignored.

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, lock, write};

use crate::batch::DEFAULT;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::stored_options::StoredOptions;
use crate::db::view::View;
use crate::db::{Db, Keyspace};
use crate::memtable::Memtable;
use crate::options::KeyspaceOptions;
use crate::version::{NewKeyspace, Version, VersionEdit};
use crate::{Error, Result};

impl Db {
    /// Creates a keyspace. Durable when it returns; costs a sync of the manifest.
    ///
    /// The store keeps the options that the data depends on (merge operator, TTL). The other
    /// options are given again when the store is opened ([`crate::Builder::keyspace`]).
    ///
    /// Errors: [`Error::Invalid`] for an empty name, for a name that is taken and for options that
    /// contradict each other.
    ///
    /// ```
    /// # fn main() -> cairn_kv::Result<()> {
    /// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
    /// use cairn_kv::{Db, KeyspaceOptions};
    ///
    /// let db = Db::builder("/store").fs(fs).open()?;
    /// let users = db.create_keyspace("users", KeyspaceOptions::default())?;
    /// users.put("ada", "1815")?;
    /// db.drop_keyspace("users")?;
    /// assert!(users.get("ada").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let inner = &self.core.inner;
        inner.check_writable()?;
        options.check()?;
        let _structure = write(&inner.structure);
        if name.is_empty() || inner.keyspaces.named(name).is_some() {
            return Err(Error::invalid(format!(
                "keyspace {name:?} cannot be created: the name is empty or taken"
            )));
        }
        let id = inner.versions.next_keyspace_id();
        debug_assert!(id != DEFAULT, "keyspace {name:?} would get the writes to the default one");
        let at = id.0 as usize;
        let mut edit = VersionEdit::default();
        let stored = StoredOptions::of(&options).encode();
        edit.created.push(NewKeyspace { id, name: name.to_owned(), options: stored });
        // The log has no records of the keyspace so far. Without a log start, the keyspace would
        // keep all segments alive.
        edit.keyspace(id).log_start = Some(lock(&inner.commit).position().get());
        let active = Arc::new(Memtable::new());
        let view =
            View { active: Arc::clone(&active), sealed: Vec::new(), version: Arc::new(Version::empty()) };
        let state = Arc::new(KeyspaceState::new(id, name.to_owned(), options, view)?);
        inner.log_and_apply(edit, |_, _| {}).map_err(|error| inner.manifest_failed(error))?;
        {
            let mut commit = lock(&inner.commit);
            if commit.active.len() <= at {
                commit.active.resize_with(at + 1, || None);
            }
            if let Some(slot) = commit.active.get_mut(at) {
                debug_assert!(slot.is_none(), "keyspace {at} has a memtable before it is created");
                *slot = Some(active);
            }
            inner.note_edit(&mut commit);
        }
        // ORDER: the active memtable exists before anybody can get a handle and write.
        inner.keyspaces.add(Arc::clone(&state));
        Ok(Keyspace { core: Arc::clone(&self.core), state })
    }

    /// Drops a keyspace with all its data. Durable when it returns; costs a sync of the manifest.
    ///
    /// Its handles fail with [`Error::NotFound`] from then on. Open cursors keep working, and the
    /// keyspace's files are deleted when the last cursor is dropped.
    ///
    /// Errors: [`Error::NotFound`] when there is no such keyspace, [`Error::Invalid`] for the
    /// default one.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.core.inner.with_reserve(|| self.drop_keyspace_once(name))
    }

    fn drop_keyspace_once(&self, name: &str) -> Result<()> {
        let inner = &self.core.inner;
        inner.check_writable()?;
        let structure = write(&inner.structure);
        let Some(state) = inner.keyspaces.named(name) else {
            let path = inner.path.display();
            return Err(Error::NotFound { what: format!("there is no keyspace {name:?} in {path}") });
        };
        if state.id == DEFAULT {
            return Err(Error::invalid("the default keyspace cannot be dropped"));
        }
        debug_assert!(!state.dropped.load(SeqCst), "keyspace {name:?} is dropped twice");
        let mut edit = VersionEdit::default();
        edit.dropped.push(state.id);
        if !state.view.load().is_empty() {
            // Segments that hold only this keyspace's writes are no longer needed.
            inner.advance_idle_keyspaces(&state, &mut edit)?;
        }
        inner.log_and_apply(edit, |_, _| {}).map_err(|error| inner.manifest_failed(error))?;
        let at = state.id.0 as usize;
        let active = {
            let mut commit = lock(&inner.commit);
            let active = commit.active.get_mut(at).and_then(Option::take);
            debug_assert!(active.is_some(), "keyspace {at} is open, but has no memtable");
            inner.note_edit(&mut commit);
            active
        };
        if let (Some(budget), Some(active)) = (&inner.budget, active) {
            budget.sealed(state.id, &active);
        }
        inner.keyspaces.remove(&state);
        // ORDER: readers check the mark after they load the view, so none takes the empty view for
        // the keyspace's state.
        state.dropped.store(true, SeqCst);
        let (active, version) = (Arc::new(Memtable::new()), Arc::new(Version::empty()));
        state.view.store(Arc::new(View { active, sealed: Vec::new(), version }));
        drop(structure);
        // Releases the threads that wait for the keyspace's flushes or compactions, or are stalled
        // in a write to it.
        inner.update_pressure(&state);
        inner.background.wake_all();
        inner.remove_obsolete();
        Ok(())
    }
}

impl Inner {
    /// Handles an edit that the manifest did not accept. If the disk was full before a byte was
    /// written, the operation can be retried; any other failure poisons the store.
    pub(super) fn manifest_failed(&self, error: Error) -> Error {
        if self.nothing_happened(&error) { error } else { self.poison(error) }
    }

    /// Returns false when the edit may be durable despite the error.
    pub(super) fn nothing_happened(&self, error: &Error) -> bool {
        error.is_retryable() && self.versions.check().is_ok()
    }
}
