//! The names of a simulated file system: directories and the inodes their entries refer to.
//!
//! Changes are planned first, with every check that Linux makes, and returned as a list of
//! [`NameChange`]s. The in-memory disk applies them at once. The disk that loses power also keeps
//! them pending until a directory sync.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::io::Errno;

use crate::Create;

pub(crate) const ROOT: u64 = 1;
// In digests, 0 stands for no inode.
const _: () = assert!(ROOT > 0);

/// The content of a directory: names and their inodes.
pub(crate) type Names = BTreeMap<OsString, u64>;

/// Inodes and the directory tree over them. `F` is the content of a file's inode. Clones share
/// everything that neither of them changes.
#[derive(Debug, Clone)]
pub(crate) struct Tree<F> {
    nodes: BTreeMap<u64, Node<F>>,
    next: u64,
}

#[derive(Debug)]
pub(crate) enum Node<F> {
    Dir(Arc<Names>),
    File(Arc<F>),
}

impl<F> Clone for Node<F> {
    fn clone(&self) -> Self {
        match self {
            Node::Dir(names) => Node::Dir(Arc::clone(names)),
            Node::File(file) => Node::File(Arc::clone(file)),
        }
    }
}

/// A change of one directory entry: set or cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameChange {
    pub(crate) dir: u64,
    pub(crate) name: OsString,
    /// `None` clears the entry.
    pub(crate) target: Option<u64>,
}

/// The location of a path: its directory, its last name, and the current target of that name.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: u64,
    pub(crate) name: OsString,
    pub(crate) target: Option<u64>,
}

/// The result of resolving a path that is to be opened.
#[derive(Debug)]
pub(crate) enum Found {
    Existing(u64),
    Missing(Place),
}

impl Place {
    pub(crate) fn set(self, target: Option<u64>) -> NameChange {
        NameChange { dir: self.dir, name: self.name, target }
    }
}

impl<F> Tree<F> {
    /// Creates an empty root directory.
    pub(crate) fn new() -> Self {
        Tree { nodes: BTreeMap::from([(ROOT, Node::Dir(Arc::default()))]), next: ROOT + 1 }
    }

