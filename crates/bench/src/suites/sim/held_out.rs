//! Cases with which no rule of the model was developed: their sizes, ratios, triggers and
//! distributions differ from those of [`super::cases`].

use std::sync::Arc;

use cairn_sim::config::Reads;
use cairn_sim::options::{CompactionPri, CompactionStyle, Compression};
use cairn_sim::{Config, Distribution, Preload};

use super::cases::{BASE, List, MIB, cairn};

fn zipf(theta: f64) -> Distribution {
    Distribution::Zipfian { theta }
}

/// Changes the length of values, and scales the numbers of keys and writes so that their bytes stay
/// the same.
fn values(it: &mut Config, bytes: u64) {
    let before = it.entry_bytes();
    it.workload.value_bytes = bytes;
    let after = it.entry_bytes();
    let scaled = |count: u64| count * before / after;
    it.workload.keys = scaled(it.workload.keys);
    it.writes = scaled(it.writes);
    it.writes_per_flush = scaled(it.writes_per_flush);
}

fn universal(it: &mut Config) {
    it.options.compaction_style = CompactionStyle::Universal;
}

fn dynamic(it: &mut Config) {
    it.options.level_compaction_dynamic_level_bytes = true;
}

fn reads(it: &mut Config, cache: u64, bits: f64) {
    it.options.block_cache_size = cache;
    it.options.bloom_bits_per_key = bits;
    it.workload.reads = Reads { gets_per_sec: 1.0, ..Reads::default() };
    it.writes = it.workload.keys;
}

/// Adds all held-out cases.
pub(super) fn add_held_out(list: &mut List) {
    shapes(list);
    keys(list);
    universals(list);
    codecs(list);
    reading(list);
    of_cairn(list);
}

fn shapes(list: &mut List) {
    let base = Some(BASE);
    list.add("held multiplier 5, base 3x", base, |it| {
        it.options.max_bytes_for_level_multiplier = 5.0;
        it.options.max_bytes_for_level_base = it.options.max_bytes_for_level_base / 4 * 3;
    });
    list.add("held multiplier 6 dynamic", Some("leveled dynamic"), |it| {
        it.options.max_bytes_for_level_multiplier = 6.0;
    });
    list.add("held multiplier 12", base, |it| it.options.max_bytes_for_level_multiplier = 12.0);
    list.add("held multiplier 3", base, |it| it.options.max_bytes_for_level_multiplier = 3.0);
    list.add("held dynamic multiplier 12, base 7x", Some("leveled dynamic"), |it| {
        it.options.max_bytes_for_level_multiplier = 12.0;
        it.options.max_bytes_for_level_base = it.options.max_bytes_for_level_base / 4 * 7;
    });
    list.add("held base 10x", base, |it| {
        it.options.max_bytes_for_level_base = it.options.max_bytes_for_level_base / 4 * 10
    });
    list.add("held base 1x", base, |it| it.options.max_bytes_for_level_base /= 4);
    list.add("held memtable 5/3, files 2/3", base, |it| {
        it.writes_per_flush = it.writes_per_flush * 5 / 3;
        it.options.target_file_size_base = it.options.target_file_size_base * 2 / 3;
    });
    list.add("held files x2 a level", base, |it| it.options.target_file_size_multiplier = 2);
    list.add("held dynamic files x2 a level", Some("leveled dynamic"), |it| {
        it.options.target_file_size_multiplier = 2;
    });
    list.add("held small files", base, |it| it.options.target_file_size_base /= 4);
    list.add("held fixed file sizes", base, |it| it.options.level_compaction_dynamic_file_size = false);
    list.add("held tight max_compaction_bytes", base, |it| {
        it.options.max_compaction_bytes = 6 * it.options.target_file_size_base;
    });
    let trigger = |count: usize| move |it: &mut Config| it.options.level0_file_num_compaction_trigger = count;
    list.add("held trigger 2", base, trigger(2));
    list.add("held trigger 1", base, trigger(1));
    list.add("held dynamic trigger 2", Some("leveled dynamic"), trigger(2));
    list.add("held dynamic trigger 8", Some("leveled dynamic"), trigger(8));
    let levels = |count: usize| move |it: &mut Config| it.options.num_levels = count;
    list.add("held 4 levels", base, levels(4));
    list.add("held 3 levels", base, levels(3));
    list.add("held dynamic 4 levels", Some("leveled dynamic"), levels(4));
    list.add("held dynamic 5 levels, multiplier 5", Some("leveled dynamic"), |it| {
        it.options.num_levels = 5;
        it.options.max_bytes_for_level_multiplier = 5.0;
    });
    list.add("held dynamic base 13x", Some("leveled dynamic"), |it| {
        it.options.max_bytes_for_level_base = it.options.max_bytes_for_level_base * 13 / 4;
    });
    list.add("held dynamic base 2x", Some("leveled dynamic"), |it| it.options.max_bytes_for_level_base /= 2);
    let priority = |pri: CompactionPri| move |it: &mut Config| it.options.compaction_pri = pri;
    list.add(
        "held dynamic oldest first",
        Some("leveled dynamic"),
        priority(CompactionPri::OldestSmallestSeqFirst),
    );
    list.add("held dynamic round robin", Some("leveled dynamic"), priority(CompactionPri::RoundRobin));
    list.add("held zipfian largest first", Some("zipfian"), priority(CompactionPri::ByCompensatedSize));
    list.add("held zipfian coldest first", Some("zipfian"), priority(CompactionPri::OldestLargestSeqFirst));
    list.add("held zipfian round robin", Some("zipfian"), priority(CompactionPri::RoundRobin));
    list.add("held deletes largest first", Some("deletes"), priority(CompactionPri::ByCompensatedSize));
    list.add("held filled in order", base, |it| it.preload = Preload::Sequential);
    list.add("held from nothing", base, |it| {
        it.preload = Preload::None;
        it.writes = it.writes * 3 / 2;
    });
    list.add("held four jobs", base, |it| it.options.max_background_jobs = 4);
}

