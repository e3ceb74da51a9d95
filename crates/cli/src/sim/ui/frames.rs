//! Frames: snapshots of the tree and its figures, small enough that a page can keep hundreds of
//! them.

use cairn_sim::Simulation;
use serde_json::{Value, json};

/// The maximum number of files of a level that a frame shows individually; beyond it, neighbours
/// are merged.
const FILES_MAX: usize = 120;

/// Remembers which points of a run have been shown.
#[derive(Debug, Default)]
pub struct Frames {
    shown: usize,
}

impl Frames {
    /// Returns frames of the points that were added since the last call.
    pub fn take(&mut self, simulation: &Simulation) -> Vec<Value> {
        let series = simulation.series();
        let new = series.get(self.shown..).unwrap_or(&[]);
        self.shown = series.len();
        new.iter().map(|point| frame(simulation, serde_json::to_value(point).unwrap_or_default())).collect()
    }
}

fn frame(simulation: &Simulation, point: Value) -> Value {
    let ids = (simulation.config().workload.keys / simulation.config().sampling()).max(1) as f64;
    let now = simulation.now();
    let levels: Vec<Value> = simulation
        .tree()
        .levels
        .iter()
        .map(|level| {
            let runs: Vec<Value> = level
                .runs
                .iter()
                .map(|run| {
                    let step = run.files.len().div_ceil(FILES_MAX).max(1);
                    let files = run.files.chunks(step).map(|files| {
                        let from = files.first().map_or(0.0, |file| f64::from(file.smallest) / ids);
                        let to = files.last().map_or(0.0, |file| f64::from(file.largest + 1) / ids);
                        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
                        let age =
                            files.iter().map(|file| now - file.newest_secs).fold(f64::INFINITY, f64::min);
                        let compacting = files.iter().any(|file| file.compacting);
                        let round = |value: f64| (value * 1e4).round() / 1e4;
                        json!([round(from), round(to), bytes, age.round(), u8::from(compacting), files.len()])
                    });
                    files.collect()
                })
                .collect();
            runs.into()
        })
        .collect();
    let (filled, sealed) = simulation.memtables();
    json!({
        "point": point,
        "levels": levels,
        "jobs": simulation.jobs(),
        "memtables": [filled, sealed],
        "explain": simulation.stall().cause().map(|cause| cause.explain()),
    })
}
