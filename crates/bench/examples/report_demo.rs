//! Writes a report of synthetic figures, to inspect its layout: `cargo run -p cairn-bench --example
//! report_demo -- OUT.html [--matrix] [--compare]`.
//!
//! Nothing is measured. The figures come from a small model with noise, and the page labels them as
//! synthetic. Their shapes (which engines are close, how figures fall with size and threads) are
//! chosen so that every chart has content, including cases that Cairn loses. The cases are those of
//! a quick run, or with `--matrix` those of a full one.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use cairn_bench::core::results::{Case, Contender, Measurement, Probe, Run, SCHEMA_VERSION};
use cairn_bench::report::render_html;
use cairn_vfs::{AtomicFile, Fs, StdFs};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: report_demo OUT.html [--matrix] [--compare]")?;
    let asked = |flag: &str| std::env::args().any(|argument| argument == flag);
    let run = synthetic_run(1, 1.0, asked("--matrix"));
    let earlier = asked("--compare").then(|| synthetic_run(2, 0.86, asked("--matrix")));
    let html = render_html(&run, earlier.as_ref());

    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let file = AtomicFile::create(&fs, Path::new(&path))?;
    file.file().write_all_at(html.as_bytes(), 0)?;
    Ok(file.commit()?)
}

/// An engine of the model.
struct Engine {
    /// Name of the contender that builds the store, and of the engine family.
    name: &'static str,
    version: &'static str,
    durability: &'static str,
    /// The read paths of the engine.
    readers: &'static [Reader],
    /// Factor by which lookups slow down for each tenfold increase of entries.
    growth: f64,
    /// Codecs in addition to none, each with the factor by which it slows down a lookup.
    codecs: &'static [(&'static str, f64)],
    /// Cost of a build in ns per entry, and its memory in bytes per entry where that is known.
    build_ns: f64,
    build_bytes: Option<f64>,
    /// Size of index and overhead in bytes per entry, and whether the index can be measured
    /// separately from the data.
    index_bytes: f64,
    index_known: bool,
}

/// One read path of an engine.
struct Reader {
    /// Suffix after the engine's name; empty if the engine has only one read path.
    way: &'static str,
    /// Cost of a lookup of a present key in a store of a million entries, in ns; and the cost per
    /// key in a batch of 64 keys.
    lookup_ns: f64,
    batch_ns: Option<f64>,
    /// Throughput of two threads relative to one.
    two_threads: f64,
    /// Seconds to open the store, and ns of a lookup with a cold cache; `None` for readers in
    /// another process.
    cold: Option<(f64, f64)>,
}

const fn reader(
    way: &'static str,
    lookup_ns: f64,
    batch_ns: Option<f64>,
    two_threads: f64,
    cold: Option<(f64, f64)>,
) -> Reader {
    Reader { way, lookup_ns, batch_ns, two_threads, cold }
}

const SPARKEY_CODECS: &[(&str, f64)] = &[("snappy", 6.0), ("zstd", 14.0)];

