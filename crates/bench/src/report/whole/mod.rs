//! The page of a run over all suites: an overview, an article for each engine, and the machine that
//! they share.

mod overview;
mod sim;
#[cfg(test)]
mod tests;
pub mod text;

use std::path::Path;

use super::format;
use super::html::{escape, plural};
use super::page::{self, Depth};
use super::scope;
use super::setup;
use super::shell::Shell;
use crate::core::results::{Probe, Run};
use crate::core::stats;
use crate::report::whole::text::duration;
use crate::suites::all::{SuiteResult, Whole};

/// Maximum size of a page.
pub const BYTES_MAX: usize = 5_000_000;

/// The raw data that a page contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raw {
    /// Everything, samples included.
    Samples,
    /// Medians, intervals and percentiles.
    Figures,
    /// None.
    Nothing,
}

/// The forms of a page, richest first. A page that is too large takes the next form, which gives up
/// more.
const FORMS: [(Depth, Raw); 5] = [
    (Depth::ALL, Raw::Samples),
    (Depth::ALL, Raw::Figures),
    (Depth::ALL, Raw::Nothing),
    (Depth { table: false, choices: true }, Raw::Nothing),
    (Depth { table: false, choices: false }, Raw::Nothing),
];

/// Returns the whole document, in the richest form that fits.
pub(super) fn document(whole: &Whole, dir: &Path) -> String {
    within(whole, dir, BYTES_MAX)
}

/// Returns the richest form that fits into `bytes_max` bytes, which is [`BYTES_MAX`] except in
/// tests.
fn within(whole: &Whole, dir: &Path, bytes_max: usize) -> String {
    let overview = overview::sections(whole);
    let mut shown: Option<(Depth, String)> = None;
    for (depth, raw) in FORMS {
        // Sections are the expensive part, and do not depend on the form of the raw data.
        let main = match shown.take() {
            Some((known, main)) if known == depth => main,
            _ => articles(whole, depth),
        };
        let left_out = left_out(depth, raw, dir, bytes_max);
        let page =
            render(whole, &format!("<article id=\"overview\">{overview}{left_out}</article>{main}"), raw);
        if page.len() <= bytes_max {
            return page;
        }
        shown = Some((depth, main));
    }
    let stubs: String =
        whole.suites.iter().filter(|suite| suite.has_figures()).map(|suite| stub(suite, dir)).collect();
    render(whole, &format!("<article id=\"overview\">{overview}</article>{stubs}"), Raw::Nothing)
}

/// Returns a replacement for an article that does not fit even in its plainest form.
fn stub(suite: &SuiteResult, dir: &Path) -> String {
    let word = suite.suite.word();
    let file = dir.join("suites").join(format!("{word}.json"));
    format!(
        "<article id=\"{word}\"><section><h2>{}</h2><p class=\"lead\">Too many figures for this page: <code>cairn bench report {}</code> \
         shows them.</p></section></article>",
        suite.suite.title(),
        escape(&file.display().to_string())
    )
}

/// Says in a sentence what the page leaves out and where to find it; empty if it leaves out
/// nothing. Markup.
fn left_out(depth: Depth, raw: Raw, dir: &Path, bytes_max: usize) -> String {
    let mut missing: Vec<&str> = Vec::new();
    match raw {
        Raw::Samples => {}
        Raw::Figures => missing.push("the samples in its raw data"),
        Raw::Nothing => missing.push("its raw data"),
    }
    if !depth.table {
        missing.push("the tables of all measurements");
    }
    if !depth.choices {
        missing.push("all choices but the first of each figure");
    }
    if missing.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"note\">To stay under {} MB, this page leaves out {}. <code>cairn bench report</code> of a file in <code>{}</code> shows \
         all of a suite.</p>",
        bytes_max as f64 / 1e6,
        missing.join(", "),
        escape(&dir.join("suites").display().to_string())
    )
}

/// Renders the page around its articles.
fn render(whole: &Whole, articles: &str, raw: Raw) -> String {
    let links: String = std::iter::once(("overview", "Overview"))
        .chain(
            whole
                .suites
                .iter()
                .filter(|suite| suite.has_figures())
                .map(|suite| (suite.suite.word(), suite.suite.title())),
        )
        .chain([("machine", "Machine"), ("repeat", "Repeat")])
        .map(|(id, name)| format!("<a href=\"#{id}\">{name}</a>"))
        .collect();
    let last = overview::machine_and_repeat(whole, raw != Raw::Nothing);
    let main = format!("{articles}<article>{last}</article>");
    let foot = format!(
        "Made by the Cairn lab from one run over {}. Intervals are bootstrap intervals of the median, {} at least; ratios resample interleaved rounds.",
        plural(whole.suites.iter().filter(|suite| suite.has_figures()).count(), "suite"),
        stats::LEVEL
    );
    let json = match raw {
        Raw::Samples => json(whole, &|run| run.clone()),
        Raw::Figures => json(whole, &|run| {
            let mut run = run.clone();
            run.measurements.iter_mut().for_each(|m| m.samples.clear());
            run
        }),
        Raw::Nothing => serde_json::json!({ "suite": "all", "started": whole.head.started }).to_string(),
    };
    let header = header(whole);
    Shell { title: TITLE, header: &header, links: &links, main: &main, foot: &foot, json: &json }.render()
}

