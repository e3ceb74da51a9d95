//! Sparkey's own Java library, run by JMH in a process of its own.
//!
//! The available readers are queried from every installed JDK and for every file, since some
//! readers open only uncompressed files. `testing/java/README.md` describes the Java program and
//! its file formats.

mod jdk;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use cairn_vfs::{Clock, Fs, OpenOptions, StdFs, SystemClock};
use serde::Deserialize;

use self::jdk::installed;
use crate::core::digest::Outline;
use crate::core::error::{Error, Result};
use crate::core::process::{self, Stop};
use crate::core::settings::{Settings, settings};
use crate::stores::cairn_sparkey::BLOCK_BYTES;
use crate::stores::java::{Construction, JavaChoice, JavaLibrary, JavaReader, JavaRun, Jdk};
use crate::stores::{BuildOutcome, Compression};

/// Family of all its contenders.
pub const FAMILY: &str = crate::core::results::SPARKEY_JAVA;

/// The jar and the JDKs that can run it.
#[derive(Debug)]
pub struct SparkeyJava {
    jar: PathBuf,
    jdks: Vec<Jdk>,
    /// Readers of an uncompressed store, each with a JDK that provides it.
    offered: Vec<(String, Jdk)>,
    /// Sparkey's version, as reported by the jar.
    version: String,
}

#[derive(Deserialize)]
struct BuildReport {
    write_seconds: f64,
    hash_seconds: f64,
    log_bytes: u64,
    index_bytes: u64,
    peak_rss_bytes: u64,
}

#[derive(Deserialize)]
struct BenchReport {
    ops_per_second: Vec<f64>,
    found: u64,
    digest: u64,
}

/// Returns the path of the jar: `CAIRN_SPARKEY_JAR`, else `java/sparkey-bench.jar` in the cache
/// directory.
pub fn jar_path() -> PathBuf {
    match env::var_os("CAIRN_SPARKEY_JAR") {
        Some(path) => path.into(),
        None => crate::core::cache::cache_dir().join("java/sparkey-bench.jar"),
    }
}

impl SparkeyJava {
    /// Finds the jar and every JDK that can run it, ordered from the newest.
    ///
    /// Errors: [`Error::Engine`] naming the missing part and its expected place.
    pub fn find(stop: &Stop) -> Result<SparkeyJava> {
        let jar = jar_path();
        let fail = |what: String| Error::engine(FAMILY, what);
        if !StdFs::new().exists(&jar)? {
            return Err(fail(format!(
                "no jar at {}; `scripts/setup java` in a clone of Cairn builds it, or set CAIRN_SPARKEY_JAR",
                jar.display()
            )));
        }
        let mut java = SparkeyJava { jar, jdks: Vec::new(), offered: Vec::new(), version: String::new() };
        let candidates = installed();
        if candidates.is_empty() {
            return Err(fail("no JDK in JAVA_HOME, PATH or the system's JVM directory".to_owned()));
        }
        let mut refused = Vec::new();
        for launcher in candidates {
            let said =
                java.command(&launcher, &["version"]).and_then(|command| process::run(command, b"", stop));
            match said.map(|line| Jdk::from_version(&launcher, &line)) {
                Ok(Some((jdk, version))) => {
                    java.jdks.push(jdk);
                    java.version = version;
                }
                Ok(None) => refused.push(format!("{} does not say its version", launcher.display())),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => refused.push(error.to_string()),
            }
        }
        if java.jdks.is_empty() {
            return Err(fail(refused.join("; ")));
        }
        java.jdks.sort_by_key(|jdk| std::cmp::Reverse(jdk.major));
        // Only one installation of each build is kept; a second one would be measured twice.
        let mut seen = std::collections::HashSet::new();
        java.jdks.retain(|jdk| seen.insert(jdk.description.clone()));
        Jdk::tell_apart(&mut java.jdks);
        java.offered = java.reader_names(None, stop)?;
        Ok(java)
    }

    /// Returns names of readers with the JDK that provides them, ordered from the newest JDK.
    fn reader_names(&self, index: Option<&Path>, stop: &Stop) -> Result<Vec<(String, Jdk)>> {
        let mut names = Vec::new();
        for jdk in &self.jdks {
            let mut command = self.command(&jdk.launcher, &["readers"])?;
            if let Some(index) = index {
                command.arg("--index").arg(index);
            }
            let lines = process::run(command, b"", stop)?;
            names.extend(
                lines.lines().filter(|line| !line.is_empty()).map(|line| (line.to_owned(), jdk.clone())),
            );
        }
        Ok(names)
    }

