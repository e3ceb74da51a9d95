//! The life of segments: rotation, release and recycling.

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, FaultOptions, Operation};

use super::*;

/// Goal: segments rotate when they are full and on request, an empty one does not rotate, and
/// positions are accurate.
#[test]
fn rotation() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let start = appender.position();
    assert_eq!((start.segment(), appender.rotate().unwrap()), (1, start), "nothing to rotate");
    appender.append(&[b"x"]).unwrap();
    let second = appender.rotate().unwrap();
    assert_eq!((second.segment(), second.offset()), (2, start.offset()));
    let lsns = append(&mut appender, 0..200).unwrap();
    assert!(lsns.last().unwrap().segment() > 3);
    assert!(lsns.windows(2).all(|pair| pair[1].segment() - pair[0].segment() <= 1));
    assert_eq!(log.stats().segments, u64::from(lsns.last().unwrap().segment()));
    log.sync().unwrap();
    assert_eq!(recover(&fs, second, Mode::Strict).unwrap().numbers(), (0..200).collect::<Vec<_>>());
    // From the end of a segment, the next record is in the following one.
    let edge = lsns.windows(2).find(|pair| pair[0].segment() < pair[1].segment()).unwrap()[0];
    let index = lsns.iter().position(|lsn| *lsn == edge).unwrap();
    assert_eq!(recover(&fs, edge, Mode::Strict).unwrap().records.len(), 199 - index);
}

/// Goal: records larger than a segment work, before and after small ones, and their files are not
/// kept for recycling.
#[test]
fn large_records() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small().background(true), 1).unwrap();
    let mut expected = Vec::new();
    for (index, len) in [10, 4_000, 100_000, 5, 4_081, 1_000_000, 8_000, 1].into_iter().enumerate() {
        let bytes = vec![index as u8 + 1; len];
        expected.push((appender.append(&[&bytes]).unwrap(), bytes));
    }
    appender.rotate().unwrap();
    log.sync().unwrap();
    assert_eq!(recover(&fs, Lsn::ZERO, Mode::Strict).unwrap().records, expected);
    log.release_before(appender.position()).unwrap();
    drop(log);
    let kept: Vec<_> = files(&*fs).into_iter().filter(|(_, bytes)| bytes.len() != SMALL as usize).collect();
    assert!(kept.is_empty(), "{:?}", names(&*fs));
}

/// Goal: released segments are recycled, no more of them are kept than configured, and bytes of
/// their earlier uses are never taken for records. Method: many rounds of filling and releasing; in
/// each, recover and count the files.
#[test]
fn recycling() {
    for recycled_max in [0, 1, 3] {
        let fs = memory();
        let (log, mut appender, _) =
            open(&fs, &small().segment_bytes(8 * 4096).recycled_max(recycled_max), 1).unwrap();
        let mut first = 0;
        for round in 0..18 {
            let numbers_end = (round + 1) * 300;
            append(&mut appender, round * 300..numbers_end).unwrap();
            // If stale records were accepted, they would now claim that something had been synced.
            log.sync().unwrap();
            append(&mut appender, 1 << 32..(1 << 32) + 1).unwrap();
            for mode in [Mode::TolerateTornTail, Mode::Strict, Mode::Salvage] {
                let found = recover(&fs, Lsn::ZERO, mode).unwrap().numbers();
                let numbers: Vec<u64> = found.into_iter().filter(|number| number >> 32 == 0).collect();
                assert_eq!(numbers, (first..numbers_end).collect::<Vec<_>>());
            }
            if round % 3 == 2 {
                let start = appender.rotate().unwrap();
                log.release_before(start).unwrap();
                first = numbers_end;
                assert_eq!(names(&*fs).len(), 1 + recycled_max, "{:?}", names(&*fs));
                assert!(recover(&fs, start, Mode::TolerateTornTail).unwrap().records.is_empty());
            }
        }
        let stats = log.stats();
        assert_eq!(stats.recycled > 0, recycled_max > 0, "{stats:?}");
    }
}

