//! Files of a store that are missing, old, foreign, cut, doubled or swapped with each other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;

/// The files of a directory and their contents.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// One change to a store.
#[derive(Debug, Clone, Copy)]
enum Step {
    Create,
    Append,
    Compact,
}

const STEPS: [Step; 10] = [
    Step::Create,
    Step::Append,
    Step::Append,
    Step::Append,
    Step::Compact,
    Step::Append,
    Step::Append,
    Step::Create,
    Step::Append,
    Step::Append,
];

fn files(fs: &Arc<dyn Fs>) -> Files {
    let mut files = Files::new();
    for path in fs.read_dir(Path::new("store")).unwrap() {
        let file = fs.open(&path, OpenOptions::read()).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        files.insert(path, bytes);
    }
    files
}

fn disk(files: &Files) -> Arc<dyn Fs> {
    let fs = fs();
    for (path, bytes) in files {
        fs.open(path, OpenOptions::create()).unwrap().write_all_at(bytes, 0).unwrap();
    }
    fs
}

/// Returns every state of a store on its way through [`STEPS`]: its files and its entries.
fn history(seed: u64) -> Vec<(Files, Model)> {
    let (fs, mut rng, mut model) = (fs(), SeededRng::new(seed), Model::new());
    let path = Path::new(PATH);
    let states = STEPS.iter().enumerate().map(|(number, step)| {
        let mut builder = match step {
            Step::Create => {
                model.clear();
                StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap()
            }
            Step::Append => StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap(),
            Step::Compact => {
                compact_in(&fs, path, options(), &mut rng).unwrap();
                return (files(&fs), model.clone());
            }
        };
        for key in (0..30u64).filter(|key| key % 3 == number as u64 % 3) {
            let value = format!("{key} of step {number} of store {seed}");
            builder.put(&key.to_le_bytes(), value.as_bytes()).unwrap();
            model.insert(key.to_le_bytes().to_vec(), value.into_bytes());
        }
        let gone = number as u64;
        builder.delete(&gone.to_le_bytes()).unwrap();
        model.remove(&gone.to_le_bytes()[..]);
        builder.finish().unwrap();
        (files(&fs), model.clone())
    });
    states.collect()
}

/// Opens a store whose file `changed` was tampered with and reads all of it. Either the entries are
/// those that were written, or the error names the file. Returns whether there was an error.
fn meet(files: &Files, model: &Model, changed: &Path, context: &str) -> bool {
    let fs = disk(files);
    let read = Generations::open_in(&fs, Path::new(PATH), ReaderOptions::default()).and_then(|store| {
        store.verify()?;
        let mut found = Model::new();
        store.for_each(|key, value| {
            found.insert(key.to_vec(), value.to_vec());
            Ok::<(), Error>(())
        })?;
        Ok(found)
    });
    match read {
        Ok(found) => {
            assert!(found == *model, "{context}: {} of {} entries, and sound", found.len(), model.len());
            false
        }
        Err(error) => {
            let name = changed.file_name().unwrap().to_string_lossy().into_owned();
            assert!(error.to_string().contains(&name), "{context}: {error}");
            true
        }
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "lock")
}

/// Goal: a missing or replaced file of a store with generations is reported: a read returns the
/// written rows, or an error names the file. Method: each file of each state of a store is removed,
/// replaced by each of its older versions and by the file of that name of another store, cut,
/// doubled, copied to the name of the next delta, and swapped with each other file.
#[test]
fn every_replaced_file_is_detected() {
    let (ours, other) = (history(1), history(2));
    let (mut tried, mut refused) = (0, 0);
    for (state, (files, model)) in ours.iter().enumerate() {
        // A table that was never appended to is a single file, and no other file can tell that it
        // was replaced.
        let has_list = files.len() > 2;
        let mut check = |changed: &Path, detail: &str, files: &Files| {
            tried += 1;
            let context = format!("state {state}, {}: {detail}", changed.display());
            refused += usize::from(meet(files, model, changed, &context));
        };
        assert!(!meet(files, model, Path::new(PATH), "as it is"));
        for (path, bytes) in files.iter().filter(|(path, _)| !is_lock(path)) {
            let with = |bytes: &[u8]| {
                let mut changed = files.clone();
                changed.insert(path.clone(), bytes.to_vec());
                changed
            };
            let mut removed = files.clone();
            removed.remove(path);
            check(path, "removed", &removed);
            for cut in [0, 1, 16, bytes.len() / 2, bytes.len() - 1] {
                check(path, &format!("cut to {cut}"), &with(&bytes[..cut]));
            }
            check(path, "doubled", &with(&bytes.repeat(2)));
            if has_list {
                for (before, (older, _)) in ours[..state].iter().enumerate() {
                    older
                        .get(path)
                        .into_iter()
                        .for_each(|old| check(path, &format!("of state {before}"), &with(old)));
                }
                for (there, (foreign, _)) in other.iter().enumerate() {
                    let foreign = foreign.get(path).into_iter();
                    foreign
                        .for_each(|foreign| check(path, &format!("of the other in {there}"), &with(foreign)));
                }
            }
            for (place, _) in files.iter().filter(|(place, _)| *place != path && !is_lock(place)) {
                let mut swapped = with(&files[place]);
                swapped.insert(place.clone(), bytes.clone());
                // Both files are wrong, and the error may name either.
                let fs = disk(&swapped);
                assert!(
                    Generations::open_in(&fs, Path::new(PATH), ReaderOptions::default()).is_err(),
                    "state {state}: {} and {} swapped",
                    path.display(),
                    place.display()
                );
            }
            if has_list && !path.ends_with("words.cairn.manifest") {
                let base = Reader::open_in(&disk(files), Path::new(PATH), ReaderOptions::default()).unwrap();
                for number in base.header.generation + 1..base.header.generation + 6 {
                    let copy = names::delta(Path::new(PATH), number);
                    if !files.contains_key(&copy) {
                        let mut more = files.clone();
                        more.insert(copy.clone(), bytes.clone());
                        check(&copy, &format!("a copy of {}", path.display()), &more);
                    }
                }
            }
        }
    }
    println!("files of a store replaced: {tried}, {refused} refused");
    assert!(refused > 250, "{refused} of {tried}");
}

