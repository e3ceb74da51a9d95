//! Reads, writes and syncs of one open file, with their faults.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use super::gate::Gate;
use super::log::LoggedOperation;
use super::options::Fault;
use super::pending::FileState;
use super::state::State;
use crate::checks::{check_direct, check_offset, check_writable};
use crate::mem::content::{PAGE, check_end};
use crate::{Map, OpenOptions, Operation, Rng};

/// The file that a handle refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) inode: u64,
    pub(super) handle: u64,
    pub(super) options: OpenOptions,
}

impl State {
    fn file(&self, target: Target) -> io::Result<&FileState> {
        Ok(self.disk.tree.file(target.inode).ok_or(Errno::BADF)?)
    }

    pub(super) fn len(&mut self, target: Target) -> io::Result<u64> {
        self.begin(Operation::Stat, || LoggedOperation::Len { handle: target.handle })?;
        Ok(self.file(target)?.live.len())
    }

    pub(super) fn read(&mut self, target: Target, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let handle = target.handle;
        let len = buf.len() as u64;
        check_alignment(target, buf, offset)?;
        let fault = self.begin(Operation::Read, || LoggedOperation::Read { handle, offset, len })?;
        check_offset(offset, 0)?;
        let available = self.file(target)?.live.len().saturating_sub(offset);
        let count = buf.len().min(usize::try_from(available).unwrap_or(usize::MAX));
        let count = self.shorten(count, fault, self.options.short_reads);
        let (inode, at) = match (fault, self.last_read) {
            (Some(Fault::DuplicatedRead), Some(last)) => last,
            _ => (target.inode, offset),
        };
        debug_assert!(count <= buf.len() && count as u64 <= available);
        self.last_read = Some((target.inode, offset));
        if let Some(file) = self.disk.tree.file(inode) {
            file.live.peek(&mut buf[..count], at);
        }
        if fault == Some(Fault::BitFlip) {
            self.flip_one_bit(&mut buf[..count]);
        }
        Ok(count)
    }

    pub(super) fn write(&mut self, target: Target, buf: &[u8], offset: u64) -> io::Result<usize> {
        let handle = target.handle;
        check_alignment(target, buf, offset)?;
        let fault =
            self.begin(Operation::Write, || LoggedOperation::Write { handle, offset, bytes: buf.into() })?;
        check_writable(target.options.access)?;
        check_offset(offset, 0)?;
        check_end(offset, buf.len() as u64)?;
        let count = self.shorten(buf.len(), fault, self.options.short_writes);
        let count = self.fitting(target, offset, count)?;
        if count == 0 || fault == Some(Fault::Lost) {
            return Ok(count);
        }
        debug_assert!(count <= buf.len());
        let mut bytes = buf[..count].to_vec();
        let mut at = offset;
        match fault {
            Some(Fault::ZeroTail) => bytes[count / 2..].fill(0),
            Some(Fault::BitFlip) => self.flip_one_bit(&mut bytes),
            Some(Fault::Misdirected { by }) => {
                at = offset.saturating_add_signed(by);
                check_end(at, count as u64)?;
            }
            _ => {}
        }
        self.disk.write(target.inode, at, Arc::from(bytes));
        debug_assert!(
            self.file(target).is_ok_and(|file| file.live.len() >= at + count as u64),
            "the file ends before the {count} bytes at {at}"
        );
        Ok(count)
    }

    pub(super) fn set_len(&mut self, target: Target, len: u64) -> io::Result<()> {
        let handle = target.handle;
        self.begin(Operation::SetLen, || LoggedOperation::SetLen { handle, len })?;
        check_writable(target.options.access)?;
        check_offset(len, 0)?;
        check_end(len, 0)?;
        self.file(target)?;
        self.disk.set_len(target.inode, len);
        debug_assert!(self.file(target).is_ok_and(|file| file.live.len() == len));
        Ok(())
    }