/// Goal: a log with few records takes little space, one with many uses segments of the full size,
/// and a trimmed one is small again; all records are there.
#[test]
fn growth() {
    const FULL: u32 = 4 * SMALL;
    let fs = memory();
    let options = small().segment_bytes(FULL).first_segment_bytes(SMALL).recycled_max(2);
    let (log, mut appender, _) = open(&fs, &options, 1).unwrap();
    let sizes = || -> Vec<u32> { files(&*fs).iter().map(|(_, bytes)| bytes.len() as u32).collect() };
    for round in 0..2 {
        assert_eq!(sizes(), [SMALL], "round {round}");
        let start = appender.position();
        let mut count = 0;
        while sizes().len() < 6 {
            appender.append(&[&[7; 1000]]).unwrap();
            count += 1;
        }
        assert_eq!(sizes(), [SMALL, 2 * SMALL, FULL, FULL, FULL, FULL], "round {round}");
        assert_eq!(recover(&fs, start, Mode::Strict).unwrap().records.len(), count);
        // Two of the four segments of the full size are kept.
        log.release_before(appender.rotate().unwrap()).unwrap();
        assert_eq!(sizes(), [FULL; 3]);
        log.trim().unwrap();
        assert_eq!(sizes(), [FULL], "the one that is written");
        let end = appender.append(&[b"last"]).unwrap();
        appender.rotate().unwrap();
        log.release_before(end).unwrap();
        let found = recover(&fs, end, Mode::Strict).unwrap();
        assert!(found.records.is_empty(), "{:?}", found.records);
    }
}

/// Goal: after [`Log::trim`], the prepared segment is as small as the rest, its number is not lost,
/// and it is used. Method: trim with a large segment prepared, also with a power loss at each
/// operation.
#[test]
fn trimming_what_is_prepared() {
    const FULL: usize = 64 << 10;
    let fs = FaultFs::new(FaultOptions::seeded(seed(44)));
    let disk = shared(&fs);
    let options = small().segment_bytes(FULL as u32).first_segment_bytes(SMALL).background(true);
    let (log, mut appender, _) = open(&disk, &options, 1).unwrap();
    let prepared = |number: u32, bytes: usize| {
        // The helper does its work, or the test hangs.
        let path = PathBuf::from(DIR).join(format!("{number:06}.wal"));
        while !fs.exists(&path).unwrap() || fs.metadata(&path).unwrap().len != bytes as u64 {
            std::thread::yield_now();
        }
    };
    let mut numbers = 0..0;
    while appender.position().segment() < 5 {
        append(&mut appender, numbers.end..numbers.end + 1).unwrap();
        numbers.end += 1;
    }
    log.sync().unwrap();
    let next = appender.position().segment() + 1;
    prepared(next, FULL);
    fs.capture_crash_points();
    log.trim().unwrap();
    prepared(next, SMALL as usize);
    let points = fs.take_crash_points();
    assert!(points.len() > 2, "{}", points.len());
    for point in points {
        for image in [CrashImage::None, CrashImage::All] {
            let disk: Arc<dyn Fs> = Arc::new(point.image(image));
            let found = recover(&disk, Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers();
            assert_eq!(found, numbers.clone().collect::<Vec<_>>());
        }
    }
    assert_eq!(appender.rotate().unwrap().segment(), next);
    append(&mut appender, numbers.end..numbers.end + 3).unwrap();
    log.sync().unwrap();
    let found = recover(&disk, Lsn::ZERO, Mode::Strict).unwrap().numbers();
    assert_eq!(found, (0..numbers.end + 3).collect::<Vec<_>>());
}

/// Goal: a prepared segment that cannot be removed costs only its space: the next segment uses its
/// number and its file, and all appended records are found. Method: its removal fails, then records
/// up to several segments later, with and without a helper.
#[test]
fn a_prepared_segment_that_stays() {
    for helper in [false, true] {
        let fs = FaultFs::new(FaultOptions::seeded(seed(45)));
        let disk = shared(&fs);
        let options = small().segment_bytes(64 << 10).first_segment_bytes(SMALL).background(helper);
        let (log, mut appender, _) = open(&disk, &options, 1).unwrap();
        let mut count = 0;
        let mut fill = |appender: &mut Appender, to: u32| {
            while appender.position().segment() < to {
                append(appender, count..count + 1).unwrap();
                count += 1;
            }
            count
        };
        fill(&mut appender, 5);
        let next = PathBuf::from(DIR).join("000006.wal");
        // The helper does its work, or the test hangs.
        while helper && fs.metadata(&next).map_or(0, |file| file.len) != 64 << 10 {
            std::thread::yield_now();
        }
        let removes = fs.operation_count_of(Operation::Remove);
        fs.inject(Rule::nth(Operation::Remove, removes, Fault::Io));
        assert_eq!(log.trim().is_err(), helper, "only a helper prepares ahead");
        fill(&mut appender, 6);
        assert_eq!(appender.position().segment(), 6, "numbers have no holes");
        let appended = fill(&mut appender, 9);
        log.sync().unwrap();
        let found = recover(&disk, Lsn::ZERO, Mode::Strict).unwrap().numbers();
        assert_eq!(found, (0..appended).collect::<Vec<_>>(), "helper: {helper}");
    }
}

/// Goal: a release removes only complete segments before a position, never the current one nor one
/// with an open reservation.
#[test]
fn release_is_careful() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let held = appender.reserve(8).unwrap();
    let lsns = append(&mut appender, 0..100).unwrap();
    let last = *lsns.last().unwrap();
    log.release_before(last).unwrap();
    assert_eq!(names(&*fs)[0], "000001.wal", "a reservation in it is out");
    drop(held);
    let inside = lsns.iter().find(|lsn| lsn.segment() == 3).unwrap();
    log.release_before(*inside).unwrap();
    let found = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap();
    assert_eq!(found.records.first().unwrap().0, *inside, "segment 3 is whole");
    log.release_before(Lsn::from(u64::MAX)).unwrap();
    let found = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap();
    assert!(found.records.iter().all(|(lsn, _)| lsn.segment() == last.segment()));
    // Released records count as synced, so no thread waits for them.
    assert!(log.synced() > *inside);
    log.sync_to(*inside).unwrap();
    assert!(log.synced() < last);
}

