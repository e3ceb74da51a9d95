//! Tests of torn tails and bit rot.

use cairn_vfs::OpenOptions;

use super::*;
use crate::version::manifest::format::SEAL_BYTES;
use crate::version::names::FileName;

/// Returns a disk with only a manifest of these bytes and a `CURRENT` for it.
fn disk(number: u64, manifest: &[u8], current: &[u8]) -> Arc<dyn Fs> {
    let fs = memory();
    for (name, bytes) in [(FileName::Manifest(number), manifest), (FileName::Current, current)] {
        fs.open(&name.path(dir()), OpenOptions::create()).unwrap().write_all_at(bytes, 0).unwrap();
    }
    fs
}

fn read(fs: &Arc<dyn Fs>, name: FileName) -> Vec<u8> {
    fs.open(&name.path(dir()), OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// A manifest of several edits: its number, its bytes, the bytes of `CURRENT`, and the state at the
/// length after each edit.
struct Sample {
    number: u64,
    manifest: Vec<u8>,
    current: Vec<u8>,
    states: Vec<(usize, VersionEdit)>,
}

fn sample(edits: usize) -> Sample {
    let fs = memory();
    let set = new_store(&fs).unwrap();
    let number = set.manifest_number().unwrap();
    let mut draw = Edits::new(3);
    let mut states = Vec::new();
    for _ in 0..=edits {
        states.push((read(&fs, FileName::Manifest(number)).len(), set.summary()));
        apply(&set, &draw.next(&set)).unwrap();
    }
    let mut manifest = read(&fs, FileName::Manifest(number));
    manifest.truncate(states[edits].0);
    Sample { number, manifest, current: read(&fs, FileName::Current), states }
}

impl Sample {
    fn open(&self, manifest: &[u8]) -> Result<VersionEdit> {
        let fs = disk(self.number, manifest, &self.current);
        let read_only = VersionSet::open_read_only(&fs, dir()).map(|set| set.summary());
        let state = VersionSet::open(&fs, dir(), None).map(|set| set.summary());
        assert_eq!(read_only.is_ok(), state.is_ok());
        if let Ok(state) = &state {
            assert_eq!(&VersionSet::open(&fs, dir(), None).unwrap().summary(), state, "and again");
        }
        state
    }
}

/// Goal: a torn last record is ignored, wherever it is torn and whatever bytes replace the rest.
/// Method: every possible remaining length of the last record, then zeros or noise up to its end.
#[test]
fn torn_tails() {
    let sample = sample(6);
    let (before, last) = (&sample.states[5], &sample.states[6]);
    let whole = last.0 - SEAL_BYTES;
    let mut rng = SeededRng::new(seed());
    for cut in before.0..whole {
        assert_eq!(sample.open(&sample.manifest[..cut]).unwrap(), before.1, "cut at {cut}");
        let mut zeros = sample.manifest[..cut].to_vec();
        zeros.resize(whole, 0);
        if zeros != sample.manifest[..whole] {
            assert_eq!(sample.open(&zeros).unwrap(), before.1, "zeros from {cut}");
        }
        let mut noise = sample.manifest[..cut].to_vec();
        noise.resize(whole + SEAL_BYTES, 0);
        rng.fill(&mut noise[cut..]);
        assert_eq!(sample.open(&noise).unwrap(), before.1, "noise from {cut}");
    }
    for cut in whole..last.0 {
        assert_eq!(sample.open(&sample.manifest[..cut]).unwrap(), last.1, "only the seal is torn, at {cut}");
    }
}

/// Goal: damage to a durable record is reported as such, including the last record.
/// Method: zeros or noise over the end of each record but not the seals; every cut inside the
/// header and the first record.
#[test]
fn durable_records_are_not_cut_off() {
    let sample = sample(6);
    for pair in sample.states.windows(2) {
        let (start, end) = (pair[0].0, pair[1].0 - SEAL_BYTES);
        for at in start..end {
            let mut torn = sample.manifest.clone();
            torn[at..end].fill(0x5a);
            let opened = sample.open(&torn);
            assert!(
                torn == sample.manifest || matches!(opened, Err(Error::Corruption { .. })),
                "{at}: {opened:?}"
            );
        }
    }
    for cut in 0..sample.states[0].0 - SEAL_BYTES {
        assert!(matches!(sample.open(&sample.manifest[..cut]), Err(Error::Corruption { .. })), "{cut}");
    }
}

/// Goal: no flipped bit leads to a wrong state.
/// Method: every bit of a manifest and of `CURRENT`; the state is right or the error is corruption
/// (a flip in the last seal is harmless).
#[test]
fn bit_flips() {
    let sample = sample(5);
    let right = &sample.states[5].1;
    let mut harmless = 0;
    for bit in 0..sample.manifest.len() * 8 {
        let mut flipped = sample.manifest.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match sample.open(&flipped) {
            Ok(state) => {
                assert_eq!(&state, right, "bit {bit}");
                harmless += 1;
            }
            Err(Error::Corruption { offset, .. }) => {
                assert!(offset <= bit as u64 / 8 + 32, "bit {bit} at {offset}")
            }
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    assert_eq!(harmless, 6 * 8 * SEAL_BYTES, "seals, and nothing else");
    for bit in 0..sample.current.len() * 8 {
        let mut flipped = sample.current.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let opened = VersionSet::open(&disk(sample.number, &sample.manifest, &flipped), dir(), None);
        assert!(matches!(opened, Err(Error::Corruption { .. })), "bit {bit}");
    }
}

/// Goal: sound bytes in the wrong place are refused.
/// Method: records swapped and repeated, another store's record, a manifest under another number, a
/// later version.
#[test]
fn misplaced_bytes() {
    let sample = sample(4);
    let (head, rest) = sample.manifest.split_at(sample.states[0].0);
    let repeated = [&sample.manifest, &sample.manifest[sample.states[3].0..]].concat();
    assert_eq!(sample.open(&repeated).unwrap(), sample.states[4].1, "a copy at another offset is no record");
    let skipped = [head, &rest[sample.states[1].0 - head.len()..]].concat();
    assert_eq!(sample.open(&skipped).unwrap(), sample.states[0].1, "nor is one that moved up");
    let other = disk(sample.number + 1, &sample.manifest, b"");
    let fs = disk(sample.number + 1, &sample.manifest, b"");
    drop(other);
    let name = FileName::Manifest(sample.number + 1).to_string();
    let current = format!("{name} {:016x}\n", cairn_codec::checksum::xxh3_64(name.as_bytes()));
    fs.open(&FileName::Current.path(dir()), OpenOptions::create())
        .unwrap()
        .write_all_at(current.as_bytes(), 0)
        .unwrap();
    assert!(matches!(VersionSet::open(&fs, dir(), None), Err(Error::Corruption { offset: 24, .. })));
    fs.remove(&FileName::Manifest(sample.number + 1).path(dir())).unwrap();
    assert!(
        matches!(VersionSet::open(&fs, dir(), None), Err(Error::Corruption { .. })),
        "CURRENT names nothing"
    );

    let mut later = sample.manifest.clone();
    later[8] = 2;
    let sum = cairn_codec::checksum::xxh3_64(&later[..32]);
    later[32..40].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(sample.open(&later), Err(Error::Unsupported { .. })));
}

/// Goal: mutations of the fuzz corpus do no harm.
/// Method: bytes changed, cut and doubled, with a seed.
#[test]
fn fuzz_bodies() {
    let mut rng = SeededRng::new(seed()).fork("fuzz");
    let corpus = crate::version::fuzz::manifest_corpus();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/manifest");
    let disk = cairn_vfs::StdFs::new();
    for (name, input) in &corpus {
        let path = folder.join(name);
        if std::env::var_os("CAIRN_WRITE_CORPUS").is_some() {
            let file = disk.open(&path, OpenOptions::create()).unwrap();
            file.set_len(0).unwrap();
            file.write_all_at(input, 0).unwrap();
        }
        let stored = disk.open(&path, OpenOptions::read()).unwrap().map().unwrap().to_vec();
        assert!(stored == *input, "{name} is as this version writes it: CAIRN_WRITE_CORPUS=1 writes it anew");
    }
    for (_, input) in &corpus {
        crate::version::fuzz::manifest(input);
    }
    for _ in 0..rounds(5000) {
        let mut input = corpus[rng.below(corpus.len() as u64) as usize].1.clone();
        for _ in 0..1 + rng.below(5) {
            let at = rng.below(input.len() as u64) as usize;
            match rng.below(4) {
                0 => input[at] = rng.below(256) as u8,
                1 => input[at] = input[at].wrapping_add(1),
                2 => drop(input.splice(at..at, [rng.below(256) as u8])),
                _ => drop(input.remove(at)),
            }
            if input.is_empty() {
                break;
            }
        }
        crate::version::fuzz::manifest(&input);
    }
}
