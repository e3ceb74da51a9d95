//! The state from which crash images are drawn: files and names, each with their pending changes.
//!
//! Names work like bytes: `tree` is the state that programs see, `durable` the state on disk, and
//! `pending_names` the changes in between. Clones share everything that neither of them changes, so
//! that a snapshot costs one pointer per inode.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::crash::CrashImage;
use super::options::{FaultOptions, SyncFailure};
use super::pending::FileState;
use crate::mem::content::{Content, PAGE};
use crate::mem::open::OpenTable;
use crate::mem::tree::{NameChange, Names, Node, Place, ROOT, Tree};
use crate::{Rng, SeededRng};

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) tree: Tree<FileState>,
    /// The entries of each directory as they are on disk.
    pub(super) durable: BTreeMap<u64, Arc<Names>>,
    /// In the order in which they were made.
    pub(super) pending_names: Arc<Vec<PendingName>>,
    /// The sequence number of the last pending change.
    sequence: u64,
    /// Incremented by every change of this struct.
    version: u64,
}

/// A change of a name that no directory sync has covered yet.
///
/// A rename consists of two changes: it sets the new name, then clears the old one. They share a
/// `group`, the sequence number of the first. The second reaches the disk only together with or
/// after the first: no file system in use removes both names of a file that is being renamed ("link
/// before unlink", Ganger and Patt's soft updates, 1994).
#[derive(Debug, Clone)]
pub(super) struct PendingName {
    pub(super) sequence: u64,
    pub(super) group: u64,
    pub(super) change: NameChange,
}

impl PendingName {
    fn entry(&self) -> (u64, OsString) {
        (self.change.dir, self.change.name.clone())
    }
}

impl Disk {
    pub(super) fn new() -> Disk {
        Disk::settled(Tree::new(), BTreeMap::from([(ROOT, Arc::default())]))
    }

