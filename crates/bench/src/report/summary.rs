//! The results of a run as tables: for the terminal after a run, and for the README from a stored
//! one.
//!
//! Each line is a comparison: the best of Cairn's engines with the suite's *reference* (Sparkey's
//! Java readers for the constant store, RocksDB for the key-value store, SQLite for SQL) and with
//! the best of the other peers, each with the ratio of medians. Over 1 is in Cairn's favour,
//! whichever direction the metric has.
//!
//! Sparkey's Java readers do not cache decompressed blocks. So for compressed values, a line that
//! includes them has the best of Cairn's readers without such a cache. Cairn's readers with a cache
//! have a separate line, without Sparkey. Each figure of lookups in compressed values comes with
//! the bytes per entry of the store, because a store that compresses less has less work.

use crate::core::error::{Error, Result};
use crate::core::ratio::{Outcome, Pair, Ratio};
use crate::core::recorder::{LATENCY, MEAN_LATENCY, THROUGHPUT};
use crate::core::results::{Case, Contender, ENDED_EARLY, Measurement, PEAK_MEMORY, Run, SPARKEY_JAVA};
use crate::core::sizes::size_of_store;
use crate::core::text::{Align, Table};
use crate::core::{ratio, stats, text};
use crate::suites::{index, kv, sql};

/// Returns the markers before and after the generated part of a page: `<!-- results:kv:begin -->`
/// for the suite `kv`.
pub fn markers(suite: &str) -> [String; 2] {
    ["begin", "end"].map(|end| format!("<!-- results:{suite}:{end} -->"))
}

/// Suffix of the case in a line about stores that cache decompressed blocks.
const KEPT_BLOCKS: &str = ", decompressed blocks kept in memory";

/// The best contender of one side in one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side<'a> {
    /// The measurement.
    pub measurement: &'a Measurement,
    /// Ratio of Cairn's figure to this one; `None` if it is undefined or meaningless.
    ratio: Option<Ratio>,
}

/// One line: Cairn and its rivals.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The best of Cairn's.
    pub ours: &'a Measurement,
    /// True if this line is about stores that cache decompressed blocks, in a case where that
    /// matters.
    pub keeps_blocks: bool,
    /// The best of the suite's reference.
    pub reference: Option<Side<'a>>,
    /// The best of all others.
    pub peer: Option<Side<'a>>,
}

/// Returns one line for each case and metric in which Cairn has a verified figure, in the order of
/// the run. There are two if some of Cairn's readers cache decompressed blocks and others do not.
pub fn lines(run: &Run) -> Vec<Line<'_>> {
    let mut seen: Vec<(&Case, &str)> = Vec::new();
    let mut lines = Vec::new();
    for measurement in &run.measurements {
        let key = (&measurement.case, measurement.metric.as_str());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        if measurement.case.decompresses() {
            lines.extend(line(run, measurement, &|ours| !ours.keeps_blocks()));
            lines.extend(cached_line(run, measurement));
        } else {
            lines.extend(line(run, measurement, &|_| true));
        }
    }
    lines
}

/// The peer with which a suite is compared by name.
struct Reference {
    title: &'static str,
    family: &'static str,
}

impl Reference {
    fn of(run: &Run) -> Reference {
        match run.suite.as_str() {
            kv::NAME => Reference { title: "RocksDB", family: "rocksdb" },
            index::NAME => Reference { title: "btree", family: "btree" },
            sql::NAME => Reference { title: "SQLite", family: "sqlite" },
            _ => Reference { title: "Sparkey (Java)", family: SPARKEY_JAVA },
        }
    }

    fn is(&self, contender: &Contender) -> bool {
        contender.family == self.family
    }

    /// Returns whether its memory is that of a whole virtual machine.
    fn is_java(&self) -> bool {
        self.family == SPARKEY_JAVA
    }
}

/// Compares the best of Cairn's that `fits` accepts with all others.
fn line<'a>(run: &'a Run, of: &Measurement, fits: &dyn Fn(&Contender) -> bool) -> Option<Line<'a>> {
    let ours = best(run, of, &|contender| contender.ours && fits(contender))?;
    let reference = Reference::of(run);
    let peer = best(run, of, &|other| !other.ours && !reference.is(other));
    Some(Line {
        ours,
        keeps_blocks: false,
        reference: best(run, of, &|other| reference.is(other))
            .map(|theirs| side(ours, theirs, reference.is_java())),
        peer: peer.map(|theirs| side(ours, theirs, false)),
    })
}

