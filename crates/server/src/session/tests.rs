use std::io;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_vfs::MemFs;

use super::*;
use crate::net::socket::{Peer, Socket};
use crate::net::transport::Transport;
use crate::registry::Registry;

/// A client that sends everything at once, and counts the bytes that it receives.
struct Client<'a> {
    bytes: &'a [u8],
    sent: &'a AtomicUsize,
    largest: &'a AtomicUsize,
}

impl Read for Client<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(into)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sent.fetch_add(bytes.len(), Ordering::Relaxed);
        self.largest.fetch_max(bytes.len(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client whose session is ended once it has sent everything, and that updates a row when it is
/// notified.
struct EndedClient {
    bytes: &'static [u8],
    entry: Arc<Entry>,
    other: Connection,
    /// The result of updating the row after the notification.
    found: Arc<OnceLock<cairn_sql::Result<u64>>>,
}

impl Read for EndedClient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            self.entry.request_end(EndReason::IdleInTransaction);
        }
        self.bytes.read(into)
    }
}

impl Write for EndedClient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.windows(5).any(|word| word == b"FATAL") {
            let _ = self.found.set(self.other.execute("UPDATE t SET a = 2", &[]));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len()).unwrap() + 4;
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// Goal: answers do not pile up, even if a client sends many messages before it reads any. Method:
/// as many messages as fit into one read, with answers of some thousand bytes each; the size of the
/// largest write is checked.
#[test]
fn answers_to_many_messages_go_out_before_the_last() {
    let columns = ["1"; 100].join(", ");
    let mut bytes = message(b'P', format!("s\0SELECT {columns}\0\0\0").as_bytes());
    for _ in 0..1500 {
        bytes.extend(message(b'D', b"Ss\0"));
    }
    bytes.extend([message(b'S', b""), message(b'X', b"")].concat());
    assert!(bytes.len() <= 16 << 10, "they are read at once");
    let (sent, largest) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let client = Client { bytes: &bytes, sent: &sent, largest: &largest };
    let database = cairn_sql::Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
    let registry = Arc::new(Registry::default());
    let (socket, _other) = UnixStream::pair().unwrap();
    let present = registry.enter(Arc::new(Socket::Unix(socket)), Peer::Unix, || 1).unwrap();
    let wire = Wire::new(Transport::Plain(client));
    let entry = Arc::clone(present.entry());
    let session = Session::new(wire, database.connect(), entry, Arc::new(Limits::default()));
    assert!(matches!(session.serve(), End::Disconnected));
    let (sent, largest) = (sent.into_inner(), largest.into_inner());
    assert!(sent > 3 << 20, "{sent} bytes");
    assert!(largest < 72 << 10, "{largest} bytes at once, of {sent}");
}

/// Goal: a session that is ended releases its row locks before it notifies its client, which may
/// read slowly. Method: a client that updates the same row through another connection when the
/// notification arrives.
#[test]
fn last_words_come_after_the_transaction() {
    let database = cairn_sql::Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
    let mut other = database.connect();
    other.batch("CREATE TABLE t (a int); INSERT INTO t VALUES (0); SET lock_timeout = 1").unwrap();
    let registry = Arc::new(Registry::default());
    let (socket, _other) = UnixStream::pair().unwrap();
    let present = registry.enter(Arc::new(Socket::Unix(socket)), Peer::Unix, || 1).unwrap();
    let (entry, found) = (Arc::clone(present.entry()), Arc::new(OnceLock::new()));
    let bytes = message(b'Q', b"BEGIN; UPDATE t SET a = 1\0").leak();
    let client = EndedClient { bytes, entry: Arc::clone(&entry), other, found: Arc::clone(&found) };
    let wire = Wire::new(Transport::Plain(client));
    let session = Session::new(wire, database.connect(), entry, Arc::new(Limits::default()));
    assert!(matches!(session.serve(), End::Failed(_)));
    assert!(matches!(found.get(), Some(Ok(1))), "{found:?}");
}
