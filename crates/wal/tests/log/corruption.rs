//! Flipped bits.

use super::*;

/// Creates a properly closed log of a few segments, and returns its files and the number of its
/// records.
fn closed() -> (Vec<(PathBuf, Vec<u8>)>, u64) {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let mut count = 0;
    while appender.position().segment() < 3 || appender.position().offset() < 6000 {
        let lsn = append(&mut appender, count..count + 1).unwrap()[0];
        count += 1;
        if count % 10 == 0 {
            log.sync_to(lsn).unwrap();
        }
    }
    appender.close().unwrap();
    (files(&*fs), count)
}

/// Goal: in a closed log, no flipped bit silently loses, changes or invents a record; and when the
/// damage is detected, the rest can be salvaged. Method: flip every bit.
#[test]
fn every_bit_of_a_closed_log() {
    let (whole, count) = closed();
    let all: Vec<u64> = (0..count).collect();
    let fs = disk(&whole);
    let (mut flips, mut seen, mut unseen) = (0_u64, 0_u64, 0_u64);
    for (file, (path, bytes)) in whole.iter().enumerate() {
        let opened = fs.open(path, OpenOptions::write()).unwrap();
        for bit in 0..bytes.len() * 8 {
            // In the zeros of the header page and after the records, a sample of the bits suffices.
            let zeros = bytes[bit / 8 / 64 * 64..][..64].iter().all(|&byte| byte == 0);
            if zeros && bit % 509 != 0 {
                continue;
            }
            flips += 1;
            opened.write_all_at(&[bytes[bit / 8] ^ 1 << (bit % 8)], bit as u64 / 8).unwrap();
            let context = || format!("bit {} of byte {} in file {file}", bit % 8, bit / 8);
            match recover(&fs, Lsn::ZERO, Mode::TolerateTornTail) {
                Ok(found) => {
                    unseen += 1;
                    assert!(found.numbers() == all, "{}: {} records", context(), found.records.len());
                }
                Err(error) => {
                    seen += 1;
                    assert!(is_corruption(&error), "{}: {error}", context());
                    let strict = bit % 11 != 0 || recover(&fs, Lsn::ZERO, Mode::Strict).is_err();
                    assert!(strict, "{}", context());
                }
            }
            if bit % 61 == 0 {
                let salvaged = recover(&fs, Lsn::ZERO, Mode::Salvage).unwrap();
                let numbers = salvaged.numbers();
                assert!(numbers.len() as u64 >= count - 1, "{}", context());
                assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{}", context());
                assert!(numbers.len() as u64 == count || !salvaged.damage.is_empty(), "{}", context());
            }
            opened.write_all_at(&[bytes[bit / 8]], bit as u64 / 8).unwrap();
        }
    }
    println!("flipped bits: {flips}, {seen} seen, {unseen} without consequence");
    assert!(seen > 50_000 && flips == seen + unseen, "{seen}");
}

/// Goal: in the strict mode, a flipped bit in anything covered by a checksum is an error. Method:
/// flip bits of both headers and of records; only padding and zeros pass.
#[test]
fn strict_mode_sees_headers_too() {
    let (whole, _) = closed();
    for (file, (_, bytes)) in whole.iter().enumerate() {
        for at in (0..64).chain(2048..2112).chain(4096..4196) {
            let mut rotten = whole.clone();
            rotten[file].1[at] ^= 1 << (at % 8);
            let strict = recover(&disk(&rotten), Lsn::ZERO, Mode::Strict);
            let padding = strict.is_ok();
            assert!(!padding || at >= 4096 && bytes[at] == 0, "byte {at} of file {file}");
        }
    }
}

/// Goal: in a closed log, no record is silently lost when it is replaced by zeros, which on their
/// own look like the end. Method: each record, and each one with all that follow up to the mark,
/// zeroed in turn.
#[test]
fn zeros_in_place_of_records() {
    let (whole, count) = closed();
    let found = recover(&disk(&whole), Lsn::ZERO, Mode::Strict).unwrap();
    assert_eq!(found.records.len() as u64, count);
    let mut from = 4096;
    for (index, (lsn, _)) in found.records.iter().enumerate() {
        let file = lsn.segment() as usize - 1;
        let last = found.records.iter().rfind(|(other, _)| other.segment() == lsn.segment()).unwrap().0;
        for to in [lsn.offset(), last.offset()] {
            let mut zeroed = whole.clone();
            zeroed[file].1[from..to as usize].fill(0);
            for mode in [Mode::Strict, Mode::TolerateTornTail] {
                let error =
                    recover(&disk(&zeroed), Lsn::ZERO, mode).expect_err(&format!("{mode:?}, {index}"));
                assert!(is_corruption(&error), "{mode:?}, record {index}: {error}");
            }
        }
        let next = found.records.get(index + 1);
        let same = next.is_some_and(|(next, _)| next.segment() == lsn.segment());
        from = if same { lsn.offset() as usize } else { 4096 };
    }
}

