//! A database on a disk: its file, its log, and coming back after a crash.
//!
//! | file | what |
//! |---|---|
//! | `NAME` | the pages |
//! | `NAME-log/` | the log's segments |
//! | `NAME-pages` | the double write: copies of the pages that were written last |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_pool::{BackgroundWriter, FileOptions, Lsn, Pool, PoolFile};
use cairn_vfs::{File, Fs, OpenOptions, Operation, Rng, SystemRng};
use cairn_wal::{Recovery, RecoveryOptions, Tail};

use super::chain::read_chain;
use super::first::First;
use super::foreign::refuse_foreign;
use super::giving::Giving;
use super::log::Log;
use super::record::Record;
use super::redo::{leaves_ghost, redo};
use super::reserve::{self, Reserve};
use super::space::Space;
use super::together;
use super::tree::{Gone, Tree};
use super::unfinished::{Analysis, Undo, Unfinished};
use super::wal::WalLog;
use crate::sorter::Scratch;
use crate::{Error, Result};

/// With fewer frames the pages of one path from root to leaf could push each other out for ever.
const MIN_FRAMES: usize = 8;

/// How a database is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bytes of a page, from 4 to 64 KiB, a power of two: the same for a database's whole life.
    /// Default 8 KiB.
    pub page_size: usize,
    /// Pages in memory, 8 at least; a thread that splits a node holds up to five. Default 8192: 64
    /// MiB.
    pub frames: usize,
    /// Whether threads write pages and prepare the log ahead of need. Default true; without them
    /// everything that is done to the disk follows from the calls.
    pub background: bool,
    /// Settings of the log.
    pub log: cairn_wal::Options,
    /// Bytes that are kept in reserve on the disk, for deleting where it is full: see the design's
    /// page. A transaction can delete rows whose keys, records and entries in indexes, with 160
    /// bytes for each of them, are an eighth of it; fewer of packed leaves. 0 for none. Default 4
    /// MiB.
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

/// What the log has, before anything is done about it.
struct Found {
    tail: Tail,
    unfinished: Unfinished,
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

/// An opening takes less room for its log where there is not so much beyond the reserve.
const EASY: u64 = 1 << 20;

/// So much is undone without room being set aside, and it is set aside in steps of it.
const FREE: u64 = 16 << 10;

/// What undoing a transaction takes. What was set aside for it is given back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Debt {
    due: u64,
    /// How long the log was when this transaction first deleted something out of the reserve.
    short_from: Option<u64>,
    log: Option<(Arc<WalLog>, u64)>,
}

impl Drop for Debt {
    fn drop(&mut self) {
        if let Some((log, owed)) = self.log.take() {
            log.settle_owed(owed);
        }
    }
}

/// The directory with the log of the database in this file.
pub fn log_dir(path: &Path) -> PathBuf {
    beside(path, "-log")
}

/// The file that is meant by a path: where a symbolic link leads, whose log and double write are
/// beside it. Of a hard link nobody knows what it is a link to: a database is opened by the name
/// that its log and double write have. Errors: the file system's.
pub fn real_path(fs: &Arc<dyn Fs>, path: &Path) -> Result<PathBuf> {
    Ok(fs.follow(path)?.unwrap_or_else(|| path.to_owned()))
}

