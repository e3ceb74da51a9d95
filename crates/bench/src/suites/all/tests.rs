//! Complete runs of made-up parts: interruptions, failures, cuts, and the files that they leave.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use cairn_vfs::{Fs, MemFs, OpenOptions};

use super::*;
use crate::catalog::installed;
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::results::{Contender, Run};
use crate::core::testing::sample_run;
use crate::report::whole::text;
use crate::suites::hash::DataFile;

/// Records the events that it observes.
#[derive(Default)]
struct EventLog {
    parts: RefCell<Vec<String>>,
    notes: RefCell<Vec<String>>,
    shares: RefCell<Vec<f64>>,
}

impl Watch for EventLog {
    fn part(&self, _: (usize, usize), suite: SuiteName, name: &str, left: TimeLeft) {
        assert!(left.seconds.is_finite());
        self.parts.borrow_mut().push(format!("{} {name}", suite.word()));
    }

    fn step(&self, share: f64, _: &str, _: TimeLeft) {
        self.shares.borrow_mut().push(share);
    }

    fn note(&self, line: &str) {
        self.notes.borrow_mut().push(line.to_owned());
    }
}

fn options() -> Options {
    Options { budget_seconds: None, probes: false, ..Options::quick() }
}

fn sitting() -> Sitting {
    let machine = [("cpu", "x"), ("commit", "abc"), ("load before the run", "6"), ("kernel", "6")];
    Sitting::now(machine.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(), Vec::new())
}

fn begun(fs: &Arc<dyn Fs>, options: &Options) -> Journal {
    Journal::begin(fs, Path::new("/results"), options, sitting()).unwrap()
}

fn resumed(fs: &Arc<dyn Fs>, dir: &Path) -> Journal {
    let mut journal = Journal::open(fs, dir).unwrap();
    journal.resume(sitting()).unwrap();
    journal
}

fn suite(suite: SuiteName, parts: Vec<Part>) -> SuitePlan {
    SuitePlan { suite, parts, missing: None, notes: Vec::new() }
}

/// Returns a run whose measurements belong to a data set with the part's name.
fn run_of(name: &str, stopped: bool) -> Content {
    let mut run = Run { stopped, ..sample_run() };
    run.measurements.iter_mut().for_each(|m| m.case.dataset = name.to_owned());
    Content::Run(run)
}

/// Returns a part that succeeds, and counts how often it ran.
fn good(name: &str, ran: &Rc<Cell<u32>>) -> Part {
    let (own, ran) = (name.to_owned(), Rc::clone(ran));
    Part::new(name, 1.0, move |progress: &dyn Progress, _: &Stop| {
        ran.set(ran.get() + 1);
        progress.group(1, 2, "second half");
        progress.step(1, 2, "three quarters");
        progress.note("rocksdb is left out: no library");
        Ok(run_of(&own, false))
    })
}

fn part(name: &str, work: impl Fn(&Stop) -> Result<Content> + 'static) -> Part {
    Part::new(name, 1.0, move |_: &dyn Progress, stop: &Stop| work(stop))
}

fn datasets(whole: &Whole) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for m in whole.suites.iter().filter_map(|suite| suite.run.as_ref()).flat_map(|run| &run.measurements) {
        if !names.contains(&m.case.dataset) {
            names.push(m.case.dataset.clone());
        }
    }
    names
}

