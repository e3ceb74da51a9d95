//! The verdict as markup: tiles, a sentence, the forest plot of the plainest case, wins beside
//! losses, the matrix of all topics and peers, and notes on how far to trust it.

use super::forest::{self, Forest, Row, in_words};
use super::format;
use super::html::{escape, list, plural};
use super::matrix::{self, both_figures};
use super::model::{self, Dim, Family, Model, Value, describe};
use super::svg;
use super::verdict::{Topic, Verdict};
use crate::core::ratio::{Outcome, Pair, Ratio};
use crate::core::results::{Contender, Run};
use crate::core::{ratio, stats};

/// An interval wider than this fraction of its median calls for more repetitions.
const WIDE: f64 = 0.1;
/// The number of samples that the project asks for.
const ENOUGH_SAMPLES: usize = stats::PAIRS_MIN;

/// Renders the opening of the page below its header. `choice` is the case that the headline chart
/// shows first.
pub(super) fn section(model: &Model<'_>, verdict: &Verdict<'_>, choice: &[(Dim, Value)]) -> String {
    if verdict.topics.is_empty() {
        let failures: String =
            own_failures(model.run).iter().map(|told| format!(" {}.", escape(told))).collect();
        return format!(
            "<section id=\"verdict\"><h2>Verdict</h2><p class=\"lead\">Nothing was measured.{failures}</p></section>"
        );
    }
    format!(
        "<section id=\"verdict\"><h2>Verdict</h2>{}{}{}{}{}{}</section>",
        tiles(model, verdict, choice),
        sentence(model, verdict, choice),
        plain_case(model, verdict, choice),
        both_sides(model, verdict, choice),
        overall(verdict),
        trust(model, verdict)
    )
}

/// Renders one tile per topic: Cairn's best value in the plainest case, and its comparison with the
/// best peer.
fn tiles(model: &Model<'_>, verdict: &Verdict<'_>, choice: &[(Dim, Value)]) -> String {
    let tile = |topic: &Topic| {
        let pairs = verdict.pairs_at(model, topic, choice);
        let peer = model::best(pairs.iter().map(|(_, pair)| pair.against))?;
        // The tile shows the subject of that peer's own pair, because not every peer meets the same
        // contender of ours.
        let (Family { name: family, .. }, pair) =
            pairs.iter().find(|(_, pair)| pair.against.contender == peer.contender)?;
        let subject = pair.subject;
        let ratio = ratio::within(*pair)?;
        let (tone, sign) = (forest::tone(ratio.outcome()), forest::sign(ratio));
        let words = match ratio.outcome() {
            Outcome::Better => "ahead of",
            Outcome::Worse => "behind",
            Outcome::Unclear => "level with",
            Outcome::TooFew => "too few samples to compare with",
        };
        Some(format!(
            "<li class=\"tile {tone}\"><span class=\"what\">{}</span><b>{}</b>\
             <span class=\"how\">{sign} {words} {}, the best peer: {}</span></li>",
            escape(&topic.label),
            escape(&format::quantity(subject.median, &subject.unit)),
            escape(family),
            format::ratio(ratio.point)
        ))
    };
    let tiles: String = verdict.topics.iter().filter_map(tile).take(8).collect();
    if tiles.is_empty() {
        return tiles;
    }
    let phrases = choice.iter().map(|(dim, value)| dim.phrase(value)).filter(|phrase| !phrase.is_empty());
    let case = phrases.collect::<Vec<_>>().join(" · ");
    format!("<p class=\"shown\">{}</p><ul class=\"tiles\">{tiles}</ul>", escape(&case))
}

fn sentence(model: &Model<'_>, verdict: &Verdict<'_>, choice: &[(Dim, Value)]) -> String {
    let Some(topic) = verdict.topics.first() else { return String::new() };
    let pairs = verdict.pairs_at(model, topic, choice);
    let Some((_, first)) = pairs.first() else {
        let failures: String =
            own_failures(model.run).iter().map(|failure| format!(" <b>{}.</b>", escape(failure))).collect();
        return format!(
            "<p class=\"lead\">No peer was measured in the same case as Cairn, so there is nothing to compare.{failures}</p>"
        );
    };
    let subject = first.subject;
    let named = |wanted: Outcome| {
        let hit = |(_, pair): &(_, Pair<'_>)| {
            let ratio = ratio::within(*pair).filter(|ratio| ratio.outcome() == wanted)?;
            Some(format!("{} ({})", escape(&pair.against.contender), escape(&format::ratio(ratio.point))))
        };
        pairs.iter().filter_map(hit).collect::<Vec<String>>()
    };
    let dims = [Dim::Entries, Dim::ValueBytes, Dim::Compression, Dim::Keys, Dim::Threads];
    let mut out = format!(
        "<p class=\"lead\">{}: <b>{}</b> reaches <b>{}</b> ({}).",
        escape(&topic.label),
        escape(&subject.contender),
        escape(&format::quantity(subject.median, &subject.unit)),
        escape(&describe(&subject.case, &dims))
    );
    let groups = [
        (Outcome::Better, "ahead of"),
        (Outcome::Worse, "behind"),
        (Outcome::Unclear, "not clearly different from"),
        (Outcome::TooFew, "measured too few times to be compared with"),
    ];
    for (outcome, words) in groups {
        let names = named(outcome);
        if !names.is_empty() {
            out += &format!(" That is {words} {}.", list(&names));
        }
    }
    out + &losses_elsewhere(model, verdict, choice) + "</p>"
}

