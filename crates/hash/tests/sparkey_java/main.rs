//! Compatibility with Sparkey's own Java library, on every installed JDK: Java reads files that
//! Cairn writes, Cairn reads files that Java writes, and where the format leaves no choice both
//! write the same bytes.
//!
//! The library runs behind `testing/java`, whose jar is built by `scripts/setup java`. Without the
//! jar or a JDK the tests report that and pass; with `CAIRN_REQUIRE_JAVA=1` they fail.
// The tests exchange real files with another process, so they cannot use the simulated system.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cairn_side;
mod cases;
mod jvm;

use std::env;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use cairn_hash::sparkey::Construction;
use tempfile::TempDir;

use crate::cases::{Case, Op};
use crate::jvm::{Jvm, difference};

/// Offsets of the fields in the header of a log that two writers may fill differently.
mod log_field {
    use std::ops::Range;
    pub const IDENTIFIER: Range<usize> = 12..16;
    /// Without compression Java stores the requested size, C and Cairn store 0.
    pub const BLOCK_BYTES: Range<usize> = 68..72;
    /// Without compression Java stores 1, C and Cairn store 0.
    pub const MAX_ENTRIES_PER_BLOCK: Range<usize> = 80..84;
}

/// Compares the answers of each reader to [`cases::questions`] about `ops` with the model.
fn check_lookups<R: Debug>(by_reader: &[(R, Vec<Option<Vec<u8>>>)], ops: &[Op], context: &str) {
    let model = cases::model(ops);
    let expected: Vec<_> = cases::questions(ops).iter().map(|key| model.get(key).cloned()).collect();
    for (reader, answers) in by_reader {
        assert!(*answers == expected, "{context}: lookups by {reader:?} differ from the model");
    }
}

/// Checks all answers of Cairn about one store: log, live entries, lookups.
fn check_ours(log: &Path, ops: &[Op], context: &str) {
    let index = log.with_extension("spi");
    assert_eq!(cairn_side::log(log), cases::recorded(ops), "{context}: records of the log");
    assert_eq!(cairn_side::live(&index), cases::live_in_log_order(ops), "{context}: live entries");
    check_lookups(&cairn_side::get(&index, &cases::questions(ops)), ops, context);
}

/// Does the same as [`check_ours`] with Java, using every kind of reader in this JVM.
fn check_java(jvm: &mut Jvm, log: &Path, ops: &[Op], context: &str) {
    let index = log.with_extension("spi");
    assert_eq!(jvm.log(log), cases::recorded(ops), "{context}: records of the log");
    assert_eq!(jvm.dump(&index), cases::live_in_log_order(ops), "{context}: live entries");
    check_lookups(&jvm.get(&index, &cases::questions(ops)), ops, context);
}

/// Checks that an uncompressed log which Cairn wrote or appended to has 0 entries per block, and
/// its index no bits for them. From Java's value 1, the C library derives an address layout that
/// Java on newer machines misreads.
fn check_no_blocks(log: &Path, case: &Case, context: &str) {
    if case.compression == "NONE" {
        assert_eq!(
            fs::read(log).unwrap()[log_field::MAX_ENTRIES_PER_BLOCK],
            [0; 4],
            "{context}: entries per block"
        );
        let index = fs::read(log.with_extension("spi")).unwrap();
        assert_eq!(index[92..96], [0; 4], "{context}: bits of an address that number the entry");
    }
}

/// Runs `check` on every JVM, with every case and a new path for its log.
fn on_every_jvm(cases: &[(Case, Vec<Op>)], mut check: impl FnMut(&mut Jvm, &Path, &Case, &[Op], &str)) {
    for mut jvm in Jvm::all() {
        for (case, ops) in cases {
            let folder = scratch(ops);
            let context = format!("{case:?} on {}", jvm.java.display());
            check(&mut jvm, &folder.path().join("store.spl"), case, ops, &context);
        }
    }
}

