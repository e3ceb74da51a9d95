//! The page: the header, the sections in reading order, and everything that makes it a single
//! self-contained file.

use std::collections::BTreeSet;

use super::compare;
use super::costs;
use super::figure::Figure;
use super::format;
use super::html::{embed_json, escape, plural};
use super::lookups;
use super::model::Model;
use super::pool;
use super::setup;
use super::svg::SYMBOLS;
use super::table;
use super::verdict::Verdict;
use super::verdict_page;
use super::writes;
use crate::core::results::Run;
use crate::core::stats;

pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const SCRIPT: &str = include_str!("script.js");

/// The content security policy. It forbids fetching and sending: the page contains all it needs.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// One section of a page.
#[derive(Debug)]
pub(super) struct Section {
    /// Unique on the page.
    pub(super) id: &'static str,
    /// Text of the link to the section.
    pub(super) name: &'static str,
    /// Markup: the section element itself, with that id.
    pub(super) body: String,
}

/// How much of a run its sections show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    /// Whether to show the table of all measurements.
    pub(super) table: bool,
    /// Whether to show every choice of each figure, not only the first.
    pub(super) choices: bool,
}

impl Depth {
    /// Everything.
    pub(super) const ALL: Depth = Depth { table: true, choices: true };
}

/// Returns the sections about a run's results, in reading order.
pub(super) fn sections(run: &Run, other: Option<&Run>, depth: Depth) -> Vec<Section> {
    let model = Model::new(run);
    let verdict = Verdict::new(&model);
    let headline = lookups::headline(&model);
    let choice = lookups::plainest(&headline).unwrap_or_default();

    let mut sections: Vec<Section> = Vec::new();
    let mut add = |id: &'static str, name: &'static str, body: String| {
        if !body.is_empty() {
            sections.push(Section { id, name, body });
        }
    };
    // A run in which no contender can be ahead, such as a replay, has no verdict.
    if run.measurements.is_empty() || !verdict.topics.is_empty() {
        add("verdict", "Verdict", verdict_page::section(&model, &verdict, &choice));
    }
    if let Some(other) = other {
        add("comparison", "Comparison", compare::section(&model, other));
    }
    let figures: [(&'static str, Figure<'static>); 16] = [
        ("Lookups", headline),
        ("Threads", lookups::over_threads(&model)),
        ("Clients", writes::over_threads(&model)),
        ("Entries", lookups::over_entries(&model)),
        ("Latency", lookups::latency(&model)),
        ("Build", costs::build(&model)),
        ("Space", costs::size(&model)),
        ("Trade-off", costs::trade_off(&model)),
        ("Writes", writes::trade_off(&model)),
        ("Cold", costs::cold(&model)),
        ("Pages", pool::latencies(&model)),
        ("Over threads", pool::over_threads(&model)),
        ("Pool size", pool::over_frames(&model)),
        ("Hit rates", pool::hit_rates(&model)),
        ("Traces", pool::traces(&model)),
        ("Other", costs::other(&model)),
    ];
    for (name, mut figure) in figures {
        if !depth.choices {
            figure.keep_first();
        }
        add(figure.id, name, figure.render());
    }
    if depth.table {
        add("all", "All figures", table::everything(&model));
    }
    add("contenders", "Contenders", setup::contenders(&model));
    sections
}

/// Returns the whole document.
pub(super) fn document(run: &Run, other: Option<&Run>) -> String {
    let mut sections = sections(run, other, Depth::ALL);
    sections.push(Section { id: "machine", name: "Machine", body: setup::machine(run) });
    sections.push(Section { id: "repeat", name: "Repeat", body: setup::repeat(run) });
    let link = |section: &Section| format!("<a href=\"#{}\">{}</a>", section.id, section.name);
    let links: String = sections.iter().map(link).collect();
    let main: String = sections.into_iter().map(|section| section.body).collect();
    let title = escape(&title(run));
    // A run always serialises. If that ever changes, the page stays readable and the download
    // contains the error.
    let json = serde_json::to_string(run)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string());
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"generator\" content=\"cairn\">\
         <link rel=\"icon\" href=\"data:,\"><title>{title}</title><style>{STYLE}</style></head><body>{SYMBOLS}\
         <a class=\"skip\" href=\"#main\">Skip to the verdict</a>{header}\
         <nav aria-label=\"Sections\"><div class=\"links\">{links}</div>\
         <button type=\"button\" id=\"theme\" aria-label=\"Switch between light and dark\">◐</button></nav>\
         <main id=\"main\">{main}</main><footer><p>{foot}</p></footer><div id=\"tip\" role=\"tooltip\" hidden></div>\
         <script type=\"application/json\" id=\"run\">{json}</script><script>{SCRIPT}</script></body></html>\n",
        header = header(run, &title),
        foot = footer(run),
        json = embed_json(&json)
    )
}

fn title(run: &Run) -> String {
    match run.suite.as_str() {
        "hash" => "Constant stores, measured".to_owned(),
        "pool" => "Buffer pools, measured".to_owned(),
        "index" => "Compressed indexes, measured".to_owned(),
        "sql" => "SQL engines, measured".to_owned(),
        "" => "Storage engines, measured".to_owned(),
        suite => format!("{suite}, measured"),
    }
}

fn header(run: &Run, title: &str) -> String {
    let field = |names: &[&str]| {
        let found =
            run.machine.iter().find(|(name, value)| names.contains(&name.as_str()) && !value.is_empty());
        found.map(|(_, value)| escape(value))
    };
    let ran = || run.contenders.iter().filter(|contender| contender.skipped.is_none());
    let families: BTreeSet<&str> = ran().map(|contender| contender.family.as_str()).collect();
    let chip = |name: &str, value: Option<String>| {
        value.map_or_else(String::new, |value| format!("<div><dt>{name}</dt><dd>{value}</dd></div>"))
    };
    let chips = [
        chip("Started", Some(escape(&format::moment(&run.started)))),
        chip("Machine", field(&["cpu"])),
        chip("Cores", field(&["cores", "cpus"])),
        chip("Memory", field(&["memory"])),
        chip("File system", field(&["file system"])),
        chip("Kernel", field(&["kernel"])),
        chip("Commit", field(&["commit"])),
        chip("Mode", Some(escape(&run.mode))),
    ]
    .concat();
    format!(
        "<header><p class=\"mark\">Cairn lab</p><h1>{title}</h1><p class=\"data\">{}</p>\
         <p class=\"data\">{}, {}, {}: all in one run on one machine.</p><dl class=\"chips\">{chips}</dl></header>",
        escape(&run.data),
        if families.len() == 1 {
            "1 family of engines".to_owned()
        } else {
            format!("{} families of engines", families.len())
        },
        plural(ran().count(), "contender"),
        plural(run.measurements.len(), "measurement")
    )
}

fn footer(run: &Run) -> String {
    format!(
        "Made by the Cairn lab from one results file (schema {}, suite {}, seed {}). Intervals are of {}: \
         bootstraps of the median, and with fewer than ten samples no narrower than Student’s; ratios within the run resample its \
         interleaved rounds. The page loads nothing from other places.",
        run.schema,
        escape(&run.suite),
        run.seed,
        stats::LEVEL
    )
}
