//! Replays recorded requests through every policy and through Belady's optimum.
//!
//! Nothing is timed and no page is read. Hit ratios are counted exactly, so each has one sample and
//! no interval.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use cairn_pool::replay::{self, Row, Trace};
use cairn_pool::{Frame, PolicyKind};
use cairn_vfs::{Clock, Fs, OpenOptions, SystemClock};
use flate2::read::MultiGzDecoder;
use serde::Serialize;

use super::HIT_RATE;
use crate::core::error::{Error, Result};
use crate::core::results::{Case, Contender, Measurement, Run, SCHEMA_VERSION};
use crate::core::settings::settings;
use crate::core::text::{Align, Table};
use crate::core::time::rfc3339;
use crate::core::{probe, text};
use crate::stores::cairn_pool::FAMILY;

/// The contender that knows the future.
pub const OPTIMUM: &str = "optimum";

/// Name of the data set of replayed cases.
pub const DATASET: &str = crate::core::results::PAGE_TRACE;

/// A file that unpacks to more than this is considered a mistake.
const TEXT_BYTES_MAX: u64 = 8 << 30;

/// Memory of the most demanding policy per frame, including the evicted pages that it remembers,
/// rounded up.
const FRAME_BYTES: u64 = 256;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The number of frames for a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// Percentage of the trace's distinct pages.
    Percent(f64),
    /// Number of frames.
    Frames(usize),
}

impl Size {
    /// The default sizes of a table, which are those of the papers.
    pub const USUAL: [Size; 6] = [
        Size::Percent(1.0),
        Size::Percent(2.0),
        Size::Percent(5.0),
        Size::Percent(10.0),
        Size::Percent(20.0),
        Size::Percent(50.0),
    ];

    /// Parses `5%` or `1000`. Errors: [`Error::Invalid`] with the expected form. A number of pages
    /// for which this machine lacks the memory is also invalid.
    pub fn parse(word: &str) -> Result<Size> {
        Size::parse_up_to(word, frames_max())
    }

    fn parse_up_to(word: &str, frames_max: usize) -> Result<Size> {
        let refuse = || {
            Error::invalid(format!(
                "--sizes {word:?}: expected a share of the trace's pages such as 5%, or a number of pages from 1 to {frames_max}, \
                 the maximum for the memory of this machine"
            ))
        };
        match word.strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.trim().parse().map_err(|_| refuse())?;
                if percent > 0.0 && percent <= 100.0 { Ok(Size::Percent(percent)) } else { Err(refuse()) }
            }
            None => match word.parse() {
                Ok(frames) if (1..=frames_max).contains(&frames) => Ok(Size::Frames(frames)),
                _ => Err(refuse()),
            },
        }
    }

    fn frames(self, trace: &Trace) -> usize {
        match self {
            Size::Percent(percent) => trace.frames_at(percent),
            Size::Frames(frames) => frames,
        }
    }
}

/// Returns the maximum number of frames of a replay on this machine.
fn frames_max() -> usize {
    // If the system does not report its memory, assumes an amount that every supported machine has.
    let memory = probe::memory_bytes().unwrap_or(1 << 30);
    usize::try_from(memory / FRAME_BYTES).unwrap_or(usize::MAX).clamp(1, Frame::MAX as usize)
}

/// Reads a trace: text, plain or compressed with gzip, whatever the file's name; or one of `cairn
/// trace`, in which each key stands for a page.
///
/// Errors: [`Error::Vfs`]; [`Error::Input`] with file and line for an invalid page number, for a
/// truncated file or one that is not text, and for one without requests.
pub fn read(fs: &dyn Fs, path: &Path) -> Result<Trace> {
    let refuse = |line: Option<usize>, what: String| Error::Input {
        file: path.to_owned(),
        line: line.map(|line| line as u64),
        what,
    };
    if cairn_trace::Trace::is_one(fs, path)? {
        return of_operations(fs, path);
    }
    let map = fs.open(path, OpenOptions::read())?.map()?;
    let mut bytes = Vec::new();
    if map.starts_with(&GZIP) {
        let mut unpacked = MultiGzDecoder::new(&map[..]).take(TEXT_BYTES_MAX + 1);
        unpacked
            .read_to_end(&mut bytes)
            .map_err(|error| refuse(None, format!("truncated or damaged gzip data: {error}")))?;
        if bytes.len() as u64 > TEXT_BYTES_MAX {
            return Err(refuse(None, format!("unpacks to more than {TEXT_BYTES_MAX} bytes")));
        }
    } else {
        bytes.extend_from_slice(&map);
    }
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            return Err(refuse(Some(line), "not text: expected one page number per line".to_owned()));
        }
    };
    let trace = Trace::parse(text).map_err(|bad| {
        refuse(Some(bad.line), format!("expected a page number from 0 to 2^64 - 1, found {:?}", bad.found))
    })?;
    if trace.is_empty() {
        return Err(refuse(None, "no requests: expected one page number per line".to_owned()));
    }
    Ok(trace)
}

