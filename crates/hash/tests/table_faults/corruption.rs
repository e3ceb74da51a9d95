//! Corrupt bytes are detected and never returned.

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{FaultOptions, Operation, Rng};

use super::*;

/// Statistics about damaged tables.
#[derive(Debug, Default)]
struct Tally {
    /// Number of disks on which the file differed from the built one.
    damaged: u64,
    /// Number of these that could be opened anyway, so that lookups were tried.
    opened: u64,
    /// Number of lookups that reported damage.
    lookups_refused: u64,
}

/// Checks a disk whose table may be damaged: `verify` fails exactly if it is, and lookups return
/// the right value or report damage.
fn meet(disk: &FaultFs, sound: &[u8], model: &Model, tally: &mut Tally, context: &str) {
    let is_sound = disk.bytes_of(Path::new(TABLE)).as_deref() == Some(sound);
    tally.damaged += u64::from(!is_sound);
    for mode in MODES {
        let reader = match open(&shared(disk), mode) {
            Ok(reader) => reader,
            Err(error) => {
                assert!(!is_sound && is_damage(&error), "{context} {mode:?}: {error}");
                continue;
            }
        };
        tally.opened += u64::from(!is_sound);
        for (key, value) in model.iter().step_by(model.len() / 30 + 1) {
            match reader.get(key) {
                Ok(found) => assert!(found.as_deref() == Some(value), "{context} {mode:?}: {key:?}"),
                Err(error) => {
                    assert!(!is_sound && is_damage(&error), "{context} {mode:?}: {error}");
                    tally.lookups_refused += 1;
                }
            }
        }
        match reader.verify() {
            Ok(_) => assert!(is_sound, "{context} {mode:?}: damage that verify does not see"),
            Err(error) => assert!(!is_sound && is_damage(&error), "{context} {mode:?}: {error}"),
        }
    }
}

/// Goal: writes that a disk lost, misdirected, cut or garbled while reporting success are detected.
/// Method: each of these faults at every write of a build of each shape.
#[test]
fn lost_and_torn_writes_are_detected() {
    let options = FaultOptions::seeded(seed(11));
    let (mut tally, mut refused) = (Tally::default(), 0);
    let mut all = contents();
    all.push(spilling());
    for content in all {
        let (sound, model) = (content.bytes(), content.model());
        let elsewhere = [4096, -4096, 512, 1, 1 << 20].map(|by| Fault::Misdirected { by });
        for fault in [Fault::Lost, Fault::ZeroTail, Fault::BitFlip].into_iter().chain(elsewhere) {
            for nth in 0.. {
                let fs = FaultFs::new(options.clone());
                fs.inject(Rule::nth(Operation::Write, nth, fault));
                let context = format!("{}: {fault:?} of write {nth}", content.name);
                let built = content.build(&shared(&fs));
                if fs.injected_count() == 0 {
                    break;
                }
                match built {
                    Ok(_) => meet(&fs, &sound, &model, &mut tally, &context),
                    // The build itself detects damage in the spill file.
                    Err(error) => {
                        refused += 1;
                        assert!(content.name == "spilling" && is_refused(&error), "{context}: {error}");
                        assert!(names(&fs).is_empty(), "{context}: {:?}", names(&fs));
                    }
                }
            }
        }
    }
    println!("writes that went wrong: {tally:?}, {refused} builds refused");
    assert!(tally.damaged >= 50 && refused >= 50, "{tally:?} {refused}");
}

/// Returns true for the errors that a build may report if the spill file differs from what was
/// written: it is damaged, or too short.
fn is_refused(error: &Error) -> bool {
    is_damage(error) || matches!(error, Error::Vfs(_))
}

