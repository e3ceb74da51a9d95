//! Many configurations: a grid or a Latin hypercube over settings, run on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_bench::core::process::Stop;
use cairn_sim::{Config, Results, Simulation};
use cairn_vfs::thread;
use cairn_vfs::{Rng, SeededRng};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::setup::{value_of, with};
use crate::args::sim::{CONFIGS_MAX, VaryArgs};
use crate::bench::run::end_on_ctrl_c;
use crate::error::{Error, Result};

/// A setting and its possible values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The path of the setting.
    pub path: String,
    values: Values,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    List(Vec<Value>),
    /// From `low` to `high`; whole numbers if `is_whole`; in equal factors instead of steps if
    /// `is_log`.
    Range {
        low: f64,
        high: f64,
        is_whole: bool,
        is_log: bool,
    },
}

/// One configuration, with the values that it was made from.
#[derive(Debug, Clone)]
pub struct Point {
    /// One value per axis.
    pub values: Vec<Value>,
    /// The configuration.
    pub config: Config,
}

impl Axis {
    /// Parses `PATH=A,B,C` or `PATH=LOW..HIGH`.
    pub fn parse(text: &str) -> Result<Axis> {
        let refuse = || Error::usage(format!("--vary {text}: expected PATH=A,B,C or PATH=LOW..HIGH"));
        let (path, values) = text.split_once('=').ok_or_else(refuse)?;
        if path.is_empty() || values.is_empty() {
            return Err(refuse());
        }
        let values = match values.split_once("..") {
            Some((low, high)) => {
                let number =
                    |text: &str| value_of(text).as_f64().filter(|value| value.is_finite()).ok_or_else(refuse);
                let (from, to) = (number(low)?, number(high)?);
                if from >= to {
                    return Err(Error::usage(format!("--vary {text}: the range ends before it begins")));
                }
                let is_whole = value_of(low).is_u64() && value_of(high).is_u64();
                Values::Range { low: from, high: to, is_whole, is_log: from > 0.0 && to / from >= 16.0 }
            }
            None => Values::List(split(values).map(value_of).collect()),
        };
        Ok(Axis { path: path.to_owned(), values })
    }

    /// Returns the value at a position from 0 to 1.
    fn at(&self, share: f64) -> Value {
        match &self.values {
            Values::List(list) => {
                let at = (share * list.len() as f64) as usize;
                list.get(at.min(list.len().saturating_sub(1))).cloned().unwrap_or(Value::Null)
            }
            Values::Range { low, high, is_whole, is_log } => {
                let value = if *is_log { low * (high / low).powf(share) } else { low + (high - low) * share };
                if *is_whole { (value.round() as u64).into() } else { value.into() }
            }
        }
    }

    fn count(&self) -> Option<usize> {
        match &self.values {
            Values::List(list) => Some(list.len()),
            Values::Range { .. } => None,
        }
    }
}

/// Splits values at commas outside of braces and brackets.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        depth += i32::from("{[".contains(c)) - i32::from("}]".contains(c));
        c == ',' && depth == 0
    })
}

/// Creates all configurations. Errors: an axis is invalid or given twice; a range without
/// `--samples`; an invalid configuration, unless others of the hypercube are valid.
pub fn points(config: &Config, args: &VaryArgs) -> Result<(Vec<Axis>, Vec<Point>)> {
    let axes: Vec<Axis> = args.vary.iter().map(|text| Axis::parse(text)).collect::<Result<_>>()?;
    if axes.is_empty() {
        return Err(Error::usage("--vary PATH=VALUES: at least one setting must vary"));
    }
    let is_twice = |(at, axis): &(usize, &Axis)| axes.iter().take(*at).any(|other| other.path == axis.path);
    if let Some((_, axis)) = axes.iter().enumerate().find(is_twice) {
        return Err(Error::usage(format!(
            "--vary {}: given twice, expected all its values in one",
            axis.path
        )));
    }
    let shares = match args.samples {
        Some(count) => hypercube(axes.len(), count, config.seed),
        None => grid(&axes)?,
    };
    let mut points = Vec::with_capacity(shares.len());
    let mut refused = None;
    for shares in shares {
        let values: Vec<Value> = axes.iter().zip(shares).map(|(axis, share)| axis.at(share)).collect();
        let made = axes
            .iter()
            .zip(&values)
            .try_fold(config.clone(), |config, (axis, value)| with("--vary", &config, &axis.path, value))
            .and_then(|config| config.check().map(|()| config).map_err(Error::from));
        match made {
            Ok(config) => points.push(Point { values, config }),
            Err(error) if args.samples.is_none() => return Err(error),
            Err(error) => refused = Some(error),
        }
    }
    match (points.is_empty(), refused) {
        (true, Some(error)) => Err(error),
        _ => Ok((axes, points)),
    }
}

