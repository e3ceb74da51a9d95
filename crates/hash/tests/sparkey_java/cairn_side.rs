//! Cairn's side of every exchange, in terms of the test cases.

use std::path::Path;

use cairn_hash::sparkey::{
    Compression, Construction, HashWidth, IndexOptions, LogOptions, LogReader, LogWriter, Mode,
    ReaderOptions, RecordKind, SparkeyReader, build_index,
};

use crate::cases::{Case, Op};

/// Writes `ops` as a log and its index.
pub fn write(log: &Path, ops: &[Op], case: &Case, construction: Construction) {
    let compression = match case.compression {
        "NONE" => Compression::None,
        "SNAPPY" => Compression::Snappy,
        _ => Compression::ZSTD,
    };
    let options = LogOptions::default().compression(compression).block_bytes(case.block).replace(true);
    apply(LogWriter::create(log, &options).unwrap(), ops);
    index(log, case, construction);
}

/// Appends `ops` to a log and indexes it again.
pub fn append(log: &Path, ops: &[Op], case: &Case) {
    append_only(log, ops);
    index(log, case, Construction::InMemory);
}

/// Appends `ops` to a log without updating its index.
pub fn append_only(log: &Path, ops: &[Op]) {
    apply(LogWriter::append(log, &LogOptions::default()).unwrap(), ops);
}

/// Indexes a log.
pub fn index(log: &Path, case: &Case, construction: Construction) {
    let width = if case.hash_bytes == 4 { HashWidth::Bits32 } else { HashWidth::Bits64 };
    let options = IndexOptions::default().hash_width(width).seed(case.seed).construction(construction);
    build_index(log, &options).unwrap();
}

/// Returns every record of a log.
pub fn log(log: &Path) -> Vec<Op> {
    let reader = LogReader::open(log, Mode::Mmap).unwrap();
    let (mut scan, mut ops) = (reader.scan(), Vec::new());
    while let Some(mut entry) = scan.next_entry().unwrap() {
        let (kind, key) = (entry.kind(), entry.key().to_vec());
        ops.push(match kind {
            RecordKind::Put => Op::Put(key, entry.value().unwrap().into_owned()),
            RecordKind::Delete => Op::Delete(key),
        });
    }
    ops
}

/// Returns every live entry in log order.
pub fn live(index: &Path) -> Vec<Op> {
    let reader = SparkeyReader::open(index, &ReaderOptions::default()).unwrap();
    let (mut scan, mut entries) = (reader.scan(), Vec::new());
    while let Some(mut entry) = scan.next_entry().unwrap() {
        let key = entry.key().to_vec();
        entries.push(Op::Put(key, entry.value().unwrap().into_owned()));
    }
    entries
}

/// Returns the answers to `keys` of every mode, looked up one by one and as a batch. Verifies the
/// files once.
pub fn get(index: &Path, keys: &[Vec<u8>]) -> Vec<(Mode, Vec<Option<Vec<u8>>>)> {
    let ask = |mode| {
        let reader = SparkeyReader::open(index, &ReaderOptions::default().mode(mode)).unwrap();
        let single: Vec<_> =
            keys.iter().map(|key| reader.get(key).unwrap().map(|value| value.into_owned())).collect();
        let mut batch = vec![None; keys.len()];
        reader.get_many(keys, |number, value| batch[number] = value.map(<[u8]>::to_vec)).unwrap();
        assert!(batch == single, "{mode:?}: a batch answers otherwise than single lookups");
        if mode == Mode::Mmap {
            reader.verify().unwrap();
        }
        (mode, single)
    };
    [Mode::Mmap, Mode::Heap, Mode::Pread].map(ask).into()
}

fn apply(mut writer: LogWriter, ops: &[Op]) {
    for op in ops {
        match op {
            Op::Put(key, value) => writer.put(key, value).unwrap(),
            Op::Delete(key) => {
                writer.delete(key).unwrap();
            }
        }
    }
    writer.close().unwrap();
}