/// Goal: index lines in a spill file are verified too. Method: each of the faults at every write of
/// a build with a low fill, so that its lines outgrow their share of the memory.
#[test]
fn misplaced_index_lines_are_detected() {
    let records = (0..200_000u32).map(|n| (n.to_le_bytes().to_vec(), vec![n as u8])).collect();
    let mut content = Content::new("index lines", records, Compression::None);
    content.options = content.options.fill(0.1);
    let sound = content.bytes();
    let (mut damaged, mut refused) = (0, 0);
    for fault in [Fault::Lost, Fault::ZeroTail, Fault::BitFlip] {
        for nth in 0.. {
            let fs = FaultFs::new(FaultOptions::seeded(seed(15)));
            fs.inject(Rule::nth(Operation::Write, nth, fault));
            let built = content.build(&shared(&fs));
            if fs.injected_count() == 0 {
                break;
            }
            let context = format!("{fault:?} of write {nth}");
            match built {
                Ok(_) => {
                    let is_sound = fs.bytes_of(Path::new(TABLE)).as_deref() == Some(&sound[..]);
                    let found = open(&shared(&fs), Mode::Mmap).and_then(|table| table.verify());
                    assert_eq!(found.is_ok(), is_sound, "{context}");
                    damaged += u64::from(!is_sound);
                }
                Err(error) => {
                    refused += 1;
                    assert!(is_refused(&error), "{context}: {error}");
                    assert!(names(&fs).is_empty(), "{context}: {:?}", names(&fs));
                }
            }
        }
    }
    println!("index lines that went wrong: {damaged} damaged tables, {refused} builds refused");
    assert!(damaged > 10 && refused >= 3, "{damaged} {refused}");
}

/// Goal: swapped blocks, and stale blocks of an earlier table, are detected. Method: every pair of
/// pages, and every page of another table of the same size.
#[test]
fn misdirected_blocks_are_detected() {
    let options = FaultOptions::seeded(seed(12));
    let mut tally = Tally::default();
    for content in contents() {
        let (sound, model) = (content.bytes(), content.model());
        let pages = sound.len() as u64 / 4096;
        let fs = FaultFs::new(options.clone());
        for first in 0..pages.min(24) {
            for second in first + 1..pages.min(24) {
                fs.install(Path::new(TABLE), &sound).unwrap();
                assert!(fs.swap_blocks(Path::new(TABLE), first * 4096, second * 4096, 4096));
                meet(&fs, &sound, &model, &mut tally, &format!("{}: {first} and {second}", content.name));
            }
        }
        // The same keys and lengths with another seed and id give the same sections, but all pages
        // differ.
        let mut before = content.clone();
        before.options = before.options.seed(8).id(10);
        let stale = before.bytes();
        for page in 0..pages.min(stale.len() as u64 / 4096) as usize {
            let mut bytes = sound.clone();
            let range = page * 4096..(page + 1) * 4096;
            bytes[range.clone()].copy_from_slice(&stale[range]);
            fs.install(Path::new(TABLE), &bytes).unwrap();
            // With the header of the other table, its seed and checksums do not match these pages.
            meet(&fs, &sound, &model, &mut tally, &format!("{}: stale page {page}", content.name));
        }
    }
    println!("blocks from elsewhere: {tally:?}");
    assert!(tally.damaged > 100, "{tally:?}");
}

/// Goal: flipped bits in larger tables are detected. Method: random bits, one and several at a
/// time. The unit tests of the table flip every bit of a small table.
#[test]
fn flipped_bits_are_detected() {
    let mut rng = SeededRng::new(seed(13));
    let mut tally = Tally::default();
    for content in contents() {
        let (sound, model) = (content.bytes(), content.model());
        let fs = FaultFs::new(FaultOptions::seeded(1));
        for round in 0..rounds(250, 25_000) {
            fs.install(Path::new(TABLE), &sound).unwrap();
            for _ in 0..1 + round % 3 {
                fs.flip_bit(Path::new(TABLE), rng.below(sound.len() as u64), rng.below(8) as u8);
            }
            meet(&fs, &sound, &model, &mut tally, &format!("{} round {round}", content.name));
        }
    }
    println!("flipped bits: {tally:?}");
    assert!(tally.damaged >= 1000 - 5, "{tally:?}");
}

