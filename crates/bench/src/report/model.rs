//! The run as the report sees it: families in a fixed order with a fixed style, and measurements
//! sorted by area.

use std::collections::{BTreeMap, BTreeSet};

use super::format;
use crate::core::results::{Case, Measurement, PAGE_TRACE, Run};

/// The subject of a measurement, which decides the section that draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Area {
    /// Point lookups, single or batched.
    Lookup,
    /// Building a store.
    Build,
    /// Bytes per entry.
    Size,
    /// Opening a store, and first reads with nothing cached.
    Cold,
    /// Page requests to a buffer pool, or a trace of such requests.
    Pool,
    /// Anything without a section of its own.
    Other,
}

/// Returns the area of a measurement, from its operation and metric.
pub(super) fn area(measurement: &Measurement) -> Area {
    let operation = measurement.case.operation.as_str();
    let dataset = measurement.case.dataset.as_str();
    if dataset.starts_with("phase ") || dataset == PAGE_TRACE {
        Area::Pool
    } else if measurement.metric.contains("bytes per entry") {
        Area::Size
    } else if operation.contains("cold") || operation == "open" {
        Area::Cold
    } else if operation == "get" || is_batched(operation) {
        Area::Lookup
    } else if operation.contains("build") {
        Area::Build
    } else {
        Area::Other
    }
}

/// Returns true for lookups that pass many keys in one call.
pub(super) fn is_batched(operation: &str) -> bool {
    matches!(operation, "get_many" | "mget" | "multi_get" | "multiget")
}

/// A dimension of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dim {
    /// The operation.
    Operation,
    /// The data set.
    Dataset,
    /// Entries in the store.
    Entries,
    /// Value length in bytes.
    ValueBytes,
    /// Compression.
    Compression,
    /// Present or absent keys.
    Keys,
    /// Key distribution.
    Distribution,
    /// Threads.
    Threads,
}

/// A value of a dimension. Numbers sort as numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value {
    /// A number of entries, bytes or threads.
    Number(u64),
    /// A name.
    Text(String),
}

impl Dim {
    /// All dimensions, in reading order.
    pub(super) const ALL: [Dim; 8] = [
        Dim::Operation,
        Dim::Dataset,
        Dim::Entries,
        Dim::ValueBytes,
        Dim::Compression,
        Dim::Keys,
        Dim::Distribution,
        Dim::Threads,
    ];

    /// Returns the label of the dimension's selector and column.
    pub(super) fn label(self) -> &'static str {
        match self {
            Dim::Operation => "Operation",
            Dim::Dataset => "Data set",
            Dim::Entries => "Entries",
            Dim::ValueBytes => "Value bytes",
            Dim::Compression => "Compression",
            Dim::Keys => "Keys",
            Dim::Distribution => "Distribution",
            Dim::Threads => "Threads",
        }
    }

    /// Returns the dimension's value in `case`.
    pub(super) fn of(self, case: &Case) -> Value {
        match self {
            Dim::Operation => Value::Text(case.operation.clone()),
            Dim::Dataset => Value::Text(case.dataset.clone()),
            Dim::Entries => Value::Number(case.entries),
            Dim::ValueBytes => Value::Number(u64::from(case.value_bytes)),
            Dim::Compression => Value::Text(case.compression.clone()),
            Dim::Keys => Value::Text(case.keys.clone()),
            Dim::Distribution => Value::Text(case.distribution.clone()),
            Dim::Threads => Value::Number(u64::from(case.threads)),
        }
    }

    /// Returns a value as an option of the selector. Not escaped.
    pub(super) fn option(self, value: &Value) -> String {
        match (self, value) {
            (Dim::ValueBytes, Value::Number(bytes)) => format!("{bytes} B"),
            (_, Value::Number(number)) => format::count(*number),
            (_, Value::Text(text)) if text.is_empty() => "not applicable".to_owned(),
            (_, Value::Text(text)) => text.clone(),
        }
    }

    /// Returns a value as part of a sentence, or an empty string if it adds nothing. Not escaped.
    pub(super) fn phrase(self, value: &Value) -> String {
        match (self, value) {
            (Dim::Entries, Value::Number(1)) => "1 entry".to_owned(),
            (Dim::Entries, Value::Number(entries)) => format!("{} entries", format::count(*entries)),
            (Dim::ValueBytes, Value::Number(bytes)) => format!("{bytes} B values"),
            (Dim::Threads, Value::Number(0)) => String::new(),
            (Dim::Threads, Value::Number(1)) => "1 thread".to_owned(),
            (Dim::Threads, Value::Number(threads)) => format!("{threads} threads"),
            (Dim::Compression, Value::Text(text)) if text == "none" => "uncompressed".to_owned(),
            (Dim::Keys, Value::Text(text)) if !text.is_empty() => format!("{text} keys"),
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Number(number)) => format::count(*number),
        }
    }
}

