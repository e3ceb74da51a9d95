//! Random operations on two file systems, which must give the same answers.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::failure;
use crate::fault::FaultOptions;
use crate::test_config::cases;
use crate::{Access, Create, FaultFs, File, Fs, MemFs, OpenOptions, Result, StdFs};

/// A few names, so that they collide: as files, as directories, and below files.
const NAMES: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x"];
const SLOTS: usize = 4;

/// An operation. Handles are kept in numbered slots.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Open(usize, usize, OpenOptions),
    Close(usize),
    Write(usize, u64, usize, u8),
    Read(usize, u64, usize),
    SetLen(usize, u64),
    Map(usize),
    Sync(usize),
    Lock(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Remove(usize),
    CreateDir(usize),
    ReadDir(usize),
    SyncDir(usize),
    Metadata(usize),
}

fn options() -> impl Strategy<Value = OpenOptions> {
    let access = prop_oneof![1 => Just(Access::Read), 4 => Just(Access::ReadWrite)];
    let create = prop_oneof![2 => Just(Create::Never), 4 => Just(Create::IfMissing), 1 => Just(Create::New)];
    (access, create).prop_map(|(access, create)| OpenOptions { access, create, direct: false })
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = 0..SLOTS;
    let name = 0..NAMES.len();
    let offset = prop_oneof![0..64_u64, 4000..4200_u64, 0..20_000_u64];
    let len = prop_oneof![0..64_usize, 0..10_000_usize];
    let step = prop_oneof![
        6 => (slot.clone(), name.clone(), options()).prop_map(|(s, n, o)| Step::Open(s, n, o)),
        1 => slot.clone().prop_map(Step::Close),
        6 => (slot.clone(), offset.clone(), len.clone(), 1..=255_u8)
            .prop_map(|(s, o, l, b)| Step::Write(s, o, l, b)),
        2 => (slot.clone(), offset.clone(), len).prop_map(|(s, o, l)| Step::Read(s, o, l)),
        2 => (slot.clone(), offset).prop_map(|(s, l)| Step::SetLen(s, l)),
        2 => slot.clone().prop_map(Step::Map),
        2 => slot.clone().prop_map(Step::Sync),
        1 => slot.prop_map(Step::Lock),
        4 => (name.clone(), name.clone()).prop_map(|(f, t)| Step::Rename(f, t)),
        2 => (name.clone(), name.clone()).prop_map(|(f, t)| Step::Link(f, t)),
        2 => name.clone().prop_map(Step::Remove),
        3 => name.clone().prop_map(Step::CreateDir),
        2 => name.clone().prop_map(Step::ReadDir),
        2 => name.clone().prop_map(Step::SyncDir),
        2 => name.prop_map(Step::Metadata),
    ];
    prop::collection::vec(step, 1..60)
}

/// A file system and its open handles.
pub(crate) struct Machine<'a> {
    fs: &'a dyn Fs,
    root: PathBuf,
    slots: [Option<Box<dyn File>>; SLOTS],
}

impl<'a> Machine<'a> {
    pub(crate) fn new(fs: &'a dyn Fs, root: &Path) -> Self {
        fs.create_dir_all(root).unwrap();
        Machine { fs, root: root.to_owned(), slots: [const { None }; SLOTS] }
    }

