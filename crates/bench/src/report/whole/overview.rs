//! The first article: the suites that ran, who is ahead of whom, and what was left out. Also the
//! last one: machine and command.

use std::collections::BTreeSet;

use crate::core::results::Contender;
use crate::report::format;
use crate::report::html::{escape, plural};
use crate::report::setup;
use crate::report::whole::text::duration;
use crate::report::words::{Claim, Claims, Side, claims};
use crate::suites::all::{PartState, PartSummary, SuiteResult, Whole};

/// Maximum number of topics per suite and side in the overview. The suite's own article lists all.
const TOPICS_MAX: usize = 8;

/// Returns all sections of the overview.
pub(super) fn sections(whole: &Whole) -> String {
    let told: Vec<(&SuiteResult, Claims)> = whole
        .suites
        .iter()
        .filter_map(|suite| Some((suite, claims(suite.run.as_ref()?))))
        .filter(|(suite, _)| suite.has_figures())
        .collect();
    let level = crate::core::stats::LEVEL;
    [table(whole, &told, level), wins_and_losses(&told, level), failures(whole), left_out(whole)].concat()
}

/// Renders a table with one row per suite.
fn table(whole: &Whole, told: &[(&SuiteResult, Claims)], level: &str) -> String {
    let row = |suite: &SuiteResult| {
        let claims = told.iter().find(|(known, _)| known.suite == suite.suite).map(|(_, claims)| claims);
        let count = |side: Side| {
            claims.map_or_else(|| format::NONE.to_owned(), |claims| claims.of(side).len().to_string())
        };
        let open = claims.map_or_else(|| format::NONE.to_owned(), |claims| claims.open.to_string());
        let run = suite.run.as_ref();
        let measured = match &suite.sim {
            Some(report) => plural(report.comparisons.len(), "case"),
            None => run
                .map_or_else(|| format::NONE.to_owned(), |run| plural(run.measurements.len(), "measurement")),
        };
        let ran =
            run.map(|run| run.contenders.iter().filter(|contender| contender.skipped.is_none()).count());
        let name = if suite.has_figures() {
            format!("<a href=\"#{}\">{}</a>", suite.suite.word(), suite.suite.title())
        } else {
            suite.suite.title().to_owned()
        };
        let time = if suite.seconds() > 0.0 { duration(suite.seconds()) } else { format::NONE.to_owned() };
        format!(
            "<tr><th scope=\"row\">{name}</th><td>{}</td><td class=\"num\">{time}</td><td class=\"num\">{}</td><td class=\"num\">{measured}</td>\
             <td class=\"num better\">{}</td><td class=\"num worse\">{}</td><td class=\"num\">{}</td><td class=\"num\">{open}</td></tr>",
            escape(&suite.standing()),
            ran.map_or_else(|| format::NONE.to_owned(), |ran| ran.to_string()),
            count(Side::Ours),
            count(Side::Theirs),
            count(Side::Mixed),
        )
    };
    let rows: String = whole.suites.iter().map(row).collect();
    format!(
        "<section id=\"suites\"><h2>Suites</h2><p class=\"lead\">For each topic, which is an operation and a metric, the best of Cairn’s contenders is \
         compared with the best of a peer in every case that both have. A difference counts if its {level} interval excludes equality.</p>\
         <div class=\"scroll\" tabindex=\"0\"><table class=\"big\"><thead><tr><th scope=\"col\">Engine</th><th scope=\"col\">State</th>\
         <th scope=\"col\">Time</th><th scope=\"col\">Contenders</th><th scope=\"col\">Measured</th><th scope=\"col\">▲ Cairn ahead</th>\
         <th scope=\"col\">▼ Cairn behind</th><th scope=\"col\">± depends</th><th scope=\"col\">~ even</th></tr></thead><tbody>{rows}</tbody></table></div>\
         {}</section>",
        notes(whole)
    )
}

