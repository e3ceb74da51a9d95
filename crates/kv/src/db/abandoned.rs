//! Compactions of a keyspace that were abandoned because user code panicked, and the time of their
//! retry.

use cairn_vfs::sync::{Mutex, lock};

use crate::Error;

/// Maximum number of flushes between two attempts.
const FLUSHES_MAX: u32 = 64;

const _: () = assert!(0 < FLUSHES_MAX && FLUSHES_MAX <= u32::MAX / 2, "a pause doubles before it is limited");

/// Tracks whether the keyspace's compactions are paused, and why.
///
/// Without a pause the same tables would be chosen again at once, and the same code would panic
/// again. The pause lasts for one flush, then two, four, eight and so on. A permanent panic thus
/// costs only a small share of the work, and an accidental one is soon made up for.
#[derive(Debug, Default)]
pub(crate) struct Abandoned(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last failure, until enough compactions have succeeded since.
    error: Option<Error>,
    flushes_left: u32,
    /// Length of the current pause in flushes. The next one is twice as long.
    pause: u32,
}

impl State {
    /// Asserts that a pause has a cause and is bounded. For debug builds.
    fn assert_sound(&self) {
        debug_assert_eq!(self.pause == 0, self.error.is_none(), "a pause of {} flushes", self.pause);
        debug_assert!(self.pause <= FLUSHES_MAX, "a pause of {} flushes", self.pause);
        debug_assert!(self.flushes_left <= FLUSHES_MAX, "{} flushes left", self.flushes_left);
        debug_assert!(self.error.is_some() || self.flushes_left == 0, "a pause without a failure");
    }
}

impl Abandoned {
    /// Records that a compaction was abandoned.
    pub(crate) fn note(&self, error: Error) {
        let mut state = lock(&self.0);
        state.pause = (state.pause * 2).clamp(1, FLUSHES_MAX);
        state.flushes_left = state.pause;
        state.error = Some(error);
        state.assert_sound();
    }

    /// Records a flush, which changes the tables to be compacted.
    pub(crate) fn flushed(&self) {
        let mut state = lock(&self.0);
        state.flushes_left = state.flushes_left.saturating_sub(1);
        state.assert_sound();
    }

    /// Records a successful compaction, which may have been of other keys.
    pub(crate) fn succeeded(&self) {
        let mut state = lock(&self.0);
        state.pause /= 2;
        if state.pause == 0 {
            *state = State::default();
        }
        state.assert_sound();
    }

    /// Resets the state after everything was compacted.
    pub(crate) fn clear(&self) {
        *lock(&self.0) = State::default();
    }

    /// Returns true while no compaction may start.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.0).flushes_left > 0
    }

    /// Returns the error of the last abandoned compaction, if it still stands.
    pub(crate) fn error(&self) -> Option<Error> {
        lock(&self.0).error.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the pauses grow up to a limit, and end after successes. Method: repeated failures,
    /// counting the flushes until the next attempt.
    #[test]
    fn pauses_grow() {
        let abandoned = Abandoned::default();
        assert!(!abandoned.is_waiting());
        let mut pauses = Vec::new();
        for _ in 0..9 {
            abandoned.note(Error::invalid("boom"));
            let mut flushes = 0;
            while abandoned.is_waiting() {
                abandoned.flushed();
                flushes += 1;
            }
            pauses.push(flushes);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert!(abandoned.error().is_some());
        // Halves the pause from sixty-four down to one.
        (0..6).for_each(|_| abandoned.succeeded());
        assert!(abandoned.error().is_some());
        abandoned.succeeded();
        assert!(abandoned.error().is_none() && !abandoned.is_waiting());
    }
}
