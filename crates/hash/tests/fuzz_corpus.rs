//! Runs the fuzz targets on stable Rust: the committed corpus, and mutations of it from a seed.
//!
//! `CAIRN_SEED` selects other mutations, `CAIRN_ROUND` a single one of them, `CAIRN_SOAK=1` runs
//! fifty times as many, and `CAIRN_WRITE_CORPUS=1` writes the corpus again after a change of a
//! format.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::compress::{Compressor, Format};
use cairn_hash::generations::StoreBuilder;
use cairn_hash::sparkey::{Compression, HashWidth, IndexOptions, LogOptions, LogWriter, build_index_in};
use cairn_hash::table::{self, BuildOptions, Builder};
use cairn_vfs::{Fs, MemFs, OpenOptions, Rng, SeededRng};

#[path = "../../../fuzz/src/bodies/mod.rs"]
mod bodies;

/// Numbers at which arithmetic tends to fail.
const EDGES: [u64; 12] =
    [0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 48, u64::MAX >> 1, u64::MAX];

/// Files larger than this are mutated less often.
const LARGE_BYTES: usize = 64 << 10;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Goal: no input of the corpus makes a decoder fail. Method: every file of the corpus.
#[test]
fn fuzz_corpus_causes_no_panic() {
    if std::env::var_os("CAIRN_WRITE_CORPUS").is_some() {
        write_corpus();
    }
    for (target, body) in bodies::TARGETS {
        let files = corpus(target);
        assert!(files.len() >= 3, "{target}");
        for (path, bytes) in files {
            println!("{}", path.display());
            body(&bytes);
        }
    }
}

/// Goal: no input similar to the corpus makes a decoder fail. Method: mutations of the corpus.
#[test]
fn mutated_corpus_causes_no_panic() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("CAIRN_SEED").unwrap_or(1);
    let longer = if std::env::var_os("CAIRN_SOAK").is_some() { 50 } else { 1 };
    for (target, body) in bodies::TARGETS {
        // Files of pages take longer than integers.
        let rounds = longer * if target == "table_open" { 8000 } else { 20_000 };
        let seeds: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, bytes)| bytes).collect();
        for round in number("CAIRN_ROUND").map_or(0..rounds, |round| round..round + 1) {
            let input = mutation(&seeds, &mut SeededRng::new(seed ^ round << 8).fork(target));
            let result = std::panic::catch_unwind(|| body(&input));
            assert!(result.is_ok(), "{target}: CAIRN_SEED={seed} CAIRN_ROUND={round}");
        }
        println!("{target}: {rounds} mutations of {} files, CAIRN_SEED={seed}", seeds.len());
    }
}

fn mutation(seeds: &[Vec<u8>], rng: &mut SeededRng) -> Vec<u8> {
    let draw = |rng: &mut SeededRng| &seeds[rng.below(seeds.len() as u64) as usize];
    let mut input = draw(rng);
    // A mutation of a large file finds no more than that of a small one, and takes long.
    if input.len() > LARGE_BYTES && rng.chance(0.9) {
        input = draw(rng);
    }
    let mut input = input.clone();
    for _ in 0..1 + rng.below(4) {
        if input.is_empty() {
            input.push(0);
        }
        // Mutations prefer headers and the beginnings of pages, which hold most of the structure.
        let len = input.len() as u64;
        let at = match rng.below(4) {
            0 => rng.below(len),
            1 => rng.below(len.min(256)),
            _ => rng.below(len.div_ceil(4096)) * 4096 + rng.below(256) + 1,
        };
        let at = at.min(len - 1) as usize;
        match rng.below(8) {
            0 | 1 => input[at] ^= 1 << rng.below(8),
            2 => input[at] = rng.next_u64() as u8,
            3 | 4 => {
                let edge = EDGES[rng.below(EDGES.len() as u64) as usize];
                let width = [1, 2, 4, 8][rng.below(4) as usize];
                input[at..].iter_mut().zip(&edge.to_le_bytes()[..width]).for_each(|(to, from)| *to = *from);
            }
            5 => {
                let from = rng.below(len) as usize;
                let count = (1 + rng.below(64) as usize).min(input.len() - from.max(at));
                input.copy_within(from..from + count, at);
            }
            6 => input.truncate(at + 1),
            _ => {
                let mut bytes = vec![0; 1 + rng.below(8) as usize];
                rng.fill(&mut bytes);
                input.splice(at..at, bytes);
            }
        }
    }
    input
}

