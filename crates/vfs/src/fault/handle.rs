//! An open file on the simulated disk.

use std::io;
use std::path::{Path, PathBuf};

use super::io::Target;
use super::state::State;
use super::{DEVICE, FaultFs};
use crate::{Advice, Error, File, FileId, Map, Operation, Result};

#[derive(Debug)]
pub(super) struct FaultFile {
    pub(super) fs: FaultFs,
    pub(super) path: PathBuf,
    pub(super) target: Target,
}

impl FaultFile {
    fn call<T>(
        &self,
        operation: Operation,
        offset: Option<u64>,
        call: impl FnOnce(&mut State, Target) -> io::Result<T>,
    ) -> Result<T> {
        let mut state = self.fs.state();
        let inode = self.target.inode;
        debug_assert!(state.open.is_open(inode), "inode {inode} is used, which is not open");
        debug_assert!(state.disk.tree.file(inode).is_some(), "inode {inode} is gone, which is open");
        let result = call(&mut state, self.target);
        result.map_err(|source| Error { operation, path: self.path.clone(), offset, source })
    }
}

impl File for FaultFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn id(&self) -> FileId {
        FileId { device: DEVICE, inode: self.target.inode }
    }

    fn len(&self) -> Result<u64> {
        self.call(Operation::Stat, None, State::len)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.call(Operation::Read, Some(offset), |state, target| state.read(target, buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.call(Operation::Write, Some(offset), |state, target| state.write(target, buf, offset))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.call(Operation::SetLen, None, |state, target| state.set_len(target, len))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.call(Operation::Allocate, Some(offset), |state, target| state.allocate(target, offset, len))
    }

    fn sync_data(&self) -> Result<()> {
        self.call(Operation::SyncData, None, State::sync_data)
    }

    fn try_lock(&self) -> Result<()> {
        self.call(Operation::Lock, None, State::try_lock)
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) {}

    fn map(&self) -> Result<Map> {
        self.call(Operation::Map, None, State::map)
    }
}

impl Drop for FaultFile {
    fn drop(&mut self) {
        self.fs.state().close(self.target.inode, self.target.handle);
    }
}
