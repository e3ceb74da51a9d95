//! Benchmarks that the page starts, and files that it watches.
//!
//! A run is a separate process with the same command line that a user would type. Only one runs at
//! a time, because two would disturb each other's measurements.

use std::convert::Infallible;
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use cairn_bench::core::time::rfc3339;
use cairn_vfs::{Clock, Fs, OpenOptions, SystemClock, thread};
use futures_util::stream::{self, Stream};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::feed::{Ended, Feed, LINE_BYTES_MAX};
use crate::args::names;
use crate::web::{Body, Query, Refusal, refuse};

/// The number of runs that are remembered.
const JOBS_MAX: usize = 50;

/// The interval at which a watched file is checked.
const LOOK: Duration = Duration::from_millis(500);

/// The interval at which a process that is about to end is polled.
const POLL: Duration = Duration::from_millis(5);

/// The time that a run has to end with its results when this program ends.
const GRACE: Duration = Duration::from_millis(1500);

/// The number of last bytes that are read when a watched file is first opened, and the maximum read
/// at a time.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The number of bytes read of a line: one character more than is kept, because the last one may be
/// cut.
const LINE_READ_MAX: usize = LINE_BYTES_MAX + 4;

/// The maximum length of the filter word.
const WORD_BYTES_MAX: usize = 100;

/// The maximum time limit of a run in seconds.
const SECONDS_MAX: u64 = 24 * 3600;

/// A suite that the page may start: its name, the arguments before the filter word, and a
/// description.
type Suite = (&'static str, &'static [&'static str], &'static str);

const SUITES: &[Suite] = &[
    ("hash", &["hash", "--quick"], "Constant stores, the main cases: a few minutes"),
    (
        "kv",
        &["kv", "--n=100000", "--batch=5000", "--threads=4", "--ops-per-thread=25000", "--sync-n=500"],
        "Key-value stores with 100,000 entries; the word says which ones, with commas",
    ),
    ("pool", &["pool", "50", "12"], "Buffer pools by replacement policy: a few minutes"),
    #[cfg(feature = "sql")]
    ("sql", &["sql", "50"], "SQL engines, small: a few minutes"),
    ("counts", &["counts"], "Instructions of small loops, by valgrind"),
    (
        "all",
        &["all", "--quick"],
        "Every suite in a small size, with one report: a quarter of an hour; the word says which suites, with commas",
    ),
];

/// Suites whose word is a list: the option for it, and the default list.
type List = (&'static str, &'static str, Option<fn() -> String>);

const LISTS: &[List] = &[("kv", "--dbs", Some(names::stores)), ("all", "--suites", None)];

/// Returns the suites for the page.
pub fn suites() -> Vec<Value> {
    SUITES.iter().map(|(name, _, what)| json!({ "suite": name, "what": what })).collect()
}

/// A run, or a watched file.
struct Job {
    id: u32,
    title: String,
    started: String,
    /// The process of a run that we started, while it runs. It leads a process group with all its
    /// children.
    process: Mutex<Option<Pid>>,
    feed: Feed,
}

impl Job {
    fn describe(&self) -> Value {
        let mut described = self.feed.summary();
        if let Some(described) = described.as_object_mut() {
            described.insert("id".to_owned(), self.id.into());
            described.insert("title".to_owned(), self.title.as_str().into());
            described.insert("started".to_owned(), self.started.as_str().into());
            described.insert("ours".to_owned(), (self.id != WATCHED).into());
        }
        described
    }

    fn process(&self) -> MutexGuard<'_, Option<Pid>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to a run and to everything in its process group, as a terminal does.
    fn signal(&self, signal: Signal) {
        // The process id cannot have been reused: it is cleared when the process is waited for.
        if let Some(process) = *self.process() {
            // Fails only if the process has already ended.
            let _ = kill_process_group(process, signal);
        }
    }
}

/// The id of the watched file.
const WATCHED: u32 = 0;

/// All runs and the watched file.
pub struct Jobs {
    may_run: bool,
    results: PathBuf,
    all: Mutex<Vec<Arc<Job>>>,
}

impl Jobs {
    /// Creates the list, which contains at most the watched file.
    pub fn new(may_run: bool, results: PathBuf, watched: Option<PathBuf>) -> Jobs {
        let watched = watched.map(|path| Arc::new(job(WATCHED, path.display().to_string(), None)));
        Jobs { may_run, results, all: Mutex::new(watched.into_iter().collect()) }
    }

    /// Returns true if the page may start runs.
    pub fn may_run(&self) -> bool {
        self.may_run
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u32) -> Result<Arc<Job>, Refusal> {
        let found = self.all().iter().find(|job| job.id == id).cloned();
        found.ok_or_else(|| Refusal::missing(format!("there is no run {id}")))
    }

    /// Asks all runs to end with their results, and kills those that do not end in time, because no
    /// user would know about them any more.
    pub fn end_all(&self) {
        let all = self.all();
        all.iter().for_each(|job| job.signal(Signal::INT));
        let clock = SystemClock::new();
        let end = clock.now() + GRACE;
        while clock.now() < end && all.iter().any(|job| job.process().is_some()) {
            clock.sleep(POLL);
        }
        all.iter().for_each(|job| job.signal(Signal::KILL));
    }

    fn start(&self, arguments: &[String]) -> Result<Value, Refusal> {
        let mut all = self.all();
        if all.iter().any(|job| job.id != WATCHED && job.feed.ended().is_none()) {
            return Err(Refusal::new(
                StatusCode::CONFLICT,
                "a run is in progress: two at once would measure each other",
            ));
        }
        let program =
            env::current_exe().map_err(|error| refuse(format!("this program has no path: {error}")))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The server handles the terminal's Ctrl-C and forwards it. A run that got both signals
        // would take the second one for a repeated request and end without results.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| refuse(format!("it cannot be started: {error}")))?;
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = all.iter().map(|job| job.id).max().unwrap_or(WATCHED) + 1;
        let job = Arc::new(job(id, format!("cairn {}", arguments.join(" ")), process));
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        let follower = Arc::clone(&job);
        let followed = thread::spawn("ui-job", move || follow(&follower, child, pipes));
        followed.map_err(|error| {
            // Without the follower, no thread would wait for the run or show it.
            job.signal(Signal::KILL);
            if let Some(process) = job.process().take() {
                // Fails only if the process is already gone.
                let _ = waitpid(Some(process), WaitOptions::empty());
            }
            refuse(format!("its output cannot be read: {error}"))
        })?;
        let described = job.describe();
        all.push(job);
        if all.len() > JOBS_MAX {
            // The oldest run that has ended.
            if let Some(old) = all.iter().position(|job| job.feed.ended().is_some()) {
                all.remove(old);
            }
        }
        Ok(described)
    }
}

fn job(id: u32, title: String, process: Option<Pid>) -> Job {
    let started = rfc3339(SystemClock::new().wall());
    Job { id, title, started, process: Mutex::new(process), feed: Feed::new() }
}

/// Reads the output of a run until it has ended.
fn follow(job: &Job, mut child: Child, pipes: [Option<Box<dyn Read + Send>>; 2]) {
    thread::scope(|scope| {
        for pipe in pipes.into_iter().flatten() {
            // One thread per pipe, so that the child cannot block forever on the pipe that is not
            // being read.
            scope.spawn(|| read_lines(job, pipe));
        }
    });
    let clock = SystemClock::new();
    // Its pipes are closed, so it is about to end.
    let ended = loop {
        // Hold the lock: once the process has been waited for, its id may be reused and must not be
        // signalled.
        let mut process = job.process();
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => {
                *process = None;
                break ended_of(status);
            }
            Err(error) => {
                *process = None;
                break Ended { ok: false, how: format!("it cannot be waited for: {error}") };
            }
        }
        drop(process);
        clock.sleep(POLL);
    };
    job.feed.end(ended);
}

