//! The directory of a run serves as its journal. The options are written before the first part, and
//! each part writes one file when it ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::checksum::Xxh3;
use cairn_vfs::{AtomicFile, Clock, ErrorKind, File, Fs, OpenOptions, SystemClock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::options::{Options, SuiteName};
use super::part::PartResult;
use crate::core::error::{Error, Result};
use crate::core::results::{Probe, Run};
use crate::core::run_files;
use crate::core::run_files::SUITES_DIR as SUITES;
use crate::core::time::rfc3339;

/// Incremented when a field changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;
const HEAD: &str = "run.json";
const PARTS: &str = "parts";
const LOCK: &str = "lock";

/// Properties of the machine and the build that must not differ between the sittings of a run,
/// because the measurements of all sittings are compared with each other.
const SAME: [&str; 8] = ["cpu", "cores", "memory", "kernel", "governor", "file system", "commit", "profile"];

/// The description of a run without its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA_VERSION`] of the writer.
    schema: u32,
    /// Start of the run, RFC 3339, UTC.
    pub started: String,
    /// The options of the run.
    pub options: Options,
    /// The sittings: the first one, then those that resumed the run.
    pub sittings: Vec<Sitting>,
}

impl Head {
    /// Creates the head of a run that begins.
    pub(super) fn of(options: &Options, sitting: Sitting) -> Head {
        let started = sitting.started.clone();
        Head { schema: SCHEMA_VERSION, started, options: options.clone(), sittings: vec![sitting] }
    }
}

/// One occasion on which a run was started or resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sitting {
    /// Start of the sitting, RFC 3339, UTC.
    pub started: String,
    /// The machine, as in a stored run.
    pub machine: Vec<(String, String)>,
    /// Probes of memory and disk.
    pub probes: Vec<Probe>,
    /// Length and hash of the measuring program, since two builds of one commit may differ. Empty
    /// if unknown, as in runs that predate this field.
    #[serde(default)]
    pub build: String,
    /// Length and hash of the user's own records. Empty if there are none, or if unknown.
    #[serde(default)]
    pub data: String,
}

impl Sitting {
    /// Creates a sitting that begins now.
    pub fn now(machine: Vec<(String, String)>, probes: Vec<Probe>) -> Sitting {
        let started = rfc3339(SystemClock::new().wall());
        Sitting { started, machine, probes, build: String::new(), data: String::new() }
    }

    /// Adds the marks of this program and of the records that `options` name. Reads both files
    /// completely.
    #[must_use]
    pub fn marked(self, fs: &dyn Fs, options: &Options) -> Sitting {
        // A file that cannot be read leaves its mark unknown, which matches any other mark.
        let build = std::env::current_exe().ok().and_then(|program| mark(fs, &program).ok());
        let data = options.data.as_ref().and_then(|data| mark(fs, &data.path).ok());
        Sitting { build: build.unwrap_or_default(), data: data.unwrap_or_default(), ..self }
    }
}

/// Number of bytes that are hashed at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Returns length and hash of a file.
fn mark(fs: &dyn Fs, path: &Path) -> Result<String> {
    let file = fs.open(path, OpenOptions::read())?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut hash, mut len) = (Xxh3::new(), 0);
    loop {
        let count = file.read_at(&mut chunk, len)?;
        if count == 0 {
            return Ok(format!("{len} bytes, {:016x}", hash.digest()));
        }
        hash.update(chunk.get(..count).unwrap_or_default());
        len += count as u64;
    }
}

/// The directory of a run, locked by this process.
#[derive(Debug)]
pub struct Journal {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    head: Head,
    results: Vec<PartResult>,
    notes: Vec<String>,
    /// Keeps the lock; none in a journal that is only read.
    _lock: Option<Box<dyn File>>,
}

