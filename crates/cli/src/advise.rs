//! `cairn advise`: recommends a store for a workload on this machine.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;

use cairn_bench::advise::{self, Advice, Effort, Options, Question};
use cairn_bench::catalog::installed;
use cairn_bench::core::probe::ProbeEffort;
use cairn_bench::core::process::Stop;
use cairn_bench::core::worker::Worker;
use cairn_bench::suites::kv::Mix;
use cairn_trace::Trace;
use cairn_vfs::Fs;
use clap::ValueEnum;

use crate::args::advise::{AdviseArgs, EffortArg};
use crate::args::bytes::{bytes_between, some_bytes};
use crate::args::{Promise, number, time, work_dir};
use crate::bench::run::end_on_ctrl_c;
use crate::bench::{read_text, write_file};
use crate::error::{Error, Result};
use crate::input::name_of;
use crate::output::{Outcome, Output, is_stdout};
use crate::place;
use crate::progress::SuiteBar;
use crate::trace::tell_flaw;

/// Recommends stores, writes a workload file, or checks the quality of the recommendations. The
/// outcome is "not found" if no store meets the constraints.
pub fn run(fs: &Arc<dyn Fs>, args: &AdviseArgs) -> Result<Outcome> {
    // Check this first, because otherwise the user's answers would be lost.
    if let Some(path) = args.write_workload.as_deref().filter(|path| !is_stdout(path)) {
        place::expect_no_file(fs, path)?;
    }
    let stop = Stop::after(None);
    let ctrl_c = end_on_ctrl_c(&stop)?;
    // Let a signal end the process at once: the answers can be typed again, and a signal does not
    // interrupt the read from the terminal.
    ctrl_c.end_at_once(true);
    let question = question(fs, args)?;
    if let Some(path) = &question.trace {
        tell_flaw(&Trace::open(&**fs, path)?);
    }
    ctrl_c.end_at_once(false);
    let mut out = Output::new();
    if let Some(path) = &args.write_workload {
        write_file(fs, path, to_json(&question)?.as_bytes())?;
        if !is_stdout(path) {
            out.line(path.display())?;
        }
        out.finish()?;
        return Ok(Outcome::Done);
    }
    let options = options(args)?;
    let bar = SuiteBar::new();
    if args.check {
        let mut workloads = advise::check::workloads();
        if let Some(word) = &args.filter {
            workloads.retain(|workload| workload.name.contains(word.as_str()));
            if workloads.is_empty() {
                let names: Vec<String> =
                    advise::check::workloads().into_iter().map(|workload| workload.name).collect();
                let names = names.join("', '");
                return Err(Error::usage(format!(
                    "no workload has '{word}' in its name; the workloads are '{names}'"
                )));
            }
        }
        let rows = advise::check::check(&workloads, &options, &bar, &stop)?;
        if args.json {
            out.bytes(to_json(&rows)?.as_bytes())?;
        } else {
            out.bytes(advise::check::to_markdown(&rows).as_bytes())?;
        }
        out.finish()?;
        return match stop.is_asked() {
            true => Err(Error::Interrupted(format!(
                "{} of {} workloads were answered",
                rows.len(),
                workloads.len()
            ))),
            false => Ok(Outcome::Done),
        };
    }
    let advice = advise::advise(&question, &options, &bar, &stop)?;
    drop(bar);
    show(&mut out, &advice, args.json)?;
    out.finish()?;
    if advice.stopped {
        return Err(Error::Interrupted("not all stores were run".to_owned()));
    }
    Ok(Outcome::found(advice.choice.name().is_some()))
}

fn show(out: &mut Output, advice: &Advice, json: bool) -> Result<()> {
    match json {
        true => out.bytes(to_json(advice)?.as_bytes()),
        false => out.bytes(advise::to_text(advice).as_bytes()),
    }
}

fn to_json(of: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(of).map_err(|error| Error::usage(error.to_string()))?;
    Ok(text + "\n")
}

fn options(args: &AdviseArgs) -> Result<Options> {
    let effort = match args.effort {
        EffortArg::Quick => Effort { finalists: 3, rounds: 5, load_secs: 25.0, turn_secs: 0.4 },
        EffortArg::Usual => Effort::default(),
        EffortArg::Full => Effort { finalists: 6, rounds: 9, load_secs: 400.0, turn_secs: 3.0 },
    };
    Ok(Options {
        stores: &installed().kv,
        work_dir: work_dir(args.work_dir.as_deref()),
        worker: Some(Worker::this_program()?),
        effort,
        seed: args.seed,
        probes: Some(ProbeEffort::quick()),
    })
}

