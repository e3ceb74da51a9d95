//! The report: one run, or one run against another, as a single self-contained HTML file.
//!
//! The page is readable without scripts and without a network. Charts are inline SVG drawn here.
//! The script adds tooltips, the choice among cases, sorting, filtering, the theme switch and the
//! downloads. All text from a run is escaped where it meets markup (`html`). Numbers that are not
//! finite are shown as a dash and drawn nowhere.
//!
//! ```text
//! Run ─> model    families, styles, areas     ─> figure   choices of the matrix, one variant each
//!     ─> verdict  best against best, by ratio            bars, lines, scatter, forest: svg + scale
//!     ─> page     sections in order, style.css, script.js, the run as JSON
//! Whole ─> words  the verdicts in plain words
//!       ─> whole  overview, and the sections of each suite's run
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
mod scale;
mod scatter;
mod scope;
mod selector;
mod setup;
mod shell;
pub mod summary;
mod svg;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod trace;
pub mod trace_text;
mod verdict;
mod verdict_page;
pub mod whole;
mod words;
mod writes;

use std::path::Path;

pub use picture::render_picture;
pub use whole::BYTES_MAX as WHOLE_BYTES_MAX;
pub(crate) use words::{Claims, Side, claims};

use cairn_trace::stats::Stats;

use crate::core::results::Run;
use crate::history::Series;
use crate::suites::all::Whole;

/// Renders `run` as one self-contained HTML document.
///
/// With `other`, an earlier run, the page gains a section that compares the two. Ratios above one
/// mean that `run` is better. The function is pure: it uses no clock, no disk and no randomness, so
/// equal runs give equal bytes. It never fails: a run without measurements, or with values that are
/// not finite, gives a page that says so.
///
/// Cost: proportional to the number of measurements, plus about a millisecond per compared pair of
/// contenders for the bootstrap of its ratio. A page takes about 2 kB per measurement.
pub fn render_html(run: &Run, other: Option<&Run>) -> String {
    page::document(run, other)
}

/// Renders a run over all suites as one self-contained HTML document of at most [`WHOLE_BYTES_MAX`]
/// bytes: an overview, and the sections of [`render_html`] for each suite's run. `dir` is the
/// directory of the run's other files, to which the page refers for whatever does not fit.
pub fn render_whole(whole: &Whole, dir: &Path) -> String {
    whole::document(whole, dir)
}

/// Renders the statistics of a trace as one self-contained HTML document, in the style of the
/// reports. `name` is the name of the trace's file.
pub fn render_trace(name: &str, stats: &Stats) -> String {
    trace::document(name, stats)
}

/// Renders measurements over time as one self-contained HTML document in the style of the reports:
/// one chart for each metric of a case, one line for each contender.
pub fn render_history(series: &[Series]) -> String {
    history::document(series)
}
