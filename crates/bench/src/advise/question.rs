//! What the adviser is asked: a workload, and what the answer must keep to.

use std::path::PathBuf;

use cairn_sim::json;
use serde::{Deserialize, Serialize};

use super::candidate::store_names;
use super::fields;
use super::traced::from_trace;
use crate::error::{Error, Result};
use crate::suite_kv::job::Shape;
use crate::suite_kv::{Mix, YcsbRun, YcsbSpec};
use crate::workload::{Distribution, Durability};

/// What is stored, and what is done with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// For people.
    pub name: String,
    /// Entries before the first operation.
    #[serde(deserialize_with = "fields::records")]
    pub records: u64,
    /// Bytes of a key.
    #[serde(deserialize_with = "fields::key_bytes")]
    pub key_bytes: usize,
    /// Bytes of a value.
    #[serde(deserialize_with = "fields::value_bytes")]
    pub value_bytes: usize,
    /// What is done how often; the shares need not add up to one.
    pub mix: Mix,
    /// The longest scan, in entries; each length up to it is as likely.
    #[serde(deserialize_with = "fields::scan_records")]
    pub scan_records: u64,
    /// Which keys are asked for: `uniform`, `zipfian 0.99`, `latest 0.99`, `hot set 0.2 0.8`,
    /// `sequential`.
    #[serde(with = "fields::distribution")]
    pub distribution: Distribution,
    /// Threads of the program.
    #[serde(deserialize_with = "fields::threads")]
    pub threads: u32,
    /// What a write promises when it returns.
    pub durability: Durability,
}

impl Default for Workload {
    /// A million small entries, read 95 times of 100, by one thread.
    fn default() -> Self {
        Workload {
            name: "workload".to_owned(),
            records: 1_000_000,
            key_bytes: 16,
            value_bytes: 100,
            mix: Mix { read: 0.95, update: 0.05, ..Mix::default() },
            scan_records: 100,
            distribution: Distribution::Zipfian { theta: 0.99, scrambled: true },
            threads: 1,
            durability: Durability::Buffered,
        }
    }
}

impl Workload {
    /// Bytes of keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.records.saturating_mul((self.key_bytes + self.value_bytes) as u64)
    }

    /// The shares, adding up to one.
    pub fn shares(&self) -> Mix {
        let Mix { read, update, scan, insert, read_modify_write } = self.mix;
        let total = (read + update + scan + insert + read_modify_write).max(f64::MIN_POSITIVE);
        Mix {
            read: read / total,
            update: update / total,
            scan: scan / total,
            insert: insert / total,
            read_modify_write: read_modify_write / total,
        }
    }

    /// The share of operations that write.
    pub fn writes(&self) -> f64 {
        let Mix { update, insert, read_modify_write, .. } = self.shares();
        update + insert + read_modify_write
    }

    /// The workload as the suite of key-value stores runs it.
    pub(super) fn spec(&self) -> YcsbSpec {
        YcsbSpec {
            mix: self.mix,
            distribution: self.distribution,
            scan_max: self.scan_records,
            value_bytes: self.value_bytes,
            ..YcsbSpec::new(&self.name)
        }
    }

    /// Lengths of keys and values.
    pub(super) fn shape(&self) -> Shape {
        Shape { key_bytes: self.key_bytes, value_bytes: self.value_bytes }
    }

    /// Some workloads of the suite, one after the other on this one's records.
    pub(super) fn run(&self, specs: Vec<YcsbSpec>) -> YcsbRun {
        let settled = specs.iter().any(|spec| spec.mix.writes() > 0.0);
        YcsbRun { records: self.records, operations: 1, threads: self.threads, specs, settled }
    }

    /// Errors: [`Error::Invalid`] naming the field.
    pub fn check(&self) -> Result<()> {
        if let Some(Fault { field, found, expected }) = self.fault() {
            return Err(Error::invalid(format!("{field}: found {found}, expected {expected}")));
        }
        self.spec().check()
    }

    fn fault(&self) -> Option<Fault> {
        let bounds = [
            ("records", self.records, fields::RECORDS),
            ("key_bytes", self.key_bytes as u64, fields::KEY_BYTES),
            ("value_bytes", self.value_bytes as u64, fields::VALUE_BYTES),
            ("threads", u64::from(self.threads), fields::THREADS),
            ("scan_records", self.scan_records, fields::SCAN_RECORDS),
        ];
        let outside = bounds.into_iter().find(|(_, value, bounds)| !bounds.contains(*value));
        if let Some((field, value, bounds)) = outside {
            return Some(Fault { field, found: value.to_string(), expected: bounds.to_string() });
        }
        let Mix { read, update, scan, insert, read_modify_write } = self.mix;
        let shares = [
            ("mix.read", read),
            ("mix.update", update),
            ("mix.scan", scan),
            ("mix.insert", insert),
            ("mix.read_modify_write", read_modify_write),
        ];
        if let Some((field, share)) = shares.into_iter().find(|(_, share)| !share.is_finite() || *share < 0.0)
        {
            let expected = "a number of 0 or more".to_owned();
            return Some(Fault { field, found: share.to_string(), expected });
        }
        if shares.iter().any(|(_, share)| *share > 0.0) {
            return None;
        }
        let expected = "at least one of read, update, insert, scan and read_modify_write".to_owned();
        Some(Fault { field: "mix", found: "no share over 0".to_owned(), expected })
    }
}

