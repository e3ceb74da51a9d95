//! Cairn's relational engine behind its server, accessed like PostgreSQL: by PostgreSQL's own
//! client library over a Unix socket.
//!
//! The server's threads run in the lab's own process. That makes no difference when the load comes
//! from another process (pgbench). When the lab's threads are the clients, client and server share
//! one process instead of two.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_server::{Limits, Server, Shutdown};
use cairn_sql::Database;
use cairn_vfs::thread::{self, JoinHandle};

use crate::core::data_files::data_bytes;
use crate::core::error::{Error, Result};
use crate::core::scratch::Scratch;
use crate::core::settings::Settings;
use crate::core::workload::Durability;
use crate::peers::sql::postgres::Wire;
use crate::stores::cairn_sql::{CairnSql, database};
use crate::stores::guarantee::Guarantee;
use crate::stores::sql::{Address, Dialect, Rows, SqlDb, SqlSession, SqlSettings, SqlStore};

/// Name of the engine.
pub const NAME: &str = "cairn server";

/// Port number in the names of sockets. Each server has a directory of its own.
const PORT: u16 = 5432;

/// Name of the user, which needs no password.
const USER: &str = "cairn";

/// Cairn's SQL over the wire protocol.
#[derive(Debug)]
pub struct CairnServer {
    wire: Arc<Wire>,
}

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// Converts an error of the client library into one of this engine.
fn renamed(error: Error) -> Error {
    match error {
        Error::Engine { what, .. } => Error::engine(NAME, what),
        Error::Conflict { what, .. } => Error::conflict(NAME, what),
        other => other,
    }
}

impl CairnServer {
    /// Loads the client library. Errors: it is not installed.
    pub fn find() -> Result<CairnServer> {
        Ok(CairnServer { wire: Arc::new(Wire::find()?) })
    }

    fn start(&self, dir: &Path, given: &SqlSettings) -> Result<Open> {
        let mut limits = Limits::default();
        limits.connections_max = given.sessions as usize + 10;
        let database = database(dir, given)?;
        // The path of a socket is limited to about a hundred bytes, which that of a work directory
        // may exceed.
        let socket = Scratch::temporary("sqlserver")?;
        let server = Server::builder(database.clone()).socket(socket.path(), PORT).limits(limits).bind();
        let server = server.map_err(fail)?;
        let stop = server.shutdown_handle();
        let serving = thread::spawn("sql-server", move || server.run()).map_err(fail)?;
        let host = socket.path().display().to_string();
        let address = Address { host, port: PORT, user: USER.to_owned(), database: USER.to_owned() };
        Ok(Open {
            wire: Arc::clone(&self.wire),
            address,
            dir: dir.to_owned(),
            database,
            stop,
            serving: Some(serving),
            _socket: socket,
        })
    }
}

impl SqlStore for CairnServer {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        CairnSql.version()
    }

    fn ours(&self) -> bool {
        true
    }

    fn dialect(&self) -> Dialect {
        CairnSql.dialect()
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        CairnSql.guarantee(durability)
    }

    fn settings(&self, given: &SqlSettings) -> Settings {
        let mut all = CairnSql.settings(given);
        all.insert(
            "connections".to_owned(),
            "one a client thread over the Unix socket, by libpq, values in binary form".to_owned(),
        );
        all
    }

    fn open(&self, dir: &Path, given: &SqlSettings) -> Result<Box<dyn SqlDb>> {
        Ok(Box::new(self.start(dir, given)?))
    }

    fn serve(&self, dir: &Path, given: &SqlSettings) -> Result<Option<(Box<dyn SqlDb>, Address)>> {
        let open = self.start(dir, given)?;
        let address = open.address.clone();
        Ok(Some((Box::new(open), address)))
    }
}

struct Open {
    wire: Arc<Wire>,
    address: Address,
    dir: PathBuf,
    database: Database,
    stop: Shutdown,
    serving: Option<JoinHandle<std::result::Result<(), cairn_server::Error>>>,
    _socket: Scratch,
}

impl Open {
    fn end(&mut self) -> Result<()> {
        self.stop.shutdown();
        match self.serving.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.map_err(fail),
            Some(Err(_)) => Err(fail("the server's thread panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Errors are dropped here; `close` reports them.
        let _ = self.end();
    }
}

impl SqlDb for Open {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        self.wire.with_session(&self.address, work).map_err(renamed)
    }

    fn load(&self, table: &str, _: usize, rows: &mut dyn Rows) -> Result<u64> {
        self.wire.copy(&self.address, table, rows).map_err(renamed)
    }

    fn analyze(&self) -> Result<()> {
        self.with_session(&mut |session| session.execute("ANALYZE").map(drop))
    }

    fn settle(&self) -> Result<()> {
        self.database.checkpoint().map_err(fail)
    }

    fn bytes(&self, _: &[&str]) -> Result<u64> {
        data_bytes(&self.dir)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.end()
    }
}
