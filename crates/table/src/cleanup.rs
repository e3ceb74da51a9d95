//! Cleaning up: removing the remains of ended transactions once they are no longer needed.
//!
//! ```text
//!   ended, and visible to all:  forget versions | release claims | remove ghosts, leaf by leaf
//!                               | free chains and trees
//! ```
//!
//! Every transaction that ends cleans up after some earlier ones, concurrently with others that do
//! so. This way, cleaning keeps up. Freeing a tree requires exclusive access, because earlier
//! transactions may have left ghosts there.

use std::collections::HashSet;
use std::mem::take;

use cairn_vfs::ErrorKind;
use cairn_vfs::sync::{RwLockWriteGuard, lock, write};

use crate::Result;
use crate::catalog::{Catalog, ROOT};
use crate::inner::Inner;
use crate::mvcc::{ACTIVE, Ended, Ghost, Taken};
use crate::storage::{Reclaiming, RunMemory, Store, Tree, free_chain, is_ghost};

impl Inner {
    /// Forgets versions that are no longer needed, and removes the records they were kept for, of
    /// up to `most` transactions. Does nothing while another thread has exclusive access.
    pub(crate) fn clean(&self, most: usize) -> Result<()> {
        let _reclaiming = Reclaiming::free_space();
        {
            let Ok(_turn) = self.cleaning.turn.try_read() else { return Ok(()) };
            self.retry_left_ghosts(most)?;
            if let Some(seen) = self.commits.take_visible(self.slots.horizon(), most, Taken::WithoutTrees) {
                return self.clean_after_all(seen);
            }
        }
        // A table was dropped, or its trees were replaced.
        match self.cleaning.turn.try_write() {
            Ok(turn) => self.clean_with(&turn, most),
            Err(_) => Ok(()),
        }
    }

