//! The two fixed crash images, compared with a model that only knows "synced" and "not synced".

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::test_config::cases;

const FILES: [&str; 5] = ["a", "b", "d/a", "d/b", "d/c"];
const DIRS: [&str; 2] = ["", "d"];

#[derive(Debug, Clone)]
enum Step {
    Create(usize),
    Write(usize, u64, usize, u8),
    SetLen(usize, u64),
    SyncData(usize),
    SyncDir(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..FILES.len();
    // Renames between directories have rules of their own (see `crash_names`), so both names share
    // a directory here.
    let pair = prop_oneof![(0..2_usize, 0..2_usize), (2..5_usize, 2..5_usize)];
    let step = prop_oneof![
        3 => file.clone().prop_map(Step::Create),
        6 => (file.clone(), 0..9_000_u64, 1..6_000_usize, 1..=255_u8).prop_map(|(f, o, l, b)| Step::Write(f, o, l, b)),
        2 => (file.clone(), 0..9_000_u64).prop_map(|(f, l)| Step::SetLen(f, l)),
        3 => file.clone().prop_map(Step::SyncData),
        3 => (0..DIRS.len()).prop_map(Step::SyncDir),
        3 => pair.clone().prop_map(|(f, t)| Step::Rename(f, t)),
        1 => pair.prop_map(|(f, t)| Step::Link(f, t)),
        2 => file.prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 1..60)
}

/// One view of the disk: names and their bytes.
type View = BTreeMap<&'static str, Vec<u8>>;

/// Files by number, each with the content that programs see and the content that was synced.
#[derive(Default)]
struct Model {
    live: Vec<Vec<u8>>,
    synced: Vec<Vec<u8>>,
    live_names: BTreeMap<&'static str, usize>,
    synced_names: BTreeMap<&'static str, usize>,
}

impl Model {
    fn dir_of(name: &str) -> &str {
        name.rsplit_once('/').map_or("", |(dir, _)| dir)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Create(name) => {
                let next = self.live.len();
                if *self.live_names.entry(FILES[name]).or_insert(next) == next {
                    self.live.push(Vec::new());
                    self.synced.push(Vec::new());
                }
            }
            Step::Write(name, offset, len, byte) => self.change(name, |bytes| {
                let end = offset as usize + len;
                bytes.resize(bytes.len().max(end), 0);
                bytes[offset as usize..end].fill(byte);
            }),
            Step::SetLen(name, len) => self.change(name, |bytes| bytes.resize(len as usize, 0)),
            Step::SyncData(name) => {
                if let Some(&file) = self.live_names.get(FILES[name]) {
                    self.synced[file] = self.live[file].clone();
                }
            }
            Step::SyncDir(dir) => {
                self.synced_names.retain(|name, _| Self::dir_of(name) != DIRS[dir]);
                let names = self.live_names.iter().filter(|(name, _)| Self::dir_of(name) == DIRS[dir]);
                self.synced_names.extend(names);
            }
            Step::Rename(from, to) => {
                let (source, target) = (self.live_names.get(FILES[from]), self.live_names.get(FILES[to]));
                if let Some(&file) = source.filter(|&source| Some(source) != target) {
                    self.live_names.remove(FILES[from]);
                    self.live_names.insert(FILES[to], file);
                }
            }
            Step::Link(from, to) => {
                if let Some(&file) = self.live_names.get(FILES[from]) {
                    self.live_names.entry(FILES[to]).or_insert(file);
                }
            }
            Step::Remove(name) => _ = self.live_names.remove(FILES[name]),
        }
    }

    fn change(&mut self, name: usize, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(&file) = self.live_names.get(FILES[name]) {
            change(&mut self.live[file]);
        }
    }

    fn view(names: &BTreeMap<&'static str, usize>, bytes: &[Vec<u8>]) -> View {
        names.iter().map(|(&name, &file)| (name, bytes[file].clone())).collect()
    }
}

fn run(fs: &FaultFs, step: &Step) {
    let path = |name: usize| Path::new(FILES[name]);
    let open = |name: usize| fs.open(path(name), OpenOptions::write()).ok();
    match *step {
        Step::Create(name) => drop(fs.open(path(name), OpenOptions::create()).unwrap()),
        Step::Write(name, offset, len, byte) => {
            open(name).iter().for_each(|file| file.write_all_at(&vec![byte; len], offset).unwrap());
        }
        Step::SetLen(name, len) => open(name).iter().for_each(|file| file.set_len(len).unwrap()),
        Step::SyncData(name) => open(name).iter().for_each(|file| file.sync_data().unwrap()),
        Step::SyncDir(dir) => fs.sync_dir(&Path::new("/").join(DIRS[dir])).unwrap(),
        // These fail in the cases where the model does nothing.
        Step::Rename(from, to) => _ = fs.rename(path(from), path(to)),
        Step::Link(from, to) => _ = fs.hard_link(path(from), path(to)),
        Step::Remove(name) => _ = fs.remove(path(name)),
    }
}

fn view(fs: &FaultFs) -> View {
    FILES.into_iter().filter_map(|name| Some((name, read(fs, name)?))).collect()
}

proptest! {
    #![proptest_config(cases(500))]

    /// Goal: after every step, `None` is exactly the synced state and `All` exactly the state that
    /// programs saw; and no random image lacks a file whose name was synced and has not changed
    /// since.
    #[test]
    fn fixed_images_are_the_synced_and_the_live_state(steps in steps(), seed in any::<u64>()) {
        let fs = quiet();
        fs.create_dir_all(Path::new("d")).unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        let mut model = Model::default();
        for (index, step) in steps.iter().enumerate() {
            run(&fs, step);
            model.step(step);
            let point = fs.crash_point();
            let (live, synced) =
                (Model::view(&model.live_names, &model.live), Model::view(&model.synced_names, &model.synced));
            prop_assert_eq!(&view(&fs), &live, "live, step {}", index);
            prop_assert_eq!(&view(&point.image(CrashImage::All)), &live, "all, step {}", index);
            prop_assert_eq!(&view(&point.image(CrashImage::None)), &synced, "none, step {}", index);
            prop_assert!(live == synced || !fs.is_settled(), "settled, but a crash would lose something");
        }
        let random = view(&fs.crash_point().image(CrashImage::Random(seed)));
        if fs.is_settled() {
            prop_assert_eq!(&random, &Model::view(&model.live_names, &model.live));
        }
        for name in random.keys() {
            let known = model.live_names.contains_key(name) || model.synced_names.contains_key(name);
            // A name that was created and removed since the last sync may appear, but no other name
            // may.
            let touched = steps.iter().any(|step| matches!(step,
                Step::Create(n) | Step::Rename(_, n) | Step::Link(_, n) if FILES[*n] == *name));
            prop_assert!(known || touched, "{} came from nowhere", name);
        }
    }
}