/// Compares the best of Cairn's that cache decompressed blocks with the peers that also do so.
fn cached_line<'a>(run: &'a Run, of: &Measurement) -> Option<Line<'a>> {
    let ours = best(run, of, &|contender| contender.ours && contender.keeps_blocks())?;
    let reference = Reference::of(run);
    let peer = best(run, of, &|other| !other.ours && !reference.is(other) && other.keeps_blocks());
    Some(Line {
        ours,
        keeps_blocks: true,
        reference: None,
        peer: peer.map(|theirs| side(ours, theirs, false)),
    })
}

fn side<'a>(ours: &'a Measurement, theirs: &'a Measurement, is_java: bool) -> Side<'a> {
    // Java's memory is that of the whole virtual machine, Cairn's is the rise above the records.
    let same_meaning = !(is_java && ours.metric == PEAK_MEMORY);
    let ratio = same_meaning.then(|| ratio::within(Pair { subject: ours, against: theirs })).flatten();
    Side { measurement: theirs, ratio }
}

/// Returns the best verified measurement of the case among some contenders. For batches, the single
/// lookups of a peer also count, because a peer without a batch operation would look keys up one by
/// one.
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
            && measurement.verified
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
        (Reference::of(run).title, Align::Right),
        ("against it", Align::Right),
        ("best other peer", Align::Right),
        ("against it", Align::Right),
    ]);
    for Line { ours, keeps_blocks, reference, peer } in lines(run) {
        if is_said_already(run, ours) {
            continue;
        }
        let theirs = |side: Option<Side<'_>>, named: bool| {
            side.map_or(("–".to_owned(), String::new()), |Side { measurement, ratio }| {
                let figure = figure(run, measurement);
                let figure = if named { format!("{} {figure}", measurement.contender) } else { figure };
                (figure, ratio.map_or_else(String::new, verdict))
            })
        };
        let ((known, over_known), (other, over_other)) = (theirs(reference, false), theirs(peer, true));
        let own = format!("{} {}", ours.contender, figure(run, ours));
        let what = match run.suite.as_str() {
            sql::NAME => sql::name_of(&ours.case),
            _ => text::case(&ours.case) + if keeps_blocks { KEPT_BLOCKS } else { "" },
        };
        table.row(vec![what, ours.metric.clone(), own, known, over_known, other, over_other]);
    }
    table
}

/// Returns whether a figure of an SQL run repeats another line: means repeat medians, and latencies
/// repeat throughputs.
fn is_said_already(run: &Run, of: &Measurement) -> bool {
    let has = |metric: &str| run.measurements.iter().any(|m| m.metric == metric && m.case == of.case);
    let repeats = match of.metric.as_str() {
        metric if metric == MEAN_LATENCY.name => has(LATENCY.name),
        metric if metric == LATENCY.name => has(THROUGHPUT.name),
        _ => false,
    };
    repeats && run.suite == sql::NAME
}

/// Formats a measurement: `9.63 M/s`, or `9.63 M/s at 74.7 B` for lookups of compressed values.
fn figure(run: &Run, measurement: &Measurement) -> String {
    let figure = text::value(measurement.median, &measurement.unit);
    let size = measurement.case.decompresses().then(|| size_of_store(run, measurement)).flatten();
    size.map_or_else(
        || figure.clone(),
        |size| format!("{figure} at {}", text::value(size.median, &size.unit)),
    )
}

/// Formats a ratio: `3.42x`, with a leading `~` if the interval contains 1, or `?` if there are too
/// few repetitions.
fn verdict(ratio: Ratio) -> String {
    let mark = match ratio.outcome() {
        Outcome::Better | Outcome::Worse => "",
        Outcome::Unclear => "~ ",
        Outcome::TooFew => "? ",
    };
    format!("{mark}{}", text::ratio(ratio.point))
}

/// Renders the summary for a terminal, one line per case.
pub fn to_text(run: &Run) -> String {
    summary(run).to_text() + &notes(run).concat()
}

