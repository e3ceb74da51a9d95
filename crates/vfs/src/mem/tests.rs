use super::*;

/// Goal: space comes back when the last name and the last handle are gone, in either order.
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

/// Goal: clones are the same disk, new ones are not.
#[test]
fn clones_share() {
    let fs = MemFs::new();
    fs.open(Path::new("a"), OpenOptions::create()).unwrap();
    assert!(fs.clone().exists(Path::new("a")).unwrap());
    assert!(!MemFs::default().exists(Path::new("a")).unwrap());
}