fn grid(axes: &[Axis]) -> Result<Vec<Vec<f64>>> {
    let mut all: Vec<Vec<f64>> = vec![Vec::new()];
    for axis in axes {
        let count = axis
            .count()
            .ok_or_else(|| Error::usage(format!("--vary {}: a range needs --samples", axis.path)))?;
        if all.len().saturating_mul(count) > CONFIGS_MAX {
            return Err(Error::usage(format!("--vary: more than {CONFIGS_MAX} configurations")));
        }
        let middle = |at: usize| (at as f64 + 0.5) / count as f64;
        let longer = |shares: &Vec<f64>, at: usize| [shares.as_slice(), &[middle(at)]].concat();
        all = all.iter().flat_map(|shares| (0..count).map(move |at| longer(shares, at))).collect();
    }
    Ok(all)
}

/// Creates a Latin hypercube: each of the `count` slices of each axis has one point (McKay,
/// Beckman, Conover, 1979).
fn hypercube(axes: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = SeededRng::new(seed ^ 0x1a71);
    let mut points = vec![Vec::with_capacity(axes); count];
    for _ in 0..axes {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        for (point, slice) in points.iter_mut().zip(order) {
            point.push((slice as f64 + rng.unit()) / count as f64);
        }
    }
    points
}

/// Creates a bar on standard error that counts completed configurations.
fn bar(points: &[Point]) -> ProgressBar {
    let bar = ProgressBar::new(points.len() as u64);
    match ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Returns true if the runs should end.
pub type IsEnded<'a> = &'a (dyn Fn() -> bool + Sync);

/// Like [`run_until`]. Errors: also [`Error::Interrupted`] if not all configurations were run.
#[cfg(any(feature = "ui", test))]
pub fn run_all(
    points: &[Point],
    threads: Option<usize>,
    bar: &ProgressBar,
    is_ended: IsEnded<'_>,
) -> Result<Vec<Results>> {
    let all: Option<Vec<Results>> = run_until(points, threads, bar, is_ended)?.into_iter().collect();
    all.ok_or_else(|| Error::Interrupted("the sweep".to_owned()))
}

/// Runs configurations until Ctrl-C. Returns the completed ones with their results, and an error to
/// report if some are missing.
///
/// Errors: [`Error::Interrupted`] if none was completed.
pub fn run_until_ctrl_c(
    points: Vec<Point>,
    threads: Option<usize>,
) -> Result<(Vec<Point>, Vec<Results>, Option<Error>)> {
    let stop = Stop::default();
    end_on_ctrl_c(&stop)?;
    let results = run_until(&points, threads, &bar(&points), &|| stop.is_reached())?;
    let count = points.len();
    let done = points.into_iter().zip(results).filter_map(|(point, results)| Some((point, results?)));
    let (points, results): (Vec<_>, Vec<_>) = done.unzip();
    let left = count - points.len();
    let ended = (left > 0)
        .then(|| Error::Interrupted(format!("{left} of {count} configurations did not run to their end")));
    match ended {
        Some(error) if points.is_empty() => Err(error),
        ended => Ok((points, results, ended)),
    }
}

/// Runs all configurations on this many threads until `is_ended`. Results are in the order of the
/// points, `None` for those that were not completed. `bar` counts the completed ones.
fn run_until(
    points: &[Point],
    threads: Option<usize>,
    bar: &ProgressBar,
    is_ended: IsEnded<'_>,
) -> Result<Vec<Option<Results>>> {
    let count = threads.unwrap_or_else(thread::available_parallelism).clamp(1, 1024).min(points.len().max(1));
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Results>>> = Mutex::new(vec![None; points.len()]);
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(at).filter(|_| !is_ended()) else { return };
            match run_one(&point.config, is_ended) {
                Ok(None) => return,
                Ok(Some(mut results)) => {
                    // Drop the series: a thousand of them would be gigabytes, and a sweep only
                    // needs totals.
                    results.series.clear();
                    if let Some(slot) = done.lock().unwrap_or_else(|it| it.into_inner()).get_mut(at) {
                        *slot = Some(results);
                    }
                }
                Err(error) => {
                    *failure.lock().unwrap_or_else(|it| it.into_inner()) = Some(error);
                    return;
                }
            }
            bar.inc(1);
        }
    };
    let started = thread::scope(|scope| {
        (0..count).try_for_each(|at| thread::spawn_scoped(scope, &format!("sim-{at}"), work).map(|_| ()))
    });
    bar.finish_and_clear();
    started.map_err(|error| Error::usage(format!("--threads {count}: {error}")))?;
    if let Some(error) = failure.into_inner().unwrap_or_else(|it| it.into_inner()) {
        return Err(error);
    }
    Ok(done.into_inner().unwrap_or_else(|it| it.into_inner()))
}

