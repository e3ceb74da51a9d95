//! Power loss at every operation, and again during recovery.

use cairn_vfs::CrashImage;
use cairn_vfs::fault::crash_sweep;

use super::*;

/// Recovers twice, and checks that the state is one of `allowed`, that it does not change, and that
/// the store is usable.
fn check(fs: &FaultFs, allowed: &[VersionEdit], what: &str) {
    let fs = shared(fs);
    let set = VersionSet::open(&fs, dir(), None).unwrap_or_else(|error| panic!("{what}: {error}"));
    let state = set.summary();
    assert!(allowed.contains(&state), "{what}: {state:?} is none of {allowed:?}");
    drop(set);
    let set = VersionSet::open(&fs, dir(), None).unwrap();
    assert_eq!(set.summary(), state, "{what}: recovering again changes nothing");
    for path in set.stray_files().unwrap().unreferenced {
        fs.remove(&path).unwrap();
    }
    let edit = Edits::new(5).next(&set);
    apply(&set, &edit).unwrap();
    let state = set.summary();
    drop(set);
    assert_eq!(VersionSet::open(&fs, dir(), None).unwrap().summary(), state, "{what}: the store goes on");
    let manifests = fs.read_dir(dir()).unwrap();
    assert_eq!(manifests.len(), 2, "{what}: CURRENT and one manifest, not {manifests:?}");
}

/// Goal: after a crash at any moment, recovery gives the state after some edit: the last
/// acknowledged one or the one after it.
/// Method: random edits with many rewrites; every crash point, several images each.
#[test]
fn every_operation() {
    let seed = seed();
    let mut images = 0;
    for round in 0..rounds(3) {
        let options = FaultOptions { short_writes: 0.05, ..FaultOptions::seeded(seed ^ round << 8) };
        let mut acknowledged: Vec<(u64, VersionEdit)> = Vec::new();
        let run = |fs: &FaultFs, acknowledged: &mut Vec<(u64, VersionEdit)>| {
            fs.create_dir_all(dir()).unwrap();
            fs.sync_dir(Path::new(".")).unwrap();
            let set = new_store(&shared(fs)).unwrap().rewrite_bytes(400);
            acknowledged.push((fs.operation_count(), set.summary()));
            let mut edits = Edits::new(seed + round);
            for _ in 0..30 {
                apply(&set, &edits.next(&set)).unwrap();
                acknowledged.push((fs.operation_count(), set.summary()));
            }
        };
        let mut points = Vec::new();
        images += crash_sweep(
            options,
            5,
            |fs| run(fs, &mut acknowledged),
            |point, image, fs| {
                points.push((point.operation(), image, fs));
            },
        );
        for (operation, image, fs) in points {
            let done = acknowledged.iter().filter(|(at, _)| *at <= operation).count();
            let what = format!("CAIRN_SEED={seed} round {round} operation {operation} image {image}");
            let allowed: Vec<VersionEdit> =
                acknowledged.iter().skip(done.max(1) - 1).take(2).map(|(_, state)| state.clone()).collect();
            if done == 0 && !VersionSet::exists(&shared(&fs), dir()).unwrap() {
                fs.create_dir_all(dir()).unwrap();
                let set = new_store(&shared(&fs)).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(set.summary(), acknowledged[0].1);
                continue;
            }
            check(&fs, &allowed, &what);
        }
    }
    println!("{images} crash images");
}

/// Goal: crashes during recovery, and during the recovery from those, lose nothing either.
/// Method: cycles of open, some edits and power loss at a random operation, each on the result of
/// the previous one.
#[test]
fn again_and_again() {
    let seed = seed();
    let (mut crashes, mut in_open) = (0, 0);
    for round in 0..rounds(15) {
        let mut rng = SeededRng::new(seed ^ round << 8).fork("cycles");
        let mut fs = faulty(FaultOptions::seeded(rng.next_u64()));
        let mut allowed = vec![new_store(&shared(&fs)).unwrap().summary()];
        let mut edits = Edits::new(rng.next_u64());
        for cycle in 0..40 {
            let what = format!("CAIRN_SEED={seed} round {round} cycle {cycle}");
            fs.crash_at(fs.operation_count() + rng.below(60));
            match VersionSet::open(&shared(&fs), dir(), None) {
                Ok(set) => {
                    assert!(allowed.contains(&set.summary()), "{what}");
                    allowed = vec![set.summary()];
                    let set = set.rewrite_bytes(300);
                    loop {
                        let edit = edits.next(&set);
                        let next = {
                            let mut after = crate::version::state::StoreState::default();
                            let base = VersionEdit { next_file: Some(1 << 40), ..set.summary() };
                            after.commit(after.prepare(&base).unwrap());
                            after.commit(after.prepare(&edit).unwrap());
                            VersionEdit { next_file: None, ..after.snapshot() }
                        };
                        if apply(&set, &edit).is_err() {
                            allowed.push(next);
                            break;
                        }
                        assert_eq!(set.summary(), next, "{what}");
                        allowed = vec![next];
                    }
                }
                Err(error) => {
                    assert!(fs.is_powered_off(), "{what}: {error}");
                    in_open += 1;
                }
            }
            let image = match rng.below(6) {
                0 => CrashImage::None,
                1 => CrashImage::All,
                _ => CrashImage::Random(rng.next_u64()),
            };
            fs = fs.crash(image);
            crashes += 1;
        }
        check(&fs, &allowed, &format!("CAIRN_SEED={seed} round {round}"));
    }
    println!("{crashes} crashes, {in_open} of them while opening");
    assert!(in_open > crashes / 10);
}
