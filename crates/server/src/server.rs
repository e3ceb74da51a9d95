//! The server: its configuration, its accept loop, and its shutdown.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_sql::Database;
use cairn_vfs::{Clock, Fs, StdFs, SystemClock, thread};

use crate::access::Access;
use crate::auth::passwords::Passwords;
use crate::auth::scram::random;
use crate::codec::backend::{self, Severity};
use crate::connection::{self, Shared};
use crate::error::{Error, Failure};
use crate::limits::Limits;
use crate::log::{Level, Log};
use crate::net::listen::Listeners;
use crate::net::socket::Socket;
use crate::observer::Observer;
use crate::registry::EndReason;
use crate::sqlstate;
use crate::tls::Tls;
use crate::watch::{FINAL_MESSAGE_GRACE, TICK, Watch};

/// Connections allowed in addition to sessions, for clients that log in, cancel, or are to be
/// refused.
const CONNECTIONS_BESIDE: usize = 64;

/// The source of certificate and key.
#[derive(Debug, Clone)]
enum TlsSource {
    None,
    Files { certificate: PathBuf, key: PathBuf },
    SelfMade(Vec<String>),
}

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Builder {
    database: Database,
    addresses: Vec<SocketAddr>,
    sockets: Vec<(PathBuf, u16)>,
    tls: TlsSource,
    password_file: Option<PathBuf>,
    is_socket_trusted: bool,
    is_open: bool,
    limits: Limits,
    log: Log,
    observer: Observer,
    clock: Arc<dyn Clock>,
    fs: Arc<dyn Fs>,
}

impl Builder {
    /// Listens on an address; port 0 picks a free port. Addresses other than loopback need
    /// passwords and TLS.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Listens on the socket file `.s.PGSQL.<port>` in a directory, where PostgreSQL clients look.
    /// Without passwords, only programs of this user can open it.
    #[must_use]
    pub fn socket(mut self, directory: impl Into<PathBuf>, port: u16) -> Self {
        self.sockets.push((directory.into(), port));
        self
    }

