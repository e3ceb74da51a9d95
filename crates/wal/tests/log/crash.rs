//! Power loss at every operation, and repeated power losses.

use cairn_vfs::fault::crash_sweep;
use cairn_vfs::{CrashImage, FaultOptions};

use super::*;

/// The operations on a log and their acknowledgements.
#[derive(Debug, Default, Clone)]
pub(super) struct Model {
    /// The payload numbers of the records, in order. Some of the first may be released.
    numbers: Vec<u64>,
    lsns: Vec<Lsn>,
    /// How many of them were acknowledged as synced.
    acked: usize,
    /// How many may have been released.
    released: usize,
    /// The bounds at each operation of the disk.
    history: Vec<(u64, Bounds)>,
    /// Distinguishes records at equal positions in different openings.
    life: u64,
}

/// Record counts: at most `begun` exist, the first `acked` must exist, the first `released` need
/// not any more.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    begun: usize,
    acked: usize,
    released: usize,
}

impl Model {
    fn note(&mut self, fs: &FaultFs) {
        let bounds = Bounds { begun: self.numbers.len(), acked: self.acked, released: self.released };
        self.history.push((fs.operation_count(), bounds));
    }

    /// Checks that `found` is a possible content of the log after a power loss at `operation`.
    /// Returns the number of records up to its end.
    fn check(&self, found: &[u64], operation: u64, context: &str) -> usize {
        let before = self.history.iter().filter(|(at, _)| *at <= operation).map(|(_, bounds)| *bounds);
        let bounds = before.reduce(|a, b| Bounds {
            begun: a.begun.max(b.begun),
            acked: a.acked.max(b.acked),
            released: a.released.max(b.released),
        });
        let bounds = bounds.unwrap_or(Bounds { begun: 0, acked: 0, released: 0 });
        let Some(first) = found.first() else {
            assert!(bounds.acked <= bounds.released, "{context}: everything is lost, {bounds:?}");
            return bounds.released.min(self.numbers.len());
        };
        let start = self.numbers.iter().position(|number| number == first);
        let start =
            start.unwrap_or_else(|| panic!("{context}: record {first:x} was never appended, or given up"));
        let end = start + found.len();
        assert!(start <= bounds.released, "{context}: it begins with {start}, {bounds:?}");
        assert!(
            self.numbers.get(start..end) == Some(found),
            "{context}: holes or inventions from {start} on"
        );
        // Released records are no longer needed, so the log may end among them.
        let least = if bounds.acked > bounds.released { bounds.acked } else { 0 };
        assert!((least..=bounds.begun).contains(&end), "{context}: it ends with {end}, {bounds:?}");
        end
    }

    /// Accepts the content found after a crash as the new state.
    pub(super) fn settle(&mut self, found: &[u64], operation: u64, context: &str) {
        let end = self.check(found, operation, context);
        self.numbers.truncate(end);
        self.lsns.truncate(end);
        (self.acked, self.released) = (end, self.released.min(end));
        let bounds = Bounds { begun: end, acked: end, released: self.released };
        self.history = vec![(0, bounds)];
        self.life += 1;
    }
}

/// Opens the log and executes `steps` operations on it, until one fails.
pub(super) fn session(fs: &FaultFs, model: &mut Model, rng: &mut SeededRng, steps: u64) -> Result<()> {
    let shared = shared(fs);
    let options = small()
        .segment_bytes(SMALL << rng.below(3))
        .first_segment_bytes(SMALL)
        .recycled_max(rng.below(3) as usize)
        .window_bytes(4096 << rng.below(2));
    let (log, mut appender, found) = open(&shared, &options, rng.next_u64())?;
    // A dropped reservation may have failed to write. Without a later sync nobody learns of it, and
    // the log ends before it.
    if fs.injected_count() > 0 {
        model.settle(&found, fs.operation_count(), "after a failure");
    }
    assert_eq!(found.last(), model.numbers.last().filter(|_| !found.is_empty()));
    model.acked = model.numbers.len();
    model.note(fs);
    let mut held = Held::default();
    for _ in 0..steps {
        match rng.below(100) {
            0..70 => {
                let number = model.life << 32 | model.numbers.len() as u64;
                model.numbers.push(number);
                model.note(fs);
                let bytes = payload(number);
                let mut reservation = appender.reserve(bytes.len())?;
                reservation.payload_mut().copy_from_slice(&bytes);
                model.lsns.push(reservation.lsn());
                // Sometimes committed after later ones.
                if rng.chance(0.1) { held.0.push(reservation) } else { reservation.commit().map(drop)? }
            }
            70..85 => {
                held.commit()?;
                let count = model.numbers.len() - rng.below(4).min(model.numbers.len() as u64) as usize;
                if let Some(lsn) = count.checked_sub(1).map(|last| model.lsns[last]) {
                    log.sync_to(lsn)?;
                    model.acked = model.acked.max(count);
                    model.note(fs);
                }
            }
            85..90 => drop(appender.reserve(rng.below(100) as usize)?),
            90..94 => drop(appender.rotate()?),
            94..95 => log.trim()?,
            _ => {
                let count = rng.below(model.numbers.len() as u64 + 1) as usize;
                model.released = model.released.max(count);
                model.note(fs);
                if let Some(last) = count.checked_sub(1) {
                    log.release_before(model.lsns[last])?;
                }
            }
        }
    }
    held.commit()?;
    if rng.chance(0.3) {
        appender.close()?;
        model.acked = model.numbers.len();
        model.note(fs);
    }
    Ok(())
}

