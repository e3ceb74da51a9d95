//! The validated cases: settings and workloads that differ from a base case, mostly in one setting.

use cairn_sim::config::Reads;
use cairn_sim::options::{CompactionPri, CompactionStyle, Compression, Options};
use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Distribution, Mode, Preload, Workload};

use super::held_out::add_held_out;

pub(super) const MIB: u64 = 1 << 20;

/// A configuration to run on a real store and in the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// The case from which it differs in one setting.
    pub base: Option<String>,
    /// Timed if true, otherwise paced.
    pub is_timed: bool,
    /// True if no rule of the model was developed with this case.
    pub is_held_out: bool,
    /// The configuration.
    pub config: Config,
}

/// The base case: uniform overwrites of 1 KB values in a static leveled tree without compression.
/// It has the shape of RocksDB's defaults, with all sizes divided by forty.
fn base(quick: bool) -> Config {
    let keys = if quick { 60_000 } else { 200_000 };
    let unit = if quick { MIB / 2 } else { 8 * MIB / 5 };
    Config {
        mode: Mode::Paced,
        preload: Preload::Random,
        sample: 1,
        writes: 2 * keys,
        writes_per_flush: keys * 3 / 400,
        workload: Workload { keys, traffic: Traffic::Unlimited, ..Workload::default() },
        options: Options {
            compression: Compression::None,
            write_buffer_size: unit,
            target_file_size_base: unit,
            max_bytes_for_level_base: 4 * unit,
            max_write_buffer_number: 4,
            max_background_jobs: 2,
            ..Options::default()
        },
        ..Config::default()
    }
}

pub(super) const BASE: &str = "leveled uniform";

/// The cases so far.
pub(super) struct List {
    quick: bool,
    cases: Vec<Case>,
}

impl List {
    /// Adds a case that differs from another one by the effect of `change`.
    pub(super) fn add(&mut self, name: &str, from: Option<&str>, change: impl FnOnce(&mut Config)) {
        let known = from.and_then(|from| self.cases.iter().find(|case| case.name == from));
        let mut config = known.map_or_else(|| base(self.quick), |case| case.config.clone());
        change(&mut config);
        config.name = name.to_owned();
        let base = from.map(str::to_owned);
        self.cases.push(Case { name: name.to_owned(), base, is_timed: false, is_held_out: false, config });
    }
}

/// Returns the paced cases of both engines that were used to check the model's rules while they
/// were developed.
pub fn cases(quick: bool) -> Vec<Case> {
    usual(quick).cases
}

/// Returns the paced cases of both engines with which no rule of the model was developed. Their
/// base cases are among [`cases`].
pub fn held_out_cases(quick: bool) -> Vec<Case> {
    let mut list = usual(quick);
    let usual = list.cases.len();
    add_held_out(&mut list);
    let mut cases = list.cases.split_off(usual);
    cases.iter_mut().for_each(|case| case.is_held_out = true);
    cases
}

fn usual(quick: bool) -> List {
    let mut list = List { quick, cases: Vec::new() };
    add_styles(&mut list);
    add_keys(&mut list);
    add_sizes(&mut list);
    add_reads(&mut list);
    add_cairn(&mut list);
    list
}

fn add_styles(list: &mut List) {
    list.add(BASE, None, |_| {});
    list.add("leveled dynamic", Some(BASE), |it| it.options.level_compaction_dynamic_level_bytes = true);
    list.add("universal", Some(BASE), |it| it.options.compaction_style = CompactionStyle::Universal);
    list.add("fifo", Some(BASE), |it| {
        it.options.compaction_style = CompactionStyle::Fifo;
        it.options.compaction_options_fifo.max_table_files_size = it.workload.keys * 700;
    });
    let of = |codec| move |it: &mut Config| it.options.compression = codec;
    list.add("snappy", Some(BASE), of(Compression::Snappy));
    list.add("lz4", Some(BASE), of(Compression::Lz4));
    list.add("zstd", Some(BASE), of(Compression::Zstd));
    list.add("universal zstd", Some("universal"), of(Compression::Zstd));
    list.add("dynamic zstd below", Some("leveled dynamic"), |it| {
        it.options.compression_per_level = vec![Compression::None, Compression::None, Compression::Zstd];
        it.options.bottommost_compression = Some(Compression::Zstd);
    });
}

