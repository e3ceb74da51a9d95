//! The figures of the last run in Prometheus' text format, and the number of active runs.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cairn_sim::Results;

use super::api::Shared;

/// Serves `/metrics`.
pub async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let text = to_text(shared.running(), shared.last().as_ref());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// A gauge: its name, its description, and the function that extracts it.
type Gauge = (&'static str, &'static str, fn(&Results) -> f64);

const GAUGES: [Gauge; 14] = [
    ("write_amplification", "Bytes flushed and compacted for each byte flushed", |it| it.write_amplification),
    ("space_amplification", "Bytes of files for each byte of live data", |it| it.space_amplification),
    ("read_blocks", "Data blocks that a lookup fetches", |it| {
        it.reads.as_ref().map_or(0.0, |reads| reads.blocks)
    }),
    ("cache_hit_ratio", "Share of fetched blocks in the cache", |it| {
        it.reads.as_ref().map_or(0.0, |reads| reads.cache_hit)
    }),
    ("user_bytes_per_second", "Accepted bytes of keys and values", |it| it.user_mb_per_sec * 1e6),
    ("stopped_ratio", "Share of the time that writers were stopped", |it| it.stopped),
    ("delayed_ratio", "Share of the time that writers were delayed", |it| it.delayed),
    ("is_stalled", "Whether writers wait at the end", |it| {
        f64::from(u8::from(it.stall_at_end.cause().is_some()))
    }),
    ("debt_bytes", "Bytes that compactions have yet to handle", |it| it.debt_bytes as f64),
    ("tree_bytes", "Bytes of all files", |it| it.tree_bytes as f64),
    ("cpu_ratio", "Use of the cores", |it| it.cpu),
    ("disk_read_ratio", "Use of the disk's read bandwidth", |it| it.disk_read),
    ("disk_write_ratio", "Use of the disk's write bandwidth", |it| it.disk_write),
    ("is_cpu_bound", "Whether background work waits for cores rather than for the disk", |it| {
        f64::from(u8::from(it.is_cpu_bound))
    }),
];

fn to_text(running: usize, results: Option<&Results>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "# HELP cairn_sim_running Runs and sweeps at work\n# TYPE cairn_sim_running gauge");
    let _ = writeln!(text, "cairn_sim_running {running}");
    let Some(results) = results else { return text + "# no run yet\n" };
    for (name, help, figure) in GAUGES {
        let _ = writeln!(text, "# HELP cairn_sim_{name} {help}\n# TYPE cairn_sim_{name} gauge");
        let _ = writeln!(text, "cairn_sim_{name} {}", figure(results));
    }
    let _ =
        writeln!(text, "# HELP cairn_sim_level_bytes Bytes of a level\n# TYPE cairn_sim_level_bytes gauge");
    for level in &results.levels {
        let _ = writeln!(text, "cairn_sim_level_bytes{{level=\"{}\"}} {}", level.level, level.bytes);
    }
    let _ =
        writeln!(text, "# HELP cairn_sim_level_files Files of a level\n# TYPE cairn_sim_level_files gauge");
    for level in &results.levels {
        let _ = writeln!(text, "cairn_sim_level_files{{level=\"{}\"}} {}", level.level, level.files);
    }
    let _ =
        writeln!(text, "# HELP cairn_sim_latency_seconds Latency\n# TYPE cairn_sim_latency_seconds gauge");
    for (operation, it) in [("put", &results.put), ("get", &results.get)] {
        for (quantile, us) in [("0.5", it.p50_us), ("0.99", it.p99_us), ("0.999", it.p999_us)] {
            let labels = format!("operation=\"{operation}\",quantile=\"{quantile}\"");
            let _ = writeln!(text, "cairn_sim_latency_seconds{{{labels}}} {}", us * 1e-6);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every line is a comment or a name with a number, and levels are included. Method: a
    /// short run.
    #[test]
    fn metrics_have_prometheus_text_format() {
        let config = cairn_sim::Config { duration_secs: 60.0, ..cairn_sim::Config::default() };
        let results = cairn_sim::Simulation::run(&config).unwrap();
        let text = to_text(2, Some(&results));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("cairn_sim_"), "{line}");
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        }
        assert!(text.contains("cairn_sim_level_bytes{level=\"0\"}"));
        assert!(text.contains("cairn_sim_running 2\n"));
        assert!(to_text(0, None).ends_with("cairn_sim_running 0\n# no run yet\n"));
    }

    /// Goal: the dashboard only uses metrics that exist. Method: every name in its expressions.
    #[test]
    fn the_dashboard_knows_the_metrics() {
        let config = cairn_sim::Config { duration_secs: 60.0, ..cairn_sim::Config::default() };
        let text = to_text(0, Some(&cairn_sim::Simulation::run(&config).unwrap()));
        let dashboard: serde_json::Value =
            serde_json::from_str(include_str!("../../../../../docs/grafana/simulator.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let names: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
        assert!(names.len() > 10);
        for name in names {
            assert!(text.contains(&format!("# TYPE {name} gauge")), "{name}");
        }
    }
}