/// Open reservations. All of them are filled, so that a failed run leaves no void records, which
/// would be holes to the model.
#[derive(Default)]
struct Held(Vec<cairn_wal::Reservation>);

impl Held {
    fn commit(&mut self) -> Result<()> {
        let all: Vec<_> = self.0.drain(..).map(|reservation| reservation.commit().map(drop)).collect();
        all.into_iter().collect()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.commit();
    }
}

/// Writes a few records and reads everything back.
pub(super) fn goes_on(fs: &Arc<dyn Fs>, found: &[u64], context: &str) {
    let fail = |error: Error| -> ! { panic!("{context}: {error}") };
    let (log, mut appender, again) = open(fs, &small(), 99).unwrap_or_else(|error| fail(error));
    assert!(again == found, "{context}: a second recovery differs");
    append(&mut appender, 1 << 60..(1 << 60) + 3).unwrap_or_else(|error| fail(error));
    log.sync().unwrap_or_else(|error| fail(error));
    let after = recover(fs, Lsn::ZERO, Mode::TolerateTornTail).unwrap_or_else(|error| fail(error)).numbers();
    let expected: Vec<u64> = found.iter().copied().chain(1 << 60..(1 << 60) + 3).collect();
    assert!(after == expected, "{context}: {} records, {} expected", after.len(), expected.len());
}

/// Goal: whenever the power fails, the recovered log is a prefix of the appended records that
/// includes all acknowledged ones; and the log continues from there. Method: crash images at every
/// operation of seeded runs with several openings each, including rotation, release, recycling and
/// closing.
#[test]
fn power_loss_at_every_operation() {
    let own = seed(21);
    let mut images = 0;
    for run in 0..rounds(6, 400) {
        let mut rng = SeededRng::new(own ^ run << 8);
        let mut model = Model::default();
        let history = std::cell::RefCell::new(Model::default());
        images += crash_sweep(
            FaultOptions::seeded(own + run),
            rounds(8, 20),
            |fs| {
                for _ in 0..3 {
                    session(fs, &mut model, &mut rng, 40).unwrap();
                }
                *history.borrow_mut() = model.clone();
            },
            |point, image, after| {
                let context = format!("run {run}, {image} at {}", point.operation());
                let fs = shared(&after);
                let found = recover(&fs, Lsn::ZERO, Mode::TolerateTornTail);
                let found = found.unwrap_or_else(|error| panic!("{context}: {error}")).numbers();
                history.borrow().check(&found, point.operation(), &context);
                if point.operation().is_multiple_of(4) {
                    recover(&fs, Lsn::ZERO, Mode::Salvage)
                        .unwrap_or_else(|error| panic!("{context}: {error}"));
                }
                goes_on(&fs, &found, &context);
            },
        );
    }
    println!("power loss at every operation: {images} crash images");
    assert!(images > 10_000, "{images}");
}

/// Goal: machines that crash repeatedly, also during recoveries, lose no acknowledged record,
/// resurrect no abandoned one, and do not fill up. Method: sessions on one disk, with the power
/// failing at a random operation of most; each session continues on a random image.
#[test]
fn crash_after_crash() {
    let own = seed(22);
    let (mut crashes, mut in_recovery) = (0, 0);
    for run in 0..rounds(20, 2000) {
        let mut rng = SeededRng::new(own ^ run << 8);
        let mut model = Model::default();
        let mut disk = FaultFs::new(FaultOptions::seeded(rng.next_u64()));
        for round in 0..40 {
            let context = format!("run {run}, round {round}");
            let start = disk.operation_count();
            let recovering = rng.chance(0.5);
            disk.crash_at(start + rng.below(if recovering { 25 } else { 200 }));
            let result = session(&disk, &mut model, &mut rng, 40);
            crashes += u64::from(result.is_err());
            in_recovery += u64::from(result.is_err() && recovering);
            let at = disk.operation_count();
            let image = match rng.below(4) {
                0 => CrashImage::None,
                1 => CrashImage::All,
                _ => CrashImage::Random(rng.next_u64()),
            };
            disk = disk.crash(image);
            let found = recover(&shared(&disk), Lsn::ZERO, Mode::TolerateTornTail);
            let found = found.unwrap_or_else(|error| panic!("{context}, {image}: {error}")).numbers();
            model.settle(&found, at, &format!("{context}, {image}"));
            let bound =
                (model.numbers.len() - model.released.min(model.numbers.len())) as u64 * 300 + (60 << 13);
            assert!(disk.used_bytes() < bound, "{context}: {} bytes of {bound}", disk.used_bytes());
        }
    }
    println!("crash after crash: {crashes} sessions cut off, {in_recovery} of them early");
    assert!(crashes > 300 && in_recovery > 100, "{crashes} {in_recovery}");
}

/// Goal: a log is durable in an existing directory whose name was never synced, because the process
/// that created it was killed in between.
#[test]
fn existing_unsynced_directory_is_made_durable() {
    let fs = FaultFs::new(FaultOptions::seeded(seed(26)));
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let (log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
    append(&mut appender, 0..10).unwrap();
    log.sync().unwrap();
    let image = shared(&fs.crash(CrashImage::None));
    assert_eq!(recover(&image, Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers().len(), 10);
}
