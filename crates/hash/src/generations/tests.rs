//! Stores of several generations, compared with a map.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_vfs::{ErrorKind, Fs, MemFs, Rng, SeededRng};

use super::*;
use crate::table::BuildOptions;

mod mixed_up_files;
mod sibling_files;

const PATH: &str = "store/words.cairn";

fn fs() -> Arc<dyn Fs> {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("store")).unwrap();
    Arc::new(fs)
}

fn options() -> BuildOptions {
    BuildOptions::default().threads(1).memory_bytes(16 << 20)
}

fn open(fs: &Arc<dyn Fs>) -> Generations {
    Generations::open_in(fs, Path::new(PATH), ReaderOptions::default()).unwrap()
}

type Model = HashMap<Vec<u8>, Vec<u8>>;

fn agrees(store: &Generations, model: &Model, keys: u64) {
    for key in (0..keys).map(|key| key.to_le_bytes()) {
        let expected = model.get(&key[..]).map(Vec::as_slice);
        assert_eq!(store.get(&key).unwrap().as_deref(), expected);
        assert_eq!(store.contains(&key).unwrap(), expected.is_some());
        let mut value = Vec::new();
        assert_eq!(store.get_into(&key, &mut value).unwrap().then_some(&value[..]), expected);
    }
    let asked: Vec<[u8; 8]> = (0..keys).rev().map(u64::to_le_bytes).collect();
    let mut position = 0;
    store
        .get_many(&asked, |index, value| {
            assert_eq!(index, position, "in the order given");
            assert_eq!(value, model.get(&asked[index][..]).map(Vec::as_slice));
            position += 1;
        })
        .unwrap();
    assert_eq!(position, asked.len());
    let mut seen = Model::new();
    store
        .for_each(|key, value| {
            assert!(seen.insert(key.to_vec(), value.to_vec()).is_none(), "a key comes once");
            Ok::<(), crate::Error>(())
        })
        .unwrap();
    assert_eq!(&seen, model);
    store.verify().unwrap();
}

/// Changes a random half of `keys`, in the store and in the model.
fn change(builder: &mut StoreBuilder, model: &mut Model, rng: &mut SeededRng, keys: u64) {
    for _ in 0..keys / 2 {
        let key = rng.below(keys).to_le_bytes();
        if rng.chance(0.3) {
            builder.delete(&key).unwrap();
            model.remove(&key[..]);
        } else {
            let bytes = if rng.chance(0.02) { 40_000 } else { rng.below(100) as usize };
            let mut value = vec![0; bytes];
            rng.fill(&mut value);
            builder.put(&key, &value).unwrap();
            model.insert(key.to_vec(), value);
        }
    }
}

/// Goal: a base, deltas, a compaction and a new base over all of them give the same answers as a
/// map. Method: five rounds of random changes, then every reader mode.
#[test]
fn generations_agree_with_a_map() {
    let (fs, mut rng, keys) = (fs(), SeededRng::new(3), 400);
    let mut model = Model::new();
    for round in 0..5 {
        let mut builder = if round == 0 || round == 3 {
            model.clear();
            StoreBuilder::create_in(&fs, Path::new(PATH), options(), &mut rng).unwrap()
        } else {
            StoreBuilder::append_in(&fs, Path::new(PATH), options(), &mut rng).unwrap()
        };
        change(&mut builder, &mut model, &mut SeededRng::new(round), keys);
        builder.finish().unwrap();
        agrees(&open(&fs), &model, keys);
    }
    assert_eq!(open(&fs).tables().len(), 2, "round 3 began anew, round 4 appended");
    for mode in [crate::table::Mode::Heap, crate::table::Mode::Pread] {
        let options = ReaderOptions::default().mode(mode);
        agrees(&Generations::open_in(&fs, Path::new(PATH), options).unwrap(), &model, keys);
    }
    let before = open(&fs);
    compact_in(&fs, Path::new(PATH), options(), &mut rng).unwrap();
    assert!(!before.is_current().unwrap());
    agrees(&before, &model, keys);
    let after = open(&fs);
    assert!(after.is_current().unwrap());
    assert_eq!(after.tables().len(), 1);
    agrees(&after, &model, keys);
    assert_eq!(fs.read_dir(Path::new("store")).unwrap().len(), 3, "the base, the list and the lock file");
}

