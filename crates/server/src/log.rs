//! What the server has to say to whoever runs it. It prints nothing itself.

use std::fmt;
use std::sync::Arc;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Who comes and goes.
    Debug,
    /// What the server does.
    Info,
    /// What an operator may want to look at: refused passwords, clients that send garbage, a lack
    /// of threads.
    Warning,
    /// What went wrong in the server.
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

/// Where lines go. Called from every thread.
#[derive(Clone)]
pub struct Log(Arc<Say>);

type Say = dyn Fn(Level, &str) + Send + Sync;

impl Log {
    /// Lines go to this function.
    pub fn new(to: impl Fn(Level, &str) + Send + Sync + 'static) -> Self {
        Log(Arc::new(to))
    }

    /// Says something.
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
    /// Lines go nowhere.
    fn default() -> Self {
        Log::new(|_, _| {})
    }
}
