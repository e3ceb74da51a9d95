//! Access that bypasses the engine, for tests: inspect the raw disk, install files on it, corrupt
//! it.
//!
//! These calls do not count as operations, and no fault can be injected into them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FaultFs;
use super::disk::Disk;
use super::log::LoggedOperation as L;
use super::pending::{DataChange, FileState};
use crate::mem::content::Content;
use crate::mem::tree::{Node, ROOT};
use crate::{Error, Operation, Result};

impl FaultFs {
    /// Installs a file on the disk, directories included, as if it had always been there. Replaces
    /// any existing file of that name.
    pub fn install(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut state = self.state();
        state.note(|| L::Install { path: path.to_owned(), bytes: bytes.into() });
        state
            .disk
            .install(path, Content::from_bytes(bytes))
            .map_err(|source| Error::new(Operation::Write, path, source))
    }

    /// Returns the bytes that programs see in a file; `None` when the file does not exist.
    pub fn bytes_of(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.disk.tree.lookup(path).ok()?;
        state.disk.tree.file(inode).map(|file| file.live.to_vec())
    }

    /// Returns the paths of all files that programs see, relative to the root and sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        let state = self.state();
        let mut files = Vec::new();
        let mut todo = vec![(PathBuf::new(), ROOT)];
        while let Some((path, inode)) = todo.pop() {
            match state.disk.tree.names(inode) {
                Ok(names) => todo.extend(names.iter().map(|(name, &inode)| (path.join(name), inode))),
                Err(_) => files.push(path),
            }
        }
        files.sort();
        debug_assert!(files.is_sorted_by(|a, b| a < b), "a file is listed twice under one path");
        files
    }

    /// Returns the bytes that files occupy, in pages of 4096, as a quota counts them.
    pub fn used_bytes(&self) -> u64 {
        let state = self.state();
        state.disk.used_bytes(&state.open)
    }

    /// Returns true when the disk holds the state that programs see, bytes and names, so that a
    /// crash now loses nothing. After a failed sync that leaves all its changes
    /// ([`SyncFailure::CacheOnly`](super::SyncFailure)) or some of them (`Partial`) only in the
    /// cache, this stays false until they are made again.
    pub fn is_settled(&self) -> bool {
        let state = self.state();
        let disk = &state.disk;
        debug_assert!(disk.pending_names.is_sorted_by(|a, b| a.sequence < b.sequence));
        let names_are_durable = disk.tree.nodes().all(|(inode, node)| match node {
            Node::Dir(names) => match disk.durable.get(&inode) {
                Some(durable) => durable == names,
                None => names.is_empty(),
            },
            Node::File(_) => true,
        });
        disk.pending_names.is_empty()
            && names_are_durable
            && disk.tree.files().all(|(_, file)| file.is_settled())
    }

    /// Drops caches, as a kernel short of memory may at any moment. Changes that a failed sync left
    /// only in the cache ([`SyncFailure::CacheOnly`](super::SyncFailure)) count as clean, so reads
    /// return the content of the disk from now on. Pending changes and names stay.
    pub fn drop_caches(&self) {
        let mut state = self.state();
        state.note(|| L::DropCaches);
        state.disk.drop_caches();
    }

    /// Flips a stored bit (0 is the lowest) in the cache and on the disk. Returns false when the
    /// file has no such byte.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> bool {
        self.corrupt(
            path,
            L::FlipBit { path: path.to_owned(), offset, bit },
            offset.saturating_add(1),
            |content| {
                let mut byte = [0];
                content.peek(&mut byte, offset);
                content.put(&[byte[0] ^ 1 << (bit % 8)], offset);
            },
        )
    }

    /// Overwrites all stored bytes from an offset on with zeros. Returns false when the file ends
    /// before it.
    pub fn zero_tail(&self, path: &Path, from: u64) -> bool {
        self.corrupt(path, L::ZeroTail { path: path.to_owned(), from }, from, |content| {
            let len = content.len();
            content.set_len(from.min(len));
            content.set_len(len);
        })
    }

    /// Exchanges two stored ranges of equal length. Returns false when the file does not cover
    /// both.
    pub fn swap_blocks(&self, path: &Path, first: u64, second: u64, len: u64) -> bool {
        let end = first.max(second).saturating_add(len);
        self.corrupt(path, L::SwapBlocks { path: path.to_owned(), first, second, len }, end, |content| {
            let mut blocks = [vec![0; len as usize], vec![0; len as usize]];
            content.peek(&mut blocks[0], first);
            content.peek(&mut blocks[1], second);
            content.put(&blocks[1], first);
            content.put(&blocks[0], second);
        })
    }

    fn corrupt(&self, path: &Path, entry: L, needs_len: u64, change: impl Fn(&mut Content)) -> bool {
        let mut state = self.state();
        state.note(|| entry);
        let inode = state.disk.tree.lookup(path).unwrap_or(ROOT);
        let long_enough = state.disk.tree.file(inode).is_some_and(|file| file.live.len() >= needs_len);
        debug_assert!(!long_enough || inode != ROOT, "the root directory is not a file");
        if long_enough {
            state.disk.with_file(inode, |file| file.corrupt(|content| change(content)));
        }
        long_enough
    }

    /// Returns a digest of everything that determines future behaviour: bytes, names, pending
    /// changes, the operation counter and the state of the random stream. Two runs from one seed
    /// must end with equal digests.
    pub fn state_hash(&self) -> u64 {
        let state = self.state();
        let mut hash = Fnv1a::default();
        hash.number(state.gate.operations());
        hash.number(state.rng.fingerprint());
        hash.number(state.quota_bytes.unwrap_or(u64::MAX));
        hash.disk(&state.disk);
        hash.0
    }
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo, 1991).
struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 =
            bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Hashes the length first, so that two different sequences cannot run together.
    fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes(bytes);
    }

    fn disk(&mut self, disk: &Disk) {
        for (inode, node) in disk.tree.nodes() {
            self.number(inode);
            match node {
                Node::Dir(names) => self.names(names),
                Node::File(file) => self.file(file),
            }
        }
        for (&dir, names) in &disk.durable {
            self.number(dir);
            self.names(names);
        }
        for item in disk.pending_names.iter() {
            self.number(item.sequence);
            self.number(item.group);
            self.number(item.change.dir);
            self.text(item.change.name.as_encoded_bytes());
            self.number(item.change.target.unwrap_or(0));
        }
    }

    fn names(&mut self, names: &Arc<crate::mem::tree::Names>) {
        self.number(names.len() as u64);
        for (name, &inode) in names.iter() {
            self.text(name.as_encoded_bytes());
            self.number(inode);
        }
    }

    fn file(&mut self, file: &FileState) {
        file.live.digest(|bytes| self.bytes(bytes));
        file.durable.digest(|bytes| self.bytes(bytes));
        self.number(u64::from(file.diverged));
        for item in &file.pending {
            self.number(item.sequence);
            match &item.change {
                DataChange::Write { offset, bytes, .. } => {
                    self.number(*offset);
                    self.text(bytes);
                }
                DataChange::SetLen(len) => self.number(!len),
            }
        }
    }
}