/// Returns the topics after the first in which Cairn is behind, stated as plainly as its wins.
fn losses_elsewhere(model: &Model<'_>, verdict: &Verdict<'_>, choice: &[(Dim, Value)]) -> String {
    let behind = |topic: &Topic| {
        let lost = |(family, pair): &(Family<'_>, Pair<'_>)| {
            let ratio = ratio::within(*pair).filter(|ratio| ratio.outcome() == Outcome::Worse)?;
            Some(format!("{} ({})", escape(family.name), escape(&format::ratio(ratio.point))))
        };
        let names: Vec<String> = verdict.pairs_at(model, topic, choice).iter().filter_map(lost).collect();
        (!names.is_empty())
            .then(|| format!("<b>{}</b> against {}", escape(&topic.label.to_lowercase()), list(&names)))
    };
    let all: Vec<String> = verdict.topics.iter().skip(1).filter_map(behind).collect();
    if all.is_empty() && !own_failures(model.run).is_empty() {
        " Cairn failed in some cases, which are left out here.".to_owned()
    } else if all.is_empty() {
        " In the other topics of this case no peer is clearly ahead.".to_owned()
    } else {
        format!(" Cairn is behind in {}.", all.join("; in "))
    }
}

/// Renders the forest plot of the first topic in the plainest case.
fn plain_case(model: &Model<'_>, verdict: &Verdict<'_>, choice: &[(Dim, Value)]) -> String {
    let Some(topic) = verdict.topics.first() else { return String::new() };
    let mut rows: Vec<Row> = Vec::new();
    for (family, pair) in verdict.pairs_at(model, topic, choice) {
        let Some(ratio) = ratio::within(pair) else { continue };
        rows.push(Row {
            label: pair.against.contender.clone(),
            style: family.style,
            ratio,
            detail: both_figures(pair),
        });
    }
    rows.sort_by(|a, b| a.ratio.point.total_cmp(&b.ratio.point));
    let title = format!("{}: Cairn’s best against each peer’s best", topic.label);
    Forest { id: "verdict-forest", title: &title, sides: ("peer ahead", "Cairn ahead"), rows }.render()
}

/// Renders wins, losses and undecided topics of the plainest case, one block each, all in one
/// style.
fn both_sides(model: &Model<'_>, verdict: &Verdict<'_>, choice: &[(Dim, Value)]) -> String {
    let mut blocks = [
        (Outcome::Better, "▲ Cairn is ahead", 0, String::new()),
        (Outcome::Worse, "▼ Cairn is behind", 0, String::new()),
        (Outcome::Unclear, "~ No clear difference", 0, String::new()),
        (Outcome::TooFew, "? Too few samples", 0, String::new()),
    ];
    for topic in &verdict.topics {
        let pairs = verdict.pairs_at(model, topic, choice);
        let mut ratios: Vec<(&Family<'_>, Pair<'_>, Ratio)> = pairs
            .iter()
            .filter_map(|(family, pair)| ratio::within(*pair).map(|ratio| (family, *pair, ratio)))
            .collect();
        ratios.sort_by(|a, b| a.2.point.total_cmp(&b.2.point));
        for (outcome, _, total, items) in &mut blocks {
            let mine: Vec<String> =
                ratios.iter().filter(|(_, _, ratio)| ratio.outcome() == *outcome).map(versus).collect();
            if !mine.is_empty() {
                *total += mine.len();
                *items += &format!(
                    "<li><span class=\"topic\">{}</span><span>{}</span></li>",
                    escape(&topic.label),
                    mine.join(" ")
                );
            }
        }
    }
    for failure in own_failures(model.run) {
        blocks[1].3 +=
            &format!("<li><span class=\"topic\">Failed</span><span>{}</span></li>", escape(&failure));
    }
    let block = |(outcome, title, total, items): (Outcome, &str, usize, String)| {
        if outcome == Outcome::TooFew && items.is_empty() {
            return String::new();
        }
        let items = if items.is_empty() { "<li class=\"none\">nowhere</li>".to_owned() } else { items };
        let tone = forest::tone(outcome);
        format!("<div class=\"side {tone}\"><h3>{title} <small>{total}</small></h3><ul>{items}</ul></div>")
    };
    format!(
        "<h3>The same case, topic by topic <small>ratio of medians with its {} interval; above 1×, Cairn is better, also where less is better</small></h3><div class=\"sides\">{}</div>",
        stats::LEVEL,
        blocks.map(block).concat()
    )
}