/// Describes a case in one line by the dimensions `dims`: `1 M entries · 6 B values ·
/// uncompressed`. Not escaped.
pub(super) fn describe(case: &Case, dims: &[Dim]) -> String {
    let phrases = dims.iter().map(|dim| dim.phrase(&dim.of(case))).filter(|phrase| !phrase.is_empty());
    phrases.collect::<Vec<_>>().join(" · ")
}

/// How a contender is drawn; the same everywhere on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// True for Cairn's own contenders.
    pub(super) ours: bool,
    /// Index of the contender's family in [`Model::families`].
    pub(super) family: usize,
    /// Index into the colours of its side's palette: `o0` to `o10` for ours, `p0` to `p6` for
    /// peers.
    tone: usize,
}

/// Number of colours on our side: one per policy of the pool, and one for the pool without page
/// checks.
const OUR_TONES: usize = 11;

/// Number of marker shapes, which distinguish families when colours do not.
const MARKERS: usize = 7;

impl Style {
    /// Returns the style of a line that belongs to no contender. Its number distinguishes it from
    /// the other lines of its chart.
    pub(super) fn line(number: usize) -> Style {
        Style { ours: true, family: number, tone: number * 3 }
    }

    /// Returns the CSS class of the colour.
    pub(super) fn class(self) -> String {
        if self.ours { format!("o{}", self.tone % OUR_TONES) } else { format!("p{}", self.tone % 7) }
    }

    /// Returns the id of the marker among the page's symbols.
    pub(super) fn marker(self) -> String {
        format!("m{}", self.family % MARKERS)
    }
}

/// One family of contenders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Family<'a> {
    /// The name, as in the run.
    pub(super) name: &'a str,
    /// How its contenders are drawn.
    pub(super) style: Style,
}

/// A run, prepared for the questions that every section asks about it.
#[derive(Debug)]
pub(super) struct Model<'a> {
    /// The run itself.
    pub(super) run: &'a Run,
    /// The families: ours first, then the peers, each group in the run's order.
    pub(super) families: Vec<Family<'a>>,
    styles: BTreeMap<&'a str, Style>,
    /// Number of operations and metrics that were measured of each store.
    coverage: BTreeMap<Store<'a>, usize>,
}

/// The contents of a store: data set, entries, value bytes, compression.
type Store<'a> = (&'a str, u64, u32, &'a str);

fn store_of(case: &Case) -> Store<'_> {
    (&case.dataset, case.entries, case.value_bytes, &case.compression)
}

