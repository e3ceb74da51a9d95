use super::*;

/// Goal: a file is freed when its last name and its last handle are gone, in either order.
#[test]
fn unused_files_are_freed() {
    let fs = MemFs::new();
    let open = |name: &str| fs.open(Path::new(name), OpenOptions::create()).unwrap();
    let count = || fs.state().tree.nodes().count();
    let a = open("a");
    fs.remove(Path::new("a")).unwrap();
    assert_eq!(count(), 2);
    drop(a);
    assert_eq!(count(), 1);
    drop(open("b"));
    drop(open("c"));
    fs.rename(Path::new("b"), Path::new("c")).unwrap();
    assert_eq!(count(), 2);
    fs.hard_link(Path::new("c"), Path::new("d")).unwrap();
    fs.remove(Path::new("c")).unwrap();
    assert_eq!(count(), 2);
    fs.remove(Path::new("d")).unwrap();
    assert_eq!(count(), 1);
}

/// Goal: clones share one disk; new instances do not.
#[test]
fn clones_share() {
    let fs = MemFs::new();
    fs.open(Path::new("a"), OpenOptions::create()).unwrap();
    assert!(fs.clone().exists(Path::new("a")).unwrap());
    assert!(!MemFs::default().exists(Path::new("a")).unwrap());
}

/// Goal: a shadow behaves like any other file, and the shadowed file does not change. Method:
/// shadow a real file, write to it, truncate it, rename it; then add a second shadow under the same
/// name.
#[test]
fn shadows_leave_the_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("real");
    let real = crate::StdFs::new().open(&path, OpenOptions::create_new()).unwrap();
    real.write_all_at(&[7; 10_000], 0).unwrap();
    let fs = MemFs::new();
    fs.add_shadow(Path::new("a"), &*real).unwrap();
    assert_eq!(fs.metadata(Path::new("a")).unwrap().len, 10_000);
    let shadow = fs.open(Path::new("a"), OpenOptions::write()).unwrap();
    shadow.write_all_at(b"changed", 5_000).unwrap();
    fs.rename(Path::new("a"), Path::new("b")).unwrap();
    let mut expected = vec![7; 10_000];
    expected[5_000..5_007].copy_from_slice(b"changed");
    assert_eq!(shadow.map().unwrap()[..], expected[..]);
    shadow.set_len(3).unwrap();
    assert_eq!(shadow.map().unwrap()[..], [7; 3]);
    assert_eq!(real.map().unwrap()[..], [7; 10_000]);
    let error = fs.add_shadow(Path::new("b"), &*real).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Conflict);
    assert!(fs.add_shadow(Path::new("no/where"), &*real).is_err());
}