/// Returns notes that explain the marks and the lines, one sentence with a line break each.
fn notes(run: &Run) -> Vec<String> {
    let lines = lines(run);
    let level = stats::LEVEL;
    let mut notes = vec![format!(
        "`~` marks ratios that cannot be told from 1 with {level} confidence. Over 1 is in Cairn's favour.\n"
    )];
    let is_open = |ratio: Option<Ratio>| ratio.is_some_and(|ratio| ratio.outcome() == Outcome::TooFew);
    let ratios =
        |line: &Line<'_>| [&line.reference, &line.peer].map(|peer| peer.as_ref().and_then(|peer| peer.ratio));
    if lines.iter().flat_map(ratios).any(is_open) {
        notes.push(format!(
            "`?` marks ratios of fewer than {} samples on a side, which say nothing yet.\n",
            stats::SAMPLES_MIN
        ));
    }
    if lines.iter().any(|line| line.ours.case.decompresses()) {
        notes.push(
            "Sparkey's Java readers decompress a block for every lookup. The lines beside them have the best of Cairn's that \
             keep no decompressed blocks either; those that do are named so and held against peers that do.\n"
                .to_owned(),
        );
    }
    let has_size = |line: &Line<'_>| line.ours.case.decompresses() && size_of_store(run, line.ours).is_some();
    if lines.iter().any(has_size) {
        notes.push(
            "`at` gives what the store takes for an entry. One that compresses less has less to do for an answer: such \
             figures compare together with their sizes.\n"
                .to_owned(),
        );
    }
    if lines.iter().any(|line| {
        line.ours.metric == PEAK_MEMORY && line.reference.is_some() && Reference::of(run).is_java()
    }) {
        notes.push(
            "Peak memory of Java is that of the whole virtual machine, that of all others the rise over what the records \
             take: no ratio.\n"
                .to_owned(),
        );
    }
    if run.stopped {
        notes.push(ENDED_EARLY.to_owned());
    }
    notes
}

/// Renders the summary in Markdown, with the machine, the data and the contenders that did not take
/// part.
pub fn to_markdown(run: &Run) -> String {
    let field =
        |name: &str| run.machine.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let machine: Vec<&str> =
        ["cpu", "memory", "kernel", "file system"].into_iter().filter_map(field).collect();
    let cores = field("cores").map(|cores| format!("{cores} cores, ")).unwrap_or_default();
    let failed: Vec<String> = run.failures().into_iter().filter_map(Contender::failure).collect();
    let skipped: Vec<String> = run
        .contenders
        .iter()
        .filter(|contender| contender.failures() == 0)
        .filter_map(|contender| {
            contender.skipped.as_ref().map(|reason| format!("{} ({reason})", contender.name))
        })
        .collect();
    let mut out = summary(run).to_markdown();
    out += &format!(
        "\nRun of {} ({}), {cores}{}. {}\n{}",
        run.started,
        run.mode,
        machine.join(", "),
        run.data,
        notes(run).concat()
    );
    if !failed.is_empty() {
        out += &format!("Failed: {}.\n", failed.join("; "));
    }
    if !skipped.is_empty() {
        out += &format!("Left out: {}.\n", skipped.join("; "));
    }
    out
}

