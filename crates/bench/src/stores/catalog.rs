//! The stores of this build, as the suites see them. The catalogue itself is made at the top of the
//! crate, where Cairn's own stores and the peers are known, and is handed down.

use std::path::Path;
use std::process::Command;

use super::constant::ConstantStore;
use super::java::JavaLibrary;
use super::kv::KvStore;
use super::measured::MeasuredLibrary;
use super::pages::PageStore;
use super::sql::{PrivateServer, SqlStore};
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::results::Contender;

/// Makes a store, possibly after searching for its library.
pub type Make<S> = fn() -> Result<Box<S>>;

/// Whose store it is, and when it takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Cairn's own.
    Own,
    /// A peer.
    Peer,
    /// Only on request, because it does not support all operations of the suites.
    OnRequest,
}

#[derive(Debug)]
struct Entry<S: ?Sized> {
    name: &'static str,
    part: Part,
    make: Make<S>,
}

/// All stores of one kind, in the order of tables.
#[derive(Debug)]
pub struct Registry<S: ?Sized> {
    /// The word for such a store in errors.
    noun: &'static str,
    /// The words that an option accepts besides names, as an error lists them: `, all or none`.
    others: &'static str,
    entries: Vec<Entry<S>>,
}

impl<S: ?Sized> Registry<S> {
    /// Creates a registry without stores. An unknown name is refused as
    /// `{noun} "name": expected a, b{others}`.
    pub fn new(noun: &'static str, others: &'static str) -> Registry<S> {
        Registry { noun, others, entries: Vec::new() }
    }

    /// Adds a store of Cairn's.
    pub fn own(&mut self, name: &'static str, make: Make<S>) {
        self.entries.push(Entry { name, part: Part::Own, make });
    }

    /// Adds a peer.
    pub fn peer(&mut self, name: &'static str, make: Make<S>) {
        self.entries.push(Entry { name, part: Part::Peer, make });
    }

    /// Adds a store that takes part only on request.
    pub fn on_request(&mut self, name: &'static str, make: Make<S>) {
        self.entries.push(Entry { name, part: Part::OnRequest, make });
    }

    fn names_of(&self, wanted: impl Fn(Part) -> bool) -> Vec<&'static str> {
        self.entries.iter().filter(|entry| wanted(entry.part)).map(|entry| entry.name).collect()
    }

    /// Returns the names of the stores that take part unless others are named.
    pub fn names(&self) -> Vec<&'static str> {
        self.names_of(|part| part != Part::OnRequest)
    }

    /// Returns the names of all stores, also of those that take part only on request.
    pub fn all_names(&self) -> Vec<&'static str> {
        self.names_of(|_| true)
    }

    /// Returns the names of Cairn's own.
    pub fn own_names(&self) -> Vec<&'static str> {
        self.names_of(|part| part == Part::Own)
    }

    /// Returns the names of the peers.
    pub fn peer_names(&self) -> Vec<&'static str> {
        self.names_of(|part| part == Part::Peer)
    }

    /// Refuses an unknown name, and lists the known ones.
    pub fn check(&self, name: &str) -> Result<()> {
        let known = self.all_names();
        if known.contains(&name) {
            return Ok(());
        }
        Err(Error::invalid(format!("{} {name:?}: expected {}{}", self.noun, known.join(", "), self.others)))
    }

    /// Returns the store called `name` without loading any other: a fresh process that measures one
    /// store must not have loaded another.
    ///
    /// Errors: [`Error::Invalid`] if there is none, or the reason that it cannot run.
    pub fn get(&self, name: &str) -> Result<Box<S>> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| Error::invalid(format!("no store is called {name:?}")))?;
        (entry.make)()
    }

    /// Returns the stores called `names`, in that order.
    ///
    /// Errors: [`Error::Invalid`] for an unknown name. A known store that cannot run is among the
    /// skipped.
    pub fn select<N: AsRef<str>>(&self, names: &[N]) -> Result<Selection<S>> {
        let mut selection = Selection::default();
        for name in names.iter().map(AsRef::as_ref) {
            self.check(name)?;
            match self.get(name) {
                Ok(store) => selection.stores.push(store),
                Err(error) => selection.skipped.push(Contender::left_out(name, name, &error)),
            }
        }
        Ok(selection)
    }

    /// Returns every store that takes part unless others are named.
    pub fn all(&self) -> Selection<S> {
        self.select(&self.names()).unwrap_or_default()
    }
}

/// The stores of a run.
#[derive(Debug)]
pub struct Selection<S: ?Sized> {
    /// Those that can run.
    pub stores: Vec<Box<S>>,
    /// Those that cannot, with the reasons. The run lists them as contenders all the same.
    pub skipped: Vec<Contender>,
}

impl<S: ?Sized> Default for Selection<S> {
    fn default() -> Self {
        Selection { stores: Vec::new(), skipped: Vec::new() }
    }
}

impl<S: ?Sized> From<Vec<Box<S>>> for Selection<S> {
    fn from(stores: Vec<Box<S>>) -> Self {
        Selection { stores, skipped: Vec::new() }
    }
}

/// Starts a server with its files in a directory and these settings.
pub type StartServer = fn(&Path, &[(&'static str, String)]) -> Result<Box<dyn PrivateServer>>;

/// Finds a library at this path, or where the system has it.
pub type FindLibrary = fn(Option<&Path>) -> Result<Box<dyn MeasuredLibrary>>;

/// PostgreSQL's programs on this machine.
#[derive(Debug, Clone, Copy)]
pub struct PostgresTools {
    /// Checks that they are installed. Errors: the software to install.
    pub find: fn() -> Result<()>,
    /// Starts a server for this process alone, with its files in a directory and these settings.
    pub start: StartServer,
    /// Returns one of the programs by its name, such as `pgbench`.
    pub program: fn(&str) -> Result<Command>,
}

/// Everything that a suite can measure in this build.
#[derive(Debug)]
pub struct Catalog {
    /// Constant stores.
    pub constant: Registry<dyn ConstantStore>,
    /// Ordered key-value stores.
    pub kv: Registry<dyn KvStore>,
    /// SQL engines.
    pub sql: Registry<dyn SqlStore>,
    /// Buffer pools and caches of pages, without Cairn's own, which are named by their policies.
    pub pages: Registry<dyn PageStore>,
    /// Finds Sparkey's Java library. Errors: the software to install.
    pub java: fn(&Stop) -> Result<Box<dyn JavaLibrary>>,
    /// PostgreSQL's programs; `None` in a build without peers.
    pub postgres: Option<PostgresTools>,
    /// Finds a library of RocksDB whose counters can be read, at this path or where the system has
    /// it; `None` in a build without peers.
    pub measured_rocksdb: Option<FindLibrary>,
}
