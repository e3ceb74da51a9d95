//! A connected socket of either kind.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;

/// A client that has vanished is noticed after a minute of silence and six unanswered probes.
/// TCP_USER_TIMEOUT is not used. It would notice a vanished client as early when data is in flight,
/// but it would also end clients that are slow to read rows.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 6;

/// A connection to a client.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a socket file.
    Unix(UnixStream),
}

/// The location of a client, as far as trust depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// On this machine, over a socket file.
    Unix,
    /// On this machine, over the loopback address.
    Loopback,
    /// On another machine.
    Remote(IpAddr),
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Unix => f.write_str("[local]"),
            Peer::Loopback => f.write_str("[loopback]"),
            Peer::Remote(address) => write!(f, "{address}"),
        }
    }
}

impl Socket {
    /// Configures the connection for small messages that are answered at once.
    pub fn prepare(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                sockopt::set_socket_keepalive(stream, true)?;
                sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
                sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
                sockopt::set_tcp_keepcnt(stream, KEEPALIVE_COUNT)?;
                Ok(())
            }
            Socket::Unix(stream) => stream.set_nonblocking(false),
        }
    }

    /// Returns the location of the client.
    pub fn peer(&self) -> io::Result<Peer> {
        match self {
            Socket::Unix(_) => Ok(Peer::Unix),
            Socket::Tcp(stream) => {
                let address = stream.peer_addr()?.ip().to_canonical();
                Ok(if address.is_loopback() { Peer::Loopback } else { Peer::Remote(address) })
            }
        }
    }

    /// Shuts down reading: a thread that waits for bytes gets none. Pending output is still
    /// written.
    pub fn stop_reading(&self) {
        self.shutdown(Shutdown::Read);
    }

    /// Shuts down both directions: a thread that waits to write gets an error.
    pub fn close(&self) {
        self.shutdown(Shutdown::Both);
    }

    fn shutdown(&self, how: Shutdown) {
        // Fails if the other side has already shut down.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Whether the client has closed its side. Does not wait.
    pub fn is_disconnected(&self) -> bool {
        let asked = PollFlags::RDHUP;
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut fds = [match self {
            Socket::Tcp(stream) => PollFd::new(stream, asked),
            Socket::Unix(stream) => PollFd::new(stream, asked),
        }];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0) && fds[0].revents().intersects(gone)
    }
}

impl Read for &Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).read(into),
            Socket::Unix(stream) => (&*stream).read(into),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).write(bytes),
            Socket::Unix(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
