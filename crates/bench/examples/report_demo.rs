//! Writes a report of made-up figures, to look at its layout: `cargo run -p cairn-bench --example report_demo -- OUT.html`.
//!
//! Nothing is measured. The figures come from a small model with noise and are labelled as synthetic on the page; the
//! shapes (who is near whom, what falls with size and threads) are chosen so that every chart has something to show,
//! losses of Cairn's included.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use cairn_bench::report::render_html;
use cairn_bench::results::{Case, Contender, Measurement, Probe, Run, SCHEMA_VERSION};
use cairn_vfs::{AtomicFile, Fs, StdFs};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: report_demo OUT.html [--compare]")?;
    let run = synthetic_run(1, 1.0);
    let earlier = std::env::args().any(|argument| argument == "--compare").then(|| synthetic_run(2, 0.86));
    let html = render_html(&run, earlier.as_ref());
    write(Path::new(&path), html.as_bytes())
}

/// An engine of the model.
struct Engine {
    name: &'static str,
    family: &'static str,
    version: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// A lookup of a present key among a million, ns.
    lookup_ns: f64,
    /// The same, when 64 keys are handed over at once.
    batch_ns: Option<f64>,
    /// How much slower for each tenfold of entries.
    growth: f64,
    /// Codecs beside none, with how many times slower they make a lookup.
    codecs: &'static [(&'static str, f64)],
    /// Throughput of two threads over that of one.
    two_threads: f64,
    /// Building, ns an entry.
    build_ns: f64,
    /// Memory while building, bytes an entry.
    build_bytes: f64,
    /// Index and overhead, bytes an entry.
    index_bytes: f64,
    /// Whether the index can be told from the data.
    index_known: bool,
    /// Opening, seconds.
    open_s: f64,
    /// A lookup with nothing cached, ns.
    cold_ns: f64,
}

const SPARKEY_CODECS: &[(&str, f64)] = &[("snappy", 6.0), ("zstd", 14.0)];

#[rustfmt::skip]
const ENGINES: &[Engine] = &[
    Engine { name: "cairn mmap", family: "cairn", version: "0.1.0", settings: &[("reader", "mmap"), ("load", "prefetch"), ("durability", "Sync")],
        lookup_ns: 118.0, batch_ns: Some(34.0), growth: 1.35, codecs: &[("zstd", 4.1)], two_threads: 1.95,
        build_ns: 210.0, build_bytes: 9.0, index_bytes: 3.9, index_known: true, open_s: 95e-6, cold_ns: 118e3 },
    Engine { name: "cairn heap", family: "cairn", version: "0.1.0", settings: &[("reader", "heap"), ("durability", "Sync")],
        lookup_ns: 109.0, batch_ns: Some(33.0), growth: 1.36, codecs: &[("zstd", 4.1)], two_threads: 1.96,
        build_ns: 211.0, build_bytes: 9.0, index_bytes: 3.9, index_known: true, open_s: 14e-3, cold_ns: 21e6 },
    Engine { name: "cairn pread", family: "cairn", version: "0.1.0", settings: &[("reader", "pread"), ("durability", "Sync")],
        lookup_ns: 640.0, batch_ns: None, growth: 1.2, codecs: &[("zstd", 2.0)], two_threads: 1.9,
        build_ns: 209.0, build_bytes: 9.0, index_bytes: 3.9, index_known: true, open_s: 88e-6, cold_ns: 109e3 },
    Engine { name: "cairn-sparkey mmap", family: "cairn-sparkey", version: "0.1.0", settings: &[("reader", "mmap"), ("hash", "64 bit"), ("durability", "Sync")],
        lookup_ns: 171.0, batch_ns: Some(61.0), growth: 1.6, codecs: SPARKEY_CODECS, two_threads: 1.94,
        build_ns: 260.0, build_bytes: 24.0, index_bytes: 20.8, index_known: true, open_s: 80e-6, cold_ns: 204e3 },
    Engine { name: "sparkey-java UNCOMPRESSED_MEMORYSEGMENT_J22", family: "sparkey-java", version: "3.2.5 on JDK 25", settings: &[("jmh", "-f 1 -wi 3 -i 5"), ("durability", "Buffered")],
        lookup_ns: 371.0, batch_ns: None, growth: 1.55, codecs: &[], two_threads: 1.9,
        build_ns: 680.0, build_bytes: 31.0, index_bytes: 20.8, index_known: true, open_s: 2.1e-3, cold_ns: 261e3 },
    Engine { name: "sparkey-java SINGLE_THREADED_MMAP_JDK8", family: "sparkey-java", version: "3.2.5 on JDK 17", settings: &[("jmh", "-f 1 -wi 3 -i 5"), ("durability", "Buffered")],
        lookup_ns: 492.0, batch_ns: None, growth: 1.55, codecs: SPARKEY_CODECS, two_threads: 1.6,
        build_ns: 690.0, build_bytes: 31.0, index_bytes: 20.8, index_known: true, open_s: 1.9e-3, cold_ns: 258e3 },
    Engine { name: "lmdb", family: "lmdb", version: "0.9.33", settings: &[("map size", "16 GiB"), ("flags", "NOTLS RDONLY"), ("durability", "Sync")],
        lookup_ns: 405.0, batch_ns: None, growth: 1.5, codecs: &[], two_threads: 1.93,
        build_ns: 420.0, build_bytes: 2.0, index_bytes: 28.0, index_known: false, open_s: 61e-6, cold_ns: 310e3 },
    Engine { name: "sqlite", family: "sqlite", version: "3.54.1", settings: &[("journal", "off for the build"), ("mmap_size", "16 GiB"), ("table", "WITHOUT ROWID"), ("durability", "Sync")],
        lookup_ns: 1910.0, batch_ns: None, growth: 1.4, codecs: &[], two_threads: 1.7,
        build_ns: 980.0, build_bytes: 4.0, index_bytes: 17.0, index_known: false, open_s: 310e-6, cold_ns: 402e3 },
    Engine { name: "redb", family: "redb", version: "4.4.0", settings: &[("cache", "1 GiB"), ("durability", "Sync")],
        lookup_ns: 720.0, batch_ns: None, growth: 1.5, codecs: &[], two_threads: 1.6,
        build_ns: 1350.0, build_bytes: 38.0, index_bytes: 41.0, index_known: false, open_s: 3.3e-3, cold_ns: 395e3 },
    Engine { name: "rocksdb", family: "rocksdb", version: "10.4.2", settings: &[("mode", "read-only"), ("filter", "ribbon 10 bits"), ("block cache", "1 GiB"), ("durability", "Sync")],
        lookup_ns: 1480.0, batch_ns: Some(890.0), growth: 1.3, codecs: &[("snappy", 1.4), ("zstd", 2.1)], two_threads: 1.85,
        build_ns: 890.0, build_bytes: 66.0, index_bytes: 6.8, index_known: false, open_s: 18e-3, cold_ns: 290e3 },
    Engine { name: "cdb", family: "cdb", version: "0.8.0", settings: &[("durability", "Buffered")],
        lookup_ns: 238.0, batch_ns: None, growth: 1.6, codecs: &[], two_threads: 1.94,
        build_ns: 165.0, build_bytes: 17.0, index_bytes: 24.0, index_known: true, open_s: 55e-6, cold_ns: 240e3 },
];

