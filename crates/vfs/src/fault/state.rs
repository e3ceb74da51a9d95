//! The state of the simulated machine behind its lock: disk, open files, rules.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::crash::CrashImage;
use super::disk::Disk;
use super::gate::Gate;
use super::log::LoggedOperation;
use super::options::{Fault, FaultOptions};
use crate::checks::check_open;
use crate::mem::open::OpenTable;
use crate::mem::tree::Found;
use crate::{OpenOptions, Operation, SeededRng};

/// The operations so far. Shared with crash points, each of which knows the length of its own
/// prefix.
pub(super) type Log = Arc<Mutex<Vec<Arc<LoggedOperation>>>>;

#[derive(Debug)]
pub(super) struct State {
    pub(super) disk: Disk,
    pub(super) open: OpenTable,
    pub(super) gate: Gate,
    pub(super) options: Arc<FaultOptions>,
    pub(super) quota_bytes: Option<u64>,
    pub(super) rng: SeededRng,
    /// Inode and offset of the last read, for [`Fault::DuplicatedRead`].
    pub(super) last_read: Option<(u64, u64)>,
    log: Option<Log>,
    captured: Option<Captured>,
}

/// The crash points captured while a workload runs.
#[derive(Debug, Default)]
struct Captured {
    points: Vec<CrashPoint>,
    /// The version of the disk at the last point.
    version: Option<u64>,
}

/// A snapshot of a disk with its pending changes. Any number of crash images can be drawn from it.
/// Each image is a fresh [`FaultFs`](super::FaultFs), ready for a recovery that may crash in turn.
///
/// Cheap: it shares all bytes with the original disk. Drawing an image costs work only for files
/// with pending changes.
#[derive(Debug, Clone)]
pub struct CrashPoint {
    pub(super) operation: u64,
    pub(super) disk: Disk,
    pub(super) options: Arc<FaultOptions>,
    pub(super) quota_bytes: Option<u64>,
    pub(super) rng: SeededRng,
    /// The log up to this point: the first entries, and their number.
    pub(super) log: Option<(Log, usize)>,
}

impl CrashPoint {
    /// Returns the number of operations before this point. Everything that an engine acknowledged
    /// while [`FaultFs::operation_count`] was at most this must have survived.
    ///
    /// [`FaultFs::operation_count`]: super::FaultFs::operation_count
    pub fn operation(&self) -> u64 {
        self.operation
    }
}

impl State {
    pub(super) fn new(options: Arc<FaultOptions>, disk: Disk, rng: SeededRng) -> State {
        State {
            disk,
            open: OpenTable::default(),
            gate: Gate::default(),
            quota_bytes: options.quota_bytes,
            rng,
            last_read: None,
            log: options.record.then(Log::default),
            captured: None,
            options,
        }
    }

    /// Passes an operation through the gate: counts it, logs it, and returns the fault to inject.
    /// Faults that are errors are returned as errors, except for syncs, which have to act on them.
    pub(super) fn begin(
        &mut self,
        operation: Operation,
        describe: impl FnOnce() -> LoggedOperation,
    ) -> io::Result<Option<Fault>> {
        let fault = self.gate.admit(operation)?;
        debug_assert!(self.gate.operations() > 0 && !self.gate.is_powered_off());
        self.capture(self.gate.operations() - 1);
        self.note(describe);
        match operation {
            Operation::SyncData | Operation::SyncDir => Ok(fault),
            _ => Gate::fail(fault),
        }
    }