/// Goal: when the caller knows that nothing was released, every missing segment before the newest
/// is detected, including the oldest. A segment released before the newest was begun does not count
/// as missing. Method: remove each in turn, from a log and from one that was reopened with a part
/// of it released.
#[test]
fn segments_that_are_gone() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let lsns = append(&mut appender, 0..300).unwrap();
    log.sync().unwrap();
    let recover_all = |files: &[(PathBuf, Vec<u8>)], known: bool| {
        let options = RecoveryOptions::default().nothing_released(known);
        let mut recovery = Recovery::open(&disk(files), Path::new(DIR), Lsn::ZERO, &options)?;
        let mut count = 0;
        while recovery.next()?.is_some() {
            count += 1;
        }
        Ok::<_, Error>(count)
    };
    let each_is_missed = |whole: &[(PathBuf, Vec<u8>)], count: u64| {
        assert_eq!(recover_all(whole, true).unwrap(), count);
        for index in 0..whole.len() - 1 {
            let mut rest = whole.to_vec();
            let (gone, _) = rest.remove(index);
            let error = recover_all(&rest, true).unwrap_err();
            assert!(is_corruption(&error), "{}: {error}", gone.display());
            assert!(recover_all(&rest, false).unwrap() < count, "{}", gone.display());
        }
    };
    let whole = files(&*fs);
    assert!(whole.len() > 4, "{:?}", names(&*fs));
    each_is_missed(&whole, 300);
    // Some are released, and a newer segment records that.
    log.release_before(lsns[150]).unwrap();
    log.trim().unwrap();
    appender.rotate().unwrap();
    append(&mut appender, 300..301).unwrap();
    log.sync().unwrap();
    let first = files(&*fs).len();
    assert!(first > 3 && first <= whole.len(), "{:?}", names(&*fs));
    let kept = 301 - lsns.iter().take_while(|lsn| lsn.segment() < lsns[151].segment()).count() as u64;
    each_is_missed(&files(&*fs), kept);
}

/// Goal: no position is handed out twice, wherever the opening of a log without records is
/// interrupted. Method: everything is released except the newest segment, which is empty, and
/// truncated by closing the log; crash images at each operation of the next opening.
#[test]
fn positions_only_rise() {
    for is_left in [false, true] {
        let fs = FaultFs::new(FaultOptions::seeded(5));
        let disk = shared(&fs);
        let (log, mut appender, _) = open(&disk, &small(), 1).unwrap();
        append(&mut appender, 0..100).unwrap();
        let seen = appender.rotate().unwrap();
        log.sync_to(seen).unwrap();
        log.release_before(seen).unwrap();
        if is_left {
            log.close(appender).unwrap();
        }
        drop(log);
        let reached =
            |disk: &Arc<dyn Fs>| recover(disk, Lsn::ZERO, Mode::TolerateTornTail).unwrap().tail.reached();
        assert_eq!(reached(&disk), seen);
        fs.capture_crash_points();
        drop(open(&disk, &small(), 2).unwrap());
        let mut images = 0;
        for point in fs.take_crash_points() {
            for (image, crashed) in point.images(5) {
                let context = format!("{image} of {}, left: {is_left}", point.operation());
                let crashed = shared(&crashed);
                assert!(reached(&crashed) >= seen, "{context}: {}", reached(&crashed));
                let (_log, appender, _) = open(&crashed, &small(), 3).unwrap();
                assert!(appender.position() > seen, "{context}: {}", appender.position());
                images += 1;
            }
        }
        assert!(images > 30, "{images}");
    }
}