fn read_lines(job: &Job, pipe: Box<dyn Read + Send>) {
    let mut lines = BufReader::new(pipe);
    let mut line = Vec::new();
    // BOUND: only the beginning of a long line is held in memory. A read error ends the output like
    // its end.
    while lines.by_ref().take(LINE_READ_MAX as u64).read_until(b'\n', &mut line).is_ok_and(|count| count > 0)
    {
        job.feed.line(String::from_utf8_lossy(&line).trim_end());
        if !line.ends_with(b"\n") && lines.skip_until(b'\n').is_err() {
            break;
        }
        line.clear();
    }
}

fn ended_of(status: ExitStatus) -> Ended {
    let how = match status.code() {
        Some(0) => "done".to_owned(),
        Some(130) => "ended early".to_owned(),
        _ => format!("the run ended with {status}"),
    };
    Ended { ok: status.success(), how }
}

/// Follows a file that another program writes. Never returns.
pub async fn watch(shared: Arc<Shared>, path: PathBuf) {
    let Ok(job) = shared.jobs.find(WATCHED) else { return };
    let mut timer = tokio::time::interval(LOOK);
    let mut tail = Tail::default();
    loop {
        timer.tick().await;
        let (fs, at) = (Arc::clone(&shared.fs), path.clone());
        let read = move || tail.read(&fs, &at).map(|lines| (tail, lines));
        let read = shared.blocking(read).await;
        match read {
            Ok((next, lines)) => {
                lines.iter().for_each(|line| job.feed.line(line));
                tail = next;
            }
            // The file may not exist yet, or is being replaced.
            Err(_) => tail = Tail::default(),
        }
    }
}

/// The read position in a file.
#[derive(Debug, Default)]
struct Tail {
    at: u64,
    /// The part of an incomplete line that is kept.
    rest: Vec<u8>,
}