#[rustfmt::skip]
const ENGINES: &[Engine] = &[
    Engine { name: "cairn", version: "0.1.0", durability: "sync", growth: 1.35, codecs: &[("zstd", 4.1)],
        build_ns: 210.0, build_bytes: Some(9.0), index_bytes: 3.9, index_known: true, readers: &[
        reader(" mmap", 118.0, Some(34.0), 1.95, Some((95e-6, 118e3))),
        reader(" heap", 109.0, Some(33.0), 1.96, Some((14e-3, 240.0))),
        reader(" pread", 640.0, None, 1.9, Some((88e-6, 109e3)))] },
    Engine { name: "cairn-sparkey", version: "0.1.0", durability: "sync", growth: 1.6, codecs: SPARKEY_CODECS,
        build_ns: 260.0, build_bytes: Some(24.0), index_bytes: 20.8, index_known: true, readers: &[
        reader(" mmap", 171.0, Some(61.0), 1.94, Some((80e-6, 204e3)))] },
    Engine { name: "lmdb", version: "0.9.33", durability: "sync", growth: 1.5, codecs: &[],
        build_ns: 420.0, build_bytes: None, index_bytes: 28.0, index_known: false, readers: &[
        reader("", 405.0, None, 1.93, Some((61e-6, 310e3)))] },
    Engine { name: "sqlite", version: "3.54.1", durability: "sync", growth: 1.4, codecs: &[],
        build_ns: 980.0, build_bytes: None, index_bytes: 17.0, index_known: false, readers: &[
        reader("", 1910.0, None, 1.7, Some((310e-6, 402e3)))] },
    Engine { name: "redb", version: "4.4.0", durability: "sync", growth: 1.5, codecs: &[],
        build_ns: 1350.0, build_bytes: None, index_bytes: 41.0, index_known: false, readers: &[
        reader("", 720.0, None, 1.6, Some((3.3e-3, 395e3)))] },
    Engine { name: "rocksdb", version: "10.4.2", durability: "sync", growth: 1.3, codecs: &[("snappy", 1.4), ("zstd", 2.1)],
        build_ns: 890.0, build_bytes: None, index_bytes: 6.8, index_known: true, readers: &[
        reader(" block cache", 1480.0, Some(890.0), 1.85, Some((18e-3, 290e3))),
        reader(" mmap", 1210.0, Some(770.0), 1.8, Some((19e-3, 300e3)))] },
    Engine { name: "cdb", version: "0.8.0", durability: "buffered", growth: 1.6, codecs: &[],
        build_ns: 165.0, build_bytes: None, index_bytes: 24.0, index_known: true, readers: &[
        reader("", 238.0, None, 1.94, Some((55e-6, 240e3)))] },
    Engine { name: "sparkey-java", version: "3.2.5", durability: "buffered", growth: 1.55, codecs: SPARKEY_CODECS,
        build_ns: 680.0, build_bytes: Some(310.0), index_bytes: 20.8, index_known: true, readers: &[
        reader(" UNCOMPRESSED_MEMORYSEGMENT_J22 bytes (JDK 25)", 371.0, None, 1.9, None),
        reader(" UNCOMPRESSED_MEMORYSEGMENT_J22 string (JDK 25)", 455.0, None, 1.9, None),
        reader(" SINGLE_THREADED_MEMORYSEGMENT_J22 bytes (JDK 25)", 402.0, None, 1.8, None),
        reader(" SINGLE_THREADED_MEMORYSEGMENT_J22 string (JDK 25)", 488.0, None, 1.8, None),
        reader(" POOLED_MEMORYSEGMENT_J22 bytes (JDK 25)", 431.0, None, 1.5, None),
        reader(" SINGLE_THREADED_MMAP_JDK8 bytes (JDK 17)", 492.0, None, 1.6, None),
        reader(" SINGLE_THREADED_MMAP_JDK8 bytes (JDK 25)", 470.0, None, 1.6, None),
        reader(" POOLED_MMAP_JDK8 bytes (JDK 17)", 533.0, None, 1.4, None),
        reader(" POOLED_MMAP_JDK8 bytes (JDK 25)", 512.0, None, 1.4, None)] },
];

impl Engine {
    fn ours(&self) -> bool {
        self.name.starts_with("cairn")
    }

    fn builder(&self) -> &'static str {
        if self.name == "sparkey-java" { "sparkey-java in-memory build" } else { self.name }
    }

    fn contender(&self, name: &str, settings: &[(&str, &str)]) -> Contender {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Contender {
            name: name.to_owned(),
            family: self.name.to_owned(),
            version: self.version.to_owned(),
            ours: self.ours(),
            settings: settings.iter().map(owned).collect(),
            skipped: None,
        }
    }
}

/// Builds the whole synthetic run. `speed` scales Cairn's own lookups, so that a second run differs
/// from the first.
fn synthetic_run(seed: u64, speed: f64, matrix: bool) -> Run {
    let mut noise = Noise(seed);
    let mut measurements = Vec::new();
    for store in if matrix { matrix_stores() } else { quick_stores() } {
        for engine in ENGINES {
            let codecs = || std::iter::once(&("none", 1.0)).chain(engine.codecs);
            if let Some((_, slower)) = codecs().find(|(name, _)| *name == store.compression) {
                let made_up = MadeUp { engine, store, slower: *slower, speed };
                made_up.costs(&mut noise, &mut measurements);
                engine.readers.iter().for_each(|reader| made_up.read(reader, &mut noise, &mut measurements));
            }
        }
    }
    if let Some(redb) = measurements.iter_mut().find(|m| m.contender == "redb" && m.metric == "throughput") {
        redb.verified = false;
    }
    Run {
        settings: BTreeMap::new(),
        stopped: false,
        schema: SCHEMA_VERSION,
        suite: "hash".to_owned(),
        started: if seed == 1 { "2026-03-02T09:41:07Z" } else { "2026-02-24T16:03:52Z" }.to_owned(),
        mode: if matrix { "full" } else { "quick" }.to_owned(),
        seed: 20_260_301,
        machine: machine(seed),
        probes: probes(),
        contenders: contenders(),
        data: "SYNTHETIC FIGURES: a demonstration of the layout, nothing here was measured. A real run names its data set \
               with source and licence."
            .to_owned(),
        measurements,
    }
}