    /// Executes a step and returns its result in a form that does not depend on the root.
    pub(crate) fn step(&mut self, step: &Step) -> String {
        let at = |name: usize| self.root.join(NAMES[name]);
        let file = |slot: usize| self.slots[slot].as_deref();
        let on = |slot: usize, call: &dyn Fn(&dyn File) -> String| match file(slot) {
            Some(file) => call(file),
            None => "closed".to_owned(),
        };
        match step {
            Step::Open(slot, name, options) => {
                let opened = self.fs.open(&at(*name), *options);
                let (answer, opened) = match opened {
                    Ok(file) => ("ok".to_owned(), Some(file)),
                    Err(error) => (answer(Err::<(), _>(error)), None),
                };
                if opened.is_some() {
                    self.slots[*slot] = opened;
                }
                answer
            }
            Step::Close(slot) => {
                self.slots[*slot] = None;
                String::new()
            }
            Step::Write(slot, offset, len, byte) => {
                on(*slot, &|file| answer(file.write_at(&vec![*byte; *len], *offset)))
            }
            Step::Read(slot, offset, len) => on(*slot, &|file| {
                let mut buf = vec![0; *len];
                let count = file.read_at(&mut buf, *offset);
                format!("{} {buf:?}", answer(count))
            }),
            Step::SetLen(slot, len) => on(*slot, &|file| answer(file.set_len(*len))),
            Step::Map(slot) => on(*slot, &|file| {
                format!("{} {}", answer(file.map().map(|m| m.to_vec())), answer(file.len()))
            }),
            Step::Sync(slot) => on(*slot, &|file| answer(file.sync_data())),
            Step::Lock(slot) => on(*slot, &|file| answer(file.try_lock())),
            Step::Rename(from, to) => answer(self.fs.rename(&at(*from), &at(*to))),
            Step::Link(from, to) => answer(self.fs.hard_link(&at(*from), &at(*to))),
            Step::Remove(name) => answer(self.fs.remove(&at(*name))),
            Step::CreateDir(name) => answer(self.fs.create_dir_all(&at(*name))),
            Step::ReadDir(name) => answer(self.fs.read_dir(&at(*name)).map(|paths| {
                let relative = |path: PathBuf| path.strip_prefix(&self.root).unwrap().to_owned();
                paths.into_iter().map(relative).collect::<Vec<_>>()
            })),
            Step::SyncDir(name) => answer(self.fs.sync_dir(&at(*name))),
            Step::Metadata(name) => answer(self.fs.metadata(&at(*name)).map(|metadata| {
                let same: Vec<bool> = self
                    .slots
                    .iter()
                    .map(|slot| slot.as_ref().is_some_and(|f| f.id() == metadata.id))
                    .collect();
                (metadata.len, metadata.is_dir, same)
            })),
        }
    }
}

fn answer<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", failure(Err::<(), _>(error))),
    }
}

/// Runs the steps on both, comparing every answer and finally the content of every name.
fn compare(
    steps: &[Step],
    mut left: Machine<'_>,
    mut right: Machine<'_>,
) -> std::result::Result<(), TestCaseError> {
    for (index, step) in steps.iter().enumerate() {
        prop_assert_eq!(left.step(step), right.step(step), "step {}: {:?}", index, step);
    }
    for name in 0..NAMES.len() {
        for step in [
            Step::Metadata(name),
            Step::Open(0, name, OpenOptions::read()),
            Step::Map(0),
            Step::ReadDir(name),
        ] {
            prop_assert_eq!(left.step(&step), right.step(&step), "at the end: {:?}", step);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(200))]

    /// Goal: the in-memory disk answers like the real one, whatever the order of operations.
    #[test]
    fn mem_fs_is_std_fs(steps in steps().prop_map(|mut steps| {
        // Syncs of the real disk take milliseconds and return nothing to compare; the conformance
        // suite covers them.
        steps.retain(|step| !matches!(step, Step::Sync(_) | Step::SyncDir(_)));
        steps
    })) {
        let directory = tempfile::tempdir().unwrap();
        let memory = MemFs::new();
        let right = Machine::new(&memory, Path::new("root"));
        compare(&steps, Machine::new(&StdFs::new(), &directory.path().join("root")), right)?;
    }

    /// Goal: without faults, the disk that can lose power behaves like the in-memory disk.
    #[test]
    fn fault_fs_is_mem_fs(steps in steps(), seed in any::<u64>()) {
        let (memory, faulty) = (MemFs::new(), FaultFs::new(FaultOptions::seeded(seed)));
        let left = Machine::new(&memory, Path::new("root"));
        compare(&steps, left, Machine::new(&faulty, Path::new("root")))?;
    }
}
