//! A database on disk: its file, its log, and recovery after a crash.
//!
//! | file | contents |
//! |---|---|
//! | `NAME` | the pages |
//! | `NAME-log/` | the log's segments |
//! | `NAME-pages` | the double write: copies of the most recently written pages |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_pool::{BackgroundWriter, FileOptions, Lsn, Pool, PoolFile};
use cairn_vfs::{File, Fs, OpenOptions, Operation, Rng, SystemRng, ensure};
use cairn_wal::{Recovery, RecoveryOptions, Tail};

use super::chain::read_chain;
use super::file_identity::FileIdentity;
use super::file_match;
use super::foreign_file::refuse_foreign;
use super::log::Log;
use super::long_record::{LONG, LongRecord};
use super::reclaiming::Reclaiming;
use super::record::{DroppedTree, Record};
use super::recovery_work::{Analysis, RecoveryWork, Undo};
use super::redo::{leaves_ghost, redo};
use super::reserve::{self, Reserve};
use super::space::Space;
use super::tree::Tree;
use super::wal::WalLog;
use crate::sorter::Scratch;
use crate::{Error, Result};

/// With fewer frames, the pages on one path from root to leaf could evict one another forever.
const MIN_FRAMES: usize = 8;
/// A thread that splits a node holds up to five pages.
const _: () = assert!(MIN_FRAMES > 5);

/// Options for opening a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Page size in bytes: a power of two from 4 to 64 KiB, fixed for the database's lifetime.
    /// Default 8 KiB.
    pub page_size: usize,
    /// Number of pages in memory, at least 8; a thread that splits a node holds up to five. Default
    /// 8192: 64 MiB.
    pub frames: usize,
    /// Whether background threads write pages and prepare the log ahead of need. Default true.
    /// Without them, all disk accesses follow from the calls.
    pub background: bool,
    /// Options of the log.
    pub log: cairn_wal::Options,
    /// Bytes kept in reserve on the disk, for deleting rows when it is full: see the design page. A
    /// transaction can delete rows whose keys, records and index entries, plus 160 bytes for each
    /// of these, take an eighth of it; fewer from packed leaves. 0 for none. Default 4 MiB.
    pub reserve: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            page_size: 8 << 10,
            frames: 8 << 10,
            background: true,
            log: cairn_wal::Options::default(),
            reserve: 4 << 20,
        }
    }
}

/// The contents of the log, before recovery acts on them.
struct LogContents {
    tail: Tail,
    recovery_work: RecoveryWork,
}

