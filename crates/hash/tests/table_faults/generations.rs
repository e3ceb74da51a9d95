//! Stores of several generations: power loss and errors while they are appended to, compacted and
//! replaced.

use std::cell::RefCell;

use cairn_hash::generations::{Generations, Live, StoreBuilder, compact_in};
use cairn_vfs::fault::{Fault, crash_sweep, fault_sweep};
use cairn_vfs::{CrashImage, FaultOptions, Rng};

use super::*;

/// One change of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A new base.
    Create(u32),
    /// A delta: changes keys, deletes keys, adds keys.
    Append(u32),
    /// Merges everything into a new base.
    Compact,
}

const STEPS: [Step; 8] = [
    Step::Create(0),
    Step::Append(1),
    Step::Append(2),
    Step::Compact,
    Step::Append(3),
    Step::Append(4),
    Step::Create(5),
    Step::Append(6),
];

fn options() -> BuildOptions {
    BuildOptions::default().threads(1).memory_bytes(16 << 20)
}

/// Returns the puts and the deletes of a step.
fn changes(step: Step) -> (Vec<Record>, Vec<Vec<u8>>) {
    let (version, first, count) = match step {
        Step::Create(version) => (version, 0, 40),
        Step::Append(version) => (version, version * 7 % 30, 20),
        Step::Compact => return (Vec::new(), Vec::new()),
    };
    let key = |n: u32| format!("key {n}").into_bytes();
    let value = |n: u32| {
        let mut value = format!("{n} of {version}").into_bytes();
        // Some values are stored outside the records, in bases and deltas. They are overwritten,
        // deleted and compacted like the others.
        if n % 19 == version % 3 {
            value.resize(33_000 + n as usize, version as u8);
        }
        value
    };
    let puts = (first..first + count).map(|n| (key(n), value(n)));
    let deletes = match step {
        Step::Append(_) => (0..50).step_by(version as usize + 5).map(key).collect(),
        _ => Vec::new(),
    };
    (puts.collect(), deletes)
}

fn after(step: Step, before: &Model) -> Model {
    let (puts, deletes) = changes(step);
    let mut model = if matches!(step, Step::Create(_)) { Model::new() } else { before.clone() };
    model.extend(puts);
    deletes.iter().for_each(|key| _ = model.remove(key));
    model
}

fn apply(fs: &Arc<dyn Fs>, step: Step, rng: &mut SeededRng) -> Result<BuildSummary> {
    let path = Path::new(TABLE);
    let (puts, deletes) = changes(step);
    let mut builder = match step {
        Step::Create(_) => StoreBuilder::create_in(fs, path, options(), rng)?,
        Step::Append(_) => StoreBuilder::append_in(fs, path, options(), rng)?,
        Step::Compact => return compact_in(fs, path, options(), rng),
    };
    puts.iter().try_for_each(|(key, value)| builder.put(key, value))?;
    deletes.iter().try_for_each(|key| builder.delete(key))?;
    builder.finish()
}

fn open_store(fs: &Arc<dyn Fs>) -> Result<Generations> {
    Generations::open_in(fs, Path::new(TABLE), ReaderOptions::default())
}

/// Returns the content of a store, and asserts that the store is sound and returns each key once.
fn content(store: &Generations, context: &str) -> Model {
    store.verify().unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut model = Model::new();
    let visited = store.for_each(|key, value| {
        assert!(model.insert(key.to_vec(), value.to_vec()).is_none(), "{context}: a key came twice");
        Ok::<(), Error>(())
    });
    visited.unwrap_or_else(|error| panic!("{context}: {error}"));
    for n in 0..60 {
        let key = format!("key {n}").into_bytes();
        assert_eq!(store.get(&key).unwrap().as_deref(), model.get(&key).map(Vec::as_slice), "{context}");
    }
    model
}

