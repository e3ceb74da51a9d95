//! Ctrl-C, and other signals that end a command. Every command ends within a second of the first
//! one, whatever it waits for, with 128 + the signal as exit code.
//!
//! | who | SIGINT: Ctrl-C | SIGTERM, and SIGHUP: the terminal is closed |
//! |---|---|---|
//! | a command that has nothing to put away | ends as the system has it | the same |
//! | one with something unfinished, see [`unfinished`] | puts it away and ends | the same |
//! | an import, an export: [`Interrupt`] | ends with what it has, or takes it back; a second one ends it at once | the same |
//! | the lab's runs, the server: [`when_ended`] | end with what they have; a second one ends them at once | the same |
//! | the shell: [`Asked`] | ends the statement, and a script with it | takes back the statement and ends |
//! | `trace record`: [`Outlasted`] | is the program's, which is waited for | is passed on to the program |
//!
//! Under `nohup`, which ignores it, SIGHUP does nothing. Whoever waits for input is woken: see
//! [`wait_for_input`]. Who does not come back in time is ended: what is unfinished then is put away
//! by what [`unfinished`] was told, and stores are as after a crash, which they stand.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::process::{self, Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_bench::procfs;
use cairn_vfs::{Clock, SystemClock};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};

/// 128 + SIGINT, as shells count.
pub const EXIT_CODE: u8 = 130;

/// How long a command has to end by itself.
const GRACE: Duration = Duration::from_millis(700);
/// How long a signal waits for what is being created, see [`begin`].
const BEGINS_WITHIN: Duration = Duration::from_millis(250);
/// How long a program that was started may take to show that it got Ctrl-C as well.
const PASSED_ON_AFTER: Duration = Duration::from_millis(400);

/// The first signal that asked to end; 0 until then.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// What is done about signals; `None` while the system sees to them.
static ACT: Mutex<Option<Act>> = Mutex::new(None);
/// Has a byte from the first signal on.
static WAKE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
/// What is to be put away where a command is ended.
static UNFINISHED: Mutex<ToPutAway> = Mutex::new(ToPutAway { beginning: 0, undo: Vec::new() });
/// Something that was beginning is known now, or has failed.
static HAS_BEGUN: Condvar = Condvar::new();
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

type Act = Box<dyn FnMut(i32) + Send>;
type Undo = Box<dyn FnOnce() + Send>;

struct ToPutAway {
    /// Calls of [`begin`] that are under way: what they create may exist and not be listed yet.
    beginning: usize,
    undo: Vec<(u64, Undo)>,
}

/// Whether the command was asked to end.
pub fn is_ending() -> bool {
    FIRST.load(Ordering::SeqCst) != 0
}

/// 128 + the signal that ended the command, as shells count.
pub fn exit_code() -> u8 {
    match FIRST.load(Ordering::SeqCst) {
        0 => EXIT_CODE,
        signal => u8::try_from(128 + signal).unwrap_or(EXIT_CODE),
    }
}

/// Something that is to be put away where the command is ended from outside. Dropping it says that
/// it is finished, or was put away.
#[derive(Debug)]
pub struct Unfinished(u64);

/// Says what is to be done where the command is ended from outside, on another thread and without
/// waiting for this one.
pub fn unfinished(undo: impl FnOnce() + Send + 'static) -> Result<Unfinished> {
    let ((), unfinished) = begin(|| Ok(((), undo)))?;
    Ok(unfinished)
}

/// Calls `make`, which creates something and says how to put it away where the command is ended
/// from outside. Signals are caught before that. One that comes meanwhile waits until the way is
/// known, so that nothing is left behind; not for long, as creating may itself wait for somebody.
pub fn begin<T, U>(make: impl FnOnce() -> Result<(T, U)>) -> Result<(T, Unfinished)>
where
    U: FnOnce() + Send + 'static,
{
    static NEXT: AtomicU64 = AtomicU64::new(0);
    end_at_signals()?;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    to_put_away().beginning += 1;
    let made = make();
    let mut list = to_put_away();
    list.beginning -= 1;
    let made = made.map(|(made, undo)| {
        list.undo.push((id, Box::new(undo)));
        (made, Unfinished(id))
    });
    HAS_BEGUN.notify_all();
    made
}

fn to_put_away() -> MutexGuard<'static, ToPutAway> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        to_put_away().undo.retain(|(id, _)| *id != self.0);
    }
}

