//! Whole workloads, crashed and failed at every operation. The example is `AtomicFile`, correct and
//! with planted bugs.

use std::collections::BTreeMap;

use super::*;
use crate::AtomicFile;

/// How a file is replaced, correctly or with a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    AtomicFile,
    /// Planted bug: the name may refer to bytes that are not on disk yet.
    NoDataSync,
    /// Planted bug: acknowledged before the name is durable.
    NoDirSync,
    /// Planted bug: no temporary file.
    InPlace,
}

const GENERATIONS: u8 = 6;

fn content(generation: u8) -> Vec<u8> {
    vec![generation; 3_000 + 1_000 * usize::from(generation)]
}

fn replace(fs: &FaultFs, method: Method, bytes: &[u8]) -> Result<()> {
    let shared: Arc<dyn Fs> = Arc::new(fs.clone());
    let path = Path::new("d/f");
    let write_pieces = |file: &dyn File| {
        bytes.chunks(1_500).enumerate().try_for_each(|(i, piece)| file.write_all_at(piece, i as u64 * 1_500))
    };
    match method {
        Method::AtomicFile => {
            let new = AtomicFile::create(&shared, path)?;
            write_pieces(&**new.file())?;
            new.commit()
        }
        Method::NoDataSync | Method::NoDirSync => {
            let file = fs.open(Path::new("d/tmp"), OpenOptions::create())?;
            write_pieces(&*file)?;
            if method == Method::NoDirSync {
                file.sync_data()?;
            }
            fs.rename(Path::new("d/tmp"), path)?;
            if method == Method::NoDataSync { fs.sync_parent(path) } else { Ok(()) }
        }
        Method::InPlace => {
            let file = fs.open(path, OpenOptions::create())?;
            file.set_len(bytes.len() as u64)?;
            write_pieces(&*file)?;
            file.sync_data()?;
            fs.sync_parent(path)
        }
    }
}

