//! A word that threads sleep on.

use super::atomic::{AtomicU32, Ordering::*};

/// A word that threads sleep on while it has the value that they have seen, without a lock to come
/// back to: a thread that is woken takes nothing that the others want too. Where the kernel has
/// none (it is Linux's `futex`), and under a scheduler under test, a lock and a condition variable
/// stand in for it.
///
/// Who sleeps reads the word *before* it looks whether it has to; who wakes changes what is looked
/// at, then calls [`Futex::bump`], then one of the others. So no wake-up is missed.
#[derive(Debug, Default)]
pub struct Futex {
    word: AtomicU32,
    sleepers: AtomicU32,
    bed: bed::Bed,
}

impl Futex {
    /// A word that nobody sleeps on.
    pub fn new() -> Futex {
        Futex::default()
    }

    /// The word.
    #[inline]
    pub fn load(&self) -> u32 {
        self.word.load(SeqCst)
    }

    /// Changes the word: nobody goes to sleep any more who has seen the old one. Wakes nobody.
    #[inline]
    pub fn bump(&self) {
        self.word.fetch_add(1, SeqCst);
    }

    /// Sleeps while the word is `seen`, until it is woken; may also return for no reason.
    pub fn wait(&self, seen: u32) {
        // ORDER: counted before the word is compared. Who wakes changes the word before it looks at
        // the count.
        self.sleepers.fetch_add(1, SeqCst);
        self.bed.wait(&self.word, seen);
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// Wakes one of those who sleep. Costs a system call, or nothing when nobody does.
    #[inline]
    pub fn wake_one(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            self.bed.wake(&self.word, 1);
        }
    }

    /// Wakes all who sleep. Costs as [`Futex::wake_one`].
    #[inline]
    pub fn wake_all(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            self.bed.wake(&self.word, i32::MAX as u32);
        }
    }
}

#[cfg(all(target_os = "linux", not(cairn_shuttle)))]
mod bed {
    use rustix::thread::futex::{self, Flags};

    use super::AtomicU32;

    #[derive(Debug, Default)]
    pub(super) struct Bed;

    impl Bed {
        pub(super) fn wait(&self, word: &AtomicU32, seen: u32) {
            // Another value, a signal: whoever waits looks again.
            let _ = futex::wait(word, Flags::PRIVATE, seen, None);
        }

        #[cold]
        pub(super) fn wake(&self, word: &AtomicU32, count: u32) {
            // Fails for addresses that are none only.
            let _ = futex::wake(word, Flags::PRIVATE, count);
        }
    }
}

#[cfg(any(not(target_os = "linux"), cairn_shuttle))]
mod bed {
    use super::{AtomicU32, SeqCst};
    use crate::sync::{Condvar, Mutex, lock, wait};

    #[derive(Debug, Default)]
    pub(super) struct Bed {
        turn: Mutex<()>,
        woken: Condvar,
    }

    impl Bed {
        pub(super) fn wait(&self, word: &AtomicU32, seen: u32) {
            let turn = lock(&self.turn);
            if word.load(SeqCst) == seen {
                drop(wait(&self.woken, turn));
            }
        }

        #[cold]
        pub(super) fn wake(&self, _: &AtomicU32, count: u32) {
            // Who is about to sleep has looked at the word under this lock.
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

    /// Goal: no wake-up is missed, by one sleeper or by many. Method: a thread that counts up and
    /// wakes all, and then each by itself, beside three that wait for each number.
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
        // Seen before it changed: no sleep.
        futex.wait(futex.load().wrapping_sub(1));
    }
}
