//! RocksDB's `OPTIONS` files: sections of `name=value` lines, and the one-line form that `GetOptionsFromString` takes.
//!
//! ```text
//! read      a file, with what is wrong in it by line      write     a file, what differs, the one-line form
//! ```

mod read;
mod write;

pub use read::import_rocksdb;
pub use write::{export_rocksdb, rocksdb_beside, rocksdb_changes, rocksdb_string};

use crate::options::{CompactionPri, CompactionStyle, Compression};

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Version,
    Db,
    /// Of the column family that is asked for.
    Family,
    Table,
    /// Of another one.
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

/// LZ4HC reads as LZ4: the same format.
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

    /// Goal: what goes out comes in. Method: options that differ from the defaults everywhere.
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

    /// Goal: only changes are told, in the same form. Method: two changes.
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

    /// Goal: a file has the sections that RocksDB asks for, says what it cannot hold, and has nothing that its version lacks. Method: everything and changes of
    /// options with settings beside the file, of a version after 9.
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
                text.contains("\n# Such a file cannot hold block_cache_size=1073741824, wal_sync=true\n"),
                "{text}"
            );
            assert!(!text.contains("level_compaction_dynamic_file_size"), "{text}");
            let read = import_rocksdb(&text, "default", "OPTIONS").unwrap().options;
            assert_eq!((read.rocksdb_version, read.write_buffer_size), (11, 7 << 20));
        }
        assert!(!export_rocksdb(&before).unwrap().contains("cannot hold"));
    }

    /// Goal: what is wrong is named with its line. Method: one fault each.
    #[test]
    fn faults_are_named() {
        let cases = [
            ("[CFOptions \"default\"]\n  write_bufer_size=1\n", 2, "write_bufer_size"),
            ("[CFOptions \"default\"]\n\n  write_buffer_size=-1\n", 3, "write_buffer_size"),
            ("[CFOptions \"default\"]\n  compaction_style=kLevel\n", 2, "compaction_style"),
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

    /// Goal: real files are read whole. Method: those that RocksDB 7.8.3 and 11.8.1 wrote.
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
}
