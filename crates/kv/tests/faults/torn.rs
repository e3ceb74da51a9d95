//! Logs that end in the middle of something.

use cairn_kv::Durability;
use cairn_vfs::{CrashImage, FaultOptions, Rng, SeededRng};

use super::workload::{Mix, Step};
use super::*;

/// Where the first record of a segment stands.
const HEADER_PAGE: usize = 4096;

/// The newest segment, and where its written part ends.
fn newest_segment(fs: &FaultFs) -> (std::path::PathBuf, Vec<u8>, usize) {
    let name = names(fs).into_iter().filter(|name| name.ends_with(".wal")).max().unwrap();
    let path = path_of(&name);
    let bytes = fs.bytes_of(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (path, bytes, end.max(HEADER_PAGE))
}

/// How the tail from some byte on is destroyed.
#[derive(Debug, Clone, Copy)]
enum Tear {
    /// Zeros to the end of the file.
    Zeros,
    /// Noise in place of the rest of what was written.
    Noise,
    /// One byte is another one.
    Byte,
}

/// Goal: whatever a torn tail looks like (that the file was cut is told from it, see `trust`), the
/// store opens with all commits whose records are whole before it, and none behind it, and goes on.
/// Method: a store with tables and a log of unsynced commits over both keyspaces; each byte of the
/// last records is where the tail is torn, in three ways.
#[test]
fn torn_at_every_byte() {
    let own = seed(11);
    let mut disks = 0;
    for round in 0..rounds(2, 12) {
        let mut shape = Shape::new(own.wrapping_add(round));
        let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
        let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(shape.seed));
        run.open().unwrap();
        run.steps(120).unwrap();
        // Nothing is flushed any more.
        shape.memtable_bytes = Some(1 << 20);
        run.shape = shape.clone();
        run.open().unwrap();
        // A new segment from here on.
        let mut rng = SeededRng::new(shape.seed).fork("torn");
        let mut states = vec![(newest_segment(&fs).2, run.model.clone())];
        for tag in 1000..1000 + rounds(12, 60) {
            let mut change = || {
                let at = rng.below(2) as usize;
                // Not ending in zeros, so that it shows where a record ends.
                let value = format!("{tag}{}", "x".repeat(rng.below(60) as usize)).into_bytes();
                (at, Change::Put(state::key(&mut rng), value))
            };
            let changes = (0..1 + tag % 4).map(|_| change()).collect();
            run.perform(Step::Write(changes, Durability::Buffered)).unwrap();
            states.push((newest_segment(&fs).2, run.model.clone()));
        }
        let (path, bytes, end) = newest_segment(&fs);
        let from = states[0].0;
        assert!(states.is_sorted_by_key(|(end, _)| *end) && end > from + 300, "one segment");
        let point = fs.crash_point();
        for at in from..end {
            for tear in [Tear::Zeros, Tear::Noise, Tear::Byte] {
                if !soak() && at % 3 != tear as usize {
                    continue;
                }
                let disk = point.image(CrashImage::All);
                let mut torn = bytes.clone();
                match tear {
                    Tear::Zeros => torn[at..].fill(0),
                    Tear::Noise => rng.fill(&mut torn[at..end]),
                    Tear::Byte => torn[at] ^= 1 + rng.below(255) as u8,
                }
                disk.install(&path, &torn).unwrap();
                let context = format!("shape {}, {tear:?} at {at} of {from}..{end}", shape.seed);
                let db = open(&disk, &shape).unwrap_or_else(|error| panic!("{context}: {error}"));
                let found = scan(&db).unwrap();
                let before = states.iter().rposition(|(end, _)| *end <= at).unwrap();
                // Up to a multiple of 8, records are padded with what nobody reads.
                let is_padding = at < states[before].0.next_multiple_of(8);
                let right = match tear {
                    Tear::Byte if is_padding => vec![&run.model],
                    _ => vec![&states[before].1],
                };
                assert!(right.contains(&&found), "{context}: {}", right[0][0].difference(&found[0]));
                drop(db);
                crash::go_on(&disk, &shape, &found, if at % 16 == 0 { 20 } else { 0 }, &context);
                disks += 1;
            }
        }
    }
    println!("torn at every byte: {disks} disks");
    assert!(disks > 1000, "{disks}");
}

/// Goal: a log whose newest segments are gone although a keyspace remembers a position in them is
/// told from an empty one; one that merely ends before that position, which a power loss can do, is
/// fine and never makes later writes vanish.
/// Method: remove segments from a closed store; crash a store right after flushes, which remember
/// positions that were not synced, and write on.
#[test]
fn logs_shorter_than_remembered() {
    let own = seed(12);
    for round in 0..rounds(40, 1000) {
        let shape = Shape::new(own.wrapping_add(round));
        let context = format!("shape {}", shape.seed);
        let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
        let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(shape.seed));
        run.open().unwrap();
        // Only one keyspace is written to: the flush needs no sync, the other one follows the log.
        let mut rng = SeededRng::new(shape.seed).fork("shorter");
        for tag in 0..20 + rng.below(60) {
            let change = Change::draw(&mut rng, tag);
            run.perform(Step::Write(vec![(0, change)], Durability::Buffered)).unwrap();
        }
        run.perform(Step::Flush(0)).unwrap();
        let accepted = run.history.accepted(fs.operation_count() + 1, None);
        let mut disk = fs.crash(if round % 2 == 0 { CrashImage::None } else { CrashImage::Random(round) });
        let mut state = crash::check(&disk, &shape, &run.history, &accepted, 0, &context);
        assert!(state == run.model, "{context}: a flush is durable");
        // What is written now stands behind all positions that are remembered.
        for life in 0..3 {
            let mut run = Run::new(&disk, &shape, state, Mix::Logged, SeededRng::new(shape.seed + life));
            run.open().unwrap();
            run.steps(6).unwrap();
            run.perform(Step::Sync).unwrap();
            let context = format!("{context}, life {life}");
            let accepted = run.history.accepted(disk.operation_count() + 1, None);
            disk = disk.crash(CrashImage::None);
            state = crash::check(&disk, &shape, &run.history, &accepted, 0, &context);
            assert!(state == run.model, "{context}");
        }
    }
    let shape = Shape::new(own);
    let fs = FaultFs::new(FaultOptions::seeded(own));
    let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(own));
    run.open().unwrap();
    run.steps(100).unwrap();
    run.perform(Step::Flush(0)).unwrap();
    run.perform(Step::Flush(1)).unwrap();
    run.perform(Step::Sync).unwrap();
    run.close();
    for name in names(&fs).into_iter().filter(|name| name.ends_with(".wal") || name.ends_with(".free")) {
        cairn_vfs::Fs::remove(&fs, &path_of(&name)).unwrap();
    }
    let error = open(&fs, &shape).unwrap_err();
    assert!(matches!(error, cairn_kv::Error::Corruption { .. }), "{error}");
}