/// Replaces a file several times and crashes at every operation. Returns the number of images
/// checked and the problem of the first bad one.
fn crash_everywhere(method: Method, options: FaultOptions, random: u64) -> (u64, Option<String>) {
    let mut acknowledged = BTreeMap::new(); // operations done when each generation was acknowledged
    let mut started = BTreeMap::new();
    let mut problem = None;
    let fs = FaultFs::new(options);
    fs.capture_crash_points();
    fs.create_dir_all(Path::new("d")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    for generation in 1..=GENERATIONS {
        started.insert(generation, fs.operation_count());
        replace(&fs, method, &content(generation)).unwrap();
        acknowledged.insert(generation, fs.operation_count());
    }
    let mut images = 0;
    for point in fs.take_crash_points() {
        let least = acknowledged.iter().filter(|&(_, &at)| at <= point.operation()).map(|(&g, _)| g).max();
        let most = started.iter().filter(|&(_, &at)| at < point.operation()).map(|(&g, _)| g).max();
        for (image, after) in point.images(random) {
            images += 1;
            let found = read(&after, "d/f");
            let generation = found.as_ref().and_then(|bytes| bytes.first().copied());
            let whole = found.as_ref().is_none_or(|bytes| generation.is_some_and(|g| *bytes == content(g)));
            if !(whole && generation >= least && generation <= most) {
                let point = point.operation();
                problem =
                    problem.or(Some(format!("{image} at {point}: {generation:?}, {least:?}..={most:?}")));
            }
        }
    }
    (images, problem)
}

/// Goal: `AtomicFile` survives a power loss at every operation, on the worst disk and on better
/// ones, and each planted bug is found. Method: the acknowledged generation or a later complete one
/// must be there.
#[test]
fn atomic_file_survives_power_loss() {
    for options in [
        FaultOptions::seeded(1),
        FaultOptions { wide_garbage: true, ..FaultOptions::seeded(2) },
        FaultOptions { ordered: true, ..FaultOptions::seeded(3) },
        FaultOptions { atomic_write: AtomicWrite::Block4096, append_safe: true, ..FaultOptions::seeded(4) },
    ] {
        let (images, problem) = crash_everywhere(Method::AtomicFile, options, 30);
        assert_eq!(problem, None);
        assert!(images > 1_000, "{images}");
    }
    for bug in [Method::NoDataSync, Method::NoDirSync, Method::InPlace] {
        let (_, problem) = crash_everywhere(bug, FaultOptions::seeded(1), 6);
        assert!(problem.is_some(), "{bug:?} was not found");
    }
}

/// Goal: device properties matter: on an ordered disk, a correct program may skip the data sync.
/// Method: `NoDataSync` is safe there except for its acknowledgement, so only torn contents would
/// be reported, and none are.
#[test]
fn traits_make_bugs_disappear() {
    let (_, problem) = crash_everywhere(Method::NoDataSync, FaultOptions::seeded(1), 20);
    assert!(problem.is_some());
    let ordered = FaultOptions { ordered: true, ..FaultOptions::seeded(1) };
    let (_, problem) = crash_everywhere(Method::NoDataSync, ordered, 20);
    assert!(problem.is_none_or(|problem| problem.starts_with("none")), "only by the image without order");
}

/// Goal: whichever operation fails, and however, the file is complete, old or new, and an error
/// leaves no stray file.
/// Method: every k, four errors, once and persistently.
#[test]
fn atomic_file_survives_errors() {
    for fault in [Fault::Io, Fault::Full, Fault::Interrupted, Fault::Short] {
        for persistent in [false, true] {
            let struck = fault_sweep(&FaultOptions::seeded(1), fault, persistent, |fs, index| {
                fs.install(Path::new("d/f"), &content(1)).unwrap();
                let result = replace(fs, Method::AtomicFile, &content(2));
                let found = read(fs, "d/f").unwrap();
                match result {
                    Ok(()) => assert_eq!(found, content(2), "{fault:?} at {index}"),
                    Err(_) => assert!(found == content(1) || found == content(2), "{fault:?} at {index}"),
                }
                // If the disk keeps failing, removing the temporary file fails as well. And a
                // builder whose lock fails (operation 2) cannot know whether the file belongs to
                // another builder.
                if !persistent && index != 2 {
                    assert_eq!(files(fs), ["d/f"], "{fault:?} at {index}");
                }
            });
            let least = if matches!(fault, Fault::Io | Fault::Full) { 8 } else { 4 };
            assert!(struck >= least, "{fault:?}: {struck}");
        }
    }
}

/// Goal: capturing crash points in one run gives the same disks as a separate run up to each
/// operation.
#[test]
fn capture_equals_crash_at() {
    let run = |fs: &FaultFs| {
        for generation in 1..=3 {
            if replace(fs, Method::AtomicFile, &content(generation)).is_err() {
                return;
            }
        }
    };
    let fs = FaultFs::new(FaultOptions::seeded(1));
    fs.create_dir_all(Path::new("d")).unwrap();
    fs.capture_crash_points();
    run(&fs);
    let points = fs.take_crash_points();
    assert!(points.len() > 20);
    assert!(points.is_sorted_by(|a, b| a.operation() < b.operation()));
    for point in points {
        let again = FaultFs::new(FaultOptions::seeded(1));
        again.create_dir_all(Path::new("d")).unwrap();
        again.crash_at(point.operation());
        run(&again);
        for image in [CrashImage::None, CrashImage::All, CrashImage::Random(point.operation())] {
            let (left, right) = (point.image(image), again.crash_point().image(image));
            assert_eq!(left.state_hash(), right.state_hash(), "{image} at {}", point.operation());
        }
    }
    assert!(fs.take_crash_points().is_empty(), "the capture has ended");
}

/// Goal: `crash_sweep` visits every state, the first and the last included, and reports the
/// operation count of each.
#[test]
fn crash_sweep_visits_everything() {
    let mut seen = Vec::new();
    let workload = |fs: &FaultFs| {
        let file = write(fs, "f", b"1");
        file.len().unwrap();
        file.sync_data().unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        file.len().unwrap();
    };
    let images = crash_sweep(FaultOptions::default(), 2, workload, |point, image, after| {
        if image == CrashImage::None {
            seen.push((point.operation(), read(&after, "f").is_some()));
        }
    });
    // Before the open; before the write; up to the sync (reading the length changed nothing);
    // before the directory sync; at the end.
    assert_eq!(seen, [(0, false), (1, false), (3, false), (4, false), (6, true)]);
    assert_eq!(images, 5 * 4);
}
