//! Detects when a process has no work left, for stores that do not report when their background
//! threads are done.

use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use crate::core::procfs::{self, Io};

/// Returns the processor time of this process in clock ticks; `None` if the kernel does not provide
/// it.
fn ticks() -> Option<u64> {
    let text = procfs::text("/proc/self/stat")?;
    // The process name, in parentheses, may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(field(11)? + field(12)?)
}

/// How long nothing must happen before a process counts as quiet.
pub(crate) const QUIET: Duration = Duration::from_millis(200);
/// Interval between checks. The end of the work is known with this precision, as for stores that
/// report when they are done.
const POLL: Duration = Duration::from_millis(5);
/// Maximum time to wait for quiet. Tests run concurrently and never become quiet.
const QUIET_MAX: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 300 });
/// Ticks of 10 ms that a quiet process may spend on the checks.
const QUIET_TICKS: u64 = 2;
/// Bytes that a quiet process may read, and the maximum that each check reads from `/proc`.
const QUIET_BYTES: u64 = 16 << 10;
const LOOK_BYTES: u64 = 2 << 10;

/// The work of a process so far.
#[derive(Debug, Clone, Copy)]
struct Seen {
    read: u64,
    written: u64,
    ticks: u64,
}

impl Seen {
    /// Reads the counters; `None` if the kernel does not provide them.
    fn now() -> Option<Seen> {
        let io = Io::now()?;
        Some(Seen { read: io.read_call_bytes, written: io.write_call_bytes, ticks: ticks()? })
    }

    /// Returns whether more work was done since `before` than this number of checks causes.
    fn is_busy_since(&self, before: &Seen, looks: u64) -> bool {
        self.written != before.written
            || self.read.saturating_sub(before.read) >= QUIET_BYTES + looks * LOOK_BYTES
            || self.ticks.saturating_sub(before.ticks) > QUIET_TICKS
    }
}

/// Waits until this process has written nothing and has read and computed almost nothing for
/// [`QUIET`], for stores that do not report when their background threads are done. Returns that
/// long after the last observed work, to within 5 ms. Useful only in a process that does nothing
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

    /// Goal: the kernel provides the processor time; without it nothing would count as quiet.
    #[test]
    fn kernel_reports_the_processor_time() {
        assert!(ticks().is_some());
    }

    /// Goal: writing, much reading and computing count as work; reading `/proc` does not, however
    /// often.
    #[test]
    fn writes_reads_and_computing_count_as_work() {
        let before = Seen { read: 1000, written: 1000, ticks: 10 };
        let look = Seen { read: before.read + 40 * LOOK_BYTES, ..before };
        assert!(!look.is_busy_since(&before, 40));
        assert!(look.is_busy_since(&before, 1));
        assert!(Seen { written: 1001, ..before }.is_busy_since(&before, 1));
        assert!(Seen { ticks: 13, ..before }.is_busy_since(&before, 40));
    }

    /// Goal: a check reads no more than its allowance. Method: many of them.
    #[test]
    fn checks_read_little() {
        let before = Io::now().unwrap();
        (0..10).for_each(|_| _ = Seen::now().unwrap());
        // If one process runs several tests, the others may read meanwhile.
        let read = Io::now().unwrap().read_call_bytes - before.read_call_bytes;
        assert!(read > 0 && read <= 11 * LOOK_BYTES, "{read}");
    }
}
