//! A futex: a word that threads sleep on.

use super::atomic::{AtomicU32, Ordering::*};

/// A word that threads sleep on while it keeps the value they last saw. There is no lock to
/// reacquire, so a woken thread does not contend with the others. On systems other than Linux and
/// under a scheduler under test, a mutex and a condition variable take the place of the kernel's
/// `futex`.
///
/// A sleeper reads the word *before* it checks whether it has to sleep. A waker changes the checked
/// state, then calls [`Futex::bump`], then one of the wake functions. With this order no wake-up is
/// missed.
#[derive(Debug, Default)]
pub struct Futex {
    word: AtomicU32,
    sleepers: AtomicU32,
    waiters: waiters::Waiters,
}

impl Futex {
    /// Creates a word without sleepers.
    pub fn new() -> Futex {
        Futex::default()
    }

    /// Returns the word.
    #[inline]
    pub fn load(&self) -> u32 {
        self.word.load(SeqCst)
    }

    /// Changes the word, so that no thread that saw the old value goes to sleep. Wakes no thread.
    #[inline]
    pub fn bump(&self) {
        self.word.fetch_add(1, SeqCst);
    }

    /// Sleeps while the word equals `seen`, until woken. May return spuriously.
    pub fn wait(&self, seen: u32) {
        // ORDER: the sleeper is counted before the word is compared. A waker changes the word
        // before it reads the count.
        self.sleepers.fetch_add(1, SeqCst);
        self.waiters.wait(&self.word, seen);
        let before = self.sleepers.fetch_sub(1, SeqCst);
        debug_assert!(before != 0, "more threads wake up than have gone to sleep");
    }

    /// Wakes one sleeper. Costs a system call, or nothing when no thread sleeps.
    #[inline]
    pub fn wake_one(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            self.waiters.wake(&self.word, 1);
        }
    }

    /// Wakes all sleepers. Costs as much as [`Futex::wake_one`].
    #[inline]
    pub fn wake_all(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            self.waiters.wake(&self.word, i32::MAX as u32);
        }
    }
}

#[cfg(all(target_os = "linux", not(cairn_shuttle)))]
mod waiters {
    use rustix::thread::futex::{self, Flags};

    use super::AtomicU32;

    #[derive(Debug, Default)]
    pub(super) struct Waiters;

    impl Waiters {
        pub(super) fn wait(&self, word: &AtomicU32, seen: u32) {
            // On a changed word or a signal, the caller checks its condition again.
            let _ = futex::wait(word, Flags::PRIVATE, seen, None);
        }

        #[cold]
        pub(super) fn wake(&self, word: &AtomicU32, count: u32) {
            // Fails only for invalid addresses.
            let _ = futex::wake(word, Flags::PRIVATE, count);
        }
    }
}

#[cfg(any(not(target_os = "linux"), cairn_shuttle))]
mod waiters {
    use super::{AtomicU32, SeqCst};
    use crate::sync::{Condvar, Mutex, lock, wait};

    #[derive(Debug, Default)]
    pub(super) struct Waiters {
        turn: Mutex<()>,
        woken: Condvar,
    }

    impl Waiters {
        pub(super) fn wait(&self, word: &AtomicU32, seen: u32) {
            let turn = lock(&self.turn);
            if word.load(SeqCst) == seen {
                drop(wait(&self.woken, turn));
            }
        }

        #[cold]
        pub(super) fn wake(&self, _: &AtomicU32, count: u32) {
            // A thread about to sleep compares the word under this lock.
            drop(lock(&self.turn));
            if count == 1 { self.woken.notify_one() } else { self.woken.notify_all() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{Arc, atomic::AtomicU64};
    use crate::thread;

    /// Goal: no wake-up is missed, with one sleeper or with many. Method: a thread counts up and
    /// first wakes all, then one at a time, while three threads wait for each number.
    #[test]
    fn no_wake_up_is_missed() {
        const LAST: u64 = 2000;
        let shared = Arc::new((Futex::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let others: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                let wait = move || {
                    let (futex, count, arrived) = &*shared;
                    for wanted in 1..=LAST {
                        loop {
                            let seen = futex.load();
                            if count.load(SeqCst) >= wanted {
                                break;
                            }
                            futex.wait(seen);
                        }
                        arrived.fetch_add(1, SeqCst);
                    }
                };
                thread::spawn("vfs-futex", wait).unwrap()
            })
            .collect();
        let (futex, count, arrived) = &*shared;
        for number in 1..=LAST {
            count.store(number, SeqCst);
            futex.bump();
            if number % 2 == 0 {
                futex.wake_all();
            } else {
                (0..3).for_each(|_| futex.wake_one());
            }
            while arrived.load(SeqCst) < 3 * number {
                thread::yield_now();
            }
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        // The word changed since it was read, so this does not sleep.
        futex.wait(futex.load().wrapping_sub(1));
    }
}
