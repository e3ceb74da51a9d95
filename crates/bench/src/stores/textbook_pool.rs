//! The pool that courses teach: one mutex around a hash map and an LRU list, pin counts under that
//! mutex, and pages read and written while the mutex is held. It is the lower bound of every
//! comparison.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use cairn_vfs::sync::{lock, read, write};
use cairn_vfs::{File, OpenOptions};

use super::page_buffer::Buffer;
use super::page_file::{STAMP_AT, WRITES_AT, word};
use super::pages::{Access, PageStore, Pages, Session, Setup, chained, each};
use super::starvation;
use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};

/// The contender's name.
pub const NAME: &str = "textbook";

/// How long a thread waits for a frame, the same as in Cairn's pool.
const WAIT: Duration = Duration::from_secs(10);

/// Marks the ends of the list of unpinned frames.
const NONE: usize = usize::MAX;

/// The contender.
#[derive(Debug, Clone, Copy)]
pub struct Textbook;

impl PageStore for Textbook {
    fn name(&self) -> &str {
        NAME
    }

    fn family(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        String::new()
    }

    fn settings(&self, setup: &Setup<'_>) -> Settings {
        settings([
            (
                "what it is",
                "Mutex<HashMap>, LRU list, pin counts, a RwLock a frame; reads and writes under the mutex",
            ),
            ("policy", "LRU"),
            ("page checks", "none"),
            ("page cache of the kernel", if setup.file.direct { "bypassed" } else { "used" }),
            ("cannot", "read without holding, read ahead"),
        ])
    }

    fn can(&self, access: Access, _: u32) -> bool {
        !matches!(access, Access::Optimistic | Access::OptimisticChained)
    }

    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>> {
        let access = if setup.writes { OpenOptions::write() } else { OpenOptions::read() };
        let file = setup.file.open(access)?;
        Ok(Box::new(Pool::new(file, setup.frames, setup.file.page_size)))
    }
}

struct Pool {
    file: Box<dyn File>,
    page_size: usize,
    state: Mutex<State>,
    unpinned: Condvar,
    frames: Vec<RwLock<Buffer>>,
}

struct State {
    table: HashMap<u32, usize>,
    meta: Vec<Meta>,
    free: Vec<usize>,
    /// Most recently used.
    head: usize,
    /// Least recently used.
    tail: usize,
    misses: u64,
}

#[derive(Clone, Copy)]
struct Meta {
    page: u32,
    pins: u32,
    dirty: bool,
    before: usize,
    after: usize,
}

impl State {
    fn unlink(&mut self, frame: usize) {
        let Meta { before, after, .. } = self.meta[frame];
        match before {
            NONE => self.head = after,
            before => self.meta[before].after = after,
        }
        match after {
            NONE => self.tail = before,
            after => self.meta[after].before = before,
        }
    }

    fn push_front(&mut self, frame: usize) {
        let head = self.head;
        (self.meta[frame].before, self.meta[frame].after) = (NONE, head);
        match head {
            NONE => self.tail = frame,
            head => self.meta[head].before = frame,
        }
        self.head = frame;
    }
}

impl Pool {
    fn new(file: Box<dyn File>, frames: usize, page_size: usize) -> Self {
        let meta = Meta { page: 0, pins: 0, dirty: false, before: NONE, after: NONE };
        let state = State {
            table: HashMap::with_capacity(frames),
            meta: vec![meta; frames],
            free: (0..frames).rev().collect(),
            head: NONE,
            tail: NONE,
            misses: 0,
        };
        Pool {
            file,
            page_size,
            state: Mutex::new(state),
            unpinned: Condvar::new(),
            frames: (0..frames).map(|_| RwLock::new(Buffer::new(page_size))).collect(),
        }
    }

    fn offset(&self, page: u32) -> u64 {
        u64::from(page) * self.page_size as u64
    }

