//! A disk that is full, and later is not.

use cairn_pool::Lsn;
use cairn_vfs::{FaultFs, FaultOptions, Rng, SeededRng};

use super::model::{Run, Shape, Step, put, version};
use super::{rounds, seed};

/// Goal: on a full disk, reads continue as long as clean pages can be evicted, writers get an
/// error, nothing is lost, and everything continues once there is space. Method: new pages beyond a
/// quota, which is lifted after some steps, many times.
#[test]
fn pool_recovers_from_a_full_disk() {
    let own = seed();
    let mut told = 0;
    for round in 0..rounds(60, 2_000) {
        let seed = own.wrapping_add(round);
        let fs = FaultFs::new(FaultOptions::seeded(seed));
        let shape = Shape { frames: 6, pages: 12, ..Shape::new(seed, round % 2 == 1) };
        let mut run = Run::new(&fs, &shape);
        let mut rng = SeededRng::new(seed).fork("steps");
        fs.set_quota(Some(fs.used_bytes() + rng.below(3) * 4096));
        let mut new = Vec::new();
        for _ in 0..40 {
            // Pages past the others make the file grow.
            let page = 12 + rng.below(8) as u32;
            if rng.below(3) == 0 {
                match run.file.create(page) {
                    Ok(mut guard) => {
                        put(guard.payload_mut(Lsn::NONE), page, 5);
                        new.push(page);
                    }
                    Err(error) => {
                        assert!(error.is_full(), "{error}");
                        told += 1;
                    }
                }
            }
            if let Err(error) = run.step(Step::draw(&mut rng, &shape)) {
                assert!(error.is_full(), "{error}");
                told += 1;
            }
        }
        fs.set_quota(None);
        for page in new {
            assert_eq!(version(&run.file.read(page).unwrap(), page), 5);
        }
        run.check_all();
    }
    println!("{told} calls were told that the disk is full");
    assert!(told > 100);
}
