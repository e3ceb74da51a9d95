//! The definitions of YCSB's core workloads: the six common ones, and property files.
//!
//! After Cooper et al., "Benchmarking Cloud Serving Systems with YCSB" (SoCC 2010), and the
//! property names of its core workload. A record is one value here that holds all fields of a row.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::workload::Distribution;

/// The shares of a workload's operations. They need not add up to one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mix {
    /// Lookups of one record.
    pub read: f64,
    /// Writes of existing records.
    pub update: f64,
    /// Short scans that begin at a record.
    pub scan: f64,
    /// Inserts of new records.
    pub insert: f64,
    /// A lookup, then a write of the same record.
    pub read_modify_write: f64,
}

impl Mix {
    /// Returns the sum of the shares that write.
    pub(crate) fn writes(&self) -> f64 {
        self.update + self.insert + self.read_modify_write
    }

    /// Returns the sum of all shares; always above 0.
    pub(crate) fn total(&self) -> f64 {
        self.shares().iter().sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// Returns the shares in the order of [`super::Kind`].
    pub(super) fn shares(&self) -> [f64; 5] {
        [self.read, self.update, self.scan, self.insert, self.read_modify_write]
    }
}

/// The distribution of scan lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScanLength {
    /// Each length equally often.
    Uniform,
    /// Short ones more often.
    Zipfian,
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the workload in the results: `ycsb-a`, or that of the property file.
    pub name: String,
    /// The shares of operations.
    pub mix: Mix,
    /// The distribution of the accessed records.
    pub distribution: Distribution,
    /// The longest scan, in records.
    pub scan_max: u64,
    /// The distribution of scan lengths.
    pub scan_length: ScanLength,
    /// Number of records before the first operation; `None` for the run's number.
    pub records: Option<u64>,
    /// Number of operations; `None` for the run's number.
    pub operations: Option<u64>,
    /// Length of a record in bytes: YCSB's ten fields of a hundred bytes unless specified.
    pub value_bytes: usize,
    /// Number of threads; `None` for the run's number.
    pub threads: Option<u32>,
}

/// YCSB's `zipfianconstant`.
const THETA: f64 = 0.99;
/// YCSB's defaults for `fieldcount` and `fieldlength`, and the core workloads' `maxscanlength`.
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const SCAN_MAX: u64 = 100;

fn zipfian() -> Distribution {
    Distribution::Zipfian { theta: THETA, scrambled: true }
}

impl Spec {
    pub(crate) fn new(name: &str) -> Spec {
        Spec {
            name: name.to_owned(),
            // YCSB's own defaults.
            mix: Mix { read: 0.95, update: 0.05, ..Mix::default() },
            distribution: Distribution::Uniform,
            scan_max: 1000,
            scan_length: ScanLength::Uniform,
            records: None,
            operations: None,
            value_bytes: FIELDS * FIELD_BYTES,
            threads: None,
        }
    }

    /// Returns one of the six core workloads, by its letter.
    pub fn core(letter: char) -> Option<Spec> {
        let mix = |read, update, scan, insert, read_modify_write| Mix {
            read,
            update,
            scan,
            insert,
            read_modify_write,
        };
        let latest = Distribution::Latest { theta: THETA };
        let (mix, distribution) = match letter {
            'a' => (mix(0.5, 0.5, 0.0, 0.0, 0.0), zipfian()),
            'b' => (mix(0.95, 0.05, 0.0, 0.0, 0.0), zipfian()),
            'c' => (mix(1.0, 0.0, 0.0, 0.0, 0.0), zipfian()),
            'd' => (mix(0.95, 0.0, 0.0, 0.05, 0.0), latest),
            'e' => (mix(0.0, 0.0, 0.95, 0.05, 0.0), zipfian()),
            'f' => (mix(0.5, 0.0, 0.0, 0.0, 0.5), zipfian()),
            _ => return None,
        };
        Some(Spec { mix, distribution, scan_max: SCAN_MAX, ..Spec::new(&format!("ycsb-{letter}")) })
    }

