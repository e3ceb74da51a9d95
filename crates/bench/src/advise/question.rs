//! The question to the adviser: a workload, and the constraints on the answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::fields;
use crate::core::error::{Error, Result};
use crate::core::workload::{Distribution, Durability};
use crate::suites::kv::outcome::Shape;
use crate::suites::kv::{Mix, YcsbRun, YcsbSpec};

/// A workload: the data and the operations on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Name of the workload, for display.
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
    /// Shares of the kinds of operations; they need not add up to one.
    pub mix: Mix,
    /// The longest scan, in entries. Lengths are drawn uniformly from 1 to this.
    #[serde(deserialize_with = "fields::scan_records")]
    pub scan_records: u64,
    /// Distribution of the keys: `uniform`, `zipfian 0.99`, `latest 0.99`, `hot set 0.2 0.8`,
    /// `sequential`.
    #[serde(with = "fields::distribution")]
    pub distribution: Distribution,
    /// Number of threads of the program.
    #[serde(deserialize_with = "fields::threads")]
    pub threads: u32,
    /// Durability of a write when its call returns.
    pub durability: Durability,
}

impl Default for Workload {
    /// Returns a workload of a million small entries, 95 % reads, one thread.
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
    /// Returns the bytes of all keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.records.saturating_mul((self.key_bytes + self.value_bytes) as u64)
    }

    /// Returns the shares, scaled to add up to one.
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

    /// Returns the share of operations that write.
    pub fn writes(&self) -> f64 {
        let Mix { update, insert, read_modify_write, .. } = self.shares();
        update + insert + read_modify_write
    }

    /// Returns the workload in the form in which the key-value suite runs it.
    pub(super) fn spec(&self) -> YcsbSpec {
        YcsbSpec {
            mix: self.mix,
            distribution: self.distribution,
            scan_max: self.scan_records,
            value_bytes: self.value_bytes,
            ..YcsbSpec::new(&self.name)
        }
    }

    /// Returns the lengths of keys and values.
    pub(super) fn shape(&self) -> Shape {
        Shape { key_bytes: self.key_bytes, value_bytes: self.value_bytes }
    }

    /// Combines several workloads of the suite into a run that executes them one after the other on
    /// this workload's records.
    pub(super) fn run(&self, specs: Vec<YcsbSpec>) -> YcsbRun {
        let settled = specs.iter().any(|spec| spec.mix.writes() > 0.0);
        YcsbRun { records: self.records, operations: 1, threads: self.threads, specs, settled }
    }

    /// Checks every field. Errors: [`Error::Invalid`] with the name of the field.
    pub fn check(&self) -> Result<()> {
        if let Some(Fault { field, found, expected }) = self.fault() {
            return Err(Error::invalid(format!("{field}: found {found}, expected {expected}")));
        }
        self.spec().check()
    }

    /// Returns the first field with a value that is not allowed.
    pub(super) fn fault(&self) -> Option<Fault> {
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

/// A field with a value that is not allowed.
pub(super) struct Fault {
    pub field: &'static str,
    pub found: String,
    pub expected: String,
}

/// Constraints on the answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// Bytes of memory that the store may take, including caches and buffers.
    #[serde(deserialize_with = "fields::space")]
    pub memory_bytes: Option<u64>,
    /// Bytes that its files may take.
    #[serde(deserialize_with = "fields::space")]
    pub disk_bytes: Option<u64>,
    /// Upper bound of the 99th percentile of latency of each kind of operation, in microseconds.
    #[serde(alias = "p99_micros")]
    pub p99_us: Option<f64>,
    /// The only stores to choose from; empty for all.
    pub stores: Vec<String>,
}

impl Constraints {
    /// Returns the first invalid constraint; `stores` are the names of all stores.
    pub(super) fn fault(&self, stores: &[&str]) -> Option<Fault> {
        if let Some(micros) = self.p99_us.filter(|micros| !micros.is_finite() || *micros <= 0.0) {
            let expected = "a number over 0".to_owned();
            return Some(Fault { field: "p99_us", found: micros.to_string(), expected });
        }
        let unknown = self.stores.iter().find(|name| !stores.contains(&name.as_str()))?;
        Some(Fault { field: "stores", found: format!("{unknown:?}"), expected: stores.join(", ") })
    }
}

/// A workload and its constraints: the content of a workload file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// A trace of the workload, which the finalists replay. It then determines all of the workload
    /// except durability and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// The workload.
    pub workload: Workload,
    /// Constraints on the answer.
    pub constraints: Constraints,
}
