//! Sparkey's Java library as the suite of constant stores sees it: it builds stores, and its
//! readers are measured by JMH, in processes of its own.

use std::path::{Path, PathBuf};

use super::constant::{BuildOutcome, Compression};
use crate::core::digest::Outline;
use crate::core::error::Result;
use crate::core::process::Stop;
use crate::core::settings::{Settings, settings};

/// The method by which Sparkey builds its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Construction {
    /// In a hash table in memory, by random writes.
    InMemory,
    /// By an external sort.
    Sorting,
}

impl Construction {
    /// Both methods.
    pub const ALL: [Construction; 2] = [Construction::InMemory, Construction::Sorting];

    /// Returns the name of the contender that builds in this way.
    pub fn contender(self) -> &'static str {
        match self {
            Construction::InMemory => "sparkey-java in-memory build",
            Construction::Sorting => "sparkey-java sorting build",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Construction::InMemory => "IN_MEMORY",
            Construction::Sorting => "SORTING",
        }
    }
}

/// The API that reads a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `getAsEntry`, which reads the value into a buffer that the thread reuses.
    Entry,
    /// `getAsByteArray`, which allocates a new array for every value.
    Bytes,
}

impl Api {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Api::Entry => "entry",
            Api::Bytes => "bytes",
        }
    }
}

/// Selection of the Java readers to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaChoice {
    /// APIs; each is a contender.
    pub apis: Vec<Api>,
    /// True to measure every reader on every JDK that has it; false for only the newest of them.
    pub every_jdk: bool,
}

/// An installation that can run the jar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jdk {
    /// Path of its `java`.
    pub launcher: PathBuf,
    /// Major version: 8, 17, 25, …
    pub major: u32,
    /// Name and full version of the virtual machine.
    pub description: String,
    /// Label in the names of contenders: the major version, or the full one if several
    /// installations have the same major version.
    pub label: String,
}

/// A Java reader with the API and the JDK to measure it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaReader {
    /// Sparkey's name of the reader.
    pub name: String,
    /// The API that reads values.
    pub api: Api,
    /// The JDK.
    pub jdk: Jdk,
}

impl JavaReader {
    /// Returns the name of the contender.
    pub fn contender(&self) -> String {
        format!("sparkey-java {} {} (JDK {})", self.name, self.api.word(), self.jdk.label)
    }

    /// Returns the settings of the runs: a process per repetition or one for all, and the maximum
    /// number of keys for compressed values.
    pub fn settings(&self, fresh: bool, keys_max_compressed: usize) -> Settings {
        let processes =
            if fresh { "one process a repetition" } else { "one process, an iteration a repetition" };
        settings([
            ("harness", &format!("JMH, throughput mode, keys prepared as arrays, {processes}")),
            ("keys", &format!("at most {keys_max_compressed} where compressed")),
            ("jvm", &self.jdk.description),
            ("api", self.api.word()),
            ("block size", "4096 where compressed"),
        ])
    }
}

/// The parameters of a JMH run.
#[derive(Debug, Clone, Copy)]
pub struct JavaRun<'a> {
    /// The index of the store; the log is next to it.
    pub index: &'a Path,
    /// The file of keys, written by [`write_keys`](super::java_frames::write_keys).
    pub keys: &'a Path,
    /// The expected digest.
    pub expected: Outline,
    /// Number of threads.
    pub threads: u32,
    /// Iterations of the same length before the measured ones.
    pub warm_up: u32,
    /// Measured iterations.
    pub iterations: u32,
    /// Length of an iteration, in seconds.
    pub seconds: f64,
}

/// The library, with everything that it needs.
pub trait JavaLibrary {
    /// Returns Sparkey's version.
    fn version(&self) -> &str;

    /// Returns the settings of a build.
    fn build_settings(&self, construction: Construction) -> Settings;

    /// Builds the store of `records` (see [`write_records`](super::java_frames::write_records))
    /// with its index at `index`, on the newest JDK.
    fn build(
        &self,
        records: &Path,
        index: &Path,
        compression: Compression,
        construction: Construction,
        stop: &Stop,
    ) -> Result<BuildOutcome>;

    /// Returns the selected readers of an uncompressed store.
    fn offered(&self, choice: &JavaChoice) -> Vec<JavaReader>;

    /// Returns the selected readers that can open this store.
    fn readers(&self, index: &Path, choice: &JavaChoice, stop: &Stop) -> Result<Vec<JavaReader>>;

    /// Runs a reader in a new JVM and returns the lookups per second of each measured iteration.
    ///
    /// The Java program first looks every key up once through the same API. Errors:
    /// [`Error::WrongOutline`](crate::Error::WrongOutline) if the answers are not as expected;
    /// [`Error::Process`](crate::Error::Process) with Java's output if the reader fails.
    fn bench(&self, reader: &JavaReader, run: &JavaRun<'_>, stop: &Stop) -> Result<Vec<f64>>;
}
