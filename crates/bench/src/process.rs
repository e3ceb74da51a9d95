//! Other processes: the lab's own fresh ones, and Java.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock, thread};

use crate::error::{Error, Result};

/// How often a child is asked whether it has ended.
const POLL: Duration = Duration::from_millis(3);

/// What of a failed process's last words goes into the error.
const LAST_WORDS_BYTES: usize = 600;

/// Tells a run to end early with what it has: set from outside (Ctrl-C), or by its time running
/// out.
#[derive(Debug, Clone)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    clock: SystemClock,
    limit: Option<Duration>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop::after(None)
    }
}

impl Stop {
    /// Stops when asked, or after `limit` from now.
    pub fn after(limit: Option<Duration>) -> Self {
        Stop { asked: Arc::new(AtomicBool::new(false)), clock: SystemClock::new(), limit }
    }

    /// The same, and after `seconds` from now at the latest.
    #[must_use]
    pub fn within(&self, seconds: f64) -> Stop {
        let own = Duration::try_from_secs_f64(seconds.max(0.0)).ok();
        let own = own.and_then(|own| self.clock.now().checked_add(own));
        let limit = self.limit.into_iter().chain(own).min();
        Stop { asked: Arc::clone(&self.asked), clock: self.clock.clone(), limit }
    }

    /// Asks all clones of this to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// True when somebody asked, whatever the time.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// True when the run should end.
    pub fn is_reached(&self) -> bool {
        self.is_asked() || self.limit.is_some_and(|limit| self.clock.now() >= limit)
    }

    /// [`Error::Interrupted`] when the run should end.
    pub fn check(&self) -> Result<()> {
        if self.is_reached() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Runs a program to its end and returns what it wrote to standard output.
///
/// `input` becomes its standard input. When `stop` is reached the program is killed; only then: it
/// runs in a process group of its own, where the terminal's Ctrl-C does not reach it, or it would
/// die of that before the run has noticed and pass for a failed contender. Errors:
/// [`Error::Process`] with its last words when it cannot be started or fails,
/// [`Error::Interrupted`].
pub fn run(mut command: Command, input: &[u8], stop: &Stop) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let refuse = |what: String| Error::process(&program, what);
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| refuse(format!("cannot be started: {error}")))?;
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (ended, output, last_words) = thread::scope(|scope| {
        // Each pipe has its own thread: a child that waits for one of them must not wait for ever.
        scope.spawn(move || {
            // A child that does not read its input says why on its way out.
            let _ = stdin.take().map(|mut pipe| pipe.write_all(input));
        });
        let output = scope.spawn(move || read_all(&mut stdout));
        let last_words = scope.spawn(move || read_all(&mut stderr));
        let ended = wait(&mut child, stop);
        (ended, output.join().unwrap_or_default(), last_words.join().unwrap_or_default())
    });
    let status = ended.map_err(|error| refuse(format!("cannot be waited for: {error}")))?;
    let Some(status) = status else { return Err(Error::Interrupted) };
    let output = String::from_utf8_lossy(&output).into_owned();
    if status.success() {
        return Ok(output);
    }
    let words = String::from_utf8_lossy(&last_words).into_owned();
    let words = if words.trim().is_empty() { output } else { words };
    Err(refuse(format!("ended with {status}: {}", last_words_of(&words))))
}

/// From here on this process ends when whoever has started it ends, in whatever way: a worker that
/// nobody waits for would measure, and fill a disk, for hours. Where the system cannot do so,
/// nothing changes.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        // It ends with the thread that started it, which is the one that waits for it.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
}

/// The end of what a program said, in one line, without the warnings that newer JVMs give on every
/// start.
fn last_words_of(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("WARNING:"));
    let line = lines.collect::<Vec<_>>().join(" | ");
    let mut start = line.len().saturating_sub(LAST_WORDS_BYTES);
    while !line.is_char_boundary(start) {
        start += 1;
    }
    line[start..].to_owned()
}

/// `None` when the child was killed because `stop` was reached.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<Option<std::process::ExitStatus>> {
    let clock = SystemClock::new();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.is_reached() {
            // The whole group: a grandchild would hold the pipes open, and the run would wait for
            // it.
            let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(group) = group {
                // Fails only where the group has ended by itself.
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        clock.sleep(POLL);
    }
}

fn read_all(pipe: &mut Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What arrived before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Goal: input goes in and output comes out, both larger than a pipe holds.
    #[test]
    fn input_and_output_pass() {
        let input = "0123456789abcdef\n".repeat(20_000);
        assert_eq!(run(shell("cat"), input.as_bytes(), &Stop::default()).unwrap(), input);
    }

    /// Goal: a failure names the program, its status and its last words; a missing program is an
    /// error too.
    #[test]
    fn failures_say_why() {
        let error = run(shell("echo some words; echo no such store >&2; exit 3"), b"", &Stop::default());
        let text = error.unwrap_err().to_string();
        assert!(text.contains("sh") && text.contains("3") && text.contains("no such store"), "{text}");
        assert!(run(Command::new("/no/such/program"), b"", &Stop::default()).is_err());
    }

    /// Goal: last words are one line, not too long, cut between characters, and without a JVM's
    /// warnings.
    #[test]
    fn last_words_are_short() {
        assert_eq!(last_words_of("WARNING: old\n\n one \n two\n"), "one | two");
        let long = last_words_of(&"é".repeat(1_000));
        assert!(long.len() <= LAST_WORDS_BYTES && long.chars().all(|c| c == 'é'));
    }

    /// Goal: what the terminal sends to the lab's process group does not reach a child. Method: the
    /// child is the leader of its own group (the fifth field of its stat file).
    #[test]
    fn children_have_their_own_group() {
        let said = run(shell("cut -d' ' -f5 /proc/$$/stat; echo $$"), b"", &Stop::default()).unwrap();
        let mut lines = said.lines();
        assert_eq!(lines.next().unwrap(), lines.next().unwrap());
    }

    /// Goal: a stop that is reached ends a child that would not end, and what the child has
    /// started. Method: a child that is stopped once its own child, which has the pipes too, has
    /// left a file.
    #[test]
    fn stop_kills() {
        let scratch = crate::scratch::Scratch::temporary("stop").unwrap();
        let (stop, begun) = (Stop::default(), scratch.path().join("begun"));
        let mut command = shell("sh -c 'touch \"$0\"; exec sleep 1000' \"$0\" & wait");
        command.arg(&begun);
        let asking = stop.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                while !begun.exists() {
                    std::thread::yield_now();
                }
                asking.ask();
            });
            assert!(matches!(run(command, b"", &stop), Err(Error::Interrupted)));
        });
        let stop = Stop::after(Some(Duration::ZERO));
        assert!(matches!(run(shell("read line; sleep 1000"), b"", &stop), Err(Error::Interrupted)));
        let stop = Stop::default();
        assert!(stop.check().is_ok());
        stop.clone().ask();
        assert!(matches!(stop.check(), Err(Error::Interrupted)));
    }

    /// Goal: a part of a run ends by its own time, by that of the run, and when the run is asked
    /// to; the run does not end with its part.
    #[test]
    fn parts_have_limits_of_their_own() {
        let run = Stop::default();
        assert!(run.within(0.0).is_reached() && !run.within(1e6).is_reached() && !run.is_reached());
        assert!(!run.within(f64::INFINITY).is_reached());
        assert!(Stop::after(Some(Duration::ZERO)).within(1e6).is_reached());
        let part = run.within(1e6);
        run.ask();
        assert!(part.is_reached());
    }
}
