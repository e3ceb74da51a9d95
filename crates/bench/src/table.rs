//! The outcome of a run as tables: for the terminal after a run, and for the README from a stored one.
//!
//! Each line is a comparison: the best of ours with the fastest of Sparkey's Java readers and with the best of the
//! other peers, each with the ratio of medians and its interval. Over 1 is in our favour, whichever way the metric goes.

use crate::error::{Error, Result};
use crate::peers::sparkey_java;
use crate::results::{Case, Contender, Measurement, Run};
use crate::stats::{self, Estimate};
use crate::text::{self, Align, Table};

/// Before the generated part of a page.
pub const BEGIN_MARKER: &str = "<!-- results:begin -->";

/// After it.
pub const END_MARKER: &str = "<!-- results:end -->";

/// The best of one side in one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side<'a> {
    /// The measurement.
    pub measurement: &'a Measurement,
    /// Our figure against it; `None` on our own side and where there is no ratio.
    pub ratio: Option<Estimate>,
}

/// One line: ours and theirs.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The best of Cairn's.
    pub ours: &'a Measurement,
    /// The best of Sparkey's Java readers.
    pub sparkey: Option<Side<'a>>,
    /// The best of all others.
    pub peer: Option<Side<'a>>,
}

/// One line for each case and metric that we have a figure in, in the order of the run.
pub fn lines(run: &Run) -> Vec<Line<'_>> {
    let mut seen: Vec<(&Case, &str)> = Vec::new();
    let mut lines = Vec::new();
    for measurement in &run.measurements {
        let key = (&measurement.case, measurement.metric.as_str());
        if !seen.contains(&key) {
            seen.push(key);
            lines.extend(line(run, measurement));
        }
    }
    lines
}

fn line<'a>(run: &'a Run, of: &Measurement) -> Option<Line<'a>> {
    let ours = best(run, of, &|contender| contender.ours)?;
    let side = |measurement: &'a Measurement| {
        let (over, under) = if ours.higher_is_better { (ours, measurement) } else { (measurement, ours) };
        let ratio = stats::paired_ratio(&over.samples, &under.samples, run.seed)
            .or_else(|| stats::unpaired_ratio(&over.samples, &under.samples, run.seed));
        Side { measurement, ratio }
    };
    let is_java = |contender: &Contender| contender.family == sparkey_java::FAMILY;
    Some(Line {
        ours,
        sparkey: best(run, of, &is_java).map(side),
        peer: best(run, of, &|contender| !contender.ours && !is_java(contender)).map(side),
    })
}

/// The best measurement of the case among some contenders. Whoever has no batch operation would look keys up one by
/// one, so for batches its single lookups count.
fn best<'a>(run: &'a Run, of: &Measurement, side: &dyn Fn(&Contender) -> bool) -> Option<&'a Measurement> {
    let single = Case { operation: "get".to_owned(), ..of.case.clone() };
    let is_ours =
        |name: &str| run.contenders.iter().any(|contender| contender.name == name && contender.ours);
    let is_on_side =
        |name: &str| run.contenders.iter().any(|contender| contender.name == name && side(contender));
    let fits = |measurement: &&Measurement| {
        let stands_in =
            of.case.operation == "get_many" && measurement.case == single && !is_ours(&measurement.contender);
        measurement.metric == of.metric
            && (measurement.case == of.case || stands_in)
            && measurement.median > 0.0
            && is_on_side(&measurement.contender)
    };
    let candidates = run.measurements.iter().filter(fits);
    if of.higher_is_better {
        candidates.max_by(|a, b| a.median.total_cmp(&b.median))
    } else {
        candidates.min_by(|a, b| a.median.total_cmp(&b.median))
    }
}

fn summary(run: &Run) -> Table {
    let mut table = Table::new(&[
        ("what", Align::Left),
        ("metric", Align::Left),
        ("Cairn", Align::Right),
        ("Sparkey (Java)", Align::Right),
        ("against it", Align::Right),
        ("best other peer", Align::Right),
        ("against it", Align::Right),
    ]);
    for Line { ours, sparkey, peer } in lines(run) {
        let theirs = |side: Option<Side<'_>>, named: bool| {
            side.map_or(("–".to_owned(), String::new()), |Side { measurement, ratio }| {
                let figure = text::value(measurement.median, &measurement.unit);
                let figure = if named { format!("{} {figure}", measurement.contender) } else { figure };
                (figure, ratio.map_or_else(String::new, |ratio| verdict(&ratio)))
            })
        };
        let ((java, over_java), (other, over_other)) = (theirs(sparkey, false), theirs(peer, true));
        let own = format!("{} {}", ours.contender, text::value(ours.median, &ours.unit));
        table.row(vec![text::case(&ours.case), ours.metric.clone(), own, java, over_java, other, over_other]);
    }
    table
}

/// `3.42x`, with a `~` before it where the interval contains 1.
fn verdict(ratio: &Estimate) -> String {
    let mark = if ratio.excludes_one() { "" } else { "~ " };
    format!("{mark}{}", text::ratio(ratio.value))
}

/// The summary for a terminal: a line for each case.
pub fn to_text(run: &Run) -> String {
    summary(run).to_text()
}

/// Every contender of every case, best first, ours marked; for a terminal.
pub fn details(run: &Run) -> String {
    let mut out = String::new();
    let mut seen: Vec<(&Case, &str)> = Vec::new();
    for first in &run.measurements {
        let key = (&first.case, first.metric.as_str());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let mut all: Vec<&Measurement> =
            run.measurements.iter().filter(|m| (&m.case, m.metric.as_str()) == key).collect();
        all.sort_by(|a, b| a.median.total_cmp(&b.median));
        if first.higher_is_better {
            all.reverse();
        }
        out += &format!("{}: {}\n{}\n", text::case(&first.case), first.metric, ranking(run, &all).to_text());
    }
    out
}

