//! Tests of bit rot.

use cairn_kv::{Durability, Error};
use cairn_vfs::{CrashImage, FaultOptions, SeededRng};

use super::workload::{Mix, Step};
use super::*;

/// Returns a closed store with small files of each kind, and its contents. These include the last
/// write, which was not synced when it was made but is durable because the store was closed.
fn store(shape: &Shape) -> (FaultFs, State) {
    let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
    let mut run = Run::new(&fs, shape, State::default(), Mix::Logged, SeededRng::new(shape.seed));
    run.open().unwrap();
    for tag in 0..24 {
        let change = if tag % 8 == 7 {
            Change::DeleteRange(b"key 03".to_vec(), b"key 05".to_vec())
        } else {
            Change::Put(format!("key {tag:02}").into_bytes(), format!("value {tag}").into_bytes())
        };
        run.perform(Step::Write(vec![((tag % 2) as usize, change)], Durability::Buffered)).unwrap();
        if tag == 9 || tag == 15 {
            run.perform(Step::Flush(0)).unwrap();
            run.perform(Step::Flush(1)).unwrap();
        }
    }
    run.perform(Step::Sync).unwrap();
    run.perform(Step::Write(vec![(0, Change::Put(b"last".to_vec(), b"one".to_vec()))], Durability::Buffered))
        .unwrap();
    let all = run.model.clone();
    run.close();
    (fs, all)
}

/// The outcomes of opening damaged stores.
#[derive(Debug, Default)]
struct Tally {
    flips: u64,
    refused: u64,
    served: u64,
}

/// Opens a damaged store and reads all of it. The result must be right or refused.
fn meet(disk: &FaultFs, shape: &Shape, right: &State, read_only: bool, context: &str, tally: &mut Tally) {
    tally.flips += 1;
    let result = shape.builder(shared(disk)).read_only(read_only).open().and_then(|db| {
        let found = scan(&db)?;
        for (keyspace, model) in KEYSPACES.iter().zip(right) {
            let keyspace = db.keyspace(keyspace).unwrap();
            for (key, value) in model.iter() {
                assert_eq!(keyspace.get(key)?.as_deref(), Some(value.as_slice()), "{context}");
            }
            assert_eq!(keyspace.get("key 99")?, None, "{context}");
        }
        Ok(found)
    });
    match result {
        Ok(found) => {
            tally.served += 1;
            assert!(*right == found, "{context}: {}", right[0].difference(&found[0]));
        }
        Err(Error::Corruption { .. } | Error::Unsupported { .. }) => tally.refused += 1,
        Err(error) => panic!("{context}: {error}"),
    }
}

/// Goal: a flipped bit anywhere, in any file, leads to the right answer or to `Corruption`, and
/// never to other data, a panic, a hang or unbounded memory.
/// Method: every bit of the written part of each file of a small store (in the short form, a
/// fraction of them), opened for reading and for writing in turn.
#[test]
fn flipped_bits() {
    let own = seed(13);
    let memory = peak_memory_kib();
    let mut tally = Tally::default();
    for round in 0..rounds(1, 4) {
        let shape = Shape::new(own.wrapping_add(round));
        let (fs, right) = store(&shape);
        let point = fs.crash_point();
        let mut kinds = std::collections::BTreeSet::new();
        for name in names(&fs) {
            let (path, bytes) = (path_of(&name), fs.bytes_of(&path_of(&name)).unwrap());
            let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let bits = written as u64 * 8;
            // A prime, so that all bits of a byte are tested.
            let step = rounds([1, 7, 13, 29, 61].into_iter().find(|step| bits / step < 300).unwrap_or(97), 1);
            kinds.insert(name.trim_matches(|c: char| c.is_ascii_digit()).to_owned());
            let before = tally.refused;
            for bit in (0..bits).step_by(step as usize) {
                let disk = point.image(CrashImage::All);
                assert!(disk.flip_bit(&path, bit / 8, (bit % 8) as u8));
                let context = format!("shape {}, bit {bit} of {name}", shape.seed);
                meet(&disk, &shape, &right, bit % 3 != 0, &context, &mut tally);
            }
            let found = name == "LOCK" || name.ends_with(".free") || bits == 0 || tally.refused > before;
            assert!(found, "no flip in {name} was ever seen");
        }
        assert!(kinds.len() >= 5, "{kinds:?}");
    }
    println!("flipped bits: {tally:?}");
    assert!(tally.flips > 1000 && tally.refused > tally.flips / 2, "{tally:?}");
    let grown = peak_memory_kib().saturating_sub(memory);
    assert!(grown < 64 << 10, "{grown} KiB of memory");
}