fn machine(seed: u64) -> Vec<(String, String)> {
    let commit = if seed == 1 { "0123abc" } else { "fedcba9" };
    let fields = [
        ("cpu", "No machine: synthetic figures"),
        ("cores", "2"),
        ("memory", "24.0 GiB"),
        ("kernel", "6.18"),
        ("file system", "ext4 on a made-up disk"),
        ("governor", "none visible"),
        ("load before the run", "0.10 0.20 0.30"),
        ("commit", commit),
        ("rustc", "1.95.0"),
        ("profile", "opt-level 3"),
    ];
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn probes() -> Vec<Probe> {
    let probe = |(name, value, unit): (&str, f64, &str)| Probe {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
    };
    let probes = [
        ("fdatasync p50", 0.048, "ms"),
        ("sequential read 1 MiB", 1_913.4, "MB/s"),
        ("random read 4 KiB", 52_300.0, "reads/s"),
        ("memory latency 1024 MiB", 96.4, "ns"),
        ("load generation, synthetic, 1000000 entries, 6 B values, none", 4.1, "ns"),
    ];
    probes.map(probe).to_vec()
}

fn contenders() -> Vec<Contender> {
    let mut out = Vec::new();
    for engine in ENGINES {
        let durability = ("build: durability", engine.durability);
        if engine.readers.iter().all(|reader| !reader.way.is_empty()) {
            out.push(engine.contender(engine.builder(), &[durability]));
        }
        for Reader { way, .. } in engine.readers {
            let mode = ("mode", if way.is_empty() { "read-only" } else { way.trim() });
            out.push(engine.contender(&format!("{}{way}", engine.name), &[durability, mode]));
        }
    }
    let java = ENGINES.iter().find(|engine| engine.name == "sparkey-java");
    out.extend(java.map(|java| Contender {
        skipped: Some("needs a JDK 11; found 17 and 25".to_owned()),
        ..java.contender("sparkey-java POOLED_MMAP_JDK11", &[])
    }));
    out
}

/// A data set in one compression, with the cases to measure on it.
#[derive(Clone, Copy)]
struct Store {
    dataset: &'static str,
    entries: u64,
    value_bytes: u32,
    compression: &'static str,
    threads: &'static [u32],
    absent: bool,
    thorough: bool,
}

fn quick_stores() -> Vec<Store> {
    let words = Store {
        dataset: "words",
        entries: 104_334,
        value_bytes: 21,
        compression: "none",
        threads: &[1, 2],
        absent: true,
        thorough: true,
    };
    let synthetic =
        Store { dataset: "synthetic", entries: 1_000_000, value_bytes: 6, thorough: false, ..words };
    let short = Store { threads: &[1], absent: false, thorough: false, ..words };
    vec![
        words,
        synthetic,
        Store { dataset: "synthetic", entries: 1_000_000, value_bytes: 56, ..short },
        Store { compression: "snappy", ..short },
        Store { compression: "zstd", ..short },
    ]
}

fn matrix_stores() -> Vec<Store> {
    let mut out = Vec::new();
    for entries in [100_000, 1_000_000, 10_000_000] {
        for value_bytes in [6, 56] {
            for compression in ["none", "snappy", "zstd"] {
                let threads = &[1, 2, 8, 16, 32];
                let dataset = "synthetic";
                out.push(Store {
                    dataset,
                    entries,
                    value_bytes,
                    compression,
                    threads,
                    absent: true,
                    thorough: true,
                });
            }
        }
    }
    out
}

/// One engine with one store.
struct MadeUp<'a> {
    engine: &'a Engine,
    store: Store,
    slower: f64,
    speed: f64,
}

