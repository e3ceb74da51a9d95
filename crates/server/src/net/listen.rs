//! Listeners for addresses and socket files, which are polled together.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::{Fs, StdFs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;

use crate::auth::scram::random;
use crate::error::Error;

use super::socket::Socket;

/// A listening socket.
#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    /// A socket file, which is removed when the listener is dropped.
    Unix(UnixListener, PathBuf),
}

/// All listeners, and a socket pair that wakes up a waiting thread.
#[derive(Debug)]
pub struct Listeners {
    places: Vec<Listener>,
    woken: UnixStream,
    waker: Arc<UnixStream>,
}

/// The result of waiting.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// New connections.
    pub sockets: Vec<Socket>,
    /// Errors of the operating system.
    pub errors: Vec<io::Error>,
}

impl Listeners {
    /// Creates an empty set of listeners.
    pub fn new() -> Result<Self, Error> {
        let pair = UnixStream::pair().and_then(|(woken, waker)| {
            woken.set_nonblocking(true)?;
            waker.set_nonblocking(true)?;
            Ok((woken, waker))
        });
        let (woken, waker) = pair
            .map_err(|source| Error::System { what: "cannot create a pair of sockets to wait on", source })?;
        Ok(Listeners { places: Vec::new(), woken, waker: Arc::new(waker) })
    }

    /// Listens on an address, and returns it. Port 0 picks a free port.
    pub fn tcp(&mut self, address: SocketAddr) -> Result<SocketAddr, Error> {
        let refuse = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let bound = listener.local_addr().map_err(refuse)?;
        self.places.push(Listener::Tcp(listener));
        Ok(bound)
    }

    /// Listens on `.s.PGSQL.<port>` in a directory, where all PostgreSQL clients look. Replaces a
    /// file left by a killed server. `is_private` keeps out other users of the machine.
    pub fn unix(&mut self, directory: &Path, port: u16, is_private: bool) -> Result<PathBuf, Error> {
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let refuse = |source| Error::Socket { path: path.clone(), source };
        let fs = StdFs::new();
        if fs.exists(&path)? {
            if UnixStream::connect(&path).is_ok() {
                return Err(refuse(io::Error::new(io::ErrorKind::AddrInUse, "a server is listening there")));
            }
            fs.remove(&path)?;
        }
        let mode = if is_private { 0o600 } else { 0o666 };
        // The file exists from bind on, and must not be accessible to others before its mode is
        // set. So it is created in a directory that only its owner can enter.
        let private_dir = PrivateDir::new(directory).map_err(refuse)?;
        let listener = UnixListener::bind(private_dir.socket()).map_err(refuse)?;
        let set = std::fs::set_permissions(private_dir.socket(), PermissionsExt::from_mode(mode));
        set.and_then(|()| listener.set_nonblocking(true)).map_err(refuse)?;
        fs.rename(&private_dir.socket(), &path)?;
        self.places.push(Listener::Unix(listener, path.clone()));
        Ok(path)
    }

    /// Whether there are no listeners.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the socket that ends waiting when a byte is written to it.
    pub fn waker(&self) -> Arc<UnixStream> {
        Arc::clone(&self.waker)
    }

    /// Waits for connections, a wake-up or the end of `patience`, whichever comes first.
    pub fn wait(&self, patience: Duration) -> Arrivals {
        let mut arrivals = Arrivals::default();
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        fds.extend(self.places.iter().map(|place| match place {
            Listener::Tcp(listener) => PollFd::new(listener, PollFlags::IN),
            Listener::Unix(listener, _) => PollFd::new(listener, PollFlags::IN),
        }));
        let patience = Timespec::try_from(patience).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut fds, Some(&patience)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return arrivals,
            Ok(_) => {}
            Err(error) => {
                arrivals.errors.push(error.into());
                return arrivals;
            }
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (place, _) in self.places.iter().zip(ready.iter().skip(1)).filter(|(_, ready)| **ready) {
            place.accept_all(&mut arrivals);
        }
        arrivals
    }
}

impl Listener {
    /// Accepts the waiting clients. BOUND: at most 64 at a time, so that no listener keeps the loop
    /// busy.
    fn accept_all(&self, arrivals: &mut Arrivals) {
        for _ in 0..64 {
            let accepted = match self {
                Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Socket::Tcp(stream)),
                Listener::Unix(listener, _) => listener.accept().map(|(stream, _)| Socket::Unix(stream)),
            };
            match accepted {
                Ok(socket) => arrivals.sockets.push(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client has gone since it connected.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    arrivals.errors.push(error);
                    return;
                }
            }
        }
    }
}

/// A directory next to the socket that only its owner can enter. Dropping it removes it.
#[derive(Debug)]
struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Creates a directory with an unpredictable name. Anyone who could create it first could put
    /// another socket there.
    fn new(directory: &Path) -> io::Result<PrivateDir> {
        let mut bytes = [0; 6];
        random(&mut bytes).map_err(io::Error::other)?;
        // The name is short, because a socket path has only about a hundred bytes.
        let name = bytes.iter().fold(0, |name, byte| name << 8 | u64::from(*byte));
        PrivateDir::at(directory.join(format!(".cairn-{name:012x}")))
    }

    /// Creates the directory at `path`. Errors: the path exists, and so belongs to somebody else.
    fn at(path: PathBuf) -> io::Result<PrivateDir> {
        rustix::fs::mkdir(&path, Mode::RWXU)?;
        Ok(PrivateDir(path))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("s")
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // The socket is still there if it could not be moved to its place. A directory that cannot
        // be removed is harmless.
        let _ = StdFs::new().remove(&self.socket());
        let _ = rustix::fs::rmdir(&self.0);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // The next server replaces a file that cannot be removed.
            let _ = StdFs::new().remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a socket is bound in a directory of the server's own that nobody could have created
    /// before.
    /// Method: names and modes of two such directories, one that already exists, and the files left
    /// after they are dropped.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "modes of files are no matter of engines")]
    fn private_directories_are_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) =
            (PrivateDir::new(directory.path()).unwrap(), PrivateDir::new(directory.path()).unwrap());
        assert_ne!(one.0, other.0);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&one.0), mode(&other.0)], [0o700; 2]);
        assert_eq!(PrivateDir::at(one.0.clone()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop((one, other));
        let mut listeners = Listeners::new().unwrap();
        let path = listeners.unix(directory.path(), 7, true).unwrap();
        assert_eq!(mode(&path), 0o600);
        let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), [".s.PGSQL.7"]);
    }
}