/// Goal: Ctrl-C keeps the measurements so far, including half of a part. Resuming runs exactly the
/// parts that are not over, and replaces the half. Method: a part in the middle that is ended the
/// first time.
#[test]
fn interrupted_runs_go_on() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let (first, last) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let stop = Stop::default();
    let plans = |ctrl_c: bool| {
        let half = part("half", {
            let stop = stop.clone();
            move |_: &Stop| {
                if ctrl_c {
                    stop.ask();
                }
                Ok(run_of(if ctrl_c { "begun" } else { "whole" }, ctrl_c))
            }
        });
        vec![
            suite(SuiteName::Hash, vec![good("one", &first), half]),
            suite(SuiteName::Kv, vec![good("one", &last)]),
        ]
    };
    let mut journal = begun(&fs, &options());
    let heard = EventLog::default();
    let ending = measure(&plans(true), &mut journal, &heard, &stop).unwrap();
    assert_eq!((ending.stopped, ending.over, ending.failed.len()), (true, (1, 3), 0));
    assert_eq!((first.get(), last.get()), (1, 0));
    assert_eq!(*heard.shares.borrow(), [0.5, 0.75]);
    let whole = Whole::of(&plans(true), &journal);
    assert_eq!(datasets(&whole), ["one", "begun"]);
    assert_eq!(whole.suites[0].standing(), "1 of 2 parts, 1 stopped");
    assert!(whole.suites[0].run.as_ref().unwrap().stopped && whole.suites[1].run.is_none());
    let dir = journal.dir().to_owned();
    drop(journal);

    let mut journal = resumed(&fs, &dir);
    let heard = EventLog::default();
    let ending = measure(&plans(false), &mut journal, &heard, &Stop::default()).unwrap();
    assert_eq!(ending, Ending { over: (3, 3), ..Ending::default() });
    assert_eq!((first.get(), last.get()), (1, 1), "what was over is not run again");
    assert_eq!(*heard.parts.borrow(), ["hash half", "kv one"]);
    let whole = Whole::of(&plans(false), &journal);
    assert_eq!(datasets(&whole), ["one", "whole"]);
    assert_eq!((whole.head.sittings.len(), whole.suites[0].standing().as_str()), (2, "done"));
    assert!(!whole.suites[0].run.as_ref().unwrap().stopped);
    whole.keep(&journal).unwrap();
    let kept = crate::core::run_files::load(&*fs, &dir.join("suites/hash.json")).unwrap();
    assert_eq!(Some(&kept), whole.suites[0].run.as_ref(), "a stored run like any other");
}

/// Goal: a part that fails does not end the others, its error is stored, and resuming the run tries
/// it again. Method: a part that fails only the first time.
#[test]
fn failures_stay_with_their_part() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let ran = Rc::new(Cell::new(0));
    let plans = |fails: bool| {
        let bad = part("bad", move |_: &Stop| {
            if fails { Err(Error::engine("the disk", "is on fire")) } else { Ok(run_of("mended", false)) }
        });
        vec![suite(SuiteName::Pool, vec![bad, good("good", &ran)])]
    };
    let mut journal = begun(&fs, &options());
    let heard = EventLog::default();
    let ending = measure(&plans(true), &mut journal, &heard, &Stop::default()).unwrap();
    assert_eq!(ending.failed, [(SuiteName::Pool, "bad".to_owned(), "the disk: is on fire".to_owned())]);
    assert!(!ending.stopped && ran.get() == 1);
    assert!(heard.notes.borrow().iter().any(|note| note == "pool, bad failed: the disk: is on fire"));
    let whole = Whole::of(&plans(true), &journal);
    assert_eq!(
        (whole.suites[0].standing().as_str(), datasets(&whole)),
        ("1 of 2 parts, 1 failed", vec!["good".to_owned()])
    );
    let stopped = |whole: &Whole| whole.suites[0].run.as_ref().unwrap().stopped;
    assert!(stopped(&whole), "it is no whole run to hold others against");
    let told = text::to_text(&whole);
    assert!(told.contains("pool, bad failed: the disk: is on fire"), "{told}");
    let dir = journal.dir().to_owned();
    drop(journal);
    let mut journal = resumed(&fs, &dir);
    let ending = measure(&plans(false), &mut journal, &EventLog::default(), &Stop::default()).unwrap();
    assert_eq!((ending.over, ran.get()), ((2, 2), 1));
    let whole = Whole::of(&plans(false), &journal);
    assert!(whole.suites[0].standing() == "done" && !stopped(&whole));
}

