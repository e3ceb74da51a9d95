//! The suite on stores that the tests control (in memory, faulty, full), and on all real ones at
//! toy size.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_vfs::{Fs, OpenOptions, StdFs};

use super::*;
use crate::catalog::installed;
use crate::core::results::{Contender, Measurement, SCHEMA_VERSION};
use crate::core::scratch::Scratch;
use crate::core::settings::{Settings, settings};
use crate::core::workload::{Dataset, Distribution, KeyBatch, Lookup};
use crate::stores::catalog::Selection;
use crate::stores::java::Construction;
use crate::stores::lookups::Lookups;
use crate::stores::{Built, Compression, ConstantReader, ConstantStore, Session, Variant};

type Records = Arc<HashMap<Vec<u8>, Vec<u8>>>;

/// The fault of a test store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// One value in a thousand is wrong.
    WrongValue,
    /// Reports every key as absent, which is very fast.
    FindsNothing,
    /// Finds keys that are absent.
    FindsAll,
    /// Gives a wrong answer to a single key, such as the first lookup after opening.
    WrongFirst,
    /// The disk is full.
    NoSpace,
}

/// A hash map that leaves a file behind.
#[derive(Debug)]
struct Toy {
    name: &'static str,
    fault: Fault,
    built: Mutex<HashMap<std::path::PathBuf, Records>>,
}

impl Toy {
    fn new(name: &'static str, fault: Fault) -> Toy {
        Toy { name, fault, built: Mutex::default() }
    }
}

impl ConstantStore for Toy {
    fn name(&self) -> &str {
        self.name
    }

    fn family(&self) -> &str {
        "toy"
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn build_settings(&self) -> Settings {
        settings([("durability", "memory")])
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |way: &str, batched| Variant {
            name: format!("{} {way}", self.name),
            settings: Settings::new(),
            batched,
            loads_at_open: false,
            compressed: None,
        };
        vec![variant("one", false), variant("two", true)]
    }

    fn supports(&self, compression: Compression) -> bool {
        compression != Compression::Snappy
    }

    fn build(&self, dir: &Path, data: &Dataset, _: Compression) -> Result<Built> {
        if self.fault == Fault::NoSpace {
            return Err(Error::engine(self.name, "no space left on device"));
        }
        let file = StdFs::new().open(&dir.join("data"), OpenOptions::create_new())?;
        file.write_all_at(&[1; 5_000], 0)?;
        let records: HashMap<_, _> = data.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        self.built.lock().unwrap().insert(dir.to_owned(), Arc::new(records));
        Ok(Built { index_bytes: Some(1_000) })
    }

    fn open(&self, dir: &Path, _: usize) -> Result<Box<dyn ConstantReader>> {
        let records = self.built.lock().unwrap().get(dir).cloned();
        let records = records.ok_or_else(|| Error::engine(self.name, "nothing was built"))?;
        Ok(Box::new(ToyReader { records, fault: self.fault }))
    }
}

struct ToyReader {
    records: Records,
    fault: Fault,
}

impl ConstantReader for ToyReader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(ToySession { reader: self, asked: 0 }))
    }
}

struct ToySession<'a> {
    reader: &'a ToyReader,
    asked: usize,
}

impl Lookups for ToySession<'_> {
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            self.asked += 1;
            let value = self.reader.records.get(key).map(Vec::as_slice);
            visit(match self.reader.fault {
                Fault::WrongValue if self.asked.is_multiple_of(1_000) => Some(b"something else"),
                Fault::WrongFirst if keys.len() == 1 => Some(b"something else"),
                Fault::FindsNothing => None,
                Fault::FindsAll => value.or(Some(b"")),
                _ => value,
            });
        }
        Ok(())
    }
}

#[derive(Default)]
struct Log {
    groups: RefCell<Vec<String>>,
    notes: RefCell<Vec<String>>,
    stop_after: Option<(usize, Stop)>,
    steps: RefCell<usize>,
}

impl Progress for Log {
    fn group(&self, _: usize, _: usize, name: &str) {
        self.groups.borrow_mut().push(name.to_owned());
    }

    fn step(&self, done: usize, total: usize, _: &str) {
        assert!(done <= total);
        *self.steps.borrow_mut() += 1;
        if let Some((limit, stop)) = &self.stop_after
            && *self.steps.borrow() > *limit
        {
            stop.ask();
        }
    }

