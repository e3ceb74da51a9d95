//! The effect of a power loss on names.

use std::collections::BTreeSet;

use super::*;

fn sync(fs: &FaultFs, dir: &str) {
    fs.sync_dir(Path::new(dir)).unwrap();
}

/// Returns the sets of files found over many images, each file as `name=content`.
fn views(fs: &FaultFs) -> BTreeSet<String> {
    over_images(fs, 200, |fs| {
        let show = |name: String| {
            let bytes = read(fs, &name).unwrap();
            format!("{name}={}", String::from_utf8_lossy(&bytes))
        };
        files(fs).into_iter().map(show).collect::<Vec<_>>().join(" ")
    })
}

fn set(expected: &[&str]) -> BTreeSet<String> {
    expected.iter().map(|&s| s.to_owned()).collect()
}

/// Goal: a synced file whose name was not synced can vanish; a synced name whose bytes were not
/// synced can be empty; after both syncs there is one outcome.
#[test]
fn names_and_bytes_are_apart() {
    let fs = quiet();
    let file = write(&fs, "f", b"x");
    assert_eq!(views(&fs), set(&["", "f=", "f=x", "f=\0", &views_garbage(&fs)]));
    file.sync_data().unwrap();
    assert_eq!(views(&fs), set(&["", "f=x"]));
    sync(&fs, "/");
    assert_eq!(views(&fs), set(&["f=x"]));
    let fs = quiet();
    let file = create(&fs, "f");
    sync(&fs, "/");
    assert_eq!(views(&fs), set(&["f="]));
    file.set_len(1).unwrap();
    assert_eq!(views(&fs), set(&["f=", "f=\0"]));
}

/// A one-byte write can turn into any byte. Returns the view with the garbage byte that this range
/// of seeds draws.
fn views_garbage(fs: &FaultFs) -> String {
    let odd = views(fs).into_iter().find(|view| !["", "f=", "f=x", "f=\0"].contains(&view.as_str()));
    odd.expect("200 images hold some garbage")
}

/// Goal: after a rename, a crash leaves the old name, the new one or both, but never neither.
/// Control: after the directory sync, only the new one.
#[test]
fn renames_show_old_new_or_both() {
    let fs = quiet();
    drop(install(&fs, "old", b"x"));
    fs.rename(Path::new("old"), Path::new("new")).unwrap();
    assert_eq!(views(&fs), set(&["old=x", "new=x", "new=x old=x"]));
    let fixed = |image| files(&fs.crash_point().image(image));
    assert_eq!((fixed(CrashImage::None), fixed(CrashImage::All)), (vec!["old".into()], vec!["new".into()]));
    sync(&fs, "/");
    assert_eq!(views(&fs), set(&["new=x"]));
}

/// Goal: renaming over a file before the new bytes are synced can lose both contents; after
/// `sync_data` it cannot. `AtomicFile` exists to prevent this mistake.
#[test]
fn rename_does_not_carry_bytes() {
    let replace = |sync_first: bool| {
        let fs = quiet();
        drop(install(&fs, "f", b"1"));
        let new = write(&fs, "f.tmp", b"2");
        if sync_first {
            new.sync_data().unwrap();
        }
        fs.rename(Path::new("f.tmp"), Path::new("f")).unwrap();
        over_images(&fs, 200, |fs| read(fs, "f").unwrap())
    };
    assert_eq!(replace(true), [b"1".to_vec(), b"2".to_vec()].into());
    let careless = replace(false);
    assert!(careless.contains(&b""[..]) && careless.contains(&b"\0"[..]), "{careless:?}");
}

/// Goal: removed and linked names may or may not survive until they are synced.
#[test]
fn removal_and_links() {
    let fs = quiet();
    drop(install(&fs, "a", b"x"));
    fs.remove(Path::new("a")).unwrap();
    assert_eq!(views(&fs), set(&["", "a=x"]));
    sync(&fs, "/");
    assert_eq!(views(&fs), set(&[""]));
    drop(install(&fs, "a", b"x"));
    fs.hard_link(Path::new("a"), Path::new("b")).unwrap();
    assert_eq!(views(&fs), set(&["a=x", "a=x b=x"]));
    sync(&fs, "/");
    assert_eq!(views(&fs), set(&["a=x b=x"]));
}

/// Goal: a name that changes twice can refer to either file, complete.
#[test]
fn names_change_twice() {
    let fs = quiet();
    drop(install(&fs, "a", b"1"));
    fs.remove(Path::new("a")).unwrap();
    write(&fs, "a", b"2").sync_data().unwrap();
    assert_eq!(views(&fs), set(&["", "a=1", "a=2"]));
}

