//! Child processes: the lab's own workers, and Java.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock, thread};

use crate::core::error::{Error, Result};

/// Interval at which a child is polled for its exit.
const POLL: Duration = Duration::from_millis(3);

/// Bytes from the end of a failed process's output that go into the error.
const LAST_WORDS_BYTES: usize = 600;

/// Tells a run to end early with its results so far: on request (Ctrl-C), or when its time is up.
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
    /// Creates a stop that is reached on request, or after `limit` from now.
    pub fn after(limit: Option<Duration>) -> Self {
        Stop { asked: Arc::new(AtomicBool::new(false)), clock: SystemClock::new(), limit }
    }

    /// Returns the same stop, also reached after `seconds` from now.
    #[must_use]
    pub fn within(&self, seconds: f64) -> Stop {
        let own = Duration::try_from_secs_f64(seconds.max(0.0)).ok();
        let own = own.and_then(|own| self.clock.now().checked_add(own));
        let limit = self.limit.into_iter().chain(own).min();
        Stop { asked: Arc::clone(&self.asked), clock: self.clock.clone(), limit }
    }

    /// Requests all clones of this to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Returns true if a stop was requested, regardless of the time.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns true if the run should end.
    pub fn is_reached(&self) -> bool {
        self.is_asked() || self.limit.is_some_and(|limit| self.clock.now() >= limit)
    }

    /// Returns [`Error::Interrupted`] if the run should end.
    pub fn check(&self) -> Result<()> {
        if self.is_reached() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Runs a program to its end and returns its standard output.
///
/// `input` becomes its standard input. The program is killed only when `stop` is reached. It runs
/// in a process group of its own, because Ctrl-C in the terminal would otherwise kill it before the
/// run has noticed, and it would look like a failed contender. Errors: [`Error::Process`] with the
/// end of its output if it cannot be started or fails; [`Error::Interrupted`].
pub fn run(mut command: Command, input: &[u8], stop: &Stop) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let refuse = |what: String| Error::process(&program, what);
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| refuse(format!("cannot be started: {error}")))?;
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (ended, output, last_words) = thread::scope(|scope| {
        // Each pipe has its own thread, because a child that blocks on one of them would otherwise
        // never end.
        scope.spawn(move || {
            // A child that does not read its input reports the reason when it exits.
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

/// Makes this process end when its parent ends, however that happens. An abandoned worker would
/// measure, and fill a disk, for hours. Does nothing on systems without such a facility.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        // The signal is bound to the parent thread, which is the one that waits for this process.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
}

/// Returns the end of a program's output in one line, without the warnings that newer JVMs print on
/// every start.
fn last_words_of(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("WARNING:"));
    let line = lines.collect::<Vec<_>>().join(" | ");
    let mut start = line.len().saturating_sub(LAST_WORDS_BYTES);
    while !line.is_char_boundary(start) {
        start += 1;
    }
    line[start..].to_owned()
}

/// Waits for the child. `None` if it was killed because `stop` was reached.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<Option<std::process::ExitStatus>> {
    let clock = SystemClock::new();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.is_reached() {
            // Kills the whole group, because a grandchild would keep the pipes open, and the run
            // would wait for it.
            let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(group) = group {
                // Fails only if the group has already ended.
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
        // Output before an error is still useful.
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

    /// Goal: input and output are passed, both larger than a pipe's buffer.
    #[test]
    fn input_and_output_pass() {
        let input = "0123456789abcdef\n".repeat(20_000);
        assert_eq!(run(shell("cat"), input.as_bytes(), &Stop::default()).unwrap(), input);
    }

    /// Goal: a failure names the program, its status and the end of its output; a missing program
    /// is also an error.
    #[test]
    fn failures_say_why() {
        let error = run(shell("echo some words; echo no such store >&2; exit 3"), b"", &Stop::default());
        let text = error.unwrap_err().to_string();
        assert!(text.contains("sh") && text.contains("3") && text.contains("no such store"), "{text}");
        assert!(run(Command::new("/no/such/program"), b"", &Stop::default()).is_err());
    }

    /// Goal: the excerpt of the output is one line, limited in length, cut between characters, and
    /// without a JVM's warnings.
    #[test]
    fn output_excerpt_is_one_short_line() {
        assert_eq!(last_words_of("WARNING: old\n\n one \n two\n"), "one | two");
        let long = last_words_of(&"é".repeat(1_000));
        assert!(long.len() <= LAST_WORDS_BYTES && long.chars().all(|c| c == 'é'));
    }

    /// Goal: signals of the terminal to the lab's process group do not reach a child. Method: the
    /// child is the leader of its own group (the fifth field of its stat file).
    #[test]
    fn children_have_their_own_group() {
        let said = run(shell("cut -d' ' -f5 /proc/$$/stat; echo $$"), b"", &Stop::default()).unwrap();
        let mut lines = said.lines();
        assert_eq!(lines.next().unwrap(), lines.next().unwrap());
    }

    /// Goal: reaching a stop kills a child that does not end, and its descendants. Method: the stop
    /// is requested once a grandchild, which shares the pipes, has created a file.
    #[test]
    fn stop_kills() {
        let scratch = crate::core::scratch::Scratch::temporary("stop").unwrap();
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

    /// Goal: a part of a run ends at its own limit, at that of the run, and when the run is asked
    /// to stop; the run does not end with its part.
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
