//! A simulated disk that loses power, fills up, fails, lies and rots, on request and reproducibly
//! from a seed.
//!
//! [`FaultFs`] is an in-memory disk on which nothing is safe before its sync. Each write, length,
//! name and directory is *pending* until a sync covers it. A [`CrashImage`] decides which pending
//! changes survive, and in what shape. `docs/src/design/vfs.md` explains the design.
//!
//! ```
//! use std::path::Path;
//! use cairn_vfs::fault::{CrashImage, FaultFs, FaultOptions};
//! use cairn_vfs::{File, Fs, OpenOptions};
//!
//! let fs = FaultFs::new(FaultOptions::seeded(1));
//! let file = fs.open(Path::new("log"), OpenOptions::create())?;
//! file.write_all_at(b"hello", 0)?;
//! file.sync_data()?; // the bytes are safe now, but not the name
//! let after = fs.crash(CrashImage::None);
//! assert!(!after.exists(Path::new("log"))?);
//! assert!(file.len().is_err(), "handles from before the crash are dead");
//! # Ok::<(), cairn_vfs::Error>(())
//! ```
//!
//! To crash a workload at every operation, see [`crash_sweep`]. To fail each of its operations in
//! turn, see [`fault_sweep`].

use std::path::{Path, PathBuf};

use crate::mem::metadata_of;
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use crate::{Error, File, Fs, Metadata, OpenOptions, Operation, Result, SeededRng};

mod crash;
mod disk;
mod gate;
mod handle;
mod inspect;
mod io;
mod log;
mod options;
mod pending;
mod point;
mod replay;
mod shrink;
mod state;
mod sweep;

pub use crash::CrashImage;
pub use log::{LoggedOperation, ParseLogError, format_log, parse_log};
pub use options::{AtomicWrite, Fault, FaultOptions, Rule, SyncFailure, When};
pub use replay::replay;
pub use shrink::shrink;
pub use state::CrashPoint;
pub use sweep::{crash_sweep, fault_sweep};

use disk::Disk;
use handle::FaultFile;
use io::Target;
use log::LoggedOperation as L;
use state::State;

/// Inodes keep their numbers through crashes, so one device number suffices.
const DEVICE: u64 = 1;

/// A simulated machine with one disk. Clones are the same machine.
///
/// Without faults it behaves like [`MemFs`](crate::MemFs) and [`StdFs`](crate::StdFs), errors
/// included. It is safe to use from many threads. Runs are reproducible as far as the order of
/// calls is.
#[derive(Debug, Clone)]
pub struct FaultFs {
    shared: Arc<Mutex<State>>,
}

impl FaultFs {
    /// Creates a machine with an empty disk.
    pub fn new(options: FaultOptions) -> Self {
        let rng = SeededRng::new(options.seed).fork("faults");
        FaultFs::from_state(State::new(Arc::new(options), Disk::new(), rng))
    }

    fn from_state(state: State) -> Self {
        FaultFs { shared: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared)
    }

    /// Cuts the power and returns the machine after the restart. This machine and all its handles
    /// fail from now on.
    pub fn crash(&self, image: CrashImage) -> FaultFs {
        let mut state = self.state();
        state.gate.power_off();
        state.crash_point(state.gate.operations()).image(image)
    }

    /// Cuts the power and returns the two fixed images (nothing kept, everything kept) and `random`
    /// drawn ones.
    pub fn images_at_crash(&self, random: u64) -> Vec<(CrashImage, FaultFs)> {
        self.state().gate.power_off();
        let images: Vec<_> = self.crash_point().images(random).collect();
        debug_assert!(
            images.len() as u64 == random.saturating_add(2),
            "{} images, of which {random} are drawn",
            images.len()
        );
        images
    }

    /// Returns the state that a crash would hit now. The machine keeps running.
    pub fn crash_point(&self) -> CrashPoint {
        let state = self.state();
        state.crash_point(state.gate.operations())
    }

    /// Starts recording a [`CrashPoint`] for each state of the disk, until
    /// [`FaultFs::take_crash_points`]. One run of a workload thus yields all its crash points.
    pub fn capture_crash_points(&self) {
        self.state().start_capture();
    }

    /// Ends the capture and returns the points in order; the last one is the current state. Returns
    /// none when no capture was running.
    pub fn take_crash_points(&self) -> Vec<CrashPoint> {
        self.state().take_captured()
    }

    /// Cuts the power at the operation with this index (counted from 0). It and all later
    /// operations fail.
    pub fn crash_at(&self, index: u64) {
        self.state().gate.crash_at(index);
    }

