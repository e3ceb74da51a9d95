//! When a process has nothing left to do: for stores that do not say when their background threads
//! are done.

use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use super::meters::Io;
use crate::procfs;

/// Processor time of this process, in clock ticks. `None` where the kernel does not tell.
fn ticks() -> Option<u64> {
    let text = procfs::text("/proc/self/stat")?;
    // The name, in parentheses, may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(field(11)? + field(12)?)
}

/// How long nothing may happen before a process counts as quiet.
pub(crate) const QUIET: Duration = Duration::from_millis(200);
/// How often it is looked: the end of the work is known this closely, as it is of stores that say
/// when they are done.
const POLL: Duration = Duration::from_millis(5);
/// At most this long is waited for quiet. Tests run beside each other, where there is none.
const QUIET_MAX: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 300 });
/// Ticks of 10 ms that a quiet process may take for looking around.
const QUIET_TICKS: u64 = 2;
/// Bytes that a quiet process may read, and those that each look at `/proc` reads at most.
const QUIET_BYTES: u64 = 16 << 10;
const LOOK_BYTES: u64 = 2 << 10;

/// What a process has done so far.
#[derive(Debug, Clone, Copy)]
struct Seen {
    read: u64,
    written: u64,
    ticks: u64,
}

impl Seen {
    /// `None` where the kernel does not tell.
    fn now() -> Option<Seen> {
        let io = Io::now()?;
        Some(Seen { read: io.read_call_bytes, written: io.write_call_bytes, ticks: ticks()? })
    }

    /// Whether more was done since `before` than looking that often.
    fn is_busy_since(&self, before: &Seen, looks: u64) -> bool {
        self.written != before.written
            || self.read.saturating_sub(before.read) >= QUIET_BYTES + looks * LOOK_BYTES
            || self.ticks.saturating_sub(before.ticks) > QUIET_TICKS
    }
}

/// Waits until this process has read and written nothing and computed next to nothing for
/// [`QUIET`]: for stores that do not say when their background threads are done. Returns that long
/// after the last work that was seen, to within 5 ms. Of use only in a process that does nothing
/// else.
pub(crate) fn wait_until_quiet() {
    let clock = SystemClock::new();
    let Some(mut before) = Seen::now() else { return };
    let (mut worked, mut looks) = (clock.now(), 0);
    while clock.now() < QUIET_MAX && clock.now() - worked < QUIET {
        clock.sleep(POLL);
        looks += 1;
        let Some(now) = Seen::now() else { return };
        if now.is_busy_since(&before, looks) {
            (before, worked, looks) = (now, clock.now(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the kernel tells what processor time there was; without it nothing would count as
    /// quiet.
    #[test]
    fn time_is_told() {
        assert!(ticks().is_some());
    }

    /// Goal: writing, much reading and computing are work; looking at `/proc` is none, however
    /// often.
    #[test]
    fn what_counts_as_work() {
        let before = Seen { read: 1000, written: 1000, ticks: 10 };
        let look = Seen { read: before.read + 40 * LOOK_BYTES, ..before };
        assert!(!look.is_busy_since(&before, 40));
        assert!(look.is_busy_since(&before, 1));
        assert!(Seen { written: 1001, ..before }.is_busy_since(&before, 1));
        assert!(Seen { ticks: 13, ..before }.is_busy_since(&before, 40));
    }

    /// Goal: a look reads no more than is allowed for it. Method: many of them.
    #[test]
    fn looks_are_small() {
        let before = Io::now().unwrap();
        (0..10).for_each(|_| _ = Seen::now().unwrap());
        // Other tests of this process may read meanwhile, where a process runs more than one.
        let read = Io::now().unwrap().read_call_bytes - before.read_call_bytes;
        assert!(read > 0 && read <= 11 * LOOK_BYTES, "{read}");
    }
}
