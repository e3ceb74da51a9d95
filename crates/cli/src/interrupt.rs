//! Ctrl-C in commands that have something to put away.

use std::io::{self, Write};
use std::process::{self, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// 128 + SIGINT, as shells count.
pub const EXIT_CODE: u8 = 130;

/// Whether the user has pressed Ctrl-C. A second time ends the process at once.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches Ctrl-C from here on. Once in a process.
    pub fn catch() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                process::exit(i32::from(EXIT_CODE));
            }
            // Nobody is there to be told that nobody is there.
            let _ = writeln!(io::stderr(), "\nending; once more to end at once");
        })
        .map_err(|error| Error::usage(format!("Ctrl-C cannot be caught: {error}")))?;
        Ok(Interrupt(asked))
    }

    /// Errors: [`Error::Interrupted`] with `what` was done so far, when the user has asked to end.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Interrupted(what())) } else { Ok(()) }
    }
}

/// Ctrl-C where a program that was started from here gets it as well, and is waited for however it takes that.
#[derive(Debug, Clone)]
pub struct Outlasted(Arc<AtomicBool>);

impl Outlasted {
    /// Does nothing but remember from here on. Programs that are started are not kept from ending by it. Once in a process.
    pub fn catch() -> Result<Outlasted> {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
            .map_err(|error| Error::usage(format!("Ctrl-C cannot be caught: {error}")))?;
        Ok(Outlasted(asked))
    }

    /// Whether it was pressed until a program had ended so. What the program ended by counts as well: it may have ended before this process has heard of it.
    pub fn was_pressed(&self, ended: ExitStatus) -> bool {
        self.0.load(Ordering::Relaxed) || is_by_ctrl_c(ended)
    }
}

#[cfg(unix)]
fn is_by_ctrl_c(ended: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    ended.signal() == Some(i32::from(EXIT_CODE) - 128)
}

#[cfg(not(unix))]
fn is_by_ctrl_c(_: ExitStatus) -> bool {
    false
}

/// Ctrl-C where it ends a statement, and the program only where nobody is there to go on.
#[cfg(feature = "sql")]
#[derive(Debug, Clone)]
pub struct Asked(Arc<AtomicBool>);

#[cfg(feature = "sql")]
impl Asked {
    /// Calls `stop` at each Ctrl-C from here on. Once in a process.
    pub fn catch(stop: impl Fn() + Send + 'static) -> Result<Asked> {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        ctrlc::set_handler(move || {
            flag.store(true, Ordering::Relaxed);
            stop();
        })
        .map_err(|error| Error::usage(format!("Ctrl-C cannot be caught: {error}")))?;
        Ok(Asked(asked))
    }

    /// Whether it was pressed since the last [`Asked::forget`].
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What is next begins anew.
    pub fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Errors: [`Error::Interrupted`] with `what` was done so far, when it was pressed.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted(what())) } else { Ok(()) }
    }
}
