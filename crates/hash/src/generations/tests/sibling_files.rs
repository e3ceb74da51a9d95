//! The files beside a store: its deltas, files of other programs, and the temporary files of
//! interrupted builds.

use std::ffi::OsStr;

use cairn_vfs::{FaultFs, FaultOptions, OpenOptions, Operation};

use super::*;
use crate::hook_fs::HookFs;
use crate::table::{Builder, Compression, Mode};

fn write(fs: &Arc<dyn Fs>, path: &Path, bytes: &[u8]) {
    let file = fs.open(path, OpenOptions::create()).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn bytes(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
    fs.open(path, OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

fn create(fs: &Arc<dyn Fs>, path: &Path, value: &str) {
    let mut builder = StoreBuilder::create_in(fs, path, options(), &mut SeededRng::new(1)).unwrap();
    (0..20u64).for_each(|key| builder.put(&key.to_le_bytes(), value.as_bytes()).unwrap());
    builder.finish().unwrap();
}

fn append(fs: &Arc<dyn Fs>, path: &Path, value: &str) {
    let mut builder = StoreBuilder::append_in(fs, path, options(), &mut SeededRng::new(2)).unwrap();
    builder.put(&0u64.to_le_bytes(), value.as_bytes()).unwrap();
    builder.finish().unwrap();
}

fn value(fs: &Arc<dyn Fs>, path: &Path, key: u64) -> String {
    let store = Generations::open_in(fs, path, ReaderOptions::default()).unwrap();
    String::from_utf8(store.get(&key.to_le_bytes()).unwrap().unwrap().into_owned()).unwrap()
}

/// Goal: copies that a user keeps beside a store neither make it unreadable nor get removed.
/// Method: copies of the base and of a delta, with a date as suffix and even with the name of a
/// delta; then every kind of writer.
#[test]
fn copies_next_to_a_store_are_kept() {
    let (fs, path) = (fs(), Path::new(PATH));
    create(&fs, path, "base");
    let base = bytes(&fs, path);
    write(&fs, Path::new("store/words.cairn.20240101"), &base);
    append(&fs, path, "delta");
    let delta = bytes(&fs, &names::delta(path, 1));
    write(&fs, Path::new("store/words.cairn.000001"), &delta);
    assert_eq!((value(&fs, path, 0), value(&fs, path, 1)), ("delta".into(), "base".into()));
    compact_in(&fs, path, options(), &mut SeededRng::new(3)).unwrap();
    // A delta number that no writer assigned. The new base takes a higher number and does not treat
    // the file as a delta of its own.
    write(&fs, &names::delta(path, 20_240_101), &base);
    write(&fs, &names::delta(path, 7), b"no table");
    create(&fs, path, "again");
    append(&fs, path, "more");
    assert_eq!((value(&fs, path, 0), value(&fs, path, 1)), ("more".into(), "again".into()));
    for (name, kept) in [
        (Path::new("store/words.cairn.20240101").to_owned(), &base[..]),
        (Path::new("store/words.cairn.000001").to_owned(), &delta),
        (names::delta(path, 20_240_101), &base),
        (names::delta(path, 7), b"no table"),
    ] {
        assert!(bytes(&fs, &name) == kept, "{}", name.display());
    }
}

/// Goal: a store whose name is not UTF-8 finds its deltas. Method: one such name through all
/// writers.
#[cfg(unix)]
#[test]
fn names_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let fs = fs();
    let path = Path::new("store").join(OsStr::from_bytes(b"w\xf6rter.cairn"));
    create(&fs, &path, "base");
    append(&fs, &path, "delta");
    assert_eq!((value(&fs, &path, 0), value(&fs, &path, 1)), ("delta".into(), "base".into()));
    append(&fs, &path, "second");
    assert_eq!(value(&fs, &path, 0), "second");
    compact_in(&fs, &path, options(), &mut SeededRng::new(3)).unwrap();
    assert_eq!(fs.read_dir(Path::new("store")).unwrap().len(), 3, "the base, the list and the lock file");
}

/// Goal: the highest possible generation number is an error, not a panic. Method: a header with
/// that number and a valid checksum; a file with that number in its name.
#[test]
fn highest_generation_number_is_refused() {
    let (fs, path) = (fs(), Path::new(PATH));
    create(&fs, path, "base");
    let mut forged = bytes(&fs, path);
    forged[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    let sum = cairn_codec::checksum::xxh3_64(&forged[..4088]);
    forged[4088..4096].copy_from_slice(&sum.to_le_bytes());
    write(&fs, path, &forged);
    let mut rng = SeededRng::new(1);
    let refused = StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    write(&fs, &names::delta(path, u64::MAX), &forged);
    let refused = StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    let [low, high] = [forged.clone(), forged].map(|bytes| {
        write(&fs, Path::new("store/x"), &bytes);
        crate::table::Reader::open_in(&fs, Path::new("store/x"), ReaderOptions::default()).unwrap()
    });
    assert!(matches!(check_parent(&high, 0, &low), Err(Error::Mismatch { .. })));
}

/// Goal: a reader notices that its store was replaced twice, even if the new base gets the inode of
/// the old one. Method: a real file system, and readers that have copied their files and closed
/// them.
#[test]
fn a_reused_inode_is_another_file() {
    let directory = tempfile::tempdir().unwrap();
    let (fs, path): (Arc<dyn Fs>, _) = (Arc::new(StdFs::new()), directory.path().join("words.cairn"));
    let heap = ReaderOptions::default().mode(Mode::Heap);
    create(&fs, &path, "0");
    for round in 1..20 {
        let before = Generations::open_in(&fs, &path, heap).unwrap();
        assert!(before.is_current().unwrap());
        create(&fs, &path, &format!("{round} a"));
        create(&fs, &path, &format!("{round} b"));
        assert!(!before.is_current().unwrap(), "round {round}");
    }
}

/// Goal: a plain builder does not replace the base of a store that has deltas. Method: it is
/// refused, and the store is unchanged.
#[test]
fn builders_refuse_stores_with_deltas() {
    let (fs, path) = (fs(), Path::new(PATH));
    create(&fs, path, "base");
    drop(Builder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap());
    append(&fs, path, "delta");
    let refused = Builder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap_err();
    assert!(matches!(&refused, Error::Invalid { detail } if detail.contains("StoreBuilder")), "{refused}");
    assert_eq!(value(&fs, path, 0), "delta");
    compact_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap();
    Builder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap().finish().unwrap();
}

/// Goal: a build uses no file names other than the two that it documents. Method: files with
/// similar names.
#[test]
fn builds_touch_only_their_own_files() {
    let (fs, path) = (fs(), Path::new("k"));
    for name in ["k.spill", "k.sort", "k.1", "k.delta", "k.lock"] {
        write(&fs, Path::new(name), b"mine");
    }
    Builder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap().finish().unwrap();
    StoreBuilder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap().finish().unwrap();
    for name in ["k.spill", "k.sort", "k.1", "k.delta", "k.lock"] {
        assert_eq!(bytes(&fs, Path::new(name)), b"mine", "{name}");
    }
}

/// Goal: an append removes the temporary files of an interrupted compaction, but not those of a
/// running build. Method: both temporary files of a base and of a delta are placed beside the
/// store; then the same while a builder is at work.
#[test]
fn append_removes_superseded_deltas() {
    let (fs, path) = (fs(), Path::new(PATH));
    create(&fs, path, "base");
    let leftovers = [".tmp", ".cairn-spill", ".delta.000009.tmp", ".delta.000009.cairn-spill"];
    for leftover in leftovers {
        write(&fs, Path::new(&format!("{PATH}{leftover}")), &[7; 9000]);
    }
    append(&fs, path, "delta");
    assert_eq!(fs.read_dir(Path::new("store")).unwrap().len(), 4, "base, delta, list and lock file");
    compact_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap();
    write(&fs, Path::new(&format!("{PATH}.cairn-spill")), &[7; 9000]);
    append(&fs, path, "delta");
    assert_eq!(fs.read_dir(Path::new("store")).unwrap().len(), 4, "base, delta, list and lock file");
    compact_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap();
    let mut builder = Builder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap();
    builder.put(&1u64.to_le_bytes(), b"built meanwhile").unwrap();
    drop(StoreBuilder::append_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap());
    builder.finish().unwrap();
    assert_eq!(value(&fs, path, 1), "built meanwhile");
}

/// Goal: a compaction does not copy values that nothing refers to. Method: newer generations
/// overwrite and delete long values; the compacted base has exactly the bytes of the remaining
/// ones.
#[test]
fn compaction_drops_hidden_blobs() {
    let (fs, path, mut rng) = (fs(), Path::new(PATH), SeededRng::new(1));
    let mut builder = StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap();
    (0..6u64).for_each(|key| builder.put(&key.to_le_bytes(), &vec![key as u8; 40_000]).unwrap());
    builder.finish().unwrap();
    let mut builder = StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap();
    builder.put(&0u64.to_le_bytes(), &vec![10; 50_000]).unwrap();
    builder.put(&1u64.to_le_bytes(), b"short").unwrap();
    builder.delete(&2u64.to_le_bytes()).unwrap();
    builder.delete(b"never there, and longer than the others").unwrap();
    builder.finish().unwrap();
    compact_in(&fs, path, options(), &mut rng).unwrap();
    let store = open(&fs);
    store.verify().unwrap();
    let info = store.tables()[0].info();
    assert_eq!((info.blob_bytes, info.entries, info.puts), (3 * 40_000 + 50_000, 5, 5));
    let lengths: Vec<usize> =
        (0..6u64).map(|key| store.get(&key.to_le_bytes()).unwrap().map_or(0, |value| value.len())).collect();
    assert_eq!(lengths, [50_000, 5, 0, 40_000, 40_000, 40_000]);
}

/// Goal: a store of fixed widths stays readable through a compaction, whatever its delta deletes.
/// Method: delete a longer key that the store never had.
#[test]
fn compaction_keeps_fixed_widths() {
    let (fs, path, mut rng) = (fs(), Path::new(PATH), SeededRng::new(1));
    create(&fs, path, "12345678");
    let mut builder = StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap();
    builder.delete(b"a key of another length").unwrap();
    builder.finish().unwrap();
    compact_in(&fs, path, options(), &mut rng).unwrap();
    assert!(open(&fs).tables()[0].info().fixed_width);
    let model = (0..20u64).map(|key| (key.to_le_bytes().to_vec(), b"12345678".to_vec())).collect();
    agrees(&open(&fs), &model, 30);
}

/// Goal: a compaction reports damage in a long value as corruption. Method: flip a bit of the
/// value.
#[test]
fn compaction_names_the_damaged_file() {
    let (fs, path, mut rng) = (fs(), Path::new(PATH), SeededRng::new(1));
    for compression in [Compression::None, Compression::Snappy] {
        let options = options().compression(compression);
        let mut builder = StoreBuilder::create_in(&fs, path, options.clone(), &mut rng).unwrap();
        builder.put(b"blob", &vec![7; 400_000]).unwrap();
        builder.finish().unwrap();
        let mut damaged = bytes(&fs, path);
        damaged[300_000] ^= 1;
        write(&fs, path, &damaged);
        let error = compact_in(&fs, path, options, &mut rng).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "{error:?}");
        assert!(bytes(&fs, path) == damaged, "nothing is published");
    }
}

/// Goal: a store has the same deltas, lock and temporary files by a symbolic link as by its own
/// name, and the link is kept.
/// Method: a chain of links into another directory; every kind of writer by one name and a check by
/// the other; then the link is changed to lead elsewhere.
#[cfg(unix)]
#[test]
fn links_lead_to_one_store() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let (link, path) = (at("link.cairn"), at("d/words.cairn"));
    fs.create_dir_all(&at("d")).unwrap();
    symlink("words.cairn", at("d/near.cairn")).unwrap();
    symlink("d/near.cairn", &link).unwrap();
    let mut rng = SeededRng::new(1);
    create(&fs, &link, "base");
    append(&fs, &path, "delta");
    assert_eq!((value(&fs, &link, 0), value(&fs, &link, 1)), ("delta".into(), "base".into()));
    append(&fs, &link, "second");
    assert_eq!(value(&fs, &path, 0), "second");
    assert_eq!(files_in(&fs, &link).unwrap()[1..], [1, 2].map(|number| names::delta(&path, number)));
    let refused = Builder::create_in(&fs, &link, options(), &mut rng).unwrap_err();
    assert!(refused.to_string().contains("link.cairn has deltas"), "{refused}");
    let writer = StoreBuilder::append_in(&fs, &path, options(), &mut rng).unwrap();
    let busy = StoreBuilder::create_in(&fs, &link, options(), &mut rng).unwrap_err();
    assert!(busy.kind() == ErrorKind::Busy && busy.to_string().contains("link.cairn"), "{busy}");
    drop(writer);
    let before = Generations::open_in(&fs, &link, ReaderOptions::default()).unwrap();
    assert!(before.is_current().unwrap());
    append(&fs, &path, "third");
    assert!(!before.is_current().unwrap(), "a delta is seen through the link");
    compact_in(&fs, &link, options(), &mut rng).unwrap();
    assert_eq!(value(&fs, &path, 0), "third");
    let left = ["d/near.cairn", "d/words.cairn", "d/words.cairn.lock", "d/words.cairn.manifest"];
    assert_eq!(fs.read_dir(&at("d")).unwrap(), left.map(at));
    assert_eq!(fs.read_dir(&at("")).unwrap(), [at("d"), link.clone()]);
    // Another store under the old name.
    let before = Generations::open_in(&fs, &link, ReaderOptions::default()).unwrap();
    create(&fs, &at("other.cairn"), "other");
    fs.remove(&link).unwrap();
    symlink("other.cairn", &link).unwrap();
    assert!(!before.is_current().unwrap());
    assert_eq!(value(&fs, &link, 0), "other");
}

/// Goal: repeated checks whether a store is current do not list its directory. Method: count the
/// operations of the file system, with and without a change.
#[test]
fn is_current_lists_no_directory() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let (fs, path): (Arc<dyn Fs>, _) = (Arc::new(disk.clone()), Path::new("words.cairn"));
    create(&fs, path, "base");
    for round in 0..3 {
        let store = Generations::open_in(&fs, path, ReaderOptions::default()).unwrap();
        let lists = |expected| {
            let before = disk.operation_count_of(Operation::ReadDir);
            assert_eq!(store.is_current().unwrap(), expected, "round {round}");
            disk.operation_count_of(Operation::ReadDir) - before
        };
        assert_eq!(lists(true), 0);
        match round {
            0 => append(&fs, path, "delta"),
            1 => _ = compact_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap(),
            _ => create(&fs, path, "another"),
        }
        assert_eq!(lists(false), 0);
    }
}

