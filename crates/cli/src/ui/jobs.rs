//! Benchmarks that the page starts, and output that it watches.
//!
//! A run is a process of its own, of the command that a user would type. One at a time: two would
//! measure each other.

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
use cairn_bench::time::rfc3339;
use cairn_vfs::{Clock, Fs, OpenOptions, SystemClock, thread};
use futures_util::stream::{self, Stream};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::feed::{Ended, Feed, LINE_BYTES_MAX};
use crate::web::{Body, Query, Refused, refuse};

/// Runs that are remembered.
const JOBS_MAX: usize = 50;

/// How often a watched file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How often a process that is about to end is asked whether it has.
const POLL: Duration = Duration::from_millis(5);

/// What a run has to end with what it has, when this program ends.
const GRACE: Duration = Duration::from_millis(1500);

/// Of a watched file, the last bytes when it is first looked at, and what is read at a time.
const READ_BYTES_MAX: u64 = 1 << 20;

/// Of a line, what is read: what is kept of it, and a character more, which may be cut.
const LINE_READ_MAX: usize = LINE_BYTES_MAX + 4;

/// Longest word to filter by.
const WORD_BYTES_MAX: usize = 100;

/// Seconds that a run may be limited to.
const SECONDS_MAX: u64 = 24 * 3600;

/// What the page may start: its name, what stands before the word to filter by, and what it is.
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

/// Suites whose word is a list: the option that takes it, and the list when no word says one.
const LISTS: &[(&str, &str, Option<&str>)] =
    &[("kv", "--dbs", Some("cairn,rocksdb,leveldb,sqlite,lmdb,redb,fjall,sled")), ("all", "--suites", None)];

/// The suites, for the page.
pub fn suites() -> Vec<Value> {
    SUITES.iter().map(|(name, _, what)| json!({ "suite": name, "what": what })).collect()
}

/// A run, or a file that is watched.
struct Job {
    id: u32,
    title: String,
    started: String,
    /// While it runs, and if it is ours. Of the group that it and what it starts are in as well.
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

    /// Asks a run to end with what it has, or ends it: as a terminal does, with all that it has
    /// started in its group.
    fn signal(&self, signal: Signal) {
        // The number is ours as long as it stands there: only then nobody has waited for the
        // process.
        if let Some(process) = *self.process() {
            // Fails only where it has ended by itself.
            let _ = kill_process_group(process, signal);
        }
    }
}

/// The number of what is watched.
const WATCHED: u32 = 0;

/// All of them.
pub struct Jobs {
    may_run: bool,
    results: PathBuf,
    all: Mutex<Vec<Arc<Job>>>,
}

impl Jobs {
    /// None yet but for the file that is watched.
    pub fn new(may_run: bool, results: PathBuf, watched: Option<PathBuf>) -> Jobs {
        let watched = watched.map(|path| Arc::new(job(WATCHED, path.display().to_string(), None)));
        Jobs { may_run, results, all: Mutex::new(watched.into_iter().collect()) }
    }

    /// Whether the page may start some.
    pub fn may_run(&self) -> bool {
        self.may_run
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u32) -> Result<Arc<Job>, Refused> {
        let found = self.all().iter().find(|job| job.id == id).cloned();
        found.ok_or_else(|| Refused::missing(format!("there is no run {id}")))
    }

    /// Asks all to end with what they have, and ends those that do not within a moment: nobody
    /// would know of them any more.
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

