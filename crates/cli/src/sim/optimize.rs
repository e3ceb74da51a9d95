//! `cairn sim optimize`: the Pareto front over objectives, and which limit binds.

use std::path::Path;
use std::sync::Arc;

use cairn_sim::import::{export_kv, rocksdb_changes};
use cairn_sim::options::Engine;
use cairn_sim::results::Outcome as RunOutcome;
use cairn_sim::{Config, Options, Results};
use cairn_vfs::Fs;
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::run::{left_out, tell};
use super::setup::{Setup, setup};
use super::vary::{Axis, Point, points, run_until_ctrl_c};
use crate::args::sim::{Objective, OptimizeArgs, VaryArgs};
use crate::bench::write_file;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, human};

/// The default number of configurations that are tried.
const SAMPLES: usize = 160;

/// The settings that vary by default: those that tuning guides recommend to change first.
const USUAL: [&str; 6] = [
    "options.write_buffer_size=16MiB..256MiB",
    "options.max_write_buffer_number=2..8",
    "options.max_bytes_for_level_multiplier=4.0..12.0",
    "options.level0_file_num_compaction_trigger=2..8",
    "options.max_background_jobs=2..8",
    "options.compaction_style=\"leveled\",\"universal\"",
];

impl Objective {
    fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }

    fn of(self, config: &Config, results: &Results) -> f64 {
        match self {
            Objective::WriteAmp => results.write_amplification,
            Objective::SpaceAmp => results.space_amplification,
            Objective::ReadP99 => results.get.p99_us,
            Objective::StallSecs => results.stall_secs.values().sum(),
            Objective::Memory => results.memory_bytes as f64,
            Objective::Cost => config.hardware.cost_per_hour * config.duration_secs / 3600.0,
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Objective::Memory => human(value as u64),
            Objective::ReadP99 => format!("{value:.1} µs"),
            Objective::StallSecs => format!("{value:.1} s"),
            Objective::Cost => format!("${value:.3}"),
            _ => format!("{value:.3}"),
        }
    }
}

/// An upper limit of an objective.
struct Limit {
    objective: Objective,
    most: f64,
}

impl Limit {
    fn parse(text: &str) -> Result<Limit> {
        let refuse =
            || Error::usage(format!("--at-most {text}: expected OBJECTIVE=NUMBER, such as space_amp=1.3"));
        let (name, most) = text.split_once('=').ok_or_else(refuse)?;
        let objective = Objective::from_str(name, false).map_err(|_| refuse())?;
        let most = super::setup::value_of(most).as_f64().ok_or_else(refuse)?;
        Ok(Limit { objective, most })
    }
}

/// A configuration that was tried.
struct Tried<'a> {
    point: &'a Point,
    results: &'a Results,
    scores: Vec<f64>,
}

/// Returns true if `a` is nowhere larger than `b`, and smaller somewhere.
fn dominates(a: &[f64], b: &[f64]) -> bool {
    let pairs = || a.iter().zip(b);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

/// Returns the configurations that no other one dominates, sorted by the first objective.
fn front<'a>(tried: Vec<Tried<'a>>) -> Vec<Tried<'a>> {
    let all: Vec<Vec<f64>> = tried.iter().map(|it| it.scores.clone()).collect();
    let mut front: Vec<Tried<'a>> =
        tried.into_iter().filter(|it| !all.iter().any(|other| dominates(other, &it.scores))).collect();
    front.sort_by(|a, b| a.scores.partial_cmp(&b.scores).unwrap_or(std::cmp::Ordering::Equal));
    front.dedup_by(|a, b| a.scores == b.scores);
    front
}

/// Searches, and prints the front.
pub fn run(fs: &Arc<dyn Fs>, args: &OptimizeArgs) -> Result<Outcome> {
    let mut out = Output::beside("--export", args.export.as_deref(), args.json)?;
    let limits: Vec<Limit> = args.at_most.iter().map(|text| Limit::parse(text)).collect::<Result<_>>()?;
    let Setup { config, notes, flaw } = setup(fs, &args.from)?;
    tell(&notes);
    let vary = VaryArgs {
        vary: match args.vary.vary.is_empty() {
            true => USUAL.map(str::to_owned).to_vec(),
            false => args.vary.vary.clone(),
        },
        samples: args.vary.samples.or(args.vary.vary.is_empty().then_some(SAMPLES)),
        threads: args.vary.threads,
    };
    let (axes, points) = points(&config, &vary)?;
    let (points, results, ended) = run_until_ctrl_c(points, vary.threads)?;
    let ends_well = |it: &Tried<'_>| it.results.outcome == RunOutcome::Done;
    let flushes = |it: &Tried<'_>| it.results.counters.flushes > 0;
    let within =
        |limit: &Limit, it: &Tried<'_>| limit.objective.of(&it.point.config, it.results) <= limit.most;
    let tried: Vec<Tried<'_>> = points
        .iter()
        .zip(&results)
        .map(|(point, results)| {
            let scores = args.objective.iter().map(|it| it.of(&point.config, results)).collect();
            Tried { point, results, scores }
        })
        .filter(ends_well)
        .collect();
    // A configuration that never flushed has written nothing, so its figures prove nothing.
    let (tried, idle): (Vec<_>, Vec<_>) = tried.into_iter().partition(flushes);
    // For each limit, the number of configurations that it alone excludes, and whether the front
    // would be better without it.
    let all_fit = |it: &Tried<'_>| limits.iter().all(|limit| within(limit, it));
    let binding: Vec<(String, usize)> = limits
        .iter()
        .map(|limit| {
            let others =
                |it: &&Tried<'_>| limits.iter().all(|other| std::ptr::eq(other, limit) || within(other, it));
            let kept_out = tried.iter().filter(others).filter(|it| !within(limit, it)).count();
            (format!("{}={}", limit.objective.name(), limit.most), kept_out)
        })
        .collect();
    let count = tried.len();
    let front = front(tried.into_iter().filter(all_fit).collect());
    let ours = cairn_sim::Simulation::run(&config)?;
    if let (Some(path), Some(first)) = (&args.export, front.first()) {
        export(fs, path, &config.options, &first.point.config.options)?;
    }
    let shown = Shown {
        axes: &axes,
        args,
        front: &front,
        binding,
        tried: count,
        idle: idle.len(),
        config: &config,
        ours: &ours,
        flaw: flaw.as_deref(),
    };
    if args.json {
        out.json(&shown.json())?
    } else {
        out.bytes(shown.text().as_bytes())?
    }
    out.finish()?;
    match ended {
        Some(error) => Err(error),
        None => Ok(Outcome::found(!front.is_empty())),
    }
}