/// Returns the permission bits of a file.
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777
}

/// Goal: a user who may not read a store may not read anything written to it. Method: a base that
/// only its owner may read, and one that a group may write. The permissions of every file beside it
/// are checked during the build of a delta and afterwards.
#[test]
fn deltas_have_the_rights_of_their_base() {
    use std::os::unix::fs::PermissionsExt;
    for rights in [0o600, 0o660] {
        let directory = tempfile::tempdir().unwrap();
        let (fs, path): (Arc<dyn Fs>, _) = (Arc::new(StdFs::new()), directory.path().join("words.cairn"));
        // The lock file is removed, because the next writer creates it anew.
        create(&fs, &path, "base");
        fs.remove(&names::lock(&path)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(rights)).unwrap();
        let all = |count: usize| {
            let files = fs.read_dir(directory.path()).unwrap();
            assert_eq!(files.len(), count, "{files:?}");
            files.iter().for_each(|file| assert_eq!(mode(file), rights, "{}", file.display()));
        };
        let mut delta = StoreBuilder::append_in(&fs, &path, options(), &mut SeededRng::new(1)).unwrap();
        delta.put(b"k", b"secret").unwrap();
        all(3);
        delta.finish().unwrap();
        all(4);
    }
}

/// Goal: a user who may write a store can lock it, even if another user owns the lock file. Method:
/// a file system that opens an existing lock file only for reading.
#[test]
fn locks_need_no_right_to_write() {
    let fs = fs();
    let inner = Arc::clone(&fs);
    let asked = HookFs::over(&fs, move |operation, file| {
        if operation == Operation::Open && file == names::lock(Path::new(PATH)) && inner.exists(file)? {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(cairn_vfs::Error::new(operation, file, source));
        }
        Ok(())
    });
    create(&asked, Path::new(PATH), "base");
    append(&asked, Path::new(PATH), "delta");
    assert_eq!(value(&fs, Path::new(PATH), 0), "delta");
    let held = StoreBuilder::append_in(&asked, Path::new(PATH), options(), &mut SeededRng::new(1)).unwrap();
    let second = StoreBuilder::append_in(&asked, Path::new(PATH), options(), &mut SeededRng::new(1));
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
    drop(held);
}

