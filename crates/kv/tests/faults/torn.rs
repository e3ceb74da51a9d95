//! Tests of logs with torn tails.

use cairn_kv::Durability;
use cairn_vfs::{CrashImage, FaultOptions, Rng, SeededRng};

use super::workload::{Mix, Step};
use super::*;

/// Offset of the first record in a segment.
const HEADER_PAGE: usize = 4096;

/// Returns the newest segment, and the end of its written part.
fn newest_segment(fs: &FaultFs) -> (std::path::PathBuf, Vec<u8>, usize) {
    let name = names(fs).into_iter().filter(|name| name.ends_with(".wal")).max().unwrap();
    let path = path_of(&name);
    let bytes = fs.bytes_of(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (path, bytes, end.max(HEADER_PAGE))
}

/// Ways to destroy the tail from some byte on.
#[derive(Debug, Clone, Copy)]
enum Tear {
    /// Zeros to the end of the file.
    Zeros,
    /// Noise in place of the rest of the written part.
    Noise,
    /// One byte is changed.
    Byte,
}

/// Goal: whatever a torn tail looks like, the store opens with all commits whose records are
/// complete before it, and none after it, and remains usable. (A truncated file is a different
/// case; see `cross_check`.)
/// Method: a store with tables and a log of unsynced commits over both keyspaces; the tail is torn
/// at each byte of the last records, in three ways.
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
        // Nothing is flushed from here on.
        shape.memtable_bytes = Some(1 << 20);
        run.shape = shape.clone();
        run.open().unwrap();
        // A new segment begins here.
        let mut rng = SeededRng::new(shape.seed).fork("torn");
        let mut states = vec![(newest_segment(&fs).2, run.model.clone())];
        for tag in 1000..1000 + rounds(12, 60) {
            let mut change = || {
                let at = rng.below(2) as usize;
                // Does not end in zeros, so that the end of a record is visible.
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
                // Records are padded to a multiple of 8 with bytes that are never read.
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

/// Goal: a log whose newest segments are missing, although a keyspace remembers a position in them,
/// is distinguished from an empty one. A log that merely ends before that position, which a power
/// loss can cause, is accepted, and later writes never vanish because of it.
/// Method: remove segments from a closed store; crash a store right after flushes, which remember
/// positions that were not synced, and continue writing.
#[test]
fn logs_shorter_than_remembered() {
    let own = seed(12);
    for round in 0..rounds(40, 1000) {
        let shape = Shape::new(own.wrapping_add(round));
        let context = format!("shape {}", shape.seed);
        let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
        let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(shape.seed));
        run.open().unwrap();
        // Only one keyspace is written to, so the flush needs no sync; the other keyspace follows
        // the log.
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
        // New writes come after all remembered positions.
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