/// Continues to work with a store after a crash: a delta, a compaction, and a delta. Afterwards
/// only files of the store may be left.
fn go_on(disk: &FaultFs, mut model: Model, context: &str) {
    let (fs, mut rng) = (shared(disk), SeededRng::new(99));
    for step in [Step::Append(7), Step::Compact, Step::Append(8)] {
        apply(&fs, step, &mut rng).unwrap_or_else(|error| panic!("{context}: then {step:?}: {error}"));
        model = after(step, &model);
        assert!(content(&open_store(&fs).unwrap(), context) == model, "{context}: then {step:?}");
    }
    apply(&fs, Step::Compact, &mut rng).unwrap();
    assert_eq!(names(disk), [TABLE, "t.cairn.lock", "t.cairn.manifest"], "{context}: leaked files");
}

/// Goal: after power loss a store has the content before or after the step, and the content after
/// it once the step has returned, and it remains usable. Method: crash images at every operation of
/// a sequence of bases, deltas and compactions.
#[test]
fn power_loss_at_every_operation_of_a_store() {
    let history = RefCell::new(vec![(0, None, after(STEPS[0], &Model::new()))]);
    let images = crash_sweep(
        FaultOptions::seeded(seed(20)),
        rounds(8, 800),
        |fs| {
            let (mut rng, mut model) = (SeededRng::new(1), Model::new());
            for (index, step) in STEPS.into_iter().enumerate() {
                apply(&shared(fs), step, &mut rng).unwrap();
                model = after(step, &model);
                let next = STEPS.get(index + 1).map_or_else(|| model.clone(), |next| after(*next, &model));
                history.borrow_mut().push((fs.operation_count(), Some(model.clone()), next));
            }
        },
        |point, image, disk| {
            let history = history.borrow();
            let past = history.iter().rfind(|(operations, ..)| *operations <= point.operation()).unwrap();
            let (_, before, next) = past;
            let context = format!("{image} at {}", point.operation());
            match open_store(&shared(&disk)) {
                Ok(store) => {
                    let found = content(&store, &context);
                    assert!(before.as_ref() == Some(&found) || *next == found, "{context}");
                    go_on(&disk, found, &context);
                }
                Err(error) => {
                    let none_yet = before.is_none() && error.kind() == cairn_vfs::ErrorKind::NotFound;
                    assert!(none_yet, "{context}: {error}");
                }
            }
        },
    );
    println!("power loss at every operation of a store: {images} crash images");
    assert!(images > 500, "{images}");
}

/// Goal: the same over many successive crashes, and no file is left behind permanently. Method:
/// random steps on one disk, with a power loss within most of them.
#[test]
fn repeated_crashes_of_a_store() {
    let mut rng = SeededRng::new(seed(21));
    let mut disk = FaultFs::new(FaultOptions::seeded(rng.next_u64()));
    apply(&shared(&disk), Step::Create(0), &mut rng).unwrap();
    disk = disk.crash(CrashImage::None);
    let (mut now, mut crashes) = (after(Step::Create(0), &Model::new()), 0);
    for round in 0..rounds(300, 30_000) {
        let step = match rng.below(5) {
            0 => Step::Compact,
            1 => Step::Create(rng.below(50) as u32),
            _ => Step::Append(rng.below(50) as u32),
        };
        disk.crash_at(disk.operation_count() + rng.below(50));
        let done = apply(&shared(&disk), step, &mut rng).is_ok();
        crashes += u64::from(!done);
        disk = disk.crash(CrashImage::Random(rng.next_u64()));
        let context = format!("round {round}, {step:?}");
        let found = content(&open_store(&shared(&disk)).unwrap(), &context);
        let next = after(step, &now);
        assert!(found == next || (found == now && !done), "{context}: done: {done}");
        now = found;
        assert!(names(&disk).len() < 200, "{context}: {:?}", names(&disk));
    }
    go_on(&disk, now, "at the end");
    println!("store crashes after crashes: {crashes} steps cut off");
    assert!(crashes > 100, "{crashes}");
}