    fn pin(&self, page: u32) -> Result<usize> {
        let mut state = lock(&self.state);
        if let Some(&frame) = state.table.get(&page) {
            if state.meta[frame].pins == 0 {
                state.unlink(frame);
            }
            state.meta[frame].pins += 1;
            return Ok(frame);
        }
        state.misses += 1;
        let frame = loop {
            if let Some(frame) = state.free.pop() {
                break frame;
            }
            if state.tail != NONE {
                let frame = state.tail;
                state.unlink(frame);
                break frame;
            }
            let waited = self.unpinned.wait_timeout(state, WAIT);
            let (again, timeout) =
                waited.map_err(|_| Error::engine(NAME, "a thread panicked with the mutex"))?;
            state = again;
            if timeout.timed_out() {
                return Err(Error::engine(NAME, "all frames are pinned"));
            }
            // Another thread may have read the page in the meantime.
            if let Some(&frame) = state.table.get(&page) {
                if state.meta[frame].pins == 0 {
                    state.unlink(frame);
                }
                state.meta[frame].pins += 1;
                return Ok(frame);
            }
        };
        let mut bytes = write(&self.frames[frame]);
        let old = state.meta[frame];
        if old.dirty {
            self.file.write_all_at(bytes.bytes_mut(self.page_size), self.offset(old.page))?;
        }
        if state.table.get(&old.page) == Some(&frame) {
            state.table.remove(&old.page);
        }
        self.file.read_exact_at(bytes.bytes_mut(self.page_size), self.offset(page))?;
        state.meta[frame] = Meta { page, pins: 1, dirty: false, before: NONE, after: NONE };
        state.table.insert(page, frame);
        Ok(frame)
    }

    fn unpin(&self, frame: usize, dirty: bool) {
        let mut state = lock(&self.state);
        let meta = &mut state.meta[frame];
        meta.dirty |= dirty;
        meta.pins -= 1;
        if meta.pins == 0 {
            state.push_front(frame);
            drop(state);
            self.unpinned.notify_one();
        }
    }

    fn shared(&self, page: u32) -> Result<Shared<'_>> {
        let frame = self.pin(page)?;
        Ok(Shared { bytes: Some(read(&self.frames[frame])), pool: self, frame })
    }

    fn exclusive(&self, page: u32, dirty: bool) -> Result<Exclusive<'_>> {
        let frame = self.pin(page)?;
        Ok(Exclusive { bytes: Some(write(&self.frames[frame])), pool: self, frame, dirty })
    }
}

struct Shared<'p> {
    /// `None` only during drop, because the latch must be released before the pin.
    bytes: Option<RwLockReadGuard<'p, Buffer>>,
    pool: &'p Pool,
    frame: usize,
}

impl Shared<'_> {
    fn stamp(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| word(bytes.bytes(), STAMP_AT))
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.bytes = None;
        self.pool.unpin(self.frame, false);
    }
}

struct Exclusive<'p> {
    bytes: Option<RwLockWriteGuard<'p, Buffer>>,
    pool: &'p Pool,
    frame: usize,
    dirty: bool,
}

impl Exclusive<'_> {
    fn stamp(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| word(bytes.bytes(), STAMP_AT))
    }

    fn count_write(&mut self) {
        let Some(bytes) = &mut self.bytes else { return };
        let writes = word(bytes.bytes(), WRITES_AT) + 1;
        bytes.bytes_mut(WRITES_AT + 8)[WRITES_AT..].copy_from_slice(&writes.to_le_bytes());
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.bytes = None;
        self.pool.unpin(self.frame, self.dirty);
    }
}

impl Pages for Pool {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Reader(self)))
    }

    fn misses(&self) -> Option<u64> {
        Some(lock(&self.state).misses)
    }

    fn starvation(&self, frames: usize, waiting: usize) -> Result<Option<Duration>> {
        let pinned = (0..frames as u32).map(|page| self.shared(page)).collect::<Result<Vec<_>>>()?;
        starvation::measure(NAME, pinned, waiting, &|page| Ok(self.shared(page)?.stamp())).map(Some)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let state = lock(&self.state);
        for (frame, meta) in state.meta.iter().enumerate().filter(|(_, meta)| meta.dirty) {
            self.file
                .write_all_at(write(&self.frames[frame]).bytes_mut(self.page_size), self.offset(meta.page))?;
        }
        Ok(self.file.sync_data()?)
    }
}

struct Reader<'a>(&'a Pool);

impl Session for Reader<'_> {
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64> {
        let pool = self.0;
        match access {
            Access::Shared | Access::Scan => each(order, |page| Ok(pool.shared(page)?.stamp())),
            Access::SharedChained => chained(order, |page| Ok(pool.shared(page)?.stamp())),
            Access::Exclusive => each(order, |page| Ok(pool.exclusive(page, false)?.stamp())),
            Access::Dirty => each(order, |page| {
                let mut guard = pool.exclusive(page, true)?;
                guard.count_write();
                Ok(guard.stamp())
            }),
            Access::Optimistic | Access::OptimisticChained => {
                Err(Error::engine(NAME, "pages are read held, or not at all"))
            }
        }
    }
}