/// Goal: legitimate uses of the files keep working. Method: copy the files, under their own names
/// and under others; restore a whole earlier state; read an older generation while the store
/// changes; replace a store with the plain builder.
#[test]
fn renamed_and_copied_stores_open() {
    let states = history(1);
    for (state, (files, model)) in states.iter().enumerate() {
        let mut copied = Files::new();
        for (path, bytes) in files.iter().filter(|(path, _)| !is_lock(path)) {
            let name = path.file_name().unwrap().to_string_lossy().replace("words", "copy");
            copied.insert(path.with_file_name(name), bytes.clone());
        }
        let fs = disk(&copied);
        let store =
            Generations::open_in(&fs, Path::new("store/copy.cairn"), ReaderOptions::default()).unwrap();
        agrees(&store, model, 30);
        // The copy is an independent store, and the reader keeps its state.
        let path = Path::new("store/copy.cairn");
        let mut rng = SeededRng::new(9);
        let mut delta = StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap();
        delta.put(b"new", b"1").unwrap();
        delta.finish().unwrap();
        compact_in(&fs, path, options(), &mut rng).unwrap();
        agrees(&store, model, 30);
        let after = Generations::open_in(&fs, path, ReaderOptions::default()).unwrap();
        assert_eq!(after.get(b"new").unwrap().as_deref(), Some(&b"1"[..]), "state {state}");
        let mut table = crate::table::Builder::create_in(&fs, path, options(), &mut rng).unwrap();
        table.put(b"other", b"2").unwrap();
        table.finish().unwrap();
        let table = Generations::open_in(&fs, path, ReaderOptions::default()).unwrap();
        assert_eq!(table.get(b"other").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(table.get(b"new").unwrap(), None);
    }
}

/// Goal: a store with a damaged manifest can be built anew and is sound afterwards. Method: a
/// manifest of zeros; a new base, and a delta over it.
#[test]
fn damaged_manifest_is_replaced_by_a_new_base() {
    let (mut files, _) = history(1).swap_remove(3);
    let list = names::manifest(Path::new(PATH));
    files.insert(list.clone(), vec![0; 100]);
    let (fs, mut rng) = (disk(&files), SeededRng::new(5));
    let refused = StoreBuilder::append_in(&fs, Path::new(PATH), options(), &mut rng).unwrap_err();
    assert!(matches!(&refused, Error::Corruption { file, .. } if *file == list), "{refused}");
    let mut model = Model::new();
    for step in 0..2u64 {
        let mut builder = match step {
            0 => StoreBuilder::create_in(&fs, Path::new(PATH), options(), &mut rng).unwrap(),
            _ => StoreBuilder::append_in(&fs, Path::new(PATH), options(), &mut rng).unwrap(),
        };
        builder.put(&step.to_le_bytes(), b"v").unwrap();
        model.insert(step.to_le_bytes().to_vec(), b"v".to_vec());
        builder.finish().unwrap();
        agrees(&open(&fs), &model, 30);
    }
}

/// Goal: after a power loss during a publication, the pending base counts as published only if the
/// base on disk is that one. Method: a manifest with a pending base, together with the old base,
/// with the new one, and with a base of another store that has the same number.
#[test]
fn base_other_than_the_pending_one_is_refused() {
    let (ours, other) = (history(1), history(2));
    let path = Path::new(PATH);
    let (files, old) = &ours[6];
    let (after, new) = &ours[7];
    let list = |files: &Files| manifest::Manifest::read(&*disk(files), path).unwrap().unwrap();
    let pending = manifest::Manifest { next: manifest::Next::Base(list(after).listed[0]), ..list(files) };
    let with = |base: &[u8]| {
        let mut files = files.clone();
        files.insert(path.to_owned(), base.to_vec());
        let fs = disk(&files);
        pending.write(&fs, path).unwrap();
        fs
    };
    agrees(&open(&with(&files[path])), old, 30);
    agrees(&open(&with(&after[path])), new, 30);
    let foreign = &other[7].0;
    assert_eq!(list(foreign).listed[0].number, list(after).listed[0].number);
    let refused = Generations::open_in(&with(&foreign[path]), path, ReaderOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::Mismatch { .. }), "{refused}");
}