/// Returns every small list of operations in every shape, with a block size that small records fill
/// and overflow.
fn small_cases() -> Vec<(Case, Vec<Op>)> {
    let lists = cases::small();
    let shapes = |(name, ops): &(&'static str, Vec<Op>)| {
        let ops = ops.clone();
        cases::shapes(name, 64).into_iter().map(move |case| (case, ops.clone())).collect::<Vec<_>>()
    };
    lists.iter().flat_map(shapes).collect()
}

/// Returns random operations in every shape and several block sizes.
fn random_cases() -> Vec<(Case, Vec<Op>)> {
    let mut all = Vec::new();
    // Larger blocks need more operations to fill a few, and make each lookup slower.
    for (seed, block, count) in [(1, 16, 600), (2, 300, 1_500), (3, 4096, 3_000), (4, 65_536, 2_000)] {
        let ops = cases::random(seed, count);
        all.extend(cases::shapes("random", block).into_iter().map(|case| (case, ops.clone())));
    }
    all
}

/// Goal: Cairn reads files that Java writes. Method: Java writes every small and random case; the
/// log, the live entries and all lookups are compared with the model.
#[test]
fn java_writes_and_we_read() {
    let all = [small_cases(), random_cases()].concat();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        jvm.write(log, ops, case, "IN_MEMORY");
        check_ours(log, ops, context);
    });
}

/// Goal: Java reads files that Cairn writes. Method: Cairn writes every small and random case; the
/// log, the live entries and all lookups of Java are compared with the model.
#[test]
fn we_write_and_java_reads() {
    let all = [small_cases(), random_cases()].concat();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        cairn_side::write(log, ops, case, Construction::InMemory);
        check_no_blocks(log, case, context);
        check_java(jvm, log, ops, context);
    });
}

/// Goal: values of 1 MiB, far larger than a block, are exchanged in both directions. Method: log,
/// live entries and lookups in both directions.
#[test]
fn large_values_cross() {
    let ops = cases::large_values();
    let all: Vec<_> =
        cases::shapes("1 MiB values", 4096).into_iter().map(|case| (case, ops.clone())).collect();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        cairn_side::write(log, ops, case, Construction::InMemory);
        check_java(jvm, log, ops, context);
        jvm.write(log, ops, case, "IN_MEMORY");
        check_ours(log, ops, context);
    });
}

/// Goal: a million entries are exchanged in both directions. Method: each compression with one hash
/// width; all live entries are compared, which looks up each of them, and a sample of present and
/// absent keys is looked up by every reader.
#[test]
fn a_million_entries_cross() {
    // Each key is put once, so the live entries in log order are the operations themselves.
    let ops = cases::plain(1_000_000);
    let sample: Vec<Op> = ops.iter().step_by(499).cloned().collect();
    let shapes = cases::shapes("1 M entries", 4096).into_iter().enumerate();
    // The widths alternate: 4 with no compression, 8 with snappy, 4 with zstd.
    let all: Vec<_> =
        shapes.filter(|(i, _)| [0, 3, 4].contains(i)).map(|(_, case)| (case, ops.clone())).collect();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        let index = log.with_extension("spi");
        cairn_side::write(log, ops, case, Construction::default());
        assert!(jvm.dump(&index) == ops, "{context}: live entries by Java");
        check_lookups(&jvm.get(&index, &cases::questions(&sample)), &sample, context);
        jvm.write(log, ops, case, "IN_MEMORY");
        assert!(cairn_side::live(&index) == ops, "{context}: live entries by us");
        check_lookups(&cairn_side::get(&index, &cases::questions(&sample)), &sample, context);
    });
}