/// Renders the notes that a sceptical reader should see about the run as a whole.
fn notes(whole: &Whole) -> String {
    let mut notes = Vec::new();
    if whole.head.options.mode_word() == "quick" {
        notes.push(
            "This was a <b>quick</b> run: small stores, short turns. It shows large differences; quoted figures need more.".to_owned(),
        );
    }
    let parts = || whole.suites.iter().flat_map(|suite| suite.parts.iter().map(move |part| (suite, part)));
    let cut = names(parts().filter(|(_, part)| part.state == Some(PartState::Cut)));
    if !cut.is_empty() {
        notes.push(format!("Their time was up, and the figures so far count: {cut}."));
    }
    let open = names(parts().filter(|(_, part)| matches!(part.state, None | Some(PartState::Stopped))));
    if !open.is_empty() {
        notes.push(format!("The run was <b>ended early</b>. Not measured to the end: {open}."));
    }
    if whole.head.sittings.len() > 1 {
        let probed = whole.head.sittings.iter().filter(|sitting| !sitting.probes.is_empty()).count();
        let probes = match probed {
            0 => "without probes of memory and disk, so it is not known whether the machine was as fast each time".to_owned(),
            1 => "the probes of one of them are under <a href=\"#machine\">machine</a>".to_owned(),
            count => format!("the probes of {count} of them are side by side under <a href=\"#machine\">machine</a>"),
        };
        notes.push(format!(
            "It was interrupted and resumed, in {}: {probes}.",
            plural(whole.head.sittings.len(), "sitting")
        ));
    }
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| format!("<li>{note}</li>")).collect();
    format!("<div class=\"trust\"><h3>How far to trust this</h3><ul>{items}</ul></div>")
}

/// Lists parts by suite and name. Markup.
fn names<'w>(parts: impl Iterator<Item = (&'w SuiteResult, &'w PartSummary)>) -> String {
    let names: Vec<String> =
        parts.map(|(suite, part)| escape(&format!("{} {}", suite.suite.word(), part.name))).collect();
    names.join(", ")
}

/// Renders wins and losses, with the same space for each.
fn wins_and_losses(told: &[(&SuiteResult, Claims)], level: &str) -> String {
    let mut out = String::new();
    for (suite, claims) in told {
        let failures = suite.own_failures();
        if claims.all.is_empty() && failures.is_empty() {
            continue;
        }
        let sides = [
            (Side::Theirs, "worse", "▼ A peer is ahead"),
            (Side::Ours, "better", "▲ Cairn is ahead"),
            (Side::Mixed, "unclear", "± It depends on the case"),
        ];
        let blocks = sides.map(|(side, tone, title)| {
            let failures = if side == Side::Theirs { failures.as_slice() } else { &[] };
            block(suite, (&claims.of(side), failures), tone, title)
        });
        out += &format!("<h3>{}</h3><div class=\"sides\">{}</div>", suite.suite.title(), blocks.concat());
    }
    if out.is_empty() {
        return out;
    }
    format!(
        "<section id=\"words\"><h2>Wins and losses</h2><p class=\"lead\">In plain words, the largest differences first: the factor, with its {level} \
         interval in brackets. Means over several cases are geometric.</p>{out}</section>"
    )
}

/// Renders one block of topics. `failures` are those of Cairn's own contenders. When there are any,
/// the block cannot say that Cairn is behind nowhere.
fn block(suite: &SuiteResult, (claims, failures): (&[&Claim], &[String]), tone: &str, title: &str) -> String {
    // Each topic with all peers that differ in it, in the order of the topic's largest difference.
    let mut topics: Vec<(&str, Vec<&str>)> = Vec::new();
    for claim in claims {
        match topics.iter_mut().find(|(topic, _)| *topic == claim.topic) {
            Some((_, sentences)) => sentences.push(&claim.sentence),
            None => topics.push((&claim.topic, vec![&claim.sentence])),
        }
    }
    let item = |(topic, sentences): &(&str, Vec<&str>)| {
        let told: String =
            sentences.iter().map(|told| format!("<span class=\"vs\">{}.</span> ", escape(told))).collect();
        format!("<li><span class=\"topic\">{}</span><span>{told}</span></li>", escape(topic))
    };
    let failed =
        |told: &String| format!("<li><span class=\"topic\">Failed</span><span>{}</span></li>", escape(told));
    let mut items: String = failures.iter().map(failed).collect();
    items.extend(topics.iter().take(TOPICS_MAX).map(item));
    if topics.len() > TOPICS_MAX {
        let more = plural(topics.len() - TOPICS_MAX, "more topic");
        items += &format!("<li class=\"none\"><a href=\"#{}\">{more}</a></li>", suite.suite.word());
    }
    if items.is_empty() {
        items = "<li class=\"none\">nowhere</li>".to_owned();
    }
    format!(
        "<div class=\"side {tone}\"><h3>{title} <small>{}</small></h3><ul>{items}</ul></div>",
        claims.len()
    )
}

