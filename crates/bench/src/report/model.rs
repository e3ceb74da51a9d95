//! The run as the report sees it: families in a fixed order with a fixed look, and measurements
//! sorted by what they are about.

use std::collections::{BTreeMap, BTreeSet};

use super::format;
use crate::results::{Case, Measurement, Run};
use crate::suite_pool::trace;

/// What a measurement is about, which decides the section that draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Area {
    /// Point lookups, one by one or in batches.
    Lookup,
    /// Building a store.
    Build,
    /// Bytes an entry takes.
    Size,
    /// Opening a store, and first reads with nothing cached.
    Cold,
    /// Pages of a buffer pool, or a trace of requests for them.
    Pool,
    /// Anything this report has no section of its own for.
    Other,
}

/// The area of one measurement, from its operation and metric.
pub(super) fn area(measurement: &Measurement) -> Area {
    let operation = measurement.case.operation.as_str();
    let dataset = measurement.case.dataset.as_str();
    if dataset.starts_with("phase ") || dataset == trace::DATASET {
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

/// True for lookups that hand over many keys in one call.
pub(super) fn is_batched(operation: &str) -> bool {
    matches!(operation, "get_many" | "mget" | "multi_get" | "multiget")
}

/// True for a figure that is counted, not timed, and came out the same each time: one sample is as
/// good as many. The files of a tree are counted too, but depend on what the background did when.
pub(crate) fn is_exact(measurement: &Measurement) -> bool {
    let is_counted = area(measurement) == Area::Size || measurement.case.dataset == trace::DATASET;
    is_counted && measurement.samples.windows(2).all(|pair| pair.first() == pair.last())
}

/// A dimension of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dim {
    /// What was done.
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

/// One value of a dimension; numbers sort as numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value {
    /// Entries, bytes, threads.
    Number(u64),
    /// Names.
    Text(String),
}

impl Dim {
    /// All of them, in reading order.
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

    /// The label of its selector and column.
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

    /// Its value in `case`.
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

    /// A value as an option of its selector. Not escaped.
    pub(super) fn option(self, value: &Value) -> String {
        match (self, value) {
            (Dim::ValueBytes, Value::Number(bytes)) => format!("{bytes} B"),
            (_, Value::Number(number)) => format::count(*number),
            (_, Value::Text(text)) if text.is_empty() => "not applicable".to_owned(),
            (_, Value::Text(text)) => text.clone(),
        }
    }

    /// A value as part of a sentence, empty where it says nothing. Not escaped.
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

/// A case in one line, the dimensions of `dims` only: `1 M entries · 6 B values · uncompressed`.
/// Not escaped.
pub(super) fn describe(case: &Case, dims: &[Dim]) -> String {
    let phrases = dims.iter().map(|dim| dim.phrase(&dim.of(case))).filter(|phrase| !phrase.is_empty());
    phrases.collect::<Vec<_>>().join(" · ")
}

/// How a contender is drawn. The same everywhere on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// One of Cairn's own.
    pub(super) ours: bool,
    /// The place of its family in [`Model::families`].
    pub(super) family: usize,
    /// Which colour of its side's palette: `o0` to `o10` for ours, `p0` to `p6` for peers.
    tone: usize,
}

/// Colours of our side: as many as the pool has policies, with the one without page checks.
const OUR_TONES: usize = 11;

/// Shapes tell families apart where colours do not.
const MARKERS: usize = 7;

impl Look {
    /// The look of a line that is no contender's, told from others of its chart by its number.
    pub(super) fn line(number: usize) -> Look {
        Look { ours: true, family: number, tone: number * 3 }
    }

    /// The CSS class of its colour.
    pub(super) fn class(self) -> String {
        if self.ours { format!("o{}", self.tone % OUR_TONES) } else { format!("p{}", self.tone % 7) }
    }

    /// The id of its marker among the page's symbols.
    pub(super) fn marker(self) -> String {
        format!("m{}", self.family % MARKERS)
    }
}

/// One family of contenders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Family<'a> {
    /// As in the run.
    pub(super) name: &'a str,
    /// How its contenders are drawn.
    pub(super) look: Look,
}