    /// Offers TLS with a chain of certificates and a key, both in PEM files.
    #[must_use]
    pub fn tls_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls = TlsSource::Files { certificate: certificate.into(), key: key.into() };
        self
    }

    /// Offers TLS with a self-signed certificate for these names, which is created at the start.
    /// Clients can verify it only by its fingerprint.
    #[must_use]
    pub fn tls_self_made(mut self, names: Vec<String>) -> Self {
        self.tls = TlsSource::SelfMade(names);
        self
    }

    /// Requires passwords: SCRAM-SHA-256 with the verifiers of this file, which is read at each
    /// log-in.
    #[must_use]
    pub fn password_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.password_file = Some(path.into());
        self
    }

    /// Requires no password on the socket file, even if there is a password file. Off by default.
    #[must_use]
    pub fn trust_socket(mut self, is_trusted: bool) -> Self {
        self.is_socket_trusted = is_trusted;
        self
    }

    /// Admits other machines without passwords or TLS: everyone who can reach the port controls the
    /// database. Off by default.
    #[must_use]
    pub fn open_to_everybody(mut self, is_open: bool) -> Self {
        self.is_open = is_open;
        self
    }

    /// Sets the limits of clients' resources.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the log; by default there is none.
    #[must_use]
    pub fn log(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// Sets the observer of statements; by default there is none.
    #[must_use]
    pub fn observer(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Sets the clock for timeouts.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Binds addresses and sockets. Clients can connect from then on; [`Server::run`] serves them.
    ///
    /// Errors: [`Error::Listen`], [`Error::Socket`], [`Error::Tls`], [`Error::Passwords`], and
    /// [`Error::Settings`] for settings that would let everybody in.
    pub fn bind(self) -> Result<Server, Error> {
        let tls = match &self.tls {
            TlsSource::None => None,
            TlsSource::Files { certificate, key } => {
                Some(Tls::from_files(self.fs.as_ref(), certificate, key)?)
            }
            TlsSource::SelfMade(names) => Some(Tls::self_made(names.clone())?),
        };
        if let Some(path) = &self.password_file
            && Passwords::read(self.fs.as_ref(), path)?.users().next().is_none()
        {
            return Err(Error::Settings(format!("{} has no users", path.display())));
        }
        for address in &self.addresses {
            self.check_address(address.ip(), tls.is_some())?;
        }
        let mut listeners = Listeners::new()?;
        let addresses =
            self.addresses.iter().map(|address| listeners.tcp(*address)).collect::<Result<Vec<_>, _>>()?;
        let is_private = self.password_file.is_none() || self.is_socket_trusted;
        let sockets =
            self.sockets.iter().map(|(directory, port)| listeners.unix(directory, *port, is_private));
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        if listeners.is_empty() {
            return Err(Error::Settings(
                "nothing to listen on: expected an address or a socket directory".to_owned(),
            ));
        }
        let mut secret = [0; 32];
        random(&mut secret).map_err(|error| Error::Settings(error.to_string()))?;
        if let Some(tls) = &tls {
            self.log.say(Level::Info, format_args!("TLS certificate {}", tls.fingerprint()));
        }
        let stop = Shutdown { is_asked: Arc::default(), waker: listeners.waker() };
        let shared = Arc::new(Shared {
            database: self.database,
            registry: Arc::default(),
            access: Access {
                fs: self.fs,
                password_file: self.password_file,
                is_socket_trusted: self.is_socket_trusted,
                tls,
                is_open: self.is_open,
                secret,
            },
            limits: Arc::new(self.limits),
            log: self.log,
            observer: self.observer,
        });
        Ok(Server { shared, listeners, addresses, sockets, stop, clock: self.clock })
    }

    fn check_address(&self, address: IpAddr, has_tls: bool) -> Result<(), Error> {
        if address.is_loopback() || self.is_open || (self.password_file.is_some() && has_tls) {
            return Ok(());
        }
        Err(Error::Settings(format!(
            "{address} is reachable from other machines, which requires a password file and TLS, or explicit \
             permission for open access"
        )))
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listeners: Listeners,
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
    stop: Shutdown,
    clock: Arc<dyn Clock>,
}

impl Server {
    /// Returns the builder of a server for this database, which does not listen anywhere yet.
    pub fn builder(database: Database) -> Builder {
        Builder {
            database,
            addresses: Vec::new(),
            sockets: Vec::new(),
            tls: TlsSource::None,
            password_file: None,
            is_socket_trusted: false,
            is_open: false,
            limits: Limits::default(),
            log: Log::default(),
            observer: Observer::default(),
            clock: Arc::new(SystemClock::new()),
            fs: Arc::new(StdFs::new()),
        }
    }

    /// Returns the addresses that the server listens on, with their actual ports.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the socket files that the server listens on.
    pub fn socket_paths(&self) -> impl Iterator<Item = &Path> {
        self.sockets.iter().map(PathBuf::as_path)
    }

    /// Returns a handle that ends the server.
    pub fn shutdown_handle(&self) -> Shutdown {
        self.stop.clone()
    }

    /// Serves until [`Shutdown::shutdown`]. Then it accepts no more connections, notifies waiting
    /// clients, gives running statements [`Limits::shutdown_grace`] before it cancels them, and
    /// makes a checkpoint.
    ///
    /// Errors: those of the checkpoint.
    pub fn run(self) -> Result<(), Error> {
        let mut watch = Watch::new(Arc::clone(&self.clock));
        let mut was_short = false;
        while !self.stop.is_asked.load(Ordering::Acquire) {
            let arrivals = self.listeners.wait(TICK);
            if let Some(error) = arrivals.errors.first() {
                // Most likely there are no file descriptors left; connections that end will release
                // some.
                if !was_short {
                    self.shared.log.say(Level::Error, format_args!("cannot accept connections: {error}"));
                }
                self.clock.sleep(TICK);
            }
            was_short = !arrivals.errors.is_empty();
            for socket in arrivals.sockets {
                self.welcome(socket);
            }
            watch.check(&self.shared.registry, &self.shared.limits);
        }
        let Server { shared, listeners, .. } = self;
        drop(listeners);
        end(&shared)
    }

    /// Starts the thread of a connection, or refuses the connection.
    fn welcome(&self, socket: Socket) {
        let refuse = |socket: &Socket, why: &dyn std::fmt::Display| {
            self.shared.log.say(Level::Warning, format_args!("a connection is refused: {why}"));
            let mut out = Vec::new();
            let message = "sorry, too many clients already";
            backend::failure(
                &mut out,
                Severity::Fatal,
                &Failure::new(sqlstate::TOO_MANY_CONNECTIONS, message),
            );
            // The send buffer of a new connection has room for the message. If not, the server does
            // not wait.
            let _ = (&*socket).write(&out);
        };
        if self.shared.registry.len() >= self.shared.limits.connections_max.saturating_add(CONNECTIONS_BESIDE)
        {
            return refuse(&socket, &"too many connections");
        }
        let peer = match socket.prepare().and_then(|()| socket.peer()) {
            Ok(peer) => peer,
            // The client is already gone.
            Err(_) => return,
        };
        let socket = Arc::new(socket);
        let present =
            match self.shared.registry.enter(Arc::clone(&socket), peer, || self.shared.database.take_id()) {
                Ok(present) => present,
                Err(error) => return refuse(&socket, &error),
            };
        let name = format!("pg {}", present.entry().process);
        let (shared, served) = (Arc::clone(&self.shared), Arc::clone(&socket));
        if let Err(error) = thread::spawn(&name, move || connection::serve(&shared, served, present)) {
            refuse(&socket, &error);
        }
    }
}

/// Ends all sessions, then makes a checkpoint.
fn end(shared: &Shared) -> Result<(), Error> {
    let registry = &shared.registry;
    shared.log.say(Level::Info, format_args!("ending; {} connections", registry.len()));
    let each = |act: &dyn Fn(&crate::registry::Entry)| registry.entries().iter().for_each(|entry| act(entry));
    each(&|entry| entry.request_end(EndReason::Shutdown));
    if !registry.wait_empty(shared.limits.shutdown_grace) {
        shared
            .log
            .say(Level::Info, format_args!("cancelling running statements; {} connections", registry.len()));
        each(&|entry| entry.cancel());
        if !registry.wait_empty(FINAL_MESSAGE_GRACE) {
            each(&|entry| entry.socket().close());
            if !registry.wait_empty(FINAL_MESSAGE_GRACE) {
                shared
                    .log
                    .say(Level::Warning, format_args!("{} connections did not end in time", registry.len()));
            }
        }
    }
    shared.database.checkpoint()?;
    shared.log.say(Level::Info, "ended");
    Ok(())
}

/// A handle that ends a server from any thread.
#[derive(Debug, Clone)]
pub struct Shutdown {
    is_asked: Arc<AtomicBool>,
    waker: Arc<UnixStream>,
}

impl Shutdown {
    /// Asks the server to end. Returns at once; [`Server::run`] returns when the server has ended.
    pub fn shutdown(&self) {
        self.is_asked.store(true, Ordering::Release);
        // If the buffer is full, the server has been woken already.
        let _ = (&*self.waker).write(&[1]);
    }
}