/// Goal: opening takes over the leftovers of earlier processes: free files, prepared ones, segments
/// before the start.
#[test]
fn leftovers() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small().recycled_max(9), 1).unwrap();
    let lsns = append(&mut appender, 0..300).unwrap();
    log.release_before(lsns[100]).unwrap();
    log.sync().unwrap();
    drop((log, appender));
    let blank = (PathBuf::from(DIR).join("000099.wal"), vec![0; SMALL as usize]);
    let stranger = (PathBuf::from(DIR).join("notes.txt"), b"keep".to_vec());
    let mut all = files(&*fs);
    all.extend([blank, stranger]);
    let fs = disk(&all);
    let tail = recover(&fs, lsns[250], Mode::TolerateTornTail).unwrap().tail;
    let (log, mut appender) = Log::open(&fs, &small().recycled_max(2), tail, &mut SeededRng::new(2)).unwrap();
    assert_eq!(appender.position().segment(), 100, "no number is used twice");
    append(&mut appender, 300..310).unwrap();
    assert_eq!(
        recover(&fs, lsns[250], Mode::TolerateTornTail).unwrap().numbers(),
        (251..310).collect::<Vec<_>>()
    );
    assert_eq!(log.stats().recycled, 1);
    let free = names(&*fs).iter().filter(|name| name.ends_with(".free")).count();
    assert!(free <= 2 && names(&*fs).contains(&"notes.txt".to_owned()), "{:?}", names(&*fs));
    drop((log, appender));
    // Once more, with nothing to do.
    let (_log, appender, found) = open(&fs, &small(), 3).unwrap();
    assert_eq!((found.last(), appender.position().segment()), (Some(&309), 101));
}

/// Goal: closing a log gives back its allocated space and keeps its records complete: after a power
/// loss at any moment of it, for a concurrent reader, and for the next opening. Method: synced
/// records, a prepared and a kept segment, crash images at each operation, and a recovery that
/// began before.
#[test]
fn closing_gives_room_back() {
    let fs = FaultFs::new(FaultOptions::seeded(3));
    let disk = shared(&fs);
    let (log, mut appender, _) = open(&disk, &small().recycled_max(2), 1).unwrap();
    let lsns = append(&mut appender, 0..300).unwrap();
    log.release_before(lsns[100]).unwrap();
    appender.rotate().unwrap();
    log.sync_to(append(&mut appender, 300..303).unwrap()[2]).unwrap();
    let total = |fs: &dyn Fs| files(fs).iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    let before = total(&fs);
    let mut reader =
        Recovery::open(&disk, Path::new(DIR), lsns[100], &RecoveryOptions::default().read_bytes(4096))
            .unwrap();
    recover(&disk, lsns[250], Mode::Strict).unwrap();
    fs.capture_crash_points();
    log.close(appender).unwrap();
    drop(log);
    recover(&disk, lsns[250], Mode::Strict).unwrap();
    assert!(!names(&fs).iter().any(|name| name.ends_with(".free")));
    let last = files(&fs).into_iter().next_back().unwrap();
    let (freed, last) = (before - total(&fs), last.1.len());
    assert!(freed > u64::from(SMALL) && last < 4096 + 600, "{freed} freed, {last} are left");
    let mut points = 0;
    for point in fs.take_crash_points() {
        for (image, disk) in point.images(3) {
            let found = open(&shared(&disk), &small(), 2).unwrap().2;
            assert!(found.ends_with(&(101..303).collect::<Vec<_>>()), "{image} of {}", point.operation());
            points += 1;
        }
    }
    assert!(points >= 10, "{points}");
    let mut read = 0;
    while let Some(record) = reader.next().unwrap() {
        read = number_of(record.payload);
    }
    assert_eq!(read, 302);
    let (_log, mut appender, found) = open(&disk, &small(), 4).unwrap();
    assert!(found.ends_with(&[300, 301, 302]));
    append(&mut appender, 303..305).unwrap();
    assert_eq!(
        recover(&disk, lsns[250], Mode::TolerateTornTail).unwrap().numbers(),
        (251..305).collect::<Vec<_>>()
    );
}

