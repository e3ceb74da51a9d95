//! What the adviser is asked: a workload, and what the answer must keep to.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
    pub records: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// What is done how often; the shares need not add up to one.
    pub mix: Mix,
    /// The longest scan, in entries; each length up to it is as likely.
    pub scan_records: u64,
    /// Which keys are asked for: `uniform`, `zipfian 0.99`, `latest 0.99`, `hot set 0.2 0.8`, `sequential`.
    #[serde(with = "as_words")]
    pub distribution: Distribution,
    /// Threads of the program.
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
        let within = |name: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} {value}: expected {least} to {most}")))
        };
        within("records", self.records, 100, u64::from(u32::MAX))?;
        within("key_bytes", self.key_bytes as u64, 12, 1024)?;
        within("value_bytes", self.value_bytes as u64, 8, 1 << 24)?;
        within("threads", u64::from(self.threads), 1, 256)?;
        within("scan_records", self.scan_records, 1, 1_000_000)?;
        self.spec().check()
    }
}

/// What the answer must keep to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// Bytes of memory that the store may take, caches and buffers included.
    pub memory_bytes: Option<u64>,
    /// Bytes that its files may take.
    pub disk_bytes: Option<u64>,
    /// Microseconds that 99 of 100 operations of each kind must take at most.
    pub p99_micros: Option<f64>,
    /// The only stores to choose from; all when empty.
    pub stores: Vec<String>,
}

/// Workload and constraints: the content of a workload file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// A trace of it, which those who are run replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// What is done.
    pub workload: Workload,
    /// What the answer must keep to.
    pub constraints: Constraints,
}

impl Question {
    /// Reads a workload file, in JSON. `file` is for messages.
    ///
    /// Errors: [`Error::Invalid`] with line and column for what is no JSON, and for fields that there are not; those of [`Workload::check`].
    pub fn from_json(text: &str, file: &str) -> Result<Question> {
        let question: Question =
            serde_json::from_str(text).map_err(|error| Error::invalid(format!("{file}: {error}")))?;
        question.workload.check().map_err(|error| Error::invalid(format!("{file}: {error}")))?;
        Ok(question)
    }
}

/// Distributions as people write them.
mod as_words {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::workload::Distribution;

    pub(super) fn serialize<S: Serializer>(of: &Distribution, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(of)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Distribution, D::Error> {
        let words = String::deserialize(from)?;
        words.parse().map_err(de::Error::custom)
    }
}
