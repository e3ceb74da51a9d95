//! The statistics of a trace for a terminal: numbers, sentences, and small charts of block
//! characters.

use cairn_trace::stats::{Arrival, Reuse, Skew, Stats};

use crate::core::text::{self, Align, Table};

/// Bars of increasing height, in eighths of a line.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Height of a chart in lines.
const LINES: usize = 6;
/// Width of a chart in columns.
const COLUMNS: usize = 60;

/// Formats a number that may be an estimate: three digits and a unit letter.
pub fn about(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns notes that qualify the statistics.
pub fn notes(stats: &Stats) -> Vec<String> {
    let mut notes = Vec::new();
    match stats.ending {
        "cut" => {
            notes.push("The trace has no end block: the program was killed or is still running.".to_owned())
        }
        "damaged" => notes
            .push("The trace is damaged before its end; the part after the damage is left out.".to_owned()),
        _ => {}
    }
    if let Some(dropped) = stats.dropped.filter(|dropped| *dropped > 0) {
        notes.push(format!(
            "{} operations after its limit or an error were not recorded.",
            text::count(dropped)
        ));
    }
    if stats.sample > 1 {
        notes.push(format!(
            "One key in {} was recorded: counts of operations are of the sample, numbers of keys are scaled up.",
            stats.sample
        ));
    }
    if let Some(lowered) = stats.lowered {
        notes.push(format!("The recorder chose that share: {lowered}."));
    }
    if !stats.timed {
        notes.push("The trace has no times, only an order.".to_owned());
    }
    notes
}

/// Formats the shares of reads and writes, or the reason why they are unknown.
pub fn reads_and_writes(stats: &Stats) -> String {
    match (stats.read_share, stats.write_share) {
        (Some(reads), Some(writes)) => format!("{} read, {} write", percent(reads), percent(writes)),
        _ => "statements: texts were not kept (--keys raw keeps them), so the shares of reads and writes are not known"
            .to_owned(),
    }
}

/// Describes the arrival of operations in a sentence.
pub fn arrival(arrival: &Arrival) -> String {
    let Arrival { mean_per_sec, peak_per_sec, slice_secs, idle_share, dispersion } = arrival;
    let what = match dispersion {
        d if *d < 0.5 => "steadier than chance",
        d if *d < 2.0 => "as by chance (Poisson)",
        _ => "in bursts",
    };
    format!(
        "{} on average, at most {} over {}; idle {} of the time; {what}: variance over mean {}.",
        text::value(*mean_per_sec, "ops/s"),
        text::value(*peak_per_sec, "ops/s"),
        text::value(*slice_secs, "s"),
        percent(*idle_share),
        about_ratio(*dispersion)
    )
}

fn about_ratio(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Describes the skew of keys in a sentence.
pub fn skew(skew: &Skew) -> String {
    let Skew { zipf, uses_mean, once_share, .. } = skew;
    let law = match (zipf.fits, zipf.theta) {
        (true, theta) if theta < 0.1 => "All keys are used about equally".to_owned(),
        (true, theta) => {
            format!("A zipf law with exponent {theta:.2} fits, at most {} off", percent(zipf.distance))
        }
        (false, _) if *uses_mean < 3.0 => "Too few uses of a key to tell a law".to_owned(),
        (false, theta) => {
            format!("No zipf law fits: the nearest, {theta:.2}, is up to {} off", percent(zipf.distance))
        }
    };
    let of_sample = if skew.rate < 1.0 { " of the sample" } else { "" };
    format!(
        "{law}. The hottest key{of_sample} gets {}, the hottest 1 % {}, the hottest 10 % {}; a key is used {uses_mean:.1} times on average, {} of \
         them once.",
        percent(skew.hottest_key),
        percent(skew.hottest_1_percent),
        percent(skew.hottest_10_percent),
        percent(*once_share)
    )
}

/// Describes the reuse distance of keys in a sentence.
pub fn reuse(reuse: &Reuse) -> String {
    let how = if reuse.exact {
        "exact".to_owned()
    } else {
        format!("from {} of the keys (SHARDS)", percent(reuse.rate))
    };
    format!(
        "Between two uses of a key {} others are used in the median, {} in nine of ten, \
         {} in 99 of 100; {} of all uses are the first of their key. {how}.",
        about(reuse.p50 as f64),
        about(reuse.p90 as f64),
        about(reuse.p99 as f64),
        percent(reuse.first_share)
    )
}

/// Renders all statistics for a terminal.
pub fn to_text(name: &str, stats: &Stats) -> String {
    let mut out = format!("{name}: {} operations on {} keys", text::count(stats.records), about(stats.keys));
    if stats.timed {
        out += &format!(" in {}", text::value(stats.secs, "s"));
    }
    out += &format!(
        ", {} thread{}, {}\n",
        stats.lanes,
        if stats.lanes == 1 { "" } else { "s" },
        text::value(stats.bytes as f64, "B")
    );
    if !stats.source.is_empty() {
        out += &format!("source: {}\n", stats.source);
    }
    notes(stats).iter().for_each(|note| out += &format!("note: {note}\n"));
    if stats.records == 0 {
        return out;
    }
    out += &format!("\n{}", kinds(stats).to_text());
    out += &format!("\n{}", reads_and_writes(stats));
    if let Some(found) = stats.found_share {
        out += &format!("; {} of the lookups found something", percent(found));
    }
    if stats.batches > 0 {
        out += &format!("; {} batches of {:.1}", text::count(stats.batches), stats.batch_mean);
    }
    out += &format!("\n\n{}", sizes(stats).to_text());
    if let Some(arrived) = &stats.arrival {
        out += &format!("\nArrival. {}\n", arrival(arrived));
    }
    let rates: Vec<f64> = stats.windows.iter().map(|window| window.operations as f64).collect();
    let working: Vec<f64> = stats.windows.iter().map(|window| window.keys).collect();
    let end = if stats.timed { text::value(stats.secs, "s") } else { "the end".to_owned() };
    out += &chart("operations over time", &rates, ("0", &end));
    out += &chart("different keys in each part of it: the working set", &working, ("0", &end));
    if let Some(uneven) = &stats.skew {
        out += &format!("\nSkew. {}\n", skew(uneven));
    }
    if let Some(again) = stats.reuse.as_ref().filter(|reuse| !reuse.caches.is_empty()) {
        out += &format!("\nReuse. {}\n", reuse(again));
        let hits: Vec<f64> = again.caches.iter().map(|point| point.hit_share * 100.0).collect();
        let last = again.caches.last().map_or(0.0, |point| point.keys);
        out += &chart("hits of an LRU cache in %, by keys in it (log scale)", &hits, ("1", &about(last)));
        out += &format!("\n{}", caches(again).to_text());
    }
    out
}

fn kinds(stats: &Stats) -> Table {
    let mut table = Table::new(&[
        ("operation", Align::Left),
        ("count", Align::Right),
        ("share", Align::Right),
        ("mean value", Align::Right),
    ]);
    for kind in &stats.kinds {
        table.row(vec![
            kind.kind.name().to_owned(),
            text::count(kind.operations),
            percent(kind.share),
            kind.value_bytes_mean.map_or_else(|| "–".to_owned(), |bytes| text::value(bytes, "B")),
        ]);
    }
    table
}

fn sizes(stats: &Stats) -> Table {
    let headings = ["", "mean", "min", "p50", "p90", "p99", "max"];
    let columns: Vec<(&str, Align)> = headings
        .iter()
        .map(|name| (*name, if name.is_empty() { Align::Left } else { Align::Right }))
        .collect();
    let mut table = Table::new(&columns);
    let named = [
        ("keys, B", stats.key_bytes),
        ("values, B", stats.value_bytes),
        ("entries of a scan", stats.scan_entries),
    ];
    for (name, sizes) in named {
        let Some(sizes) = sizes else { continue };
        let mut row = vec![name.to_owned(), format!("{:.1}", sizes.mean)];
        row.extend([sizes.min, sizes.p50, sizes.p90, sizes.p99, sizes.max].map(|size| size.to_string()));
        table.row(row);
    }
    table
}

fn caches(reuse: &Reuse) -> Table {
    let mut table =
        Table::new(&[("LRU cache of", Align::Right), ("about", Align::Right), ("hits", Align::Right)]);
    let every = reuse.caches.len().div_ceil(10).max(1);
    for (at, point) in reuse.caches.iter().enumerate() {
        if at % every == 0 || at + 1 == reuse.caches.len() {
            table.row(vec![
                format!("{} keys", about(point.keys)),
                text::value(point.bytes, "B"),
                percent(point.hit_share),
            ]);
        }
    }
    table
}

/// Renders columns of blocks under a title, scaled from 0 to the largest value, which is the label
/// of the axis.
fn chart(title: &str, values: &[f64], (from, to): (&str, &str)) -> String {
    let values = squeezed(values, COLUMNS);
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let top = about(largest);
    let mut out = format!("\n{title}\n");
    for line in (0..LINES).rev() {
        let label = if line == LINES - 1 { top.as_str() } else { "" };
        out += &format!("{label:>9} ┤");
        for value in &values {
            let eighths = (value / largest * (LINES * 8) as f64).round() as usize;
            // A value above 0 is always visible.
            let eighths = if *value > 0.0 { eighths.max(1) } else { 0 };
            let here = eighths.saturating_sub(line * 8).min(8);
            out.push(EIGHTHS.get(here).copied().unwrap_or(' '));
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    let width = values.len().saturating_sub(to.chars().count()).max(from.len() + 1);
    out + &format!("{:>9} └{}\n{:>11}{from:width$}{to}\n", "0", "─".repeat(values.len()), "")
}

/// Reduces values to at most `count`, by averaging neighbours.
fn squeezed(values: &[f64], count: usize) -> Vec<f64> {
    if values.len() <= count {
        return values.to_vec();
    }
    let part = |at: usize| {
        let range = at * values.len() / count..(at + 1) * values.len() / count;
        let part = values.get(range).unwrap_or_default();
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    (0..count).map(part).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use cairn_trace::stats::{self, Options};
    use cairn_trace::{Detail, Event, Header, KeyForm, Trace, Writer};
    use cairn_vfs::{Fs, MemFs};

    use super::*;

    /// Returns statistics of a trace of `events` operations, every third a write, with unevenly
    /// used keys.
    pub(crate) fn sample_stats(timed: bool, events: u64) -> Stats {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let header = Header {
            keys: KeyForm::Raw,
            timed,
            started_ns: 0,
            file_id: 1,
            sample: 1,
            adaptive: None,
            source: "a test".to_owned(),
        };
        let mut writer = Writer::create(&fs, Path::new("/t"), &header).unwrap();
        for number in 0..events {
            let key = (number * number % 97).to_be_bytes();
            let detail = if number % 3 == 0 { Detail::Put(100) } else { Detail::Get(Some(Some(100))) };
            let event = Event {
                time_ns: number * 1_000_000,
                lane: 0,
                joined: false,
                keyspace: 0,
                key: &key,
                key_bytes: 8,
                detail,
            };
            writer.add(&event).unwrap();
        }
        writer.finish().unwrap();
        stats::of(&Trace::open(&*fs, Path::new("/t")).unwrap(), &Options::default()).unwrap()
    }

    /// Goal: a terminal shows the available statistics, in lines of limited width, and nothing
    /// about the missing ones.
    #[test]
    fn terminals_show_it() {
        let text = to_text("app.trace", &sample_stats(true, 3_000));
        for part in [
            "app.trace: 3 k operations on 49 keys in 3.00 s, 1 thread",
            "66.7 % read, 33.3 % write; 100.0 % of the lookups found something",
            "Arrival. 1.00 k/s on average",
            "operations over time",
            "hits of an LRU cache",
            "█",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let charts = text.lines().filter(|line| line.contains('┤') || line.contains('└'));
        assert!(charts.map(|line| line.chars().count()).max() <= Some(80));
        let text = to_text("pages", &sample_stats(false, 100));
        assert!(text.contains("no times, only an order") && !text.contains("Arrival"), "{text}");
        assert!(to_text("empty", &sample_stats(true, 0)).lines().count() < 5);
    }

    /// Goal: the share of the hottest key in a sample is marked as that of a sample. Method: the
    /// skew of all keys, and the same of half of them.
    #[test]
    fn sampled_shares_are_marked() {
        let mut uneven = sample_stats(true, 300).skew.unwrap();
        assert!(skew(&uneven).contains("The hottest key gets"), "{}", skew(&uneven));
        uneven.rate = 0.5;
        assert!(skew(&uneven).contains("The hottest key of the sample gets"), "{}", skew(&uneven));
    }

    /// Goal: charts have correct heights. Method: a ramp.
    #[test]
    fn charts_are_to_scale() {
        let ramp: Vec<f64> = (0..=12).map(f64::from).collect();
        let chart = chart("ramp", &ramp, ("0", "12"));
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines[2].chars().filter(|c| *c == '█').count(), 1);
        assert_eq!(lines[7].chars().filter(|c| *c == '█').count(), 11);
        assert_eq!(squeezed(&ramp, 4), [1.0, 4.0, 7.0, 10.5]);
    }
}
