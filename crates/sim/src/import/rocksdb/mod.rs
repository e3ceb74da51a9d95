//! RocksDB's `OPTIONS` files: sections of `name=value` lines, and the one-line form of
//! `GetOptionsFromString`.
//!
//! ```text
//! read      parses a file; errors name the line
//! write     formats a file, only the changes, or the one-line form
//! ```

mod read;
mod write;

pub use read::import_rocksdb;
pub use write::{export_rocksdb, rocksdb_changes, rocksdb_string, rocksdb_unrepresentable};

use crate::options::{CompactionPri, CompactionStyle, Compression};

/// The section of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Version,
    Db,
    /// The requested column family.
    Family,
    Table,
    /// A section that is not used.
    Other,
}

const STYLES: [(&str, CompactionStyle); 3] = [
    ("kCompactionStyleLevel", CompactionStyle::Leveled),
    ("kCompactionStyleUniversal", CompactionStyle::Universal),
    ("kCompactionStyleFIFO", CompactionStyle::Fifo),
];

const PRIORITIES: [(&str, CompactionPri); 5] = [
    ("kByCompensatedSize", CompactionPri::ByCompensatedSize),
    ("kOldestLargestSeqFirst", CompactionPri::OldestLargestSeqFirst),
    ("kOldestSmallestSeqFirst", CompactionPri::OldestSmallestSeqFirst),
    ("kMinOverlappingRatio", CompactionPri::MinOverlappingRatio),
    ("kRoundRobin", CompactionPri::RoundRobin),
];

