//! How soon threads that wait for a frame get one after frames are released.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock, thread};

use super::page_file;
use crate::core::error::{Error, Result};

/// Time after which the threads are assumed to wait, since they have nothing else to do.
const SETTLE: Duration = Duration::from_millis(50);

/// `pinned` holds guards of every frame of a pool, for the pages from 0 on. Starts `waiting`
/// threads that request the pages after those, drops the guards one at a time once all threads
/// wait, and returns the time from the first dropped guard until the last thread has its page.
///
/// A pool that loses a wake-up, or that serves newcomers before waiting threads, is exposed here.
pub fn measure<G>(
    who: &str,
    pinned: Vec<G>,
    waiting: usize,
    ask: &(impl Fn(u32) -> Result<u64> + Sync),
) -> Result<Duration> {
    let (clock, begun) = (SystemClock::new(), AtomicUsize::new(0));
    let first = pinned.len() as u32;
    thread::scope(|scope| {
        let (clock, begun) = (&clock, &begun);
        let threads: Vec<_> = (0..waiting as u32)
            .map(|index| {
                scope.spawn(move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    let found = ask(first + index)?;
                    if found != page_file::stamp(first + index) {
                        return Err(page_file::wrong(who, first + index, found));
                    }
                    Ok(clock.now())
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < waiting {
            clock.sleep(Duration::from_millis(1));
        }
        clock.sleep(SETTLE);
        let start = clock.now();
        drop(pinned);
        let mut last = start;
        for thread in threads {
            let end =
                thread.join().unwrap_or_else(|_| Err(Error::engine(who, "a thread that waited panicked")))?;
            last = last.max(end);
        }
        Ok(last - start)
    })
}