fn add_keys(list: &mut List) {
    let of = |kind: Distribution| move |it: &mut Config| it.workload.distribution = kind;
    let zipf = || Distribution::Zipfian { theta: 0.99 };
    list.add("zipfian", Some(BASE), of(zipf()));
    list.add("hot set", Some(BASE), of(Distribution::HotSet { keys: 0.1, writes: 0.9 }));
    list.add("sequential", Some(BASE), of(Distribution::Sequential));
    list.add("latest", Some(BASE), of(Distribution::Latest { theta: 0.99, inserts: 0.05 }));
    list.add("time series", Some(BASE), of(Distribution::TimeSeries { series: 20 }));
    list.add("dynamic zipfian", Some("leveled dynamic"), of(zipf()));
    list.add("dynamic sequential", Some("leveled dynamic"), of(Distribution::Sequential));
    list.add("universal zipfian", Some("universal"), of(zipf()));
    list.add("universal hot set", Some("universal"), of(Distribution::HotSet { keys: 0.1, writes: 0.9 }));
    list.add("universal sequential", Some("universal"), of(Distribution::Sequential));
    list.add("deletes", Some(BASE), |it| it.workload.deletes = 0.2);
    list.add("dynamic deletes", Some("leveled dynamic"), |it| it.workload.deletes = 0.4);
    list.add("universal deletes", Some("universal"), |it| it.workload.deletes = 0.2);
}

fn add_sizes(list: &mut List) {
    list.add("small values", Some(BASE), |it| {
        it.workload.value_bytes = 100;
        it.workload.keys *= 6;
        it.writes = 2 * it.workload.keys;
        it.writes_per_flush *= 8;
    });
    let multiplier = |by: f64| move |it: &mut Config| it.options.max_bytes_for_level_multiplier = by;
    list.add("multiplier 4", Some(BASE), multiplier(4.0));
    list.add("multiplier 8", Some(BASE), multiplier(8.0));
    list.add("dynamic multiplier 4", Some("leveled dynamic"), multiplier(4.0));
    list.add("small memtables", Some(BASE), |it| it.writes_per_flush /= 3);
    list.add("large memtables", Some(BASE), |it| it.writes_per_flush *= 4);
    list.add("trigger 8", Some(BASE), |it| it.options.level0_file_num_compaction_trigger = 8);
    list.add("large files", Some(BASE), |it| it.options.target_file_size_base *= 4);
    list.add("small base", Some(BASE), |it| it.options.max_bytes_for_level_base /= 2);
    let priority = |pri: CompactionPri| move |it: &mut Config| it.options.compaction_pri = pri;
    list.add("oldest first", Some(BASE), priority(CompactionPri::OldestSmallestSeqFirst));
    list.add("coldest first", Some(BASE), priority(CompactionPri::OldestLargestSeqFirst));
    list.add("largest first", Some(BASE), priority(CompactionPri::ByCompensatedSize));
    list.add("round robin", Some(BASE), priority(CompactionPri::RoundRobin));
    list.add("universal ratio 50", Some("universal"), |it| {
        it.options.compaction_options_universal.size_ratio = 50;
    });
    list.add("universal trigger 8", Some("universal"), |it| {
        it.options.level0_file_num_compaction_trigger = 8;
    });
}

/// Returns a change that adds lookups at some moments of a shorter run, with a cache of this many
/// bytes.
fn reads(cache: u64) -> impl Fn(&mut Config) {
    move |it: &mut Config| {
        it.options.block_cache_size = cache;
        it.workload.reads = Reads { gets_per_sec: 1.0, ..Reads::default() };
        it.writes = it.workload.keys;
    }
}