/// Writes the changes from `before` to `after` in the engine's own format.
fn export(fs: &Arc<dyn Fs>, path: &Path, before: &Options, after: &Options) -> Result<()> {
    let text = match after.engine {
        Engine::Rocksdb => rocksdb_changes(before, after)?,
        Engine::CairnKv => export_kv(after)? + "\n",
    };
    write_file(fs, path, text.as_bytes())?;
    tell(left_out(before, after).as_slice());
    Ok(())
}

struct Shown<'a> {
    axes: &'a [Axis],
    args: &'a OptimizeArgs,
    front: &'a [Tried<'a>],
    binding: Vec<(String, usize)>,
    tried: usize,
    /// The number of configurations that never flushed.
    idle: usize,
    config: &'a Config,
    ours: &'a Results,
    /// The flaw of the trace that all configurations ran on.
    flaw: Option<&'a str>,
}

impl Shown<'_> {
    fn json(&self) -> Value {
        let objectives = |config: &Config, results: &Results| -> Map<String, Value> {
            let all = self.args.objective.iter();
            all.map(|it| (it.name(), it.of(config, results).into())).collect()
        };
        let front = self.front.iter().map(|it| {
            let settings: Map<String, Value> =
                self.axes.iter().map(|axis| axis.path.clone()).zip(it.point.values.iter().cloned()).collect();
            json!({ "settings": settings, "objectives": objectives(&it.point.config, it.results) })
        });
        let limits = self.binding.iter().map(|(limit, out)| json!({ "limit": limit, "keeps_out": out }));
        let mut found = json!({
            "tried": self.tried,
            "never_flushed": self.idle,
            "now": objectives(self.config, self.ours),
            "front": front.collect::<Vec<_>>(),
            "limits": limits.collect::<Vec<_>>(),
        });
        if let (Value::Object(fields), Some(flaw)) = (&mut found, self.flaw) {
            fields.insert("trace_flaw".to_owned(), flaw.into());
        }
        found
    }

    fn text(&self) -> String {
        let scores = |config: &Config, results: &Results| {
            let all = self.args.objective.iter();
            let each = all.map(|it| format!("{} {}", it.name(), it.show(it.of(config, results))));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut text = format!(
            "{} configurations ended well\nnow         {}\n",
            self.tried,
            scores(self.config, self.ours)
        );
        if self.idle > 0 {
            text += &format!("left out    {} that never flushed: too few writes to tell\n", self.idle);
        }
        if let Some(flaw) = self.flaw {
            text += &format!("workload    {flaw}\n");
        }
        if self.front.is_empty() {
            text += match (self.tried, self.idle) {
                (0, 1..) => "no configuration ever flushed: run for longer, or write more\n",
                _ => "no configuration is within the limits\n",
            };
        }
        for it in self.front {
            text += &format!("\n            {}\n", scores(&it.point.config, it.results));
            for (axis, value) in self.axes.iter().zip(&it.point.values) {
                text += &format!("              {}={value}\n", axis.path);
            }
        }
        for (limit, out) in &self.binding {
            text += &match out {
                0 => format!("\nlimit {limit} does not bind\n"),
                out => format!("\nlimit {limit} binds: it alone keeps out {out} configurations\n"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the front contains exactly the points that no other one dominates. Method: pairs by
    /// hand.
    #[test]
    fn domination_is_strict_somewhere() {
        assert!(dominates(&[1.0, 2.0], &[1.0, 3.0]));
        assert!(!dominates(&[1.0, 2.0], &[1.0, 2.0]));
        assert!(!dominates(&[0.0, 4.0], &[1.0, 3.0]));
    }

    /// Goal: limits are parsed, and errors quote the invalid text.
    #[test]
    fn limits_are_read() {
        let limit = Limit::parse("space_amp=1.3").unwrap();
        assert!(limit.objective == Objective::SpaceAmp && limit.most == 1.3);
        assert_eq!(Limit::parse("memory=1GiB").unwrap().most, 1_073_741_824.0);
        for wrong in ["space=1", "space_amp", "space_amp=x"] {
            assert!(Limit::parse(wrong).is_err_and(|error| error.to_string().contains(wrong)));
        }
    }
}
