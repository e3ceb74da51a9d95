//! Handling of Ctrl-C and other signals that end a command. Every command ends within a second of
//! the first signal, whatever it waits for. The exit code is 128 plus the signal number.
//!
//! | command | SIGINT: Ctrl-C | SIGTERM, and SIGHUP: the terminal is closed |
//! |---|---|---|
//! | without cleanup | default action | the same |
//! | with unfinished files, see [`unfinished`] | cleans up and ends | the same |
//! | import, export: [`Interrupt`] | keeps its results or rolls back | the same |
//! | lab runs, the server: [`on_end_request`] | end with their results | the same |
//! | the shell: [`StatementInterrupt`] | ends the statement, and its script | rolls back and ends |
//! | `trace record`: [`ChildSignals`] | left to the program, for which it waits | forwarded to it |
//!
//! A second signal ends an import, an export, a lab run or the server at once. SIGHUP is ignored
//! under `nohup`. A thread that waits for input is woken, see [`wait_for_input`]. A command that
//! does not end in time is terminated: the cleanup registered with [`unfinished`] runs, and stores
//! are left as after a crash, which they survive.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::process::{self, Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_bench::core::procfs;
use cairn_vfs::{Clock, SystemClock};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};

/// 128 + SIGINT, the shells' convention.
pub const EXIT_CODE: u8 = 130;

/// The time that a command has to end by itself.
const GRACE: Duration = Duration::from_millis(700);
/// The time that a signal waits for something that is being created, see [`begin`].
const CREATION_WAIT: Duration = Duration::from_millis(250);
/// The time that a started program has to react to a Ctrl-C that it also received.
const FORWARD_AFTER: Duration = Duration::from_millis(400);

/// The first signal that asked the command to end; 0 until then.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// The current signal action; `None` while the default actions apply.
static ACTION: Mutex<Option<SignalAction>> = Mutex::new(None);
/// A pipe that holds a byte once the first signal has arrived.
static WAKE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
/// The cleanup to run when the command is ended by a signal.
static UNFINISHED: Mutex<Cleanups> = Mutex::new(Cleanups { beginning: 0, undo: Vec::new() });
/// Signalled when a call of [`begin`] has registered its cleanup or failed.
static HAS_BEGUN: Condvar = Condvar::new();
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

type SignalAction = Box<dyn FnMut(i32) + Send>;
type Undo = Box<dyn FnOnce() + Send>;

struct Cleanups {
    /// The number of running [`begin`] calls. Their files may exist without a registered cleanup.
    beginning: usize,
    undo: Vec<(u64, Undo)>,
}

/// Returns true if the command was asked to end.
pub fn is_ending() -> bool {
    FIRST.load(Ordering::SeqCst) != 0
}

/// Returns 128 + the signal that ended the command, the shells' convention.
pub fn exit_code() -> u8 {
    match FIRST.load(Ordering::SeqCst) {
        0 => EXIT_CODE,
        signal => u8::try_from(128 + signal).unwrap_or(EXIT_CODE),
    }
}

/// A registered cleanup, which runs if a signal ends the command. Drop it once the work is finished
/// or already cleaned up.
#[derive(Debug)]
pub struct Unfinished(u64);

/// Registers a cleanup for the case that a signal ends the command. It runs on another thread,
/// without waiting for the calling one.
pub fn unfinished(undo: impl FnOnce() + Send + 'static) -> Result<Unfinished> {
    let ((), unfinished) = begin(|| Ok(((), undo)))?;
    Ok(unfinished)
}

/// Calls `make`, which creates something and returns its cleanup for the case that a signal ends
/// the command. Signals are caught before `make` runs. A signal that arrives meanwhile waits for
/// the cleanup to be registered, so that nothing is left behind. The wait is bounded, because
/// `make` itself may block.
pub fn begin<T, U>(make: impl FnOnce() -> Result<(T, U)>) -> Result<(T, Unfinished)>
where
    U: FnOnce() + Send + 'static,
{
    static NEXT: AtomicU64 = AtomicU64::new(0);
    end_at_signals()?;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    cleanups().beginning += 1;
    let made = make();
    let mut list = cleanups();
    list.beginning -= 1;
    let made = made.map(|(made, undo)| {
        list.undo.push((id, Box::new(undo)));
        (made, Unfinished(id))
    });
    HAS_BEGUN.notify_all();
    made
}

fn cleanups() -> MutexGuard<'static, Cleanups> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        cleanups().undo.retain(|(id, _)| *id != self.0);
    }
}

