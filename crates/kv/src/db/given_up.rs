//! Compactions of a keyspace that code of the user's has stopped, and when they are tried again.

use cairn_vfs::sync::{Mutex, lock};

use crate::Error;

/// Flushes between two tries, at most.
const FLUSHES_MAX: u32 = 64;

/// Whether the keyspace's compactions wait, and why.
///
/// The same tables would be chosen again at once, and the same code would panic again. So there is
/// a pause: until one more flush, then two, four, eight, so that a panic for good costs a small
/// part of the work, and one that was an accident is made up for soon.
#[derive(Debug, Default)]
pub(crate) struct GivenUp(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last failure, unless there were as many successes since as make it forgotten.
    error: Option<Error>,
    flushes_left: u32,
    /// How many flushes the next pause takes.
    pause: u32,
}

impl GivenUp {
    /// A compaction was given up.
    pub(crate) fn note(&self, error: Error) {
        let mut state = lock(&self.0);
        state.pause = (state.pause * 2).clamp(1, FLUSHES_MAX);
        state.flushes_left = state.pause;
        state.error = Some(error);
    }

    /// A flush has changed what there is to compact.
    pub(crate) fn flushed(&self) {
        let mut state = lock(&self.0);
        state.flushes_left = state.flushes_left.saturating_sub(1);
    }

    /// A compaction went well, of other keys perhaps.
    pub(crate) fn succeeded(&self) {
        let mut state = lock(&self.0);
        state.pause /= 2;
        if state.pause == 0 {
            *state = State::default();
        }
    }

    /// Everything was compacted.
    pub(crate) fn clear(&self) {
        *lock(&self.0) = State::default();
    }

    /// True while no compaction is to be started.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.0).flushes_left > 0
    }

    /// Why compactions were given up, when the last one was.
    pub(crate) fn error(&self) -> Option<Error> {
        lock(&self.0).error.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the pauses grow to a limit, and end with a success. Method: failures without end,
    /// flushes counted until the next try.
    #[test]
    fn pauses_grow() {
        let given_up = GivenUp::default();
        assert!(!given_up.is_waiting());
        let mut pauses = Vec::new();
        for _ in 0..9 {
            given_up.note(Error::invalid("boom"));
            let mut flushes = 0;
            while given_up.is_waiting() {
                given_up.flushed();
                flushes += 1;
            }
            pauses.push(flushes);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert!(given_up.error().is_some());
        // Of sixty-four, thirty-two, .. one.
        (0..6).for_each(|_| given_up.succeeded());
        assert!(given_up.error().is_some());
        given_up.succeeded();
        assert!(given_up.error().is_none() && !given_up.is_waiting());
    }
}
