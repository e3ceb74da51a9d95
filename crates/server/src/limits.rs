//! What a client may take of the machine.

use std::time::Duration;

/// Limits of a server. All have defaults; a program changes those that it minds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Sessions at a time; 100, as PostgreSQL has it. One more is told so (53300).
    pub connections_max: usize,
    /// Bytes of a message after log-in; 64 MiB. A larger one ends the connection.
    pub message_bytes_max: usize,
    /// Bytes of a statement's text; 16 MiB. A longer one is an error (54000).
    pub statement_bytes_max: usize,
    /// Prepared statements and portals of a session, each; 10 000 (54000).
    pub prepared_max: usize,
    /// Time to log in; a minute, as PostgreSQL has it.
    pub authentication_timeout: Duration,
    /// Time that a statement may take, unless its session says otherwise; none.
    pub statement_timeout: Option<Duration>,
    /// Time that a client may do nothing within a transaction, which then is rolled back and the
    /// connection ended (25P03); none.
    pub idle_in_transaction_timeout: Option<Duration>,
    /// Time that a client may do nothing outside of one (57P05); none.
    pub idle_session_timeout: Option<Duration>,
    /// Time that running statements have to end when the server does; 5 s. Then they are cancelled.
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

/// Bytes of the first message, as PostgreSQL has it.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of a message of a password exchange.
pub const PASSWORD_BYTES_MAX: usize = 4096;
