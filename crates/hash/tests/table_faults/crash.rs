//! Power loss at every operation of a build.

use std::cell::Cell;

use cairn_vfs::fault::crash_sweep;
use cairn_vfs::{FaultOptions, Rng};

use super::*;

/// Checks a disk after the restart, then builds on it.
///
/// `before` is the content of the table when the build began, and `after` the content that it
/// builds.
fn check(
    disk: &FaultFs,
    before: Option<&Model>,
    after: &Model,
    published: bool,
    then: &Content,
    context: &str,
) {
    let fs = shared(disk);
    match open(&fs, MODES[context.len() % 3]) {
        Ok(reader) => {
            let found = scanned(&reader).unwrap_or_else(|error| panic!("{context}: {error}"));
            let is_old = before == Some(&found);
            assert!(found == *after || (is_old && !published), "{context}: {} entries", found.len());
            assert_holds(&reader, &found, context);
        }
        Err(error) => {
            let none_yet = before.is_none() && !published;
            assert!(none_yet && error.kind() == cairn_vfs::ErrorKind::NotFound, "{context}: {error}");
        }
    }
    then.build(&fs).unwrap_or_else(|error| panic!("{context}: the next build: {error}"));
    assert_holds(&open(&fs, Mode::Mmap).unwrap(), &then.model(), context);
    assert_eq!(names(disk), [TABLE], "{context}: leaked files");
}

/// Crashes a build of `content` at every operation, with or without an old table. Returns the
/// number of images.
fn sweep(seed: u64, content: &Content, over_old: bool, random: u64) -> u64 {
    let (old_bytes, old_model, model, then) = (old().bytes(), old().model(), content.model(), old());
    let published_at = Cell::new(u64::MAX);
    crash_sweep(
        FaultOptions::seeded(seed),
        random,
        |fs| {
            if over_old {
                fs.install(Path::new(TABLE), &old_bytes).unwrap();
            }
            content.build(&shared(fs)).unwrap();
            published_at.set(fs.operation_count());
        },
        |point, image, after| {
            if point.operation() == 0 && over_old {
                // The capture begins before the old table is installed.
                return;
            }
            let context = format!("{}, over old: {over_old}, {image} at {}", content.name, point.operation());
            let published = point.operation() >= published_at.get();
            check(&after, over_old.then_some(&old_model), &model, published, &then, &context);
        },
    )
}

/// Goal: after power loss the disk has the complete old table or the complete new one; after
/// `finish` returned, the new one; and no other file after the next build. Method: crash images at
/// every operation of a build of each shape, with and without an older table.
#[test]
fn power_loss_at_every_operation() {
    let seed = seed(1);
    let mut images = 0;
    for content in contents() {
        for over_old in [false, true] {
            images += sweep(seed, &content, over_old, rounds(40, 4000));
        }
    }
    println!("power loss at every operation: {images} crash images");
    assert!(images > 2000, "{images}");
}

/// Goal: the same for a build that spills, whose spill file has no name for most of its life.
/// Method: few images of a table of ten megabytes.
#[test]
fn power_loss_while_spilling() {
    let seed = seed(2);
    let content = spilling();
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    assert!(content.build(&fs).unwrap().spilled_bytes > 0);
    let images = sweep(seed, &content, true, rounds(1, 30));
    println!("power loss while spilling: {images} crash images");
    assert!(images > 30, "{images}");
}

/// Goal: repeated crashes neither lose a published table nor accumulate leftovers. Method: build
/// after build on one disk, with a power loss at a random operation of most, each continuing on a
/// random image.
#[test]
fn repeated_crashes_during_builds() {
    let mut rng = SeededRng::new(seed(3));
    let contents = contents();
    let mut disk = FaultFs::new(FaultOptions::seeded(rng.next_u64()));
    disk.install(Path::new(TABLE), &old().bytes()).unwrap();
    let (mut now, mut crashes) = (old().model(), 0);
    for round in 0..rounds(400, 40_000) {
        let content = &contents[rng.below(contents.len() as u64) as usize];
        let start = disk.operation_count();
        disk.crash_at(start + rng.below(16));
        let built = content.build(&shared(&disk));
        let published = built.is_ok();
        crashes += u64::from(!published);
        disk = disk.crash(cairn_vfs::CrashImage::Random(rng.next_u64()));
        let reader = open(&shared(&disk), MODES[round as usize % 3]).unwrap();
        let found = scanned(&reader).unwrap();
        assert!(found == content.model() || (found == now && !published), "round {round}");
        assert_holds(&reader, &found, &format!("round {round}"));
        now = found;
        let stray = names(&disk).into_iter().filter(|name| name != TABLE && name != "t.cairn.tmp").count();
        assert_eq!(stray, 0, "round {round}: {:?}", names(&disk));
        assert!(disk.used_bytes() < 4 << 20, "round {round}: {} bytes", disk.used_bytes());
    }
    println!("crash after crash: {crashes} builds cut off");
    assert!(crashes > 100, "{crashes}");
}

/// Goal: a disk that falsely reports a completed sync loses at worst the new table, and the damage
/// is detected. Method: syncs that do nothing, then power loss.
#[test]
fn disks_that_lie_about_syncs() {
    use cairn_vfs::Operation;
    use cairn_vfs::fault::{Fault, Rule};
    let seed = seed(4);
    let (mut images, mut damaged) = (0, 0);
    for content in contents() {
        let (model, old_model) = (content.model(), old().model());
        let fs = FaultFs::new(FaultOptions::seeded(seed));
        fs.install(Path::new(TABLE), &old().bytes()).unwrap();
        fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Lost).persistent());
        content.build(&shared(&fs)).unwrap();
        for (image, after) in fs.images_at_crash(rounds(100, 5000)) {
            images += 1;
            let checked = open(&shared(&after), Mode::Mmap).and_then(|reader| {
                reader.verify()?;
                scanned(&reader)
            });
            match checked {
                Ok(found) => assert!(found == model || found == old_model, "{} {image}", content.name),
                Err(error) => {
                    damaged += 1;
                    assert!(is_damage(&error), "{} {image}: {error}", content.name);
                }
            }
        }
    }
    println!("disks that lie about syncs: {images} crash images, {damaged} of them found damaged");
    assert!(damaged > 50, "{damaged}");
}