/// Goal: both libraries read and write addresses of 8 bytes, which a log needs if positions and
/// numbers in a block together exceed 32 bits. Method: blocks of 64 KiB with thousands of tiny
/// entries each, so that a small log suffices. The width in the header is checked, or the case
/// would show nothing.
#[test]
fn wide_addresses_cross() {
    let ops = cases::tiny(5, 30_000);
    let shapes =
        cases::shapes("8 byte addresses", 65_536).into_iter().filter(|case| case.compression != "NONE");
    let all: Vec<_> = shapes.map(|case| (case, ops.clone())).collect();
    // A lookup in such blocks skips thousands of entries, so only a sample is looked up.
    let asked: Vec<Op> = ops.iter().step_by(97).cloned().collect();
    let questions = cases::questions(&asked);
    let address_bytes = |log: &Path| fs::read(log.with_extension("spi")).unwrap()[68];
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        cairn_side::write(log, ops, case, Construction::InMemory);
        assert_eq!(address_bytes(log), 8, "{context}");
        check_lookups(&jvm.get(&log.with_extension("spi"), &questions), &asked, context);
        jvm.write(log, ops, case, "IN_MEMORY");
        assert_eq!(address_bytes(log), 8, "{context}");
        check_lookups(&cairn_side::get(&log.with_extension("spi"), &questions), &asked, context);
    });
}

/// Goal: each library continues the other's log. Method: one writes the first part, the other
/// appends the second, and the result is read; then the first appends once more.
#[test]
fn each_appends_to_the_others_log() {
    let mut all = Vec::new();
    for (seed, block) in [(11, 64), (12, 4096)] {
        let ops = cases::random(seed, 600);
        all.extend(cases::shapes("append", block).into_iter().map(|case| (case, ops.clone())));
    }
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        let (first, rest) = ops.split_at(ops.len() / 3);
        let (second, third) = rest.split_at(rest.len() / 2);

        jvm.write(log, first, case, "IN_MEMORY");
        cairn_side::append(log, second, case);
        check_no_blocks(log, case, context);
        check_java(jvm, log, &[first, second].concat(), context);
        jvm.append(log, third, case);
        check_ours(log, ops, context);

        cairn_side::write(log, first, case, Construction::InMemory);
        jvm.append(log, second, case);
        check_ours(log, &[first, second].concat(), context);
        cairn_side::append(log, third, case);
        check_java(jvm, log, ops, context);
    });
}

/// Goal: after a log has grown, its old index still serves the part that it covers. Method: one
/// library writes log and index, the other appends to the log only; the old index returns the old
/// entries.
#[test]
fn old_index_shows_the_old_records() {
    let ops = cases::random(21, 600);
    let all: Vec<_> = cases::shapes("old index", 300).into_iter().map(|case| (case, ops.clone())).collect();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        let (old, new) = ops.split_at(400);
        let index = log.with_extension("spi");
        jvm.write(log, old, case, "IN_MEMORY");
        cairn_side::append_only(log, new);
        assert_eq!(cairn_side::live(&index), cases::live_in_log_order(old), "{context}");
        // Keys that only the new part has are among the absent ones.
        let model = cases::model(old);
        let questions = cases::questions(ops);
        let expected: Vec<_> = questions.iter().map(|key| model.get(key).cloned()).collect();
        for (mode, answers) in cairn_side::get(&index, &questions) {
            assert!(answers == expected, "{context}: lookups by {mode:?}");
        }
        for (reader, answers) in jvm.get(&index, &questions) {
            assert!(answers == expected, "{context}: lookups by {reader}");
        }
    });
}

/// Goal: uncompressed logs are equal byte for byte, except for the fields in which Sparkey's own
/// two libraries differ.
/// Method: both write every case; identifier, block size and entries per block are blanked.
#[test]
fn uncompressed_logs_are_equal() {
    let all = [small_cases(), random_cases()].concat();
    let all: Vec<_> = all.into_iter().filter(|(case, _)| case.compression == "NONE").collect();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        let blanked = |log: &Path| {
            let mut bytes = fs::read(log).unwrap();
            for field in [log_field::IDENTIFIER, log_field::BLOCK_BYTES, log_field::MAX_ENTRIES_PER_BLOCK] {
                bytes[field].fill(0);
            }
            bytes
        };
        let theirs = sibling(log, "theirs.spl");
        jvm.write(&theirs, ops, case, "NONE");
        cairn_side::write(log, ops, case, Construction::InMemory);
        assert_eq!(difference(&blanked(log), &blanked(&theirs)), None, "{context}");
    });
}