/// Returns the flaw of a recorded trace, of which [`read`] takes the readable part; `None` for a
/// complete trace and for lists of pages.
///
/// Errors: those of [`read`].
pub fn flaw(fs: &dyn Fs, path: &Path) -> Result<Option<String>> {
    let is_one = cairn_trace::Trace::is_one(fs, path)?;
    Ok(if is_one { cairn_trace::Trace::open(fs, path)?.ending().flaw() } else { None })
}

/// Returns the keys of a recorded trace as pages, in the order of their uses.
fn of_operations(fs: &dyn Fs, path: &Path) -> Result<Trace> {
    let recorded = cairn_trace::Trace::open(fs, path)?;
    let pages: std::result::Result<Vec<u64>, cairn_trace::Error> =
        recorded.events().map(|event| event.map(|event| event.id())).collect();
    let trace = Trace::from_pages(pages?);
    if trace.is_empty() {
        let what = "no operations".to_owned();
        return Err(Error::Input { file: path.to_owned(), line: None, what });
    }
    Ok(trace)
}

/// The result of replaying one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The file's name up to its first dot.
    pub name: String,
    /// Number of requests.
    pub requests: usize,
    /// Number of distinct pages.
    pub distinct: usize,
    /// One row for each number of frames, ascending.
    pub rows: Vec<Row>,
    /// Its flaw, see [`flaw`].
    pub flaw: Option<String>,
}

/// Replays one trace at several sizes. Cost: requests times policies times sizes, several tens of
/// nanoseconds each.
pub fn replay(path: &Path, trace: &Trace, policies: &[PolicyKind], sizes: &[Size]) -> Replayed {
    let mut capacities: Vec<usize> = sizes.iter().map(|size| size.frames(trace)).collect();
    capacities.sort_unstable();
    capacities.dedup();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    let rows = replay::table(trace, policies, &capacities);
    Replayed { name, requests: trace.len(), distinct: trace.distinct(), rows, flaw: None }
}

/// Formats tables of hit ratios, one per trace. The best policies of a row have a star.
pub fn to_text(all: &[Replayed]) -> String {
    let mut out = String::new();
    for replayed in all {
        let Replayed { name, requests, distinct, .. } = replayed;
        out += &format!("{name}: {requests} requests of {distinct} pages; hits in %\n");
        replayed.flaw.iter().for_each(|flaw| out += &format!("{flaw}\n"));
        out += &table(replayed, "", "*").to_text();
        out += "\n";
    }
    out + "* the best policy of its row. The optimum knows the future (Belady): no policy is above it.\n"
}

/// Formats the same tables in Markdown, with the best in bold.
pub fn to_markdown(all: &[Replayed]) -> String {
    let mut out = String::new();
    for replayed in all {
        let Replayed { name, requests, distinct, .. } = replayed;
        out += &format!("`{name}`: {requests} requests of {distinct} pages; hits in %.\n\n");
        out += &table(replayed, "**", "**").to_markdown();
        out += "\n";
    }
    out
}

fn table(replayed: &Replayed, before: &str, after: &str) -> Table {
    let kinds: Vec<PolicyKind> =
        replayed.rows.first().map_or(Vec::new(), |row| row.policies.iter().map(|(kind, _)| *kind).collect());
    let mut headings = vec![("frames", Align::Right), ("of the pages", Align::Right)];
    headings.extend(kinds.iter().map(|kind| (kind.title(), Align::Right)));
    headings.push((OPTIMUM, Align::Right));
    let mut table = Table::new(&headings);
    for row in &replayed.rows {
        let most = row.policies.iter().map(|(_, outcome)| outcome.hits).max().unwrap_or(0);
        let mut cells = vec![
            row.capacity.to_string(),
            format!("{:.1} %", 100.0 * row.capacity as f64 / replayed.distinct.max(1) as f64),
        ];
        cells.extend(row.policies.iter().map(|(_, outcome)| {
            let shown = format!("{:.2}", 100.0 * outcome.hit_ratio());
            if outcome.hits == most && most > 0 { format!("{before}{shown}{after}") } else { shown }
        }));
        cells.push(format!("{:.2}", 100.0 * row.optimum.hit_ratio()));
        table.row(cells);
    }
    table
}

