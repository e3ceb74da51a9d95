//! The report: one run, or one run against another, as a single HTML file that needs nothing else.
//!
//! The page reads without scripts and without a network. Charts are inline SVG drawn here; the
//! script adds tooltips, the choice among cases, sorting, filtering, the theme switch and the
//! downloads. All text that comes from a run is escaped where it meets markup (`html`); figures
//! that are not finite are shown as a dash and drawn nowhere.
//!
//! ```text
//! Run ─> model    families, looks, areas          ─> figure   choices of the matrix, one variant each
//!     ─> verdict  best against best, by ratio                 bars, lines, scatter, forest: svg + scale
//!     ─> page     sections in order, style.css, script.js, the run as JSON
//! Whole ─> words  the verdicts in plain words ─> whole: overview, and the sections of each suite's run
//! ```

mod bars;
mod compare;
mod costs;
mod figure;
mod forest;
mod format;
mod history;
mod html;
mod lines;
mod lookups;
#[cfg(test)]
mod markup;
mod matrix;
mod model;
mod page;
mod picture;
mod pool;
pub(crate) mod ratio;
mod scale;
mod scatter;
mod scope;
mod selector;
mod setup;
mod shell;
mod svg;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod trace;
mod verdict;
mod verdict_page;
mod whole;
mod words;
mod writes;

use std::path::Path;

pub use picture::render_picture;
pub use whole::BYTES_MAX as WHOLE_BYTES_MAX;
pub(crate) use words::{Claims, Side, claims};

use cairn_trace::stats::Stats;

use crate::history::Series;
use crate::results::Run;
use crate::suite_all::Whole;

/// Renders `run` as one self-contained HTML document.
///
/// With `other`, an earlier run, the page gains a section that compares the two: ratios above one
/// mean that `run` is better. Pure: no clock, no disk, no randomness, so equal runs give equal
/// bytes. Never fails: a run without measurements, or with figures that are not finite, gives a
/// page that says so.
///
/// Cost: proportional to the measurements; about a millisecond for each pair of contenders that is
/// compared, for the bootstrap of its ratio. A page takes some 2 kB for each measurement.
pub fn render_html(run: &Run, other: Option<&Run>) -> String {
    page::document(run, other)
}

/// Renders a run over all suites as one self-contained HTML document of at most [`WHOLE_BYTES_MAX`]
/// bytes: an overview, and what [`render_html`] has of each suite's run. `dir` is where the run's
/// other files are, for what does not fit.
pub fn render_whole(whole: &Whole, dir: &Path) -> String {
    whole::document(whole, dir)
}

/// Renders the statistics of a trace as one self-contained HTML document, in the style of the
/// reports. `name` is its file's.
pub fn render_trace(name: &str, stats: &Stats) -> String {
    trace::document(name, stats)
}

/// Renders figures over time as one self-contained HTML document, in the style of the reports: a
/// chart for each metric of a case, a line for each contender.
pub fn render_history(series: &[Series]) -> String {
    history::document(series)
}