    fn note(&self, line: &str) {
        self.notes.borrow_mut().push(line.to_owned());
    }
}

fn toy_options(work: &Scratch) -> Options {
    let mut options = Options::quick();
    options.rounds = 3;
    options.effort =
        crate::suites::hash::job::Effort { order_keys: 3_000, warm_up_seconds: 5.0, seconds: 0.001 };
    options.probes = None;
    options.work_dir = work.path().to_owned();
    options.matrix = Some(Matrix {
        entries: vec![2_000],
        value_bytes: vec![6],
        compressions: vec![Compression::None],
        threads: vec![1, 2],
        lookups: vec![Lookup::Present, Lookup::Absent],
    });
    options
}

fn work_dir() -> Scratch {
    Scratch::in_dir(&std::env::current_dir().unwrap(), "suite-test").unwrap()
}

fn no_java() -> Contender {
    Contender::left_out("sparkey-java", "sparkey-java", &Error::engine("sparkey-java", "no JDK"))
}

fn selection(stores: Vec<Toy>) -> Selection<dyn ConstantStore> {
    let stores = stores.into_iter().map(|store| Box::new(store) as Box<dyn ConstantStore>).collect();
    Selection { stores, skipped: Vec::new() }
}

fn run_toys(options: &Options, stores: Vec<Toy>, log: &Log, stop: &Stop) -> Run {
    run_with(options, selection(stores), Err(&no_java()), log, stop).unwrap()
}

fn of<'a>(run: &'a Run, contender: &str) -> Vec<&'a Measurement> {
    run.measurements.iter().filter(|m| m.contender == contender).collect()
}