fn ranking(run: &Run, all: &[&Measurement]) -> Table {
    let headings = [
        ("", Align::Left),
        ("contender", Align::Left),
        ("median", Align::Right),
        ("95 % interval", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings);
    for measurement in all {
        let ours =
            run.contenders.iter().any(|contender| contender.ours && contender.name == measurement.contender);
        let [median, low, high] = [measurement.median, measurement.low, measurement.high]
            .map(|value| text::value(value, &measurement.unit));
        let mut remarks = Vec::new();
        if !measurement.verified {
            remarks.push("answers not checked");
        }
        if stats::outliers(&measurement.samples).contains(&true) {
            remarks.push("outliers");
        }
        let mark = if ours { "*" } else { "" }.to_owned();
        let interval = format!("{low} to {high}");
        table.row(vec![mark, measurement.contender.clone(), median, interval, remarks.join(", ")]);
    }
    table
}

/// The summary in Markdown, with the machine, the data and who could not take part.
pub fn to_markdown(run: &Run) -> String {
    let field =
        |name: &str| run.machine.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let machine: Vec<&str> =
        ["cpu", "memory", "kernel", "file system"].into_iter().filter_map(field).collect();
    let cores = field("cores").map(|cores| format!("{cores} cores, ")).unwrap_or_default();
    let skipped: Vec<String> = run
        .contenders
        .iter()
        .filter_map(|contender| {
            contender.skipped.as_ref().map(|reason| format!("{} ({reason})", contender.name))
        })
        .collect();
    let mut out = summary(run).to_markdown();
    out += &format!(
        "\nRun of {} ({}), {cores}{}. {}\n\
         `~` marks ratios whose 95 % interval contains 1. Over 1 is in Cairn's favour.\n",
        run.started,
        run.mode,
        machine.join(", "),
        run.data
    );
    if !skipped.is_empty() {
        out += &format!("Left out: {}.\n", skipped.join("; "));
    }
    out
}

/// Puts `table` between the markers of `page`, in place of what is there.
///
/// Errors: [`Error::Invalid`] when the page does not have each marker once, in order.
pub fn replace_between_markers(page: &str, table: &str) -> Result<String> {
    let refuse = || {
        Error::invalid(format!("the page must have {BEGIN_MARKER} and {END_MARKER}, once each and in order"))
    };
    if page.matches(BEGIN_MARKER).count() != 1 || page.matches(END_MARKER).count() != 1 {
        return Err(refuse());
    }
    let (before, rest) = page.split_once(BEGIN_MARKER).ok_or_else(refuse)?;
    let (_, after) = rest.split_once(END_MARKER).ok_or_else(refuse)?;
    Ok(format!("{before}{BEGIN_MARKER}\n{}\n{END_MARKER}{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample_run;

    /// Goal: the best of each side meets the best of ours: for lookups, for batches (where singles stand in), and for
    /// metrics where less is better.
    #[test]
    fn best_meets_best() {
        let run = sample_run();
        let lines = lines(&run);
        assert_eq!(lines.len(), 4);
        let get = &lines[0];
        assert_eq!(get.sparkey.unwrap().measurement.contender, "sparkey-java FAST (JDK 25)");
        assert!((get.sparkey.unwrap().ratio.unwrap().value - 4.0).abs() < 1e-9);
        assert_eq!(get.peer.unwrap().measurement.contender, "lmdb");
        let many = &lines[1];
        assert!((many.sparkey.unwrap().ratio.unwrap().value - 10.0).abs() < 1e-9);
        assert!((many.peer.unwrap().ratio.unwrap().value - 5.0).abs() < 1e-9);
        let build = &lines[2];
        assert_eq!((build.ours.contender.as_str(), build.sparkey.is_none()), ("cairn", true));
        assert!((build.peer.unwrap().ratio.unwrap().value - 2.0).abs() < 1e-9);
        assert!((lines[3].peer.unwrap().ratio.unwrap().value - 1.5).abs() < 1e-9);
    }

    /// Goal: the tables name everybody, mark ours, say who was left out, and equal runs give equal text.
    #[test]
    fn tables_say_it_all() {
        let run = sample_run();
        let text = to_text(&run);
        assert!(
            text.contains("cairn mmap 12.0 M/s") && text.contains("4.00x") && text.contains("lmdb 6.00 M/s"),
            "{text}"
        );
        let markdown = to_markdown(&run);
        assert!(
            markdown.contains("Left out: sqlite (not here).") && markdown.contains("2 cores"),
            "{markdown}"
        );
        assert_eq!(markdown, to_markdown(&run));
        let details = details(&run);
        let ranks: Vec<usize> =
            ["* ", "lmdb", "FAST", "SLOW"].iter().map(|word| details.find(word).unwrap()).collect();
        assert!(ranks.is_sorted(), "{details}");
    }

    /// Goal: a page keeps everything outside the markers; one without them, or with too many, is refused.
    #[test]
    fn pages_are_filled_between_markers() {
        let page = format!("# A\n\n{BEGIN_MARKER}\nold\n{END_MARKER}\n\nend\n");
        let filled = replace_between_markers(&page, "| new |\n\n").unwrap();
        assert_eq!(filled, format!("# A\n\n{BEGIN_MARKER}\n| new |\n{END_MARKER}\n\nend\n"));
        assert_eq!(replace_between_markers(&filled, "| new |").unwrap(), filled);
        for bad in [String::new(), format!("{END_MARKER}{BEGIN_MARKER}"), format!("{page}{page}")] {
            assert!(replace_between_markers(&bad, "x").is_err());
        }
    }
}