impl Journal {
    /// Creates a directory for a run in `parent`. Creates `parent` if it is missing.
    pub fn begin(fs: &Arc<dyn Fs>, parent: &Path, options: &Options, sitting: Sitting) -> Result<Journal> {
        let stamp: String = sitting.started.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let mut dir = parent.join(format!("{}-{stamp}", super::NAME));
        let mut number = 0;
        while fs.exists(&dir)? {
            number += 1;
            dir = parent.join(format!("{}-{stamp}-{number}", super::NAME));
        }
        fs.create_dir_all(&dir.join(PARTS))?;
        let lock = lock(&**fs, &dir)?;
        let head = Head::of(options, sitting);
        let journal = Journal {
            fs: Arc::clone(fs),
            dir,
            head,
            results: Vec::new(),
            notes: Vec::new(),
            _lock: Some(lock),
        };
        journal.write(HEAD, &journal.head)?;
        Ok(journal)
    }

    /// Opens the directory of an existing run.
    ///
    /// Errors: the directory holds no run, or another process has locked it.
    pub fn open(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Journal> {
        // The head is read before the lock, because locking creates a file, and a directory that
        // holds no run must stay unchanged. It is read again under the lock, because another
        // process may have resumed the run in between.
        Journal::head_of(&**fs, dir)?;
        let lock = lock(&**fs, dir)?;
        Journal::left(fs, dir, Journal::head_of(&**fs, dir)?, Some(lock))
    }

    /// Reads the directory of a run as it is, even while another process works on it: the file of a
    /// part is either complete or absent. A journal that is read this way cannot be resumed.
    ///
    /// Errors: the directory holds no run.
    pub fn read(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Journal> {
        Journal::left(fs, dir, Journal::head_of(&**fs, dir)?, None)
    }

    fn head_of(fs: &dyn Fs, dir: &Path) -> Result<Head> {
        let path = dir.join(HEAD);
        if !fs.exists(&path)? {
            let what = format!("it has no {HEAD}, which every run of `cairn bench all` has");
            return Err(Error::NoRun { file: dir.to_owned(), what });
        }
        let head: Head = read(fs, &path)?;
        if head.schema != SCHEMA_VERSION {
            let what = format!("schema {}, expected {SCHEMA_VERSION}", head.schema);
            return Err(Error::Input { file: path, line: None, what });
        }
        Ok(head)
    }

    fn left(fs: &Arc<dyn Fs>, dir: &Path, head: Head, lock: Option<Box<dyn File>>) -> Result<Journal> {
        let (mut results, mut notes) = (Vec::new(), Vec::new());
        let mut files = fs.read_dir(&dir.join(PARTS))?;
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "json")) {
            match read::<PartResult>(&**fs, file) {
                Ok(result) => results.push(result),
                // One unreadable part is no reason to lose the others.
                Err(error) => notes.push(format!("{error}; that part counts as not measured")),
            }
        }
        Ok(Journal { fs: Arc::clone(fs), dir: dir.to_owned(), head, results, notes, _lock: lock })
    }

