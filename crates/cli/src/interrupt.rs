//! Ctrl-C, and other signals that end a command, where it has something to put away.
//!
//! | signal | a run, an export, a server | the shell, `trace record` |
//! |---|---|---|
//! | SIGINT: Ctrl-C | ends with what it has; a second one ends it at once | see [`Asked`] and [`Outlasted`] |
//! | SIGTERM | the same | as the system has it: ends the process |
//! | SIGHUP: the terminal is closed | ends with what it has; under `nohup`, which ignores it, nothing | as the system has it |

use std::io::{self, Write};
use std::process::{self, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cairn_bench::procfs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};

/// 128 + SIGINT, as shells count.
pub const EXIT_CODE: u8 = 130;

/// Calls `act` from here on, on a thread of its own, at Ctrl-C, SIGTERM and when the terminal is closed. `act` hears whether somebody asks for it
/// again: shells pass on that their terminal is gone, so that one may be told twice of it. Once in a process.
pub fn when_ended(mut act: impl FnMut(Again) + Send + 'static) -> Result<()> {
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    let mut asked = false;
    when(&signals, move |signal| {
        let again = asked && signal != SIGHUP;
        asked = true;
        act(Again(again));
    })
}

/// Whether somebody has asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again(pub bool);

fn when(signals: &[i32], act: impl FnMut(i32) + Send + 'static) -> Result<()> {
    let caught = |error: io::Error| Error::usage(format!("Ctrl-C cannot be caught: {error}"));
    let mut signals = Signals::new(signals).map_err(caught)?;
    let run = move || signals.forever().for_each(act);
    thread::Builder::new().name("signals".to_owned()).spawn(run).map_err(caught)?;
    Ok(())
}

/// Whether whoever started this process has it ignore a signal, as `nohup` does. Where nobody can be asked it is not.
pub fn is_ignored(signal: i32) -> bool {
    let mask = procfs::field("/proc/self/status", "SigIgn");
    mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Whether the user has asked to end. A second time ends the process at once.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches Ctrl-C and what else ends a process from here on. Once in a process.
    pub fn catch() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        when_ended(move |Again(again)| {
            if again {
                process::exit(i32::from(EXIT_CODE));
            }
            flag.store(true, Ordering::Relaxed);
            // Nobody is there to be told that nobody is there.
            let _ = writeln!(io::stderr(), "\nending; once more to end at once");
        })?;
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
        when(&[SIGINT], move |_| flag.store(true, Ordering::Relaxed))?;
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
#[derive(Debug, Clone, Default)]
pub struct Asked(Arc<Flags>);

#[cfg(feature = "sql")]
#[derive(Debug, Default)]
struct Flags {
    pressed: AtomicBool,
    /// Who waits for input would not hear of it.
    waits: AtomicBool,
    /// A person is there, for whom it ends a statement.
    is_interactive: AtomicBool,
}

#[cfg(feature = "sql")]
impl Asked {
    /// Calls `stop` at each Ctrl-C from here on. Where no person goes on, it ends the process at once while that waits for input, and the second time
    /// always. Once in a process.
    pub fn catch(stop: impl Fn() + Send + 'static) -> Result<Asked> {
        let asked = Asked::default();
        let flags = Arc::clone(&asked.0);
        when(&[SIGINT], move |_| {
            // ORDER: pressed before a look at who waits, as whoever waits says so before a look at this: one of them sees the other.
            let again = flags.pressed.swap(true, Ordering::SeqCst);
            let is_alone = !flags.is_interactive.load(Ordering::SeqCst);
            if is_alone && (again || flags.waits.load(Ordering::SeqCst)) {
                process::exit(i32::from(EXIT_CODE));
            }
            stop();
        })?;
        Ok(asked)
    }

    /// From here on a person types.
    pub fn begin_conversation(&self) {
        self.0.is_interactive.store(true, Ordering::SeqCst);
    }

    /// Calls `read`, which may wait for somebody. Errors: of it; and [`Error::Interrupted`] when Ctrl-C was pressed before.
    pub fn waiting<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        self.0.waits.store(true, Ordering::SeqCst);
        let read = self.check(|| "nothing more is read".to_owned()).and_then(|()| read());
        self.0.waits.store(false, Ordering::SeqCst);
        read
    }

    /// Whether it was pressed since the last [`Asked::forget`].
    pub fn is_set(&self) -> bool {
        self.0.pressed.load(Ordering::SeqCst)
    }

    /// What is next begins anew, where a person goes on; else all ends.
    pub fn forget(&self) {
        if self.0.is_interactive.load(Ordering::SeqCst) {
            self.0.pressed.store(false, Ordering::SeqCst);
        }
    }

    /// Errors: [`Error::Interrupted`] with `what` was done so far, when it was pressed.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted(what())) } else { Ok(()) }
    }
}