/// Builds the question from the workload file, with options taking precedence. Without either, asks
/// on a terminal.
fn question(fs: &Arc<dyn Fs>, args: &AdviseArgs) -> Result<Question> {
    let mut question = match (&args.workload, &args.trace) {
        (Some(path), _) => advise::from_json(&read_text(fs, path)?, &name_of(path), &installed().kv)?,
        (None, Some(path)) => advise::from_trace(path, args.threads)?,
        (None, None) => Question::default(),
    };
    if let Some(trace) = question.trace.as_ref().filter(|_| args.trace.is_none()) {
        let given = [
            ("--records", args.records.is_some()),
            ("--key-size", args.key_size.is_some()),
            ("--value-size", args.value_size.is_some()),
            (
                "--read, --update, --insert, --scan or --read-modify-write",
                shares(args).iter().any(Option::is_some),
            ),
            ("--scan-records", args.scan_records.is_some()),
            ("--distribution", args.distribution.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let file = args.workload.as_deref().map(name_of).unwrap_or_default();
            return Err(Error::usage(format!(
                "{name}: {file} names the trace {}, which determines it",
                trace.display()
            )));
        }
    }
    let is_silent = args.workload.is_none()
        && args.trace.is_none()
        && !args.check
        && shares(args).iter().all(Option::is_none);
    let workload = &mut question.workload;
    let given = shares(args);
    if given.iter().any(Option::is_some) {
        let [read, update, insert, scan, read_modify_write] = given.map(Option::unwrap_or_default);
        if read + update + insert + scan + read_modify_write <= 0.0 {
            let what = "--read, --update, --insert, --scan, --read-modify-write: expected one of them over 0";
            return Err(Error::usage(what));
        }
        workload.mix = Mix { read, update, scan, insert, read_modify_write };
    }
    set(&mut workload.records, args.records);
    set(&mut workload.key_bytes, args.key_size);
    set(&mut workload.value_bytes, args.value_size.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)));
    set(&mut workload.scan_records, args.scan_records);
    set(&mut workload.distribution, args.distribution);
    set(&mut workload.threads, args.threads);
    set(&mut workload.durability, args.durability.map(Into::into));
    let constraints = &mut question.constraints;
    constraints.memory_bytes = args.memory.or(constraints.memory_bytes);
    constraints.disk_bytes = args.disk.or(constraints.disk_bytes);
    constraints.p99_us = args.p99.map(time::as_micros).or(constraints.p99_us);
    if !args.dbs.is_empty() {
        constraints.stores.clone_from(&args.dbs);
    }
    if is_silent {
        if !io::stdin().is_terminal() {
            let what = "no workload: expected a workload file, or shares such as --read 95 --update 5";
            return Err(Error::usage(what));
        }
        asked(&mut question, &mut io::stdin().lock(), &mut io::stderr())?;
    }
    question.workload.check()?;
    if question.constraints.p99_us.is_some_and(|micros| !micros.is_finite() || micros <= 0.0) {
        return Err(Error::usage("--p99: expected a number over 0".to_owned()));
    }
    Ok(question)
}

fn shares(args: &AdviseArgs) -> [Option<f64>; 5] {
    [args.read, args.update, args.insert, args.scan, args.read_modify_write]
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

/// Asks for the values of all options, in the words of the options. An empty line keeps the value
/// in brackets.
fn asked(question: &mut Question, from: &mut dyn BufRead, to: &mut dyn Write) -> Result<()> {
    let Question { workload, constraints, .. } = question;
    let mut ask = Ask { from, to };
    ask.one("Entries", &mut workload.records, number::between(100, u64::from(u32::MAX)))?;
    let sizes = bytes_between(8, 1 << 24);
    ask.one("Bytes per value", &mut workload.value_bytes, |answer| {
        sizes(answer).and_then(|bytes| usize::try_from(bytes).map_err(|error| error.to_string()))
    })?;
    let mix = &mut workload.mix;
    loop {
        ask.one("Share of lookups", &mut mix.read, number::share)?;
        ask.one("Share of writes of existing keys", &mut mix.update, number::share)?;
        ask.one("Share of writes of new keys", &mut mix.insert, number::share)?;
        ask.one("Share of scans", &mut mix.scan, number::share)?;
        if mix.read + mix.update + mix.insert + mix.scan + mix.read_modify_write > 0.0 {
            break;
        }
        ask.say("expected one share over 0")?;
    }
    ask.one(
        "Distribution of keys (uniform, zipfian, latest, hot set, sequential)",
        &mut workload.distribution,
        |answer| answer.parse().map_err(|error: cairn_bench::Error| error.to_string()),
    )?;
    ask.one("Threads", &mut workload.threads, number::between(1, 256))?;
    ask.one(
        "Durability of a write when its call returns (memory, buffered, sync)",
        &mut workload.durability,
        |answer| {
            let promise = Promise::from_str(answer, true);
            promise.map(Into::into).map_err(|_| "expected memory, buffered or sync".to_owned())
        },
    )?;
    let any = "such as 256MiB, empty for no limit";
    ask.limit("Maximum memory of the store", any, &mut constraints.memory_bytes, some_bytes)?;
    ask.limit("Maximum disk space of its files", any, &mut constraints.disk_bytes, some_bytes)?;
    ask.limit(
        "Maximum microseconds for 99 of 100 operations",
        "or a time such as 2ms, empty for no limit",
        &mut constraints.p99_us,
        |answer| time::some_micros(answer).map(time::as_micros),
    )
}

struct Ask<'a> {
    from: &'a mut dyn BufRead,
    to: &'a mut dyn Write,
}

