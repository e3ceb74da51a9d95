//! Checks all connections periodically: for timeouts, and for clients that have gone while their
//! statement runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::Clock;

use crate::limits::Limits;
use crate::registry::{EndReason, Entry, Registry, State};

/// Time between two checks.
pub const TICK: Duration = Duration::from_millis(100);
/// Run time of a statement after which the server checks whether its client is still connected.
const CLIENT_CHECK_AFTER: Duration = Duration::from_secs(1);

/// Time for a client to receive its final message.
pub const FINAL_MESSAGE_GRACE: Duration = Duration::from_secs(2);

/// The last observation of a connection, and the time since which it has not changed.
#[derive(Debug, Clone, Copy)]
struct Seen {
    activity: u64,
    since: Duration,
    /// When the connection was first seen to wait for its client although it must end.
    ending_since: Option<Duration>,
}

/// State kept from one check to the next.
#[derive(Debug)]
pub struct Watch {
    clock: Arc<dyn Clock>,
    last: Duration,
    seen: HashMap<i32, Seen>,
}

impl Watch {
    /// Creates a watch that has not seen any connection.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Watch { last: clock.now(), clock, seen: HashMap::new() }
    }

    /// Checks all connections, if it is time.
    pub fn check(&mut self, registry: &Registry, limits: &Limits) {
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
            if entry.end_reason().is_some() && entry.state() != State::Busy {
                let since = *seen.ending_since.get_or_insert(now);
                if now.saturating_sub(since) >= FINAL_MESSAGE_GRACE {
                    // The client does not read its final message, and the thread would wait
                    // forever.
                    entry.socket().close();
                }
                continue;
            }
            check_entry(&entry, now.saturating_sub(seen.since), limits);
        }
    }
}

fn check_entry(entry: &Entry, for_so_long: Duration, limits: &Limits) {
    let is_over = |limit: Option<Duration>| limit.is_some_and(|limit| for_so_long >= limit);
    match entry.state() {
        // Nothing changes before log-in, so this is the time since the connection started.
        State::Authenticating if is_over(Some(limits.authentication_timeout)) => {
            entry.request_end(EndReason::Authentication);
            // A client that has not logged in must not keep a thread, not even by not reading its
            // final message.
            entry.socket().close();
        }
        State::Idle if is_over(limits.idle_session_timeout) => entry.request_end(EndReason::Idle),
        State::IdleInTransaction if is_over(limits.idle_in_transaction_timeout) => {
            entry.request_end(EndReason::IdleInTransaction);
        }
        State::Busy if for_so_long >= CLIENT_CHECK_AFTER && entry.socket().is_disconnected() => {
            entry.cancel()
        }
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

    /// Goal: each state has its limit, and activity restarts the time. Method: a manual clock, one
    /// connection for each state.
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
            watch.check(&registry, &limits);
            ended.push(presents.each_ref().map(|present| present.entry().end_reason().is_some()));
            if ended.len() == 3 {
                presents[1].entry().set_state(State::IdleInTransaction);
            }
        }
        let first = |at: usize| ended.iter().position(|ended| ended[at]);
        // Time counts from the first check; the third check sees activity in the transaction.
        assert_eq!([first(0), first(1), first(2), first(3)], [Some(2), Some(7), Some(6), None]);
    }

    /// Goal: a client that does not read its final message keeps no thread and no lock: its socket
    /// is closed. A connection whose statement runs is left alone. Method: two connections that
    /// must end, and the bytes that their clients can read; a manual clock.
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
        busy.entry().request_end(EndReason::Idle);
        let is_closed = |mut client: &UnixStream| matches!(client.read(&mut [0]), Ok(0));
        let mut closed = Vec::new();
        for _ in 0..6 {
            clock.advance(Duration::from_secs(1));
            watch.check(&registry, &limits);
            closed.push((
                stuck.entry().end_reason().is_some(),
                is_closed(&its_client),
                is_closed(&busy_client),
            ));
        }
        // The connection is seen, ended a second later, found waiting at the next check, and closed
        // after its time for the final message.
        let expected =
            [(false, false), (true, false), (true, false), (true, false), (true, true), (true, true)];
        assert_eq!(closed, expected.map(|(end_reason, closed)| (end_reason, closed, false)));
    }
}
