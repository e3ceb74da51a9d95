//! The server's log. The server prints nothing itself.

use std::fmt;
use std::sync::Arc;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Clients that connect and disconnect.
    Debug,
    /// Actions of the server.
    Info,
    /// Events that an operator may want to look into: refused passwords, clients that send invalid
    /// messages, a lack of threads.
    Warning,
    /// Errors in the server.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        })
    }
}

/// The receiver of log lines. It is called from every thread.
#[derive(Clone)]
pub struct Log(Arc<Say>);

type Say = dyn Fn(Level, &str) + Send + Sync;

impl Log {
    /// Creates a log that calls this function for each line.
    pub fn new(to: impl Fn(Level, &str) + Send + Sync + 'static) -> Self {
        Log(Arc::new(to))
    }

    /// Logs a line.
    pub fn say(&self, level: Level, line: impl fmt::Display) {
        (self.0)(level, &line.to_string());
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Default for Log {
    /// Discards all lines.
    fn default() -> Self {
        Log::new(|_, _| {})
    }
}
