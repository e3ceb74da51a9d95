//! Limits of the resources that clients may use.

use std::time::Duration;

/// Limits of a server. All have defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Concurrent sessions; 100, as in PostgreSQL. Further clients receive an error (53300).
    pub connections_max: usize,
    /// Bytes of a message after log-in; 64 MiB. A larger one ends the connection.
    pub message_bytes_max: usize,
    /// Bytes of a statement's text; 16 MiB. A longer one is an error (54000).
    pub statement_bytes_max: usize,
    /// Prepared statements, and also portals, of a session; 10 000 (54000).
    pub prepared_max: usize,
    /// Time to log in; a minute, as in PostgreSQL.
    pub authentication_timeout: Duration,
    /// Run time of a statement, unless its session sets another; no limit.
    pub statement_timeout: Option<Duration>,
    /// Idle time of a client within a transaction, which is then rolled back, and the connection
    /// ended (25P03); no limit.
    pub idle_in_transaction_timeout: Option<Duration>,
    /// Idle time of a client outside a transaction (57P05); no limit.
    pub idle_session_timeout: Option<Duration>,
    /// Time for running statements to finish when the server ends, before they are cancelled; 5 s.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 100,
            message_bytes_max: 64 << 20,
            statement_bytes_max: 16 << 20,
            prepared_max: 10_000,
            authentication_timeout: Duration::from_secs(60),
            statement_timeout: None,
            idle_in_transaction_timeout: None,
            idle_session_timeout: None,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

/// Bytes of the first message, as in PostgreSQL.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of a message of a password exchange.
pub const PASSWORD_BYTES_MAX: usize = 4096;
