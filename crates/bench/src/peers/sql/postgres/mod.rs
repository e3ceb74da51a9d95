//! PostgreSQL: a private server for each database, accessed over its Unix socket by PostgreSQL's
//! own client library.

mod binary;
mod client;
mod cluster;
mod failure;
mod ffi;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

pub use self::failure::NAME;

use self::client::Connection;
use self::cluster::{Cluster, Programs};
use self::ffi::Api;
use crate::core::answer::Cell;
use crate::core::error::Result;
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::sql::{Address, Dialect, PrivateServer, Rows, SqlDb, SqlSession, SqlSettings, SqlStore};

/// Sessions with any server that speaks PostgreSQL's protocol, through PostgreSQL's own client
/// library.
#[derive(Debug)]
pub struct Wire {
    api: Arc<Api>,
}

impl Wire {
    /// Loads the library. Errors: it is not installed.
    pub fn find() -> Result<Wire> {
        Ok(Wire { api: client::load()? })
    }

    /// Like [`SqlDb::with_session`], with the server at an address.
    pub fn with_session(
        &self,
        to: &Address,
        work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>,
    ) -> Result<()> {
        work(&mut Connection::open(&self.api, to)?)
    }

    /// Like [`SqlDb::load`], by COPY.
    pub fn copy(&self, to: &Address, table: &str, rows: &mut dyn Rows) -> Result<u64> {
        Connection::open(&self.api, to)?.copy(table, rows)
    }
}

/// Returns a command for a program of the published version, such as `pgbench`, for callers without
/// a [`Server`].
pub fn program(name: &str) -> Result<Command> {
    Ok(Programs::find()?.client(name))
}

/// A private server for callers that configure and restart it themselves.
#[derive(Debug)]
pub struct Server {
    api: Arc<Api>,
    cluster: Cluster,
    version: String,
}

impl Server {
    /// Creates an empty cluster in `dir` with `settings` and starts its server.
    pub fn start(dir: &Path, settings: &[(&str, String)]) -> Result<Server> {
        let (api, programs) = (client::load()?, Programs::find()?);
        let version = programs.version()?;
        let mut cluster = Cluster::start(&programs, dir, settings)?;
        cluster.wait_for(&|address| Connection::open(&api, address).map(drop))?;
        Ok(Server { api, cluster, version })
    }
}

impl PrivateServer for Server {
    fn version(&self) -> &str {
        &self.version
    }

    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        work(&mut Connection::open(&self.api, &self.cluster.address())?)
    }

    fn restart(&mut self, between: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        let done = self.cluster.restart(between);
        self.cluster.wait_for(&|address| Connection::open(&self.api, address).map(drop))?;
        done
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.cluster.stop()
    }
}

/// PostgreSQL, with its programs and its client library found.
#[derive(Debug)]
pub struct Postgres {
    api: Arc<Api>,
    programs: Programs,
    version: String,
}

impl Postgres {
    /// Finds both. Errors: one is missing; the message names its expected place.
    pub fn find() -> Result<Postgres> {
        let (api, programs) = (client::load()?, Programs::find()?);
        let version = programs.version()?;
        Ok(Postgres { api, programs, version })
    }

    fn start(&self, dir: &Path, given: &SqlSettings) -> Result<PostgresDb> {
        let mut cluster = Cluster::start(&self.programs, dir, &parameters(given))?;
        cluster.wait_for(&|address| Connection::open(&self.api, address).map(drop))?;
        Ok(PostgresDb { api: Arc::clone(&self.api), address: cluster.address(), cluster })
    }
}

/// Returns the server's parameters that differ from the defaults.
fn parameters(given: &SqlSettings) -> Vec<(&'static str, String)> {
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    vec![
        ("shared_buffers", format!("{}kB", given.cache_bytes / 1024)),
        ("fsync", on(given.durability == Durability::Sync)),
        ("synchronous_commit", on(given.durability != Durability::Memory)),
        ("max_connections", (given.sessions + 10).to_string()),
        ("max_wal_size", "4GB".to_owned()),
        ("checkpoint_timeout", "30min".to_owned()),
        ("work_mem", "64MB".to_owned()),
        ("maintenance_work_mem", "256MB".to_owned()),
        ("random_page_cost", "1.1".to_owned()),
    ]
}

impl SqlStore for Postgres {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::equal(
                "fsync = off, synchronous_commit = off: the WAL is written up to 600 ms later",
            ),
            Durability::Buffered => Guarantee::equal("fsync = off: each commit hands the WAL to the kernel"),
            Durability::Sync => Guarantee::equal("fsync = on: each commit syncs the WAL by fdatasync"),
        }
    }

    fn settings(&self, given: &SqlSettings) -> Settings {
        let mut all = settings([
            ("connections", "one a client thread over the Unix socket, by libpq, values in binary form"),
            ("statements", "prepared once for each connection"),
            ("bulk load", "COPY FROM STDIN, as text"),
        ]);
        all.extend(parameters(given).into_iter().map(|(name, value)| (name.to_owned(), value)));
        all
    }

    fn open(&self, dir: &Path, given: &SqlSettings) -> Result<Box<dyn SqlDb>> {
        Ok(Box::new(self.start(dir, given)?))
    }

    fn serve(&self, dir: &Path, given: &SqlSettings) -> Result<Option<(Box<dyn SqlDb>, Address)>> {
        let db = self.start(dir, given)?;
        let address = db.cluster.address();
        Ok(Some((Box::new(db), address)))
    }
}

/// A running server.
#[derive(Debug)]
struct PostgresDb {
    api: Arc<Api>,
    address: Address,
    cluster: Cluster,
}

impl PostgresDb {
    fn connect(&self) -> Result<Connection> {
        Connection::open(&self.api, &self.address)
    }
}

impl SqlDb for PostgresDb {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        work(&mut self.connect()?)
    }

    fn load(&self, table: &str, _: usize, rows: &mut dyn Rows) -> Result<u64> {
        self.connect()?.copy(table, rows)
    }

    fn analyze(&self) -> Result<()> {
        self.connect()?.execute("VACUUM ANALYZE").map(drop)
    }

    fn settle(&self) -> Result<()> {
        self.connect()?.execute("CHECKPOINT").map(drop)
    }

    fn bytes(&self, tables: &[&str]) -> Result<u64> {
        let (mut connection, mut bytes) = (self.connect()?, 0);
        for table in tables {
            connection.select(&format!("SELECT pg_total_relation_size('{table}')"), &mut |row| {
                if let [Cell::Int(of_table)] = row {
                    bytes += u64::try_from(*of_table).unwrap_or_default();
                }
            })?;
        }
        Ok(bytes)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.cluster.stop()
    }
}
