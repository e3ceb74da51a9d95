//! All stored runs in one picture for a page: a self-contained SVG, for light and dark pages.
//!
//! ```text
//!                         behind │ ahead
//!   Key-value store
//!     RocksDB              ●     │  ● ●●◆ ●          4.1x
//!     LMDB             ●  ●    ◆ │ ●●                0.8x
//! ```
//! A dot is a topic of the report's verdict, that is an operation and a metric: the geometric mean
//! of its cases. If the speed of an operation was measured in several ways, only the first of
//! [`SPEEDS`] counts. A diamond is the median of a row, which a single ratio of thousands does not
//! move. The colour of a dot shows on which side of 1 its interval lies.

use super::html::escape;
use super::matrix::Standing;
use super::model::Model;
use super::scale::Scale;
use super::verdict::{Topic, Verdict};
use crate::core::ratio::{Outcome, Ratio};
use crate::core::results::Run;
use crate::core::stats;
use crate::suites::{hash, index, kv, pool, sql};

const WIDTH: f64 = 760.0;
/// Left and right end of the plot. Names stand to its left and values to its right.
const PLOT: (f64, f64) = (130.0, 580.0);
const ROW: f64 = 24.0;
const TITLE: f64 = 30.0;
const HEAD: f64 = 44.0;
const FOOT: f64 = 66.0;

/// Metrics that measure the same thing, in order of preference.
const SPEEDS: [&str; 4] = ["throughput", "latency", "mean latency", "time"];

/// One peer of one run.
#[derive(Debug)]
struct Row {
    peer: String,
    /// Each topic: its name, its ratio, and Cairn's standing.
    topics: Vec<(String, Ratio, Standing)>,
}

impl Row {
    fn median(&self) -> Option<f64> {
        let mut points: Vec<f64> = self.topics.iter().map(|(_, ratio, _)| ratio.point).collect();
        points.sort_by(f64::total_cmp);
        let half = points.len() / 2;
        let upper = *points.get(half)?;
        match points.len() % 2 {
            0 => stats::geometric_mean(&[*points.get(half - 1)?, upper]),
            _ => Some(upper),
        }
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.topics.iter().filter(|(_, _, standing)| *standing == Standing::Clear(outcome)).count()
    }
}

/// Renders the runs as a picture, with one group of rows per run, in their order.
///
/// The text is a complete SVG file. It follows the reader's colour scheme and needs neither scripts
/// nor fonts.
pub fn render_picture(runs: &[Run]) -> String {
    let groups: Vec<(&str, Vec<Row>)> = runs.iter().map(|run| (title_of(run), rows(run))).collect();
    let points =
        || groups.iter().flat_map(|(_, rows)| rows).flat_map(|row| &row.topics).map(|topic| topic.1.point);
    let (low, high) =
        points().fold((0.5_f64, 2.0_f64), |(low, high), point| (low.min(point), high.max(point)));
    let scale = Scale::log_at(&decades(low, high));
    let rows: usize = groups.iter().map(|(_, rows)| rows.len()).sum();
    let bottom = HEAD + TITLE * groups.len() as f64 + ROW * rows as f64;
    let mut body = axis(&scale, bottom);
    let mut top = HEAD;
    for (title, rows) in &groups {
        body += &format!("<text class=\"suite\" x=\"0\" y=\"{}\">{}</text>\n", top + 20.0, escape(title));
        top += TITLE;
        for row in rows {
            body += &marks(row, &scale, top + ROW / 2.0);
            top += ROW;
        }
    }
    let height = bottom + FOOT;
    let legend = bottom + 36.0;
    body += &format!(
        "<circle class=\"ahead\" cx=\"6\" cy=\"{0}\" r=\"4\"/><text class=\"small\" x=\"15\" y=\"{1}\">Cairn ahead</text>\n\
         <circle class=\"behind\" cx=\"96\" cy=\"{0}\" r=\"4\"/><text class=\"small\" x=\"105\" y=\"{1}\">Cairn behind</text>\n\
         <circle class=\"open\" cx=\"196\" cy=\"{0}\" r=\"4\"/><text class=\"small\" x=\"205\" y=\"{1}\">undecided, or depends on the case</text>\n\
         <text class=\"small\" x=\"0\" y=\"{2}\">Right is faster, or smaller. A dot is one operation or size, ◆ the median of a row. Log scale; colours by 95 % intervals.</text>\n",
        legend - 4.0,
        legend,
        legend + 20.0,
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">Cairn against its peers</title>\n<desc id=\"desc\">{}</desc>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n<g transform=\"translate(12 0) scale({})\">\n{body}</g>\n</svg>\n",
        escape(&in_words(&groups)),
        (WIDTH - 24.0) / WIDTH,
    )
}

