//! Sparkey's own Java library: finds it, and makes it read and write files.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::cases::{Case, Op};

/// A running JVM. Commands are sent line by line, so that hundreds of small cases share one start.
pub struct Jvm {
    /// The path of its launcher, for messages.
    pub java: PathBuf,
    jar: PathBuf,
    /// The kinds of reader that it has; queried when first needed.
    readers: Vec<String>,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Jvm {
    /// Starts a process of the jar on every installed JDK; returns none if there is no JDK.
    ///
    /// With `CAIRN_REQUIRE_JAVA=1`, as `make test` sets it, a missing jar or JDK is a failure.
    /// Otherwise one line reports it, and the test passes without testing anything.
    pub fn all() -> Vec<Jvm> {
        let jar = jar_path();
        let launchers = launchers();
        let missing = match (jar.is_file(), launchers.is_empty()) {
            (true, false) => return launchers.iter().map(|java| Jvm::start(java, &jar)).collect(),
            (false, _) => format!("no jar at {}: run `scripts/setup java`", jar.display()),
            (true, true) => "no JDK in JAVA_HOME, PATH or /usr/lib/jvm".to_owned(),
        };
        assert!(env::var_os("CAIRN_REQUIRE_JAVA").is_none_or(|value| value != "1"), "{missing}");
        eprintln!("SKIPPED, not compared with Sparkey's Java library: {missing}");
        Vec::new()
    }

    fn start(java: &Path, jar: &Path) -> Jvm {
        let mut child = Command::new(java)
            .arg("-jar")
            .arg(jar)
            .arg("batch")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Newer JVMs warn about Sparkey's use of Unsafe.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Jvm {
            java: java.to_owned(),
            jar: jar.to_owned(),
            readers: Vec::new(),
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Runs one command. The error is the message of Java.
    pub fn try_run(&mut self, arguments: &[&str]) -> Result<(), String> {
        let line = arguments.join("\t");
        assert!(!line.contains('\n'));
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        match answer.trim_end() {
            "ok" => Ok(()),
            "" => panic!("{} died over: {line}", self.java.display()),
            error => Err(error.to_owned()),
        }
    }

    /// Runs one command that must succeed.
    pub fn run(&mut self, arguments: &[&str]) {
        if let Err(error) = self.try_run(arguments) {
            panic!("{}: {error}, over: {arguments:?}", self.java.display());
        }
    }

    /// Writes `ops` as a log and its index, with `construction` `IN_MEMORY` or `SORTING`; without
    /// an index if it is `NONE`.
    pub fn write(&mut self, log: &Path, ops: &[Op], case: &Case, construction: &str) {
        self.write_ops(log, ops, case, construction, false);
    }

    /// Appends `ops` to a log and indexes it again.
    pub fn append(&mut self, log: &Path, ops: &[Op], case: &Case) {
        self.write_ops(log, ops, case, "IN_MEMORY", true);
    }

    fn write_ops(&mut self, log: &Path, ops: &[Op], case: &Case, construction: &str, append: bool) {
        let input = log.with_extension("ops");
        fs::write(&input, encode_ops(ops)).unwrap();
        let (block, hash, seed) =
            (case.block.to_string(), case.hash_bytes.to_string(), case.seed.to_string());
        let mut arguments = vec![
            "ops",
            "--in",
            text(&input),
            "--out",
            text(log),
            "--compression",
            case.compression,
            "--block",
            &block,
            "--hash",
            &hash,
            "--seed",
            &seed,
        ];
        if append {
            arguments.push("--append");
        }
        match construction {
            "NONE" => arguments.push("--no-index"),
            method => arguments.extend(["--construction", method]),
        }
        self.run(&arguments);
        fs::remove_file(&input).unwrap();
    }

    /// Indexes a copy of a log written by another library, because Java rewrites the header when it
    /// opens a log.
    pub fn index(&mut self, log: &Path, case: &Case) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.spl");
        fs::copy(log, &copy).unwrap();
        let (hash, seed) = (case.hash_bytes.to_string(), case.seed.to_string());
        self.run(&["hash", "--log", text(&copy), "--hash", &hash, "--seed", &seed]);
        fs::read(copy.with_extension("spi")).unwrap()
    }

    /// Returns every record of a log.
    pub fn log(&mut self, log: &Path) -> Vec<Op> {
        let to = log.with_extension("out");
        self.run(&["log", "--log", text(log), "--to", text(&to)]);
        decode_ops(&take(&to))
    }

    /// Returns every live entry in log order.
    pub fn dump(&mut self, index: &Path) -> Vec<Op> {
        let to = index.with_extension("out");
        self.run(&["dump", "--index", text(index), "--to", text(&to)]);
        decode_ops(&take(&to))
    }

    /// Returns the answers to `keys` of every kind of reader in this JVM, with the name of the
    /// reader.
    pub fn get(&mut self, index: &Path, keys: &[Vec<u8>]) -> Vec<(String, Vec<Option<Vec<u8>>>)> {
        let (input, to) = (index.with_extension("keys"), index.with_extension("out"));
        fs::write(&input, encode_keys(keys)).unwrap();
        if self.readers.is_empty() {
            self.readers = self.ask_for_readers();
        }
        let mut answers = Vec::new();
        for reader in self.readers.clone() {
            let arguments = [
                "get",
                "--index",
                text(index),
                "--keys",
                text(&input),
                "--reader",
                &reader,
                "--to",
                text(&to),
            ];
            match self.try_run(&arguments) {
                Ok(()) => answers.push((reader, decode_answers(&take(&to)))),
                // For example, the reader for uncompressed files fails on a compressed one; the
                // general readers accept every file.
                Err(error) => {
                    assert!(reader.starts_with("UNCOMPRESSED"), "{} {reader}: {error}", self.java.display())
                }
            }
        }
        fs::remove_file(&input).unwrap();
        assert!(!answers.is_empty(), "no reader of {} opened {}", self.java.display(), index.display());
        answers
    }

    fn ask_for_readers(&self) -> Vec<String> {
        let output = Command::new(&self.java).arg("-jar").arg(&self.jar).arg("readers").output().unwrap();
        assert!(output.status.success(), "readers: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn jar_path() -> PathBuf {
    if let Some(jar) = env::var_os("CAIRN_SPARKEY_JAR") {
        return jar.into();
    }
    let cache = env::var_os("CAIRN_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache/cairn")));
    cache.unwrap_or_default().join("java/sparkey-bench.jar")
}

/// Returns every installed `java`, each once regardless of its number of names.
fn launchers() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    homes.extend(fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path()));
    let mut candidates: Vec<PathBuf> = homes.iter().map(|home| home.join("bin/java")).collect();
    let path = env::var_os("PATH").unwrap_or_default();
    candidates.extend(env::split_paths(&path).map(|folder| folder.join("java")));
    let real: BTreeSet<PathBuf> = candidates.iter().filter_map(|java| fs::canonicalize(java).ok()).collect();
    real.into_iter().collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn take(path: &Path) -> Vec<u8> {
    let content = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    content
}

