//! On a sound disk, appended records come back.

use cairn_vfs::{CrashImage, ErrorKind, FaultOptions};

use super::*;

/// Goal: records come back in order, from any position, across any number of openings. Method:
/// rounds of appends with random syncs, each followed by recoveries from the start and from random
/// positions.
#[test]
fn records_read_back_in_order() {
    let fs = memory();
    let mut rng = SeededRng::new(seed(1));
    let mut all: Vec<(Lsn, Vec<u8>)> = Vec::new();
    for round in 0..8 {
        let (log, mut appender, found) = open(&fs, &small(), round).unwrap();
        assert_eq!(found.len(), all.len(), "round {round}");
        let first = all.len() as u64;
        for number in first..first + 1 + rng.below(60) {
            let lsn = appender.append(&[&payload(number)]).unwrap();
            assert_eq!(lsn, appender.position());
            assert!(all.last().is_none_or(|(before, _)| *before < lsn));
            all.push((lsn, payload(number)));
            if rng.chance(0.1) {
                log.sync_to(lsn).unwrap();
                assert!(log.synced() >= lsn);
            }
        }
        assert_eq!(log.reserved(), appender.position());
        let found = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap();
        assert_eq!(found.records, all);
        assert_eq!((found.tail.end(), found.damage.len()), (appender.position(), 0));
        for _ in 0..10 {
            let index = rng.below(all.len() as u64) as usize;
            let rest = recover(&fs, all[index].0, Mode::TolerateTornTail).unwrap();
            assert_eq!(rest.records, all[index + 1..], "from {}", all[index].0);
        }
    }
}

/// Goal: a log in a missing directory, with missing parents, survives a power loss. Method: a log
/// several directories deep with one synced record; crash to the durable state only.
#[test]
fn missing_parents() {
    let fs = FaultFs::new(FaultOptions::seeded(seed(2)));
    let recovered = |fs: &FaultFs| {
        let options = RecoveryOptions::default();
        let mut recovery = Recovery::open(&shared(fs), Path::new("/a/b/log"), Lsn::ZERO, &options).unwrap();
        let mut count = 0;
        while let Some(record) = recovery.next().unwrap() {
            assert_eq!(record.payload, b"kept");
            count += 1;
        }
        (count, recovery.finish().unwrap())
    };
    let (_, tail) = recovered(&fs);
    let (log, mut appender) = Log::open(&shared(&fs), &small(), tail, &mut SeededRng::new(1)).unwrap();
    log.sync_to(appender.append(&[b"kept"]).unwrap()).unwrap();
    assert_eq!(recovered(&fs.crash(CrashImage::None)).0, 1);
}

/// Goal: payloads of every length work, empty ones included, in one piece or several.
#[test]
fn payloads_of_all_lengths() {
    let fs = memory();
    let (_log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let bytes: Vec<u8> = (0..5000_u32).map(|n| n as u8).collect();
    let lengths = (0..200).chain([4072, 4073, 4079, 4080, 4081, 5000]);
    let mut expected = Vec::new();
    for len in lengths {
        let (head, tail) = bytes[..len].split_at(len / 3);
        let lsn = appender.append(&[head, &[], tail]).unwrap();
        expected.push((lsn, bytes[..len].to_vec()));
    }
    assert_eq!(recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap().records, expected);
}

/// Goal: records are ordered by their reservation, whenever they are committed; a dropped
/// reservation is not a record and does not affect the others.
#[test]
fn reservations() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let mut open_ones: Vec<_> = (0..50_u64)
        .map(|number| {
            let mut reservation = appender.reserve(payload(number).len()).unwrap();
            reservation.payload_mut().copy_from_slice(&payload(number));
            reservation
        })
        .collect();
    let mut rng = SeededRng::new(3);
    let mut kept = Vec::new();
    while !open_ones.is_empty() {
        let reservation = open_ones.swap_remove(rng.below(open_ones.len() as u64) as usize);
        let lsn = reservation.lsn();
        if rng.chance(0.7) {
            assert_eq!(reservation.commit().unwrap(), lsn);
            kept.push(lsn);
        }
    }
    kept.sort_unstable();
    log.sync().unwrap();
    let found = recover(&fs, Lsn::ZERO, Mode::Strict).unwrap();
    found.numbers();
    assert_eq!(found.records.into_iter().map(|(lsn, _)| lsn).collect::<Vec<_>>(), kept);
}