/// Goal: a part that is measured again and ends early loses no earlier measurements. Method: a part
/// in which a contender failed. The next time the user ends it, then it fails, each time with fewer
/// measurements. At last it completes with fewer, and that result counts.
#[test]
fn earlier_measurements_survive_a_shorter_rerun() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let plans = |turn: u32, stop: &Stop| {
        let stop = stop.clone();
        let again = part("again", move |_: &Stop| {
            let mut run = sample_run();
            match turn {
                0 => {}
                // More measurements than before, but only from one round.
                1 => {
                    run.measurements.iter_mut().for_each(|measurement| measurement.samples.truncate(1));
                    run.measurements.push(run.measurements[0].clone());
                }
                _ => run.measurements.truncate(1),
            }
            match turn {
                0 => {
                    let first = run.contenders.first_mut().unwrap();
                    Contender::set_failures(&mut first.settings, ["seq: no space left".to_owned()]);
                }
                1 => {
                    stop.ask();
                    run.stopped = true;
                }
                2 => return Err(Error::engine("the disk", "is on fire")),
                _ => {}
            }
            Ok(Content::Run(run))
        });
        vec![suite(SuiteName::Kv, vec![again])]
    };
    let mut journal = begun(&fs, &options());
    let dir = journal.dir().to_owned();
    let all = sample_run().measurements.len();
    for (turn, figures) in [(0, all), (1, all), (2, all), (3, 1)] {
        let (stop, heard) = (Stop::default(), EventLog::default());
        measure(&plans(turn, &stop), &mut journal, &heard, &stop).unwrap();
        let kept = journal.result(SuiteName::Kv, "again").unwrap();
        assert_eq!((kept.figures().0, &kept.state), (figures, &PartState::Done), "{turn}");
        let is_told = heard.notes.borrow().iter().any(|note| note.contains("an earlier sitting"));
        assert_eq!(is_told, turn == 1 || turn == 2, "{turn}: {:?}", heard.notes.borrow());
        drop(journal);
        journal = resumed(&fs, &dir);
    }
}

/// Goal: a report contains everything that was measured, even what could not be measured today.
/// Method: a run of two suites, and then plans in which one has lost a part and the other cannot
/// run.
#[test]
fn parts_missing_from_the_plan_are_shown() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let ran = Rc::new(Cell::new(0));
    let plans = [
        suite(SuiteName::Kv, vec![good("a", &ran), good("b", &ran)]),
        suite(SuiteName::Index, vec![good("Q1", &ran)]),
    ];
    let mut journal = begun(&fs, &options());
    measure(&plans, &mut journal, &EventLog::default(), &Stop::default()).unwrap();
    let missing = SuitePlan {
        missing: Some("install postgresql-15".to_owned()),
        ..suite(SuiteName::Index, Vec::new())
    };
    let whole = Whole::of(&[suite(SuiteName::Kv, vec![good("b", &ran)]), missing], &journal);
    assert_eq!(datasets(&whole), ["b", "a", "Q1"]);
    let index = &whole.suites[1];
    assert_eq!((index.missing.as_ref(), index.standing().as_str()), (None, "done"));
}

/// Goal: a part in which a contender failed, for example because of a full disk, is measured again
/// when the run is resumed. A contender that is not installed does not cause that.
/// Method: one contender that fails the first time, and one that is always absent.
#[test]
fn failed_contender_is_measured_again_on_resume() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let ran = Rc::new(Cell::new(0));
    let plans = |fails: bool| {
        let ran = Rc::clone(&ran);
        let full = part("full", move |_: &Stop| {
            ran.set(ran.get() + 1);
            let mut run = sample_run();
            run.contenders.push(Contender::left_out("lmdb", "lmdb", &"is not installed"));
            if fails {
                let first = run.contenders.first_mut().unwrap();
                Contender::set_failures(&mut first.settings, ["seq: no space left".to_owned()]);
            }
            Ok(Content::Run(run))
        });
        vec![suite(SuiteName::Kv, vec![full])]
    };
    let mut journal = begun(&fs, &options());
    let dir = journal.dir().to_owned();
    measure(&plans(true), &mut journal, &EventLog::default(), &Stop::default()).unwrap();
    for (fails, runs) in [(true, 2), (false, 3), (false, 3)] {
        drop(journal);
        journal = resumed(&fs, &dir);
        let ending = measure(&plans(fails), &mut journal, &EventLog::default(), &Stop::default()).unwrap();
        assert_eq!((ending.over, ran.get()), ((1, 1), runs));
    }
}