/// Goal: an error of any operation of a step leaves the store with the content before or after the
/// step, and it remains usable. Method: fail each operation in turn, once and permanently.
#[test]
fn every_operation_of_a_store_fails() {
    let sound = FaultFs::new(FaultOptions::seeded(1));
    let mut rng = SeededRng::new(1);
    let mut now = Model::new();
    for step in &STEPS[..3] {
        apply(&shared(&sound), *step, &mut rng).unwrap();
        now = after(*step, &now);
    }
    let files: Vec<_> =
        sound.files().into_iter().map(|path| (sound.bytes_of(&path).unwrap(), path)).collect();
    let mut struck = 0;
    for step in [Step::Append(3), Step::Compact, Step::Create(4)] {
        for (fault, persistent) in [(Fault::Io, false), (Fault::Io, true), (Fault::Full, true)] {
            struck += fault_sweep(&FaultOptions::seeded(seed(22)), fault, persistent, |fs, index| {
                let context = format!("{step:?}: {fault:?} at {index}, persistent: {persistent}");
                // The files are installed, so that the operations that created them do not count.
                for (bytes, path) in &files {
                    fs.install(path, bytes).unwrap();
                }
                let done = apply(&shared(fs), step, &mut SeededRng::new(5));
                if fs.injected_count() == 0 {
                    return done.map(drop).unwrap();
                }
                if let Err(error) = &done {
                    assert!(matches!(error, Error::Vfs(_)), "{context}: {error}");
                }
                fs.clear_rules();
                for disk in
                    [fs.crash_point().image(CrashImage::None), fs.crash_point().image(CrashImage::All)]
                {
                    let found = content(&open_store(&shared(&disk)).unwrap(), &context);
                    let next = after(step, &now);
                    assert!(found == next || (found == now && done.is_err()), "{context}");
                    go_on(&disk, found, &context);
                }
            });
        }
    }
    println!("every operation of a store fails: {struck} runs with a fault");
    assert!(struck > 100, "{struck}");
}

/// Goal: after a failed reload or a power loss the old reader still answers; a successful reload
/// shows the new content. Method: fail every operation of a reload in turn, on a disk with a new
/// generation to load.
#[test]
fn failed_reload_keeps_the_old_reader() {
    let (before, next) = (after(Step::Create(0), &Model::new()), Model::new());
    let next = after(Step::Append(1), &after(Step::Create(0), &next));
    for fault in [Fault::Io, Fault::BitFlip] {
        let mut failed = 0;
        for nth in 0.. {
            let disk = FaultFs::new(FaultOptions::seeded(seed(23)));
            let (fs, mut rng) = (shared(&disk), SeededRng::new(1));
            apply(&fs, Step::Create(0), &mut rng).unwrap();
            let again = fs.clone();
            let live = Live::new(move || open_store(&again)).unwrap();
            let old = live.load_full();
            apply(&fs, Step::Append(1), &mut rng).unwrap();
            disk.inject(cairn_vfs::fault::Rule::at(disk.operation_count() + nth, fault));
            let operations = disk.operation_count();
            let reloaded = live.reload();
            let (operations, struck) = (disk.operation_count() - operations, disk.injected_count() > 0);
            disk.clear_rules();
            match reloaded {
                // A flipped bit in a page that the open does not read is detected by a later
                // lookup.
                Ok(()) if struck && fault == Fault::BitFlip => {}
                Ok(()) => assert!(content(&live.load(), "reloaded") == next),
                Err(_) => {
                    failed += 1;
                    assert!(content(&live.load(), "kept") == before);
                }
            }
            live.reload().unwrap();
            assert!(content(&live.load(), "reloaded again") == next);
            // After the power loss, existing mappings stay valid, and every further operation
            // fails.
            let after_crash = disk.crash(CrashImage::None);
            assert!(live.reload().is_err());
            assert!(content(&live.load(), "without power") == next);
            assert!(content(&old, "the first one") == before);
            assert!(content(&open_store(&shared(&after_crash)).unwrap(), "after power loss") == next);
            if nth >= operations {
                break;
            }
        }
        println!("reloads that fail: {failed} with {fault:?}");
        // At least a flipped bit in one of the two headers fails; most others are in values.
        assert!(failed >= 2, "{fault:?} {failed}");
    }
}