/// Lists parts and contenders that failed, with their errors.
fn failures(whole: &Whole) -> String {
    let mut items = String::new();
    for suite in &whole.suites {
        for failure in suite.failures().into_iter().filter_map(Contender::failure) {
            items += &format!("<li><b>{}</b> {}</li>", escape(suite.suite.word()), escape(&failure));
        }
        for part in &suite.parts {
            if let Some(PartState::Failed(why)) = &part.state {
                items += &format!(
                    "<li><b>{}, {}</b> {}</li>",
                    escape(suite.suite.word()),
                    escape(&part.name),
                    escape(why)
                );
            }
        }
    }
    if items.is_empty() {
        return items;
    }
    format!("<section id=\"failed\"><h2>Failures</h2><div class=\"trust\"><ul>{items}</ul></div></section>")
}

/// Lists the contenders that were left out, once each, with the software to install.
fn left_out(whole: &Whole) -> String {
    let mut lines: BTreeSet<(String, String)> = BTreeSet::new();
    for suite in &whole.suites {
        if let Some(missing) = &suite.missing {
            lines.insert((suite.suite.title().to_owned(), missing.clone()));
        }
        for note in &suite.notes {
            lines.insert((suite.suite.title().to_owned(), note.clone()));
        }
        let contenders = suite.run.iter().flat_map(|run| &run.contenders);
        for contender in contenders.filter(|contender| contender.failures() == 0) {
            if let Some(reason) = &contender.skipped {
                lines.insert((format!("{}: {}", suite.suite.title(), contender.name), reason.clone()));
            }
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let items: String =
        lines.iter().map(|(who, why)| format!("<li><b>{}</b> {}</li>", escape(who), escape(why))).collect();
    format!(
        "<section id=\"left-out\"><h2>Left out</h2><p class=\"lead\">With the reasons; most of them are software that is not installed.</p>\
         <div class=\"trust\"><ul>{items}</ul></div></section>"
    )
}

/// Renders the information that all suites share: hardware, probes of each sitting, and how to
/// repeat the run.
pub(super) fn machine_and_repeat(whole: &Whole, has_raw: bool) -> String {
    let machine = whole.head.sittings.first().map(|sitting| sitting.machine.as_slice()).unwrap_or_default();
    let fields: String = machine.iter().map(|(name, value)| setup::pair(name, value)).collect();
    let probes: String = whole
        .head
        .sittings
        .iter()
        .map(|sitting| {
            setup::probes(
                &format!("Memory and disk, {}", format::moment(&sitting.started)),
                sitting.probes.iter(),
            )
        })
        .collect();
    let command = machine.iter().find(|(name, _)| name == "command").map(|(_, value)| value.clone());
    let options = &whole.head.options;
    let downloads = if has_raw {
        "<p class=\"downloads\"><button type=\"button\" id=\"save-json\">Save the raw results (JSON)</button> \
         <button type=\"button\" id=\"save-csv\">Save the table (CSV)</button></p>"
    } else {
        ""
    };
    format!(
        "<section id=\"machine\"><h2>Machine and probes</h2><div class=\"twin\">{}{probes}</div></section>\
         <section id=\"repeat\"><h2>Repeat it</h2><p class=\"lead\">Data, draws and orders all follow from the seed <code>{}</code>. On the same \
         commit:</p><pre tabindex=\"0\"><code>{}</code></pre>{downloads}</section>",
        setup::block("Hardware, system and build", fields),
        options.seed,
        escape(
            &command.unwrap_or_else(|| format!("cairn bench all --{} --seed {}", options.mode, options.seed))
        ),
    )
}