/// Describes the cases in which Cairn's own contenders failed. In such a case, the absence of a
/// peer that is ahead means nothing.
fn own_failures(run: &Run) -> Vec<String> {
    run.failures().into_iter().filter(|failed| failed.ours).filter_map(Contender::failure).collect()
}

fn versus((family, pair, ratio): &(&Family<'_>, Pair<'_>, Ratio)) -> String {
    let figures = both_figures(*pair);
    format!(
        "<span class=\"vs\" data-tip=\"{}\n{}\">{} <b>{}</b></span>",
        escape(family.name),
        escape(&figures),
        escape(family.name),
        escape(&in_words(*ratio))
    )
}

/// Renders the matrix of all peers and topics over all cases.
fn overall(verdict: &Verdict<'_>) -> String {
    let columns: Vec<String> = verdict.topics.iter().map(|topic| topic.label.clone()).collect();
    let row = |(place, peer): (usize, &Family<'_>)| {
        let cells = (0..columns.len()).map(|topic| verdict.cell(topic, place)).collect();
        (format!("{}{}", svg::key(peer.style), escape(peer.name)), cells)
    };
    let rows: Vec<_> = verdict.peers.iter().enumerate().map(row).collect();
    let table = matrix::table("Cairn’s best against each family over all cases", "Against", &columns, &rows);
    if table.is_empty() {
        return table;
    }
    format!(
        "<h3>Over all cases <small>geometric mean of the ratios; small figures count the cases</small></h3>{table}\
         <p class=\"note\">▲ Cairn ahead, ▼ Cairn behind, ~ not significant at {}, ? measured too few times to tell, ± ahead in some cases and \
         behind in others. In each case, the best of Cairn’s contenders is compared with the best of the family. Above 1×, Cairn is better, \
         also where less is better, as with time and bytes. Batched lookups are compared with the best way in which a peer looks up \
         many keys, which may be one by one.</p>",
        stats::LEVEL
    )
}

/// Renders the notes that a sceptical reader should see before quoting a value.
fn trust(model: &Model<'_>, verdict: &Verdict<'_>) -> String {
    let run = model.run;
    let mut notes: Vec<String> = Vec::new();
    if run.mode == "quick" {
        notes.push(
            "This was a <b>quick</b> run: smaller stores and fewer repetitions than quoted figures need."
                .to_owned(),
        );
    }
    if run.stopped {
        notes.push("The run <b>ended early</b>: missing values were not measured.".to_owned());
    }
    let timed = || run.measurements.iter().filter(|m| !m.is_exact());
    let few = timed().filter(|m| m.samples.len() < ENOUGH_SAMPLES).count();
    if few > 0 {
        let measurements = plural(timed().count(), "measurement");
        notes.push(format!("{few} of {measurements} rest on fewer than {ENOUGH_SAMPLES} samples."));
    }
    let wide = timed().filter(|m| (m.high - m.low) / m.median > WIDE).count();
    if wide > 0 {
        notes.push(format!(
            "{} an interval wider than 10 % of the median: read small differences there as noise.",
            if wide == 1 { "1 measurement has".to_owned() } else { format!("{wide} measurements have") }
        ));
    }
    let comparisons = verdict.comparisons();
    if comparisons >= 20 {
        notes.push(format!(
            "The verdict rests on {comparisons} comparisons at {}: if nothing differed, one in {:.0} would look clear by chance.",
            stats::LEVEL,
            1.0 / (1.0 - stats::CONFIDENCE)
        ));
    }
    let ours = run.contenders.iter().filter(|c| c.ours && c.skipped.is_none()).count();
    if ours > 1 {
        notes.push(format!(
            "In each case the fastest of Cairn’s {ours} contenders represents it, and likewise for each peer. The choice is made by the same figures \
             as the interval, which flatters the side with more contenders to choose from when they are about equally fast."
        ));
    }
    let unverified = run.measurements.iter().filter(|m| !m.verified).count();
    if unverified > 0 {
        notes.push(format!(
            "The results of {} were <b>not verified</b> against the data; the verdict leaves them out.",
            plural(unverified, "measurement")
        ));
    }
    let failed: Vec<String> =
        run.failures().into_iter().filter_map(Contender::failure).map(|told| escape(&told)).collect();
    if !failed.is_empty() {
        notes.push(format!("Some measurements <b>failed</b> and have no figures. {}.", failed.join(". ")));
    }
    let skipped: Vec<String> = run
        .contenders
        .iter()
        .filter(|c| c.skipped.is_some() && c.failures() == 0)
        .map(|c| escape(&c.name))
        .collect();
    if !skipped.is_empty() {
        notes.push(format!(
            "Skipped, for the reasons given under <a href=\"#contenders\">contenders</a>: {}.",
            list(&skipped)
        ));
    }
    notes.push(
        "One machine, and the data named above: elsewhere the ratios differ too. The commands to repeat the run are <a href=\"#repeat\">below</a>."
            .to_owned(),
    );
    let items: String = notes.iter().map(|note| format!("<li>{note}</li>")).collect();
    format!("<div class=\"trust\"><h3>How far to trust this</h3><ul>{items}</ul></div>")
}