/// The file beside a database where pages are copied before they are written.
pub fn pages_path(path: &Path) -> PathBuf {
    beside(path, "-pages")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Store {
    /// Opens a database, or makes one, and does again what its log has and its pages have not.
    ///
    /// Errors: `Busy` while another process has it open, or another handle of this one: the store,
    /// its space or a tree of it; [`Error::Invalid`] for a setting; [`Error::NotADatabase`] for a
    /// file that is something else, which is left as it is; [`Error::Corruption`]; the pool's, the
    /// log's, the file system's.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path, options: &StoreOptions) -> Result<Store> {
        let mut rng =
            SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source))?;
        Store::open_seeded(fs, path, options, &mut rng)
    }

    /// As [`Store::open`], with the randomness that the log marks its segments by.
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

    /// Opens a database, does again what pages have not, and tells what transactions have left
    /// unfinished. Whoever calls it finishes that, and makes a checkpoint.
    pub(crate) fn recover(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: &StoreOptions,
        rng: &mut dyn Rng,
    ) -> Result<(Store, Unfinished)> {
        if options.frames < MIN_FRAMES {
            let frames = options.frames;
            return Err(Error::Invalid {
                what: format!("frames is {frames}, expected at least {MIN_FRAMES}"),
            });
        }
        let path = &*real_path(fs, path)?;
        let (directory, copies) = (log_dir(path), pages_path(path));
        refuse_foreign(fs, path, options.page_size, &[&directory, &copies])?;
        // ORDER: nothing is made or changed before it is seen that these are all files of one
        // database, and all of it. A segment that is made raises the log's end, and the next one to
        // look would miss nothing; a copy that is written over its page cannot be taken back.
        let (lock, Found { tail, mut unfinished }, first) = Store::look(fs, path, options.page_size)?;
        let log = Arc::new(WalLog::recovered(Lsn(tail.reached().get())));
        let writer = if options.background { BackgroundWriter::Above(0.25) } else { BackgroundWriter::Off };
        let pool = Pool::builder()
            .page_size(options.page_size)
            .frames(options.frames)
            .background_writer(writer)
            .build()?;
        if first.is_some() && !fs.exists(&copies)? {
            let bare = pool.open(fs.open(path, OpenOptions::read())?, FileOptions::new())?;
            Store::check_newest(&bare, &tail)?;
        }
        let known = first.unwrap_or_else(|| First {
            database: rng.next_u64(),
            log: rng.next_u64(),
            session: rng.next_u64(),
            ..First::default()
        });
        // ORDER: before anything takes room.
        let is_tight = reserve::give_up_of(fs, &directory, options.reserve, EASY);
        let double = fs.open(&copies, OpenOptions::create())?;
        // All that it will ever have: pages that a checkpoint writes need no room then. Where it
        // cannot be had it is as long as its longest batch so far.
        let _ = double.allocate(0, cairn_pool::double_write_bytes(options.page_size));
        let write_ahead = Arc::clone(&log) as Arc<dyn cairn_pool::WriteAhead>;
        let settings = FileOptions::new().write_ahead(write_ahead).double_write(double).owner(known.owner());
        let file = pool.open(fs.open(path, OpenOptions::create())?, settings)?;
        // For the log that is opened below.
        file.give_back_reserved()?;
        // The names of both files, before anything is said to be durable.
        fs.sync_parent(path)?;
        let (shared, page_size) = (Arc::<WalLog>::clone(&log) as Arc<dyn Log>, options.page_size);
        let made = match first {
            Some(_) => Err(file),
            None => {
                let space = Space::create_as(file, page_size, Arc::clone(&shared), known)?;
                // ORDER: on the disk before there is a log, so that one beside a file without a
                // page 0 is that of a database which was lost.
                space.flush()?;
                Ok(space)
            }
        };
        let settings = options.log.clone().background(options.background);
        let mut tail = tail.with_id(known.log);
        // What the pages have need not be made durable once more, and gives its room back.
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
                Store::replay(fs, &directory, &file, &mut unfinished)?;
                let space = Space::open(file, page_size, shared)?;
                space.begin_session(rng.next_u64());
                space
            }
        };
        let (space, fs, path) = (Arc::new(space.keep(lock)), Arc::clone(fs), path.to_owned());
        Ok((Store { space, pool, log, fs, path }, unfinished))
    }

    /// Locks a database's file, reads its log, and sees that its files belong together. Makes an
    /// empty file where there is nothing at all, and writes nothing.
    fn look(
        fs: &Arc<dyn Fs>,
        path: &Path,
        page_size: usize,
    ) -> Result<(Box<dyn File>, Found, Option<First>)> {
        if !fs.exists(path)? {
            together::look(fs, path, page_size, &Store::read_log(fs, &log_dir(path))?.tail)?;
        }
        let lock = fs.open(path, OpenOptions::create())?;
        lock.try_lock()?;
        // Under the lock: somebody may have made it meanwhile.
        let found = Store::read_log(fs, &log_dir(path))?;
        let first = together::look(fs, path, page_size, &found.tail)?;
        Ok((lock, found, first))
    }

    /// Reads the log to its end. Changes nothing.
    fn read_log(fs: &Arc<dyn Fs>, directory: &Path) -> Result<Found> {
        let from = cairn_wal::Lsn::ZERO;
        let mut recovery = Recovery::open(fs, directory, from, &RecoveryOptions::default())?;
        let mut analysis = Analysis::default();
        while let Some(record) = recovery.next()? {
            analysis.see(record.payload);
        }
        Ok(Found { tail: recovery.finish()?, unfinished: analysis.finish() })
    }

    /// Does again what the pages have not. All of the log is durable by now, so pages may be
    /// written on the way.
    fn replay(
        fs: &Arc<dyn Fs>,
        directory: &Path,
        file: &PoolFile,
        unfinished: &mut Unfinished,
    ) -> Result<()> {
        let mut recovery = Recovery::open(fs, directory, cairn_wal::Lsn::ZERO, &RecoveryOptions::default())?;
        while let Some(record) = recovery.next()? {
            let lsn = Lsn(record.lsn.get());
            let (found, changes) = Record::decode(record.payload).ok_or_else(|| Error::Corruption {
                file: file.path().to_owned(),
                page: 0,
                what: format!("the log record at {lsn} is not a record of a database"),
            })?;
            redo(file, lsn, changes)?;
            if leaves_ghost(changes) {
                unfinished.note_ghost(&found);
            }
            unfinished.collect(&found);
        }
        Ok(())
    }

    /// Sees that no page has a change behind the log's end, of a file that came without its double
    /// write: that would know how far the log was. Cost: a look at each page.
    ///
    /// Errors: [`Error::Corruption`]; the pool's.
    fn check_newest(file: &PoolFile, tail: &Tail) -> Result<()> {
        let (newest, end) = (Store::newest_change(file)?, Lsn(tail.reached().get()));
        if newest <= end {
            return Ok(());
        }
        let what = format!(
            "a page was changed at {newest}, but the log ends at {end}: a part of the log was removed"
        );
        Err(together::apart(file.path(), file.path(), &what))
    }

    /// The last change of any page.
    fn newest_change(file: &PoolFile) -> Result<Lsn> {
        let mut newest = Lsn::NONE;
        for page in file.scan(0..file.pages_on_disk()?) {
            match page {
                Ok(page) => newest = newest.max(page.lsn()),
                // Whoever needs it is told.
                Err(cairn_pool::Error::Corruption { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(newest)
    }

    /// A file that is there of a database, its log and its double write included: whoever makes one
    /// would take it for its own. Errors: the file system's.
    pub(crate) fn find(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<PathBuf>> {
        let path = &*real_path(fs, path)?;
        for file in [path.to_owned(), pages_path(path)] {
            if fs.exists(&file)? {
                return Ok(Some(file));
            }
        }
        let directory = log_dir(path);
        // One without files is what is left of a backup that failed.
        Ok(if fs.exists(&directory)? { fs.read_dir(&directory)?.into_iter().next() } else { None })
    }

    /// Removes the files of a database that nobody has open, as far as there are any. Errors: the
    /// file system's.
    pub(crate) fn remove(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
        let path = &*real_path(fs, path)?;
        let directory = log_dir(path);
        if fs.exists(&directory)? {
            for name in fs.read_dir(&directory)? {
                fs.remove(&directory.join(name))?;
            }
            // Empty, it stands in nobody's way, and some file systems cannot do it.
            let _ = fs.remove_dir(&directory);
        }
        for file in [path.to_owned(), pages_path(path)] {
            if fs.exists(&file)? {
                fs.remove(&file)?;
            }
        }
        Ok(())
    }

    /// Undoes what did not commit, and gives trees back that went with a commit. Gives the ghosts
    /// that there may be. Errors: the pool's and the log's.
    ///
    /// Of each key the log has what it was before the first change of a loser, once, and nobody
    /// else has changed it since: so they can be gone through in any order, and doing it twice does
    /// no harm.
    pub(crate) fn undo(&self, unfinished: Unfinished) -> Result<Vec<(u32, Vec<u8>)>> {
        if unfinished.losers.iter().any(|loser| loser.has_written) {
            self.undo_records(&unfinished)?;
        }
        for loser in &unfinished.losers {
            // Of their long rows some may have gone before. A vacuum finds what is left.
            for &root in loser.made.iter().rev() {
                self.free_tree(Gone { root, with_chains: false })?;
            }
            self.append(&Record::Abort { transaction: loser.transaction })?;
        }
        unfinished.dropped.iter().try_for_each(|tree| self.free_tree(*tree))?;
        Ok(unfinished.ghosts)
    }

    fn undo_records(&self, unfinished: &Unfinished) -> Result<()> {
        let end = self.log.end();
        let (directory, from) = (log_dir(&self.path), cairn_wal::Lsn::ZERO);
        let mut recovery = Recovery::open(&self.fs, &directory, from, &RecoveryOptions::default())?;
        while let Some(record) = recovery.next()? {
            // What follows is what this writes itself.
            if record.lsn.get() > end.0 {
                break;
            }
            let undo = Record::decode(record.payload).and_then(|(record, _)| unfinished.to_undo(&record));
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

    /// Room beside the database for a sorter with a number of its own.
    pub(crate) fn scratch(&self, number: u64, memory: usize) -> Scratch {
        Scratch { fs: Arc::clone(&self.fs), path: beside(&self.path, &format!("-sort{number}")), memory }
    }

    /// Its pages, for [`Tree`](super::Tree).
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Makes every change durable that was made before. Threads that call it at the same time share
    /// one sync. Errors: the log's.
    pub fn sync(&self) -> Result<()> {
        self.log.sync_to(self.log.end())
    }

    /// Makes the log durable up to a position, as [`Store::sync`]. Errors: the log's.
    pub(crate) fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.log.sync_to(lsn)
    }

    /// Up to where the log is durable.
    pub(crate) fn synced(&self) -> Lsn {
        self.log.synced()
    }

    /// Whether room that was kept for who gives room back was given up: others are to find none.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.log.is_short()
    }

    /// How much log a checkpoint follows meanwhile.
    pub(crate) fn short_checkpoint_bytes(&self) -> u64 {
        self.log.short_checkpoint_bytes()
    }

    /// Sees that deleting out of that room leaves some for undoing it: what a transaction writes to
    /// the log cannot be given back before its end, leaves that are taken apart included. Errors: a
    /// full disk's.
    pub(crate) fn leave_room(&self, debt: &mut Debt) -> Result<()> {
        if !self.is_short() {
            debt.short_from = None;
            return Ok(());
        }
        let bytes = self.log.bytes();
        let from = *debt.short_from.get_or_insert(bytes);
        if bytes.saturating_sub(from) > self.log.short_most_bytes() {
            self.restore_reserve()?;
            debt.short_from = None;
        }
        Ok(())
    }

    /// Takes that room again. Errors: a full disk's.
    pub(crate) fn restore_reserve(&self) -> Result<()> {
        self.log.restore_reserve()
    }

    /// Sets room aside for undoing something, in the name of a debt. Errors: a full disk's.
    pub(crate) fn owe(&self, debt: &mut Debt, bytes: u64) -> Result<()> {
        debt.due += bytes;
        let given = debt.log.as_ref().map_or(FREE, |(_, owed)| FREE + owed);
        if debt.due <= given {
            return Ok(());
        }
        let more = (debt.due - given).next_multiple_of(FREE);
        self.log.owe(more).inspect_err(|_| debt.due -= bytes)?;
        debt.log.get_or_insert_with(|| (Arc::clone(&self.log), 0)).1 += more;
        Ok(())
    }

    /// The log.
    pub(crate) fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// Appends a record that changes no page. Errors: the log's.
    pub(crate) fn append(&self, record: &Record<'_>) -> Result<Lsn> {
        let mut bytes = Vec::with_capacity(16);
        record.encode(&mut bytes);
        self.log.append(&bytes)
    }

    /// Bytes of log that were ever written.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// A long record, whole. Errors: [`Error::Corruption`]; the pool's.
    pub(crate) fn long_record(&self, flags: u8, first: u32, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len.min(1 << 20) + 1);
        bytes.push(flags);
        read_chain(&self.space, first, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Gives the pages of a tree back that nobody uses. Once this has begun it is not begun again:
    /// what a crash leaves of it is found by a vacuum.
    /// Errors: the pool's and the log's.
    pub(crate) fn free_tree(&self, tree: Gone) -> Result<()> {
        self.begin_to_free(tree.root)?;
        self.free_begun(tree)
    }

    /// Says that a tree's pages are going to be given back. Errors: the log's; then nothing was
    /// done.
    pub(crate) fn begin_to_free(&self, root: u32) -> Result<()> {
        self.append(&Record::Freed { root }).map(|_| ())
    }

    /// Gives them back. Errors: the pool's and the log's.
    pub(crate) fn free_begun(&self, tree: Gone) -> Result<()> {
        Tree::open(&self.space, tree.root).free(tree.with_chains)
    }

    /// Writes pages, so that a recovery has little to do, and gives back the log that nobody needs
    /// then: not that behind `keep`. Others go on meanwhile.
    ///
    /// True when none of the log before it is left: not where somebody needs it, or the disk is
    /// full. Errors: the pool's and the log's; what was not written is tried the next time.
    pub fn checkpoint(&self, keep: Lsn) -> Result<bool> {
        // A change marks its pages before it goes to the log, so what the look at the pages below
        // does not see is in the log behind this.
        let _giving = Giving::back();
        let end = self.log.end();
        let mut flushed = self.space.flush();
        while flushed.as_ref().is_err_and(Error::is_full) && self.log.give_up_reserve() {
            flushed = self.space.flush();
        }
        flushed?;
        let needed = self.pool.oldest_change().map_or(end, |oldest| Lsn(oldest.0.saturating_sub(1)).min(end));
        let needed = needed.min(keep);
        let (reached, salt, is_begun) = self.log.begin_segment()?;
        let pages = self.space.pages_on_disk()?;
        // ORDER: the pages are durable, and so is the log; then page 0 says so; and then the log
        // may go that is not needed with such a page 0.
        self.space.note(|first| {
            first.checkpoint = first.checkpoint.max(needed);
            (first.reached, first.salt, first.pages) = (reached, salt, pages);
        })?;
        self.log.release_before(needed)?;
        // On a full disk there is room for a new segment now, perhaps.
        let is_begun = is_begun || self.log.begin_segment()?.2;
        Ok(is_begun && needed == end)
    }
}