    fn start(&self, arguments: &[String]) -> Result<Value, Refused> {
        let mut all = self.all();
        if all.iter().any(|job| job.id != WATCHED && job.feed.ended().is_none()) {
            return Err(Refused::new(
                StatusCode::CONFLICT,
                "a run is in progress: two at once would measure each other",
            ));
        }
        let program =
            env::current_exe().map_err(|error| refuse(format!("this program has no path: {error}")))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The terminal's Ctrl-C is for the server, which passes it on. A run that had both would
        // take the second one for impatience, and end with nothing.
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
            // Nobody would know of it, or wait for it.
            job.signal(Signal::KILL);
            if let Some(process) = job.process().take() {
                // Fails only where it is gone already.
                let _ = waitpid(Some(process), WaitOptions::empty());
            }
            refuse(format!("it cannot be followed: {error}"))
        })?;
        let described = job.describe();
        all.push(job);
        if all.len() > JOBS_MAX {
            // The oldest that is over.
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

/// Reads what a run prints until it has ended.
fn follow(job: &Job, mut child: Child, pipes: [Option<Box<dyn Read + Send>>; 2]) {
    thread::scope(|scope| {
        for pipe in pipes.into_iter().flatten() {
            // Each pipe has its own thread: a child that waits for one of them must not wait for
            // ever.
            scope.spawn(|| read_lines(job, pipe));
        }
    });
    let clock = SystemClock::new();
    // Its pipes are closed, so it is about to end.
    let ended = loop {
        // Nobody may signal the number once it was waited for: it may be somebody else's then.
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
    // BOUND: of a line without an end its beginning is held. An error ends it as its end does.
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
        _ => format!("it ended with {status}"),
    };
    Ended { ok: status.success(), how }
}

/// Follows a file that somebody else writes, for ever.
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
            // It may not be there yet, or be replaced.
            Err(_) => tail = Tail::default(),
        }
    }
}

/// How far a file was read.
#[derive(Debug, Default)]
struct Tail {
    at: u64,
    /// The beginning of a line whose end has not come, as much of it as is kept.
    rest: Vec<u8>,
}

impl Tail {
    /// The lines that have come since. Of a file that became shorter, from its beginning on.
    fn read(&mut self, fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<String>, Refused> {
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
        // BOUND: what comes behind it is not kept of any line.
        self.rest.truncate(LINE_READ_MAX);
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
    }
}

/// All runs, the last one first.
pub async fn list(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let jobs = shared.jobs.all().iter().rev().map(|job| job.describe()).collect::<Vec<_>>();
    Json(jobs.into())
}

/// What is to be started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    suite: String,
    #[serde(default)]
    word: String,
    seconds: Option<u64>,
}

impl Asked {
    /// What would be typed behind `cairn`. Everything but the word is ours, and that cannot be
    /// taken for an option.
    fn arguments(&self, results: &Path) -> Result<Vec<String>, Refused> {
        let known = SUITES.iter().find(|(name, ..)| *name == self.suite);
        let (name, fixed, _) = known.ok_or_else(|| {
            let names: Vec<&str> = SUITES.iter().map(|(name, ..)| *name).collect();
            refuse(format!("suite: found the text {:?}, expected one of {}", self.suite, names.join(", ")))
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
            if let Some(names) = if word.is_empty() { *usual } else { Some(word) } {
                arguments.extend([(*option).to_owned(), names.to_owned()]);
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

/// Starts a run, where that was allowed.
pub async fn start(State(shared): State<Arc<Shared>>, Body(body): Body) -> Result<Json<Value>, Refused> {
    if !shared.jobs.may_run {
        let what = "this page is read-only: `cairn ui --allow-run` lets it start benchmarks";
        return Err(Refused::new(StatusCode::FORBIDDEN, what));
    }
    let asked: Asked = cairn_sim::json::parse(&body, "the request").map_err(refuse)?;
    let arguments = asked.arguments(&shared.jobs.results)?;
    shared.jobs.start(&arguments).map(Json)
}

/// A run by its number.
#[derive(Debug, Deserialize)]
pub struct ById {
    id: u32,
}

/// Asks a run to end with what it has.
pub async fn stop(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<ById>,
) -> Result<Json<Value>, Refused> {
    if !shared.jobs.may_run {
        return Err(Refused::new(StatusCode::FORBIDDEN, "this page is read-only"));
    }
    let job = shared.jobs.find(asked.id)?;
    job.signal(Signal::INT);
    Ok(Json(job.describe()))
}

/// What a run prints, as it comes: `lines` events, each with where the run is, and `ended`.
pub async fn events(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<ById>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refused> {
    let job = shared.jobs.find(asked.id)?;
    let changes = job.feed.changes();
    let events = stream::unfold((job, changes, 0, false), |(job, mut changes, at, is_over)| async move {
        if is_over {
            return None;
        }
        loop {
            // Before the look: what comes after it is seen by the next one.
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