    /// Cleans up after all ended transactions, and keeps others from doing so: a scan of all pages
    /// must not see pages being freed.
    pub(crate) fn clean_exclusively(&self) -> Result<RwLockWriteGuard<'_, ()>> {
        let turn = write(&self.cleaning.turn);
        self.clean_with(&turn, usize::MAX)?;
        Ok(turn)
    }

    fn clean_with(&self, _turn: &RwLockWriteGuard<'_, ()>, most: usize) -> Result<()> {
        let seen = self.commits.take_visible(self.slots.horizon(), most, Taken::All);
        let cleaned = self.clean_after_all(seen.unwrap_or_default());
        // ORDER: after the claims above are released. Otherwise ghosts with those keys would stay
        // until the next cleanup.
        self.retry_left_ghosts(most)?;
        cleaned
    }

    fn clean_after_all(&self, mut seen: Vec<Ended>) -> Result<()> {
        for at in 0..seen.len() {
            let Some(ended) = seen.get_mut(at) else { break };
            if let Err(error) = self.clean_after(ended) {
                // The next cleanup does the rest.
                self.commits.requeue(seen.drain(at..));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Does the remaining work, and removes it from the lists. After an error the rest is still
    /// listed.
    fn clean_after(&self, ended: &mut Ended) -> Result<()> {
        debug_assert!(ended.csn != 0, "a transaction is cleaned up that never was visible");
        debug_assert!(
            ended.state.commit() != ACTIVE && ended.state.has_released_locks(),
            "transaction {} is cleaned up before its end",
            ended.state.id
        );
        take(&mut ended.writes).iter().for_each(|write| self.rows.forget(write));
        take(&mut ended.claims).iter().for_each(|(tree, key)| self.rows.release(*tree, key));
        // Ghosts in trees that are freed below go with the trees. After an abort, the listed
        // records are no longer ghosts, and the removal leaves them alone.
        let Ended { ghosts, trees, chains, .. } = ended;
        ghosts.retain(|ghost| !trees.iter().any(|tree| tree.root == ghost.tree));
        self.remove_ghosts(ghosts)?;
        each(chains, |chain| free_chain(self.store.space(), chain))?;
        while let Some(tree) = trees.last().copied() {
            let root = tree.root;
            lock(&self.cleaning.left).retain(|ghost| ghost.tree != root);
            // After an error, transactions that ended earlier may be in the queue again.
            self.commits.forget_ghosts_of(root);
            self.store.begin_to_free(root)?;
            // Freeing a tree must not begin twice.
            trees.pop();
            self.store.free_begun(tree)?;
        }
        debug_assert!(
            ended.writes.is_empty() && ended.claims.is_empty() && ended.ghosts.is_empty(),
            "rows of transaction {} are left",
            ended.state.id
        );
        debug_assert!(ended.chains.is_empty(), "long rows of transaction {} are left", ended.state.id);
        Ok(())
    }

    /// Retries ghosts whose keys were claimed.
    fn retry_left_ghosts(&self, most: usize) -> Result<()> {
        let mut some: Vec<Ghost> = {
            let mut left = lock(&self.cleaning.left);
            let count = left.len().min(most);
            left.drain(..count).collect()
        };
        let removed = self.remove_ghosts(&mut some);
        lock(&self.cleaning.left).extend(some);
        removed
    }

    /// Forgets the list, because all ghosts were removed, and trees may have moved.
    pub(crate) fn forget_ghosts(&self) {
        lock(&self.cleaning.left).clear();
    }

    /// Removes ghosts that no snapshot needs, and removes those that are finished from the list,
    /// including damaged ones, for which a retry would not help. If a key is claimed for a new row,
    /// or the old row may still be seen, the ghost stays for later. Cost: sorts the list, and one
    /// descent for each leaf with ghosts.
    pub(crate) fn remove_ghosts(&self, ghosts: &mut Vec<Ghost>) -> Result<()> {
        ghosts.sort_unstable();
        let (mut done, mut result, mut memory) = (0, Ok(()), RunMemory::default());
        for some in ghosts.chunk_by(|a, b| a.tree == b.tree) {
            let Some(Ghost { tree: root, .. }) = some.first() else { continue };
            let is_free = |ghost: &Ghost| self.rows.has_no_entry(*root, &ghost.key);
            let held = |ghost: &Ghost| lock(&self.cleaning.left).push_back(ghost.clone());
            let tree = Tree::open(self.store.space(), *root);
            let gone;
            (gone, result) = remove_in_runs(&tree, some, is_free, held, &mut memory);
            done += gone;
            if result.is_err() {
                break;
            }
        }
        debug_assert!(done <= ghosts.len(), "{done} of {} ghosts are removed", ghosts.len());
        debug_assert!(
            result.is_err() || done == ghosts.len(),
            "{done} of {} ghosts are removed without an error",
            ghosts.len()
        );
        ghosts.drain(..done);
        result
    }
}

/// Removes those of some sorted keys that are ghosts and free, and reports those that are not free.
/// Returns how many keys are finished.
fn remove_in_runs<K: AsRef<[u8]>>(
    tree: &Tree,
    keys: &[K],
    is_free: impl Fn(&K) -> bool,
    held: impl Fn(&K),
    memory: &mut RunMemory,
) -> (usize, Result<()>) {
    let mut done = 0;
    while let Some(rest @ [_, ..]) = keys.get(done..) {
        match tree.remove_run(rest, is_ghost, &is_free, memory) {
            Ok(run) => {
                memory.held.iter().filter_map(|&at| rest.get(at)).for_each(&held);
                ensure_progress(run.keys, rest.len());
                done += run.keys;
            }
            Err(error) => {
                done += usize::from(error.kind() == ErrorKind::Corruption);
                return (done, Err(error));
            }
        }
    }
    debug_assert!(done == keys.len(), "{done} of {} keys are finished without an error", keys.len());
    (done, Ok(()))
}

/// Checks that a run ends the loop over its keys.
fn ensure_progress(keys: usize, left: usize) {
    assert!(keys > 0 && keys <= left, "a run of {keys} keys was removed, and {left} are left");
}

/// Removes ghosts that earlier processes left, in trees that still exist. No snapshot can see their
/// rows.
pub(crate) fn remove_leftover_ghosts(
    store: &Store,
    catalog: &Catalog,
    mut ghosts: Vec<(u32, Vec<u8>)>,
) -> Result<()> {
    let roots: HashSet<u32> = catalog.tables().flat_map(|table| table.roots()).chain([ROOT]).collect();
    ghosts.retain(|(root, _)| roots.contains(root));
    ghosts.sort_unstable();
    let mut memory = RunMemory::default();
    for some in ghosts.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((root, _)) = some.first() else { continue };
        let keys: Vec<&[u8]> = some.iter().map(|(_, key)| &key[..]).collect();
        // No other transaction runs yet.
        remove_in_runs(&Tree::open(store.space(), *root), &keys, |_| true, |_| (), &mut memory).1?;
    }
    Ok(())
}

/// Processes each element of a list, and removes those that are finished. Damaged ones count as
/// finished, because a retry would not help.
fn each<T>(list: &mut Vec<T>, mut work: impl FnMut(&mut T) -> Result<()>) -> Result<()> {
    let mut done = 0;
    let mut result = Ok(());
    for item in list.iter_mut() {
        result = work(item);
        match &result {
            Ok(()) => done += 1,
            Err(error) => {
                done += usize::from(error.kind() == ErrorKind::Corruption);
                break;
            }
        }
    }
    debug_assert!(
        result.is_err() || done == list.len(),
        "{done} of {} elements are finished without an error",
        list.len()
    );
    list.drain(..done);
    result
}