#[derive(Serialize)]
struct JsonRow<'a> {
    trace: &'a str,
    requests: usize,
    pages: usize,
    frames: usize,
    hit_ratios: serde_json::Map<String, serde_json::Value>,
    optimum: f64,
    best: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flaw: Option<&'a str>,
}

/// Formats a list with one object for each trace and number of frames, with ratios from 0 to 1.
pub fn to_json(all: &[Replayed]) -> String {
    let mut list = Vec::new();
    for replayed in all {
        for row in &replayed.rows {
            let most = row.policies.iter().map(|(_, outcome)| outcome.hits).max().unwrap_or(0);
            list.push(JsonRow {
                trace: &replayed.name,
                requests: replayed.requests,
                pages: replayed.distinct,
                frames: row.capacity,
                hit_ratios: row
                    .policies
                    .iter()
                    .map(|(kind, outcome)| (kind.name().to_owned(), outcome.hit_ratio().into()))
                    .collect(),
                optimum: row.optimum.hit_ratio(),
                best: row
                    .policies
                    .iter()
                    .filter(|(_, outcome)| outcome.hits == most)
                    .map(|(kind, _)| kind.name())
                    .collect(),
                flaw: replayed.flaw.as_deref(),
            });
        }
    }
    serde_json::to_string_pretty(&list).unwrap_or_else(|_| "[]".to_owned()) + "\n"
}

/// Converts the results to a run, for the report and for comparisons with later runs.
pub fn to_run(all: &[Replayed], policies: &[PolicyKind]) -> Run {
    let contender = |name: String, ours: bool, what: &str| Contender {
        family: name.clone(),
        name,
        version: if ours { env!("CARGO_PKG_VERSION").to_owned() } else { String::new() },
        ours,
        settings: settings([("policy", what)]),
        skipped: None,
    };
    let mut contenders: Vec<Contender> =
        policies.iter().map(|kind| contender(contender_name(*kind), true, kind.title())).collect();
    contenders.push(contender(OPTIMUM.to_owned(), false, "Belady's: evicts the page that is requested last"));
    let mut measurements = Vec::new();
    for replayed in all {
        for row in &replayed.rows {
            let case = case(replayed, row.capacity);
            let mut add =
                |name: String, ratio: f64| measurements.push(measurement(name, &case, 100.0 * ratio));
            for (kind, outcome) in &row.policies {
                add(contender_name(*kind), outcome.hit_ratio());
            }
            add(OPTIMUM.to_owned(), row.optimum.hit_ratio());
        }
    }
    let names: Vec<&str> = all.iter().map(|replayed| replayed.name.as_str()).collect();
    let mut data = format!("Recorded requests: {}. Replayed, not timed.", names.join(", "));
    for replayed in all {
        replayed.flaw.iter().for_each(|flaw| data += &format!(" {}: {flaw}.", replayed.name));
    }
    Run {
        schema: SCHEMA_VERSION,
        suite: super::NAME.to_owned(),
        started: rfc3339(SystemClock::new().wall()),
        mode: "replay".to_owned(),
        seed: 0,
        machine: probe::describe(Path::new(".")),
        probes: Vec::new(),
        contenders,
        data,
        measurements,
        settings: BTreeMap::new(),
        stopped: false,
    }
}

fn contender_name(kind: PolicyKind) -> String {
    format!("{FAMILY} {kind}")
}

fn case(replayed: &Replayed, frames: usize) -> Case {
    let keys = format!("{} different", text::count(replayed.distinct as u64));
    Case::new(&replayed.name, DATASET, frames as u64).lookups(keys, "recorded", 1)
}