/// Goal: lengths and counts that no writer writes, amid plausible bytes, use no excessive memory.
/// Method: sequences of bytes set to the highest value, at every offset of each file.
#[test]
fn bytes_of_ones() {
    let shape = Shape::new(seed(14));
    let memory = peak_memory_kib();
    let (fs, right) = store(&shape);
    let point = fs.crash_point();
    let mut tally = Tally::default();
    for name in names(&fs) {
        let (path, bytes) = (path_of(&name), fs.bytes_of(&path_of(&name)).unwrap());
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for at in (0..written).step_by(rounds(19, 1) as usize) {
            let mut damaged = bytes.clone();
            let until = (at + 8).min(damaged.len());
            damaged[at..until].fill(0xff);
            let disk = point.image(CrashImage::All);
            disk.install(&path, &damaged).unwrap();
            meet(&disk, &shape, &right, at % 2 == 0, &format!("ones at {at} of {name}"), &mut tally);
        }
    }
    println!("bytes of ones: {tally:?}");
    assert!(tally.flips > 200 && tally.refused > 100, "{tally:?}");
    let grown = peak_memory_kib().saturating_sub(memory);
    assert!(grown < 64 << 10, "{grown} KiB of memory");
}

/// Goal: blocks in a wrong place or from another table are detected.
/// Method: swap pieces within each table, and exchange whole files with each other.
#[test]
fn blocks_from_elsewhere() {
    let shape = Shape::new(seed(15));
    let (fs, right) = store(&shape);
    let point = fs.crash_point();
    let mut tally = Tally::default();
    let tables: Vec<_> = names(&fs).into_iter().filter(|name| name.ends_with(".table")).collect();
    assert!(tables.len() > 1, "{tables:?}");
    for name in &tables {
        let path = path_of(name);
        let len = fs.bytes_of(&path).unwrap().len() as u64;
        for first in (0..len.saturating_sub(32)).step_by(32) {
            let disk = point.image(CrashImage::All);
            let second = (first + 32 + len / 3) % (len - 16);
            if first.abs_diff(second) < 16 || !disk.swap_blocks(&path, first, second, 16) {
                continue;
            }
            meet(&disk, &shape, &right, true, &format!("{first} and {second} of {name}"), &mut tally);
        }
        for other in tables.iter().filter(|other| *other != name) {
            let disk = point.image(CrashImage::All);
            disk.install(&path, &fs.bytes_of(&path_of(other)).unwrap()).unwrap();
            meet(&disk, &shape, &right, true, &format!("{other} in place of {name}"), &mut tally);
        }
    }
    println!("blocks from elsewhere: {tally:?}");
    assert!(tally.refused > 20, "{tally:?}");
}

/// Returns the peak memory of this process, as counted by the kernel.
fn peak_memory_kib() -> u64 {
    use cairn_vfs::{Fs, OpenOptions, StdFs};
    let file = StdFs::new().open(Path::new("/proc/self/status"), OpenOptions::read()).unwrap();
    let mut text = vec![0; 8192];
    let len = file.read_at(&mut text, 0).unwrap();
    let text = String::from_utf8_lossy(&text[..len]).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}
