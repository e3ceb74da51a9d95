//! When a process has nothing left to do: for stores that do not say when their background threads are done.

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
/// At most this long is waited for quiet. Tests run beside each other, where there is none.
const QUIET_MAX: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 300 });
/// Ticks of 10 ms that a quiet process may take for looking around.
const QUIET_TICKS: u64 = 2;

/// Waits until this process has read and written nothing and computed next to nothing for a fifth of a second: for
/// stores that do not say when their background threads are done. Of use only in a process that does nothing else.
pub(crate) fn wait_until_quiet() {
    let clock = SystemClock::new();
    let mut before = (Io::now(), ticks());
    while clock.now() < QUIET_MAX {
        clock.sleep(QUIET);
        let now = (Io::now(), ticks());
        let (Some(old), Some(new), Some(old_ticks), Some(new_ticks)) = (before.0, now.0, before.1, now.1)
        else {
            return;
        };
        // Reading `/proc` is reading, too.
        let read = new.read_call_bytes.saturating_sub(old.read_call_bytes);
        if new.write_call_bytes == old.write_call_bytes
            && read < 16 << 10
            && new_ticks - old_ticks <= QUIET_TICKS
        {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the kernel tells what processor time there was; without it nothing would count as quiet.
    #[test]
    fn time_is_told() {
        assert!(ticks().is_some());
    }
}