/// A run with what every section asks about it.
#[derive(Debug)]
pub(super) struct Model<'a> {
    /// The run itself.
    pub(super) run: &'a Run,
    /// Ours first, then the peers, each in the run's order.
    pub(super) families: Vec<Family<'a>>,
    looks: BTreeMap<&'a str, Look>,
    /// How many operations and metrics were measured of each store.
    coverage: BTreeMap<Store<'a>, usize>,
}

/// What a store holds: data set, entries, value bytes, compression.
type Store<'a> = (&'a str, u64, u32, &'a str);

fn store_of(case: &Case) -> Store<'_> {
    (&case.dataset, case.entries, case.value_bytes, &case.compression)
}

impl<'a> Model<'a> {
    /// Sorts out families and looks. A measurement of a contender that the run does not list gets a
    /// family of its own among the peers, so that nothing measured can vanish.
    pub(super) fn new(run: &'a Run) -> Self {
        let listed = run.contenders.iter().map(|c| (c.name.as_str(), c.family.as_str(), c.ours));
        let known: BTreeSet<&str> = run.contenders.iter().map(|c| c.name.as_str()).collect();
        let strays =
            run.measurements.iter().map(|m| m.contender.as_str()).filter(|name| !known.contains(name));
        let all: Vec<(&str, &str, bool)> = listed.chain(strays.map(|name| (name, name, false))).collect();

        let mut families: Vec<Family<'a>> = Vec::new();
        let mut looks = BTreeMap::new();
        for side in [true, false] {
            let first = families.len();
            for (name, family, _) in all.iter().filter(|(_, _, ours)| *ours == side) {
                let found = families.iter().skip(first).find(|f| f.name == *family).map(|f| f.look);
                let look = found.unwrap_or_else(|| {
                    let index = families.len();
                    let look = Look { ours: side, family: index, tone: index - first };
                    families.push(Family { name: family, look });
                    look
                });
                looks.entry(*name).or_insert(look);
            }
        }
        let mut kinds: BTreeMap<Store<'a>, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for m in &run.measurements {
            kinds.entry(store_of(&m.case)).or_default().insert((&m.case.operation, &m.metric));
        }
        let coverage = kinds.into_iter().map(|(store, kinds)| (store, kinds.len())).collect();
        Model { run, families, looks, coverage }
    }

    /// How many operations and metrics were measured of the store of `case`: quick runs look
    /// closely at one only.
    pub(super) fn coverage(&self, case: &Case) -> usize {
        self.coverage.get(&store_of(case)).copied().unwrap_or(0)
    }

    /// The contenders with a figure of the same area as `slice` somewhere, but none in it.
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

    /// How the contender of that name is drawn.
    pub(super) fn look(&self, contender: &str) -> Look {
        self.looks.get(contender).copied().unwrap_or(Look { ours: false, family: 0, tone: 6 })
    }

    /// Whether a contender keeps decompressed blocks in memory, as far as the run says.
    pub(super) fn keeps_blocks(&self, contender: &str) -> bool {
        self.run.contenders.iter().any(|known| known.name == contender && known.keeps_blocks())
    }

    /// A name that fits beside a line, which stands for its family there: the contender's where it
    /// is short, otherwise the family's. Not escaped.
    pub(super) fn short_name(&self, contender: &str, keep: usize) -> String {
        let family = self.families.get(self.look(contender).family).map_or(contender, |family| family.name);
        let short = if contender.chars().count() <= keep { contender } else { family };
        format::shorten(short, keep)
    }

    /// The measurements of one area, in the order taken.
    pub(super) fn in_area(&self, wanted: Area) -> impl Iterator<Item = &'a Measurement> + use<'a> {
        self.run.measurements.iter().filter(move |measurement| area(measurement) == wanted)
    }
}

/// The better of two measurements of one metric; a figure beats none.
pub(super) fn better<'m>(left: &'m Measurement, right: &'m Measurement) -> &'m Measurement {
    let left_wins = match (left.median.is_finite(), right.median.is_finite()) {
        (true, true) if left.higher_is_better => left.median >= right.median,
        (true, true) => left.median <= right.median,
        (left_is_figure, _) => left_is_figure,
    };
    if left_wins { left } else { right }
}

/// The best of several measurements of one metric, by median. The first of equals.
pub(super) fn best<'m>(measurements: impl Iterator<Item = &'m Measurement>) -> Option<&'m Measurement> {
    measurements.filter(|m| m.median.is_finite()).reduce(better)
}
