//! Cleaning up: what ended transactions have left goes when nobody needs it any more.
//!
//! ```text
//!   ended, and seen by all:  versions are forgotten | claims are let go of | ghosts are removed, a leaf at a time | chains and trees are given back
//! ```
//!
//! Every transaction that ends cleans up after some that have ended before, side by side with
//! others who do: so nobody falls behind. Giving a tree back needs to be alone, as those before it
//! may have left ghosts there.

use std::collections::{HashSet, VecDeque};
use std::mem::take;

use cairn_vfs::ErrorKind;
use cairn_vfs::sync::{Mutex, RwLock, RwLockWriteGuard, lock, write};

use crate::Result;
use crate::catalog::{Catalog, ROOT};
use crate::database::Inner;
use crate::mvcc::{Ended, Ghost, Taken};
use crate::storage::{Giving, RunMemory, Store, Tree, free_chain, is_ghost};

/// Who cleans up, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Cleaning {
    /// Held for reading by those who give back what ended transactions have left. They may have no
    /// snapshot, so that nobody else would know of them.
    turn: RwLock<()>,
    /// Ghosts that could not be removed in their turn, because somebody had the key: it may have
    /// been given up since.
    left: Mutex<VecDeque<Ghost>>,
}

impl Inner {
    /// Forgets versions that nobody needs, and removes what they were kept for. `most` transactions
    /// at once; nothing while somebody does it alone.
    pub(crate) fn clean(&self, most: usize) -> Result<()> {
        let _giving = Giving::back();
        {
            let Ok(_turn) = self.cleaning.turn.try_read() else { return Ok(()) };
            self.try_left_again(most)?;
            if let Some(seen) = self.commits.take_seen(self.slots.horizon(), most, Taken::WithoutTrees) {
                return self.clean_after_all(seen);
            }
        }
        // Somebody has dropped a table, or what it was in before.
        match self.cleaning.turn.try_write() {
            Ok(turn) => self.clean_with(&turn, most),
            Err(_) => Ok(()),
        }
    }

    /// Cleans up after everybody, and keeps others from it: who looks at all pages must not see
    /// them given back meanwhile.
    pub(crate) fn clean_alone(&self) -> Result<RwLockWriteGuard<'_, ()>> {
        let turn = write(&self.cleaning.turn);
        self.clean_with(&turn, usize::MAX)?;
        Ok(turn)
    }

    fn clean_with(&self, _turn: &RwLockWriteGuard<'_, ()>, most: usize) -> Result<()> {
        let seen = self.commits.take_seen(self.slots.horizon(), most, Taken::All);
        let cleaned = self.clean_after_all(seen.unwrap_or_default());
        // ORDER: behind those that have just let go of their keys, or ghosts of such keys stay
        // until somebody cleans up once more.
        self.try_left_again(most)?;
        cleaned
    }

    fn clean_after_all(&self, mut seen: Vec<Ended>) -> Result<()> {
        for at in 0..seen.len() {
            let Some(ended) = seen.get_mut(at) else { break };
            if let Err(error) = self.clean_after(ended) {
                // The rest is for the next one.
                self.commits.put_back(seen.drain(at..));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Does what is left to be done, and takes it out of the lists. After an error the rest is
    /// still there.
    fn clean_after(&self, ended: &mut Ended) -> Result<()> {
        take(&mut ended.writes).iter().for_each(|write| self.rows.forget(write));
        take(&mut ended.claims).iter().for_each(|(tree, key)| self.rows.release(*tree, key));
        // Those of one that was undone became what they were before.
        let Ended { ghosts, trees, chains, .. } = ended;
        ghosts.retain(|ghost| !trees.iter().any(|tree| tree.root == ghost.tree));
        self.remove_ghosts(ghosts)?;
        each(chains, |chain| free_chain(self.store.space(), chain))?;
        while let Some(tree) = trees.last().copied() {
            let root = tree.root;
            lock(&self.cleaning.left).retain(|ghost| ghost.tree != root);
            // An error may have put some back that have ended before.
            self.commits.forget_ghosts_of(root);
            self.store.begin_to_free(root)?;
            // What has begun is not begun again.
            trees.pop();
            self.store.free_begun(tree)?;
        }
        Ok(())
    }

    /// Tries those once more whose keys somebody had.
    fn try_left_again(&self, most: usize) -> Result<()> {
        let mut some: Vec<Ghost> = {
            let mut left = lock(&self.cleaning.left);
            let count = left.len().min(most);
            left.drain(..count).collect()
        };
        let removed = self.remove_ghosts(&mut some);
        lock(&self.cleaning.left).extend(some);
        removed
    }

    /// All ghosts were removed, and trees may be elsewhere.
    pub(crate) fn forget_ghosts(&self) {
        lock(&self.cleaning.left).clear();
    }

    /// Removes what is left of rows that nobody sees, and takes out of the list what it is done
    /// with: what is damaged as well, which would be no better the next time. Where somebody is
    /// about to put another row, or may still see the one that was there, nothing is done until
    /// later. Cost: the list is sorted, and a walk down the tree for each leaf that has some.
    pub(crate) fn remove_ghosts(&self, ghosts: &mut Vec<Ghost>) -> Result<()> {
        ghosts.sort_unstable();
        let (mut done, mut result, mut memory) = (0, Ok(()), RunMemory::default());
        for some in ghosts.chunk_by(|a, b| a.tree == b.tree) {
            let Some(Ghost { tree: root, .. }) = some.first() else { continue };
            let is_free = |ghost: &Ghost| self.rows.is_forgotten(*root, &ghost.key);
            let held = |ghost: &Ghost| lock(&self.cleaning.left).push_back(ghost.clone());
            let tree = Tree::open(self.store.space(), *root);
            let gone;
            (gone, result) = remove_in_runs(&tree, some, is_free, held, &mut memory);
            done += gone;
            if result.is_err() {
                break;
            }
        }
        ghosts.drain(..done);
        result
    }
}

/// Removes those of some keys that are ghosts and free, and tells which are not free; they are in
/// order. Gives how many it is done with.
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
                done += run.keys;
            }
            Err(error) => {
                done += usize::from(error.kind() == ErrorKind::Corruption);
                return (done, Err(error));
            }
        }
    }
    (done, Ok(()))
}

/// Removes what those had not removed any more who were there before: nobody sees what they were.
/// Of trees that are still somebody's.
pub(crate) fn remove_left(store: &Store, catalog: &Catalog, mut ghosts: Vec<(u32, Vec<u8>)>) -> Result<()> {
    let roots: HashSet<u32> = catalog.tables().flat_map(|table| table.roots()).chain([ROOT]).collect();
    ghosts.retain(|(root, _)| roots.contains(root));
    ghosts.sort_unstable();
    let mut memory = RunMemory::default();
    for some in ghosts.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((root, _)) = some.first() else { continue };
        let keys: Vec<&[u8]> = some.iter().map(|(_, key)| &key[..]).collect();
        // Nobody else is there yet.
        remove_in_runs(&Tree::open(store.space(), *root), &keys, |_| true, |_| (), &mut memory).1?;
    }
    Ok(())
}

/// Does something with each of a list, and takes out those that it is done with. What is damaged is
/// done with as well: it would be no better the next time.
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
    list.drain(..done);
    result
}