impl Ask<'_> {
    /// Asks for a value that has a default.
    fn one<T: std::fmt::Display>(
        &mut self,
        what: &str,
        place: &mut T,
        read: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<()> {
        if let Some(answer) = self.answer(&format!("{what} [{place}]"), read)? {
            *place = answer;
        }
        Ok(())
    }

    /// Asks for an optional value.
    fn limit<T: std::fmt::Display>(
        &mut self,
        what: &str,
        hint: &str,
        place: &mut Option<T>,
        read: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<()> {
        let shown = place.as_ref().map_or_else(|| hint.to_owned(), ToString::to_string);
        if let Some(answer) = self.answer(&format!("{what} [{shown}]"), read)? {
            *place = Some(answer);
        }
        Ok(())
    }

    /// Asks until the answer is valid; returns `None` for an empty one.
    fn answer<T>(
        &mut self,
        what: &str,
        read: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<Option<T>> {
        loop {
            write!(self.to, "{what}: ").and_then(|()| self.to.flush()).map_err(failed)?;
            let mut line = String::new();
            if self.from.read_line(&mut line).map_err(failed)? == 0 {
                return Err(Error::usage(
                    "the terminal was closed before all questions were answered".to_owned(),
                ));
            }
            let answer = line.trim();
            if answer.is_empty() {
                return Ok(None);
            }
            match read(answer) {
                Ok(value) => return Ok(Some(value)),
                // Some messages already quote the answer.
                Err(why) if why.contains(&format!("{answer:?}")) => self.say(&why)?,
                Err(why) => self.say(&format!("{answer:?}: {why}"))?,
            }
        }
    }

    fn say(&mut self, what: &str) -> Result<()> {
        writeln!(self.to, "{what}").map_err(failed)
    }
}

fn failed(error: io::Error) -> Error {
    Error::usage(format!("the terminal: {error}"))
}

#[cfg(test)]
mod tests {
    use cairn_bench::core::workload::{Distribution, Durability};

    use super::*;

    /// Goal: each question is asked until it gets a valid answer, and an empty answer keeps the
    /// default.
    /// Method: valid, empty and invalid answers.
    #[test]
    fn questions() {
        let mut question = Question::default();
        let answers =
            "5000\n\n0\n0\n0\n0\n80\nmany\n-1\n20\n0\n0\nzipf\nuniform\n2\ntrue\nsync\n0\n1MiB\n\n500\n";
        let mut said = Vec::new();
        asked(&mut question, &mut answers.as_bytes(), &mut said).unwrap();
        let Question { workload, constraints, .. } = &question;
        assert_eq!((workload.records, workload.value_bytes, workload.threads), (5000, 100, 2));
        assert_eq!((workload.mix.read, workload.mix.update), (80.0, 20.0));
        assert_eq!((workload.durability, workload.distribution), (Durability::Sync, Distribution::Uniform));
        assert_eq!(
            (constraints.memory_bytes, constraints.disk_bytes, constraints.p99_us),
            (Some(1 << 20), None, Some(500.0))
        );
        let said = String::from_utf8(said).unwrap();
        for part in [
            "expected one share over 0",
            "\"many\": expected a number of 0 or more",
            "\"-1\": expected a number of 0 or more",
            "distribution \"zipf\": expected uniform",
            "\"true\": expected memory, buffered or sync",
            "\"0\": expected more than 0",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(asked(&mut Question::default(), &mut "1\n".as_bytes(), &mut Vec::new()).is_err());
        // Values given as options are the defaults in brackets.
        let mut said = Vec::new();
        asked(&mut question, &mut "\n".repeat(12).as_bytes(), &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.contains("Maximum memory of the store [1048576]: ")
                && said.contains("(memory, buffered, sync) [sync]: "),
            "{said}"
        );
        assert_eq!(question.constraints.p99_us, Some(500.0));
    }
}
