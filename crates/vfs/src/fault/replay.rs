//! Replays an operation log.

use std::collections::BTreeMap;

use super::log::LoggedOperation as L;
use super::{FaultFs, FaultOptions};
use crate::checks::DIRECT_ALIGNMENT;
use crate::{File, Fs};

/// Replays a log on a new machine. With the options of the first run it ends in the same state, as
/// [`FaultFs::state_hash`] can verify.
///
/// Results are ignored: an operation that failed in the first run may fail again. Lines about a
/// handle whose `open` is missing or failed are skipped, so that any subset of a log is a valid
/// log. [`shrink`](super::shrink) needs that.
pub fn replay(log: &[L], options: FaultOptions) -> FaultFs {
    let mut run = Run { fs: FaultFs::new(options), files: BTreeMap::new() };
    for operation in log {
        run.step(operation);
    }
    // Files that the log left open are closed now, without a log entry for that.
    let log = run.fs.state().take_log();
    run.files.clear();
    run.fs.state().put_log(log);
    run.fs
}

/// Limits reads, because a log written by hand may request any length.
const READ_BYTES_MAX: usize = 1 << 30;

struct Run {
    fs: FaultFs,
    files: BTreeMap<u64, Box<dyn File>>,
}

impl Run {
    fn step(&mut self, operation: &L) {
        match operation {
            L::Open { handle, path, options } => {
                if let Ok(file) = self.fs.open(path, *options) {
                    self.files.insert(*handle, file);
                }
            }
            L::Close { handle } => _ = self.files.remove(handle),
            L::Crash(image) => {
                let after = self.fs.crash(*image);
                self.files.clear();
                self.fs = after;
            }
            L::Read { handle, .. }
            | L::Write { handle, .. }
            | L::SetLen { handle, .. }
            | L::Allocate { handle, .. }
            | L::SyncData { handle }
            | L::TryLock { handle }
            | L::Len { handle }
            | L::Map { handle } => {
                if let Some(file) = self.files.get(handle) {
                    on_file(&**file, operation);
                }
            }
            _ => on_fs(&self.fs, operation),
        }
    }
}

fn on_file(file: &dyn File, operation: &L) {
    match operation {
        L::Read { offset, len, .. } => {
            let mut buffer = Aligned::new(usize::try_from(*len).unwrap_or(usize::MAX).min(READ_BYTES_MAX));
            let _ = file.read_at(buffer.bytes(), *offset);
        }
        L::Write { offset, bytes, .. } => {
            let mut buffer = Aligned::new(bytes.len());
            buffer.bytes().copy_from_slice(bytes);
            let _ = file.write_at(buffer.bytes(), *offset);
        }
        L::SetLen { len, .. } => _ = file.set_len(*len),
        L::Allocate { offset, len, .. } => _ = file.allocate(*offset, *len),
        L::SyncData { .. } => _ = file.sync_data(),
        L::TryLock { .. } => _ = file.try_lock(),
        L::Len { .. } => _ = file.len(),
        L::Map { .. } => _ = file.map(),
        _ => {}
    }
}

fn on_fs(fs: &FaultFs, operation: &L) {
    match operation {
        L::Metadata { path } => _ = fs.metadata(path),
        L::Rename { from, to } => _ = fs.rename(from, to),
        L::HardLink { from, to } => _ = fs.hard_link(from, to),
        L::Remove { path } => _ = fs.remove(path),
        L::CreateDirAll { path } => _ = fs.create_dir_all(path),
        L::ReadDir { path } => _ = fs.read_dir(path),
        L::SyncDir { path } => _ = fs.sync_dir(path),
        L::Inject(rule) => fs.inject(*rule),
        L::ClearRules => fs.clear_rules(),
        L::SetQuota(bytes) => fs.set_quota(*bytes),
        L::Install { path, bytes } => _ = fs.install(path, bytes),
        L::DropCaches => fs.drop_caches(),
        L::FlipBit { path, offset, bit } => _ = fs.flip_bit(path, *offset, *bit),
        L::ZeroTail { path, from } => _ = fs.zero_tail(path, *from),
        L::SwapBlocks { path, first, second, len } => _ = fs.swap_blocks(path, *first, *second, *len),
        _ => {}
    }
}

/// A buffer that direct I/O accepts.
struct Aligned {
    memory: Vec<u8>,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Aligned {
        Aligned { memory: vec![0; len + DIRECT_ALIGNMENT], len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        debug_assert!(self.memory.len() == self.len + DIRECT_ALIGNMENT);
        let skip = self.memory.as_ptr().addr().wrapping_neg() % DIRECT_ALIGNMENT;
        debug_assert!((self.memory.as_ptr().addr() + skip).is_multiple_of(DIRECT_ALIGNMENT));
        &mut self.memory[skip..skip + self.len]
    }
}