/// Returns the results of a run; `None` if it was ended early.
fn run_one(config: &Config, is_ended: IsEnded<'_>) -> Result<Option<Results>> {
    let mut simulation = Simulation::new(config)?;
    while simulation.step() {
        if is_ended() {
            return Ok(None);
        }
    }
    Ok(Some(simulation.results()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn args(vary: &[&str], samples: Option<usize>) -> VaryArgs {
        VaryArgs { vary: vary.iter().map(|text| (*text).to_owned()).collect(), samples, threads: Some(2) }
    }

    /// Goal: grids have all combinations, hypercubes have one point per slice, and errors name the
    /// axis.
    #[test]
    fn grids_and_hypercubes_have_their_points() {
        let config = Config::default();
        let grid =
            args(&["options.max_background_jobs=2,4", "options.write_buffer_size=8MiB,16MiB,64MiB"], None);
        let (_, points) = points(&config, &grid).unwrap();
        assert_eq!(points.len(), 6);
        assert_eq!(points[5].config.options.write_buffer_size, 64 << 20);
        let cube = args(&["options.max_bytes_for_level_multiplier=4.0..12.0"], Some(8));
        let (_, points) = super::points(&config, &cube).unwrap();
        let mut slices: Vec<u64> =
            points.iter().map(|it| (it.config.options.max_bytes_for_level_multiplier - 4.0) as u64).collect();
        slices.sort_unstable();
        assert_eq!(slices, (0..8).collect::<Vec<_>>());
        for wrong in
            ["seed", "seed=", "seed=5..1", "options.nothing=1,2", "seed=1..9", "options.num_levels=0,1"]
        {
            assert!(super::points(&config, &args(&[wrong], None)).is_err(), "{wrong}");
        }
        for samples in [None, Some(4)] {
            let twice = args(&["seed=1,2", "points=10,20", "seed=3,4"], samples);
            let error = super::points(&config, &twice).unwrap_err().to_string();
            assert!(error.contains("--vary seed: given twice"), "{error}");
        }
    }

    /// Goal: results are in the order of the points, whichever threads computed them.
    #[test]
    fn results_keep_their_order() {
        let config = Config { duration_secs: 30.0, ..Config::default() };
        let (_, points) = points(&config, &args(&["workload.traffic.mb_per_sec=5,10,20,40"], None)).unwrap();
        let bar = ProgressBar::hidden();
        let results = run_all(&points, Some(3), &bar, &|| false).unwrap();
        let rates: Vec<f64> = results.iter().map(|it| it.user_mb_per_sec.round()).collect();
        assert_eq!(rates, [5.0, 10.0, 20.0, 40.0]);
        assert_eq!(bar.position(), 4);
    }

    /// Goal: a sweep that is ended keeps its results so far. Method: four configurations on one
    /// thread, ended after two of them.
    #[test]
    fn ended_sweep_keeps_its_results() {
        let config = Config { duration_secs: 30.0, ..Config::default() };
        let (_, points) = points(&config, &args(&["workload.traffic.mb_per_sec=5,10,20,40"], None)).unwrap();
        let bar = ProgressBar::hidden();
        let results = run_until(&points, Some(1), &bar, &|| bar.position() >= 2).unwrap();
        let rates: Vec<Option<f64>> =
            results.iter().map(|it| it.as_ref().map(|it| it.user_mb_per_sec.round())).collect();
        assert_eq!(rates, [Some(5.0), Some(10.0), None, None]);
    }

    /// Goal: ending a sweep does not wait for the current run. Method: a run of a million flushes,
    /// ended from another thread.
    #[test]
    fn run_ends_within_its_time_limit() {
        let long = [
            "duration_secs=2592000",
            "options.write_buffer_size=4096",
            "options.target_file_size_base=4096",
            "options.max_bytes_for_level_base=4096",
            "options.block_size=256",
            "workload.keys=100000",
        ];
        let config = long.iter().fold(Config::default(), |config, setting| {
            let (path, value) = setting.split_once('=').unwrap();
            with("--vary", &config, path, &value_of(value)).unwrap()
        });
        let points = [Point { values: Vec::new(), config }];
        let is_ended = AtomicBool::new(false);
        let ran = thread::scope(|scope| {
            let ran = scope.spawn(|| {
                run_all(&points, Some(1), &ProgressBar::hidden(), &|| is_ended.load(Ordering::Relaxed))
            });
            cairn_vfs::Clock::sleep(&cairn_vfs::SystemClock::new(), std::time::Duration::from_millis(50));
            is_ended.store(true, Ordering::Relaxed);
            ran.join().unwrap()
        });
        assert!(matches!(ran, Err(Error::Interrupted(_))));
    }
}