    /// Checks that `sitting` uses the machine, the build and the records with which the run began.
    ///
    /// Errors: [`Error::Invalid`] naming the difference.
    pub fn check(&self, sitting: &Sitting) -> Result<()> {
        let field = |machine: &[(String, String)], wanted: &str| {
            machine
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.clone())
                .unwrap_or_default()
        };
        let sittings = &self.head.sittings;
        let first = sittings.first().map(|first| first.machine.as_slice()).unwrap_or_default();
        for name in SAME {
            self.check_same(name, &field(first, name), &field(&sitting.machine, name))?;
        }
        let build = sittings.iter().map(|known| &known.build).find(|build| !build.is_empty());
        let data = sittings.iter().map(|known| &known.data).find(|data| !data.is_empty());
        for (name, before, now) in [("program", build, &sitting.build), ("data file", data, &sitting.data)] {
            if let Some(before) = before.filter(|_| !now.is_empty()) {
                self.check_same(name, before, now)?;
            }
        }
        Ok(())
    }

    fn check_same(&self, name: &str, before: &str, now: &str) -> Result<()> {
        if before == now {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: begun with {name} {before:?}, but this is {now:?}: figures of both do not belong in one report; begin a new run",
            self.dir.display()
        )))
    }

    /// Records that the run is resumed. Errors: those of [`Journal::check`].
    pub fn resume(&mut self, sitting: Sitting) -> Result<()> {
        self.check(&sitting)?;
        self.head.sittings.push(sitting);
        self.write(HEAD, &self.head)
    }

    /// Stores the result of a part in place of its previous one.
    pub fn keep(&mut self, result: PartResult) -> Result<()> {
        let file = format!("{PARTS}/{}-{}.json", result.suite.word(), slug(&result.name));
        self.write(&file, &result)?;
        self.results.retain(|known| (known.suite, &known.name) != (result.suite, &result.name));
        self.results.push(result);
        Ok(())
    }

    /// Writes the stored run of a suite.
    pub(super) fn write_result(&self, suite: &str, run: &Run) -> Result<()> {
        self.fs.create_dir_all(&self.dir.join(SUITES))?;
        self.write(&format!("{SUITES}/{suite}.json"), run)
    }

    /// Writes a report that is not a stored run. It goes beside the directory `suites`, because
    /// readers of that directory expect every file in it to be a run.
    pub(super) fn write_report<T: Serialize>(&self, suite: &str, report: &T) -> Result<()> {
        self.write(&format!("{suite}.json"), report)
    }

    /// Returns the result of a part, if it has one.
    pub fn result(&self, suite: SuiteName, name: &str) -> Option<&PartResult> {
        self.results.iter().find(|result| result.suite == suite && result.name == name)
    }

    /// Returns the results of a suite's parts, including parts that are not in the current plan.
    pub(super) fn results(&self, suite: SuiteName) -> impl Iterator<Item = &PartResult> {
        self.results.iter().filter(move |result| result.suite == suite)
    }

    /// Returns options and sittings.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the errors of files that could not be read on opening.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn write<T: Serialize>(&self, name: &str, content: &T) -> Result<()> {
        let path = self.dir.join(name);
        let refuse = |error: serde_json::Error| Error::Input {
            file: path.clone(),
            line: None,
            what: error.to_string(),
        };
        let mut json = serde_json::to_vec_pretty(content).map_err(refuse)?;
        json.push(b'\n');
        let file = AtomicFile::create(&self.fs, &path)?;
        file.file().write_all_at(&json, 0)?;
        Ok(file.commit()?)
    }
}

/// Returns the start of the run in `dir`, RFC 3339, without locking the directory.
///
/// Errors: the directory holds no run.
pub fn started(fs: &dyn Fs, dir: &Path) -> Result<String> {
    let head: Head = read(fs, &dir.join(HEAD))?;
    Ok(head.started)
}

/// Returns the directory of the latest run over all suites in `dir`, with its start. `None` if
/// there is none with results.
pub fn latest(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Option<(String, PathBuf)>> {
    let mut newest: Option<(String, PathBuf)> = None;
    if !fs.exists(dir)? {
        return Ok(newest);
    }
    for path in fs.read_dir(dir)? {
        if !run_files::is_whole(&**fs, &path)? || run_files::files(&**fs, &path)?.is_empty() {
            continue;
        }
        let Ok(started) = started(&**fs, &path) else { continue };
        if newest.as_ref().is_none_or(|(known, _)| started > *known) {
            newest = Some((started, path));
        }
    }
    Ok(newest)
}

/// Locks a directory for this process.
fn lock(fs: &dyn Fs, dir: &Path) -> Result<Box<dyn File>> {
    let file = fs.open(&dir.join(LOCK), OpenOptions::create())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == ErrorKind::Busy => {
            Err(Error::invalid(format!("{}: another process is at work on this run", dir.display())))
        }
        Err(error) => Err(error.into()),
    }
}

fn read<T: DeserializeOwned>(fs: &dyn Fs, path: &Path) -> Result<T> {
    let map = fs.open(path, OpenOptions::read())?.map()?;
    serde_json::from_slice(&map[..]).map_err(|error| Error::Input {
        file: path.to_owned(),
        line: Some(error.line() as u64),
        what: error.to_string(),
    })
}

/// Converts a name for use in a file name: letters and digits, and a hash so that two names never
/// collide.
fn slug(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(60).collect();
    format!("{short}-{:08x}", cairn_codec::checksum::xxh3_64(name.as_bytes()) as u32)
}