impl Tail {
    /// Reads the lines that were added. If the file has become shorter, starts again from its
    /// beginning.
    fn read(&mut self, fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<String>, Refusal> {
        let file = fs.open(path, OpenOptions::read())?;
        let len = file.len()?;
        if len < self.at {
            *self = Tail::default();
        }
        if len - self.at > READ_BYTES_MAX {
            *self = Tail { at: len - READ_BYTES_MAX, rest: Vec::new() };
        }
        let start = self.rest.len();
        self.rest.resize(start + (len - self.at) as usize, 0);
        file.read_exact_at(self.rest.get_mut(start..).unwrap_or_default(), self.at)?;
        self.at = len;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        // BOUND: the rest of a long line is never kept.
        self.rest.truncate(LINE_READ_MAX);
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
    }
}

/// Lists all runs, the latest one first.
pub async fn list(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let jobs = shared.jobs.all().iter().rev().map(|job| job.describe()).collect::<Vec<_>>();
    Json(jobs.into())
}

/// A request to start a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    suite: String,
    #[serde(default)]
    word: String,
    seconds: Option<u64>,
}

impl StartRequest {
    /// Returns the arguments after `cairn`. Only the word comes from the request, and it cannot be
    /// taken for an option.
    fn arguments(&self, results: &Path) -> Result<Vec<String>, Refusal> {
        let known = SUITES.iter().find(|(name, ..)| *name == self.suite);
        let (name, fixed, _) = known.ok_or_else(|| {
            let names: Vec<&str> = SUITES.iter().map(|(name, ..)| *name).collect();
            refuse(format!("suite: found the string {:?}, expected one of {}", self.suite, names.join(", ")))
        })?;
        let word = self.word.trim();
        if word.len() > WORD_BYTES_MAX || word.chars().any(char::is_control) {
            return Err(refuse(format!("expected a word of at most {WORD_BYTES_MAX} bytes in one line")));
        }
        let mut arguments = vec!["bench".to_owned()];
        arguments.extend(fixed.iter().map(|argument| (*argument).to_owned()));
        let list = LISTS.iter().find(|(of, ..)| of == name);
        if let Some((_, option, usual)) = list {
            let is_list = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b",-_".contains(&byte));
            if !is_list || word.starts_with('-') {
                return Err(refuse(format!("{word:?} is not a list of names with commas")));
            }
            let named = || Some(word.to_owned());
            if let Some(names) = if word.is_empty() { usual.map(|names| names()) } else { named() } {
                arguments.extend([(*option).to_owned(), names]);
            }
        }
        arguments.extend(["--results".to_owned(), results.display().to_string()]);
        if let Some(seconds) = self.seconds {
            if !(1..=SECONDS_MAX).contains(&seconds) {
                return Err(refuse(format!("expected a limit of 1 to {SECONDS_MAX} seconds")));
            }
            arguments.extend(["--time-limit".to_owned(), seconds.to_string()]);
        }
        if list.is_none() && !word.is_empty() {
            arguments.extend(["--".to_owned(), word.to_owned()]);
        }
        Ok(arguments)
    }
}

/// Starts a run, if that is allowed.
pub async fn start(State(shared): State<Arc<Shared>>, Body(body): Body) -> Result<Json<Value>, Refusal> {
    if !shared.jobs.may_run {
        let what = "this page is read-only: `cairn ui --allow-run` lets it start benchmarks";
        return Err(Refusal::new(StatusCode::FORBIDDEN, what));
    }
    let asked: StartRequest = cairn_sim::json::parse(&body, "the request").map_err(refuse)?;
    let arguments = asked.arguments(&shared.jobs.results)?;
    shared.jobs.start(&arguments).map(Json)
}

/// A query with the id of a run.
#[derive(Debug, Deserialize)]
pub struct ById {
    id: u32,
}

/// Asks a run to end with its results.
pub async fn stop(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<ById>,
) -> Result<Json<Value>, Refusal> {
    if !shared.jobs.may_run {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "this page is read-only"));
    }
    let job = shared.jobs.find(asked.id)?;
    job.signal(Signal::INT);
    Ok(Json(job.describe()))
}

/// Streams the output of a run: `lines` events, each with the progress of the run, then `ended`.
pub async fn events(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<ById>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let job = shared.jobs.find(asked.id)?;
    let changes = job.feed.changes();
    let events = stream::unfold((job, changes, 0, false), |(job, mut changes, at, is_over)| async move {
        if is_over {
            return None;
        }
        loop {
            // Mark changes as seen before reading the lines; lines that arrive later then notify
            // again.
            changes.borrow_and_update();
            let ended = job.feed.ended().is_some();
            let (lines, next) = job.feed.since(at);
            if !lines.is_empty() || ended {
                let event = json!({ "job": job.describe(), "lines": lines });
                let event =
                    Event::default().event(if ended { "ended" } else { "lines" }).data(event.to_string());
                return Some((Ok(event), (job, changes, next, ended)));
            }
            changes.changed().await.ok()?;
        }
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

#[cfg(test)]
mod tests;