/// Runs all registered cleanups and exits the process.
pub fn end_now() -> ! {
    let waited = HAS_BEGUN.wait_timeout_while(cleanups(), CREATION_WAIT, |list| list.beginning > 0);
    let (mut list, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let undo = std::mem::take(&mut list.undo);
    drop(list);
    undo.into_iter().for_each(|(_, undo)| undo());
    process::exit(i32::from(exit_code()))
}

/// Stores the first signal that ends the command, and wakes a thread that waits for input.
fn record_end(signal: i32) {
    if FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        && let Some((_, writer)) = WAKE.get()
    {
        let mut writer = writer;
        // This cannot fail: the pipe has room for one byte, and its read end is open.
        let _ = writer.write_all(&[0]);
    }
}

/// Exits the process after the grace period, unless it has ended by then.
fn end_soon() {
    let wait = || {
        SystemClock::new().sleep(GRACE);
        end_now();
    };
    // Without a thread, the grace period cannot be granted.
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

/// Waits for input, or for the end of the input. Errors: the command was asked to end.
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

/// On platforms where a thread cannot wait for input and a signal at once, the process is ended
/// while it waits.
#[cfg(not(unix))]
pub fn wait_for_input<T>(_: &T) -> io::Result<()> {
    Ok(())
}

/// Calls `act` on Ctrl-C, on SIGTERM and when the terminal is closed, on a separate thread. `act`
/// is told whether the request is repeated. SIGHUP never counts as repeated, because a shell also
/// passes it on, so that one process may get it twice. May be called once per process.
pub fn on_end_request(mut act: impl FnMut(IsRepeated) + Send + 'static) -> Result<()> {
    let mut asked = false;
    set_action(move |signal| {
        let again = asked && signal != SIGHUP;
        asked = true;
        record_end(signal);
        act(IsRepeated(again));
    })
}

/// Whether the command was asked to end before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsRepeated(pub bool);

/// Sets the action for signals that end a command; it runs on a separate thread and replaces the
/// former action. There is a single such thread: with one for each caller, a signal during the
/// switch could be lost.
fn set_action(act: impl FnMut(i32) + Send + 'static) -> Result<()> {
    let mut current = ACTION.lock().unwrap_or_else(PoisonError::into_inner);
    if current.is_none() {
        listen()?;
    }
    *current = Some(Box::new(act));
    Ok(())
}

/// Ends the command on such a signal, unless another action is already set.
fn end_at_signals() -> Result<()> {
    let mut current = ACTION.lock().unwrap_or_else(PoisonError::into_inner);
    if current.is_none() {
        listen()?;
        *current = Some(Box::new(|signal| {
            record_end(signal);
            end_now();
        }));
    }
    Ok(())
}

/// Starts to catch signals. Called once per process.
fn listen() -> Result<()> {
    let caught = |error: io::Error| Error::usage(format!("Ctrl-C cannot be caught: {error}"));
    if WAKE.get().is_none() {
        // Cannot fail: only this function sets it, and calls hold the lock of `ACTION`.
        let _ = WAKE.set(io::pipe().map_err(caught)?);
    }
    let mut signals = Signals::new(ending_signals()).map_err(caught)?;
    let run = move || {
        for signal in signals.forever() {
            if let Some(act) = &mut *ACTION.lock().unwrap_or_else(PoisonError::into_inner) {
                act(signal);
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(run).map_err(caught)?;
    Ok(())
}

/// Returns true if the parent process made this one ignore a signal, as `nohup` does. Returns false
/// where that cannot be determined.
pub fn is_ignored(signal: i32) -> bool {
    let mask = procfs::field("/proc/self/status", "SigIgn");
    mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A flag that is set when the user asks the command to end. A second request exits the process at
/// once.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to catch Ctrl-C and the other signals that end a process.
    pub fn catch() -> Result<Interrupt> {
        if let Some(interrupt) = INTERRUPT.get() {
            return Ok(interrupt.clone());
        }
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        on_end_request(move |IsRepeated(again)| {
            if again {
                end_now();
            }
            if !flag.swap(true, Ordering::SeqCst) {
                end_soon();
                // Nothing can be done if standard error is closed.
                let _ = writeln!(io::stderr(), "\nending; press again to end at once");
            }
        })?;
        Ok(INTERRUPT.get_or_init(|| Interrupt(asked)).clone())
    }

    /// Errors: [`Error::Interrupted`] with the progress from `what`, if the user has asked to end.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(Error::Interrupted(what())) } else { Ok(()) }
    }

    /// Returns the result of a step that may have waited for input. Errors: if the step failed,
    /// those of [`Interrupt::check`], else that of the step.
    pub fn outcome<T>(&self, done: Result<T>, what: impl FnOnce() -> String) -> Result<T> {
        if done.is_err() {
            self.check(what)?;
        }
        done
    }
}

/// Signal handling while waiting for a child program.
#[derive(Debug)]
pub struct ChildSignals {
    was_pressed: bool,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
}

#[derive(Debug)]
enum Event {
    Signal(i32),
    Ended(io::Result<ExitStatus>),
}

impl ChildSignals {
    /// Starts to collect signals. Child programs still get their own. May be called once per
    /// process.
    pub fn catch() -> Result<ChildSignals> {
        let (sender, events) = mpsc::channel();
        let signals = Mutex::new(sender.clone());
        set_action(move |signal| {
            let sender = signals.lock().unwrap_or_else(PoisonError::into_inner);
            // Fails if the program has ended, which is fine.
            let _ = sender.send(Event::Signal(signal));
        })?;
        Ok(ChildSignals { was_pressed: false, events, sender })
    }

    /// Waits for a program. A terminal sends Ctrl-C to all of its programs, this one included. If
    /// the program does not react for a while, the signal is forwarded to it. Signals that a
    /// terminal does not send to all programs are forwarded at once. Returns `None` for a program
    /// that keeps running after SIGTERM or a closed terminal.
    pub fn wait(&mut self, mut child: Child) -> io::Result<Option<ExitStatus>> {
        let (pid, sender) = (child.id(), self.sender.clone());
        thread::Builder::new().name("waiting".to_owned()).spawn(move || {
            // Fails if this process ends, which is fine.
            let _ = sender.send(Event::Ended(child.wait()));
        })?;
        let (mut limit, mut forwards): (Option<Duration>, Option<i32>) = (None, None);
        loop {
            let event = match limit {
                Some(limit) => self.events.recv_timeout(limit),
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::Ended(status)) => return status.map(Some),
                Ok(Event::Signal(SIGINT)) => {
                    self.was_pressed = true;
                    (limit, forwards) = (Some(FORWARD_AFTER), Some(SIGINT));
                }
                Ok(Event::Signal(signal)) => {
                    record_end(signal);
                    forward(pid, signal);
                    (limit, forwards) = (Some(GRACE), None);
                }
                Err(RecvTimeoutError::Timeout) => match forwards.take() {
                    Some(signal) => {
                        forward(pid, signal);
                        limit = None;
                    }
                    None => return Ok(None),
                },
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Returns true if Ctrl-C was pressed before a program ended with this status. A program that
    /// was ended by SIGINT counts too, because it may end before this process gets the signal.
    pub fn was_pressed(&self, ended: ExitStatus) -> bool {
        self.was_pressed || is_ending() || is_by_ctrl_c(ended)
    }
}

#[cfg(unix)]
fn forward(pid: u32, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let signal = match signal {
        SIGHUP => Signal::HUP,
        SIGTERM => Signal::TERM,
        _ => Signal::INT,
    };
    if let Some(pid) = pid {
        // The program may have ended already.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
fn forward(_: u32, _: i32) {}

#[cfg(unix)]
fn is_by_ctrl_c(ended: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    ended.signal() == Some(i32::from(EXIT_CODE) - 128)
}

#[cfg(not(unix))]
fn is_by_ctrl_c(_: ExitStatus) -> bool {
    false
}

/// Ctrl-C handling of the SQL shell: it ends the current statement. It ends the shell only if no
/// user is there to continue. Other signals end both.
#[cfg(feature = "sql")]
#[derive(Debug, Clone, Default)]
pub struct StatementInterrupt(Arc<Flags>);

#[cfg(feature = "sql")]
#[derive(Debug, Default)]
struct Flags {
    pressed: AtomicBool,
    /// True while the shell waits for input, which the interruption of a statement would not end.
    waits: AtomicBool,
    /// True if a user types statements. Ctrl-C then ends only the statement.
    is_interactive: AtomicBool,
}

#[cfg(feature = "sql")]
impl StatementInterrupt {
    /// Calls `stop` on each signal. If the session is not interactive, and on signals other than
    /// Ctrl-C, the process ends too: at once if it waits for input or if the signal is repeated,
    /// else after the statement has been rolled back. May be called once per process.
    pub fn catch(stop: impl Fn() + Send + 'static) -> Result<StatementInterrupt> {
        let asked = StatementInterrupt::default();
        let flags = Arc::clone(&asked.0);
        set_action(move |signal| {
            // ORDER: set `pressed` before loading `waits`. A reader sets `waits` before it loads
            // `pressed`, so at least one side sees the other.
            let again = flags.pressed.swap(true, Ordering::SeqCst);
            if signal != SIGINT || !flags.is_interactive.load(Ordering::SeqCst) {
                let was_ending = is_ending();
                record_end(signal);
                if flags.waits.load(Ordering::SeqCst) || (again && was_ending && signal != SIGHUP) {
                    end_now();
                }
                end_soon();
            }
            stop();
        })?;
        Ok(asked)
    }

    /// Marks the session as interactive.
    pub fn set_interactive(&self) {
        self.0.is_interactive.store(true, Ordering::SeqCst);
    }

    /// Calls `read`, which may wait for input. Errors: those of `read`; [`Error::Interrupted`] if
    /// Ctrl-C was pressed before.
    pub fn waiting<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        self.0.waits.store(true, Ordering::SeqCst);
        let read = self.check(|| "nothing more is read".to_owned()).and_then(|()| read());
        self.0.waits.store(false, Ordering::SeqCst);
        read
    }

    /// Returns true if Ctrl-C was pressed since the last [`StatementInterrupt::forget`].
    pub fn is_set(&self) -> bool {
        self.0.pressed.load(Ordering::SeqCst)
    }

    /// Clears the flag before the next statement of an interactive session. Otherwise the flag
    /// stays set, and everything ends.
    pub fn forget(&self) {
        if self.0.is_interactive.load(Ordering::SeqCst) && !is_ending() {
            self.0.pressed.store(false, Ordering::SeqCst);
        }
    }

    /// Errors: [`Error::Interrupted`] with the progress from `what`, if Ctrl-C was pressed.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted(what())) } else { Ok(()) }
    }
}