    /// Appends to the log, if one is kept and there is power.
    pub(super) fn note(&self, describe: impl FnOnce() -> LoggedOperation) {
        if let Some(log) = &self.log
            && !self.gate.is_powered_off()
        {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(describe()));
        }
    }

    pub(super) fn log(&self) -> Vec<LoggedOperation> {
        self.log_prefix(usize::MAX).iter().map(|operation| LoggedOperation::clone(operation)).collect()
    }

    pub(super) fn take_log(&mut self) -> Option<Log> {
        self.log.take()
    }

    pub(super) fn put_log(&mut self, log: Option<Log>) {
        debug_assert!(self.log.is_none(), "a log is replaced");
        self.log = log;
    }

    fn log_prefix(&self, len: usize) -> Vec<Arc<LoggedOperation>> {
        self.log.as_ref().map(|log| prefix(log, len)).unwrap_or_default()
    }

    /// Continues the log of the machine before the crash.
    pub(super) fn continue_log(&mut self, earlier: Option<&(Log, usize)>, image: CrashImage) {
        if let Some((log, len)) = earlier {
            let mut entries = prefix(log, *len);
            debug_assert!(entries.len() == *len, "the log has lost entries");
            entries.push(Arc::new(LoggedOperation::Crash(image)));
            self.log = Some(Arc::new(Mutex::new(entries)));
        }
    }

    /// Returns the state that a crash would hit now.
    pub(super) fn crash_point(&self, operation: u64) -> CrashPoint {
        debug_assert!(operation <= self.gate.operations(), "operation {operation} is still to come");
        let log = self
            .log
            .as_ref()
            .map(|log| (Arc::clone(log), log.lock().unwrap_or_else(PoisonError::into_inner).len()));
        CrashPoint {
            operation,
            disk: self.disk.clone(),
            options: Arc::clone(&self.options),
            quota_bytes: self.quota_bytes,
            rng: self.rng.clone(),
            log,
        }
    }

    pub(super) fn start_capture(&mut self) {
        self.captured = Some(Captured::default());
    }

    pub(super) fn take_captured(&mut self) -> Vec<CrashPoint> {
        self.capture(self.gate.operations());
        let points = self.captured.take().map(|captured| captured.points).unwrap_or_default();
        debug_assert!(points.is_sorted_by(|a, b| a.operation <= b.operation), "points are out of order");
        debug_assert!(
            points.last().is_none_or(|last| last.operation == self.gate.operations()),
            "the last point is not of the current state"
        );
        points
    }

    /// Records the disk as it is before operation `index`. If nothing changed since the last point,
    /// that point moves here, because operations acknowledged in between must be on the same disk.
    fn capture(&mut self, index: u64) {
        let version = self.disk.version();
        debug_assert!(
            self.captured.as_ref().and_then(|c| c.version).is_none_or(|before| before <= version),
            "the disk went back to version {version}"
        );
        match &mut self.captured {
            None => return,
            Some(captured) if captured.version == Some(version) => {
                if let Some(last) = captured.points.last_mut() {
                    debug_assert!(last.operation <= index, "{} comes before {index}", last.operation);
                    last.operation = index;
                }
                return;
            }
            Some(captured) => captured.version = Some(version),
        }
        let point = self.crash_point(index);
        debug_assert!(
            self.captured.as_ref().and_then(|c| c.points.last()).is_none_or(|p| p.operation <= index)
        );
        if let Some(captured) = &mut self.captured {
            captured.points.push(point);
        }
    }

    /// Opens or creates a file and returns its inode and handle.
    pub(super) fn open(&mut self, path: &Path, options: OpenOptions) -> io::Result<(u64, u64)> {
        let handle = self.open.next_handle();
        self.begin(Operation::Open, || LoggedOperation::Open { handle, path: path.to_owned(), options })?;
        check_open(options)?;
        let inode = match self.disk.tree.find_file(path, options.create)? {
            Found::Existing(inode) => inode,
            Found::Missing(place) => self.disk.create_file(place),
        };
        debug_assert!(self.open.next_handle() == handle, "another file took handle {handle}");
        debug_assert!(self.disk.tree.file(inode).is_some(), "inode {inode} is opened, which is not a file");
        Ok((inode, self.open.open(inode)))
    }

    pub(super) fn close(&mut self, inode: u64, handle: u64) {
        self.note(|| LoggedOperation::Close { handle });
        self.open.close(inode, handle);
    }

    /// Syncs a directory, or simulates its failure.
    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let fault = self.begin(Operation::SyncDir, || LoggedOperation::SyncDir { path: path.to_owned() })?;
        let dir = self.disk.tree.lookup(path)?;
        self.disk.tree.names(dir)?;
        match fault {
            Some(Fault::Lost) => {}
            Some(Fault::Io | Fault::Full) => {
                self.disk.fail_sync_dir(dir, self.options.sync_failure, &mut self.rng);
            }
            _ => self.disk.sync_dir(dir),
        }
        self.disk.collect_garbage(&self.open);
        Gate::fail(fault).map(|_| ())
    }
}

fn prefix(log: &Log, len: usize) -> Vec<Arc<LoggedOperation>> {
    log.lock().unwrap_or_else(PoisonError::into_inner).iter().take(len).cloned().collect()
}