fn measurement(contender: String, case: &Case, value: f64) -> Measurement {
    Measurement {
        contender,
        case: case.clone(),
        metric: HIT_RATE.name.to_owned(),
        unit: HIT_RATE.unit.to_owned(),
        higher_is_better: true,
        samples: vec![value],
        one_turn: false,
        median: value,
        low: value,
        high: value,
        percentiles: BTreeMap::new(),
        verified: true,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use cairn_vfs::MemFs;

    use super::*;

    fn with_file(name: &str, content: &[u8]) -> MemFs {
        let fs = MemFs::new();
        let file = fs.open(Path::new(name), OpenOptions::create_new()).unwrap();
        file.write_all_at(content, 0).unwrap();
        fs
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Goal: text and gzip give the same trace, whatever the name; errors name the file and the
    /// line.
    #[test]
    fn files_are_read() {
        let text = b"# a comment\n1\n2 some more\n\n1\n";
        for content in [text.to_vec(), packed(text), [packed(b"1\n2\n"), packed(b"1\n")].concat()] {
            let trace = read(&with_file("/t.txt", &content), Path::new("/t.txt")).unwrap();
            assert_eq!((trace.len(), trace.distinct()), (3, 2));
        }
        let cut = packed(&b"123456\n".repeat(1000));
        for (content, words) in [
            (&b"1\n2\nthree\n"[..], ["line 3", "three"]),
            (b"1\n-4\n", ["line 2", "-4"]),
            (b"1\n\xff\n", ["line 2", "not text"]),
            (b"", ["/t.txt", "no requests"]),
            (b"\n# 1\n", ["/t.txt", "no requests"]),
            (&cut[..cut.len() - 9], ["/t.txt", "gzip"]),
        ] {
            let error = read(&with_file("/t.txt", content), Path::new("/t.txt")).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        assert!(read(&MemFs::new(), Path::new("/none")).is_err());
    }

    /// Goal: sizes are percentages or numbers, and nothing else.
    #[test]
    fn sizes_are_parsed() {
        assert_eq!(Size::parse("5%").unwrap(), Size::Percent(5.0));
        assert_eq!(Size::parse("0.5%").unwrap(), Size::Percent(0.5));
        assert_eq!(Size::parse("100").unwrap(), Size::Frames(100));
        for wrong in ["", "0", "0%", "101%", "-1%", "five", "%", "1.5", "NaN%"] {
            assert!(Size::parse(wrong).unwrap_err().to_string().contains("5%"), "{wrong}");
        }
    }

    /// Goal: a size whose policies do not fit into memory is refused without trying, with the
    /// option and the accepted range. Method: the maximum and one more; numbers that exceed the
    /// memory of any machine, and one that does not fit into a machine word.
    #[test]
    fn sizes_beyond_memory_are_refused() {
        assert_eq!(Size::parse_up_to("4096", 4096).unwrap(), Size::Frames(4096));
        let error = Size::parse_up_to("4097", 4096).unwrap_err().to_string();
        assert!(error.contains("--sizes \"4097\"") && error.contains("to 4096"), "{error}");
        for wrong in ["99999999999999", "18446744073709551616"] {
            assert!(Size::parse(wrong).unwrap_err().to_string().contains("--sizes"), "{wrong}");
        }
    }

    /// Goal: table, JSON and run agree. Method: a loop of three pages, of which LRU with two frames
    /// never finds one.
    #[test]
    fn all_forms_agree() {
        let trace = Trace::from_pages([1, 2, 3].into_iter().cycle().take(300));
        let kinds = [PolicyKind::Lru, PolicyKind::Clock];
        let sizes = [Size::Frames(3), Size::Frames(2), Size::Percent(66.0)];
        let replayed = replay(Path::new("/x/loop.txt.gz"), &trace, &kinds, &sizes);
        assert_eq!((replayed.name.as_str(), replayed.rows.len()), ("loop", 2));
        let text = to_text(std::slice::from_ref(&replayed));
        let expected = "loop: 300 requests of 3 pages; hits in %\n\
            frames  of the pages     LRU   Clock  optimum\n\
            ──────  ────────────  ──────  ──────  ───────\n\
            \u{20}    2        66.7 %    0.00    0.00    49.67\n\
            \u{20}    3       100.0 %  99.00*  99.00*    99.00\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(
            to_markdown(std::slice::from_ref(&replayed))
                .contains("| 3 | 100.0 % | **99.00** | **99.00** | 99.00 |")
        );
        let json: serde_json::Value =
            serde_json::from_str(&to_json(std::slice::from_ref(&replayed))).unwrap();
        assert_eq!(json[1]["hit_ratios"]["lru"], 0.99);
        assert_eq!((&json[0]["optimum"].as_f64().unwrap() * 300.0).round(), 149.0);
        assert_eq!(json[1]["best"].as_array().unwrap().len(), 2);
        let run = to_run(std::slice::from_ref(&replayed), &kinds);
        assert_eq!((run.measurements.len(), run.contenders.len()), (6, 3));
        assert!(run.measurements.iter().all(|m| m.verified && m.unit == "%"));
        assert!(crate::report::render_html(&run, None).contains("loop"));
    }
}