/// What `constraints.p99_us` was called, and still may be in workload files.
const P99_BEFORE: &str = "constraints.p99_micros";

/// A field that cannot be as it is.
struct Fault {
    field: &'static str,
    found: String,
    expected: String,
}

/// What the answer must keep to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// Bytes of memory that the store may take, caches and buffers included.
    #[serde(deserialize_with = "fields::space")]
    pub memory_bytes: Option<u64>,
    /// Bytes that its files may take.
    #[serde(deserialize_with = "fields::space")]
    pub disk_bytes: Option<u64>,
    /// Microseconds that 99 of 100 operations of each kind must take at most.
    #[serde(alias = "p99_micros")]
    pub p99_us: Option<f64>,
    /// The only stores to choose from; all when empty.
    pub stores: Vec<String>,
}

impl Constraints {
    fn fault(&self) -> Option<Fault> {
        if let Some(micros) = self.p99_us.filter(|micros| !micros.is_finite() || *micros <= 0.0) {
            let expected = "a number over 0".to_owned();
            return Some(Fault { field: "p99_us", found: micros.to_string(), expected });
        }
        let names = store_names();
        let unknown = self.stores.iter().find(|name| !names.contains(name))?;
        Some(Fault { field: "stores", found: format!("{unknown:?}"), expected: names.join(", ") })
    }
}

/// Workload and constraints: the content of a workload file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// A trace of it, which those who are run replay. What is done is the trace's then, but for
    /// durability and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// What is done.
    pub workload: Workload,
    /// What the answer must keep to.
    pub constraints: Constraints,
}

impl Question {
    /// Reads a workload file, in JSON. `file` is for messages. Where it names a trace, that is
    /// read, too.
    ///
    /// Errors: [`Error::Input`] with the line, the field and what was expected of it; those of
    /// [`super::from_trace`].
    pub fn from_json(text: &str, file: &str) -> Result<Question> {
        let refuse = |line: Option<usize>, what: String| {
            let line = line.map(|line| line as u64);
            Error::Input { file: PathBuf::from(file), line, what }
        };
        let question: Question = json::parse(text, file).map_err(|error| match error {
            cairn_sim::Error::Parse { line, what, .. } => refuse(Some(line), what),
            other => refuse(None, other.to_string()),
        })?;
        let faults = [("workload", question.workload.fault()), ("constraints", question.constraints.fault())];
        for (section, fault) in faults {
            if let Some(Fault { field, found, expected }) = fault {
                let path = format!("{section}.{field}");
                let what = format!("{path}: found {found}, expected {expected}");
                let line = json::line_of(text, &path).or_else(|| json::line_of(text, P99_BEFORE));
                return Err(refuse(line, what));
            }
        }
        question.workload.check().map_err(|error| refuse(None, error.to_string()))?;
        let Some(trace) = &question.trace else { return Ok(question) };
        let threads = json::line_of(text, "workload.threads").map(|_| question.workload.threads);
        let traced = from_trace(trace, threads)?.workload;
        let workload = Workload { durability: question.workload.durability, ..traced };
        Ok(Question { workload, ..question })
    }
}