fn read(fs: &Arc<dyn Fs>, name: &str) -> Vec<u8> {
    fs.open(Path::new(name), OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

fn table(records: &[(Vec<u8>, Vec<u8>)], options: BuildOptions, how: u8) -> Vec<u8> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = options.seed(7).id(9).threads(1).memory_bytes(16 << 20);
    let mut builder = Builder::create_in(&fs, Path::new("t"), options, &mut SeededRng::new(1)).unwrap();
    records.iter().for_each(|(key, value)| builder.put(key, value).unwrap());
    builder.finish().unwrap();
    [&[how][..], &read(&fs, "t")].concat()
}

/// Returns the delta of a store that changes, adds and deletes keys of its base.
fn delta(records: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let (path, mut rng) = (Path::new("t"), SeededRng::new(1));
    let options = BuildOptions::default().seed(7).id(9).threads(1).memory_bytes(16 << 20);
    let mut builder = StoreBuilder::create_in(&fs, path, options.clone(), &mut rng).unwrap();
    records.iter().for_each(|(key, value)| builder.put(key, value).unwrap());
    builder.finish().unwrap();
    let mut builder = StoreBuilder::append_in(&fs, path, options.id(10), &mut rng).unwrap();
    for (n, (key, _)) in records.iter().enumerate() {
        match n % 4 {
            0 => builder.delete(key).unwrap(),
            1 => builder.put(key, format!("changed {n}").as_bytes()).unwrap(),
            _ => {}
        }
    }
    builder.put(b"added", &[7; 300]).unwrap();
    builder.delete(b"never there").unwrap();
    builder.finish().unwrap();
    [&[1][..], &read(&fs, "t.delta.000001")].concat()
}

fn sparkey(compression: Compression, width: HashWidth) -> [Vec<u8>; 2] {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = LogOptions::default().compression(compression).block_bytes(64).identifier(7);
    let mut writer = LogWriter::create_in(&fs, "x.spl", &options).unwrap();
    for n in 0..12 {
        writer.put(format!("key {n}").as_bytes(), format!("value {n}").repeat(n).as_bytes()).unwrap();
    }
    writer.delete(b"key 3").unwrap();
    writer.close().unwrap();
    build_index_in(&fs, "x.spl", &IndexOptions::default().seed(1).hash_width(width)).unwrap();
    ["x.spl", "x.spi"].map(|name| read(&fs, name))
}

fn write_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(root.join(target)).unwrap();
        std::fs::write(root.join(target).join(name), bytes).unwrap();
    };
    let text: Vec<_> = (0..40u32)
        .map(|n| (format!("key {n}").into_bytes(), format!("value {n}").repeat(3).into_bytes()))
        .collect();
    let fixed: Vec<_> = (0..60u64).map(|n| (n.to_be_bytes().to_vec(), n.to_le_bytes().to_vec())).collect();
    let mut blobs = text[..5].to_vec();
    blobs.push((b"blob".to_vec(), vec![7; 33_000]));
    let zstd = table::Compression::Zstd { level: 3, dictionary_bytes: 0 };
    let json: Vec<_> = (0..300u32)
        .map(|n| {
            (n.to_le_bytes().to_vec(), format!("{{\"name\":\"entry {n}\",\"size\":{}}}", n * 37).into_bytes())
        })
        .collect();
    let dictionary = table::Compression::Zstd { level: 3, dictionary_bytes: 1024 };
    // The smallest number that makes two partitions.
    let many: Vec<_> =
        (0..8192u16).map(|n| (n.to_le_bytes().to_vec(), vec![7; usize::from(n % 2)])).collect();
    write("table_open", "delta", &delta(&text));
    for (name, records, options) in [
        ("empty", &[][..], BuildOptions::default()),
        ("text", &text, BuildOptions::default()),
        ("fixed", &fixed, BuildOptions::default()),
        ("dense", &text, BuildOptions::default().fill(0.95)),
        ("blob", &blobs, BuildOptions::default()),
        ("zstd", &text, BuildOptions::default().compression(zstd)),
        ("snappy", &text, BuildOptions::default().compression(table::Compression::Snappy)),
        ("dictionary", &json, BuildOptions::default().compression(dictionary)),
        ("partitions", &many, BuildOptions::default()),
    ] {
        write("table_open", name, &table(records, options.clone(), 1));
        if name == "text" {
            write("table_open", "checked", &table(records, options.clone(), 0));
            write("table_open", "unchecked", &table(records, options, 3));
        }
    }
    for (name, compression, width) in [
        ("plain", Compression::None, HashWidth::Bits32),
        ("snappy", Compression::Snappy, HashWidth::Bits64),
        ("zstd", Compression::ZSTD, HashWidth::Bits32),
    ] {
        let [log, index] = sparkey(compression, width);
        write("sparkey_log", name, &log);
        write("sparkey_pair", name, &[&(log.len() as u32).to_le_bytes()[..], &log, &index].concat());
        // Over the log that the target combines it with.
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let file = fs.open(Path::new("x.spl"), OpenOptions::create()).unwrap();
        file.write_all_at(bodies::sound_log(), 0).unwrap();
        build_index_in(&fs, "x.spl", &IndexOptions::default().seed(1).hash_width(width)).unwrap();
        let name = if width == HashWidth::Bits64 { "wide" } else { name };
        write("sparkey_index", name, &read(&fs, "x.spi"));
    }
    write("sparkey_index", "other", &sparkey(Compression::Snappy, HashWidth::Bits64)[1]);
    for (name, bytes) in
        [("one", &[1][..]), ("overlong", &[0x80, 0]), ("two", &[0xac, 2]), ("max", &[255; 10])]
    {
        write("varint", name, bytes);
    }
    for (format, compression) in [(0u8, Compression::Snappy), (1, Compression::ZSTD)] {
        for (name, input) in [("empty", vec![]), ("zeros", vec![0; 5000]), ("text", b"some text ".repeat(20))]
        {
            let mut out = vec![format];
            out.extend_from_slice(&(input.len() as u16).to_le_bytes());
            Compressor::new(compression).unwrap().compress(&input, &mut out).unwrap();
            let format = [Format::Snappy, Format::Zstd][usize::from(format)];
            write("decompress", &format!("{name}-{format:?}").to_lowercase(), &out);
        }
    }
}