    /// Creates a disk on which nothing is pending.
    pub(super) fn settled(tree: Tree<FileState>, durable: BTreeMap<u64, Arc<Names>>) -> Disk {
        debug_assert!(tree.is_dir(ROOT) && durable.contains_key(&ROOT), "the disk has no root");
        Disk { tree, durable, pending_names: Arc::default(), sequence: 0, version: 0 }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    fn next_sequence(&mut self) -> u64 {
        self.version += 1;
        self.sequence += 1;
        self.sequence
    }

    /// Checks the order of the pending changes. Changes of names and of bytes share one sequence.
    fn check(&self) {
        debug_assert!(
            self.pending_names.is_sorted_by(|a, b| a.sequence < b.sequence),
            "names are out of order"
        );
        debug_assert!(self.pending_names.iter().all(|item| item.group <= item.sequence));
        debug_assert!(self.pending_names.last().is_none_or(|last| last.sequence <= self.sequence));
    }

    /// Creates an empty file whose name is pending.
    pub(super) fn create_file(&mut self, place: Place) -> u64 {
        debug_assert!(place.target.is_none(), "{:?} exists already", place.name);
        let inode = self.tree.add_file(FileState::default());
        self.change_name(place.set(Some(inode)));
        inode
    }

    /// Installs a file and its directories on the disk as durable state.
    pub(super) fn install(&mut self, path: &Path, content: Content) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            for change in self.tree.create_dirs(parent)? {
                self.settle(&change);
            }
        }
        let place = self.tree.locate(path)?;
        if place.target.is_some_and(|inode| self.tree.is_dir(inode)) {
            return Err(rustix::io::Errno::ISDIR.into());
        }
        let inode = self.tree.add_file(FileState::settled(content));
        let change = place.set(Some(inode));
        self.tree.apply(&change);
        self.settle(&change);
        self.version += 1;
        debug_assert!(
            self.tree.lookup(path).is_ok_and(|found| found == inode),
            "{} is another file than the installed one",
            path.display()
        );
        Ok(())
    }

    /// Creates directories whose names are pending.
    pub(super) fn create_dirs(&mut self, path: &Path) -> io::Result<()> {
        for change in self.tree.create_dirs(path)? {
            self.change_name(change);
        }
        Ok(())
    }

    /// Makes a pending change of one name.
    pub(super) fn change_name(&mut self, change: NameChange) {
        let group = self.next_sequence();
        self.push_name(group, group, change);
    }

    /// Makes a rename as two pending changes.
    pub(super) fn rename(&mut self, set: NameChange, clear: NameChange) {
        debug_assert!(set.target.is_some() && clear.target.is_none(), "{set:?} and {clear:?} are no rename");
        let group = self.next_sequence();
        self.push_name(group, group, set);
        let sequence = self.next_sequence();
        self.push_name(sequence, group, clear);
    }

    fn push_name(&mut self, sequence: u64, group: u64, change: NameChange) {
        debug_assert!(group <= sequence && sequence <= self.sequence, "{group} and {sequence}");
        debug_assert!(self.pending_names.last().is_none_or(|last| last.sequence < sequence), "out of order");
        self.tree.apply(&change);
        Arc::make_mut(&mut self.pending_names).push(PendingName { sequence, group, change });
    }

    /// Applies a change to the durable names.
    fn settle(&mut self, change: &NameChange) {
        apply_to(&mut self.durable, change);
    }

    /// Makes the names of a directory durable.
    pub(super) fn sync_dir(&mut self, dir: u64) {
        self.version += 1;
        // Walks from the last change to the first, because a change can only force earlier ones. If
        // this sync clears the old name of a rename out of the directory, the new name has to be
        // durable before. And a name that becomes durable in its current state must also have gone
        // through its earlier changes.
        let mut entries: BTreeSet<(u64, OsString)> = BTreeSet::new();
        let mut firsts: BTreeSet<u64> = BTreeSet::new();
        let mut covered: Vec<bool> = Vec::with_capacity(self.pending_names.len());
        for item in self.pending_names.iter().rev() {
            let covers =
                item.change.dir == dir || firsts.contains(&item.sequence) || entries.contains(&item.entry());
            if covers {
                entries.insert(item.entry());
                firsts.insert(item.group);
            }
            covered.push(covers);
        }
        debug_assert!(covered.len() == self.pending_names.len(), "a change is neither durable nor pending");
        let mut rest = Vec::new();
        let covered = covered.into_iter().rev();
        for (item, covered) in Arc::clone(&self.pending_names).iter().zip(covered) {
            if covered {
                self.settle(&item.change);
            } else {
                rest.push(item.clone());
            }
        }
        debug_assert!(rest.iter().all(|item| item.change.dir != dir), "a change of directory {dir} is left");
        debug_assert!(
            rest.iter().all(|item| !firsts.contains(&item.sequence)),
            "the second half of a rename is durable before the first"
        );
        self.pending_names = Arc::new(rest);
        self.check();
    }

    /// Simulates a failed sync of a file's bytes and length.
    pub(super) fn fail_sync_data(&mut self, inode: u64, options: &FaultOptions, rng: &mut SeededRng) {
        let failure = options.sync_failure;
        let reached = match self.tree.node(inode) {
            Some(Node::File(file)) if failure == SyncFailure::Partial => {
                Some(self.draw_content(file, CrashImage::Random(rng.next_u64()), options))
            }
            _ => None,
        };
        debug_assert!(
            reached.is_some() == (failure == SyncFailure::Partial) || self.tree.file(inode).is_none()
        );
        self.with_file(inode, |file| file.fail_sync(failure, reached));
    }

    /// Simulates a failed sync of a directory's names.
    pub(super) fn fail_sync_dir(&mut self, dir: u64, failure: SyncFailure, rng: &mut SeededRng) {
        self.version += 1;
        if failure == SyncFailure::Kept {
            return;
        }
        // Both halves of a rename share a fate, and so do all other changes of their names.
        let mut lost: BTreeSet<(u64, OsString)> = BTreeSet::new();
        let mut groups: BTreeSet<u64> = BTreeSet::new();
        loop {
            let before = (lost.len(), groups.len());
            for item in self.pending_names.iter() {
                if item.change.dir == dir || lost.contains(&item.entry()) || groups.contains(&item.group) {
                    lost.insert(item.entry());
                    groups.insert(item.group);
                }
            }
            if before == (lost.len(), groups.len()) {
                break;
            }
        }
        debug_assert!(
            self.pending_names
                .iter()
                .all(|item| lost.contains(&item.entry()) == groups.contains(&item.group)),
            "one half of a rename is lost without the other"
        );
        if failure == SyncFailure::Partial {
            // File systems keep changes of names in order. Both halves of a rename are in one
            // group.
            let end = rng.below(groups.len() as u64 + 1) as usize;
            let reached: BTreeSet<u64> = groups.into_iter().take(end).collect();
            for item in Arc::clone(&self.pending_names).iter().filter(|item| reached.contains(&item.group)) {
                self.settle(&item.change);
            }
        }
        Arc::make_mut(&mut self.pending_names).retain(|item| !lost.contains(&item.entry()));
        debug_assert!(self.pending_names.iter().all(|item| item.change.dir != dir));
        self.check();
        if failure == SyncFailure::Lost {
            for (dir, name) in lost {
                let target = self.durable.get(&dir).and_then(|names| names.get(&name)).copied();
                self.tree.apply(&NameChange { dir, name, target });
            }
        }
    }

    pub(super) fn write(&mut self, inode: u64, offset: u64, bytes: Arc<[u8]>) {
        debug_assert!(!bytes.is_empty(), "a write of nothing is pending");
        debug_assert!(self.tree.file(inode).is_some(), "inode {inode} is written, which is no file");
        let sequence = self.next_sequence();
        if let Some(file) = self.tree.file_mut(inode) {
            file.write(sequence, offset, bytes);
        }
    }

    pub(super) fn set_len(&mut self, inode: u64, len: u64) {
        debug_assert!(self.tree.file(inode).is_some(), "inode {inode} gets a length, which is no file");
        let sequence = self.next_sequence();
        if let Some(file) = self.tree.file_mut(inode) {
            file.set_len(sequence, len);
        }
    }

    /// Changes a file other than by a pending change.
    pub(super) fn with_file(&mut self, inode: u64, change: impl FnOnce(&mut FileState)) {
        debug_assert!(self.tree.file(inode).is_some(), "inode {inode} changes, which is no file");
        self.version += 1;
        if let Some(file) = self.tree.file_mut(inode) {
            change(file);
        }
    }

    /// Discards file content that is visible to programs but will never reach the disk.
    pub(super) fn drop_caches(&mut self) {
        let diverged: Vec<u64> =
            self.tree.files().filter(|(_, file)| file.diverged).map(|(inode, _)| inode).collect();
        diverged.into_iter().for_each(|inode| self.with_file(inode, FileState::drop_cache));
        debug_assert!(
            self.tree.files().all(|(_, file)| !file.diverged),
            "a file still differs from the disk"
        );
    }

    /// Returns the bytes occupied by files that are named or open.
    pub(super) fn used_bytes(&self, open: &OpenTable) -> u64 {
        let mut named = BTreeSet::new();
        for (_, node) in self.tree.nodes() {
            if let Node::Dir(names) = node {
                named.extend(names.values().copied());
            }
        }
        let kept = self.tree.files().filter(|(inode, _)| named.contains(inode) || open.is_open(*inode));
        kept.map(|(_, file)| file.live.page_count() * PAGE).sum()
    }

    /// Frees inodes that neither a program nor a crash can reach any more.
    pub(super) fn collect_garbage(&mut self, open: &OpenTable) {
        let mut reached: BTreeSet<u64> = BTreeSet::new();
        let mut todo: Vec<u64> = vec![ROOT];
        todo.extend(self.pending_names.iter().filter_map(|item| item.change.target));
        while let Some(inode) = todo.pop() {
            if reached.insert(inode) {
                todo.extend(self.tree.names(inode).into_iter().flat_map(|names| names.values()));
                todo.extend(self.durable.get(&inode).into_iter().flat_map(|names| names.values()));
            }
        }
        debug_assert!(reached.contains(&ROOT));
        self.tree.retain(|inode| reached.contains(&inode) || open.is_open(inode));
        self.durable.retain(|dir, _| reached.contains(dir));
        debug_assert!(
            self.pending_names
                .iter()
                .all(|item| item.change.target.is_none_or(|inode| self.tree.node(inode).is_some())),
            "an inode is freed to which a crash may give a name"
        );
    }
}

/// Applies a change to a set of directories.
pub(super) fn apply_to(dirs: &mut BTreeMap<u64, Arc<Names>>, change: &NameChange) {
    let names = Arc::make_mut(dirs.entry(change.dir).or_default());
    match change.target {
        Some(target) => _ = names.insert(change.name.clone(), target),
        None => _ = names.remove(&change.name),
    }
}