/// Goal: a part that exceeds its share is cut, says so, keeps its measurements, and is final, so
/// that the others get their time. Method: a tiny budget, and a part that continues until it is
/// stopped.
#[test]
fn slow_parts_are_cut() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let ran = Rc::new(Cell::new(0));
    let endless = |stop: &Stop| {
        while !stop.is_reached() {
            std::thread::yield_now();
        }
        Ok(run_of("cut", true))
    };
    let plans = vec![suite(SuiteName::Kv, vec![part("endless", endless), good("quick", &ran)])];
    let mut journal = begun(&fs, &Options { budget_seconds: Some(0.02), ..options() });
    let heard = EventLog::default();
    let ending = measure(&plans, &mut journal, &heard, &Stop::default()).unwrap();
    assert_eq!((ending.stopped, ending.over, ran.get()), (false, (2, 2), 1));
    assert!(heard.notes.borrow().iter().any(|note| note.starts_with("kv, endless: its time was up")));
    let whole = Whole::of(&plans, &journal);
    assert_eq!(whole.suites[0].standing(), "done, 1 cut");
    assert_eq!(datasets(&whole), ["cut", "quick"]);
    assert!(journal.result(SuiteName::Kv, "endless").unwrap().is_final());
}

/// Goal: each omission is reported once, by whatever and however often it is raised. Method: two
/// parts with the same note, and a suite without its software.
#[test]
fn omissions_are_reported_once() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let ran = Rc::new(Cell::new(0));
    let missing = SuitePlan {
        missing: Some("install postgresql-15".to_owned()),
        ..suite(SuiteName::Index, Vec::new())
    };
    let plans = vec![suite(SuiteName::Kv, vec![good("a", &ran), good("b", &ran)]), missing];
    let mut journal = begun(&fs, &options());
    let heard = EventLog::default();
    measure(&plans, &mut journal, &heard, &Stop::default()).unwrap();
    assert_eq!(
        *heard.notes.borrow(),
        ["index is left out: install postgresql-15", "rocksdb is left out: no library"]
    );
    let whole = Whole::of(&plans, &journal);
    assert_eq!((whole.suites[1].standing().as_str(), whole.suites[1].has_figures()), ("left out", false));
}

/// Goal: killing the process loses only the current part, and a damaged file loses only its part.
/// Method: the directory as a kill leaves it, with one part's file cut in half.
#[test]
fn damaged_parts_are_measured_again() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let ran = Rc::new(Cell::new(0));
    let plans = vec![suite(SuiteName::Kv, vec![good("a / b", &ran), good("a : b", &ran)])];
    let mut journal = begun(&fs, &options());
    measure(&plans, &mut journal, &EventLog::default(), &Stop::default()).unwrap();
    let dir = journal.dir().to_owned();
    drop(journal);
    let files: Vec<PathBuf> = fs.read_dir(&dir.join("parts")).unwrap();
    assert_eq!(
        files.len(),
        2,
        "names that differ only in what files cannot be called have files of their own"
    );
    let file = fs.open(&files[0], OpenOptions::write()).unwrap();
    file.set_len(file.len().unwrap() / 2).unwrap();
    drop(file);
    let mut journal = resumed(&fs, &dir);
    let heard = EventLog::default();
    measure(&plans, &mut journal, &heard, &Stop::default()).unwrap();
    assert_eq!(ran.get(), 3);
    assert!(heard.notes.borrow()[0].contains("counts as not measured"), "{:?}", heard.notes.borrow());
}

/// Goal: measurements of two machines or two builds do not mix in one report, nor do two processes
/// in one directory, and a directory that holds no run is refused.
#[test]
fn other_machines_builds_and_processes_are_refused() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut journal = begun(&fs, &options());
    let dir = journal.dir().to_owned();
    let error = Journal::open(&fs, &dir).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    assert_eq!(Journal::read(&fs, &dir).unwrap().head(), journal.head());
    let mut other = sitting();
    other.machine[2].1 = "7".to_owned();
    journal.resume(other.clone()).unwrap();
    other.machine[1].1 = "def".to_owned();
    let error = journal.resume(other).unwrap_err().to_string();
    assert!(error.contains("commit \"abc\"") && error.contains("\"def\""), "{error}");
    let mut newer = sitting();
    newer.machine[3].1 = "7".to_owned();
    let error = journal.resume(newer).unwrap_err().to_string();
    assert!(error.contains("kernel \"6\"") && error.contains("\"7\""), "{error}");
    // An unknown mark, in an old run or in the current sitting, matches any other.
    let with =
        |build: &str, data: &str| Sitting { build: build.to_owned(), data: data.to_owned(), ..sitting() };
    for (build, data) in [("1", "x"), ("", ""), ("1", "x")] {
        journal.resume(with(build, data)).unwrap();
    }
    for (build, data, told) in [("2", "x", "program \"1\""), ("1", "y", "data file \"x\"")] {
        let error = journal.resume(with(build, data)).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    drop(journal);
    let second = begun(&fs, &options());
    assert_ne!(second.dir(), dir, "a run never goes into another one's directory");
    let error = Journal::open(&fs, Path::new("/results")).unwrap_err().to_string();
    assert!(error.contains("/results") && error.contains("run.json"), "{error}");
}