/// The whole made-up run; `speed` scales Cairn's own lookups, for a second run to compare with.
fn synthetic_run(seed: u64, speed: f64) -> Run {
    let mut noise = Noise(seed);
    let mut measurements = Vec::new();
    for entries in [100_000_u64, 1_000_000, 10_000_000] {
        for value_bytes in [6_u32, 56] {
            for engine in ENGINES {
                let codecs = std::iter::once(("none", 1.0)).chain(engine.codecs.iter().copied());
                for codec in codecs {
                    let store = Store { engine, entries, value_bytes, codec, speed };
                    store.lookups(&mut noise, &mut measurements);
                    store.costs(&mut noise, &mut measurements);
                }
            }
        }
    }
    if let Some(redb) = measurements.iter_mut().find(|m| m.contender == "redb" && m.metric == "throughput") {
        redb.verified = false;
    }
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let probe =
        |name: &str, value: f64, unit: &str| Probe { name: name.to_owned(), value, unit: unit.to_owned() };
    Run {
        schema: SCHEMA_VERSION,
        suite: "hash".to_owned(),
        started: if seed == 1 { "2026-03-02T09:41:07Z" } else { "2026-02-24T16:03:52Z" }.to_owned(),
        mode: "full".to_owned(),
        seed: 20_260_301,
        machine: vec![
            pair("cpu", "No machine: synthetic figures"),
            pair("cores", "2"),
            pair("memory", "24 GiB"),
            pair("kernel", "Linux 6.18"),
            pair("file system", "ext4"),
            pair("governor", "performance"),
            pair("commit", if seed == 1 { "0123abc" } else { "fedcba9" }),
            pair("rustc", "1.95.0"),
            pair("profile", "bench, LTO thin, one codegen unit"),
        ],
        probes: vec![
            probe("fdatasync p50", 48_300.0, "ns"),
            probe("sequential read", 1.9e9, "B/s"),
            probe("random read 4 KiB", 214e6, "B/s"),
            probe("memory latency, 1 GiB", 96.4, "ns"),
        ],
        contenders: contenders(),
        data: "SYNTHETIC FIGURES: a demonstration of the layout, nothing here was measured. A real run names its data set \
               with source and licence."
            .to_owned(),
        measurements,
    }
}