/// Puts away what is unfinished and ends the process.
pub fn end_now() -> ! {
    let waited = HAS_BEGUN.wait_timeout_while(to_put_away(), BEGINS_WITHIN, |list| list.beginning > 0);
    let (mut list, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let undo = std::mem::take(&mut list.undo);
    drop(list);
    undo.into_iter().for_each(|(_, undo)| undo());
    process::exit(i32::from(exit_code()))
}

/// Remembers a signal that ends the command, and wakes whoever waits for input.
fn ended_by(signal: i32) {
    if FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        && let Some((_, writer)) = WAKE.get()
    {
        let mut writer = writer;
        // It has room for a byte, and its other end is here.
        let _ = writer.write_all(&[0]);
    }
}

/// Ends the process in a while, if it has not ended by itself.
fn end_soon() {
    let wait = || {
        SystemClock::new().sleep(GRACE);
        end_now();
    };
    // Without a thread there is no time to give.
    if thread::Builder::new().name("deadline".to_owned()).spawn(wait).is_err() {
        end_now();
    }
}

fn ending_signals() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Waits until there is something to read, or the end of it. Errors: the command was asked to end.
#[cfg(unix)]
pub fn wait_for_input(input: &impl std::os::fd::AsFd) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let Some((wake, _)) = WAKE.get() else { return Ok(()) };
    loop {
        let mut ready = [PollFd::new(input, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [input, wake] = &ready;
        if !wake.revents().is_empty() {
            return Err(io::Error::other("interrupted"));
        }
        if !input.revents().is_empty() {
            return Ok(());
        }
    }
}

/// Where nobody can wait for two things, the process is ended while it waits.
#[cfg(not(unix))]
pub fn wait_for_input<T>(_: &T) -> io::Result<()> {
    Ok(())
}

/// Calls `act` from here on, on a thread of its own, at Ctrl-C, SIGTERM and when the terminal is
/// closed. `act` hears whether somebody asks for it again: shells pass on that their terminal is
/// gone, so that one may be told twice of it. Once in a process.
pub fn when_ended(mut act: impl FnMut(Again) + Send + 'static) -> Result<()> {
    let mut asked = false;
    when(move |signal| {
        let again = asked && signal != SIGHUP;
        asked = true;
        ended_by(signal);
        act(Again(again));
    })
}

/// Whether somebody has asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again(pub bool);

/// Calls `act` at each signal that ends a command, on a thread of its own, instead of what was
/// called until now. There is one such thread: with one for each caller, a signal between two of
/// them would be nobody's.
fn when(act: impl FnMut(i32) + Send + 'static) -> Result<()> {
    let mut current = ACT.lock().unwrap_or_else(PoisonError::into_inner);
    if current.is_none() {
        listen()?;
    }
    *current = Some(Box::new(act));
    Ok(())
}

/// Ends the command at such a signal, unless something better is done already.
fn end_at_signals() -> Result<()> {
    let mut current = ACT.lock().unwrap_or_else(PoisonError::into_inner);
    if current.is_none() {
        listen()?;
        *current = Some(Box::new(|signal| {
            ended_by(signal);
            end_now();
        }));
    }
    Ok(())
}

/// Catches signals from here on. Once in a process.
fn listen() -> Result<()> {
    let caught = |error: io::Error| Error::usage(format!("Ctrl-C cannot be caught: {error}"));
    if WAKE.get().is_none() {
        // Only this sets it, and one at a time.
        let _ = WAKE.set(io::pipe().map_err(caught)?);
    }
    let mut signals = Signals::new(ending_signals()).map_err(caught)?;
    let run = move || {
        for signal in signals.forever() {
            if let Some(act) = &mut *ACT.lock().unwrap_or_else(PoisonError::into_inner) {
                act(signal);
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(run).map_err(caught)?;
    Ok(())
}

/// Whether whoever started this process has it ignore a signal, as `nohup` does. Where nobody can
/// be asked it is not.
pub fn is_ignored(signal: i32) -> bool {
    let mask = procfs::field("/proc/self/status", "SigIgn");
    mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Whether the user has asked to end. A second time ends the process at once.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches Ctrl-C and what else ends a process from here on.
    pub fn catch() -> Result<Interrupt> {
        if let Some(interrupt) = INTERRUPT.get() {
            return Ok(interrupt.clone());
        }
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        when_ended(move |Again(again)| {
            if again {
                end_now();
            }
            if !flag.swap(true, Ordering::SeqCst) {
                end_soon();
                // Nobody is there to be told that nobody is there.
                let _ = writeln!(io::stderr(), "\nending; press again to end at once");
            }
        })?;
        Ok(INTERRUPT.get_or_init(|| Interrupt(asked)).clone())
    }

    /// Errors: [`Error::Interrupted`] with `what` was done so far, when the user has asked to end.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(Error::Interrupted(what())) } else { Ok(()) }
    }

    /// What a step came to that may have waited for input. Errors: as [`Interrupt::check`],
    /// whatever it came to; those of the step.
    pub fn outcome<T>(&self, done: Result<T>, what: impl FnOnce() -> String) -> Result<T> {
        if done.is_err() {
            self.check(what)?;
        }
        done
    }
}

/// Signals where a program that was started from here is waited for.
#[derive(Debug)]
pub struct Outlasted {
    was_pressed: bool,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
}

#[derive(Debug)]
enum Event {
    Signal(i32),
    Ended(io::Result<ExitStatus>),
}

impl Outlasted {
    /// Remembers signals from here on. Programs that are started are not kept from ending by them.
    /// Once in a process.
    pub fn catch() -> Result<Outlasted> {
        let (sender, events) = mpsc::channel();
        let signals = Mutex::new(sender.clone());
        when(move |signal| {
            let sender = signals.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody listens once the program has ended.
            let _ = sender.send(Event::Signal(signal));
        })?;
        Ok(Outlasted { was_pressed: false, events, sender })
    }

    /// Waits for a program. Ctrl-C goes to it as well, as to all programs of a terminal; where it
    /// shows nothing of that for a while, it is passed on, and so are the signals that a terminal
    /// does not send to all. Gives `None` for a program that goes on beyond a SIGTERM or a closed
    /// terminal.
    pub fn wait(&mut self, mut child: Child) -> io::Result<Option<ExitStatus>> {
        let (pid, sender) = (child.id(), self.sender.clone());
        thread::Builder::new().name("waiting".to_owned()).spawn(move || {
            // Nobody listens once this process ends.
            let _ = sender.send(Event::Ended(child.wait()));
        })?;
        let (mut limit, mut passes_on): (Option<Duration>, Option<i32>) = (None, None);
        loop {
            let event = match limit {
                Some(limit) => self.events.recv_timeout(limit),
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::Ended(status)) => return status.map(Some),
                Ok(Event::Signal(SIGINT)) => {
                    self.was_pressed = true;
                    (limit, passes_on) = (Some(PASSED_ON_AFTER), Some(SIGINT));
                }
                Ok(Event::Signal(signal)) => {
                    ended_by(signal);
                    pass_on(pid, signal);
                    (limit, passes_on) = (Some(GRACE), None);
                }
                Err(RecvTimeoutError::Timeout) => match passes_on.take() {
                    Some(signal) => {
                        pass_on(pid, signal);
                        limit = None;
                    }
                    None => return Ok(None),
                },
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Whether Ctrl-C was pressed until a program had ended so. What the program ended by counts as
    /// well: it may have ended before this process has heard of it.
    pub fn was_pressed(&self, ended: ExitStatus) -> bool {
        self.was_pressed || is_ending() || is_by_ctrl_c(ended)
    }
}

#[cfg(unix)]
fn pass_on(pid: u32, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let signal = match signal {
        SIGHUP => Signal::HUP,
        SIGTERM => Signal::TERM,
        _ => Signal::INT,
    };
    if let Some(pid) = pid {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
fn pass_on(_: u32, _: i32) {}

#[cfg(unix)]
fn is_by_ctrl_c(ended: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    ended.signal() == Some(i32::from(EXIT_CODE) - 128)
}

#[cfg(not(unix))]
fn is_by_ctrl_c(_: ExitStatus) -> bool {
    false
}

/// Ctrl-C where it ends a statement, and the program only where nobody is there to go on. Other
/// signals end both.
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
    /// Calls `stop` at each signal from here on. Where no person goes on, and at any signal but
    /// Ctrl-C, the process ends: at once while it waits for input and the second time, else when
    /// the statement is taken back. Once in a process.
    pub fn catch(stop: impl Fn() + Send + 'static) -> Result<Asked> {
        let asked = Asked::default();
        let flags = Arc::clone(&asked.0);
        when(move |signal| {
            // ORDER: pressed before a look at who waits, as whoever waits says so before a look at
            // this: one of them sees the other.
            let again = flags.pressed.swap(true, Ordering::SeqCst);
            if signal != SIGINT || !flags.is_interactive.load(Ordering::SeqCst) {
                let was_ending = is_ending();
                ended_by(signal);
                if flags.waits.load(Ordering::SeqCst) || (again && was_ending && signal != SIGHUP) {
                    end_now();
                }
                end_soon();
            }
            stop();
        })?;
        Ok(asked)
    }

    /// From here on a person types.
    pub fn begin_conversation(&self) {
        self.0.is_interactive.store(true, Ordering::SeqCst);
    }

    /// Calls `read`, which may wait for somebody. Errors: of it; and [`Error::Interrupted`] when
    /// Ctrl-C was pressed before.
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
        if self.0.is_interactive.load(Ordering::SeqCst) && !is_ending() {
            self.0.pressed.store(false, Ordering::SeqCst);
        }
    }

    /// Errors: [`Error::Interrupted`] with `what` was done so far, when it was pressed.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted(what())) } else { Ok(()) }
    }
}