/// LZ4HC is read as LZ4, which has the same format.
const CODECS: [(&str, Compression); 5] = [
    ("kNoCompression", Compression::None),
    ("kSnappyCompression", Compression::Snappy),
    ("kLZ4Compression", Compression::Lz4),
    ("kZSTD", Compression::Zstd),
    ("kLZ4HCCompression", Compression::Lz4),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    /// Goal: exported options can be imported. Method: options that differ from the defaults
    /// everywhere.
    #[test]
    fn options_survive_the_round_trip() {
        let mut options = Options {
            write_buffer_size: 7 << 20,
            max_write_buffer_number: 5,
            max_bytes_for_level_multiplier: 8.5,
            level_compaction_dynamic_level_bytes: true,
            compaction_pri: CompactionPri::OldestSmallestSeqFirst,
            compression_per_level: vec![Compression::None, Compression::Lz4, Compression::Zstd],
            bottommost_compression: Some(Compression::Zstd),
            bloom_bits_per_key: 12.0,
            block_size: 16384,
            ..Options::default()
        };
        options.compaction_options_universal.size_ratio = 20;
        options.compaction_options_fifo.allow_compaction = true;
        let text = export_rocksdb(&options).unwrap();
        assert_eq!(import_rocksdb(&text, "default", "OPTIONS").unwrap().options, options);
    }

    /// Goal: only changes are written, in the same form. Method: two changes.
    #[test]
    fn changes_are_few() {
        let before = Options::default();
        let after = Options { max_background_jobs: 8, block_size: 16384, ..Options::default() };
        let text = rocksdb_changes(&before, &after).unwrap();
        let (_, settings) = text.split_once("[DBOptions]").unwrap();
        let lines: Vec<&str> = settings.lines().filter(|line| line.contains('=')).collect();
        assert_eq!(lines, ["  max_background_jobs=8", "  block_size=16384"]);
        assert_eq!(import_rocksdb(&text, "default", "OPTIONS").unwrap().options.max_background_jobs, 8);
    }

    /// Goal: a file has the sections that RocksDB requires, names the settings that it cannot hold,
    /// and has none that its version lacks. Method: all options, and only the changes, of a version
    /// after 9, with settings that no file holds.
    #[test]
    fn files_are_whole() {
        let before = Options::default();
        let after = Options {
            rocksdb_version: 11,
            write_buffer_size: 7 << 20,
            block_cache_size: 1 << 30,
            wal_sync: true,
            ..Options::default()
        };
        let sections = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.starts_with('[')).map(str::to_owned).collect()
        };
        let whole = export_rocksdb(&after).unwrap();
        let changes = rocksdb_changes(&before, &after).unwrap();
        let expected = ["[Version]", "[DBOptions]", "[CFOptions \"default\"]"];
        assert_eq!(sections(&changes), expected);
        assert_eq!(sections(&whole)[..3], expected);
        for text in [whole, changes] {
            assert!(text.contains("\n  rocksdb_version=11.0.0\n  options_file_version=1.1\n"), "{text}");
            assert!(
                text.contains(
                    "\n# Not representable in an OPTIONS file: block_cache_size=1073741824, wal_sync=true\n"
                ),
                "{text}"
            );
            assert!(!text.contains("level_compaction_dynamic_file_size"), "{text}");
            let read = import_rocksdb(&text, "default", "OPTIONS").unwrap().options;
            assert_eq!((read.rocksdb_version, read.write_buffer_size), (11, 7 << 20));
        }
        assert!(!export_rocksdb(&before).unwrap().contains("Not representable"));
    }

    /// Goal: errors name the line. Method: one fault each.
    #[test]
    fn faults_are_named() {
        let cases = [
            ("[CFOptions \"default\"]\n\n  write_buffer_size=-1\n", 3, "write_buffer_size"),
            ("[CFOptions \"default\"]\n  write_buffer_size\n", 2, "name=value"),
            ("[DBOptions]\n  max_background_jobs=many\n", 2, "max_background_jobs"),
            ("write_buffer_size=1\n", 1, "section"),
            ("[CFOptions \"default\n", 1, "]"),
            ("[CFOptions \"other\"]\n  write_buffer_size=1\n", 2, "default"),
            ("[CFOptions \"default\"]\n  max_bytes_for_level_base=99999999999999999999999\n", 2, "max_bytes"),
            ("[CFOptions \"default\"]\n  compaction_options_universal={size_ratio=x;}\n", 2, "size_ratio"),
        ];
        for (text, line, what) in cases {
            let error = import_rocksdb(text, "default", "OPTIONS-000007").unwrap_err().to_string();
            assert!(error.starts_with(&format!("OPTIONS-000007, line {line}: ")), "{error}");
            assert!(error.contains(what), "{error}");
        }
    }

    /// Goal: real files can be read completely. Method: files written by RocksDB 7.8.3 and 11.8.1.
    #[test]
    fn real_files_are_read() {
        let old = include_str!("../../../data/OPTIONS-7.8.3");
        let new = include_str!("../../../data/OPTIONS-11.8.1");
        let old = import_rocksdb(old, "default", "OPTIONS").unwrap();
        let new = import_rocksdb(new, "default", "OPTIONS").unwrap();
        assert_eq!((old.options.rocksdb_version, new.options.rocksdb_version), (7, 11));
        assert_eq!(old.options.write_buffer_size, 64 << 20);
        assert!(!old.options.level_compaction_dynamic_level_bytes);
        assert!(new.options.level_compaction_dynamic_level_bytes);
        assert!(old.ignored.len() > 50);
    }

    /// Imports a file with these lines in the sections of the store, its column family and its
    /// tables.
    fn read(db: &str, family: &str, table: &str) -> crate::import::Imported {
        let text = format!(
            "[Version]\n  rocksdb_version=6.29.5\n[DBOptions]\n{db}\n[CFOptions \"default\"]\n{family}\n\
             [TableOptions/BlockBasedTable \"default\"]\n{table}\n"
        );
        import_rocksdb(&text, "default", "OPTIONS").unwrap()
    }

    /// Goal: names, sections and values that are not modelled are accepted and reported in one
    /// note: those that a user has set by name and value, the others by their number. Method:
    /// listeners, collectors, factories, and sections of other tables and programs, as RocksDB 5 to
    /// 11 write them.
    #[test]
    fn what_has_no_model_is_told_once() {
        let imported = read(
            "  listeners={id=Listener;};{id=x;}\n  write_bufer_size=1\n  allow_fallocate=true\n  rate_limiter={rate_bytes_per_sec=5;}",
            "  table_properties_collectors=={{id=a;b={c=1;};}}\n  compaction_options_universal={new_knob=3;size_ratio=9;allow_trivial_move=false;}\n\
             \x20 compaction_options_fifo=0x7f00\n  merge_operator=PutOperator\n[TableOptions/PlainTable \"default\"]\n  user_key_len=0\n[Titan \"default\"]\n  a=1",
            "  brand_new=yes",
        );
        let told: Vec<&String> =
            imported.notes.iter().filter(|note| note.contains("does not model")).collect();
        let [note] = told[..] else { panic!("{told:?}") };
        for part in [
            "listeners={id=Listener;};{id=x;}",
            "write_bufer_size=1",
            "compaction_options_universal.new_knob=3",
            "merge_operator=PutOperator",
            "and 2 at RocksDB's defaults",
        ] {
            assert!(note.contains(part), "{part}: {note}");
        }
        assert!(!note.contains("allow_fallocate") && !note.contains("user_key_len"), "{note}");
        assert_eq!(imported.options.compaction_options_universal.size_ratio, 9);
    }

    /// Goal: filters can be read in every form that RocksDB 5 to 11 write, and one without its size
    /// is reported. Method: each of them.
    #[test]
    fn filters_of_all_versions() {
        for (value, bits, is_told) in [
            ("nullptr", 0.0, false),
            ("", 0.0, false),
            ("bloomfilter:9.5:false", 9.5, false),
            ("ribbonfilter:12:0", 12.0, false),
            ("experimental_ribbon:7.5:-1", 7.5, false),
            ("{id=ribbonfilter:10.000;bloom_before_level=2147483647;}", 10.0, false),
            ("{id=bloomfilter:8.000;}", 8.0, false),
            ("{bloomfilter:10:false}", 10.0, false),
            ("rocksdb.internal.FastLocalBloomFilter:16.000", 16.0, false),
            ("bloomfilter:100:true", 64.0, false),
            ("bloomfilter:0.1:true", 0.0, false),
            ("rocksdb.BuiltinBloomFilter", 10.0, true),
            ("OurOwnFilter", 10.0, true),
        ] {
            let imported = read("", "", &format!("  filter_policy={value}"));
            assert_eq!(imported.options.bloom_bits_per_key, bits, "{value}");
            let is_noted = imported.notes.iter().any(|note| note.starts_with("filter_policy="));
            assert_eq!(is_noted, is_told, "{value}");
        }
    }

    /// Goal: codecs, styles and priorities that are not modelled become the nearest modelled ones,
    /// with a note.
    /// Method: all codecs of RocksDB.
    #[test]
    fn the_nearest_model_is_taken() {
        for (value, codec) in [
            ("kZlibCompression", Compression::Zstd),
            ("kBZip2Compression", Compression::Zstd),
            ("kZSTDNotFinalCompression", Compression::Zstd),
            ("kXpressCompression", Compression::Lz4),
            ("kDisableCompressionOption", Compression::None),
            ("kCustomCompression80", Compression::Zstd),
        ] {
            let family = format!("  compression={value}\n  compression_per_level=kNoCompression:{value}");
            let imported = read("", &family, "");
            assert_eq!(imported.options.compression, codec);
            assert_eq!(imported.options.compression_per_level, [Compression::None, codec]);
            assert!(
                imported.notes.iter().any(|note| note.starts_with(&format!("compression={value} "))),
                "{value}"
            );
        }
        let imported = read("", "  compaction_style=kCompactionStyleNone\n  compaction_pri=kNew", "");
        assert!(imported.options.disable_auto_compactions);
        assert!(imported.notes.iter().any(|note| note.starts_with("compaction_pri=kNew")));
    }

    /// Goal: values that mean "never", and values that contradict each other, are read as RocksDB
    /// treats them, with a note. Method: the settings of `PrepareForBulkLoad`, and a contradiction
    /// of each kind.
    #[test]
    fn contradictions_are_named() {
        let bulk = read(
            "  max_background_flushes=4\n  max_background_compactions=2",
            "  level0_file_num_compaction_trigger=1073741824\n  level0_slowdown_writes_trigger=-1\n  level0_stop_writes_trigger=1073741824\n\
             \x20 soft_pending_compaction_bytes_limit=0\n  hard_pending_compaction_bytes_limit=18446744073709551615\n  num_levels=1\n\
             \x20 compaction_options_fifo={max_table_files_size=0;}\n  target_file_size_base=18446744073709551615\n  max_bytes_for_level_multiplier=0.5",
            "  block_cache={capacity=33554432;num_shard_bits=4;}",
        );
        let options = &bulk.options;
        assert_eq!(
            (options.max_background_jobs, options.num_levels, options.block_cache_size),
            (6, 2, 32 << 20)
        );
        assert_eq!(options.level0_slowdown_writes_trigger, 1_000_000);
        assert_eq!(options.hard_pending_compaction_bytes_limit, 0);
        let contrary = read(
            "",
            "  level0_file_num_compaction_trigger=30\n  level0_stop_writes_trigger=10\n  min_write_buffer_number_to_merge=5\n\
             \x20 max_write_buffer_number=1\n  soft_pending_compaction_bytes_limit=200\n  hard_pending_compaction_bytes_limit=100\n\
             \x20 compaction_options_universal={min_merge_width=9;max_merge_width=3;}",
            "",
        );
        let options = &contrary.options;
        assert_eq!((options.level0_slowdown_writes_trigger, options.level0_stop_writes_trigger), (30, 30));
        assert_eq!((options.max_write_buffer_number, options.min_write_buffer_number_to_merge), (2, 1));
        assert_eq!(options.soft_pending_compaction_bytes_limit, 100);
        for name in [
            "level0_slowdown_writes_trigger=20",
            "level0_stop_writes_trigger=10",
            "max_write_buffer_number=1",
            "min_write_buffer_number_to_merge=5",
            "soft_pending_compaction_bytes_limit=200",
            "compaction_options_universal.max_merge_width=3",
        ] {
            assert!(contrary.notes.iter().any(|note| note.starts_with(name)), "{name}: {:?}", contrary.notes);
        }
        let fifo = read("", "  compaction_style=kCompactionStyleFIFO\n  num_levels=1", "");
        assert_eq!(fifo.options.num_levels, 1);
    }
}
