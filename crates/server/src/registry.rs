//! Who is connected: for cancel requests, timeouts and the end of the server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cairn_sql::Canceller;

use crate::auth::scram::{NoRandomness, is_same, random};
use crate::net::socket::{Peer, Socket};

/// What a connection is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has not logged in yet.
    Authenticating,
    /// It waits for its client, outside of a transaction.
    Idle,
    /// It waits for its client, within one.
    IdleInTransaction,
    /// It does something.
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

/// Why a connection is ended by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Doom {
    /// It took too long to log in.
    Authentication = 1,
    /// It did nothing within a transaction for too long.
    IdleInTransaction = 2,
    /// It did nothing for too long.
    Idle = 3,
    /// The server ends.
    Shutdown = 4,
}

/// A connection, as others see it.
#[derive(Debug)]
pub struct Entry {
    /// The number by which cancel requests name it.
    pub process: i32,
    /// Where its client is.
    pub peer: Peer,
    secret: i32,
    socket: Arc<Socket>,
    /// The state in the low two bits, and above them how often it has changed: so that whoever
    /// looks from time to time sees how long nothing has, without a clock being asked at each
    /// message.
    activity: AtomicU64,
    doom: AtomicU8,
    canceller: OnceLock<Canceller>,
}

impl Entry {
    /// Notes what the connection is about. Only its own thread does.
    #[inline]
    pub fn set_state(&self, state: State) {
        let changes = self.activity.load(Ordering::Relaxed) >> 2;
        // ORDER: whoever sees it sees what was done before, such as forgetting what was asked for
        // the last message.
        self.activity.store((changes + 1) << 2 | state.code(), Ordering::Release);
    }

    /// A number that stays the same while nothing happens.
    pub fn activity(&self) -> u64 {
        self.activity.load(Ordering::Acquire)
    }

    /// What the connection is about.
    pub fn state(&self) -> State {
        match self.activity() & 3 {
            0 => State::Authenticating,
            1 => State::Idle,
            2 => State::IdleInTransaction,
            _ => State::Busy,
        }
    }

    /// What its statements are cancelled with, from log-in on.
    pub fn set_canceller(&self, canceller: Canceller) {
        // There is one connection to the database in the life of an entry.
        let _ = self.canceller.set(canceller);
    }

    /// Cancels what it is doing, up to the end of the message.
    pub fn cancel(&self) {
        if let Some(canceller) = self.canceller.get() {
            canceller.cancel();
        }
    }

    /// Ends it: it notices when it next looks for a message.
    pub fn doom(&self, why: Doom) {
        // The first reason stays.
        let _ = self.doom.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
        self.socket.stop_reading();
    }

    /// Why it is to end, if it is.
    #[inline]
    pub fn doomed(&self) -> Option<Doom> {
        match self.doom.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Doom::Authentication),
            2 => Some(Doom::IdleInTransaction),
            3 => Some(Doom::Idle),
            _ => Some(Doom::Shutdown),
        }
    }

    /// Its socket, for whoever ends it.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The secret that its client is told.
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

    /// Takes a connection in, by a number that the database has for it: SQL and cancel requests
    /// name it alike.
    pub fn enter(
        self: &Arc<Self>,
        socket: Arc<Socket>,
        peer: Peer,
        mut next_id: impl FnMut() -> u32,
    ) -> Result<Present, NoRandomness> {
        let mut secret = [0; 4];
        random(&mut secret)?;
        let mut entries = self.lock();
        // BOUND: there are fewer connections than numbers, which begin anew some day.
        let process = loop {
            // The protocol's have a sign, and 0 is none.
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
            doom: AtomicU8::new(0),
            canceller: OnceLock::new(),
        });
        entries.by_process.insert(process, Arc::clone(&entry));
        Ok(Present { registry: Arc::clone(self), entry, is_session: false })
    }

    /// How many connections there are, logged in or not.
    pub fn len(&self) -> usize {
        self.lock().by_process.len()
    }

    /// All of them, as they are now.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.lock().by_process.values().cloned().collect()
    }

    /// Cancels what a connection is doing, if the secret is its own.
    pub fn cancel(&self, process: i32, secret: i32) -> bool {
        let entry = self.lock().by_process.get(&process).cloned();
        match entry {
            Some(entry) if is_same(&entry.secret.to_be_bytes(), &secret.to_be_bytes()) => {
                // Who waits for its client does nothing but read ahead for its cursors: PostgreSQL
                // cancels nothing then, either.
                if entry.state() == State::Busy {
                    entry.cancel();
                }
                true
            }
            _ => false,
        }
    }

    /// Waits until nobody is connected, or `patience` has passed. Whether nobody is.
    pub fn wait_empty(&self, patience: Duration) -> bool {
        let entries = self.lock();
        let waited =
            self.one_less.wait_timeout_while(entries, patience, |entries| !entries.by_process.is_empty());
        let (entries, _) = waited.unwrap_or_else(PoisonError::into_inner);
        entries.by_process.is_empty()
    }
}

/// A connection's presence; it leaves when this is dropped, however its thread ends.
#[derive(Debug)]
pub struct Present {
    registry: Arc<Registry>,
    entry: Arc<Entry>,
    is_session: bool,
}

impl Present {
    /// What others see of it.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Becomes one of at most `most` sessions. False where there are so many already.
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

    /// Goal: numbers and secrets are apart, sessions are counted, and who leaves is gone. Method:
    /// three connections, two sessions.
    #[test]
    fn connections_come_and_go() {
        let registry = Arc::new(Registry::default());
        // Numbers begin anew when they are at their end, and one that is in use is passed over.
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

    /// Goal: a state is told, and telling it again shows as a change; the first reason to end
    /// stays.
    #[test]
    fn states_and_dooms() {
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
        assert_eq!(entry.doomed(), None);
        entry.doom(Doom::Idle);
        entry.doom(Doom::Shutdown);
        assert_eq!(entry.doomed(), Some(Doom::Idle));
    }
}
