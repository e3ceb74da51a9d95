//! Bit rot, truncation, misdirected writes and failing disks never lead to a wrong answer.

use cairn_vfs::fault::{Fault, fault_sweep};
use cairn_vfs::{FaultOptions, Operation};

use super::*;

fn bytes_of(fs: &Arc<dyn Fs>, path: &str) -> Vec<u8> {
    let file = fs.open(Path::new(path), cairn_vfs::OpenOptions::read()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(fs: &Arc<dyn Fs>, path: &str, bytes: &[u8]) {
    let file = create(fs, path);
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn options(compression: Compression) -> TableOptions {
    TableOptions { block_bytes: 512, partition_bytes: 256, compression, ..TableOptions::default() }
}

/// Checks that a table either reads as written or returns an error. Returns true for an error.
fn right_or_error(fs: &Arc<dyn Fs>, path: &str, number: FileNumber, model: &Model) -> bool {
    let table = match open(fs, path, number) {
        Ok(table) => table,
        Err(error) => return check_error(&error),
    };
    let expected: Vec<_> = model.iter().map(entry).collect();
    let mut failed = false;
    match scan(&table) {
        Ok(entries) => assert!(entries == expected, "a damaged table shows something else"),
        Err(error) => failed = check_error(&error),
    }
    for (key, seqno) in model.keys().step_by(5) {
        match versions(&table, key, seqno.0) {
            Ok(found) => assert_eq!(found.first().map(|found| found.0), Some(seqno.0)),
            Err(error) => failed = check_error(&error),
        }
    }
    failed
}

fn check_error(error: &Error) -> bool {
    let expected = matches!(error, Error::Corruption { .. } | Error::Unsupported { .. } | Error::Vfs(_));
    assert!(expected, "{error:?}");
    true
}

/// Goal: every flipped bit is detected.
/// Method: every single bit of a small table of each compression; `verify` with the file's checksum
/// finds all of them, and reads give the right answer or an error.
#[test]
fn every_flipped_bit() {
    for (at, compression) in compressions().into_iter().enumerate() {
        let fs = disk();
        // Training a dictionary needs more data.
        let model = numbered(if at == 4 { 330 } else { 60 }, 20);
        let meta = write(&fs, "t", 3, &options(compression), &model);
        let bytes = bytes_of(&fs, "t");
        let table = open(&fs, "t", 3).unwrap();
        assert_eq!(table.properties().dictionary_block.is_some(), at == 4, "{}", table.properties());
        drop(table);
        let mut found = 0;
        for bit in (0..bytes.len() * 8).step_by(if at == 4 { 7 } else { 1 }) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            put(&fs, "d", &damaged);
            found += u64::from(right_or_error(&fs, "d", 3, &model));
            if bit % 13 == 0 {
                let verified = open(&fs, "d", 3).and_then(|table| table.verify(Some(meta.checksum)));
                assert!(verified.is_err(), "{compression:?}: bit {bit} of {} is not found", bytes.len() * 8);
                let verified = open(&fs, "d", 3).and_then(|table| table.verify(None));
                assert!(verified.is_err(), "{compression:?}: bit {bit} is found only by the file's checksum");
            }
        }
        println!("{compression:?}: {} bits, {found} found by reading", bytes.len() * 8);
    }
}

/// Goal: a truncated or extended table is refused.
/// Method: cut at every byte, and extend by one.
#[test]
fn cut_anywhere() {
    for compression in compressions() {
        let fs = disk();
        let model = numbered(40, 10);
        write(&fs, "t", 3, &options(compression), &model);
        let mut bytes = bytes_of(&fs, "t");
        for len in 0..bytes.len() {
            put(&fs, "c", &bytes[..len]);
            assert!(open(&fs, "c", 3).is_err(), "{compression:?} cut to {len} of {}", bytes.len());
        }
        bytes.push(0);
        put(&fs, "c", &bytes);
        assert!(open(&fs, "c", 3).is_err());
    }
}

/// Returns the offsets and lengths of a table's data blocks.
fn data_blocks(fs: &Arc<dyn Fs>, path: &str, number: FileNumber) -> Vec<(usize, usize)> {
    let bytes = bytes_of(fs, path);
    let end = open(fs, path, number).unwrap().properties().data_bytes as usize;
    let (mut at, mut blocks) = (0, Vec::new());
    while at < end {
        let stored = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        blocks.push((at, stored + 20));
        at += stored + 20;
    }
    blocks
}

/// Goal: a sound block in a wrong place is detected.
/// Method: blocks of equal length, swapped within a table and between two tables that differ only
/// in their number.
#[test]
fn misplaced_blocks() {
    let fs = disk();
    let model: Model = (0..600u64)
        .map(|n| ((format!("key{n:05}").into_bytes(), Reverse(0)), (Kind::Put, vec![n as u8; 20])))
        .collect();
    write(&fs, "a", 1, &options(Compression::None), &model);
    write(&fs, "b", 2, &options(Compression::None), &model);
    let (a, b) = (bytes_of(&fs, "a"), bytes_of(&fs, "b"));
    let blocks = data_blocks(&fs, "a", 1);
    let mut swapped = 0;
    for (at, &(x, len)) in blocks.iter().enumerate() {
        let mut other = a.clone();
        other[x..x + len].copy_from_slice(&b[x..x + len]);
        put(&fs, "d", &other);
        assert!(right_or_error(&fs, "d", 1, &model), "block {at} of another table passes");
        for &(y, other_len) in blocks[at + 1..].iter().filter(|(_, other_len)| *other_len == len).take(3) {
            let mut other = a.clone();
            let (low, high) = other.split_at_mut(y);
            low[x..x + len].swap_with_slice(&mut high[..other_len]);
            put(&fs, "d", &other);
            assert!(right_or_error(&fs, "d", 1, &model), "blocks at {x} and {y} may be swapped");
            swapped += 1;
        }
    }
    assert!(swapped > 10, "{swapped}");
    assert!(matches!(open(&fs, "a", 2), Err(Error::Corruption { .. })), "a table under another number");
    let foreign = OpenOptions { foreign: true, ..OpenOptions::default() };
    let table = Table::open(&fs, Path::new("a"), 2, &Arc::new(Cache::new(0)), foreign).unwrap();
    assert_eq!(scan(&table).unwrap().len(), model.len());
}

/// Goal: every failing operation is reported and causes no further damage.
/// Method: fail each operation of writing, opening and reading in turn, once and permanently.
#[test]
fn every_failing_operation() {
    let model = numbered(300, 20);
    let mut struck = 0;
    for fault in [Fault::Io, Fault::Full, Fault::Short, Fault::BitFlip] {
        for persistent in [false, true] {
            struck += fault_sweep(&FaultOptions::seeded(5), fault, persistent, |faulty, index| {
                let fs: Arc<dyn Fs> = Arc::new(faulty.clone());
                let result = try_write(&fs, "t", 1, &options(Compression::Lz4), &model).and_then(|_| {
                    let table = open(&fs, "t", 1)?;
                    versions(&table, b"key00000300", 1 << 40)?;
                    scan(&table)
                });
                match result {
                    Ok(entries) => assert!(entries.len() == model.len(), "{fault:?} at {index}"),
                    Err(error) => _ = check_error(&error),
                }
            });
        }
    }
    println!("{struck} faults struck");
    assert!(struck > 60, "{struck}");
}

/// Goal: `finish` returns only when the file is durable, and an unfinished file is refused.
/// Method: crash before the sync and after it; a failing sync fails `finish`.
#[test]
fn finish_syncs() {
    use cairn_vfs::{CrashImage, FaultFs};
    let model = numbered(300, 20);
    let faulty = FaultFs::new(FaultOptions::seeded(2));
    let fs: Arc<dyn Fs> = Arc::new(faulty.clone());
    fs.sync_dir(Path::new(".")).unwrap_or(());
    let file = create(&fs, "t");
    fs.sync_parent(Path::new("t")).unwrap();
    let mut writer = TableWriter::new(Arc::clone(&file), 1, options(Compression::Lz4)).unwrap();
    for ((key, seqno), (kind, value)) in &model {
        writer.add(key, seqno.0, *kind, value).unwrap();
    }
    let after: Arc<dyn Fs> = Arc::new(faulty.crash_point().image(CrashImage::All));
    assert!(matches!(open(&after, "t", 1), Err(Error::Corruption { .. })));
    writer.finish().unwrap();
    assert_eq!(faulty.operation_count_of(Operation::SyncData), 1);
    let after: Arc<dyn Fs> = Arc::new(faulty.crash(CrashImage::None));
    assert_eq!(scan(&open(&after, "t", 1).unwrap()).unwrap().len(), model.len());
}