    /// Returns true once the power is lost.
    pub fn is_powered_off(&self) -> bool {
        self.state().gate.is_powered_off()
    }

    /// Returns the number of operations requested while there was power: every call of [`Fs`] and
    /// [`File`] except `path`, `id`, `advise` and drop.
    pub fn operation_count(&self) -> u64 {
        self.state().gate.operations()
    }

    /// Returns the number of those operations that were of this kind.
    pub fn operation_count_of(&self, operation: Operation) -> u64 {
        self.state().gate.operations_of(operation)
    }

    /// Injects a fault. If several rules match an operation, the one added first applies.
    pub fn inject(&self, rule: Rule) {
        let mut state = self.state();
        state.note(|| L::Inject(rule));
        state.gate.inject(rule);
    }

    /// Removes all rules.
    pub fn clear_rules(&self) {
        let mut state = self.state();
        state.note(|| L::ClearRules);
        state.gate.clear_rules();
    }

    /// Returns the number of operations that a rule has hit.
    pub fn injected_count(&self) -> u64 {
        self.state().gate.injected()
    }

    /// Changes the size of the disk; `None` lifts the limit. Existing files stay.
    pub fn set_quota(&self, bytes: Option<u64>) {
        let mut state = self.state();
        state.note(|| L::SetQuota(bytes));
        state.quota_bytes = bytes;
    }

    /// Returns the log of everything done to this machine since it was first created, crashes
    /// included. Empty unless [`FaultOptions::record`] is set.
    pub fn log(&self) -> Vec<LoggedOperation> {
        self.state().log()
    }
}

impl Fs for FaultFs {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let opened = self.state().open(path, options);
        let (inode, handle) = opened.map_err(|source| Error::new(Operation::Open, path, source))?;
        let target = Target { inode, handle, options };
        Ok(Box::new(FaultFile { fs: self.clone(), path: path.to_owned(), target }))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let mut state = self.state();
        let inode = state
            .begin(Operation::Stat, || L::Metadata { path: path.to_owned() })
            .and_then(|_| state.disk.tree.lookup(path))
            .map_err(|source| Error::new(Operation::Stat, path, source))?;
        Ok(metadata_of(&state.disk.tree, inode, DEVICE, |file| file.live.len()))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state();
        let plan = state
            .begin(Operation::Rename, || L::Rename { from: from.to_owned(), to: to.to_owned() })
            .and_then(|_| state.disk.tree.plan_rename(from, to))
            .map_err(|source| Error::new(Operation::Rename, from, source))?;
        if let Some((set, clear)) = plan {
            debug_assert!(
                set.target.is_some()
                    && clear.target.is_none()
                    && (set.dir, &set.name) != (clear.dir, &clear.name)
            );
            state.disk.rename(set, clear);
        }
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state();
        let change = state
            .begin(Operation::Link, || L::HardLink { from: from.to_owned(), to: to.to_owned() })
            .and_then(|_| state.disk.tree.plan_link(from, to))
            .map_err(|source| Error::new(Operation::Link, to, source))?;
        debug_assert!(change.target.is_some(), "a link clears {:?}", change.name);
        state.disk.change_name(change);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        let change = state
            .begin(Operation::Remove, || L::Remove { path: path.to_owned() })
            .and_then(|_| state.disk.tree.plan_remove(path))
            .map_err(|source| Error::new(Operation::Remove, path, source))?;
        debug_assert!(change.target.is_none(), "a removal sets {:?}", change.name);
        state.disk.change_name(change);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        state
            .begin(Operation::CreateDir, || L::CreateDirAll { path: path.to_owned() })
            .and_then(|_| state.disk.create_dirs(path))
            .map_err(|source| Error::new(Operation::CreateDir, path, source))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let mut state = self.state();
        let begun = state.begin(Operation::ReadDir, || L::ReadDir { path: path.to_owned() });
        let names = begun.and_then(|_| state.disk.tree.lookup(path));
        let names = names.and_then(|dir| state.disk.tree.names(dir));
        let names = names.map_err(|source| Error::new(Operation::ReadDir, path, source))?;
        let paths: Vec<PathBuf> = names.keys().map(|name| path.join(name)).collect();
        debug_assert!(paths.is_sorted(), "the names of a directory are out of order");
        Ok(paths)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.state().sync_dir(path).map_err(|source| Error::new(Operation::SyncDir, path, source))
    }
}

#[cfg(test)]
mod tests;