fn keys(list: &mut List) {
    let base = Some(BASE);
    let of = |kind: Distribution| move |it: &mut Config| it.workload.distribution = kind;
    list.add("held zipfian 0.7", base, of(zipf(0.7)));
    list.add("held zipfian 1.2", base, of(zipf(1.2)));
    list.add("held dynamic zipfian 0.8", Some("leveled dynamic"), of(zipf(0.8)));
    list.add("held hot set 2/50", base, of(Distribution::HotSet { keys: 0.02, writes: 0.5 }));
    list.add("held hot set 30/80", base, of(Distribution::HotSet { keys: 0.3, writes: 0.8 }));
    list.add(
        "held dynamic hot set 5/95",
        Some("leveled dynamic"),
        of(Distribution::HotSet { keys: 0.05, writes: 0.95 }),
    );
    list.add("held latest 0.8/30", base, of(Distribution::Latest { theta: 0.8, inserts: 0.3 }));
    list.add(
        "held dynamic latest",
        Some("leveled dynamic"),
        of(Distribution::Latest { theta: 0.99, inserts: 0.1 }),
    );
    list.add("held three series", base, of(Distribution::TimeSeries { series: 3 }));
    list.add(
        "held dynamic time series",
        Some("leveled dynamic"),
        of(Distribution::TimeSeries { series: 50 }),
    );
    list.add("held one range", base, |it| {
        let tenth = it.workload.keys / 10;
        let keys = (0..it.writes).map(|at| (3 * tenth + at * 7_368_787 % tenth) as u32).collect();
        it.workload.distribution = Distribution::Trace { keys: Arc::new(keys), deletes: Arc::default() };
    });
    list.add("held sequential trigger 2", Some("sequential"), |it| {
        it.options.level0_file_num_compaction_trigger = 2
    });
    list.add("held values of 50", base, |it| values(it, 50));
    list.add("held values of 300", base, |it| values(it, 300));
    list.add("held values of 4096", base, |it| values(it, 4096));
    list.add("held dynamic values of 300", Some("leveled dynamic"), |it| values(it, 300));
    list.add("held keys of 40", base, |it| it.workload.key_bytes = 40);
    list.add("held deletes 5 %", base, |it| it.workload.deletes = 0.05);
    list.add("held deletes 40 %", base, |it| it.workload.deletes = 0.4);
    list.add("held zipfian deletes 30 %", Some("zipfian"), |it| it.workload.deletes = 0.3);
}

