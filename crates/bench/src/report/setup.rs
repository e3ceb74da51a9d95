//! The setup of the measurements: every engine and its settings, the machine, its probes, and how
//! to repeat the run.

use super::format;
use super::html::escape;
use super::model::Model;
use super::svg;
use crate::core::results::{Contender, NOT_MEASURED, Probe, Run};

/// Lists every engine that was asked for, including those that were skipped.
pub(super) fn contenders(model: &Model<'_>) -> String {
    let run = model.run;
    let (skipped, ran): (Vec<&Contender>, Vec<&Contender>) =
        run.contenders.iter().partition(|c| c.skipped.is_some());
    let mut out = String::from(
        "<section id=\"contenders\"><h2>Contenders</h2><p class=\"lead\">Every setting that is not the engine’s own \
         default, and the durability of its build.</p>",
    );
    if ran.is_empty() {
        out += "<p class=\"nothing\">No contender ran.</p>";
    } else {
        let rows: String = ran.iter().map(|contender| contender_row(model, contender)).collect();
        out += &format!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"big settings\"><thead><tr><th scope=\"col\">Contender</th>\
             <th scope=\"col\">Family</th><th scope=\"col\">Version</th><th scope=\"col\">Settings</th></tr></thead>\
             <tbody>{rows}</tbody></table></div>"
        );
    }
    if !skipped.is_empty() {
        let item = |contender: &&Contender| {
            let failure = contender.failure();
            let reason = failure.as_deref().or(contender.skipped.as_deref()).unwrap_or_default();
            let reason = if reason.trim().is_empty() { "no reason given" } else { reason };
            format!("<li><b>{}</b> {}</li>", escape(&contender.name), escape(reason))
        };
        let items: String = skipped.iter().map(item).collect();
        out += &format!("<div class=\"trust\"><h3>Skipped</h3><ul>{items}</ul></div>");
    }
    out + "</section>"
}

fn contender_row(model: &Model<'_>, contender: &Contender) -> String {
    let setting = |(name, value): (&String, &String)| {
        // The runner records operations that a contender could not do among its settings.
        let class = if name.starts_with(NOT_MEASURED) { "set bad" } else { "set" };
        format!("<span class=\"{class}\"><code>{}</code> {}</span>", escape(name), escape(value))
    };
    let settings: Vec<String> = contender.settings.iter().map(setting).collect();
    let settings = if settings.is_empty() { "all defaults".to_owned() } else { settings.join(" ") };
    format!(
        "<tr{}><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td class=\"wrap\">{settings}</td></tr>",
        if contender.ours { " class=\"ours\"" } else { "" },
        svg::key(model.style(&contender.name)),
        escape(&contender.name),
        escape(&contender.family),
        escape(&contender.version)
    )
}

/// Renders machine and probes, side by side. Most probes are taken before the run. The cost of the
/// lab's own loop with its keys is taken after each group.
pub(super) fn machine(run: &Run) -> String {
    let fields: String = run.machine.iter().map(|(name, value)| pair(name, value)).collect();
    format!(
        "<section id=\"machine\"><h2>Machine</h2><div class=\"twin\">{}{}</div></section>",
        block("Hardware, system and build", fields),
        probes("Probes", run.probes.iter())
    )
}

/// Renders probes as one of two columns.
pub(super) fn probes<'p>(title: &str, probes: impl Iterator<Item = &'p Probe>) -> String {
    block(title, probes.map(|probe| pair(&probe.name, &format::quantity(probe.value, &probe.unit))).collect())
}

/// Renders names and values as one of two columns. `rows` is markup.
pub(super) fn block(title: &str, rows: String) -> String {
    let rows = if rows.is_empty() { "<dt>not recorded</dt><dd></dd>".to_owned() } else { rows };
    format!("<div><h3>{}</h3><dl>{rows}</dl></div>", escape(title))
}

/// Renders a row of [`block`].
pub(super) fn pair(name: &str, value: &str) -> String {
    format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))
}

/// Renders the seed, the command, and the downloads of the raw results.
pub(super) fn repeat(run: &Run) -> String {
    format!(
        "<section id=\"repeat\"><h2>Repeat it</h2><p class=\"lead\">Keys, values and orders all follow from the seed \
         <code>{}</code>. On the same commit:</p><pre tabindex=\"0\"><code>{}</code></pre>\
         <p class=\"lead\">Data: {}</p>\
         <p class=\"downloads\"><button type=\"button\" id=\"save-json\">Save the raw results (JSON)</button> \
         <button type=\"button\" id=\"save-csv\">Save the table (CSV)</button></p>\
         <noscript><p class=\"note\">The raw results are in this file, in the element with the id <code>run</code>.</p></noscript>\
         </section>",
        run.seed,
        escape(&command(run)),
        escape(&run.data)
    )
}

/// Returns the command that the runner recorded, or one reconstructed from mode and seed.
fn command(run: &Run) -> String {
    let noted = run.machine.iter().find(|(name, value)| name == "command" && !value.trim().is_empty());
    match noted {
        Some((_, command)) => command.clone(),
        None => {
            let mode = if matches!(run.mode.as_str(), "quick" | "full") {
                format!(" --{}", run.mode)
            } else {
                String::new()
            };
            format!("cairn bench {}{mode} --seed {}", run.suite, run.seed)
        }
    }
}