const TITLE: &str = "Storage engines, measured";

fn json(whole: &Whole, of: &dyn Fn(&Run) -> Run) -> String {
    let runs: Vec<Run> = whole.suites.iter().filter_map(|suite| suite.run.as_ref()).map(of).collect();
    let sim: Vec<_> = whole.suites.iter().filter_map(|suite| suite.sim.as_ref()).collect();
    let all = serde_json::json!({ "suite": "all", "started": whole.head.started, "runs": runs, "sim": sim });
    all.to_string()
}

fn header(whole: &Whole) -> String {
    let machine = whole.head.sittings.first().map(|sitting| sitting.machine.as_slice()).unwrap_or_default();
    let chip = |name: &str, field: &str| {
        let value = machine.iter().find(|(known, _)| known == field).map(|(_, value)| escape(value));
        value.map_or_else(String::new, |value| format!("<div><dt>{name}</dt><dd>{value}</dd></div>"))
    };
    let own = |name: &str, value: String| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    let chips = [
        own("Started", format::moment(&whole.head.started)),
        own("Took", duration(whole.seconds())),
        own("Mode", whole.head.options.mode_word()),
        chip("Machine", "cpu"),
        chip("Cores", "cores"),
        chip("Memory", "memory"),
        chip("File system", "file system"),
        chip("Kernel", "kernel"),
        chip("Commit", "commit"),
    ]
    .concat();
    let measurements: usize =
        whole.suites.iter().filter_map(|suite| suite.run.as_ref()).map(|run| run.measurements.len()).sum();
    format!(
        "<header><p class=\"mark\">Cairn lab</p><h1>{TITLE}</h1><p class=\"data\">Every engine of Cairn next to its peers, on one machine: {}.</p>\
         <dl class=\"chips\">{chips}</dl></header>",
        plural(measurements, "measurement")
    )
}

fn articles(whole: &Whole, depth: Depth) -> String {
    let shared = whole.head.sittings.first().map(|sitting| sitting.probes.as_slice()).unwrap_or_default();
    let measured = whole.suites.iter().filter(|suite| suite.has_figures());
    measured.map(|suite| article(suite, depth, shared)).collect()
}

/// Renders the probes that only this suite takes, such as the cost of its own loop.
fn own_probes(run: &Run, shared: &[Probe]) -> String {
    let own = |probe: &&Probe| !shared.iter().any(|known| known.name == probe.name);
    let own: Vec<&Probe> = run.probes.iter().filter(own).collect();
    if own.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"probes\"><h2>Probes of this suite</h2><div class=\"twin\">{}</div></section>",
        setup::probes("Taken between its measurements", own.into_iter())
    )
}

/// Renders the content that a suite's run would have on a page of its own.
///
/// The article is wrapped in a `<noscript>`. A browser without scripts parses it as elements. Other
/// browsers keep it as text until the article is opened.
fn article(suite: &SuiteResult, depth: Depth, shared: &[Probe]) -> String {
    let word = suite.suite.word();
    let (links, body, data) = match (&suite.run, &suite.sim) {
        (Some(run), _) => {
            let sections = page::sections(run, None, depth);
            let links: String = sections
                .iter()
                .map(|section| format!("<a href=\"#{}\">{}</a>", section.id, section.name))
                .collect();
            let body: String = sections.into_iter().map(|section| section.body).collect();
            (links, body + &own_probes(run, shared), run.data.clone())
        }
        (None, Some(report)) => (String::new(), sim::sections(report), sim::ABOUT.to_owned()),
        (None, None) => return String::new(),
    };
    let links = if links.is_empty() { links } else { format!("<p class=\"subnav\">{links}</p>") };
    let inner = scope::within(word, &format!("{links}{body}"));
    format!(
        "<article id=\"{word}\"><noscript><h2 class=\"engine\">{}</h2><p class=\"data\">{}</p>{inner}</noscript></article>",
        suite.suite.title(),
        escape(&data)
    )
}