/// Goal: a run has every cell, every metric and every repetition, leaves no files behind and
/// reports the contenders that were left out.
#[test]
fn a_run_is_complete() {
    let work = work_dir();
    let log = Log::default();
    let run = run_toys(&toy_options(&work), vec![Toy::new("toy", Fault::None)], &log, &Stop::default());
    let shown: BTreeSet<(String, &str, &str, u32, usize)> = run
        .measurements
        .iter()
        .map(|m| {
            (
                m.contender.clone(),
                m.case.operation.as_str(),
                m.metric.as_str(),
                m.case.threads,
                m.samples.len(),
            )
        })
        .collect();
    let mut expected = BTreeSet::new();
    let mut expect = |name: &str, operation, metric, threads, samples| {
        expected.insert((name.to_owned(), operation, metric, threads, samples));
    };
    expect("toy", "build", "time", 0, 3);
    expect("toy", "size", "bytes per entry", 0, 1);
    expect("toy", "size", "index bytes per entry", 0, 1);
    for name in ["toy one", "toy two"] {
        expect(name, "open", "time", 0, 3);
        expect(name, "cold open", "time", 0, 3);
        expect(name, "cold get", "mean latency", 1, 3);
        expect(name, "get", "latency", 1, 3);
        for threads in [1, 2] {
            expect(name, "get", "throughput", threads, 3);
        }
    }
    expect("toy two", "get_many", "throughput", 1, 3);
    expect("toy two", "get_many", "throughput", 2, 3);
    // On a file system in memory nothing becomes cold. The run survives that too.
    let is_cold = |operation: &str| operation.starts_with("cold");
    let without_cold = |set: &BTreeSet<(String, &str, &str, u32, usize)>| {
        set.iter()
            .filter(|(_, operation, ..)| !is_cold(operation))
            .map(|entry| format!("{entry:?}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(without_cold(&shown), without_cold(&expected));
    assert!(run.measurements.iter().all(|m| m.median > 0.0 && m.low <= m.median && m.median <= m.high));
    assert!(run.measurements.iter().all(|m| m.verified) && !run.stopped);
    let size = of(&run, "toy").into_iter().find(|m| m.metric == "bytes per entry").unwrap();
    assert_eq!((size.median, size.case.entries, size.case.value_bytes), (2.5, 2_000, 6));
    let latency =
        of(&run, "toy one").into_iter().find(|m| m.case.operation == "get" && m.metric == "latency").unwrap();
    assert!(latency.percentiles["p50"] <= latency.percentiles["p99"]);
    assert_eq!((run.mode.as_str(), run.suite.as_str(), run.schema), ("quick", "hash", SCHEMA_VERSION));
    let skipped = run.contenders.iter().find(|contender| contender.name == "sparkey-java").unwrap();
    assert!(skipped.skipped.as_ref().unwrap().contains("no JDK"));
    assert!(log.notes.borrow()[0].contains("sparkey-java is left out: no JDK"));
    assert!(run.probes.iter().any(|probe| probe.name.starts_with("load generation")));
    assert_eq!(StdFs::new().read_dir(work.path()).unwrap(), Vec::<std::path::PathBuf>::new());
}

/// Goal: no engine wins by doing nothing, or by doing something else. Method: stores with planted
/// faults beside a correct one. The faulty ones keep no measurement where their answers were wrong,
/// and the reason is recorded.
#[test]
fn wrong_answers_are_not_published() {
    let work = work_dir();
    for fault in [Fault::WrongValue, Fault::FindsNothing, Fault::FindsAll, Fault::WrongFirst] {
        let stores = vec![Toy::new("right", Fault::None), Toy::new("wrong", fault)];
        let run = run_toys(&toy_options(&work), stores, &Log::default(), &Stop::default());
        for name in ["wrong one", "wrong two"] {
            assert!(of(&run, name).is_empty(), "{fault:?}: {:?}", of(&run, name));
            let contender = run.contenders.iter().find(|contender| contender.name == name).unwrap();
            assert!(
                contender.skipped.as_ref().unwrap().contains("wrong results from wrong"),
                "{contender:?}"
            );
        }
        // Its builder keeps no build time or size either, because the files may be wrong.
        assert!(of(&run, "wrong").is_empty(), "{fault:?}: {:?}", of(&run, "wrong"));
        let line = |line: &crate::report::summary::Line<'_>| format!("{line:?}");
        let lines: Vec<String> = crate::report::summary::lines(&run).iter().map(line).collect();
        assert!(lines.iter().all(|line| !line.contains("wrong")), "{lines:?}");
        assert!(of(&run, "right two").len() >= 6 && of(&run, "right").iter().all(|m| m.verified));
    }
}

/// Goal: a worker's wrong answer has the same effect as one in this process. Method: a worker,
/// played by a shell, that reports a build and then a wrong answer. The store keeps no measurement,
/// not even of its builds.
#[test]
fn wrong_answers_in_a_worker_are_not_published() {
    let work = work_dir();
    let mut options = toy_options(&work);
    options.filter = Some("wrong".to_owned());
    options.fresh_reads = true;
    let digest = r#"{"found":1,"bytes":2,"checksum":3}"#;
    let wrong = format!(
        r#"{{"Err":{{"wrong_result":{{"contender":"wrong one","case":"get","expected":{digest},"got":{digest}}}}}}}"#
    );
    let built = r#"{"done":{"seconds":1.0,"disk_bytes":9,"index_bytes":null,"peak_memory_bytes":null}}"#;
    let other = r#"{"Ok":{"value":5.0}}"#;
    // The first variant has five cells. The second, which supports batches, has nine.
    let others = [other; 9].join(",");
    let script = format!(
        "job=$(cat); case $job in '{{\"kind\":\"build\"'*) echo '{built}';; \
         *get_many*) echo '{{\"done\":[{others}]}}';; \
         *) echo '{{\"done\":[{other},{other},{wrong},{other},{other}]}}';; esac"
    );
    let arguments = vec!["-c".to_owned(), script];
    options.worker = Some(crate::core::worker::Worker { program: "sh".into(), arguments });
    let log = Log::default();
    let run = run_toys(&options, vec![Toy::new("wrong", Fault::None)], &log, &Stop::default());
    assert!(
        log.notes.borrow().iter().any(|note| note.contains("wrong results from wrong one")),
        "{:?}",
        log.notes
    );
    assert!(run.measurements.is_empty(), "{:?}", run.measurements);
}

/// Goal: a store whose disk is full is left out with the reason, and the others are measured.
#[test]
fn full_disks_are_survived() {
    let work = work_dir();
    let stores = vec![Toy::new("full", Fault::NoSpace), Toy::new("right", Fault::None)];
    let run = run_toys(&toy_options(&work), stores, &Log::default(), &Stop::default());
    for name in ["full", "full one", "full two"] {
        let contender = run.contenders.iter().find(|contender| contender.name == name).unwrap();
        assert!(contender.skipped.as_ref().unwrap().contains("no space left"), "{contender:?}");
    }
    assert!(!of(&run, "right one").is_empty());
}

/// Goal: a filter restricts the measurements to those that it names, which are still checked, and a
/// dashboard ignores it.
#[test]
fn filters_and_dashboards() {
    let work = work_dir();
    let stores = || vec![Toy::new("a", Fault::None), Toy::new("b", Fault::None)];
    let mut options = toy_options(&work);
    options.filter = Some("hash::build/".to_owned());
    let run = run_toys(&options, stores(), &Log::default(), &Stop::default());
    assert_eq!(run.measurements.len(), 2);
    assert!(run.measurements.iter().all(|m| m.case.operation == "build" && m.verified));

    options.filter = Some("keys=absent/distribution=uniform/threads=2/b".to_owned());
    let run = run_toys(&options, stores(), &Log::default(), &Stop::default());
    let shown: BTreeSet<_> =
        run.measurements.iter().map(|m| (m.contender.as_str(), m.case.operation.as_str())).collect();
    assert_eq!(shown, BTreeSet::from([("b one", "get"), ("b two", "get"), ("b two", "get_many")]));
    let names: Vec<_> = run.contenders.iter().map(|contender| contender.name.as_str()).collect();
    assert_eq!(names, ["b one", "b two"]);

    options.for_dashboard = true;
    let run = run_toys(&options, stores(), &Log::default(), &Stop::default());
    assert!(run.measurements.len() > 20);
}

/// Goal: both ways in which Java builds are checked even if no lookup is measured; otherwise the
/// slower one alone might stand for Java. Method: Sparkey's own library, with a filter for builds.
/// Without the jar or a JDK the test ends there, or fails if `CAIRN_REQUIRE_JAVA` is set.
#[test]
fn builds_by_java_are_checked() {
    let java = match (installed().java)(&Stop::default()) {
        Ok(java) => java,
        Err(error) => return assert!(std::env::var_os("CAIRN_REQUIRE_JAVA").is_none(), "{error}"),
    };
    let work = work_dir();
    let mut options = toy_options(&work);
    options.filter = Some("hash::build/".to_owned());
    options.rounds = 2;
    let log = Log::default();
    let run = run_with(&options, selection(Vec::new()), Ok(&*java), &log, &Stop::default()).unwrap();
    for construction in Construction::ALL {
        let name = construction.contender();
        let times: Vec<_> = of(&run, name).into_iter().filter(|m| m.metric == "time").collect();
        assert_eq!(times.len(), 1, "{name}: {:?}", log.notes);
        assert!(times[0].verified && times[0].samples.len() == 2, "{:?}", times[0]);
    }
    assert!(run.measurements.iter().all(|m| m.case.operation == "build"));
}

/// Goal: a run that is stopped keeps its measurements, and does not say so if it has none. Method:
/// stop at the fifth step, at the twelfth, and before the first.
#[test]
fn stopping_keeps_what_there_is() {
    let work = work_dir();
    let mut known = 0;
    for limit in [5, 12] {
        let stop = Stop::default();
        let log = Log { stop_after: Some((limit, stop.clone())), ..Log::default() };
        let run = run_toys(&toy_options(&work), vec![Toy::new("toy", Fault::None)], &log, &stop);
        assert!(run.measurements.len() > known, "{limit}");
        known = run.measurements.len();
        assert!(run.stopped && log.notes.borrow().iter().any(|note| note.contains("stopped early")));
    }
    let over = Stop::after(Some(Duration::ZERO));
    let log = Log::default();
    let run = run_toys(&toy_options(&work), vec![Toy::new("toy", Fault::None)], &log, &over);
    assert!(run.measurements.is_empty() && run.stopped);
    assert!(!log.notes.borrow().iter().any(|note| note.contains("kept")), "{:?}", log.notes);
}

/// Goal: every real store of this program passes the suite and answers correctly, with each
/// compression that it supports. Method: toy sizes, a real file beside synthetic records.
#[test]
fn all_stores_run() {
    let work = work_dir();
    let path = work.path().join("words.tsv");
    let file = StdFs::new().open(&path, OpenOptions::create_new()).unwrap();
    let lines: String = (0..3_000).map(|n| format!("word{n}\t{}\tsome text {n}\n", n % 7)).collect();
    file.write_all_at(format!("word\tcount\tnote\nword7\t\told\n{lines}").as_bytes(), 0).unwrap();
    let mut options = toy_options(&work);
    options.rounds = 2;
    options.data = Some(DataFile::new(&path, "word"));
    if let Some(matrix) = &mut options.matrix {
        matrix.compressions = Compression::ALL.to_vec();
        matrix.lookups = vec![Lookup::Present, Lookup::Absent];
        matrix.threads = vec![2];
    }
    let log = Log::default();
    let run =
        run_with(&options, installed().constant.all(), Err(&no_java()), &log, &Stop::default()).unwrap();
    assert_eq!(log.groups.borrow().len(), 6);
    let wrong: Vec<_> =
        log.notes.borrow().iter().filter(|note| !note.contains("left out")).cloned().collect();
    assert!(wrong.iter().all(|note| note.contains("stay in memory")), "{wrong:?}");
    let left_out = "words: lines left out: 1 whose key is repeated later";
    assert_eq!(log.notes.borrow().iter().filter(|note| *note == left_out).count(), 1);
    let measured: BTreeSet<&str> = run.measurements.iter().map(|m| m.contender.as_str()).collect();
    for store in installed().constant.all().stores {
        for variant in store.variants() {
            assert!(measured.contains(variant.name.as_str()), "{} has no figures", variant.name);
        }
    }
    assert!(run.measurements.iter().any(|m| m.case.dataset == "words" && m.case.entries == 3_000));
    assert!(run.data.starts_with("words: key column `word`"));
}

/// Goal: stores in memory are distinguished from stores on a disk.
#[test]
fn file_systems_in_memory_are_noted() {
    let machine = |kind: &str| [("file system".to_owned(), kind.to_owned())];
    assert!(in_memory(&machine("tmpfs on none")).unwrap().contains("tmpfs"));
    assert_eq!(in_memory(&machine("ext4 on /dev/vda")), None);
    assert_eq!(in_memory(&[]), None);
}

/// Goal: invalid options are refused by name before anything is built.
#[test]
fn options_are_checked() {
    let refuse = |change: &dyn Fn(&mut Options), word: &str| {
        let mut options = Options::full();
        options.fresh_reads = false;
        options.check().unwrap();
        change(&mut options);
        let text = options.check().unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    };
    fn matrix(options: &mut Options) -> &mut Matrix {
        options.matrix.as_mut().unwrap()
    }
    refuse(&|options| options.rounds = 0, "rounds");
    refuse(&|options| options.fresh_reads = true, "worker");
    refuse(&|options| options.effort.seconds = 0.0, "seconds");
    refuse(&|options| options.distribution = Distribution::Latest { theta: 0.0 }, "theta 0");
    refuse(&|options| options.data = Some(DataFile::new("/no/such/file.csv", "id")), "/no/such/file.csv");
    #[cfg(unix)]
    refuse(
        &|options| {
            let name = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(b"w\xf6rk".to_vec());
            options.worker =
                Some(crate::core::worker::Worker { program: "sh".into(), arguments: Vec::new() });
            options.work_dir = name.into();
        },
        "UTF-8",
    );
    refuse(&|options| matrix(options).entries = vec![0], "entries 0");
    refuse(&|options| matrix(options).entries.clear(), "no entries");
    refuse(&|options| matrix(options).value_bytes = vec![5], "value bytes 5");
    refuse(&|options| matrix(options).threads = vec![0], "threads 0");
}

/// Goal: the full plan is the matrix of Sparkey's guide, and the quick plan its core, with real
/// data first.
#[test]
fn plans_cover_the_matrix() {
    let groups = plan(&Options::full());
    assert_eq!(groups.len(), 3 * 2 * 3);
    assert!(groups.iter().all(|group| group.cells.len() == 5 + 2 + 2 * 2 + 1 && group.build_rounds == 5));
    let mut quick = Options::quick();
    assert!(plan(&quick)[0].openings && plan(&quick).len() == 5);
    quick.data = Some(DataFile::new("/data/names.csv", "id"));
    let groups = plan(&quick);
    assert_eq!(groups[0].name(), "names, none");
    assert!(groups[0].build_rounds == 5 && groups[1].build_rounds == 1);
    let skewed = Distribution::Zipfian { theta: 0.99, scrambled: true };
    quick.distribution = skewed;
    assert!(plan(&quick).iter().flat_map(|group| &group.cells).all(|cell| cell.distribution == skewed));
}