fn universals(list: &mut List) {
    let of = Some("universal");
    list.add("held universal ratio 20", of, |it| it.options.compaction_options_universal.size_ratio = 20);
    let space = |percent: u64| {
        move |it: &mut Config| {
            it.options.compaction_options_universal.max_size_amplification_percent = percent;
        }
    };
    list.add("held universal space 50", of, space(50));
    list.add("held universal space 100", of, space(100));
    list.add("held universal width 4", of, |it| it.options.compaction_options_universal.min_merge_width = 4);
    list.add("held universal at most 3", of, |it| {
        it.options.compaction_options_universal.max_merge_width = 3
    });
    list.add("held universal trigger 6, ratio 10, space 400", of, |it| {
        it.options.level0_file_num_compaction_trigger = 6;
        it.options.compaction_options_universal.size_ratio = 10;
        it.options.compaction_options_universal.max_size_amplification_percent = 400;
    });
    list.add("held universal trigger 2", of, |it| it.options.level0_file_num_compaction_trigger = 2);
    list.add("held universal 3 levels", of, |it| it.options.num_levels = 3);
    list.add("held universal deletes 40 %", of, |it| it.workload.deletes = 0.4);
    list.add("held universal zipfian 1.2, ratio 20", of, |it| {
        it.workload.distribution = zipf(1.2);
        it.options.compaction_options_universal.size_ratio = 20;
    });
    list.add("held universal latest", of, |it| {
        it.workload.distribution = Distribution::Latest { theta: 0.99, inserts: 0.2 };
    });
    list.add("held universal time series", of, |it| {
        it.workload.distribution = Distribution::TimeSeries { series: 20 }
    });
    list.add("held fifo large", Some("fifo"), |it| {
        it.options.compaction_options_fifo.max_table_files_size = it.workload.keys * 1500;
    });
    list.add("held fifo that compacts", Some("fifo"), |it| {
        it.options.compaction_options_fifo.allow_compaction = true;
        // Stores are opened with this size when memtables are flushed only on request. It also
        // limits the size of merges.
        it.options.write_buffer_size = 1 << 30;
    });
}

fn codecs(list: &mut List) {
    list.add("held dynamic lz4", Some("leveled dynamic"), |it| it.options.compression = Compression::Lz4);
    list.add("held per level", Some(BASE), |it| {
        it.options.compression_per_level =
            vec![Compression::None, Compression::None, Compression::Lz4, Compression::Zstd];
    });
    list.add("held dynamic per level", Some("leveled dynamic"), |it| {
        it.options.compression_per_level = vec![Compression::Lz4, Compression::Lz4, Compression::Zstd];
    });
    list.add("held snappy, zstd at the bottom", Some("snappy"), |it| {
        it.options.bottommost_compression = Some(Compression::Zstd);
    });
    list.add("held universal lz4", Some("universal"), |it| it.options.compression = Compression::Lz4);
    list.add("held zstd, values of 300", Some("zstd"), |it| values(it, 300));
    list.add("held blocks of 16 KiB, lz4", Some("lz4"), |it| it.options.block_size = 16 << 10);
    list.add("held zipfian zstd", Some("zipfian"), |it| it.options.compression = Compression::Zstd);
}

fn reading(list: &mut List) {
    list.add("held reads 5 bits, 4 MiB", None, |it| reads(it, 4 * MIB, 5.0));
    list.add("held reads 15 bits, 64 MiB", None, |it| reads(it, 64 * MIB, 15.0));
    list.add("held reads zipfian 0.8, 16 MiB", None, |it| {
        it.workload.distribution = zipf(0.8);
        reads(it, 16 * MIB, 10.0);
    });
    list.add("held reads zipfian of uniform writes", None, |it| {
        reads(it, 16 * MIB, 12.0);
        it.workload.reads.distribution = Some(zipf(0.9));
    });
    list.add("held reads dynamic", None, |it| {
        dynamic(it);
        reads(it, 12 * MIB, 8.0);
    });
    list.add("held reads universal", None, |it| {
        universal(it);
        reads(it, 12 * MIB, 8.0);
    });
    list.add("held reads hits", None, |it| {
        reads(it, 8 * MIB, 10.0);
        it.options.optimize_filters_for_hits = true;
    });
    list.add("held reads meta in cache", None, |it| {
        reads(it, 24 * MIB, 10.0);
        it.options.cache_index_and_filter_blocks = true;
    });
    list.add("held reads blocks of 16 KiB", None, |it| {
        reads(it, 24 * MIB, 10.0);
        it.options.block_size = 16 << 10;
    });
    list.add("held reads values of 100", None, |it| {
        values(it, 100);
        reads(it, 12 * MIB, 10.0);
    });
    list.add("held reads deletes", None, |it| {
        it.workload.deletes = 0.3;
        reads(it, 12 * MIB, 10.0);
    });
    list.add("held reads latest", None, |it| {
        it.workload.distribution = Distribution::Latest { theta: 0.99, inserts: 0.1 };
        reads(it, 4 * MIB, 10.0);
    });
    list.add("held reads lz4", None, |it| {
        it.options.compression = Compression::Lz4;
        reads(it, 16 * MIB, 10.0);
    });
}