fn encode_ops(ops: &[Op]) -> Vec<u8> {
    let mut out = Vec::new();
    for op in ops {
        let (kind, key, value): (u8, &[u8], &[u8]) = match op {
            Op::Put(key, value) => (0, key, value),
            Op::Delete(key) => (1, key, &[]),
        };
        out.push(kind);
        out.extend((key.len() as u32).to_le_bytes());
        out.extend((value.len() as u32).to_le_bytes());
        out.extend(key);
        out.extend(value);
    }
    out
}

fn encode_keys(keys: &[Vec<u8>]) -> Vec<u8> {
    keys.iter().flat_map(|key| [&(key.len() as u32).to_le_bytes(), key.as_slice()].concat()).collect()
}

/// Reads a file of frames: `u32` lengths, each followed by bytes.
struct Frames<'a>(&'a [u8]);

impl Frames<'_> {
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap())
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes.to_vec()
    }
}

fn decode_ops(bytes: &[u8]) -> Vec<Op> {
    let (mut frames, mut ops) = (Frames(bytes), Vec::new());
    while !frames.0.is_empty() {
        let kind = frames.bytes(1)[0];
        let (key_bytes, value_bytes) = (frames.u32() as usize, frames.u32() as usize);
        let (key, value) = (frames.bytes(key_bytes), frames.bytes(value_bytes));
        ops.push(if kind == 0 { Op::Put(key, value) } else { Op::Delete(key) });
    }
    ops
}

fn decode_answers(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let (mut frames, mut answers) = (Frames(bytes), Vec::new());
    while !frames.0.is_empty() {
        let len = frames.u32();
        answers.push((len != u32::MAX).then(|| frames.bytes(len as usize)));
    }
    answers
}

/// Describes the first difference between two files with the surrounding bytes, for a message.
pub fn difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b);
    let at = at.or_else(|| (ours.len() != theirs.len()).then_some(ours.len().min(theirs.len())))?;
    let window = at.saturating_sub(8)..at + 16;
    let mut message = format!("lengths {} and {}, first difference at {at}:", ours.len(), theirs.len());
    for (name, bytes) in [("ours", ours), ("Java's", theirs)] {
        let shown = bytes.get(window.start..window.end.min(bytes.len())).unwrap_or_default();
        let _ = write!(message, " {name} {shown:02x?}");
    }
    Some(message)
}