impl<'a> Model<'a> {
    /// Assigns families and styles. A measurement of a contender that the run does not list gets a
    /// family of its own among the peers, so that no measurement can disappear.
    pub(super) fn new(run: &'a Run) -> Self {
        let listed = run.contenders.iter().map(|c| (c.name.as_str(), c.family.as_str(), c.ours));
        let known: BTreeSet<&str> = run.contenders.iter().map(|c| c.name.as_str()).collect();
        let strays =
            run.measurements.iter().map(|m| m.contender.as_str()).filter(|name| !known.contains(name));
        let all: Vec<(&str, &str, bool)> = listed.chain(strays.map(|name| (name, name, false))).collect();

        let mut families: Vec<Family<'a>> = Vec::new();
        let mut styles = BTreeMap::new();
        for side in [true, false] {
            let first = families.len();
            for (name, family, _) in all.iter().filter(|(_, _, ours)| *ours == side) {
                let found = families.iter().skip(first).find(|f| f.name == *family).map(|f| f.style);
                let style = found.unwrap_or_else(|| {
                    let index = families.len();
                    let style = Style { ours: side, family: index, tone: index - first };
                    families.push(Family { name: family, style });
                    style
                });
                styles.entry(*name).or_insert(style);
            }
        }
        let mut kinds: BTreeMap<Store<'a>, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for m in &run.measurements {
            kinds.entry(store_of(&m.case)).or_default().insert((&m.case.operation, &m.metric));
        }
        let coverage = kinds.into_iter().map(|(store, kinds)| (store, kinds.len())).collect();
        Model { run, families, styles, coverage }
    }

    /// Returns how many operations and metrics were measured of the store of `case`. Quick runs
    /// measure only one store in detail.
    pub(super) fn coverage(&self, case: &Case) -> usize {
        self.coverage.get(&store_of(case)).copied().unwrap_or(0)
    }

    /// Returns the contenders that have a measurement in the area of `slice` but none in `slice`
    /// itself.
    pub(super) fn missing_from(&self, slice: &[&Measurement]) -> Vec<&'a str> {
        let Some(area) = slice.first().map(|m| area(m)) else { return Vec::new() };
        let mut names: Vec<&'a str> = Vec::new();
        for m in self.in_area(area) {
            let name = m.contender.as_str();
            if !names.contains(&name) && !slice.iter().any(|other| other.contender == name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the style of the contender with that name.
    pub(super) fn style(&self, contender: &str) -> Style {
        self.styles.get(contender).copied().unwrap_or(Style { ours: false, family: 0, tone: 6 })
    }

    /// Returns whether a contender keeps decompressed blocks in memory, as far as the run says.
    pub(super) fn keeps_blocks(&self, contender: &str) -> bool {
        self.run.contenders.iter().any(|known| known.name == contender && known.keeps_blocks())
    }

    /// Returns a name that fits beside a line and stands for the family there: the contender's name
    /// if it is short enough, otherwise the family's. Not escaped.
    pub(super) fn short_name(&self, contender: &str, keep: usize) -> String {
        let family = self.families.get(self.style(contender).family).map_or(contender, |family| family.name);
        let short = if contender.chars().count() <= keep { contender } else { family };
        format::shorten(short, keep)
    }

    /// Returns the measurements of one area, in the order taken.
    pub(super) fn in_area(&self, wanted: Area) -> impl Iterator<Item = &'a Measurement> + use<'a> {
        self.run.measurements.iter().filter(move |measurement| area(measurement) == wanted)
    }
}

/// Returns the better of two measurements of one metric. A finite median beats one that is not.
pub(super) fn better<'m>(left: &'m Measurement, right: &'m Measurement) -> &'m Measurement {
    let left_wins = match (left.median.is_finite(), right.median.is_finite()) {
        (true, true) if left.higher_is_better => left.median >= right.median,
        (true, true) => left.median <= right.median,
        (left_is_figure, _) => left_is_figure,
    };
    if left_wins { left } else { right }
}

/// Returns the best of several measurements of one metric, by median; the first of equals.
pub(super) fn best<'m>(measurements: impl Iterator<Item = &'m Measurement>) -> Option<&'m Measurement> {
    measurements.filter(|m| m.median.is_finite()).reduce(better)
}