/// An open database.
#[derive(Debug)]
pub struct Store {
    space: Arc<Space>,
    pool: Pool,
    log: Arc<WalLog>,
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

/// If the disk has less space than this beyond the reserve, opening allocates less for its log.
const FREE_SPACE_WANTED: u64 = 1 << 20;

/// Bytes of undo for which a transaction need not set space aside, and the step by which it does.
const UNDO_STEP: u64 = 16 << 10;

/// The space needed to undo a transaction. Dropping it releases the space set aside.
#[derive(Debug, Default)]
pub(crate) struct UndoReservation {
    due: u64,
    /// Length of the log when this transaction first deleted rows using the reserve.
    short_from: Option<u64>,
    log: Option<(Arc<WalLog>, u64)>,
}

impl Drop for UndoReservation {
    fn drop(&mut self) {
        if let Some((log, reserved)) = self.log.take() {
            log.release_undo(reserved);
        }
    }
}

/// Returns the directory of the log of a database file.
pub fn log_dir(path: &Path) -> PathBuf {
    sibling_path(path, "-log")
}

/// Returns the file that a path refers to: the target of a symbolic link, beside which are its log
/// and double write. The target of a hard link cannot be determined, so a database must be opened
/// by the name of its log and double write. Errors: the file system's.
pub fn real_path(fs: &Arc<dyn Fs>, path: &Path) -> Result<PathBuf> {
    Ok(fs.follow(path)?.unwrap_or_else(|| path.to_owned()))
}

/// Returns the path of the double write of a database.
pub fn pages_path(path: &Path) -> PathBuf {
    sibling_path(path, "-pages")
}

fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Store {
    /// Opens or creates a database, and replays changes that are in the log but not in the pages.
    ///
    /// Errors: `Busy` while another process has it open, or another handle in this process: the
    /// store, its space or a tree of it; [`Error::Invalid`] for an option; [`Error::NotADatabase`]
    /// for any other file, which is left unchanged; [`Error::Corruption`]; the pool's, the log's,
    /// the file system's.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path, options: &StoreOptions) -> Result<Store> {
        let mut rng =
            SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source))?;
        Store::open_seeded(fs, path, options, &mut rng)
    }

    /// Like [`Store::open`], with the random number generator from which the salts of the log are
    /// drawn.
    pub fn open_seeded(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: &StoreOptions,
        rng: &mut dyn Rng,
    ) -> Result<Store> {
        let (store, _) = Store::recover(fs, path, options, rng)?;
        store.checkpoint(store.log.end())?;
        let _ = store.restore_reserve();
        Ok(store)
    }

    /// Opens a database, replays its log, and returns the unfinished work of transactions. The
    /// caller must finish that work and make a checkpoint.
    pub(crate) fn recover(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: &StoreOptions,
        rng: &mut dyn Rng,
    ) -> Result<(Store, RecoveryWork)> {
        if options.frames < MIN_FRAMES {
            let frames = options.frames;
            return Err(Error::Invalid {
                what: format!("frames is {frames}, expected at least {MIN_FRAMES}"),
            });
        }
        let path = &*real_path(fs, path)?;
        let (directory, copies) = (log_dir(path), pages_path(path));
        refuse_foreign(fs, path, options.page_size, &[&directory, &copies])?;
        // ORDER: nothing is created or changed before all files are known to belong to one database
        // and to be complete. Creating a segment would raise the log's end, and the next check
        // would miss nothing. A copy written over its page cannot be taken back.
        let (lock, LogContents { tail, mut recovery_work }, first) =
            Store::lock_and_read(fs, path, options.page_size)?;
        let log = Arc::new(WalLog::recovered(Lsn(tail.reached().get())));
        let writer = if options.background { BackgroundWriter::Above(0.25) } else { BackgroundWriter::Off };
        let pool = Pool::builder()
            .page_size(options.page_size)
            .frames(options.frames)
            .background_writer(writer)
            .build()?;
        if first.is_some() && !fs.exists(&copies)? {
            let bare = pool.open(fs.open(path, OpenOptions::read())?, FileOptions::new())?;
            Store::check_page_lsns(&bare, &tail)?;
        }
        let known = first.unwrap_or_else(|| FileIdentity {
            database: rng.next_u64(),
            log: rng.next_u64(),
            session: rng.next_u64(),
            ..FileIdentity::default()
        });
        // ORDER: before anything allocates space.
        let is_tight = reserve::free_former_reserve(fs, &directory, options.reserve, FREE_SPACE_WANTED);
        let double = fs.open(&copies, OpenOptions::create())?;
        // Its maximum size, so that a checkpoint can write pages without allocating. If this fails,
        // it remains as long as its longest batch so far.
        let _ = double.allocate(0, cairn_pool::double_write_bytes(options.page_size));
        let write_ahead = Arc::clone(&log) as Arc<dyn cairn_pool::WriteAhead>;
        let settings = FileOptions::new().write_ahead(write_ahead).double_write(double).owner(known.owner());
        let file = pool.open(fs.open(path, OpenOptions::create())?, settings)?;
        // Leaves space for the log, which is opened below.
        file.release_reserved()?;
        // Makes the names of both files durable before anything else is reported as durable.
        fs.sync_parent(path)?;
        let (shared, page_size) = (Arc::<WalLog>::clone(&log) as Arc<dyn Log>, options.page_size);
        let made = match first {
            Some(_) => Err(file),
            None => {
                let space = Space::create_as(file, page_size, Arc::clone(&shared), known)?;
                // ORDER: on disk before the log exists. A log beside a file without a page 0 then
                // means that the database was lost.
                space.flush()?;
                Ok(space)
            }
        };
        let settings = options.log.clone().background(options.background);
        let mut tail = tail.with_id(known.log);
        // Log that the pages already include need not be made durable again, and its space is
        // freed.
        tail.release_before(cairn_wal::Lsn::from(known.checkpoint.0));
        let settings = if is_tight { settings.first_segment_bytes(8 << 10) } else { settings };
        let (segments, appender) = cairn_wal::Log::open(fs, &settings, tail, rng)?;
        let reserve = Reserve::open(fs, &directory, options.reserve)?;
        if is_tight {
            segments.limit_segments(Some(reserve.segment()));
        }
        log.begin(segments, appender, reserve);
        let space = match made {
            Ok(space) => space,
            Err(file) => {
                Store::replay(fs, &directory, &file, &mut recovery_work)?;
                let space = Space::open(file, page_size, shared)?;
                space.begin_session(rng.next_u64());
                space
            }
        };
        let (space, fs, path) = (Arc::new(space.with_lock(lock)), Arc::clone(fs), path.to_owned());
        Ok((Store { space, pool, log, fs, path }, recovery_work))
    }

    /// Locks a database's file, reads its log, and checks that its files belong together. Creates
    /// an empty file if there is none, and writes nothing.
    fn lock_and_read(
        fs: &Arc<dyn Fs>,
        path: &Path,
        page_size: usize,
    ) -> Result<(Box<dyn File>, LogContents, Option<FileIdentity>)> {
        if !fs.exists(path)? {
            file_match::read_identity(fs, path, page_size, &Store::read_log(fs, &log_dir(path))?.tail)?;
        }
        let lock = fs.open(path, OpenOptions::create())?;
        lock.try_lock()?;
        // Again under the lock, because another process may have created it meanwhile.
        let found = Store::read_log(fs, &log_dir(path))?;
        let first = file_match::read_identity(fs, path, page_size, &found.tail)?;
        Ok((lock, found, first))
    }

    /// Reads the log to its end. Changes nothing.
    fn read_log(fs: &Arc<dyn Fs>, directory: &Path) -> Result<LogContents> {
        let from = cairn_wal::Lsn::ZERO;
        let mut recovery = Recovery::open(fs, directory, from, &RecoveryOptions::default())?;
        let mut analysis = Analysis::default();
        while let Some(record) = recovery.next()? {
            analysis.add(record.payload);
        }
        Ok(LogContents { tail: recovery.finish()?, recovery_work: analysis.finish() })
    }

    /// Replays changes that the pages lack. The whole log is durable by now, so pages may be
    /// written meanwhile.
    fn replay(
        fs: &Arc<dyn Fs>,
        directory: &Path,
        file: &PoolFile,
        recovery_work: &mut RecoveryWork,
    ) -> Result<()> {
        let mut recovery = Recovery::open(fs, directory, cairn_wal::Lsn::ZERO, &RecoveryOptions::default())?;
        let mut last = Lsn::NONE;
        while let Some(record) = recovery.next()? {
            let lsn = Lsn(record.lsn.get());
            // The reader of the log derives positions from where it reads, not from the record.
            debug_assert!(lsn > last, "the log record at {lsn} follows the one at {last}");
            last = lsn;
            let (found, changes) = Record::decode(record.payload).ok_or_else(|| Error::Corruption {
                file: file.path().to_owned(),
                page: 0,
                what: format!("the log record at {lsn} is not a record of a database"),
            })?;
            redo(file, lsn, changes)?;
            if leaves_ghost(changes) {
                recovery_work.note_ghost(&found);
            }
            recovery_work.collect(&found);
        }
        Ok(())
    }

    /// Checks that no page has a change after the log's end, for a file without its double write,
    /// which would know how far the log was. Cost: reads each page.
    ///
    /// Errors: [`Error::Corruption`]; the pool's.
    fn check_page_lsns(file: &PoolFile, tail: &Tail) -> Result<()> {
        let (newest, end) = (Store::newest_page_lsn(file)?, Lsn(tail.reached().get()));
        if newest <= end {
            return Ok(());
        }
        let what =
            format!("a page was changed at {newest}, but the log ends at {end}: part of the log was removed");
        Err(file_match::mismatch(file.path(), file.path(), &what))
    }

    /// Returns the last change of any page.
    fn newest_page_lsn(file: &PoolFile) -> Result<Lsn> {
        let mut newest = Lsn::NONE;
        for page in file.scan(0..file.pages_on_disk()?) {
            match page {
                Ok(page) => newest = newest.max(page.lsn()),
                // Damage is reported once the page is needed.
                Err(cairn_pool::Error::Corruption { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(newest)
    }

    /// Returns an existing file of a database, including its log and its double write, which a new
    /// database of that name would take for its own. Errors: the file system's.
    pub(crate) fn find(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<PathBuf>> {
        let path = &*real_path(fs, path)?;
        for file in [path.to_owned(), pages_path(path)] {
            if fs.exists(&file)? {
                return Ok(Some(file));
            }
        }
        let directory = log_dir(path);
        // A directory without files is left over from a failed backup.
        Ok(if fs.exists(&directory)? { fs.read_dir(&directory)?.into_iter().next() } else { None })
    }

    /// Removes the files of a database that is not open, as far as they exist. Errors: the file
    /// system's.
    pub(crate) fn remove(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
        let path = &*real_path(fs, path)?;
        let directory = log_dir(path);
        if fs.exists(&directory)? {
            for name in fs.read_dir(&directory)? {
                fs.remove(&directory.join(name))?;
            }
            // An empty directory does no harm, and some file systems cannot remove it.
            let _ = fs.remove_dir(&directory);
        }
        for file in [path.to_owned(), pages_path(path)] {
            if fs.exists(&file)? {
                fs.remove(&file)?;
            }
        }
        Ok(())
    }

    /// Undoes transactions that did not commit, and frees trees that a commit dropped. Returns
    /// possible ghosts. Errors: the pool's and the log's.
    ///
    /// For each key, the log holds the contents before the first change of a loser once, and no
    /// other transaction has changed the key since. So the records can be undone in any order, and
    /// repeatedly.
    pub(crate) fn undo(&self, recovery_work: RecoveryWork) -> Result<Vec<(u32, Vec<u8>)>> {
        if recovery_work.losers.iter().any(|loser| loser.has_written) {
            self.undo_records(&recovery_work)?;
        }
        for loser in &recovery_work.losers {
            // Some of their long rows may have been freed before. A vacuum finds the rest.
            for &root in loser.created.iter().rev() {
                self.free_tree(DroppedTree { root, with_chains: false })?;
            }
            self.append(&Record::Abort { transaction: loser.transaction })?;
        }
        recovery_work.dropped.iter().try_for_each(|tree| self.free_tree(*tree))?;
        Ok(recovery_work.ghosts)
    }

    fn undo_records(&self, recovery_work: &RecoveryWork) -> Result<()> {
        let end = self.log.end();
        let (directory, from) = (log_dir(&self.path), cairn_wal::Lsn::ZERO);
        let mut recovery = Recovery::open(&self.fs, &directory, from, &RecoveryOptions::default())?;
        while let Some(record) = recovery.next()? {
            // Later records are those that this function writes itself.
            if record.lsn.get() > end.0 {
                break;
            }
            let undo = Record::decode(record.payload).and_then(|(record, _)| recovery_work.to_undo(&record));
            if let Some(Undo { tree, key, before }) = undo {
                let tree = Tree::open(&self.space, tree);
                match before {
                    Some(before) => _ = tree.put(key, before)?,
                    None => _ = tree.remove(key)?,
                }
            }
        }
        Ok(())
    }

    /// Returns a temporary place beside the database for a sorter with a unique number.
    pub(crate) fn scratch(&self, number: u64, memory: usize) -> Scratch {
        Scratch {
            fs: Arc::clone(&self.fs),
            path: sibling_path(&self.path, &format!("-sort{number}")),
            memory,
        }
    }

    /// Returns the pages, for [`Tree`](super::Tree).
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Makes all previous changes durable. Concurrent calls share one sync. Errors: the log's.
    pub fn sync(&self) -> Result<()> {
        self.log.sync_to(self.log.end())
    }

    /// Makes the log durable up to a position, like [`Store::sync`]. Errors: the log's.
    pub(crate) fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.log.sync_to(lsn)
    }

    /// Returns the position up to which the log is durable.
    pub(crate) fn synced(&self) -> Lsn {
        self.log.synced()
    }

    /// Returns whether the reserve was given up. Work that does not free space then finds no space.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.log.is_short()
    }

    /// Returns the amount of log after which a checkpoint follows while the database is short.
    pub(crate) fn short_checkpoint_bytes(&self) -> u64 {
        self.log.short_checkpoint_bytes()
    }

    /// Ensures that deleting rows from the reserve leaves enough of it to undo the deletions. The
    /// log of a transaction cannot be released before its end, including the records of unpacked
    /// leaves. Errors: a full disk's.
    pub(crate) fn ensure_undo_space(&self, reservation: &mut UndoReservation) -> Result<()> {
        if !self.is_short() {
            reservation.short_from = None;
            return Ok(());
        }
        let bytes = self.log.bytes();
        let from = *reservation.short_from.get_or_insert(bytes);
        debug_assert!(bytes >= from, "the log had {from} bytes, and has {bytes}");
        if bytes.saturating_sub(from) > self.log.short_most_bytes() {
            self.restore_reserve()?;
            reservation.short_from = None;
        }
        Ok(())
    }

    /// Allocates the reserve again. Errors: a full disk's.
    pub(crate) fn restore_reserve(&self) -> Result<()> {
        self.log.restore_reserve()
    }

    /// Sets space aside for an undo, accounted to a debt. Errors: a full disk's.
    pub(crate) fn reserve_undo(&self, reservation: &mut UndoReservation, bytes: u64) -> Result<()> {
        debug_assert!(bytes > 0, "the undo of a change takes no space");
        reservation.due += bytes;
        let given = reservation.log.as_ref().map_or(UNDO_STEP, |(_, reserved)| UNDO_STEP + reserved);
        if reservation.due <= given {
            return Ok(());
        }
        let more = (reservation.due - given).next_multiple_of(UNDO_STEP);
        self.log.reserve_undo(more).inspect_err(|_| reservation.due -= bytes)?;
        reservation.log.get_or_insert_with(|| (Arc::clone(&self.log), 0)).1 += more;
        debug_assert!(
            reservation.log.as_ref().is_some_and(|(_, reserved)| reservation.due <= UNDO_STEP + reserved),
            "less space is set aside than the undo takes: {reservation:?}"
        );
        Ok(())
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// Appends a record without page changes. Errors: the log's.
    pub(crate) fn append(&self, record: &Record<'_>) -> Result<Lsn> {
        let mut bytes = Vec::with_capacity(16);
        record.encode(&mut bytes);
        ensure!(!bytes.is_empty(), "{record:?} is appended without page changes");
        self.log.append(&bytes)
    }

    /// Returns the number of bytes of log written since the database was opened.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Reads a long row: its flags without [`LONG`], and all its bytes. Errors:
    /// [`Error::Corruption`]; the pool's.
    pub(crate) fn long_row(&self, long: &LongRecord) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(long.len.min(1 << 20) + 1);
        bytes.push(long.flags & !LONG);
        read_chain(&self.space, long.first, long.len, &mut bytes)?;
        debug_assert!(bytes.len() == long.len + 1, "{long:?} was read as {} bytes", bytes.len());
        Ok(bytes)
    }

    /// Like [`Store::long_row`], for a record with the flag [`LONG`].
    pub(crate) fn read_long_record(&self, record: &[u8]) -> Result<Vec<u8>> {
        let long = LongRecord::decode(record)
            .ok_or_else(|| self.space.damaged(0, "the record of a long row has no position"))?;
        self.long_row(&long)
    }

    /// Frees the pages of an unused tree. Once begun, this is never begun again: a vacuum finds the
    /// pages that a crash leaves. Errors: the pool's and the log's.
    pub(crate) fn free_tree(&self, tree: DroppedTree) -> Result<()> {
        self.begin_to_free(tree.root)?;
        self.free_begun(tree)
    }

    /// Logs that a tree's pages are about to be freed. Errors: the log's, with nothing changed.
    pub(crate) fn begin_to_free(&self, root: u32) -> Result<()> {
        self.append(&Record::Freed { root }).map(|_| ())
    }

    /// Frees the pages. Errors: the pool's and the log's.
    pub(crate) fn free_begun(&self, tree: DroppedTree) -> Result<()> {
        Tree::open(&self.space, tree.root).free(tree.with_chains)
    }

    /// Writes dirty pages, so that recovery has little to do, and releases the log that is no
    /// longer needed, except after `keep`. Other threads continue meanwhile.
    ///
    /// Returns true if none of the log before it is left. Some is left if it is still needed, or if
    /// the disk is full. Errors: the pool's and the log's; the next checkpoint retries pages that
    /// were not written.
    pub fn checkpoint(&self, keep: Lsn) -> Result<bool> {
        // A change marks its pages dirty before it is logged. A change that the scan of dirty pages
        // below misses is therefore in the log after this position.
        let _reclaiming = Reclaiming::free_space();
        let end = self.log.end();
        let mut flushed = self.space.flush();
        while flushed.as_ref().is_err_and(Error::is_full) && self.log.give_up_reserve() {
            flushed = self.space.flush();
        }
        flushed?;
        let needed = self.pool.oldest_change().map_or(end, |oldest| Lsn(oldest.0.saturating_sub(1)).min(end));
        let needed = needed.min(keep);
        let (reached, salt, is_begun) = self.log.begin_segment()?;
        debug_assert!(needed <= end, "the log is needed from {needed} on, and ends at {end}");
        debug_assert!(reached >= needed, "the log is durable up to {reached}, and needed from {needed} on");
        let pages = self.space.pages_on_disk()?;
        // ORDER: first the pages and the log are durable; then page 0 states so; then the log that
        // this page 0 makes unnecessary may be released.
        self.space.update_identity(|identity| {
            identity.checkpoint = identity.checkpoint.max(needed);
            (identity.reached, identity.salt, identity.pages) = (reached, salt, pages);
        })?;
        self.log.release_before(needed)?;
        // On a full disk there may now be space for a new segment.
        let is_begun = is_begun || self.log.begin_segment()?.2;
        Ok(is_begun && needed == end)
    }
}