impl MadeUp<'_> {
    fn case(&self, operation: &str, keys: &str, threads: u32) -> Case {
        Case {
            operation: operation.to_owned(),
            dataset: self.store.dataset.to_owned(),
            entries: self.store.entries,
            value_bytes: self.store.value_bytes,
            compression: self.store.compression.to_owned(),
            keys: keys.to_owned(),
            distribution: if keys.is_empty() { String::new() } else { "uniform".to_owned() },
            threads,
        }
    }

    fn read(&self, reader: &Reader, noise: &mut Noise, out: &mut Vec<Measurement>) {
        let name = format!("{}{}", self.engine.name, reader.way);
        let ours = self.engine.ours();
        let size = self.engine.growth.powf((self.store.entries as f64 / 1e6).log10());
        let pace = size * self.slower / if ours { self.speed } else { 1.0 };
        let kinds: &[(&str, f64)] = if self.store.absent {
            &[("present", 1.0), ("absent", if ours { 0.52 } else { 0.81 })]
        } else {
            &[("present", 1.0)]
        };
        for (keys, share) in kinds {
            for (operation, each) in [("get", Some(reader.lookup_ns)), ("get_many", reader.batch_ns)] {
                let Some(each) = each.map(|ns| ns * pace * share) else { continue };
                for threads in self.store.threads {
                    // Beyond two cores, more threads add nothing and cost a little for switching.
                    let gain = if *threads == 1 {
                        1.0
                    } else {
                        reader.two_threads * 0.995_f64.powi(*threads as i32 - 2)
                    };
                    let case = self.case(operation, keys, *threads);
                    out.push(noise.measure(&name, case, "throughput", "ops/s", 1e9 / each * gain, 0.02));
                }
            }
        }
        if self.store.absent {
            let mean = reader.lookup_ns * pace * 1.1;
            let mut timed = noise.measure(&name, self.case("get", "present", 1), "latency", "ns", mean, 0.02);
            timed.percentiles = noise.tail(mean);
            out.push(timed);
        }
        if let Some((open, cold)) = reader.cold.filter(|_| self.store.thorough) {
            out.push(noise.measure(&name, self.case("open", "", 0), "time", "s", open, 0.06));
            out.push(noise.measure(&name, self.case("cold open", "", 0), "time", "s", open * 9.0, 0.06));
            // Data on the heap is never cold.
            if reader.way == " heap" {
                return;
            }
            let mut get =
                noise.measure(&name, self.case("cold get", "present", 1), "mean latency", "ns", cold, 0.12);
            get.percentiles = noise.tail(cold);
            out.push(get);
        }
    }

    fn costs(&self, noise: &mut Noise, out: &mut Vec<Measurement>) {
        let (engine, entries) = (self.engine, self.store.entries as f64);
        let name = engine.builder();
        if self.store.thorough {
            let seconds = engine.build_ns * entries * self.slower.sqrt() / 1e9;
            out.push(noise.measure(name, self.case("build", "", 0), "time", "s", seconds, 0.03));
            if let Some(each) = engine.build_bytes {
                let memory = 6e6 + each * entries.min(4e6);
                out.push(noise.measure(name, self.case("build", "", 0), "peak memory", "B", memory, 0.01));
            }
        }
        let squeeze = if self.store.compression == "none" { 1.0 } else { 0.71 };
        let data = (f64::from(self.store.value_bytes) + 10.0) * squeeze;
        out.push(exact(name, self.case("size", "", 0), "bytes per entry", data + engine.index_bytes));
        if engine.index_known {
            out.push(exact(name, self.case("size", "", 0), "index bytes per entry", engine.index_bytes));
        }
    }
}

/// Reproducible noise, so that figures look measured.
struct Noise(u64);

impl Noise {
    /// Returns a random factor between `1 - share` and `1 + share`.
    fn near(&mut self, share: f64) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (self.0 >> 33) as f64 / f64::from(u32::MAX >> 1);
        1.0 + share * (2.0 * unit - 1.0)
    }

    fn measure(
        &mut self,
        name: &str,
        case: Case,
        metric: &str,
        unit: &str,
        value: f64,
        share: f64,
    ) -> Measurement {
        let samples: Vec<f64> = (0..7).map(|_| value * self.near(share) * self.near(share)).collect();
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        Measurement {
            samples,
            median: sorted[3],
            low: sorted[1],
            high: sorted[5],
            higher_is_better: unit == "ops/s",
            unit: unit.to_owned(),
            ..exact(name, case, metric, value)
        }
    }

    fn tail(&mut self, mean: f64) -> BTreeMap<String, f64> {
        let steps = [("p50", 0.83), ("p90", 1.5), ("p99", 2.9), ("p99.9", 8.8), ("max", 850.0)];
        steps.map(|(name, times)| (name.to_owned(), mean * times * self.near(0.1))).into_iter().collect()
    }
}

fn exact(name: &str, case: Case, metric: &str, value: f64) -> Measurement {
    Measurement {
        one_turn: false,
        contender: name.to_owned(),
        case,
        metric: metric.to_owned(),
        unit: "B".to_owned(),
        higher_is_better: false,
        samples: vec![value],
        median: value,
        low: value,
        high: value,
        percentiles: BTreeMap::new(),
        verified: true,
    }
}