fn contenders() -> Vec<Contender> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let ran = ENGINES.iter().map(|engine| Contender {
        name: engine.name.to_owned(),
        family: engine.family.to_owned(),
        version: engine.version.to_owned(),
        ours: engine.family.starts_with("cairn"),
        settings: engine.settings.iter().map(owned).collect(),
        skipped: None,
    });
    let skipped = Contender {
        name: "sparkey-java POOLED_MMAP_JDK11".to_owned(),
        family: "sparkey-java".to_owned(),
        version: "3.2.5".to_owned(),
        ours: false,
        settings: BTreeMap::new(),
        skipped: Some("needs a JDK 11; found 17 and 25".to_owned()),
    };
    ran.chain([skipped]).collect()
}

/// One engine with one data set.
struct Store<'a> {
    engine: &'a Engine,
    entries: u64,
    value_bytes: u32,
    codec: (&'a str, f64),
    speed: f64,
}

impl Store<'_> {
    fn case(&self, operation: &str, keys: &str, threads: u32) -> Case {
        Case {
            operation: operation.to_owned(),
            dataset: "synthetic".to_owned(),
            entries: self.entries,
            value_bytes: self.value_bytes,
            compression: self.codec.0.to_owned(),
            keys: keys.to_owned(),
            distribution: if keys.is_empty() { String::new() } else { "uniform".to_owned() },
            threads,
        }
    }

    fn lookups(&self, noise: &mut Noise, out: &mut Vec<Measurement>) {
        let engine = self.engine;
        let ours = engine.family.starts_with("cairn");
        let size = engine.growth.powf((self.entries as f64 / 1e6).log10());
        let value = if self.value_bytes > 6 { 1.07 } else { 1.0 };
        let pace = if ours { self.speed } else { 1.0 };
        for (keys, share) in [("present", 1.0), ("absent", if ours { 0.52 } else { 0.81 })] {
            let single = engine.lookup_ns * size * value * self.codec.1 * share / pace;
            let batch = engine.batch_ns.map(|ns| ns * size * value * self.codec.1 * share / pace);
            for (operation, each) in [("get", Some(single)), ("get_many", batch)] {
                let Some(each) = each else { continue };
                for threads in [1_u32, 2, 8, 16, 32] {
                    // Past two cores more threads add nothing and cost a little switching.
                    let gain = if threads == 1 {
                        1.0
                    } else {
                        engine.two_threads * 0.995_f64.powi(threads as i32 - 2)
                    };
                    let case = self.case(operation, keys, threads);
                    let mut m =
                        noise.measure(engine.name, case, "throughput", "ops/s", 1e9 / each * gain, 0.02);
                    if operation == "get" && threads <= 2 {
                        let steps =
                            [("p50", 0.93), ("p90", 1.6), ("p99", 3.1), ("p99.9", 9.4), ("max", 900.0)];
                        let tail =
                            |(name, times): (&str, f64)| (name.to_owned(), each * times * noise.near(0.1));
                        m.percentiles = steps.map(tail).into_iter().collect();
                    }
                    out.push(m);
                }
            }
        }
    }

    fn costs(&self, noise: &mut Noise, out: &mut Vec<Measurement>) {
        let engine = self.engine;
        let entries = self.entries as f64;
        let name = engine.name;
        let slower = self.codec.1.sqrt();
        let case = || self.case("build", "", if engine.family == "cairn" { 2 } else { 1 });
        out.push(noise.measure(name, case(), "time", "s", engine.build_ns * entries * slower / 1e9, 0.03));
        let memory = 6e6 + engine.build_bytes * entries.min(4e6);
        out.push(noise.measure(name, case(), "peak memory", "B", memory, 0.01));

        let squeeze = if self.codec.0 == "none" { 1.0 } else { 0.71 };
        let data = (f64::from(self.value_bytes) + 10.0) * squeeze;
        let size = || self.case("size", "", 0);
        out.push(exact(name, size(), "bytes per entry", data + engine.index_bytes));
        if engine.index_known {
            out.push(exact(name, size(), "index bytes per entry", engine.index_bytes));
        }
        let read_in = if engine.name == "cairn heap" { entries / 1e6 } else { 1.0 };
        out.push(noise.measure(name, self.case("open", "", 1), "time", "s", engine.open_s * read_in, 0.06));
        let cold = self.case("cold get", "present", 1);
        out.push(noise.measure(name, cold, "latency", "ns", engine.cold_ns * slower, 0.12));
    }
}

/// Reproducible noise, for figures that look measured.
struct Noise(u64);

impl Noise {
    /// A factor within `share` of one.
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
}

fn exact(name: &str, case: Case, metric: &str, value: f64) -> Measurement {
    Measurement {
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

fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let file = AtomicFile::create(&fs, path)?;
    file.file().write_all_at(bytes, 0)?;
    Ok(file.commit()?)
}