const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#24292f}\
.paper{fill:#fff}.suite{font-weight:600}.small,.tick{font-size:11px;fill:#57606a}.end{text-anchor:end}.mid{text-anchor:middle}\
.grid{stroke:#d8dee4}.one{stroke:#57606a;stroke-width:1.5}.side{fill:#bc4c00;opacity:.06}\
.ahead{fill:#0969da}.behind{fill:#bc4c00}.open{fill:#8c959f}circle{opacity:.75}.median{fill:#24292f}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.small,.tick{fill:#9198a1}.grid{stroke:#30363d}\
.one{stroke:#9198a1}.side{fill:#f0883e;opacity:.09}.ahead{fill:#58a6ff}.behind{fill:#f0883e}.open{fill:#7d8590}.median{fill:#e6edf3}}";

fn rows(run: &Run) -> Vec<Row> {
    let model = Model::new(run);
    let verdict = Verdict::new(&model);
    let of = |peer: usize| {
        let topics = verdict.topics.iter().enumerate();
        topics
            .filter_map(|(at, topic)| {
                let cell = verdict.cell(at, peer)?;
                let is_said = |earlier: &&str| {
                    let same = |(other, it): (usize, &Topic)| {
                        it.operation == topic.operation
                            && it.metric == **earlier
                            && verdict.cell(other, peer).is_some()
                    };
                    verdict.topics.iter().enumerate().any(same)
                };
                let place = SPEEDS.iter().position(|speed| *speed == topic.metric).unwrap_or(0);
                if SPEEDS.iter().take(place).any(is_said) {
                    return None;
                }
                Some((topic.label.clone(), cell.ratio(), cell.standing()))
            })
            .collect()
    };
    let peers = verdict.peers.iter().enumerate();
    peers.map(|(at, peer)| Row { peer: peer_title(peer.name).to_owned(), topics: of(at) }).collect()
}

/// Returns the powers of ten from one at or below the smallest ratio to one at or above the
/// largest.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (first.min(-1)..=last.max(1)).map(|power| 10_f64.powi(power)).collect()
}

fn place(scale: &Scale, ratio: f64) -> f64 {
    PLOT.0 + scale.place(ratio) * (PLOT.1 - PLOT.0)
}

fn axis(scale: &Scale, bottom: f64) -> String {
    let one = place(scale, 1.0);
    let mut out = format!(
        "<rect class=\"side\" x=\"{}\" y=\"{HEAD}\" width=\"{:.1}\" height=\"{}\"/>\n",
        PLOT.0,
        one - PLOT.0,
        bottom - HEAD
    );
    for tick in scale.ticks() {
        let (x, class) = (place(scale, *tick), if *tick == 1.0 { "one" } else { "grid" });
        let label = if *tick == 1.0 { "even".to_owned() } else { format!("{tick}×") };
        out +=
            &format!("<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>\n");
        out += &format!("<text class=\"tick mid\" x=\"{x:.1}\" y=\"{}\">{label}</text>\n", bottom + 14.0);
    }
    out += &format!(
        "<text class=\"small end\" x=\"{:.1}\" y=\"32\">◂ peer ahead</text>\n<text class=\"small\" x=\"{:.1}\" y=\"32\">Cairn ahead ▸</text>\n",
        one - 8.0,
        one + 8.0
    );
    out
}

fn marks(row: &Row, scale: &Scale, y: f64) -> String {
    let mut out = format!("<text x=\"14\" y=\"{}\">{}</text>\n", y + 4.5, escape(&row.peer));
    for (label, ratio, standing) in &row.topics {
        let class = match standing {
            Standing::Clear(Outcome::Better) => "ahead",
            Standing::Clear(Outcome::Worse) => "behind",
            _ => "open",
        };
        out += &format!(
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"4\"><title>{}: {:.2}×</title></circle>\n",
            place(scale, ratio.point),
            escape(label),
            ratio.point
        );
    }
    let Some(median) = row.median() else { return out };
    let x = place(scale, median);
    out += &format!(
        "<path class=\"median\" d=\"M{:.1} {y}l6 -6 6 6 -6 6z\"/>\n<text x=\"{}\" y=\"{}\">{}</text>\n<text class=\"small\" x=\"{}\" y=\"{}\">{}</text>\n",
        x - 6.0,
        PLOT.1 + 12.0,
        y + 4.5,
        in_times(median),
        PLOT.1 + 56.0,
        y + 4.5,
        tally(row),
    );
    out
}

fn in_times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}×") } else { format!("{ratio:.0}×") }
}

fn tally(row: &Row) -> String {
    format!("{} ahead, {} behind", row.count(Outcome::Better), row.count(Outcome::Worse))
}

/// Describes the picture for readers who cannot see it.
fn in_words(groups: &[(&str, Vec<Row>)]) -> String {
    let row = |row: &Row| {
        let median = row.median().map_or_else(String::new, |median| format!(" {}", in_times(median)));
        format!("{}{median}, {}", row.peer, tally(row))
    };
    let group = |(title, rows): &(&str, Vec<Row>)| {
        format!("{title}: {}.", rows.iter().map(row).collect::<Vec<String>>().join("; "))
    };
    groups.iter().map(group).collect::<Vec<String>>().join(" ")
}

fn title_of(run: &Run) -> &'static str {
    match run.suite.as_str() {
        hash::NAME => "Constant store",
        index::NAME => "Compressed index",
        kv::NAME => "Key-value store",
        pool::NAME => "Buffer pool",
        sql::NAME => "Relational engine: transactions and short queries",
        _ => "Others",
    }
}