/// Goal: a file that a crash left with two names is not written as two files. Method: the free name
/// of a live segment, and two free names of one file.
#[test]
fn files_with_two_names() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    append(&mut appender, 0..20).unwrap();
    log.sync().unwrap();
    drop((log, appender));
    let at = |name: &str| Path::new(DIR).join(name);
    fs.hard_link(&at("000001.wal"), &at("000001.free")).unwrap();
    fs.open(&at("000007.free"), OpenOptions::create())
        .unwrap()
        .write_all_at(&[0; SMALL as usize], 0)
        .unwrap();
    fs.hard_link(&at("000007.free"), &at("000008.free")).unwrap();
    let (_log, mut appender, found) = open(&fs, &small().recycled_max(9), 2).unwrap();
    assert_eq!(found, (0..20).collect::<Vec<_>>());
    append(&mut appender, 20..200).unwrap();
    let found = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap();
    assert_eq!(found.numbers(), (0..200).collect::<Vec<_>>());
}

/// Goal: a log that is needed but missing is damage, not an empty log.
#[test]
fn missing_segments() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let lsns = append(&mut appender, 0..200).unwrap();
    log.sync().unwrap();
    let whole = files(&*fs);
    let from = lsns[10];
    for (missing, (path, _)) in whole.iter().enumerate() {
        let rest: Vec<_> = whole.iter().filter(|(other, _)| other != path).cloned().collect();
        let found = recover(&disk(&rest), from, Mode::TolerateTornTail);
        if missing + 1 < whole.len() {
            assert!(is_corruption(&found.unwrap_err()), "without {}", path.display());
        }
        let salvaged = recover(&disk(&rest), from, Mode::Salvage).unwrap();
        let number = missing as u32 + 1;
        let expected = lsns.iter().enumerate().filter(|(_, lsn)| **lsn > from && lsn.segment() != number);
        assert_eq!(salvaged.numbers(), expected.map(|(index, _)| index as u64).collect::<Vec<_>>());
    }
    let nothing = recover(&disk(&[]), from, Mode::TolerateTornTail);
    assert!(is_corruption(&nothing.unwrap_err()));
}

/// Goal: segments of another log or of a later version are refused.
#[test]
fn strangers() {
    let make = |seed: u64| {
        let fs = memory();
        let (log, mut appender, _) = open(&fs, &small(), seed).unwrap();
        append(&mut appender, 0..100).unwrap();
        log.sync().unwrap();
        (log.id(), files(&*fs))
    };
    let ((id, ours), (other_id, theirs)) = (make(1), make(2));
    assert_ne!(id, other_id);
    let mut mixed = ours.clone();
    mixed[0] = theirs[0].clone();
    let error = recover(&disk(&mixed), Lsn::ZERO, Mode::TolerateTornTail).unwrap_err();
    assert!(is_corruption(&error) && error.to_string().contains("000001.wal"), "{error}");
    let mut later = ours;
    for at in [0, 2048] {
        later[0].1[at + 8] = 3;
        let sum = cairn_codec::checksum::xxh3_64(&later[0].1[at..at + 56]);
        later[0].1[at + 56..at + 64].copy_from_slice(&sum.to_le_bytes());
    }
    let error = recover(&disk(&later), Lsn::ZERO, Mode::Salvage).unwrap_err();
    assert_eq!(error.kind(), cairn_vfs::ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 3"), "{error}");
}

/// Goal: a log is closed with its mark even when the disk has not one free byte, so that damage to
/// its last record is detected; and segments have the configured size or fail, unless smaller ones
/// are allowed. Method: append until there is no space for the next segment, with records of many
/// lengths; flip a bit of the last record after the log was closed.
#[test]
fn closed_on_a_full_disk() {
    for len in 0..40 {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let fs = shared(&disk);
        let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
        appender.append(&[b"first"]).unwrap();
        disk.set_quota(Some(disk.used_bytes() + 4096));
        let payload = vec![7; len];
        let mut last = appender.position();
        let error = loop {
            match appender.append(&[&payload]) {
                Ok(lsn) => last = lsn,
                Err(error) => break error,
            }
        };
        assert!(error.is_full(), "{error}");
        if len % 2 == 0 {
            // Not even a small one fits.
            log.allow_small_segments(true);
            assert!(appender.append(&[&payload]).is_err());
        }
        log.close(appender).unwrap();
        assert!(recover(&fs, Lsn::ZERO, Mode::Strict).is_ok(), "{len}");
        let path = Path::new(DIR).join(format!("{:06}.wal", last.segment()));
        assert!(disk.flip_bit(&path, u64::from(last.offset()) - 16, 3));
        let told = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).map(|_| ()).unwrap_err();
        assert!(is_corruption(&told), "{len}: {told}");
    }
}