fn of_cairn(list: &mut List) {
    list.add("held kv leveled memtable 2x", Some("kv leveled"), |it| it.writes_per_flush *= 2);
    list.add("held kv leveled memtable 2/3, multiplier 6", Some("kv leveled"), |it| {
        it.writes_per_flush = it.writes_per_flush * 2 / 3;
        it.options.max_bytes_for_level_multiplier = 6.0;
    });
    list.add("held kv leveled small zero", Some("kv leveled"), |it| it.options.kv.level_zero_bytes /= 3);
    list.add("held kv leveled hot set 5/80", Some("kv leveled"), |it| {
        it.workload.distribution = Distribution::HotSet { keys: 0.05, writes: 0.8 };
    });
    list.add("held kv leveled values of 100", Some("kv leveled"), |it| values(it, 100));
    list.add("held kv leveled deletes 40 %", Some("kv leveled"), |it| it.workload.deletes = 0.4);
    list.add("held kv leveled latest", Some("kv leveled"), |it| {
        it.workload.distribution = Distribution::Latest { theta: 0.99, inserts: 0.1 };
    });
    list.add("held kv leveled time series", Some("kv leveled"), |it| {
        it.workload.distribution = Distribution::TimeSeries { series: 20 };
    });
    list.add("held kv lazy memtable 2x, ratio 3", Some("kv lazy leveled"), |it| {
        it.writes_per_flush *= 2;
        it.options.write_buffer_size *= 2;
        it.options.kv.size_ratio = 3;
    });
    list.add("held kv lazy memtable 1/2, ratio 6", Some("kv lazy leveled"), |it| {
        it.writes_per_flush /= 2;
        it.options.write_buffer_size /= 2;
        it.options.kv.size_ratio = 6;
    });
    list.add("held kv lazy deletes 30 %", Some("kv lazy leveled"), |it| it.workload.deletes = 0.3);
    list.add("held kv lazy zstd", Some("kv lazy leveled"), |it| it.options.compression = Compression::Zstd);
    list.add("held kv universal ratio 20, space 100", Some("kv universal"), |it| {
        it.options.compaction_options_universal.size_ratio = 20;
        it.options.compaction_options_universal.max_size_amplification_percent = 100;
    });
    list.add("held kv fifo", Some("kv leveled"), |it| {
        it.options.compaction_style = CompactionStyle::Fifo;
        it.options.compaction_options_fifo.max_table_files_size = it.workload.keys * 900;
    });
    list.add("held kv reads 6 bits, 16 MiB", None, |it| {
        cairn(it);
        reads(it, 16 * MIB, 6.0);
    });
    list.add("held kv reads zipfian 0.8, lazy", None, |it| {
        cairn(it);
        it.options.compaction_style = CompactionStyle::LazyLeveled;
        it.workload.distribution = zipf(0.8);
        reads(it, 12 * MIB, 12.0);
    });
    list.add("held kv reads universal", None, |it| {
        cairn(it);
        universal(it);
        reads(it, 12 * MIB, 8.0);
    });
    list.add("held kv reads blocks of 16 KiB", None, |it| {
        cairn(it);
        it.options.block_size = 16 << 10;
        reads(it, 24 * MIB, 10.0);
    });
    list.add("held kv reads values of 100", None, |it| {
        cairn(it);
        values(it, 100);
        reads(it, 12 * MIB, 10.0);
    });
}
