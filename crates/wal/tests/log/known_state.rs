//! Facts about a log that its owner stores elsewhere: with them, missing ends are detected and
//! foreign segments recognised.

use cairn_wal::Known;

use super::*;

/// Creates a closed log of about four segments. Returns it with the facts known about it and the
/// positions of its records.
fn closed(seed: u64, note: [u64; 2]) -> (Arc<dyn Fs>, Known, Vec<Lsn>) {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), seed).unwrap();
    log.set_note(note);
    let lsns = append(&mut appender, 0..150).unwrap();
    log.close(appender).unwrap();
    (fs, log.known(), lsns)
}

/// Returns the number of records and the note.
fn read(files: &[(PathBuf, Vec<u8>)], known: Known, mode: Mode) -> Result<(usize, [u64; 2], Vec<Damage>)> {
    let options = RecoveryOptions::default().known(known).mode(mode);
    let mut recovery = Recovery::open(&disk(files), Path::new(DIR), Lsn::ZERO, &options)?;
    let mut count = 0;
    while recovery.next()?.is_some() {
        count += 1;
    }
    let damage = recovery.damage().to_vec();
    Ok((count, recovery.finish()?.note(), damage))
}

/// Goal: for a closed log, anything missing at the end is detected and the file named. Method: the
/// newest segments removed, from one to all; the last one truncated at every record and at every
/// page, and zeroed from every record on.
#[test]
fn missing_end_of_a_closed_log_is_detected() {
    let (fs, known, lsns) = closed(1, [3, 4]);
    let whole = files(&*fs);
    assert!(whole.len() > 3 && known.reached > *lsns.last().unwrap(), "the mark is behind the last record");
    assert_eq!(read(&whole, known, Mode::TolerateTornTail).unwrap().0, lsns.len());
    let newest = whole.last().unwrap().0.clone();
    for count in 0..whole.len() {
        for mode in [Mode::TolerateTornTail, Mode::Strict] {
            let error = read(&whole[..count], known, mode).unwrap_err();
            let says = error.to_string();
            assert!(is_corruption(&error) && says.contains(newest.to_str().unwrap()), "{count}: {says}");
        }
        let (found, _, damage) = read(&whole[..count], known, Mode::Salvage).unwrap();
        assert!(found < lsns.len() && !damage.is_empty(), "{count}");
    }
    let last = whole.last().unwrap().1.len();
    let ends = lsns.iter().filter(|lsn| lsn.segment() == known.reached.segment());
    for at in ends.map(|lsn| lsn.offset() as usize).chain([0, 64, 100, 4096, 4100]).filter(|at| *at < last) {
        for cut in [true, false] {
            let mut torn = whole.clone();
            let bytes = &mut torn.last_mut().unwrap().1;
            if cut {
                bytes.truncate(at)
            } else {
                bytes[at..].fill(0)
            }
            let error = read(&torn, known, Mode::TolerateTornTail).expect_err(&at.to_string());
            assert!(
                is_corruption(&error) && error.to_string().contains(newest.to_str().unwrap()),
                "{at}: {error}"
            );
        }
    }
}