/// Goal: a directory whose own name was not synced is lost with its files; syncing the directory
/// does not cover that name.
#[test]
fn directories_vanish_with_their_files() {
    let fs = quiet();
    fs.create_dir_all(Path::new("d/e")).unwrap();
    write(&fs, "d/e/f", b"x").sync_data().unwrap();
    sync(&fs, "d/e");
    assert_eq!(views(&fs), set(&["", "d/e/f=x"]));
    sync(&fs, "d");
    let after = fs.crash_point().image(CrashImage::None);
    assert!(!after.exists(Path::new("d")).unwrap(), "d itself was never synced");
    sync(&fs, "/");
    assert_eq!(views(&fs), set(&["d/e/f=x"]));
    assert!(fs.is_settled());
}

/// Goal: a rename between directories needs both syncs. A sync of the target keeps the new name and
/// maybe the old one; a sync of the source drops the old name only after the new one is durable.
#[test]
fn renames_between_directories() {
    let moved = |synced: &[&str]| {
        let fs = quiet();
        drop(install(&fs, "from/f", b"x"));
        drop(install(&fs, "to/g", b"y"));
        fs.rename(Path::new("from/f"), Path::new("to/f")).unwrap();
        synced.iter().for_each(|dir| sync(&fs, dir));
        views(&fs)
    };
    let (old, new, both) = ("from/f=x to/g=y", "to/f=x to/g=y", "from/f=x to/f=x to/g=y");
    assert_eq!(moved(&[]), set(&[old, new, both]));
    assert_eq!(moved(&["to"]), set(&[new, both]));
    assert_eq!(moved(&["from"]), set(&[new]));
    assert_eq!(moved(&["to", "from"]), set(&[new]));
}

/// Goal: making the new name of a rename durable early also makes the earlier changes of that name
/// durable, in order.
#[test]
fn forced_halves_keep_their_order() {
    let fs = quiet();
    drop(install(&fs, "from/f", b"moved"));
    fs.create_dir_all(Path::new("to")).unwrap();
    sync(&fs, "/");
    write(&fs, "to/f", b"first").sync_data().unwrap();
    fs.rename(Path::new("from/f"), Path::new("to/f")).unwrap();
    sync(&fs, "from");
    assert_eq!(views(&fs), set(&["to/f=moved"]));
    sync(&fs, "to");
    assert_eq!(views(&fs), set(&["to/f=moved"]));
}

/// Goal: this propagates along a chain of renames: a file that the new name replaced must be
/// durable where it was moved before.
#[test]
fn forced_halves_force_others() {
    let fs = quiet();
    drop(install(&fs, "a/f", b"1"));
    drop(install(&fs, "b/f", b"2"));
    drop(install(&fs, "c/other", b"3"));
    fs.rename(Path::new("b/f"), Path::new("c/f")).unwrap();
    fs.rename(Path::new("a/f"), Path::new("b/f")).unwrap();
    sync(&fs, "a");
    assert_eq!(views(&fs), set(&["b/f=1 c/f=2 c/other=3"]));
    assert!(fs.is_settled());
}

/// Goal: syncing one directory neither makes another's changes durable nor frees files that those
/// changes may bring back.
#[test]
fn syncs_cover_one_directory() {
    let fs = quiet();
    drop(install(&fs, "other/g", b"y"));
    write(&fs, "f", b"x").sync_data().unwrap();
    fs.remove(Path::new("f")).unwrap();
    sync(&fs, "other");
    assert_eq!(views(&fs), set(&["other/g=y", "f=x other/g=y"]));
}

/// Goal: a renamed directory exists with its files under either the old or the new name, but not
/// both.
#[test]
fn renamed_directories_keep_their_files() {
    let fs = quiet();
    drop(install(&fs, "old/x", b"1"));
    fs.rename(Path::new("old"), Path::new("new")).unwrap();
    assert_eq!(views(&fs), set(&["old/x=1", "new/x=1"]));
}

/// Goal: renamed directories end up in one place, and no image contains a cycle. Method: two
/// directories moved into each other in turn; listing all files of 200 images terminates.
#[test]
fn directories_never_loop() {
    let fs = quiet();
    drop(install(&fs, "a/x", b"1"));
    drop(install(&fs, "b/y", b"2"));
    let rename = |from: &str, to: &str| fs.rename(Path::new(from), Path::new(to)).unwrap();
    rename("b", "a/b");
    rename("a/b", "c");
    rename("a", "c/a");
    assert_eq!(files(&fs), ["c/a/x", "c/y"]);
    let seen = over_images(&fs, 200, files);
    assert!(seen.len() > 2);
    for names in seen {
        assert!(names.len() <= 2, "each file at most once: {names:?}");
    }
}

/// Goal: the memory of files that no crash can bring back is freed at the next directory sync.
#[test]
fn unreachable_files_are_freed() {
    let fs = quiet();
    for _ in 0..20 {
        drop(write(&fs, "f", &[1; 5000]));
        fs.remove(Path::new("f")).unwrap();
    }
    let held = create(&fs, "held");
    fs.remove(Path::new("held")).unwrap();
    assert_eq!(fs.state().disk.tree.nodes().count(), 22);
    sync(&fs, "/");
    assert_eq!(fs.state().disk.tree.nodes().count(), 2);
    assert_eq!(held.len().unwrap(), 0, "an open file stays");
}
