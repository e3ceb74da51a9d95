//! All connections, for cancel requests, timeouts and shutdown.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cairn_sql::Canceller;

use crate::auth::scram::{NoRandomness, is_same, random};
use crate::net::socket::{Peer, Socket};

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The client has not logged in yet.
    Authenticating,
    /// The session waits for its client, outside a transaction.
    Idle,
    /// The session waits for its client, within a transaction.
    IdleInTransaction,
    /// The session processes a message.
    Busy,
}

impl State {
    const fn code(self) -> u64 {
        match self {
            State::Authenticating => 0,
            State::Idle => 1,
            State::IdleInTransaction => 2,
            State::Busy => 3,
        }
    }
}

/// The reason why the server ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EndReason {
    /// The client took too long to log in.
    Authentication = 1,
    /// The client was idle within a transaction for too long.
    IdleInTransaction = 2,
    /// The client was idle for too long.
    Idle = 3,
    /// The server shuts down.
    Shutdown = 4,
}

/// A connection, as other threads see it.
#[derive(Debug)]
pub struct Entry {
    /// The process number that cancel requests use.
    pub process: i32,
    /// The location of the client.
    pub peer: Peer,
    secret: i32,
    socket: Arc<Socket>,
    /// The state in the low two bits, and a count of its changes above them. An observer can thus
    /// see for how long nothing has changed, without a clock reading for each message.
    activity: AtomicU64,
    end_reason: AtomicU8,
    canceller: OnceLock<Canceller>,
}

impl Entry {
    /// Sets the state. Only the connection's own thread calls it.
    #[inline]
    pub fn set_state(&self, state: State) {
        let changes = self.activity.load(Ordering::Relaxed) >> 2;
        // ORDER: threads that see the new state also see earlier writes, such as the reset of a
        // cancel request for the last message.
        self.activity.store((changes + 1) << 2 | state.code(), Ordering::Release);
    }

    /// Returns a number that stays the same while nothing happens.
    pub fn activity(&self) -> u64 {
        self.activity.load(Ordering::Acquire)
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        match self.activity() & 3 {
            0 => State::Authenticating,
            1 => State::Idle,
            2 => State::IdleInTransaction,
            _ => State::Busy,
        }
    }

    /// Sets the canceller of the session's statements. Called at log-in.
    pub fn set_canceller(&self, canceller: Canceller) {
        // An entry never gets a second connection to the database.
        let _ = self.canceller.set(canceller);
    }

    /// Cancels the current work, up to the end of the message.
    pub fn cancel(&self) {
        if let Some(canceller) = self.canceller.get() {
            canceller.cancel();
        }
    }

    /// Asks the connection to end, which it does when it next waits for a message.
    pub fn request_end(&self, why: EndReason) {
        // The first reason is kept.
        let _ = self.end_reason.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
        self.socket.stop_reading();
    }

    /// Returns the reason why the connection must end, if it must.
    #[inline]
    pub fn end_reason(&self) -> Option<EndReason> {
        match self.end_reason.load(Ordering::Acquire) {
            0 => None,
            1 => Some(EndReason::Authentication),
            2 => Some(EndReason::IdleInTransaction),
            3 => Some(EndReason::Idle),
            _ => Some(EndReason::Shutdown),
        }
    }

    /// Returns the connection's socket, so that another thread can end the connection.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns the secret for cancel requests, which the connection's client receives.
    pub fn secret(&self) -> i32 {
        self.secret
    }
}

/// All connections.
#[derive(Debug, Default)]
pub struct Registry {
    entries: Mutex<Entries>,
    one_less: Condvar,
    sessions: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entries {
    by_process: HashMap<i32, Arc<Entry>>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Its process number comes from the database, so that SQL and cancel
    /// requests use the same number.
    pub fn enter(
        self: &Arc<Self>,
        socket: Arc<Socket>,
        peer: Peer,
        mut next_id: impl FnMut() -> u32,
    ) -> Result<Present, NoRandomness> {
        let mut secret = [0; 4];
        random(&mut secret)?;
        let mut entries = self.lock();
        // BOUND: there are fewer connections than numbers. The numbers wrap around.
        let process = loop {
            // The protocol's numbers are signed, and 0 means none.
            let process = (next_id() & i32::MAX as u32) as i32;
            if process != 0 && !entries.by_process.contains_key(&process) {
                break process;
            }
        };
        let entry = Arc::new(Entry {
            process,
            peer,
            secret: i32::from_be_bytes(secret),
            socket,
            activity: AtomicU64::new(State::Authenticating.code()),
            end_reason: AtomicU8::new(0),
            canceller: OnceLock::new(),
        });
        entries.by_process.insert(process, Arc::clone(&entry));
        Ok(Present { registry: Arc::clone(self), entry, is_session: false })
    }

    /// Returns the number of connections, logged in or not.
    pub fn len(&self) -> usize {
        self.lock().by_process.len()
    }

    /// Returns a snapshot of all connections.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.lock().by_process.values().cloned().collect()
    }