/// Goal: damage under checksums of two levels, and in the checksums, is detected. Method: a bit in
/// every page of both levels of a table of ten megabytes, and in random pages.
#[test]
fn checksums_of_two_levels() {
    let mut rng = SeededRng::new(seed(16));
    let mut tally = Tally::default();
    let content = spilling();
    let (sound, model) = (content.bytes(), content.model());
    let pages = sound.len() as u64 / 4096;
    let first_sums = u64::from_le_bytes(sound[144..152].try_into().unwrap()) / 4096;
    let levels = [(first_sums - 1).div_ceil(512), 1];
    assert!(levels[0] > 1 && pages - first_sums == levels.iter().sum::<u64>(), "{levels:?} of {pages}");
    let drawn: Vec<u64> = (0..rounds(20, 2000)).map(|_| 1 + rng.below(pages - 1)).collect();
    let fs = FaultFs::new(FaultOptions::seeded(1));
    for page in (first_sums..pages).chain(drawn) {
        fs.install(Path::new(TABLE), &sound).unwrap();
        let at = page * 4096 + rng.below(4096);
        fs.flip_bit(Path::new(TABLE), at, rng.below(8) as u8);
        meet(&fs, &sound, &model, &mut tally, &format!("page {page} of {pages}"));
    }
    println!("two levels of sums: {tally:?}");
    assert!(tally.damaged >= 20, "{tally:?}");
}

/// Goal: a read that returns wrong bytes leads to the right value or an error, and the file, which
/// is sound, is read correctly afterwards. Method: garble every read and map of opening, lookups
/// and scans in turn, once and permanently.
#[test]
fn silently_wrong_reads_are_detected() {
    let options = FaultOptions::seeded(seed(14));
    let (mut struck, mut refused) = (0, 0);
    for content in contents() {
        let (sound, model) = (content.bytes(), content.model());
        let few: Vec<_> = model.iter().step_by(model.len() / 20 + 1).collect();
        for mode in MODES {
            for (fault, persistent) in
                [(Fault::BitFlip, false), (Fault::BitFlip, true), (Fault::DuplicatedRead, false)]
            {
                for nth in 0.. {
                    let fs = FaultFs::new(options.clone());
                    fs.install(Path::new(TABLE), &sound).unwrap();
                    let kind = if mode == Mode::Mmap && nth > 0 { Operation::Map } else { Operation::Read };
                    let nth_of_kind = if kind == Operation::Map { nth - 1 } else { nth };
                    fs.inject(Rule { persistent, ..Rule::nth(kind, nth_of_kind, fault) });
                    let failed = read_everything(&fs, mode, &few, &model);
                    if fs.injected_count() == 0 {
                        if kind == Operation::Read && mode == Mode::Mmap {
                            continue;
                        }
                        break;
                    }
                    struck += 1;
                    refused += u64::from(failed);
                    fs.clear_rules();
                    assert_holds(&open(&shared(&fs), mode).unwrap(), &model, content.name);
                }
            }
        }
    }
    println!("reads that lie: {struck} runs with a fault, {refused} refused");
    assert!(struck > 100 && refused > 50, "{struck} {refused}");
}

/// Looks up keys and scans. Returns true if an error was reported; all other results must be right.
fn read_everything(fs: &FaultFs, mode: Mode, few: &[(&Vec<u8>, &Vec<u8>)], model: &Model) -> bool {
    let reader = match open(&shared(fs), mode) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(is_damage(&error), "{error}");
            return true;
        }
    };
    let mut failed = false;
    for (key, value) in few {
        match reader.get(key) {
            Ok(found) => assert!(found.as_deref() == Some(value.as_slice()), "{mode:?} {key:?}"),
            Err(error) => {
                assert!(is_damage(&error), "{error}");
                failed = true;
            }
        }
    }
    match scanned(&reader) {
        Ok(found) => assert!(found == *model, "{mode:?}"),
        Err(error) => {
            assert!(is_damage(&error), "{error}");
            failed = true;
        }
    }
    failed
}