/// Returns a peer's name in its makers' spelling.
fn peer_title(family: &str) -> &str {
    match family {
        "cdb" => "cdb",
        "duckdb" => "DuckDB",
        "leveldb" => "LevelDB",
        "lmdb" => "LMDB",
        "postgres" => "PostgreSQL",
        "rocksdb" => "RocksDB",
        "sparkey-java" => "Sparkey (Java)",
        "sqlite" => "SQLite",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{contender, measurement, run};

    /// Goal: a win, a loss and a tie are each visible, in colour and in words, and names are
    /// escaped.
    /// Method: a run of one peer with three topics.
    #[test]
    fn wins_and_losses_are_seen() {
        let mut slow = measurement("<peer>", "open", "time", &[1.0, 1.01, 0.99]);
        let mut fast = measurement("cairn", "open", "time", &[4.0, 4.02, 3.98]);
        (slow.higher_is_better, fast.higher_is_better) = (false, false);
        let run = run(
            vec![contender("cairn", "cairn", true), contender("<peer>", "<peer>", false)],
            vec![
                measurement("cairn", "get", "throughput", &[10.0, 10.1, 9.9]),
                measurement("<peer>", "get", "throughput", &[1.0, 1.01, 0.99]),
                fast,
                slow,
                measurement("cairn", "put", "throughput", &[1.0, 3.0, 2.0]),
                measurement("<peer>", "put", "throughput", &[1.0, 3.0, 2.0]),
            ],
        );
        let picture = render_picture(&[run]);
        for class in ["ahead", "behind", "open"] {
            let dots = picture.matches(&format!("<circle class=\"{class}\"")).count();
            assert_eq!(dots, 2, "one dot and one in the legend, {class}: {picture}");
        }
        assert!(picture.contains("&lt;peer&gt;") && !picture.contains("<peer>"), "{picture}");
        assert!(picture.contains("1 ahead, 1 behind"), "{picture}");
        assert!(picture.contains("prefers-color-scheme:dark"));
    }

    /// Goal: an operation counts once, in however many ways its speed was measured. Method:
    /// throughput, latency and mean latency of one operation, and only the latency of another.
    #[test]
    fn operations_count_once() {
        let mut all = Vec::new();
        for (operation, metric) in
            [("get", "throughput"), ("get", "latency"), ("get", "mean latency"), ("open", "latency")]
        {
            all.push(measurement("cairn", operation, metric, &[1.0, 1.1, 0.9]));
            all.push(measurement("lmdb", operation, metric, &[4.0, 4.1, 3.9]));
        }
        let run = run(vec![contender("cairn", "cairn", true), contender("lmdb", "lmdb", false)], all);
        let rows = rows(&run);
        let labels: Vec<&str> = rows[0].topics.iter().map(|(label, ..)| label.as_str()).collect();
        assert_eq!(labels, ["Point lookups", "open, latency"]);
        assert_eq!(rows[0].peer, "LMDB");
    }

    /// Goal: the axis covers every ratio, and includes 1. Method: ratios far to one side.
    #[test]
    fn the_axis_reaches_over_all() {
        assert_eq!(decades(0.5, 2.0), [0.1, 1.0, 10.0]);
        assert_eq!(decades(3.0, 250.0), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(decades(0.004, 1.0), [0.001, 0.01, 0.1, 1.0, 10.0]);
    }
}