/// Goal: a sync waits for reservations before its position, but not for later ones. Method: hold a
/// reservation and sync the record before it; then sync the record after it from another thread.
#[test]
fn syncs_wait_for_earlier_reservations_only() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let before = appender.append(&[b"before"]).unwrap();
    let held = appender.reserve(4).unwrap();
    let after = appender.append(&[b"after"]).unwrap();
    log.sync_to(before).unwrap();
    assert_eq!(log.synced(), before);
    cairn_vfs::thread::scope(|scope| {
        let sync = scope.spawn(|| log.sync_to(after).unwrap());
        assert!(log.synced() == before && !sync.is_finished());
        held.commit().unwrap();
    });
    assert!(log.synced() >= after);
}

/// Goal: invalid options and positions are refused with an explanation.
#[test]
fn refusals() {
    let fs = memory();
    for options in [
        small().segment_bytes(4096),
        small().segment_bytes(10_000),
        small().first_segment_bytes(4096),
        small().first_segment_bytes(10_000),
        small().window_bytes(0),
    ] {
        assert_eq!(open(&fs, &options, 1).unwrap_err().kind(), ErrorKind::Invalid, "{options:?}");
    }
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let lsn = appender.append(&[b"x"]).unwrap();
    assert_eq!(log.sync_to(Lsn::from(lsn.get() + 8)).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(appender.reserve(cairn_wal::MAX_RECORD_BYTES + 1).unwrap_err().kind(), ErrorKind::Invalid);
    log.check().unwrap();
    let odd = Lsn::from(lsn.get() + 1);
    assert_eq!(recover(&fs, odd, Mode::Salvage).unwrap_err().kind(), ErrorKind::Invalid);
    appender.append(&[b"y"]).unwrap();
    log.sync().unwrap();
}

/// Goal: a closed log is accepted in the strict mode, across several openings.
#[test]
fn closed_logs_are_strict() {
    let fs = memory();
    for round in 0..4_u64 {
        let found = recover(&fs, Lsn::ZERO, Mode::Strict).unwrap();
        assert_eq!(found.numbers(), (0..round * 100).collect::<Vec<_>>());
        let (_log, mut appender) = Log::open(&fs, &small(), found.tail, &mut SeededRng::new(round)).unwrap();
        append(&mut appender, round * 100..round * 100 + 100).unwrap();
        appender.close().unwrap();
    }
}

/// Goal: the same holds in a recycled segment: old bytes right after the mark are not damage.
/// Method: records that end, with the mark, exactly where no zeros have been written yet.
#[test]
fn closed_logs_are_strict_in_recycled_segments() {
    let fs = memory();
    let options = small().segment_bytes(32 << 10).first_segment_bytes(32 << 10);
    let (log, mut appender, _) = open(&fs, &options, 1).unwrap();
    while appender.position() < Lsn::from(2 << 32) {
        appender.append(&[&[7; 1000]]).unwrap();
    }
    log.release_before(appender.position()).unwrap();
    appender.rotate().unwrap();
    assert_eq!(log.stats().recycled, 1);
    // With heads of 16 bytes, these two and the mark, which has 16 more bytes, fill two windows
    // of 4096.
    appender.append(&[&[8; 4064]]).unwrap();
    appender.append(&[&[9; 4064]]).unwrap();
    let end = appender.position().offset() as usize + 32;
    appender.close().unwrap();
    let newest = files(&*fs).pop().unwrap().1;
    assert_eq!(end, 12_288);
    assert!(newest[end..end + 16].iter().any(|&byte| byte != 0), "nothing is left of the segment before");
    for mode in [Mode::Strict, Mode::TolerateTornTail, Mode::Salvage] {
        let found = recover(&fs, Lsn::ZERO, mode).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        assert!(found.damage.is_empty(), "{mode:?}: {:?}", found.damage);
        let payloads: Vec<usize> = found.records.iter().map(|(_, payload)| payload.len()).collect();
        assert!(payloads.ends_with(&[4064, 4064]), "{payloads:?}");
    }
}

/// Goal: a log may be read while it is written, and each reader sees a prefix. Method: read after
/// every append, on segments that rotate and are released.
#[test]
fn reading_beside_a_writer() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let mut first = 0;
    let mut positions = Vec::new();
    for number in 0..200 {
        positions.push(appender.append(&[&payload(number)]).unwrap());
        if number % 37 == 36 {
            appender.rotate().unwrap();
            log.release_before(positions[number as usize]).unwrap();
            first = number + 1;
        }
        let found = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap();
        assert_eq!(found.numbers(), (first..=number).collect::<Vec<_>>());
    }
}
