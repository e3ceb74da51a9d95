//! A file system in memory, for tests and for data that need not survive the process.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::checks::{check_direct, check_offset, check_open, check_writable};
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use crate::{Access, Advice, Error, File, FileId, Fs, Map, Metadata, OpenOptions, Operation, Result};

pub(crate) mod content;
pub(crate) mod open;
pub(crate) mod tree;

use content::{Content, check_end};
use open::OpenTable;
use tree::{Found, NameChange, Node, Tree};

/// A file system in memory. Names refer to inodes, and an open file outlives its last name. Errors
/// are those of [`StdFs`] on Linux. Clones share the files.
///
/// It starts with an empty root directory, to which relative paths are resolved. Nothing is ever
/// lost: syncs do nothing.
///
/// [`StdFs`]: crate::StdFs
#[derive(Debug, Clone)]
pub struct MemFs {
    shared: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    tree: Tree<Content>,
    open: OpenTable,
}

impl MemFs {
    /// Creates an empty file system.
    pub fn new() -> Self {
        MemFs { shared: Arc::new(Mutex::new(State { tree: Tree::new(), open: OpenTable::default() })) }
    }

    /// Adds a file at `path` that shadows `file`, which may be on any file system. The shadow reads
    /// like `file`, and writes to it stay in this `MemFs`. Code that changes files can thus be
    /// tried on them at the cost of the pages it changes. `file` must not change while the shadow
    /// exists; see [`File::map`].
    ///
    /// Errors: `Conflict` when `path` exists; the directory of `path` is missing; `file` cannot be
    /// mapped.
    pub fn add_shadow(&self, path: &Path, file: &dyn File) -> Result<()> {
        let content = Content::shadow_of(file.map()?);
        let handle = self.open(path, OpenOptions::create_new())?;
        let mut state = self.state();
        let tree = &mut state.tree;
        let added = tree.file_mut(handle.id().inode).map(|added| *added = content);
        drop(state);
        added.ok_or_else(|| Error::new(Operation::Open, path, Errno::BADF.into()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is completed before anything can panic, so the state of a poisoned mutex is
        // consistent.
        lock(&self.shared)
    }
}

impl Default for MemFs {
    fn default() -> Self {
        MemFs::new()
    }
}

impl State {
    /// Applies a change, and frees the file that loses its last name by it.
    fn apply(&mut self, change: &NameChange) {
        let replaced = self.tree.names(change.dir).ok().and_then(|names| names.get(&change.name).copied());
        debug_assert!(replaced != change.target || replaced.is_none(), "{change:?} changes nothing");
        self.tree.apply(change);
        if let Some(inode) = replaced {
            self.drop_if_unused(inode);
        }
    }

    fn drop_if_unused(&mut self, inode: u64) {
        if !self.open.is_open(inode) && !self.tree.is_named(inode) {
            self.tree.forget(inode);
        }
        debug_assert!(
            self.tree.node(inode).is_some() == (self.open.is_open(inode) || self.tree.is_named(inode))
        );
    }

    fn open(&mut self, path: &Path, options: OpenOptions) -> io::Result<(u64, u64)> {
        check_open(options)?;
        let inode = match self.tree.find_file(path, options.create)? {
            Found::Existing(inode) => inode,
            Found::Missing(place) => {
                let inode = self.tree.add_file(Content::default());
                self.tree.apply(&place.set(Some(inode)));
                inode
            }
        };
        debug_assert!(self.tree.file(inode).is_some(), "inode {inode} is opened, which is not a file");
        Ok((inode, self.open.open(inode)))
    }
}

/// The one device of `MemFs`. Inodes are numbered per instance, so ids of two instances can be
/// equal.
const DEVICE: u64 = 0;

pub(crate) fn metadata_of<F>(tree: &Tree<F>, inode: u64, device: u64, len: impl Fn(&F) -> u64) -> Metadata {
    debug_assert!(tree.node(inode).is_some(), "inode {inode} has a name, but is gone");
    let (is_dir, len) = match tree.node(inode) {
        Some(Node::File(file)) => (false, len(file)),
        _ => (true, 0),
    };
    Metadata { len, is_dir, is_file: !is_dir, id: FileId { device, inode } }
}

impl Fs for MemFs {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let opened = self.state().open(path, options);
        let (inode, handle) = opened.map_err(|source| Error::new(Operation::Open, path, source))?;
        Ok(Box::new(MemFile { fs: self.clone(), path: path.to_owned(), options, inode, handle }))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let state = self.state();
        let inode = state.tree.lookup(path).map_err(|source| Error::new(Operation::Stat, path, source))?;
        Ok(metadata_of(&state.tree, inode, DEVICE, Content::len))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state();
        let plan = state.tree.plan_rename(from, to);
        if let Some((set, clear)) = plan.map_err(|source| Error::new(Operation::Rename, from, source))? {
            debug_assert!(
                set.target.is_some() && clear.target.is_none(),
                "{set:?} and {clear:?} are no rename"
            );
            state.apply(&set);
            state.apply(&clear);
        }
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state();
        let plan = state.tree.plan_link(from, to);
        state.apply(&plan.map_err(|source| Error::new(Operation::Link, to, source))?);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        let plan = state.tree.plan_remove(path);
        state.apply(&plan.map_err(|source| Error::new(Operation::Remove, path, source))?);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        let plan = state.tree.plan_remove_dir(path);
        state.apply(&plan.map_err(|source| Error::new(Operation::Remove, path, source))?);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let created = self.state().tree.create_dirs(path);
        created.map(|_| ()).map_err(|source| Error::new(Operation::CreateDir, path, source))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let state = self.state();
        let names = state.tree.lookup(path).and_then(|inode| state.tree.names(inode));
        let names = names.map_err(|source| Error::new(Operation::ReadDir, path, source))?;
        let paths: Vec<PathBuf> = names.keys().map(|name| path.join(name)).collect();
        debug_assert!(paths.is_sorted(), "the names of a directory are out of order");
        Ok(paths)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let state = self.state();
        let names = state.tree.lookup(path).and_then(|inode| state.tree.names(inode).map(|_| ()));
        names.map_err(|source| Error::new(Operation::SyncDir, path, source))
    }
}

#[derive(Debug)]
struct MemFile {
    fs: MemFs,
    path: PathBuf,
    options: OpenOptions,
    inode: u64,
    handle: u64,
}

impl MemFile {
    fn with<T>(
        &self,
        operation: Operation,
        offset: Option<u64>,
        call: impl FnOnce(&mut Content) -> io::Result<T>,
    ) -> Result<T> {
        let mut state = self.fs.state();
        debug_assert!(state.open.is_open(self.inode), "inode {} is used, which is not open", self.inode);
        let content = state.tree.file_mut(self.inode).ok_or_else(|| Errno::BADF.into());
        content.and_then(call).map_err(|source| Error { operation, path: self.path.clone(), offset, source })
    }