fn add_reads(list: &mut List) {
    list.add("reads uniform 8 MiB", None, reads(8 * MIB));
    list.add("reads uniform 32 MiB", Some("reads uniform 8 MiB"), reads(32 * MIB));
    list.add("reads zipfian 2 MiB", None, |it| {
        it.workload.distribution = Distribution::Zipfian { theta: 0.99 };
        reads(2 * MIB)(it);
    });
    list.add("reads zipfian 8 MiB", Some("reads zipfian 2 MiB"), reads(8 * MIB));
    list.add("reads zipfian 32 MiB", Some("reads zipfian 2 MiB"), reads(32 * MIB));
    list.add("reads hot set 8 MiB", None, |it| {
        it.workload.distribution = Distribution::HotSet { keys: 0.1, writes: 0.9 };
        reads(8 * MIB)(it);
    });
    list.add("reads no filter", Some("reads uniform 8 MiB"), |it| it.options.bloom_bits_per_key = 0.0);
}

/// Switches to Cairn's own options, and keeps the sizes of the case.
pub(super) fn cairn(it: &mut Config) {
    let base = it.options.clone();
    it.options = Options {
        write_buffer_size: base.write_buffer_size,
        target_file_size_base: base.target_file_size_base,
        max_bytes_for_level_base: base.max_bytes_for_level_base,
        max_background_jobs: base.max_background_jobs,
        compression: Compression::None,
        compression_per_level: Vec::new(),
        max_subcompactions: 4,
        wal: base.wal,
        ..Options::cairn_kv()
    };
    it.options.kv.level_zero_bytes = 16 * base.write_buffer_size;
}

fn add_cairn(list: &mut List) {
    list.add("kv leveled", None, cairn);
    list.add("kv lazy leveled", Some("kv leveled"), |it| {
        it.options.compaction_style = CompactionStyle::LazyLeveled;
    });
    list.add("kv universal", Some("kv leveled"), |it| {
        it.options.compaction_style = CompactionStyle::Universal;
    });
    list.add("kv zipfian", Some("kv leveled"), |it| {
        it.workload.distribution = Distribution::Zipfian { theta: 0.99 };
    });
    list.add("kv sequential", Some("kv leveled"), |it| it.workload.distribution = Distribution::Sequential);
    list.add("kv deletes", Some("kv leveled"), |it| it.workload.deletes = 0.2);
    list.add("kv lz4", Some("kv leveled"), |it| it.options.compression = Compression::Lz4);
    list.add("kv lazy zipfian", Some("kv lazy leveled"), |it| {
        it.workload.distribution = Distribution::Zipfian { theta: 0.99 };
    });
    add_cairn_reads(list);
}

fn add_cairn_reads(list: &mut List) {
    list.add("kv reads uniform 8 MiB", None, |it| {
        cairn(it);
        reads(8 * MIB)(it);
    });
    list.add("kv reads uniform 32 MiB", Some("kv reads uniform 8 MiB"), reads(32 * MIB));
    list.add("kv reads zipfian 2 MiB", None, |it| {
        cairn(it);
        it.workload.distribution = Distribution::Zipfian { theta: 0.99 };
        reads(2 * MIB)(it);
    });
    list.add("kv reads zipfian 8 MiB", Some("kv reads zipfian 2 MiB"), reads(8 * MIB));
    list.add("kv reads zipfian 32 MiB", Some("kv reads zipfian 2 MiB"), reads(32 * MIB));
    list.add("kv reads hot set 8 MiB", None, |it| {
        cairn(it);
        it.workload.distribution = Distribution::HotSet { keys: 0.1, writes: 0.9 };
        reads(8 * MIB)(it);
    });
    list.add("kv reads lazy 8 MiB", Some("kv reads uniform 8 MiB"), |it| {
        it.options.compaction_style = CompactionStyle::LazyLeveled;
    });
    list.add("kv reads no filter", Some("kv reads uniform 8 MiB"), |it| it.options.bloom_bits_per_key = 0.0);
}

