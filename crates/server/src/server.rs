//! The server: what it is made with, where it listens, how it ends.

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
use crate::registry::Doom;
use crate::sqlstate;
use crate::tls::Tls;
use crate::watch::{LAST_WORDS, TICK, Watch};

/// Connections beyond the sessions: some log in, some cancel, some are told that there are too
/// many.
const CONNECTIONS_BESIDE: usize = 64;

/// Where TLS comes from.
#[derive(Debug, Clone)]
enum TlsSource {
    None,
    Files { certificate: PathBuf, key: PathBuf },
    SelfMade(Vec<String>),
}

/// What a server is made with.
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
    /// Listens on an address; port 0 takes a free one. Addresses of other than the loopback need
    /// passwords and TLS.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Listens on the socket file `.s.PGSQL.<port>` in a directory, where PostgreSQL's clients
    /// look. Without passwords, only this user's programs can open it.
    #[must_use]
    pub fn socket(mut self, directory: impl Into<PathBuf>, port: u16) -> Self {
        self.sockets.push((directory.into(), port));
        self
    }

    /// Offers TLS with a chain of certificates and a key, PEM files both.
    #[must_use]
    pub fn tls_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls = TlsSource::Files { certificate: certificate.into(), key: key.into() };
        self
    }

    /// Offers TLS with a certificate that is made at the start, for these names. Clients cannot
    /// check it but by its fingerprint.
    #[must_use]
    pub fn tls_self_made(mut self, names: Vec<String>) -> Self {
        self.tls = TlsSource::SelfMade(names);
        self
    }

    /// Asks for passwords: SCRAM-SHA-256 with the verifiers of this file, which is read at each
    /// log-in.
    #[must_use]
    pub fn password_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.password_file = Some(path.into());
        self
    }

    /// Asks for no password on the socket file even when there is a password file. No by default.
    #[must_use]
    pub fn trust_socket(mut self, is_trusted: bool) -> Self {
        self.is_socket_trusted = is_trusted;
        self
    }

    /// Lets other machines in without passwords or TLS: whoever reaches the port owns the database.
    /// No by default.
    #[must_use]
    pub fn open_to_everybody(mut self, is_open: bool) -> Self {
        self.is_open = is_open;
        self
    }

    /// What clients may take of the machine.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the server's news go; nowhere by default.
    #[must_use]
    pub fn log(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// Who is told of every statement; nobody by default.
    #[must_use]
    pub fn observer(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// The clock that timeouts go by.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Binds addresses and sockets. From here on clients can connect; they are served by
    /// [`Server::run`].
    ///
    /// Errors: [`Error::Listen`], [`Error::Socket`], [`Error::Tls`], [`Error::Passwords`] and
    /// [`Error::Settings`] for what would let everybody in.
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
            return Err(Error::Settings(format!("{}: it has no users", path.display())));
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
            "{address} can be reached from other machines: that needs a password file and TLS, or permission to be open to everybody"
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
    /// A server of this database, which listens nowhere yet.
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

    /// Addresses that it listens on, with their real ports.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Socket files that it listens on.
    pub fn socket_paths(&self) -> impl Iterator<Item = &Path> {
        self.sockets.iter().map(PathBuf::as_path)
    }

    /// What ends it.
    pub fn shutdown_handle(&self) -> Shutdown {
        self.stop.clone()
    }

    /// Serves until [`Shutdown::shutdown`]. Then nobody new is let in, waiting clients are told,
    /// running statements have [`Limits::shutdown_grace`] and are cancelled, and a checkpoint is
    /// made.
    ///
    /// Errors: of the checkpoint.
    pub fn run(self) -> Result<(), Error> {
        let mut watch = Watch::new(Arc::clone(&self.clock));
        let mut was_short = false;
        while !self.stop.is_asked.load(Ordering::Acquire) {
            let arrivals = self.listeners.wait(TICK);
            if let Some(error) = arrivals.errors.first() {
                // Out of descriptors, most likely: those that end will give some back.
                if !was_short {
                    self.shared.log.say(Level::Error, format_args!("cannot accept connections: {error}"));
                }
                self.clock.sleep(TICK);
            }
            was_short = !arrivals.errors.is_empty();
            for socket in arrivals.sockets {
                self.welcome(socket);
            }
            watch.look(&self.shared.registry, &self.shared.limits);
        }
        let Server { shared, listeners, .. } = self;
        drop(listeners);
        end(&shared)
    }

    /// Gives a connection its thread, or no for an answer.
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
            // A new connection has room for it; one that has not is not waited for.
            let _ = (&*socket).write(&out);
        };
        if self.shared.registry.len() >= self.shared.limits.connections_max.saturating_add(CONNECTIONS_BESIDE)
        {
            return refuse(&socket, &"too many connections");
        }
        let peer = match socket.prepare().and_then(|()| socket.peer()) {
            Ok(peer) => peer,
            // It has gone already.
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

/// Ends all sessions, then writes everything to its place.
fn end(shared: &Shared) -> Result<(), Error> {
    let registry = &shared.registry;
    shared.log.say(Level::Info, format_args!("ending; {} connections", registry.len()));
    let each = |act: &dyn Fn(&crate::registry::Entry)| registry.entries().iter().for_each(|entry| act(entry));
    each(&|entry| entry.doom(Doom::Shutdown));
    if !registry.wait_empty(shared.limits.shutdown_grace) {
        shared
            .log
            .say(Level::Info, format_args!("cancelling running statements; {} connections", registry.len()));
        each(&|entry| entry.cancel());
        if !registry.wait_empty(LAST_WORDS) {
            each(&|entry| entry.socket().close());
            if !registry.wait_empty(LAST_WORDS) {
                shared.log.say(Level::Warning, format_args!("{} connections do not end", registry.len()));
            }
        }
    }
    shared.database.checkpoint()?;
    shared.log.say(Level::Info, "ended");
    Ok(())
}

/// Ends a server, from any thread.
#[derive(Debug, Clone)]
pub struct Shutdown {
    is_asked: Arc<AtomicBool>,
    waker: Arc<UnixStream>,
}

impl Shutdown {
    /// Asks the server to end. Returns at once; [`Server::run`] returns when it has.
    pub fn shutdown(&self) {
        self.is_asked.store(true, Ordering::Release);
        // A full pipe has woken it already.
        let _ = (&*self.waker).write(&[1]);
    }
}