    fn check_io(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        check_offset(offset, 0)?;
        if self.options.direct { check_direct(buf, offset) } else { Ok(()) }
    }

    fn access(&self) -> Access {
        self.options.access
    }
}

impl File for MemFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn id(&self) -> FileId {
        FileId { device: DEVICE, inode: self.inode }
    }

    fn len(&self) -> Result<u64> {
        self.with(Operation::Stat, None, |content| Ok(content.len()))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.with(Operation::Read, Some(offset), |content| {
            self.check_io(buf, offset)?;
            Ok(content.read(buf, offset))
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.with(Operation::Write, Some(offset), |content| {
            check_writable(self.access())?;
            self.check_io(buf, offset)?;
            check_end(offset, buf.len() as u64)?;
            content.write(buf, offset);
            debug_assert!(buf.is_empty() || content.len() >= offset + buf.len() as u64);
            Ok(buf.len())
        })
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.with(Operation::SetLen, None, |content| {
            check_writable(self.access())?;
            check_offset(len, 0)?;
            check_end(len, 0)?;
            content.set_len(len);
            debug_assert!(content.len() == len);
            Ok(())
        })
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.with(Operation::Allocate, Some(offset), |_| {
            check_writable(self.access())?;
            check_offset(offset, len)?;
            if len == 0 { Ok(()) } else { check_end(offset, len) }
        })
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> Result<()> {
        if self.fs.state().open.try_lock(self.inode, self.handle) {
            return Ok(());
        }
        Err(Error::new(Operation::Lock, &self.path, Errno::WOULDBLOCK.into()))
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) {}

    fn map(&self) -> Result<Map> {
        self.with(Operation::Map, None, |content| content.to_map())
    }
}

impl Drop for MemFile {
    fn drop(&mut self) {
        let mut state = self.fs.state();
        if state.open.close(self.inode, self.handle) {
            state.drop_if_unused(self.inode);
        }
    }
}

#[cfg(test)]
mod tests;
