//! Looks at all connections from time to time: who takes too long, and whose client has gone while
//! its statement runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::Clock;

use crate::limits::Limits;
use crate::registry::{Doom, Entry, Registry, State};

/// Between two looks.
pub const TICK: Duration = Duration::from_millis(100);
/// A statement that runs for so long is worth a look at whether its client is there.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// How long a client that is told to go has to hear it.
pub const LAST_WORDS: Duration = Duration::from_secs(2);

/// What was seen of a connection, and since when it is so.
#[derive(Debug, Clone, Copy)]
struct Seen {
    activity: u64,
    since: Duration,
    /// When it was first seen to wait for its client though it is to end.
    ending_since: Option<Duration>,
}

/// Memory from one look to the next.
#[derive(Debug)]
pub struct Watch {
    clock: Arc<dyn Clock>,
    last: Duration,
    seen: HashMap<i32, Seen>,
}

impl Watch {
    /// Has seen nobody yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Watch { last: clock.now(), clock, seen: HashMap::new() }
    }

    /// Looks, if it is time to.
    pub fn look(&mut self, registry: &Registry, limits: &Limits) {
        let now = self.clock.now();
        if now.saturating_sub(self.last) < TICK {
            return;
        }
        self.last = now;
        let entries = registry.entries();
        if self.seen.len() > 2 * entries.len() {
            self.seen.retain(|process, _| entries.iter().any(|entry| entry.process == *process));
        }
        for entry in entries {
            let activity = entry.activity();
            let seen =
                self.seen.entry(entry.process).or_insert(Seen { activity, since: now, ending_since: None });
            if seen.activity != activity {
                *seen = Seen { activity, since: now, ..*seen };
            }
            if entry.doomed().is_some() && entry.state() != State::Busy {
                let since = *seen.ending_since.get_or_insert(now);
                if now.saturating_sub(since) >= LAST_WORDS {
                    // It does not read what it is told, and its thread would wait for ever.
                    entry.socket().close();
                }
                continue;
            }
            judge(&entry, now.saturating_sub(seen.since), limits);
        }
    }
}

fn judge(entry: &Entry, for_so_long: Duration, limits: &Limits) {
    let is_over = |limit: Option<Duration>| limit.is_some_and(|limit| for_so_long >= limit);
    match entry.state() {
        // Nothing changes before log-in, so this is the time since the connection came.
        State::Authenticating if is_over(Some(limits.authentication_timeout)) => {
            entry.doom(Doom::Authentication);
            // Nobody who has not logged in keeps a thread: not even by not reading what it is told.
            entry.socket().close();
        }
        State::Idle if is_over(limits.idle_session_timeout) => entry.doom(Doom::Idle),
        State::IdleInTransaction if is_over(limits.idle_in_transaction_timeout) => {
            entry.doom(Doom::IdleInTransaction);
        }
        State::Busy if for_so_long >= LOOK_AFTER && entry.socket().has_gone() => entry.cancel(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::socket::{Peer, Socket};
    use cairn_vfs::ManualClock;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Goal: each state has its limit, and activity starts the time anew. Method: a clock moved by
    /// hand, one connection for each state.
    #[test]
    fn each_state_has_its_limit() {
        let clock = Arc::new(ManualClock::new(Duration::ZERO));
        let registry = Arc::new(Registry::default());
        let second = Duration::from_secs(1);
        let limits = Limits {
            authentication_timeout: 2 * second,
            idle_in_transaction_timeout: Some(4 * second),
            idle_session_timeout: Some(6 * second),
            ..Limits::default()
        };
        let mut watch = Watch::new(clock.clone());
        let mut sockets = Vec::new();
        let mut ids = 1..;
        let presents =
            [State::Authenticating, State::IdleInTransaction, State::Idle, State::Busy].map(|state| {
                let (one, other) = UnixStream::pair().unwrap();
                sockets.push(other);
                let present = registry.enter(Arc::new(Socket::Unix(one)), Peer::Unix, || ids.next().unwrap());
                let present = present.unwrap();
                if state != State::Authenticating {
                    present.entry().set_state(state);
                }
                present
            });
        let mut ended = Vec::new();
        for _ in 0..10 {
            clock.advance(second);
            watch.look(&registry, &limits);
            ended.push(presents.each_ref().map(|present| present.entry().doomed().is_some()));
            if ended.len() == 3 {
                presents[1].entry().set_state(State::IdleInTransaction);
            }
        }
        let first = |at: usize| ended.iter().position(|ended| ended[at]);
        // The first look sees them, and the time counts from there; the transaction was used once
        // more at the third.
        assert_eq!([first(0), first(1), first(2), first(3)], [Some(2), Some(7), Some(6), None]);
    }

    /// Goal: a client that does not take its last words keeps no thread and no lock: its socket is
    /// closed under it. One whose statement runs is left to it. Method: two connections that are
    /// ended, and what their clients can read; a clock moved by hand.
    #[test]
    fn who_does_not_go_is_cut_off() {
        let clock = Arc::new(ManualClock::new(Duration::ZERO));
        let registry = Arc::new(Registry::default());
        let limits =
            Limits { idle_in_transaction_timeout: Some(Duration::from_secs(1)), ..Limits::default() };
        let mut watch = Watch::new(clock.clone());
        let mut ids = 1..;
        let mut enter = || {
            let (one, other) = UnixStream::pair().unwrap();
            other.set_nonblocking(true).unwrap();
            let present = registry.enter(Arc::new(Socket::Unix(one)), Peer::Unix, || ids.next().unwrap());
            (present.unwrap(), other)
        };
        let ((stuck, its_client), (busy, busy_client)) = (enter(), enter());
        stuck.entry().set_state(State::IdleInTransaction);
        busy.entry().set_state(State::Busy);
        busy.entry().doom(Doom::Idle);
        let is_closed = |mut client: &UnixStream| matches!(client.read(&mut [0]), Ok(0));
        let mut closed = Vec::new();
        for _ in 0..6 {
            clock.advance(Duration::from_secs(1));
            watch.look(&registry, &limits);
            closed.push((stuck.entry().doomed().is_some(), is_closed(&its_client), is_closed(&busy_client)));
        }
        // Seen, ended a second later, looked at from the next time on, and closed when it has had
        // its time.
        let expected =
            [(false, false), (true, false), (true, false), (true, false), (true, true), (true, true)];
        assert_eq!(closed, expected.map(|(doomed, closed)| (doomed, closed, false)));
    }
}