    /// Checks that the workload performs operations, and that they are possible.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid(format!("{}: {what}", self.name)));
        let shares = self.mix.shares();
        if shares.iter().any(|share| !share.is_finite() || *share < 0.0) || shares.iter().sum::<f64>() <= 0.0
        {
            return refuse(
                "the proportions of operations must be 0 or more, and at least one of them over 0".to_owned(),
            );
        }
        if self.scan_max == 0 {
            return refuse("maxscanlength 0: expected at least 1".to_owned());
        }
        for (name, value) in [("recordcount", self.records), ("operationcount", self.operations)] {
            if value.is_some_and(|value| value == 0 || value > u64::from(u32::MAX)) {
                return refuse(format!("{name}: expected 1 to {}", u32::MAX));
            }
        }
        if self.threads.is_some_and(|threads| threads == 0 || threads > 1024) {
            return refuse("threadcount: expected 1 to 1024".to_owned());
        }
        super::super::values::Values::new(self.value_bytes)?;
        self.distribution.check()
    }

    /// Parses the text of a property file, and then additional properties `more` of the form
    /// `name=value`. A later property overrides an earlier one. `name` is the name of the workload
    /// in the results. Also returns the properties that are not supported, for a note.
    ///
    /// Errors: [`Error::Invalid`] naming the property and the expected value.
    pub fn from_properties(name: &str, text: &str, more: &[String]) -> Result<(Spec, Vec<String>)> {
        let mut properties = Properties { spec: Spec::new(name), ..Properties::default() };
        for line in logical_lines(text).iter().chain(more) {
            properties.set(line)?;
        }
        let (mut spec, unknown) = (properties.spec, properties.unknown);
        spec.value_bytes = properties.fields.saturating_mul(properties.field_bytes);
        if let Distribution::HotSet { fraction, probability } = &mut spec.distribution {
            (*fraction, *probability) = properties.hot;
        }
        spec.check()?;
        Ok((spec, unknown))
    }
}

/// The state of parsing properties.
struct Properties {
    spec: Spec,
    fields: usize,
    field_bytes: usize,
    hot: (f64, f64),
    unknown: Vec<String>,
}

impl Default for Properties {
    fn default() -> Self {
        let (fields, field_bytes) = (FIELDS, FIELD_BYTES);
        Properties { spec: Spec::new(""), fields, field_bytes, hot: (0.2, 0.8), unknown: Vec::new() }
    }
}

impl Properties {
    /// Parses one `name=value`. As in Java's property files, `:` and a space are separators too.
    fn set(&mut self, line: &str) -> Result<()> {
        let line = line.trim();
        let end = line.find(['=', ':', ' ', '\t']).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let value = rest.trim_start().trim_start_matches(['=', ':']).trim();
        if name.is_empty() || value.is_empty() {
            return Err(Error::invalid(format!("property {line:?}: expected name=value")));
        }
        let share = || number::<f64>(name, value, "a number of 0 or more");
        let count = || number::<u64>(name, value, "a whole number");
        let spec = &mut self.spec;
        match name {
            "recordcount" => spec.records = Some(count()?),
            "operationcount" => spec.operations = Some(count()?),
            "readproportion" => spec.mix.read = share()?,
            "updateproportion" => spec.mix.update = share()?,
            "scanproportion" => spec.mix.scan = share()?,
            "insertproportion" => spec.mix.insert = share()?,
            "readmodifywriteproportion" => spec.mix.read_modify_write = share()?,
            "requestdistribution" => spec.distribution = distribution(value)?,
            "maxscanlength" => spec.scan_max = count()?,
            "scanlengthdistribution" => {
                spec.scan_length = match value {
                    "uniform" => ScanLength::Uniform,
                    "zipfian" => ScanLength::Zipfian,
                    _ => return Err(expected(name, value, "uniform or zipfian")),
                }
            }
            "fieldcount" => self.fields = number(name, value, "a whole number")?,
            "fieldlength" => self.field_bytes = number(name, value, "a whole number")?,
            "hotspotdatafraction" => self.hot.0 = share()?,
            "hotspotopnfraction" => self.hot.1 = share()?,
            "threadcount" | "threads" => spec.threads = Some(number(name, value, "a whole number")?),
            // These properties describe how the suite works anyway, or cannot matter to a store of
            // whole records.
            "workload" | "readallfields" | "writeallfields" | "table" | "insertorder" | "dataintegrity" => {}
            other => self.unknown.push(other.to_owned()),
        }
        Ok(())
    }
}