    /// Cancels the work of a connection if the secret is correct. Returns whether it is.
    pub fn cancel(&self, process: i32, secret: i32) -> bool {
        let entry = self.lock().by_process.get(&process).cloned();
        match entry {
            Some(entry) if is_same(&entry.secret.to_be_bytes(), &secret.to_be_bytes()) => {
                // A session that waits for its client only reads ahead for its cursors. PostgreSQL
                // cancels nothing then, either.
                if entry.state() == State::Busy {
                    entry.cancel();
                }
                true
            }
            _ => false,
        }
    }

    /// Waits until there are no connections, or `patience` has passed. Returns whether there are
    /// none.
    pub fn wait_empty(&self, patience: Duration) -> bool {
        let entries = self.lock();
        let waited =
            self.one_less.wait_timeout_while(entries, patience, |entries| !entries.by_process.is_empty());
        let (entries, _) = waited.unwrap_or_else(PoisonError::into_inner);
        entries.by_process.is_empty()
    }
}

/// The registration of a connection. Dropping it removes the connection, however its thread ends.
#[derive(Debug)]
pub struct Present {
    registry: Arc<Registry>,
    entry: Arc<Entry>,
    is_session: bool,
}

impl Present {
    /// Returns the part that other threads see.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Becomes one of at most `most` sessions. Returns false if there are that many already.
    pub fn admit(&mut self, most: usize) -> bool {
        let sessions = &self.registry.sessions;
        let admitted = sessions.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            Some(count + 1).filter(|count| *count <= most)
        });
        self.is_session = admitted.is_ok();
        self.is_session
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        if self.is_session {
            self.registry.sessions.fetch_sub(1, Ordering::AcqRel);
        }
        self.registry.lock().by_process.remove(&self.entry.process);
        self.registry.one_less.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Goal: connections have different numbers and secrets, sessions are counted, and ended
    /// connections are removed. Method: three connections, two sessions.
    #[test]
    fn registry_follows_connections() {
        let registry = Arc::new(Registry::default());
        // Numbers wrap around at their end, and numbers in use are skipped.
        let mut ids = [u32::MAX, 1 << 31, 1, i32::MAX as u32, 2].into_iter();
        let mut enter = || {
            let (one, _other) = UnixStream::pair().unwrap();
            registry.enter(Arc::new(Socket::Unix(one)), Peer::Unix, || ids.next().unwrap()).unwrap()
        };
        let (mut a, mut b, mut c) = (enter(), enter(), enter());
        assert_eq!([&a, &b, &c].map(|present| present.entry().process), [i32::MAX, 1, 2]);
        assert!(a.admit(2) && b.admit(2) && !c.admit(2));
        assert!(registry.cancel(a.entry().process, a.entry().secret()));
        assert!(!registry.cancel(a.entry().process, a.entry().secret() ^ 1));
        assert!(!registry.cancel(99, 0));
        drop(a);
        assert_eq!(registry.len(), 2);
        assert!(c.admit(2));
        assert!(!registry.wait_empty(Duration::ZERO));
        drop((b, c));
        assert!(registry.wait_empty(Duration::ZERO));
    }

    /// Goal: states are reported, and setting the same state again counts as a change; the first
    /// reason to end is kept.
    #[test]
    fn states_and_end_reasons() {
        let registry = Arc::new(Registry::default());
        let (one, _other) = UnixStream::pair().unwrap();
        let present = registry.enter(Arc::new(Socket::Unix(one)), Peer::Unix, || 1).unwrap();
        let entry = present.entry();
        for state in [State::Idle, State::IdleInTransaction, State::Busy, State::Busy] {
            let before = entry.activity();
            entry.set_state(state);
            assert_eq!(entry.state(), state);
            assert_ne!(entry.activity(), before);
        }
        assert_eq!(entry.end_reason(), None);
        entry.request_end(EndReason::Idle);
        entry.request_end(EndReason::Shutdown);
        assert_eq!(entry.end_reason(), Some(EndReason::Idle));
    }
}