    /// Returns the inode at a path.
    pub(crate) fn lookup(&self, path: &Path) -> io::Result<u64> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT.into());
        }
        let inode = *self.walk(path)?.last().unwrap_or(&ROOT);
        debug_assert!(self.node(inode).is_some(), "{} names inode {inode}, which is gone", path.display());
        Ok(inode)
    }

    /// Resolves a path whose last name need not exist. Its directory must.
    pub(crate) fn locate(&self, path: &Path) -> io::Result<Place> {
        let Some(name) = path.file_name() else {
            // The root, `..` and the like have no entry that could be changed.
            self.lookup(path)?;
            return Err(Errno::BUSY.into());
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        let dir = *self.walk(parent)?.last().unwrap_or(&ROOT);
        let target = self.names(dir)?.get(name).copied();
        debug_assert!(
            target.is_none_or(|inode| self.node(inode).is_some()),
            "{name:?} names an inode that is gone"
        );
        Ok(Place { dir, name: name.to_owned(), target })
    }

    /// Resolves the path of an open: the inode of a file, or the place to create one.
    pub(crate) fn find_file(&self, path: &Path, create: Create) -> io::Result<Found> {
        let inode = match (create, self.locate(path)) {
            (Create::Never, _) => self.lookup(path)?,
            (_, Ok(place)) => match place.target {
                Some(inode) => inode,
                None => return Ok(Found::Missing(place)),
            },
            // A path such as `/` exists, but has no entry that could be created.
            (_, Err(error)) => self.lookup(path).map_err(|_| error)?,
        };
        if create == Create::New {
            return Err(Errno::EXIST.into());
        }
        if self.is_dir(inode) {
            return Err(Errno::ISDIR.into());
        }
        debug_assert!(self.file(inode).is_some(), "inode {inode} is neither a directory nor a file");
        Ok(Found::Existing(inode))
    }

    /// Returns the inodes along a path below the root, from the top.
    fn walk(&self, path: &Path) -> io::Result<Vec<u64>> {
        let mut way: Vec<u64> = Vec::new();
        for component in path.components() {
            let here = *way.last().unwrap_or(&ROOT);
            let names = self.names(here)?;
            match component {
                Component::RootDir => way.clear(),
                Component::ParentDir => _ = way.pop(),
                Component::Normal(name) => way.push(*names.get(name).ok_or(Errno::NOENT)?),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        debug_assert!(!way.contains(&ROOT), "a directory is above itself: {way:?}");
        Ok(way)
    }

    /// Returns the entries of a directory; `ENOTDIR` for a file.
    pub(crate) fn names(&self, dir: u64) -> io::Result<&Names> {
        match self.nodes.get(&dir) {
            Some(Node::Dir(names)) => Ok(names),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(crate) fn is_dir(&self, inode: u64) -> bool {
        matches!(self.nodes.get(&inode), Some(Node::Dir(_)))
    }

    pub(crate) fn file(&self, inode: u64) -> Option<&F> {
        match self.nodes.get(&inode) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn file_mut(&mut self, inode: u64) -> Option<&mut F>
    where
        F: Clone,
    {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(file)) => Some(Arc::make_mut(file)),
            _ => None,
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u64, &Node<F>)> {
        self.nodes.iter().map(|(&inode, node)| (inode, node))
    }

    pub(crate) fn node(&self, inode: u64) -> Option<&Node<F>> {
        self.nodes.get(&inode)
    }

    /// Adds an inode for a new file that has no name yet.
    pub(crate) fn add_file(&mut self, file: F) -> u64 {
        self.add(Node::File(Arc::new(file)))
    }

    fn add(&mut self, node: Node<F>) -> u64 {
        let inode = self.next;
        debug_assert!(
            self.nodes.last_key_value().is_none_or(|(&last, _)| last < inode),
            "inode {inode} is not above all others"
        );
        self.next += 1;
        let before = self.nodes.insert(inode, node);
        debug_assert!(before.is_none() && inode > ROOT, "inode {inode} was in use");
        inode
    }

    /// Inserts a node under the given inode number.
    pub(crate) fn insert(&mut self, inode: u64, node: Node<F>) {
        debug_assert!(inode >= ROOT);
        self.next = self.next.max(inode + 1);
        let before = self.nodes.insert(inode, node);
        debug_assert!(before.is_none() || inode == ROOT, "inode {inode} is inserted twice");
    }

    /// Iterates over all files, named or not.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u64, &F)> {
        self.nodes.iter().filter_map(|(&inode, node)| match node {
            Node::File(file) => Some((inode, &**file)),
            Node::Dir(_) => None,
        })
    }

    /// Removes the inodes for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        self.nodes.retain(|&inode, _| keep(inode));
        debug_assert!(self.is_dir(ROOT), "the root is gone");
    }

    pub(crate) fn forget(&mut self, inode: u64) {
        debug_assert!(inode != ROOT && !self.is_named(inode), "inode {inode} is freed, which has a name");
        debug_assert!(
            !self.names(inode).is_ok_and(|names| !names.is_empty()),
            "directory {inode} is freed, which is not empty"
        );
        self.nodes.remove(&inode);
    }

    /// Returns true while a name refers to the inode. Costs a scan of every name.
    pub(crate) fn is_named(&self, inode: u64) -> bool {
        self.nodes.values().any(|node| match node {
            Node::Dir(names) => names.values().any(|&target| target == inode),
            Node::File(_) => false,
        })
    }

    /// Applies a change. Does nothing if the directory no longer exists.
    pub(crate) fn apply(&mut self, change: &NameChange) {
        debug_assert!(change.target.is_none_or(|target| target < self.next), "{change:?} names no inode");
        if let Some(Node::Dir(names)) = self.nodes.get_mut(&change.dir) {
            let names = Arc::make_mut(names);
            match change.target {
                Some(target) => _ = names.insert(change.name.clone(), target),
                None => _ = names.remove(&change.name),
            }
            debug_assert!(names.get(&change.name).copied() == change.target);
        }
    }

    /// Creates a directory and its missing parents. Returns the changes that name them, already
    /// applied.
    pub(crate) fn create_dirs(&mut self, path: &Path) -> io::Result<Vec<NameChange>> {
        let mut changes = Vec::new();
        let mut way: Vec<u64> = Vec::new();
        for component in path.components() {
            let here = *way.last().unwrap_or(&ROOT);
            self.names(here)?;
            match component {
                Component::RootDir => way.clear(),
                Component::ParentDir => _ = way.pop(),
                Component::Normal(name) => way.push(self.enter_or_create(here, name, &mut changes)?),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        // A file as the last component is a conflict. A file in the middle failed with ENOTDIR
        // above.
        if way.last().is_some_and(|&inode| !self.is_dir(inode)) {
            return Err(Errno::EXIST.into());
        }
        Ok(changes)
    }

    fn enter_or_create(&mut self, here: u64, name: &OsStr, changes: &mut Vec<NameChange>) -> io::Result<u64> {
        if let Some(&inode) = self.names(here)?.get(name) {
            return Ok(inode);
        }
        let inode = self.add(Node::Dir(Arc::default()));
        let change = NameChange { dir: here, name: name.to_owned(), target: Some(inode) };
        self.apply(&change);
        changes.push(change);
        debug_assert!(self.is_dir(inode) && self.is_dir(here));
        Ok(inode)
    }

    /// Plans a rename. The first change sets the new name, the second clears the old one. Returns
    /// `None` when both names already refer to the same file.
    pub(crate) fn plan_rename(&self, from: &Path, to: &Path) -> io::Result<Option<(NameChange, NameChange)>> {
        let from_place = self.locate(from)?;
        let to_place = self.locate(to)?;
        let source = from_place.target.ok_or(Errno::NOENT)?;
        if self.is_dir(source) && self.walk(to.parent().unwrap_or(Path::new("")))?.contains(&source) {
            return Err(Errno::INVAL.into()); // a directory cannot move into itself
        }
        if let Some(target) = to_place.target {
            if target != source && self.walk(from)?.contains(&target) {
                // a directory cannot be replaced by its own descendant
                return Err(Errno::NOTEMPTY.into());
            }
            if target == source {
                return Ok(None);
            }
            match (self.is_dir(source), self.is_dir(target)) {
                (false, true) => return Err(Errno::ISDIR.into()),
                (true, false) => return Err(Errno::NOTDIR.into()),
                (true, true) if !self.names(target)?.is_empty() => return Err(Errno::NOTEMPTY.into()),
                _ => {}
            }
        }
        debug_assert!(source != ROOT, "the root has no name");
        debug_assert!(
            (from_place.dir, &from_place.name) != (to_place.dir, &to_place.name),
            "the new name {:?} is the old one, and would be cleared",
            to_place.name
        );
        Ok(Some((to_place.set(Some(source)), from_place.set(None))))
    }

    /// Plans a hard link.
    pub(crate) fn plan_link(&self, from: &Path, to: &Path) -> io::Result<NameChange> {
        let source = self.lookup(from)?;
        let place = self.locate(to)?;
        if place.target.is_some() {
            return Err(Errno::EXIST.into());
        }
        if self.is_dir(source) {
            return Err(Errno::PERM.into());
        }
        debug_assert!(self.file(source).is_some(), "inode {source} gets a name, which is not a file");
        Ok(place.set(Some(source)))
    }

    /// Plans the removal of a file's name.
    pub(crate) fn plan_remove(&self, path: &Path) -> io::Result<NameChange> {
        let place = self.locate(path)?;
        let target = place.target.ok_or(Errno::NOENT)?;
        if self.is_dir(target) {
            return Err(Errno::ISDIR.into());
        }
        debug_assert!(self.file(target).is_some(), "{:?} names inode {target}, which is gone", place.name);
        Ok(place.set(None))
    }

    /// Plans the removal of an empty directory.
    pub(crate) fn plan_remove_dir(&self, path: &Path) -> io::Result<NameChange> {
        let place = self.locate(path)?;
        debug_assert!(place.target != Some(ROOT), "{:?} names the root", place.name);
        match self.names(place.target.ok_or(Errno::NOENT)?)?.is_empty() {
            true => Ok(place.set(None)),
            false => Err(Errno::NOTEMPTY.into()),
        }
    }
}
