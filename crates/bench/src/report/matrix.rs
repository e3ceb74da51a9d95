//! A matrix of ratios. Each cell shows the geometric mean of its cases and the tally of their
//! outcomes, so that a mean cannot hide the cases that point the other way.

use super::forest;
use super::format;
use super::html::{escape, plural};
use super::model::{Dim, describe};
use crate::core::ratio::{Outcome, Pair, Ratio};
use crate::core::results::Measurement;
use crate::core::{ratio, stats};

/// The cases of one row and column.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    /// The mean over all cases.
    ratio: Ratio,
    /// Each case with its own ratio.
    cases: Vec<(Pair<'a>, Ratio)>,
}

/// How one side compares with the other over several cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The mean and every significant case agree.
    Clear(Outcome),
    /// Ahead in some cases and behind in others, which a mean must not hide.
    Mixed,
}

impl<'a> Cell<'a> {
    /// Combines cases. Returns none if there are no cases.
    pub(super) fn new(cases: Vec<(Pair<'a>, Ratio)>) -> Option<Self> {
        let ratios: Vec<Ratio> = cases.iter().map(|(_, ratio)| *ratio).collect();
        ratio::mean(&ratios).map(|ratio| Cell { ratio, cases })
    }

    /// Returns how the subject compares.
    pub(super) fn standing(&self) -> Standing {
        let (better, worse) = (self.count(Outcome::Better), self.count(Outcome::Worse));
        if better == 0 || worse == 0 {
            return Standing::Clear(self.ratio.outcome());
        }
        // At this confidence, one comparison in twenty is significant although nothing differs. The
        // standing is mixed only if more cases than that, by two standard deviations, are
        // significant. Exact values never differ by chance.
        let is_exact = |pair: &Pair<'_>| pair.subject.is_exact() && pair.against.is_exact();
        let varying = || self.cases.iter().filter(|(pair, _)| !is_exact(pair));
        let cases = varying().filter(|(_, ratio)| ratio.interval.is_some()).count() as f64;
        let clear = varying().filter(|(_, ratio)| ratio.outcome().is_clear()).count();
        let by_chance = 1.0 - stats::CONFIDENCE;
        let chance = by_chance * cases + 2.0 * (by_chance * (1.0 - by_chance) * cases).sqrt();
        let certain = better + worse - clear;
        if certain > 0 || clear as f64 > chance { Standing::Mixed } else { Standing::Clear(Outcome::Unclear) }
    }

    /// Returns the number of cases in the mean: those with an interval, or all if none has one.
    pub(super) fn counted(&self) -> usize {
        let sure = self.cases.iter().filter(|(_, ratio)| ratio.interval.is_some()).count();
        if sure > 0 { sure } else { self.cases.len() }
    }

    /// Returns the geometric mean over all cases.
    pub(super) fn ratio(&self) -> Ratio {
        self.ratio
    }

    /// Returns the cases, each with its own ratio.
    pub(super) fn cases(&self) -> &[(Pair<'a>, Ratio)] {
        &self.cases
    }

    /// Counts the cases with this outcome.
    fn count(&self, outcome: Outcome) -> usize {
        self.cases.iter().filter(|(_, ratio)| ratio.outcome() == outcome).count()
    }

    /// Renders the table cell, with its worst and best case in the tooltip.
    pub(super) fn render(&self) -> String {
        let (tone, sign) = match self.standing() {
            Standing::Clear(Outcome::Unclear) if self.ratio.outcome().is_clear() => ("unclear", "~"),
            Standing::Clear(outcome) => (forest::tone(outcome), forest::sign(self.ratio)),
            Standing::Mixed => ("mixed", "±"),
        };
        let tally: Vec<String> =
            [(Outcome::Better, "▲"), (Outcome::Worse, "▼"), (Outcome::Unclear, "~"), (Outcome::TooFew, "?")]
                .into_iter()
                .map(|(outcome, sign)| (self.count(outcome), sign))
                .filter(|(count, _)| *count > 0)
                .map(|(count, sign)| format!("{count} {sign}"))
                .collect();
        format!(
            "<td class=\"{tone}\" data-tip=\"{}\"><b>{sign} {}</b><small>{}</small></td>",
            escape(&self.tip()),
            format::ratio(self.ratio.point),
            tally.join(" · ")
        )
    }

    fn tip(&self) -> String {
        let mut tip = forest::in_words(self.ratio);
        let order = |a: &&(Pair<'_>, Ratio), b: &&(Pair<'_>, Ratio)| a.1.point.total_cmp(&b.1.point);
        let extremes = self.cases.iter().min_by(order).zip(self.cases.iter().max_by(order));
        let Some((worst, best)) = extremes else { return tip };
        let told = |name: &str, (pair, ratio): &(Pair<'_>, Ratio)| {
            let case = describe(&pair.subject.case, Dim::ALL.get(1..).unwrap_or_default());
            format!("\n{name} {}\n{case}\n{}", forest::in_words(*ratio), both_figures(*pair))
        };
        if self.cases.len() > 1 {
            let left_out = match self.cases.len() - self.counted() {
                0 => String::new(),
                1 => ", without 1 that has no interval".to_owned(),
                count => format!(", without {count} that have no interval"),
            };
            tip += &format!(" over {}{left_out}", plural(self.counted(), "case"));
            tip += &told("Worst:", worst);
            tip += &told("Best:", best);
        } else {
            tip += &told("The one case:", worst);
        }
        tip
    }
}

/// Returns the values behind a ratio, one per line. Not escaped.
pub(super) fn both_figures(pair: Pair<'_>) -> String {
    let side = |m: &Measurement| format!("{} {}", m.contender, format::quantity(m.median, &m.unit));
    format!("{}\n{}", side(pair.subject), side(pair.against))
}

/// Renders the table; empty without rows. Column heads are plain text, row heads are markup.
/// Columns that have no cell in any row are left out.
pub(super) fn table(
    caption: &str,
    corner: &str,
    columns: &[String],
    rows: &[(String, Vec<Option<&Cell<'_>>>)],
) -> String {
    let filled = |column: usize| rows.iter().any(|(_, cells)| cells.get(column).is_some_and(Option::is_some));
    let shown: Vec<usize> = (0..columns.len()).filter(|column| filled(*column)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let head = |column: &usize| {
        let label = columns.get(*column).map(|label| escape(label)).unwrap_or_default();
        format!("<th scope=\"col\">{label}</th>")
    };
    let heads: String = shown.iter().map(head).collect();
    let row = |(label, cells): &(String, Vec<Option<&Cell<'_>>>)| {
        let cell = |column: &usize| match cells.get(*column) {
            Some(Some(cell)) => cell.render(),
            _ => format!("<td class=\"empty\">{}</td>", format::NONE),
        };
        format!("<tr><th scope=\"row\">{label}</th>{}</tr>", shown.iter().map(cell).collect::<String>())
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"matrix\"><caption class=\"hidden\">{}</caption><thead><tr>\
         <th scope=\"col\">{}</th>{heads}</tr></thead><tbody>{body}</tbody></table></div>",
        escape(caption),
        escape(corner)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::measurement;

    /// Goal: a mean never hides cases that point the other way. Method: one large win beside one
    /// loss, then only wins.
    #[test]
    fn mixed_cases_are_called_mixed() {
        let base = measurement("peer", "get", "throughput", &[10.0, 10.0, 10.0]);
        let win = measurement("ours", "get", "throughput", &[90.0, 90.0, 90.0]);
        let loss = measurement("ours", "get", "throughput", &[5.0, 5.0, 5.0]);
        let case = |subject| {
            let pair = Pair { subject, against: &base };
            (pair, ratio::within(pair).unwrap())
        };
        let mixed = Cell::new(vec![case(&win), case(&loss)]).unwrap();
        assert_eq!(mixed.standing(), Standing::Mixed);
        let text = mixed.render();
        assert!(
            text.contains("±") && text.contains("1 ▲ · 1 ▼") && !text.contains("class=\"better\""),
            "{text}"
        );
        let clear = Cell::new(vec![case(&win), case(&win)]).unwrap();
        assert_eq!(clear.standing(), Standing::Clear(Outcome::Better));
        assert!(Cell::new(Vec::new()).is_none());
    }

    /// Goal: a few significant cases among many are chance, not a finding. Method: 98 equal cases,
    /// one better, one worse.
    #[test]
    fn chance_is_not_called_mixed() {
        let base = measurement("peer", "get", "throughput", &[10.0, 10.0, 10.0]);
        let like = measurement("ours", "get", "throughput", &[9.0, 10.0, 11.0]);
        let win = measurement("ours", "get", "throughput", &[10.5, 10.5, 10.5]);
        let loss = measurement("ours", "get", "throughput", &[9.5, 9.5, 9.5]);
        let case = |subject| {
            let pair = Pair { subject, against: &base };
            (pair, ratio::within(pair).unwrap())
        };
        let mut cases = vec![case(&like); 98];
        cases.extend([case(&win), case(&loss)]);
        assert_eq!(Cell::new(cases).unwrap().standing(), Standing::Clear(Outcome::Unclear));
    }

    /// Goal: cases that point both ways are mixed however few samples they have, and one case with
    /// too few samples for an interval does not change the standing of the others. Method: one
    /// better and one worse case among five even ones, with three samples each and with five, next
    /// to a case of one sample.
    #[test]
    fn chance_follows_the_samples() {
        let noise = [9.0, 10.0, 11.0, 9.5, 10.5];
        for (samples, standing) in [(3, Standing::Mixed), (5, Standing::Mixed)] {
            let of = |values: &[f64]| measurement("ours", "get", "throughput", &values[..samples]);
            let (base, like) = (of(&[10.0; 5]), of(&noise));
            let (win, loss) = (of(&[10.5; 5]), of(&[9.5; 5]));
            let once = measurement("ours", "get", "throughput", &[90.0]);
            let case = |subject| {
                let pair = Pair { subject, against: &base };
                (pair, ratio::within(pair).unwrap())
            };
            let mut cases = vec![case(&like); 5];
            cases.extend([case(&win), case(&loss), case(&once)]);
            let cell = Cell::new(cases).unwrap();
            assert_eq!((cell.standing(), cell.counted()), (standing, 7));
            assert!(
                cell.render().contains("over 7 cases, without 1 that has no interval"),
                "{}",
                cell.render()
            );
        }
    }

    /// Goal: columns without cells are dropped, and rows keep their gaps. Method: two columns, one
    /// of them empty.
    #[test]
    fn empty_columns_are_left_out() {
        let m = measurement("ours", "get", "throughput", &[1.0, 1.0]);
        let pair = Pair { subject: &m, against: &m };
        let cell = Cell::new(vec![(pair, ratio::within(pair).unwrap())]).unwrap();
        let columns = ["left".to_owned(), "right".to_owned()];
        let html = table(
            "t",
            "c",
            &columns,
            &[("a".to_owned(), vec![Some(&cell), None]), ("b".to_owned(), vec![None, None])],
        );
        assert!(html.contains(">left<") && !html.contains(">right<") && html.contains("class=\"empty\""));
        assert_eq!(table("t", "c", &columns, &[("a".to_owned(), vec![None, None])]), "");
    }
}