/// Goal: a log that was not closed and whose segment was truncated is distinguished from one torn
/// by a crash, whatever is known of it. Method: the last segment of a log that was never synced,
/// truncated at every eighth byte, and each earlier one below its end.
#[test]
fn truncated_segment_differs_from_a_torn_one() {
    let fs = memory();
    let (_log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let lsns = append(&mut appender, 0..150).unwrap();
    let whole = files(&*fs);
    for (index, (path, bytes)) in whole.iter().enumerate() {
        let number = index as u32 + 1;
        let written = lsns.iter().rfind(|lsn| lsn.segment() == number).unwrap().offset() as usize;
        let is_last = index + 1 == whole.len();
        for at in (4104..if is_last { bytes.len() } else { written }).step_by(8) {
            let mut cut = whole.clone();
            cut[index].1.truncate(at);
            let error = recover(&disk(&cut), Lsn::ZERO, Mode::TolerateTornTail).expect_err(&at.to_string());
            let says = error.to_string();
            assert!(is_corruption(&error) && says.contains(path.to_str().unwrap()), "{at}: {says}");
            assert!(says.contains("the file was truncated"), "{at}: {says}");
        }
    }
}

/// Goal: segments of another log, or of another continuation of this one, are not accepted. Method:
/// each file of a log replaced by, or joined by, the file with the same number of another log with
/// as many records; a log with the same id whose last segment was written by another process.
#[test]
fn foreign_segments_are_refused() {
    let (fs, known, lsns) = closed(1, [1, 2]);
    let (other, of_other, _) = closed(2, [1, 2]);
    let (whole, others) = (files(&*fs), files(&*other));
    assert!(known.log_id != of_other.log_id && known.reached == of_other.reached);
    for index in 0..whole.len() {
        let mut mixed = whole.clone();
        mixed[index] = others[index].clone();
        let error = read(&mixed, known, Mode::TolerateTornTail).unwrap_err();
        assert!(
            is_corruption(&error) && error.to_string().contains(others[index].0.to_str().unwrap()),
            "{error}"
        );
        let (found, _, damage) = read(&mixed, known, Mode::Salvage).unwrap();
        assert!(found < lsns.len() && damage.iter().any(|it| it.file == others[index].0), "{damage:?}");
    }
    let error = read(&others, known, Mode::TolerateTornTail).unwrap_err();
    assert!(is_corruption(&error), "all of them: {error}");
    let none = Known { log_id: 77, ..Known::default() };
    assert!(is_corruption(&read(&whole, none, Mode::TolerateTornTail).unwrap_err()), "there was none");
    // Two logs that continue from the same files.
    let [one, two] = [7, 8].map(|seed| {
        let fs = disk(&whole);
        let (log, mut appender, found) = open(&fs, &small(), seed).unwrap();
        append(&mut appender, found.len() as u64..found.len() as u64 + 10).unwrap();
        log.close(appender).unwrap();
        (files(&*fs), log.known())
    });
    assert!(one.1.log_id == two.1.log_id && one.1.salt != two.1.salt);
    let mut mixed = one.0.clone();
    *mixed.last_mut().unwrap() = two.0.last().unwrap().clone();
    assert_eq!(read(&one.0, one.1, Mode::TolerateTornTail).unwrap().0, lsns.len() + 10);
    let error = read(&mixed, one.1, Mode::TolerateTornTail).unwrap_err();
    assert!(is_corruption(&error) && error.to_string().contains("its salt differs"), "{error}");
}

/// Goal: a segment that another process appended to a copy of the same log is not accepted,
/// although log id and number match and no facts are known.
/// Method: two logs continue from the same files over several segments; each new segment of the
/// first log, except its last, is replaced by the other's.
#[test]
fn segments_of_a_diverged_copy_are_refused() {
    let (fs, ..) = closed(1, [0; 2]);
    let whole = files(&*fs);
    let went_on = |seed: u64| {
        let fs = disk(&whole);
        let (log, mut appender, found) = open(&fs, &small(), seed).unwrap();
        for number in found.len() as u64..found.len() as u64 + 150 {
            append(&mut appender, number..number + 1).unwrap();
            log.sync().unwrap();
        }
        files(&*fs)
    };
    let (one, two) = (went_on(7), went_on(8));
    assert!(one.len() == two.len() && one.len() > whole.len() + 3, "{} and {}", one.len(), two.len());
    assert!(recover(&disk(&one), Lsn::ZERO, Mode::TolerateTornTail).is_ok());
    for index in whole.len()..one.len() - 1 {
        let mut mixed = one.clone();
        mixed[index] = two[index].clone();
        let error = recover(&disk(&mixed), Lsn::ZERO, Mode::TolerateTornTail).map(|_| ()).unwrap_err();
        let follower = one[index + 1].0.to_str().unwrap();
        assert!(is_corruption(&error) && error.to_string().contains(follower), "{error}");
    }
}

/// Goal: the known facts hold after everything that may happen to a log: crashes while it is
/// reopened, releases, logs without records. Method: many openings of one log, each with the facts
/// left by the one before, killed or closed, with all, some or none of it released.
#[test]
fn known_state_survives_reopening() {
    let mut rng = SeededRng::new(seed(31));
    for round in 0..rounds(40, 1000) {
        let fs = memory();
        let mut known = Known { log_id: 5, ..Known::default() };
        let (mut next, mut from) = (0, Lsn::ZERO);
        for life in 0..12 {
            let context = format!("round {round}, life {life}, {known:?}, from {from}");
            let options = RecoveryOptions::default().known(known);
            let mut recovery = Recovery::open(&fs, Path::new(DIR), from, &options)
                .unwrap_or_else(|error| panic!("{context}: {error}"));
            while let Some(record) = recovery.next().unwrap_or_else(|error| panic!("{context}: {error}")) {
                next = number_of(record.payload) + 1;
            }
            let mut tail = recovery.finish().unwrap();
            assert!(tail.reached().max(from) >= known.reached, "{context}");
            assert_eq!(tail.note()[0], if life == 0 { 0 } else { life - 1 }.max(tail.note()[0]), "{context}");
            tail.set_note([life, 0]);
            let (log, mut appender) =
                Log::open(&fs, &small(), tail, &mut SeededRng::new(round * 100 + life)).unwrap();
            assert_eq!(log.id(), 5, "{context}");
            let count = [0, 0, 1, 30][rng.below(4) as usize];
            let lsns = append(&mut appender, next..next + count).unwrap();
            if rng.chance(0.5) {
                log.sync().unwrap();
            }
            if rng.chance(0.3) {
                appender.note().unwrap();
            }
            if rng.chance(0.3) {
                from = lsns.last().copied().unwrap_or(from);
                if rng.chance(0.5) {
                    appender.rotate().unwrap();
                }
                log.release_before(from).unwrap();
            }
            if rng.chance(0.5) {
                log.close(appender).unwrap();
            }
            known = log.known();
        }
    }
}

/// Goal: the owner's newest note comes back: from a header, from a record of its own, and from the
/// closing mark. Method: each in turn.
#[test]
fn notes_come_back() {
    let fs = memory();
    let note = || recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap().tail.note();
    assert_eq!(note(), [0; 2]);
    let mut tail = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap().tail;
    tail.set_note([1, 1]);
    let (log, mut appender) = Log::open(&fs, &small(), tail, &mut SeededRng::new(1)).unwrap();
    assert_eq!(note(), [1, 1], "by the header");
    log.set_note([1, 2]);
    append(&mut appender, 0..3).unwrap();
    assert_eq!(note(), [1, 1], "it is in no file yet");
    appender.note().unwrap();
    append(&mut appender, 3..4).unwrap();
    assert_eq!(note(), [1, 2], "by a record");
    log.set_note([1, 3]);
    appender.rotate().unwrap();
    assert_eq!(note(), [1, 3], "by the next header");
    append(&mut appender, 4..5).unwrap();
    log.set_note([2, 9]);
    log.close(appender).unwrap();
    assert_eq!(note(), [2, 9], "by the mark");
    assert_eq!(
        recover(&fs, Lsn::ZERO, Mode::Strict).unwrap().numbers(),
        [0, 1, 2, 3, 4],
        "and none is a record"
    );
}