/// Goal: a salvage finds the record after a damaged one, wherever it lies in the read window.
/// Method: damaged records of all lengths around the window size, each followed by a sound one.
#[test]
fn salvage_across_windows() {
    for len in (4000..4200).chain(8150..8250) {
        let fs = memory();
        let (log, mut appender, _) = open(&fs, &small().segment_bytes(5 * SMALL), 1).unwrap();
        let damaged = appender.position();
        appender.append(&[&vec![7; len]]).unwrap();
        append(&mut appender, 0..3).unwrap();
        log.sync().unwrap();
        let mut rotten = files(&*fs);
        rotten[0].1[damaged.offset() as usize] ^= 1;
        let found = recover(&disk(&rotten), Lsn::ZERO, Mode::Salvage).unwrap();
        assert_eq!(found.numbers(), [0, 1, 2], "behind a record of {len} bytes");
        assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    }
}

/// Goal: in a log that was not closed, a flipped bit loses at most the records from there on, and
/// none that a later record or header proves to be synced. Method: flip a bit in every byte.
#[test]
fn every_byte_of_an_open_log() {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let lsns = append(&mut appender, 0..60).unwrap();
    log.sync_to(lsns[40]).unwrap();
    let later = append(&mut appender, 60..61).unwrap();
    assert_eq!(later[0].segment(), lsns[40].segment() + 1);
    let whole = files(&*fs);
    let fs = disk(&whole);
    let (mut corrupt, mut cut) = (0, 0);
    for (file, (path, bytes)) in whole.iter().enumerate() {
        let opened = fs.open(path, OpenOptions::write()).unwrap();
        for (at, byte) in bytes.iter().enumerate().skip(4096) {
            opened.write_all_at(&[byte ^ 1 << (at % 8)], at as u64).unwrap();
            let position = Lsn::from((file as u64 + 1) << 32 | at as u64);
            let record = lsns.iter().chain(&later).filter(|lsn| **lsn <= position).count() as u64;
            match recover(&fs, Lsn::ZERO, Mode::TolerateTornTail) {
                Ok(found) => {
                    let numbers = found.numbers();
                    assert!(
                        numbers.len() == 61 || numbers.len() as u64 == record,
                        "byte {at} of file {file}"
                    );
                    assert!(numbers.len() >= 41, "byte {at} of file {file}: {}", numbers.len());
                    assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
                    cut += u64::from(numbers.len() < 61);
                }
                Err(error) => {
                    corrupt += 1;
                    assert!(
                        is_corruption(&error) && position < log.synced(),
                        "byte {at} of file {file}: {error}"
                    );
                }
            }
            opened.write_all_at(&[*byte], at as u64).unwrap();
        }
    }
    println!("flipped bytes of an open log: {corrupt} corrupt, {cut} cut off");
    assert!(corrupt > 1000 && cut > 500, "{corrupt} {cut}");
}

/// Goal: damage in many places at once never invents or reorders records, in any mode. Method:
/// random blocks of garbage, zeros, or other blocks of the same files.
#[test]
fn blocks_swapped_and_lost() {
    let (whole, count) = closed();
    let mut rng = SeededRng::new(seed(13));
    let mut damaged = 0;
    for round in 0..rounds(3000, 300_000) {
        let mut rotten = whole.clone();
        for _ in 0..1 + rng.below(3) {
            let (file, source) =
                (rng.below(whole.len() as u64) as usize, rng.below(whole.len() as u64) as usize);
            let len = [8, 56, 512, 4096][rng.below(4) as usize];
            let mut place =
                |align: u64| rng.below((SMALL as u64 - len) / align + 1) as usize * align as usize;
            let (to, from) = (place(8), place(8));
            let block = match round % 3 {
                0 => whole[source].1[from..from + len as usize].to_vec(),
                1 => vec![0; len as usize],
                _ => (0..len).map(|n| (n * round) as u8).collect(),
            };
            rotten[file].1[to..to + len as usize].copy_from_slice(&block);
        }
        let fs = disk(&rotten);
        for mode in [Mode::TolerateTornTail, Mode::Strict, Mode::Salvage] {
            match recover(&fs, Lsn::ZERO, mode) {
                Ok(found) => {
                    let numbers = found.numbers();
                    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "round {round}");
                    assert!(numbers.len() as u64 <= count, "round {round}");
                }
                Err(error) => {
                    damaged += 1;
                    assert!(is_corruption(&error) && mode != Mode::Salvage, "round {round}: {error}");
                }
            }
        }
    }
    assert!(damaged > 1000, "{damaged}");
}
