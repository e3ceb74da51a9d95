//! What a thread has recorded and not handed over, and who can see how much that is.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cairn_vfs::sync::{Mutex, OnceLock, lock};

use super::Inner;

/// Of every thread that has recorded something, so that a recorder that ends knows what it does not get.
static ALL: OnceLock<Mutex<Vec<Arc<AtomicU64>>>> = OnceLock::new();

thread_local! {
    pub(super) static STAGED: RefCell<Staged> = const {
        RefCell::new(Staged {
            recorder: 0,
            inner: Weak::new(),
            seen: None,
            records: Vec::new(),
            count: 0,
            left: 0,
            is_rare: false,
            now_ns: 0,
            first_ns: 0,
            last_ns: 0,
        })
    };
}

/// A thread's operations, encoded; the first one's time is put in when they are handed over.
#[derive(Debug)]
pub(super) struct Staged {
    /// The recorder's number, and where to find it when the thread ends.
    pub recorder: u64,
    pub inner: Weak<Inner>,
    /// Where others see how much there is: the recorder's number above, the count below.
    seen: Option<Arc<AtomicU64>>,
    pub records: Vec<u8>,
    pub count: u32,
    /// Operations until the next look at the clock.
    pub left: u32,
    /// They come so seldom that each is handed over by itself.
    pub is_rare: bool,
    /// The clock at the last look.
    pub now_ns: u64,
    /// Times of the first operation and of the last one.
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Staged {
    /// Empty, for a recorder.
    pub fn belong_to(&mut self, recorder: u64, inner: Weak<Inner>) {
        if self.seen.is_none() {
            let seen = Arc::new(AtomicU64::new(0));
            lock(ALL.get_or_init(Mutex::default)).push(Arc::clone(&seen));
            self.seen = Some(seen);
        }
        (self.recorder, self.inner, self.now_ns) = (recorder, inner, 0);
        self.clear();
    }

    /// How long after the operation before the next one is; the first one's time is not part of its record.
    #[inline]
    pub fn step(&mut self) -> u64 {
        if self.count == 0 {
            (self.first_ns, self.last_ns) = (self.now_ns, self.now_ns);
        }
        let delta_ns = self.now_ns.saturating_sub(self.last_ns);
        self.last_ns += delta_ns;
        delta_ns
    }

    /// One more is there.
    #[inline]
    pub fn add_one(&mut self) {
        self.count += 1;
        self.show();
    }

    /// All are handed over. The next one looks at the clock.
    pub fn clear(&mut self) {
        self.records.clear();
        (self.count, self.left) = (0, 0);
        self.show();
    }

    #[inline]
    fn show(&self) {
        if let Some(seen) = &self.seen {
            seen.store(self.recorder << 32 | u64::from(self.count), Ordering::Relaxed);
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.hand_over(self);
        }
        if let (Some(own), Some(all)) = (&self.seen, ALL.get()) {
            lock(all).retain(|seen| !Arc::ptr_eq(seen, own));
        }
    }
}

/// Operations that all threads have staged for a recorder.
pub(super) fn staged_for(recorder: u64) -> u64 {
    let Some(all) = ALL.get() else { return 0 };
    let own = |seen: &Arc<AtomicU64>| {
        let seen = seen.load(Ordering::Relaxed);
        if seen >> 32 == recorder & u64::from(u32::MAX) { seen & u64::from(u32::MAX) } else { 0 }
    };
    lock(all).iter().map(own).sum()
}