    /// Takes up space under a quota. A disk without a quota has nothing to reserve.
    pub(super) fn allocate(&mut self, target: Target, offset: u64, len: u64) -> io::Result<()> {
        let handle = target.handle;
        self.begin(Operation::Allocate, || LoggedOperation::Allocate { handle, offset, len })?;
        check_writable(target.options.access)?;
        check_offset(offset, len)?;
        if len == 0 {
            return Ok(());
        }
        check_end(offset, len)?;
        let needed = self.file(target)?.live.missing_pages(offset, len);
        if let Some(free) = self.free_pages() {
            if needed > free {
                return Err(Errno::NOSPC.into());
            }
            self.disk.with_file(target.inode, |file| file.live.reserve(offset, len));
            debug_assert!(self.file(target).is_ok_and(|file| file.live.missing_pages(offset, len) == 0));
        }
        Ok(())
    }

    pub(super) fn sync_data(&mut self, target: Target) -> io::Result<()> {
        let handle = target.handle;
        let fault = self.begin(Operation::SyncData, || LoggedOperation::SyncData { handle })?;
        match fault {
            Some(Fault::Lost) => {}
            Some(Fault::Io | Fault::Full) => {
                self.disk.fail_sync_data(target.inode, &self.options, &mut self.rng);
            }
            _ => {
                self.disk.with_file(target.inode, FileState::sync);
                debug_assert!(self.file(target).is_ok_and(|file| file.pending.is_empty()));
            }
        }
        Gate::fail(fault).map(|_| ())
    }

    pub(super) fn map(&mut self, target: Target) -> io::Result<Map> {
        let fault = self.begin(Operation::Map, || LoggedOperation::Map { handle: target.handle })?;
        let content = &self.file(target)?.live;
        if fault != Some(Fault::BitFlip) {
            return content.to_map();
        }
        let mut bytes = content.to_vec();
        self.flip_one_bit(&mut bytes);
        Ok(Map::from_vec(bytes))
    }

    pub(super) fn try_lock(&mut self, target: Target) -> io::Result<()> {
        self.begin(Operation::Lock, || LoggedOperation::TryLock { handle: target.handle })?;
        if self.open.try_lock(target.inode, target.handle) { Ok(()) } else { Err(Errno::WOULDBLOCK.into()) }
    }

    /// Returns how many of `count` bytes a transfer moves: half of them under a fault, a random
    /// part by chance, but at least one.
    fn shorten(&mut self, count: usize, fault: Option<Fault>, chance: f64) -> usize {
        let moved = if count < 2 {
            count
        } else if fault == Some(Fault::Short) {
            count / 2
        } else if chance > 0.0 && self.rng.chance(chance) {
            1 + self.rng.below(count as u64 - 1) as usize
        } else {
            count
        };
        debug_assert!(moved <= count && (moved > 0) == (count > 0), "{moved} bytes move of {count}");
        moved
    }

    fn flip_one_bit(&mut self, bytes: &mut [u8]) {
        let bit = self.rng.below(bytes.len() as u64 * 8);
        if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }

    /// Returns the number of pages left under the quota, if there is one.
    fn free_pages(&self) -> Option<u64> {
        let quota = self.quota_bytes?;
        Some(quota.saturating_sub(self.disk.used_bytes(&self.open)) / PAGE)
    }

    /// Returns how many of `count` bytes fit. Fails with `ENOSPC` when none do.
    fn fitting(&self, target: Target, offset: u64, count: usize) -> io::Result<usize> {
        let live = &self.file(target)?.live;
        let len = count as u64;
        if self.quota_bytes.is_none() || live.missing_pages(offset, len) == 0 {
            return Ok(count);
        }
        let free = self.free_pages().unwrap_or(u64::MAX);
        match live.fitting(offset, len, free) {
            0 => Err(Errno::NOSPC.into()),
            some => {
                debug_assert!(some <= len, "{some} bytes fit of {len}");
                debug_assert!(live.missing_pages(offset, some) <= free, "{some} bytes exceed the quota");
                Ok(some as usize)
            }
        }
    }
}

/// Refuses misaligned direct transfers, before they are counted and logged. The log does not record
/// buffer addresses, so a replay could not refuse them.
fn check_alignment(target: Target, buf: &[u8], offset: u64) -> io::Result<()> {
    if target.options.direct { check_direct(buf, offset) } else { Ok(()) }
}
