//! PostgreSQL's wire protocol over `cairn-sql`, with which every PostgreSQL client can use a Cairn
//! database.
//!
//! ```no_run
//! use cairn_server::Server;
//! use cairn_sql::Database;
//!
//! let database = Database::open("my.db")?;
//! let server = Server::builder(database).listen("127.0.0.1:5432".parse()?).bind()?;
//! let stop = server.shutdown_handle(); // ends the server from another thread
//! server.run()?;
//! # drop(stop);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! ```text
//! server       listens, gives each connection a thread, ends them all
//! connection   one of them: startup, log-in, session
//! session/     messages of both protocols, COPY
//! codec/       messages as bytes;  types/  values as text and binary
//! auth/        SCRAM-SHA-256, the password file;  tls
//! registry     all connections, for cancel requests;  watch  timeouts
//! net/         sockets and their buffers
//! ```
//! I/O is blocking, with a thread per connection: a question and its answer take one read and one
//! write, with no task switches in between. Every incoming byte is checked, and invalid input of
//! one client does not affect others.
#![forbid(unsafe_code)]

mod access;
mod auth;
mod codec;
mod connection;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod limits;
mod log;
mod net;
mod observer;
mod registry;
mod server;
mod session;
mod sqlstate;
mod startup;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
mod tls;
mod types;
mod watch;

pub use auth::passwords::{Passwords, is_name};
pub use auth::scram::{NoRandomness, Verifier};
pub use error::Error;
pub use limits::Limits;
pub use log::{Level, Log};
pub use observer::Observer;
pub use server::{Builder, Server, Shutdown};
