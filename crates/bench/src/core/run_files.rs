//! Stored runs: one JSON file each, named by suite and start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_sim::json::{in_words, parse_at};
use cairn_vfs::{AtomicFile, Fs, OpenOptions};

use crate::core::error::{Error, Result};
use crate::core::results::{Run, SCHEMA_VERSION, SPARKEY_JAVA};
use crate::core::stats;

/// Directory of runs, relative to the working directory.
pub const RESULTS_DIR: &str = "benchmark-results";

/// Subdirectory for the runs of the suites in the directory of a run over all suites, and the
/// prefix of that directory's name.
pub(crate) const SUITES_DIR: &str = "suites";
const WHOLE_PREFIX: &str = "all-";

/// Returns the files of runs in a directory. In the directory of a run over all suites these are
/// the runs of its suites. In any other directory these are the runs directly in it and those of
/// the runs over all suites in it. Only names are checked.
pub fn files(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>> {
    let is_run = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let suites = dir.join(SUITES_DIR);
    if is_whole(fs, dir)? {
        let within = if fs.exists(&suites)? { fs.read_dir(&suites)? } else { Vec::new() };
        return Ok(within.into_iter().filter(is_run).collect());
    }
    let (mut found, mut wholes) = (Vec::new(), Vec::new());
    for path in fs.read_dir(dir)? {
        if is_run(&path) {
            found.push(path);
        } else if is_whole(fs, &path)? {
            wholes.push(path);
        }
    }
    for whole in wholes {
        found.extend(files(fs, &whole)?);
    }
    Ok(found)
}

/// Returns whether a path is the directory of a run over all suites, judging by its name or its
/// content.
pub(crate) fn is_whole(fs: &dyn Fs, path: &Path) -> Result<bool> {
    // A dangling link is not a run, and must not hide the others.
    if !fs.exists(path)? || !fs.metadata(path)?.is_dir {
        return Ok(false);
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(name.starts_with(WHOLE_PREFIX) || fs.exists(&path.join(SUITES_DIR))?)
}

/// Loads the runs at `path`: the run in a file, or all runs that [`files`] finds in a directory.
/// Files in a directory that are not runs are skipped.
///
/// Errors: as [`load`]; [`Error::Invalid`] for a directory without runs.
pub fn load_all(fs: &dyn Fs, path: &Path) -> Result<Vec<Run>> {
    if !fs.metadata(path)?.is_dir {
        return Ok(vec![load(fs, path)?]);
    }
    let mut runs = Vec::new();
    for file in files(fs, path)? {
        match load(fs, &file) {
            Ok(run) => runs.push(run),
            Err(Error::NoRun { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if runs.is_empty() {
        return Err(Error::invalid(format!("{}: there is no stored run in it", path.display())));
    }
    Ok(runs)
}

/// Saves `run` in `dir`, which is created if it does not exist, and returns the path of the file.
///
/// The file appears atomically and never replaces another: a second run of the same second gets a
/// number.
pub fn save(fs: &Arc<dyn Fs>, dir: &Path, run: &Run) -> Result<PathBuf> {
    fs.create_dir_all(dir)?;
    let stamp: String = run.started.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let name = |number: usize| match number {
        0 => format!("{}-{stamp}.json", run.suite),
        _ => format!("{}-{stamp}-{number}.json", run.suite),
    };
    let mut path = dir.join(name(0));
    let mut number = 0;
    while fs.exists(&path)? {
        number += 1;
        path = dir.join(name(number));
    }
    let mut json = serde_json::to_vec_pretty(run).map_err(|error| Error::Input {
        file: path.clone(),
        line: None,
        what: error.to_string(),
    })?;
    json.push(b'\n');
    let file = AtomicFile::create(fs, &path)?;
    file.file().write_all_at(&json, 0)?;
    file.commit()?;
    Ok(path)
}

/// Reads a stored run. Errors: [`Error::NoRun`] for a file that is not a run, or has another
/// schema.
pub fn load(fs: &dyn Fs, path: &Path) -> Result<Run> {
    let map = fs.open(path, OpenOptions::read())?.map()?;
    let refuse = |what: String| Error::NoRun { file: path.to_owned(), what };
    let text = std::str::from_utf8(&map[..]).map_err(|_| refuse("not text: expected UTF-8".to_owned()))?;
    let value: serde_json::Value =
        parse_at(text).map_err(|(line, what)| refuse(format!("line {line}: {what}")))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    if schema != Some(u64::from(SCHEMA_VERSION)) {
        let found = schema.map_or_else(|| "none".to_owned(), |schema| schema.to_string());
        return Err(refuse(format!("schema {found}, expected {SCHEMA_VERSION}")));
    }
    let is_old = value.get("stopped").is_none();
    let run = serde_json::from_value(value);
    let mut run: Run = run.map_err(|error| refuse(in_words(&error.to_string())))?;
    if is_old {
        note_turns(&mut run);
    }
    widen(&mut run);
    Ok(run)
}

/// Widens the intervals of runs that were stored before intervals of few samples had the full
/// confidence.
fn widen(run: &mut Run) {
    let seed = run.seed;
    for m in run.measurements.iter_mut().filter(|m| m.samples.len() >= stats::SAMPLES_MIN) {
        let interval = stats::estimate(&m.samples, seed);
        (m.low, m.high) = (m.low.min(interval.low), m.high.max(interval.high));
    }
}

/// Adds a field that early runs do not have: only a full run gave Java a process per repetition.
fn note_turns(run: &mut Run) {
    let quick = run.mode != "full";
    for measurement in &mut run.measurements {
        let is_java = measurement.contender.starts_with(SPARKEY_JAVA);
        measurement.one_turn = quick && is_java && measurement.metric == "throughput";
    }
}

/// Checks that `dir` exists or can be created, and that files can be written in it, which should be
/// known before a run. Leaves nothing behind, not even a directory, because the run may not take
/// place.
pub fn check_writable(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let named = |path: &&Path| !path.as_os_str().is_empty();
    let mut made = Vec::new();
    for path in dir.ancestors().filter(named) {
        if fs.exists(path)? {
            break;
        }
        made.push(path);
    }
    let checked = fs.create_dir_all(dir).map_err(Error::from).and_then(|()| write_probe(fs, dir));
    // A directory that has received content in the meantime is not removed.
    let _ = made.into_iter().try_for_each(|path| fs.remove_dir(path));
    checked
}

fn write_probe(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let probe = dir.join(".cairn-write-probe");
    let file = fs.open(&probe, OpenOptions::create())?;
    let written = file.write_all_at(b"x", 0);
    drop(file);
    fs.remove(&probe)?;
    Ok(written?)
}

/// Returns the file of the latest run of `suite` in `dir`. `None` if there is none; files of
/// another schema do not count. Reads every run of the suite in `dir`.
pub fn latest(fs: &dyn Fs, dir: &Path, suite: &str) -> Result<Option<PathBuf>> {
    if !fs.exists(dir)? {
        return Ok(None);
    }
    let mut newest: Option<(String, PathBuf)> = None;
    for path in fs.read_dir(dir)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(&format!("{suite}-")) || !name.ends_with(".json") {
            continue;
        }
        let Ok(run) = load(fs, &path) else { continue };
        // Of runs of the same second, numbered ones are later; without their extension they sort in
        // that order.
        let is_newer = newest.as_ref().is_none_or(|(started, known)| {
            (&run.started, path.with_extension("")) > (started, known.with_extension(""))
        });
        if run.suite == suite && is_newer {
            newest = Some((run.started, path));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{FaultFs, FaultOptions, MemFs};

    use super::*;
    use crate::core::testing::sample_run;

    /// Goal: a loaded run equals the saved one, a second one of the same second gets a name of its
    /// own, and the newest is found.
    #[test]
    fn runs_come_back() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let dir = Path::new("/results");
        assert_eq!(latest(&*fs, dir, "hash").unwrap(), None);
        let run = sample_run();
        let first = save(&fs, dir, &run).unwrap();
        assert_eq!(first, dir.join("hash-20261121T050100Z.json"));
        let second = save(&fs, dir, &run).unwrap();
        assert_eq!(second, dir.join("hash-20261121T050100Z-1.json"));
        assert_eq!(load(&*fs, &first).unwrap(), run);
        assert_eq!(latest(&*fs, dir, "hash").unwrap(), Some(second));
        let older = save(&fs, dir, &Run { started: "2025-01-01T00:00:00Z".to_owned(), ..run }).unwrap();
        assert_ne!(latest(&*fs, dir, "hash").unwrap(), Some(older.clone()));
        assert_eq!(latest(&*fs, dir, "kv").unwrap(), None);
        let (named, newest) = (dir.join("hash-quick.json"), latest(&*fs, dir, "hash").unwrap());
        fs.rename(&older, &named).unwrap();
        assert_eq!(latest(&*fs, dir, "hash").unwrap(), newest, "names do not count");
        fs.open(&dir.join("hash-zzz.json"), OpenOptions::create_new()).unwrap();
        assert_eq!(latest(&*fs, dir, "hash").unwrap(), newest, "files that are no runs do not count");
    }

    /// Goal: a directory that cannot be written is detected, and the check leaves nothing behind.
    /// Method: a disk without space, and one with space.
    #[test]
    fn unwritable_directories_are_noticed() {
        let faults = FaultFs::new(FaultOptions::seeded(1));
        let dir = Path::new("/results");
        let memory = MemFs::new();
        check_writable(&memory, &dir.join("of/today")).unwrap();
        assert!(!memory.exists(dir).unwrap(), "what was made for the look is gone");
        check_writable(&faults, dir).unwrap();
        assert_eq!(faults.read_dir(dir).unwrap(), Vec::<PathBuf>::new());
        faults.set_quota(Some(0));
        assert!(check_writable(&faults, dir).is_err());
        assert_eq!(faults.read_dir(dir).unwrap(), Vec::<PathBuf>::new());
    }

    /// Goal: runs from before `one_turn` and `stopped` can be read, and Java's iterations in a
    /// quick one do not count as rounds. Method: a run without both fields, quick and full.
    #[test]
    fn older_runs_are_read() {
        let fs = MemFs::new();
        for (mode, one_turn) in [("quick", true), ("full", false)] {
            let run = Run { mode: mode.to_owned(), ..sample_run() };
            let mut value = serde_json::to_value(&run).unwrap();
            value.as_object_mut().unwrap().remove("stopped");
            let path = PathBuf::from(format!("/{mode}.json"));
            let file = fs.open(&path, OpenOptions::create_new()).unwrap();
            file.write_all_at(value.to_string().as_bytes(), 0).unwrap();
            let read = load(&fs, &path).unwrap();
            assert!(!read.stopped);
            for measurement in &read.measurements {
                let is_java = measurement.contender.starts_with("sparkey-java");
                assert_eq!(measurement.one_turn, one_turn && is_java, "{mode}, {measurement:?}");
            }
        }
    }

    /// Goal: other files and other schemas are rejected with an error that states the content
    /// found.
    #[test]
    fn foreign_files_are_refused() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        for (name, text, word) in [
            ("/a.json", "{\n\"schema\": 1,,", "line 2: expected a name in double quotes"),
            ("/e.json", "hello", "/e.json is not a stored run: line 1: expected a value"),
            ("/f.json", "\u{0}", "is not a stored run: line 1"),
            ("/b.json", "{\"schema\": 99}", "schema 99, expected 1"),
            ("/c.json", "[1, 2]", "schema none"),
            ("/d.json", "{\"schema\": 1}", "is missing"),
        ] {
            let file = fs.open(Path::new(name), OpenOptions::create_new()).unwrap();
            file.write_all_at(text.as_bytes(), 0).unwrap();
            let error = load(&*fs, Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(name), "{error}");
        }
        assert!(load(&*fs, Path::new("/none.json")).is_err());
    }

    /// Goal: a full disk is an error and leaves no partial run. Method: a quota below the size of
    /// the run.
    #[test]
    fn full_disk_leaves_nothing() {
        let faults = FaultFs::new(FaultOptions::seeded(1));
        faults.set_quota(Some(600));
        let fs: Arc<dyn Fs> = Arc::new(faults);
        let error = save(&fs, Path::new("/results"), &sample_run()).unwrap_err();
        assert!(matches!(&error, Error::Vfs(error) if error.is_full()), "{error}");
        assert_eq!(latest(&*fs, Path::new("/results"), "hash").unwrap(), None);
    }
}