/// Goal: an open that overlaps a publication sees the state before or after it, and no error.
/// Method: an append, a compaction and a new base, each carried out in full just before one of the
/// reads of an open, for each of these reads in turn.
#[test]
fn readers_open_during_writes() {
    let fill = |mut builder: StoreBuilder, keys: u64, value: &str| {
        (0..keys).for_each(|key| builder.put(&key.to_le_bytes(), value.as_bytes()).unwrap());
        builder.finish().unwrap();
    };
    for (step, after) in
        [("append", ["second", "base"]), ("compact", ["first", "base"]), ("create", ["new"; 2])]
    {
        let before = ["first", "base"];
        for place in 0.. {
            let (fs, path, mut rng) = (fs(), Path::new(PATH), SeededRng::new(7));
            fill(StoreBuilder::create_in(&fs, path, options(), &mut rng).unwrap(), 20, "base");
            fill(StoreBuilder::append_in(&fs, path, options(), &mut rng).unwrap(), 1, "first");
            let (inner, reads) = (Arc::clone(&fs), std::sync::atomic::AtomicU64::new(0));
            let is_done = Arc::new(AtomicBool::new(false));
            let done = Arc::clone(&is_done);
            let asking = HookFs::over(&fs, move |operation, _| {
                if operation == Operation::Read && reads.fetch_add(1, Ordering::Relaxed) == place {
                    let (path, mut rng) = (Path::new(PATH), SeededRng::new(8));
                    match step {
                        "append" => {
                            let delta = StoreBuilder::append_in(&inner, path, options(), &mut rng).unwrap();
                            fill(delta, 1, "second");
                        }
                        "compact" => drop(compact_in(&inner, path, options(), &mut rng).unwrap()),
                        _ => {
                            let base = StoreBuilder::create_in(&inner, path, options(), &mut rng).unwrap();
                            fill(base, 20, "new");
                        }
                    }
                    done.store(true, Ordering::Relaxed);
                }
                Ok(())
            });
            let store = Generations::open_in(&asking, path, ReaderOptions::default());
            let store = store.unwrap_or_else(|error| panic!("{step} before file {place}: {error}"));
            let found = [0u64, 1].map(|key| {
                String::from_utf8(store.get(&key.to_le_bytes()).unwrap().unwrap().into_owned()).unwrap()
            });
            if !is_done.load(Ordering::Relaxed) {
                assert!(place > 4, "{place} files read");
                break;
            }
            assert!(found == before || found == after, "{step} before file {place}: {found:?}");
            assert_eq!([0, 1].map(|key| value(&fs, path, key)), after, "{step} before file {place}");
        }
    }
}