/// Goal: different records under the same name are detected. Method: the mark of a file before and
/// after a change of one byte, and of a missing file.
#[test]
fn records_are_marked() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = Options { data: Some(DataFile::new("/places.csv", "id")), ..options() };
    let mark = || sitting().marked(&*fs, &options).data;
    assert_eq!(mark(), "");
    let file = fs.open(Path::new("/places.csv"), OpenOptions::create_new()).unwrap();
    file.write_all_at(b"id,name\n", 0).unwrap();
    let before = mark();
    assert!(before.starts_with("8 bytes, "), "{before}");
    file.write_all_at(b"N", 3).unwrap();
    assert_ne!(mark(), before);
}

/// Goal: a quick run takes as many rounds as an interval needs for its stated confidence, unless
/// the user says otherwise. Method: the options of each suite.
#[test]
fn quick_runs_take_enough_rounds() {
    for (said, rounds) in [(None, 5), (Some(2), 2)] {
        let options = Options { rounds: said, ..Options::quick() };
        let asked = [
            sizes::hash(&options, None).rounds,
            sizes::kv(&options, installed(), None).rounds,
            sizes::pool(&options, installed()).rounds,
            sizes::sql(&options, installed()).rounds,
            sizes::index(&options).rounds,
        ];
        assert_eq!(asked, [rounds; 5]);
    }
}

/// Goal: every suite has parts with unique names and estimates that can share a budget, in quick
/// and full mode. A quick run's estimates stay within its budget, so that no part is cut on the
/// machine for which they were made. Method: the plans, without measuring.
#[test]
fn plans_are_sound() {
    for options in [Options::quick(), Options::full(), Options { scale: 0.001, ..Options::quick() }] {
        options.check().unwrap();
        let plans = plan(&options, installed(), None);
        let mut sum = 0.0;
        for plan in &plans {
            let mut names: Vec<&str> = plan.parts.iter().map(|part| part.name.as_str()).collect();
            assert_eq!(plan.missing.is_some(), names.is_empty(), "{plan:?}");
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
            assert!(
                plan.parts
                    .iter()
                    .all(|part| part.estimated_seconds > 0.0 && part.estimated_seconds.is_finite()),
                "{plan:?}"
            );
            sum += plan.parts.iter().map(|part| part.estimated_seconds).sum::<f64>();
        }
        assert_eq!(plans.len(), 6);
        if let Some(budget) = options.budget_seconds {
            assert!(sum < budget, "{sum} of {budget}: {plans:?}");
        }
    }
    let kept = serde_json::to_string(&Options::full()).unwrap();
    assert_eq!(serde_json::from_str::<Options>(&kept).unwrap(), Options::full());
}

/// Goal: invalid options are refused with the expected values.
#[test]
fn impossible_options_are_refused() {
    for (options, word) in [
        (Options { suites: Vec::new(), ..options() }, "suites"),
        (Options { scale: 0.0, ..options() }, "scale 0"),
        (Options { scale: f64::NAN, ..options() }, "scale"),
        (Options { rounds: Some(0), ..options() }, "rounds 0"),
        (Options { budget_seconds: Some(f64::NAN), ..options() }, "budget"),
    ] {
        let error = options.check().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    assert!(SuiteName::parse("dkv").unwrap_err().to_string().contains("hash, kv, pool"));
}