/// Goal: both libraries build the same index, byte for byte, from the same log with the same seed:
/// header, order of slots, garbage, displacements. Method: the log of either is indexed by both, in
/// memory.
#[test]
fn indexes_of_one_log_are_equal() {
    let all = [small_cases(), random_cases()].concat();
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        jvm.write(log, ops, case, "IN_MEMORY");
        let theirs = fs::read(log.with_extension("spi")).unwrap();
        cairn_side::index(log, case, Construction::InMemory);
        let mine = fs::read(log.with_extension("spi")).unwrap();
        assert_eq!(difference(&mine, &theirs), None, "Java's log, {context}");

        cairn_side::write(log, ops, case, Construction::InMemory);
        let mine = fs::read(log.with_extension("spi")).unwrap();
        assert_eq!(difference(&mine, &jvm.index(log, case)), None, "our log, {context}");
    });
}

/// Goal: Java and Cairn build the same index by sorting. Method: Java writes with SORTING, and
/// Cairn indexes the same log with little memory, so that it really sorts in runs; the bytes are
/// compared.
#[test]
fn sorted_indexes_are_equal() {
    let construction = Construction::Sorting { memory_bytes: 64 << 10 };
    let mut all = [small_cases(), random_cases()].concat();
    all.extend(cases::shapes("larger", 4096).into_iter().map(|case| (case, cases::random(31, 20_000))));
    on_every_jvm(&all, |jvm, log, case, ops, context| {
        jvm.write(log, ops, case, "SORTING");
        check_ours(log, ops, context);
        let theirs = fs::read(log.with_extension("spi")).unwrap();
        cairn_side::index(log, case, construction);
        let mine = fs::read(log.with_extension("spi")).unwrap();
        assert_eq!(difference(&mine, &theirs), None, "{context}");
    });
}

/// Goal: files that Sparkey's library once wrote stay readable, also on machines without Java.
/// Method: pairs stored under `testing/compat` are read and indexed again. With
/// `CAIRN_REWRITE_FIXTURES=1` Java writes them again.
#[test]
fn stored_files_read_back() {
    // The value at run time, not at build time, because clones may share build output.
    let root = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let folder = Path::new(&root).join("../../testing/compat/sparkey-java-3.2.5");
    let ops = cases::random(41, 60);
    for case in cases::shapes("stored", 64) {
        let name = format!("{}-{}.spl", case.compression.to_lowercase(), case.hash_bytes);
        let stored = folder.join(name);
        if env::var_os("CAIRN_REWRITE_FIXTURES").is_some() {
            Jvm::all().first_mut().unwrap().write(&stored, &ops, &case, "IN_MEMORY");
        }
        let context = stored.display().to_string();
        check_ours(&stored, &ops, &context);

        let scratch = scratch(&ops);
        let copy = scratch.path().join("copy.spl");
        fs::copy(&stored, &copy).unwrap();
        cairn_side::index(&copy, &case, Construction::InMemory);
        let (ours, theirs) = (fs::read(copy.with_extension("spi")), fs::read(stored.with_extension("spi")));
        assert_eq!(difference(&ours.unwrap(), &theirs.unwrap()), None, "{context}");
    }
}

/// Creates a temporary folder: in memory if possible, because an index is synced and hundreds of
/// syncs would dominate the time; on disk if the content may not fit into memory.
fn scratch(ops: &[Op]) -> TempDir {
    let bytes: usize = ops.iter().map(Op::len).sum();
    let memory = Path::new("/dev/shm");
    if bytes < 4 << 20 && memory.is_dir() {
        TempDir::new_in(memory).unwrap()
    } else {
        TempDir::new().unwrap()
    }
}

fn sibling(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(name)
}