    fn command(&self, launcher: &Path, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(launcher);
        // JMH refuses to run next to another JMH on the same machine, which may belong to a test.
        // The lab itself runs one at a time, and interference of others shows in the intervals.
        command.arg("-Djmh.ignoreLock=true").arg("-cp").arg(&self.jar).arg("cairn.Main").args(arguments);
        Ok(command)
    }
}

impl JavaLibrary for SparkeyJava {
    fn version(&self) -> &str {
        &self.version
    }

    fn build_settings(&self, construction: Construction) -> Settings {
        settings([
            ("construction", construction.word()),
            ("jvm", &self.jdks[0].description),
            ("input", "read from a file of length-prefixed records"),
            ("block size", "4096 where compressed"),
            ("peak memory", "of the whole JVM"),
            ("durability", "sync (by the lab after Sparkey is done, the time added)"),
        ])
    }

    fn build(
        &self,
        records: &Path,
        index: &Path,
        compression: Compression,
        construction: Construction,
        stop: &Stop,
    ) -> Result<BuildOutcome> {
        let (compression, block) = (compression.to_string().to_uppercase(), BLOCK_BYTES.to_string());
        let mut command = self.command(&self.jdks[0].launcher, &["build"])?;
        command.arg("--input").arg(records).arg("--out").arg(index);
        command.args([
            "--compression",
            &compression,
            "--block",
            &block,
            "--construction",
            construction.word(),
        ]);
        let report: BuildReport = parse(&process::run(command, b"", stop)?)?;
        // Sparkey does not sync its files, while every other build in the table ends on stable
        // storage. So the lab syncs them and adds the time.
        let clock = SystemClock::new();
        let start = clock.now();
        let fs = StdFs::new();
        for path in [index.to_owned(), index.with_extension("spl")] {
            fs.open(&path, OpenOptions::write())?.sync_data()?;
        }
        fs.sync_parent(index)?;
        let sync_seconds = (clock.now() - start).as_secs_f64();
        Ok(BuildOutcome {
            seconds: report.write_seconds + report.hash_seconds + sync_seconds,
            disk_bytes: report.log_bytes + report.index_bytes,
            index_bytes: Some(report.index_bytes),
            peak_memory_bytes: Some(report.peak_rss_bytes),
        })
    }

    fn offered(&self, choice: &JavaChoice) -> Vec<JavaReader> {
        choose(&self.offered, choice)
    }

    fn readers(&self, index: &Path, choice: &JavaChoice, stop: &Stop) -> Result<Vec<JavaReader>> {
        Ok(choose(&self.reader_names(Some(index), stop)?, choice))
    }

    fn bench(&self, reader: &JavaReader, run: &JavaRun<'_>, stop: &Stop) -> Result<Vec<f64>> {
        let json = run.keys.with_extension("json");
        let mut command = self.command(&reader.jdk.launcher, &["bench", "--forks", "0"])?;
        command.args(["--reader", &reader.name, "--api", reader.api.word()]);
        command.arg("--index").arg(run.index).arg("--keys").arg(run.keys).arg("--json").arg(&json);
        for (name, value) in [
            ("--threads", u64::from(run.threads)),
            ("--warmup", u64::from(run.warm_up)),
            ("--iterations", u64::from(run.iterations)),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command.arg("--seconds").arg(run.seconds.to_string());
        process::run(command, b"", stop)?;
        let map = StdFs::new().open(&json, OpenOptions::read())?.map()?;
        let report: BenchReport = parse(&String::from_utf8_lossy(&map[..]))?;
        let got = Outline { found: report.found, sum: report.digest };
        if got != run.expected {
            return Err(Error::WrongOutline { contender: reader.contender(), expected: run.expected, got });
        }
        if report.ops_per_second.is_empty() || report.ops_per_second.iter().any(|&rate| !rate.is_finite()) {
            return Err(Error::engine(FAMILY, format!("{} measured nothing", reader.contender())));
        }
        Ok(report.ops_per_second)
    }
}

fn choose(names: &[(String, Jdk)], choice: &JavaChoice) -> Vec<JavaReader> {
    let mut readers: Vec<JavaReader> = Vec::new();
    for (name, jdk) in names {
        let known = |reader: &JavaReader| reader.name == *name && reader.jdk != *jdk;
        if !choice.every_jdk && readers.iter().any(known) {
            continue;
        }
        readers.extend(choice.apis.iter().map(|&api| JavaReader {
            name: name.clone(),
            api,
            jdk: jdk.clone(),
        }));
    }
    readers
}

fn parse<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T> {
    serde_json::from_str(json)
        .map_err(|error| Error::engine(FAMILY, format!("its answer cannot be read: {error}")))
}

#[cfg(test)]
mod tests;