/// Returns the timed cases: closed loops, and a limited rate that the store can sustain.
pub fn timed_cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, change: &dyn Fn(&mut Config)| {
        let mut config = base(quick);
        config.mode = Mode::Timed;
        config.writes = 0;
        config.duration_secs = if quick { 5.0 } else { 15.0 };
        let unit = 4 * MIB;
        config.options.write_buffer_size = unit;
        config.options.target_file_size_base = unit;
        config.options.max_bytes_for_level_base = 4 * unit;
        config.options.wal = false;
        // The preload flushes memtables before they are full, both in the model and in the store.
        config.writes_per_flush = unit * 4 / 5 / config.entry_bytes();
        config.name = name.to_owned();
        change(&mut config);
        cases.push(Case { name: name.to_owned(), base: None, is_timed: true, is_held_out: false, config });
    };
    add("timed leveled at 8 MB/s", &|it| it.workload.traffic = Traffic::Constant { mb_per_sec: 8.0 });
    add("timed leveled unlimited", &|_| {});
    add("timed dynamic unlimited", &|it| it.options.level_compaction_dynamic_level_bytes = true);
    add("timed universal unlimited", &|it| it.options.compaction_style = CompactionStyle::Universal);
    add("timed kv leveled at 8 MB/s", &|it| {
        cairn(it);
        it.workload.traffic = Traffic::Constant { mb_per_sec: 8.0 };
    });
    add("timed kv leveled unlimited", &cairn);
    add("timed kv lazy unlimited", &|it| {
        cairn(it);
        it.options.compaction_style = CompactionStyle::LazyLeveled;
    });
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the list is sound: enough cases, valid, with unique names, each with an existing base
    /// case.
    /// Method: both sizes.
    #[test]
    fn cases_are_sound() {
        for quick in [true, false] {
            let cases = cases(quick);
            assert!(cases.len() >= 16);
            for (at, case) in cases.iter().enumerate() {
                case.config.check().unwrap();
                assert_eq!(case.config.sampling(), 1);
                assert!(cases.iter().take(at).all(|other| other.name != case.name), "{}", case.name);
                if let Some(base) = &case.base {
                    assert!(cases.iter().take(at).any(|other| other.name == *base), "{base}");
                }
            }
            timed_cases(quick).iter().for_each(|case| case.config.check().unwrap());
        }
    }

    /// Goal: held-out cases are valid, with unique names and existing base cases, and differ from
    /// all cases with which the model was developed. Method: both sizes; configurations without
    /// their names, each compared with all others.
    #[test]
    fn held_out_cases_are_others() {
        let unnamed = |case: &Case| Config { name: String::new(), ..case.config.clone() };
        for quick in [true, false] {
            let (usual, held_out) = (cases(quick), held_out_cases(quick));
            assert!(held_out.len() >= 100, "{}", held_out.len());
            assert!(held_out.iter().all(|case| case.is_held_out && !case.is_timed));
            assert!(usual.iter().chain(&timed_cases(quick)).all(|case| !case.is_held_out));
            let configs: Vec<Config> = usual.iter().chain(&held_out).map(unnamed).collect();
            for (at, case) in held_out.iter().enumerate() {
                case.config.check().unwrap();
                assert_eq!(case.config.sampling(), 1);
                let before = || usual.iter().chain(&held_out[..at]);
                assert!(before().all(|other| other.name != case.name), "{}", case.name);
                let equal = configs[..usual.len() + at].iter().position(|other| *other == unnamed(case));
                assert_eq!(
                    equal.and_then(|at| before().nth(at)).map(|other| &other.name),
                    None,
                    "{}",
                    case.name
                );
                if let Some(base) = &case.base {
                    assert!(usual.iter().any(|other| other.name == *base), "{base}");
                }
            }
        }
    }
}