/// Replaces the text between the markers of `suite` in `page` with `table`.
///
/// Errors: [`Error::Invalid`] unless the page has each marker once, in order.
pub fn replace_between_markers(page: &str, suite: &str, table: &str) -> Result<String> {
    let [begin, end] = markers(suite);
    let refuse = || Error::invalid(format!("the page must have {begin} and {end}, once each and in order"));
    if page.matches(&begin).count() != 1 || page.matches(&end).count() != 1 {
        return Err(refuse());
    }
    let (before, rest) = page.split_once(&begin).ok_or_else(refuse)?;
    let (_, after) = rest.split_once(&end).ok_or_else(refuse)?;
    Ok(format!("{before}{begin}\n{}\n{end}{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::results::BLOCK_CACHE;
    use crate::core::testing::{BYTES, THROUGHPUT, case, measurement, sample_run};

    /// Goal: the best of each side is compared with the best of Cairn's: for lookups, for batches
    /// (where single lookups substitute), and for metrics where less is better.
    #[test]
    fn best_contenders_of_each_side_are_compared() {
        let run = sample_run();
        let lines = lines(&run);
        assert_eq!(lines.len(), 4);
        let get = &lines[0];
        assert_eq!(get.reference.unwrap().measurement.contender, "sparkey-java FAST (JDK 25)");
        assert!((get.reference.unwrap().ratio.unwrap().point - 4.0).abs() < 1e-9);
        assert_eq!(get.peer.unwrap().measurement.contender, "lmdb");
        let many = &lines[1];
        assert!((many.reference.unwrap().ratio.unwrap().point - 10.0).abs() < 1e-9);
        assert!((many.peer.unwrap().ratio.unwrap().point - 5.0).abs() < 1e-9);
        let build = &lines[2];
        assert_eq!((build.ours.contender.as_str(), build.reference.is_none()), ("cairn", true));
        assert!((build.peer.unwrap().ratio.unwrap().point - 2.0).abs() < 1e-9);
        assert!((lines[3].peer.unwrap().ratio.unwrap().point - 1.5).abs() < 1e-9);
    }

    /// Goal: the tables name all contenders, mark Cairn's, list the ones left out, and are
    /// reproducible.
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
        assert!(!markdown.contains("ended early"));
        assert!(to_markdown(&Run { stopped: true, ..run }).contains("ended early"));
    }

    /// Goal: the page's table of an SQL run has one line per case, under the name that the run
    /// shows, and no further line for other views of the same time. Method: a case with a
    /// throughput, a latency and a mean; one without a throughput; and the same run as another
    /// suite's.
    #[test]
    fn sql_cases_have_one_line() {
        let mut run = sample_run();
        let throughput = run.measurements.iter().find(|m| m.metric == THROUGHPUT.0).unwrap().clone();
        for (metric, operation) in
            [("latency", "get"), ("mean latency", "get"), ("latency", "scan"), ("mean latency", "scan")]
        {
            let case = Case { operation: operation.to_owned(), threads: 8, ..throughput.case.clone() };
            run.measurements.push(Measurement { metric: metric.to_owned(), case, ..throughput.clone() });
        }
        let with_throughput = Case { operation: "get".to_owned(), threads: 8, ..throughput.case.clone() };
        run.measurements.push(Measurement { case: with_throughput, ..throughput.clone() });
        let count =
            |run: &Run, what: &str| to_markdown(run).lines().filter(|line| line.contains(what)).count();
        assert_eq!((count(&run, "| mean latency |"), count(&run, "| latency |")), (2, 2));
        run.suite = sql::NAME.to_owned();
        assert_eq!((count(&run, "| mean latency |"), count(&run, "| latency |")), (0, 1));
        assert_eq!((count(&run, "| get t8 | throughput |"), count(&run, "| scan t8 | latency |")), (1, 1));
    }

    /// Goal: figures that are not verified are never shown.
    #[test]
    fn unchecked_figures_are_not_shown() {
        let mut run = sample_run();
        for measurement in &mut run.measurements {
            measurement.verified = measurement.contender != "lmdb";
        }
        assert!(!to_text(&run).contains("lmdb"));
        run.measurements.iter_mut().for_each(|measurement| measurement.verified = false);
        assert!(lines(&run).is_empty());
    }

    /// Goal: a reader with a cache of decompressed blocks is never compared with Sparkey's readers,
    /// which have none. Method: lookups of zstd values by Cairn with a cache, Cairn without one,
    /// Java, and a peer with a cache. Cairn with a cache has a line of its own without Java, and
    /// with the peer.
    #[test]
    fn block_caches_are_compared_with_block_caches() {
        let mut run = sample_run();
        let compressed = Case { compression: "zstd".to_owned(), ..case("get", "present", 1) };
        let contender = |name: &str, family: &str, ours, cache: &str| Contender {
            name: name.to_owned(),
            family: family.to_owned(),
            ours,
            settings: [(BLOCK_CACHE.to_owned(), cache.to_owned())].into(),
            ..run.contenders[0].clone()
        };
        run.contenders = vec![
            contender("ours cached", "cairn", true, "64 MiB where compressed"),
            contender("ours bare", "cairn", true, "none"),
            contender("sparkey-java R", "sparkey-java", false, "none"),
            contender("peer", "rocksdb", false, "4 GiB"),
        ];
        let figure = |name: &str, rate: f64| measurement(name, &compressed, THROUGHPUT, &[rate; 5]);
        run.measurements = vec![
            figure("ours cached", 60e6),
            figure("sparkey-java R", 1e6),
            figure("ours bare", 3e6),
            figure("peer", 6e6),
        ];
        let lines = lines(&run);
        assert_eq!(lines.len(), 2);
        let (bare, cached) = (&lines[0], &lines[1]);
        assert_eq!((bare.ours.contender.as_str(), bare.keeps_blocks), ("ours bare", false));
        assert_eq!(bare.reference.unwrap().ratio.unwrap().point, 3.0);
        assert_eq!(bare.peer.unwrap().ratio.unwrap().point, 0.5);
        assert_eq!((cached.ours.contender.as_str(), cached.keeps_blocks), ("ours cached", true));
        assert_eq!((cached.reference, cached.peer.unwrap().ratio.unwrap().point), (None, 10.0));
        let markdown = to_markdown(&run);
        assert!(markdown.contains(KEPT_BLOCKS) && markdown.contains("decompress a block for every lookup"));
        assert!(!markdown.contains("/s at ") && !markdown.contains("`at`"), "{markdown}");

        // In uncompressed cases, a block cache makes no difference to the lines.
        for measurement in &mut run.measurements {
            measurement.case.compression = "none".to_owned();
        }
        assert_eq!(super::lines(&run).len(), 1);
    }

    /// Goal: lookups of compressed values are shown with the size of their store, which may hardly
    /// be compressed. Method: sizes of two builders in two compressions; the compressed line has
    /// both of its sizes, the other line none.
    #[test]
    fn compressed_lookups_say_how_small_the_store_is() {
        let mut run = sample_run();
        let (get, size) = (case("get", "present", 1), case("size", "", 0));
        let snappy = |case: &Case| Case { compression: "snappy".to_owned(), ..case.clone() };
        run.measurements = vec![
            measurement("cairn", &size, BYTES, &[80.0]),
            measurement("cairn", &snappy(&size), BYTES, &[75.0]),
            measurement("lmdb", &snappy(&size), BYTES, &[47.0]),
            measurement("cairn mmap", &get, THROUGHPUT, &[12e6; 5]),
            measurement("lmdb", &get, THROUGHPUT, &[4e6; 5]),
            measurement("cairn mmap", &snappy(&get), THROUGHPUT, &[9e6; 5]),
            measurement("lmdb", &snappy(&get), THROUGHPUT, &[1e6; 5]),
        ];
        let markdown = to_markdown(&run);
        let line = |words: &str| markdown.lines().find(|line| line.contains(words)).unwrap().to_owned();
        let compressed = line("get, present, 1 thread · synthetic 1 M x 6 B, snappy");
        assert!(
            compressed.contains("| cairn mmap 9.00 M/s at 75.0 B | – |  | lmdb 1.00 M/s at 47.0 B | 9.00x |")
        );
        let plain = line("get, present, 1 thread · synthetic 1 M x 6 B, none");
        assert!(plain.contains("| cairn mmap 12.0 M/s | – |  | lmdb 4.00 M/s | 3.00x |"), "{plain}");
        assert!(markdown.contains("`at` gives what the store takes"));
    }

    /// Goal: too few repetitions decide nothing, and memory of a whole JVM has no ratio to Cairn's.
    #[test]
    fn ratios_say_no_more_than_they_know() {
        let mut run = sample_run();
        for measurement in run.measurements.iter_mut().filter(|m| m.metric != "bytes per entry") {
            measurement.samples.truncate(2);
        }
        let text = to_text(&run);
        assert!(
            text.contains("? 4.00x") && text.contains("`?` marks") && !text.contains("  4.00x"),
            "{text}"
        );
        let build = case("build", "", 0);
        run.measurements = ["cairn", "sparkey-java FAST (JDK 25)", "lmdb"]
            .map(|name| measurement(name, &build, (PEAK_MEMORY, "B", false), &[5e6; 5]))
            .to_vec();
        let line = &lines(&run)[0];
        assert!(line.reference.unwrap().ratio.is_none() && line.peer.unwrap().ratio.is_some());
        assert!(to_text(&run).contains("whole virtual machine"));
    }

    /// Goal: a page keeps everything outside the markers; one without them, or with too many, is
    /// rejected.
    #[test]
    fn pages_are_filled_between_markers() {
        let [begin, end] = markers("kv");
        let page = format!("# A\n\n{begin}\nold\n{end}\n\nend\n");
        let filled = replace_between_markers(&page, "kv", "| new |\n\n").unwrap();
        assert_eq!(filled, format!("# A\n\n{begin}\n| new |\n{end}\n\nend\n"));
        assert_eq!(replace_between_markers(&filled, "kv", "| new |").unwrap(), filled);
        assert!(replace_between_markers(&page, "hash", "x").is_err());
        for bad in [String::new(), format!("{end}{begin}"), format!("{page}{page}")] {
            assert!(replace_between_markers(&bad, "kv", "x").is_err());
        }
    }
}