fn distribution(value: &str) -> Result<Distribution> {
    match value {
        "uniform" => Ok(Distribution::Uniform),
        "zipfian" => Ok(zipfian()),
        "latest" => Ok(Distribution::Latest { theta: THETA }),
        "sequential" => Ok(Distribution::Sequential),
        // Its two fractions are separate properties.
        "hotspot" => Ok(Distribution::HotSet { fraction: 0.2, probability: 0.8 }),
        _ => Err(expected("requestdistribution", value, "uniform, zipfian, latest, sequential or hotspot")),
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str, what: &str) -> Result<T> {
    value.parse().map_err(|_| expected(name, value, what))
}

fn expected(name: &str, value: &str, what: &str) -> Error {
    Error::invalid(format!("property {name}={value}: expected {what}"))
}

/// Returns the lines without comments and blank lines. A line that ends in a backslash is joined
/// with the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines().map(str::trim) {
        if open.is_empty() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(part) => open += part,
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    if !open.is_empty() {
        lines.push(open);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: property files as YCSB ships them are understood, later properties win, and
    /// unsupported ones are reported. Method: comments, joined lines, all three separators.
    #[test]
    fn property_files_are_read() {
        let text = "# Workload X\n!also\nrecordcount=1000\noperationcount: 2000\nworkload=site.ycsb.workloads.CoreWorkload\n\
                    readallfields=true\n\nreadproportion = 0.5\nupdateproportion 0.25\nscanproportion=\\\n  0.25\n\
                    insertproportion=0\nrequestdistribution=hotspot\nhotspotdatafraction=0.1\nfieldlength=20\n\
                    measurementtype=histogram\nscanlengthdistribution=zipfian\n";
        let more = ["recordcount=500".to_owned(), "threadcount=4".to_owned()];
        let (spec, unknown) = Spec::from_properties("mine", text, &more).unwrap();
        assert_eq!((spec.records, spec.operations, spec.threads), (Some(500), Some(2000), Some(4)));
        assert_eq!(spec.mix.shares(), [0.5, 0.25, 0.25, 0.0, 0.0]);
        assert_eq!(spec.distribution, Distribution::HotSet { fraction: 0.1, probability: 0.8 });
        assert_eq!(
            (spec.value_bytes, spec.scan_length, spec.name.as_str()),
            (200, ScanLength::Zipfian, "mine")
        );
        assert_eq!(unknown, ["measurementtype"]);
    }

    /// Goal: invalid properties are refused by name.
    #[test]
    fn wrong_properties_are_refused() {
        for (text, word) in [
            ("recordcount=many", "recordcount=many"),
            ("recordcount", "name=value"),
            ("recordcount=0", "recordcount"),
            ("requestdistribution=normal", "zipfian"),
            ("readproportion=-1", "proportions"),
            ("readproportion=0\nupdateproportion=0", "proportions"),
            ("maxscanlength=0", "maxscanlength"),
            ("fieldlength=0", "value size"),
            ("threadcount=0", "threadcount"),
            ("requestdistribution=hotspot\nhotspotdatafraction=2", "hot set"),
        ] {
            let error = Spec::from_properties("p", text, &[]).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    /// Goal: the six letters are the six workloads, and all of them can run.
    #[test]
    fn core_workloads() {
        for letter in 'a'..='f' {
            let spec = Spec::core(letter).unwrap();
            spec.check().unwrap();
            assert!((spec.mix.shares().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert_eq!((spec.name.as_str(), spec.value_bytes), (format!("ycsb-{letter}").as_str(), 1000));
        }
        assert_eq!(Spec::core('g'), None);
    }
}