/// Goal: the generations of a store may use different compressions, and a compaction rewrites all
/// of them with one.
/// Method: one generation of each compression, compared with a map, then a compaction to each.
#[test]
fn generations_of_all_compressions() {
    use crate::table::{Compression, Format};
    let (fs, mut rng, keys) = (fs(), SeededRng::new(8), 300u64);
    let mut model = Model::new();
    let compressions = [Compression::Snappy, Compression::zstd(), Compression::None, Compression::Snappy];
    for (round, compression) in compressions.into_iter().enumerate() {
        let options = options().compression(compression);
        let mut builder = match round {
            0 => StoreBuilder::create_in(&fs, Path::new(PATH), options, &mut rng).unwrap(),
            _ => StoreBuilder::append_in(&fs, Path::new(PATH), options, &mut rng).unwrap(),
        };
        for key in (0..keys).filter(|key| key % 5 >= round as u64) {
            let value = format!("round {round} key {key},").repeat(1 + key as usize % 9).into_bytes();
            builder.put(&key.to_le_bytes(), &value).unwrap();
            model.insert(key.to_le_bytes().to_vec(), value);
        }
        builder.delete(&(round as u64).to_le_bytes()).unwrap();
        model.remove(&(round as u64).to_le_bytes()[..]);
        builder.finish().unwrap();
        agrees(&open(&fs), &model, keys);
    }
    let formats = |store: &Generations| -> Vec<Format> {
        store.tables().iter().map(|table| table.info().compression).collect()
    };
    assert_eq!(formats(&open(&fs)), [Format::Snappy, Format::None, Format::Zstd, Format::Snappy]);
    for compression in compressions {
        compact_in(&fs, Path::new(PATH), options().compression(compression), &mut rng).unwrap();
        assert_eq!(formats(&open(&fs)), [compression.format()]);
        for mode in [crate::table::Mode::Mmap, crate::table::Mode::Pread] {
            let options = ReaderOptions::default().mode(mode);
            agrees(&Generations::open_in(&fs, Path::new(PATH), options).unwrap(), &model, keys);
        }
    }
}

/// Goal: two writers never work on one store. Method: the second writer gets `Busy` until the first
/// one is done.
#[test]
fn one_writer_at_a_time() {
    let (fs, mut rng) = (fs(), SeededRng::new(1));
    let path = Path::new(PATH);
    let first = StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap();
    let second = StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Busy);
    assert_eq!(second.to_string(), format!("cannot lock {PATH}: another writer has it open"));
    first.finish().unwrap();
    let first = StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap();
    assert_eq!(compact_in(&fs, path, options(), &mut rng).unwrap_err().kind(), ErrorKind::Busy);
    drop(first);
    compact_in(&fs, path, options(), &mut rng).unwrap();
}

/// Goal: a delta of another store, or one without its predecessor, is refused. Method: both cases,
/// made by renaming files.
#[test]
fn foreign_and_missing_deltas_are_refused() {
    let (fs, mut rng) = (fs(), SeededRng::new(1));
    for name in [PATH, "store/other.cairn"] {
        StoreBuilder::create_in(&fs, Path::new(name), options(), &mut rng).unwrap().finish().unwrap();
        for _ in 0..2 {
            StoreBuilder::append_in(&fs, Path::new(name), options(), &mut rng).unwrap().finish().unwrap();
        }
    }
    let [first, second] = [1, 2].map(|number| names::delta(Path::new(PATH), number));
    let refused = || {
        let opened = Generations::open_in(&fs, Path::new(PATH), ReaderOptions::default());
        let is_told = matches!(opened, Err(Error::Mismatch { .. } | Error::Missing { .. }));
        assert!(is_told, "{opened:?}");
    };
    fs.rename(&first, Path::new("store/aside")).unwrap();
    refused();
    fs.rename(&names::delta(Path::new("store/other.cairn"), 1), &first).unwrap();
    refused();
    fs.rename(Path::new("store/aside"), &first).unwrap();
    assert_eq!(open(&fs).tables().len(), 3);
    fs.rename(&second, Path::new(PATH)).unwrap();
    let opened = Generations::open_in(&fs, Path::new(PATH), ReaderOptions::default());
    assert!(matches!(opened, Err(Error::Unsupported { .. })), "a delta is no base");
}

/// Goal: readers see the old state or the new one, never a mixture, while stores are swapped under
/// them. Method: every value of a state is the number of that state. Two threads read whole states
/// while a third builds 40 of them.
#[test]
fn reload_under_load_shows_whole_states() {
    let (fs, path) = (fs(), Path::new(PATH));
    let publish = |state: u64| {
        let mut rng = SeededRng::new(state);
        let mut builder = match state % 4 {
            1 => StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap(),
            0 => {
                compact_in(&fs, path, options(), &mut rng).unwrap();
                StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap()
            }
            _ => StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap(),
        };
        (0..200u64).for_each(|key| builder.put(&key.to_le_bytes(), &state.to_le_bytes()).unwrap());
        builder.finish().unwrap();
    };
    publish(1);
    let (fs_of_live, done) = (fs.clone(), AtomicBool::new(false));
    let live = Live::new(move || Generations::open_in(&fs_of_live, path, ReaderOptions::default())).unwrap();
    cairn_vfs::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut newest = 0;
                while !done.load(Ordering::Relaxed) {
                    let store = live.load();
                    let states: Vec<u64> = (0..200u64)
                        .map(|key| store.get(&key.to_le_bytes()).unwrap().unwrap())
                        .map(|value| u64::from_le_bytes((*value).try_into().unwrap()))
                        .collect();
                    assert!(states.iter().all(|state| *state == states[0] && *state >= newest));
                    newest = states[0];
                }
            });
        }
        for state in 2..=40 {
            publish(state);
            live.reload().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    fs.rename(path, Path::new("store/gone")).unwrap();
    assert!(live.reload().is_err(), "nothing there");
    assert!(live.load().contains(&0u64.to_le_bytes()).unwrap(), "the old one stays");
}
