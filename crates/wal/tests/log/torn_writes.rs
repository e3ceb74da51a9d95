//! Torn ends: zeroed or overwritten from every byte on. Truncated files are detected separately,
//! see `known_state.rs`.

use super::*;

/// The bytes after a tear.
#[derive(Debug, Clone, Copy)]
enum Tear {
    Zeros,
    Garbage,
    /// Bytes of an older segment, as in a recycled file.
    Stale,
}

const TEARS: [Tear; 3] = [Tear::Zeros, Tear::Garbage, Tear::Stale];

impl Tear {
    fn strike(self, bytes: &mut [u8], at: usize, stale: &[u8], rng: &mut SeededRng) {
        match self {
            Tear::Zeros => bytes[at..].fill(0),
            Tear::Garbage => rng.fill(&mut bytes[at..]),
            Tear::Stale => bytes[at..].copy_from_slice(&stale[at..]),
        }
    }
}

/// Goal: whatever follows a tear, every record before it comes back and nothing else; and the log
/// continues from there. Method: tear the last of three segments at every byte, in three ways.
#[test]
fn the_last_segment_torn_at_every_byte() {
    let mut rng = SeededRng::new(seed(11));
    let fs = memory();
    let (_log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let mut lsns = Vec::new();
    while lsns.last().is_none_or(|lsn: &Lsn| lsn.segment() < 3 || lsn.offset() < 5500) {
        lsns.push(appender.append(&[&payload(lsns.len() as u64)]).unwrap());
    }
    let whole = files(&*fs);
    let stale = whole[1].1.clone();
    let mut tears = 0;
    for at in 4096..appender.position().offset() as usize + 40 {
        for tear in TEARS {
            let mut torn = whole.clone();
            tear.strike(&mut torn[2].1, at, &stale, &mut rng);
            let fs = disk(&torn);
            let context = format!("{tear:?} at {at}");
            let ends = |lsn: &&Lsn| lsn.segment() < 3 || lsn.offset() as usize <= at;
            let least = lsns.iter().filter(ends).count();
            let found =
                recover(&fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap_or_else(|e| panic!("{context}: {e}"));
            let numbers = found.numbers();
            assert!(
                numbers.len() == least || numbers.len() == least + 1,
                "{context}: {} of {least}",
                numbers.len()
            );
            if numbers.len() > least {
                // The tear fell into padding, or changed no relevant byte.
                assert!((lsns[least].offset() as usize) < at + 8, "{context}");
            }
            assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{context}");
            if at % 7 == 0 {
                goes_on(&fs, &numbers, &context);
            }
            tears += 1;
        }
    }
    println!("torn ends: {tears}");
    assert!(tears > 3000, "{tears}");
}

/// Asserts that the log can be opened, written and read again, repeatedly.
fn goes_on(fs: &Arc<dyn Fs>, numbers: &[u64], context: &str) {
    let next = numbers.len() as u64;
    for round in 0..2 {
        let (log, mut appender, found) =
            open(fs, &small(), 7 + round).unwrap_or_else(|e| panic!("{context}: {e}"));
        assert_eq!(found.len() as u64, next + round * 3, "{context}");
        append(&mut appender, next + round * 3..next + round * 3 + 3).unwrap();
        log.sync().unwrap();
    }
    let found = recover(fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers();
    assert!(found.into_iter().eq(0..next + 6), "{context}");
}

/// Goal: a tear in a segment that others follow ends the log there if none of the lost records had
/// been synced, and is damage otherwise. Method: three segments with nothing synced, all of the
/// first, or a part of the second; tear the second at every byte.
#[test]
fn a_segment_in_the_middle_torn() {
    for synced in [0, 1, 2] {
        let fs = memory();
        let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
        let mut lsns: Vec<Lsn> = Vec::new();
        while lsns.last().is_none_or(|lsn| lsn.segment() < 3 || lsn.offset() < 6000) {
            lsns.push(appender.append(&[&payload(lsns.len() as u64)]).unwrap());
            let last = lsns.last().unwrap();
            let due = (synced == 1 && last.segment() == 2)
                || (synced == 2 && last.segment() == 2 && last.offset() > 6000);
            if due && log.synced() == Lsn::ZERO {
                log.sync_to(lsns[lsns.len() - if synced == 1 { 2 } else { 1 }]).unwrap();
            }
        }
        let (whole, mut rng) = (files(&*fs), SeededRng::new(synced));
        let stale = whole[0].1.clone();
        let (mut ended, mut damaged) = (0, 0);
        let last_in_second = *lsns.iter().rfind(|lsn| lsn.segment() == 2).unwrap();
        for at in (4096..last_in_second.offset() as usize).step_by(5) {
            let tear = TEARS[at / 5 % 3];
            let mut torn = whole.clone();
            tear.strike(&mut torn[1].1, at, &stale, &mut rng);
            let least = lsns
                .iter()
                .filter(|lsn| lsn.segment() < 2 || (lsn.segment() == 2 && lsn.offset() as usize <= at));
            let least = least.count();
            let context = format!("{tear:?} at {at}, synced {}", log.synced());
            let lost_synced = log.synced().segment() == 2 && log.synced() > lsns[least];
            let strict = recover(&disk(&torn), Lsn::ZERO, Mode::Strict);
            assert!(strict.is_err() || strict.unwrap().numbers().len() == lsns.len(), "{context}");
            match recover(&disk(&torn), Lsn::ZERO, Mode::TolerateTornTail) {
                Ok(found) => {
                    ended += 1;
                    assert!(!lost_synced, "{context}: taken for a torn end");
                    // A tear in padding loses nothing.
                    let whole = found.numbers().len() == lsns.len();
                    assert!(whole || found.records.len() - least <= 1, "{context}");
                    assert!(whole || !found.damage.is_empty(), "{context}");
                    goes_on(&disk(&torn), &found.numbers(), &context);
                }
                Err(error) => {
                    damaged += 1;
                    assert!(is_corruption(&error), "{context}: {error}");
                    assert!(
                        log.synced().segment() == 2 && log.synced().offset() as usize + 8 > at,
                        "{context}: {error}"
                    );
                }
            }
        }
        println!("torn in the middle, synced to {}: {ended} ended, {damaged} damaged", log.synced());
        assert_eq!(damaged > 0, synced == 2, "{damaged}");
        assert!(ended > 100, "{ended}");
    }
}

/// Goal: records that a recovery abandoned stay abandoned, even if the torn bytes come back.
/// Method: tear, recover and continue writing; then restore the torn bytes.
#[test]
fn abandoned_records_stay_abandoned() {
    let fs = memory();
    let (_log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let lsns = append(&mut appender, 0..200).unwrap();
    let whole = files(&*fs);
    let at = *lsns.iter().find(|lsn| lsn.segment() == 2 && lsn.offset() > 6000).unwrap();
    let kept = lsns.iter().position(|lsn| *lsn == at).unwrap() as u64 + 1;
    let mut torn = whole.clone();
    let file = at.segment() as usize - 1;
    torn[file].1[at.offset() as usize..].fill(0);
    let fs = disk(&torn);
    let (log, mut appender, found) = open(&fs, &small().recycled_max(0), 2).unwrap();
    assert_eq!(found.len() as u64, kept);
    append(&mut appender, kept..kept + 9).unwrap();
    log.sync().unwrap();
    let mut back = files(&*fs);
    back.extend(whole[file + 1..].iter().cloned());
    back[file] = whole[file].clone();
    let found = recover(&disk(&back), Lsn::ZERO, Mode::TolerateTornTail).unwrap();
    assert_eq!(found.numbers(), (0..kept + 9).collect::<Vec<_>>());
    // The same holds when the segment that they followed has lost its header: that is damage, and a
    // salvage does not return them.
    back[file].1[..4096].fill(0);
    let lost = recover(&disk(&back), Lsn::ZERO, Mode::TolerateTornTail).unwrap_err();
    assert!(is_corruption(&lost), "{lost}");
    let salvaged = recover(&disk(&back), Lsn::ZERO, Mode::Salvage).unwrap().numbers();
    let before = lsns.iter().filter(|lsn| lsn.segment() < at.segment()).count() as u64;
    assert_eq!(salvaged, (0..before).chain(kept..kept + 9).collect::<Vec<_>>());
}
