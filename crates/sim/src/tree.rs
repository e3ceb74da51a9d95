//! The tree: levels of sorted runs of files, and files as sorted lists of followed keys.

use std::ops::Deref;
use std::sync::Arc;

/// A followed key in a file: its id, the number of its write, and whether it is a tombstone.
///
/// ```text
/// 63      40 39            1 0
/// | id      | number       |d|
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(pub u64);

/// Where the id begins: above it stands what [`crate::config::IDS_MAX`] allows.
const ID_BITS: u32 = 24;
const ID_SHIFT: u32 = u64::BITS - ID_BITS;
const SEQ_MASK: u64 = (1 << ID_SHIFT) - 2;
const _: () = assert!(crate::config::IDS_MAX <= 1 << ID_BITS);

impl Entry {
    /// What the write with number `seq` left.
    pub fn new(id: u32, seq: u64, is_tombstone: bool) -> Entry {
        Entry(u64::from(id) << ID_SHIFT | (seq << 1 & SEQ_MASK) | u64::from(is_tombstone))
    }

    /// The followed key.
    #[inline]
    pub fn id(self) -> u32 {
        (self.0 >> ID_SHIFT) as u32
    }

    /// The number of its write among those of followed keys: what RocksDB calls a sequence number.
    /// 0 where no older entry can be.
    #[inline]
    pub fn seq(self) -> u64 {
        (self.0 & SEQ_MASK) >> 1
    }

    /// Whether it is a tombstone.
    #[inline]
    pub fn is_tombstone(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same without its number.
    #[inline]
    pub fn without_seq(self) -> Entry {
        Entry(self.0 & !SEQ_MASK)
    }
}

/// The oldest and the newest write among some entries.
pub fn seq_range(entries: &[Entry]) -> (u64, u64) {
    let seqs = || entries.iter().map(|entry| entry.seq());
    (seqs().min().unwrap_or(0), seqs().max().unwrap_or(0))
}

/// What a file holds: a stretch of what its job has written, which lies in one piece. One job
/// writes a dozen files of a hundred entries or so, and memory that was asked for and copied for
/// each would take longer than their merge.
#[derive(Debug, Clone)]
pub struct Entries {
    all: Arc<Vec<Entry>>,
    // Ids have fewer bits.
    from: u32,
    to: u32,
}

impl Entries {
    /// Divides entries into those before each of `ends`, which ascend.
    pub fn divided(entries: Vec<Entry>, ends: impl Iterator<Item = usize>) -> impl Iterator<Item = Entries> {
        let all = Arc::new(entries);
        let mut from = 0;
        ends.map(move |to| {
            let to = to as u32;
            Entries { all: Arc::clone(&all), from: std::mem::replace(&mut from, to), to }
        })
    }
}

impl Deref for Entries {
    type Target = [Entry];

    #[inline]
    fn deref(&self) -> &[Entry] {
        self.all.get(self.from as usize..self.to as usize).unwrap_or(&[])
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Entries {
        let all: Vec<Entry> = entries.into_iter().collect();
        Entries { from: 0, to: all.len() as u32, all: Arc::new(all) }
    }
}

/// A table file. What rules look at comes first: they go over thousands of files, and it is half of
/// what a file takes.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct File {
    /// Higher numbers were made later.
    pub number: u64,
    /// The first id.
    pub smallest: u32,
    /// The last id, inclusive.
    pub largest: u32,
    /// Its length on disk.
    pub bytes: u64,
    /// `bytes`, with what its tombstones hide added, as RocksDB weighs it.
    pub compensated_bytes: u64,
    /// Followed tombstones.
    pub tombstones: u32,
    /// A running job reads it.
    pub compacting: bool,
    /// When the oldest of its data was flushed, virtual seconds.
    pub created_secs: f64,
    /// When the newest of its data was flushed.
    pub newest_secs: f64,
    /// The oldest and the newest write among its entries. Below level 0 kept only where
    /// `compaction_pri` goes by them.
    pub seqs: (u64, u64),
    /// Its data blocks' compressed over uncompressed bytes.
    pub ratio: f64,
    /// What it holds, ids ascending.
    pub entries: Entries,
}

impl File {
    /// Whether the ranges have an id in common.
    #[inline]
    pub fn overlaps(&self, smallest: u32, largest: u32) -> bool {
        self.smallest <= largest && smallest <= self.largest
    }

    /// The share of its entries that are tombstones.
    pub fn tombstone_ratio(&self) -> f64 {
        f64::from(self.tombstones) / self.entries.len().max(1) as f64
    }
}

/// A sorted run: disjoint files in key order.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Higher is newer within a level.
    pub id: u64,
    /// Never none in a tree.
    pub files: Vec<File>,
}

impl Run {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Bytes of all files, tombstones weighed.
    pub fn compensated_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.compensated_bytes).sum()
    }

    /// Whether a running job reads a file of it.
    pub fn is_compacting(&self) -> bool {
        self.files.iter().any(|file| file.compacting)
    }

    /// Indices of the files that have an id in common with the range.
    pub fn overlapping(&self, smallest: u32, largest: u32) -> std::ops::Range<usize> {
        let from = self.files.partition_point(|file| file.largest < smallest);
        let to = self.files.partition_point(|file| file.smallest <= largest);
        from..to.max(from)
    }
}

/// A level: runs, newest first. RocksDB's levels below 0 have at most one.
#[derive(Debug, Clone, Default)]
pub struct Level {
    /// The runs. Only the tree changes them: sums go along.
    pub runs: Vec<Run>,
    /// Sums over all files. Rules ask for them at every event, and a level may have ten thousand
    /// files.
    bytes: u64,
    compensated_bytes: u64,
    /// Compensated bytes of files that running jobs read.
    busy_bytes: u64,
    /// Where RocksDB's round robin goes on: files before this id have had their turn.
    cursor: u32,
}

impl Level {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of files that no job reads, tombstones weighed.
    pub fn free_bytes(&self) -> u64 {
        self.compensated_bytes - self.busy_bytes
    }

    /// Bytes of all files, tombstones weighed.
    pub fn compensated_bytes(&self) -> u64 {
        self.compensated_bytes
    }

    /// Where the next turn begins; 0 for the start, and where files do not take turns.
    pub fn cursor(&self) -> u32 {
        self.cursor
    }

    /// The file whose turn it is when they go one after another.
    pub fn next_in_turn(&self) -> usize {
        let files = self.only();
        let at = files.partition_point(|file| file.smallest < self.cursor);
        if at < files.len() { at } else { 0 }
    }

    /// All files, run by run.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.runs.iter().flat_map(|run| &run.files)
    }

    /// Files of the only run; none when there is none.
    pub fn only(&self) -> &[File] {
        self.runs.first().map_or(&[], |run| &run.files)
    }

    /// How many files.
    pub fn file_count(&self) -> usize {
        self.runs.iter().map(|run| run.files.len()).sum()
    }
}

/// What a running compaction reads and writes, for those that are picked beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Its number.
    pub job: u64,
    /// Its first level.
    pub from_level: usize,
    /// Where it writes.
    pub output_level: usize,
    /// The first id of its inputs.
    pub smallest: u32,
    /// The last id of its inputs.
    pub largest: u32,
}

/// All levels and what runs on them.
#[derive(Debug, Clone)]
pub struct Tree {
    /// From level 0.
    pub levels: Vec<Level>,
    /// Compactions under way.
    pub running: Vec<Running>,
}

/// Files of one run that a job takes: level, run id, file numbers in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The level.
    pub level: usize,
    /// The run.
    pub run: u64,
    /// The numbers.
    pub files: Vec<u64>,
    /// The first id and the last: a run of a large store has thousands of files, and only those
    /// between are looked at.
    pub range: (u32, u32),
}

impl Input {
    /// Where its files are in their run, others perhaps between them.
    fn span(&self, run: &Run) -> std::ops::Range<usize> {
        run.overlapping(self.range.0, self.range.1)
    }
}

impl Tree {
    /// An empty tree.
    pub fn new(levels: usize) -> Tree {
        Tree { levels: vec![Level::default(); levels], running: Vec::new() }
    }

    /// A level; the number must be below that of the levels.
    pub fn level(&self, level: usize) -> &Level {
        static NONE: Level =
            Level { runs: Vec::new(), bytes: 0, compensated_bytes: 0, busy_bytes: 0, cursor: 0 };
        self.levels.get(level).unwrap_or(&NONE)
    }

    /// The deepest level with files; 0 when there is none.
    pub fn last_used(&self) -> usize {
        (0..self.levels.len()).rev().find(|&level| !self.level(level).runs.is_empty()).unwrap_or(0)
    }

    /// Bytes of all levels.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).sum()
    }

    /// How many files.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(Level::file_count).sum()
    }

    /// Sorted runs that a scan merges.
    pub fn run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs.len()).sum()
    }

    /// Whether a running job writes to this part of a level.
    pub fn is_written(&self, level: usize, smallest: u32, largest: u32) -> bool {
        self.running
            .iter()
            .any(|job| job.output_level == level && job.smallest <= largest && smallest <= job.largest)
    }

    /// Whether a level has files, or will when a running job ends.
    pub fn is_used(&self, level: usize) -> bool {
        !self.level(level).runs.is_empty() || self.running.iter().any(|job| job.output_level == level)
    }

    /// Marks files as read by a job, or not.
    pub fn mark(&mut self, inputs: &[Input], compacting: bool) {
        for input in inputs {
            let Some(level) = self.levels.get_mut(input.level) else { continue };
            let Some(run) = level.runs.iter_mut().find(|run| run.id == input.run) else { continue };
            // Both are in key order.
            let mut numbers = input.files.iter().peekable();
            let span = input.span(run);
            for file in run.files.get_mut(span).unwrap_or(&mut []) {
                if numbers.peek() == Some(&&file.number) {
                    if file.compacting != compacting {
                        file.compacting = compacting;
                        let bytes = file.compensated_bytes;
                        level.busy_bytes =
                            if compacting { level.busy_bytes + bytes } else { level.busy_bytes - bytes };
                    }
                    numbers.next();
                }
            }
        }
    }

    /// Notes that the files of an input have had their turn.
    pub fn pass(&mut self, input: &Input) {
        if let Some(level) = self.levels.get_mut(input.level) {
            let next = level.only().iter().find(|file| file.smallest > input.range.1);
            level.cursor = next.map_or(0, |file| file.smallest);
        }
    }

    /// The files of an input.
    pub fn files_of<'a>(&'a self, input: &'a Input) -> impl Iterator<Item = &'a File> + 'a {
        let run = self.level(input.level).runs.iter().find(move |run| run.id == input.run);
        let mut numbers = input.files.iter().peekable();
        let files = run.and_then(|run| run.files.get(input.span(run))).unwrap_or(&[]);
        files.iter().filter(move |file| {
            let is_next = numbers.peek() == Some(&&file.number);
            if is_next {
                numbers.next();
            }
            is_next
        })
    }

    /// Takes files out.
    pub fn remove(&mut self, inputs: &[Input]) -> Vec<File> {
        let mut removed = Vec::new();
        for input in inputs {
            self.take(input, Vec::new(), &mut removed);
        }
        removed
    }

    /// Takes the inputs of a job out and puts its outputs in. Mostly they come where others of the
    /// same run go: the files behind them, perhaps thousands, then move once, or stay.
    pub fn replace(
        &mut self,
        inputs: &[Input],
        level: usize,
        run_id: u64,
        mut files: Vec<File>,
    ) -> Vec<File> {
        let mut removed = Vec::new();
        for input in inputs {
            let is_their_place = input.level == level && input.run == run_id && self.have_room(input, &files);
            let own = if is_their_place { std::mem::take(&mut files) } else { Vec::new() };
            self.take(input, own, &mut removed);
        }
        self.add(level, run_id, files);
        removed
    }

    /// Whether the files of an input stand together, and those that are to come reach no others of
    /// their run.
    fn have_room(&self, input: &Input, files: &[File]) -> bool {
        let run = self.level(input.level).runs.iter().find(|run| run.id == input.run);
        let (Some(run), Some(first), Some(last)) = (run, files.first(), files.last()) else { return false };
        let span = input.span(run);
        let before = span.start.checked_sub(1).and_then(|at| run.files.get(at));
        span.len() == input.files.len()
            && before.is_none_or(|file| file.largest < first.smallest)
            && run.files.get(span.end).is_none_or(|file| last.largest < file.smallest)
    }

    /// Takes the files of an input out, and puts `files` in their place.
    fn take(&mut self, input: &Input, files: Vec<File>, removed: &mut Vec<File>) {
        let Some(level) = self.levels.get_mut(input.level) else { return };
        let Some(run) = level.runs.iter_mut().find(|run| run.id == input.run) else { return };
        let span = input.span(run);
        let from = removed.len();
        for file in &files {
            level.bytes += file.bytes;
            level.compensated_bytes += file.compensated_bytes;
        }
        if span.len() == input.files.len() {
            removed.extend(run.files.splice(span, files));
        } else {
            let mut numbers = input.files.iter().peekable();
            let mut is_input = |file: &mut File| numbers.next_if_eq(&&file.number).is_some();
            removed.extend(run.files.extract_if(span, &mut is_input));
        }
        for file in removed.get(from..).unwrap_or(&[]) {
            level.bytes -= file.bytes;
            level.compensated_bytes -= file.compensated_bytes;
            level.busy_bytes -= if file.compacting { file.compensated_bytes } else { 0 };
        }
        level.runs.retain(|run| !run.files.is_empty());
    }

    /// Puts files, which are in key order and overlap nothing of it, into a run of a level, made
    /// when it is not there.
    pub fn add(&mut self, level: usize, run_id: u64, files: Vec<File>) {
        let Some(level) = self.levels.get_mut(level) else { return };
        if files.is_empty() {
            return;
        }
        for file in &files {
            level.bytes += file.bytes;
            level.compensated_bytes += file.compensated_bytes;
            level.busy_bytes += if file.compacting { file.compensated_bytes } else { 0 };
        }
        match level.runs.iter_mut().find(|run| run.id == run_id) {
            Some(run) => {
                // Output of one job may go to several gaps: a moved file can stand between.
                let is_one_gap = files
                    .first()
                    .zip(files.last())
                    .is_some_and(|(first, last)| run.overlapping(first.smallest, last.largest).is_empty());
                if is_one_gap {
                    let first = files.first().map_or(0, |file| file.smallest);
                    let at = run.files.partition_point(|file| file.largest < first);
                    run.files.splice(at..at, files);
                } else {
                    run.files.extend(files);
                    run.files.sort_unstable_by_key(|file| file.smallest);
                }
            }
            None => {
                let at = level.runs.partition_point(|run| run.id > run_id);
                level.runs.insert(at, Run { id: run_id, files });
            }
        }
    }

    /// What must hold at all times: runs sorted and disjoint, newest first; files sorted, with
    /// right bounds. The first that does not, in words.
    pub fn broken_invariant(&self) -> Option<String> {
        for (at, level) in self.levels.iter().enumerate() {
            if level.runs.windows(2).any(|pair| pair[0].id <= pair[1].id) {
                return Some(format!("level {at}: runs are not newest first"));
            }
            let sum = level.files().map(|file| file.bytes).sum::<u64>();
            let busy: u64 =
                level.files().filter(|file| file.compacting).map(|file| file.compensated_bytes).sum();
            if (sum, busy) != (level.bytes, level.busy_bytes) {
                return Some(format!("level {at}: sums are wrong"));
            }
            for run in &level.runs {
                if run.files.is_empty() {
                    return Some(format!("level {at}: an empty run"));
                }
                if run.files.windows(2).any(|pair| pair[0].largest >= pair[1].smallest) {
                    return Some(format!("level {at}: files overlap"));
                }
                for file in &run.files {
                    let ids = &file.entries;
                    let bounds = ids.first().zip(ids.last()).map(|(a, b)| (a.id(), b.id()));
                    if bounds != Some((file.smallest, file.largest)) {
                        return Some(format!("level {at}: file {} has wrong bounds", file.number));
                    }
                    if ids.windows(2).any(|pair| pair[0].id() >= pair[1].id()) {
                        return Some(format!("level {at}: file {} is not sorted", file.number));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::tests::file;

    /// A level of one run of files over these ids, each of ten bytes.
    fn tree_of(ranges: &[(u32, u32)]) -> Tree {
        let mut tree = Tree::new(3);
        let files = ranges.iter().enumerate().map(|(number, (from, to))| file(number as u64, *from, *to, 10));
        tree.add(1, 7, files.collect());
        tree
    }

    /// Goal: the files of a range are those that have an id of it. Method: every range over files
    /// with gaps and without, and of one id, against each file by itself.
    #[test]
    fn ranges_have_their_files() {
        let tree = tree_of(&[(2, 4), (5, 5), (8, 12), (13, 13), (16, 18)]);
        let run = &tree.level(1).runs[0];
        for smallest in 0..20 {
            for largest in smallest..20 {
                let expected: Vec<usize> =
                    (0..run.files.len()).filter(|&at| run.files[at].overlaps(smallest, largest)).collect();
                let found: Vec<usize> = run.overlapping(smallest, largest).collect();
                assert_eq!(found, expected, "{smallest}..={largest}");
            }
        }
    }

    /// Goal: outputs stand in key order, whichever of the gaps of their run they go to. Method:
    /// each file of a run and each two neighbours replaced by outputs in their place, before,
    /// behind and on both sides of others.
    #[test]
    fn outputs_find_their_place() {
        let ranges = [(10, 12), (20, 22), (30, 32), (40, 42)];
        let free: Vec<u32> = (0..50).filter(|id| id % 10 == 5).collect();
        for from in 0..4 {
            for to in from + 1..=(from + 2).min(4) {
                for outputs in 0..1u32 << free.len() {
                    let mut tree = tree_of(&ranges);
                    let range = (ranges[from].0, ranges[to - 1].1);
                    let input = Input { level: 1, run: 7, files: (from as u64..to as u64).collect(), range };
                    let places = free.iter().enumerate().filter(|(at, _)| outputs >> at & 1 == 1);
                    let files: Vec<File> =
                        places.map(|(at, &id)| file(10 + at as u64, id, id + 1, 3)).collect();
                    let mut expected: Vec<u32> = files.iter().map(|file| file.smallest).collect();
                    expected.extend((0..4).filter(|at| !(from..to).contains(at)).map(|at| ranges[at].0));
                    expected.sort_unstable();
                    let removed = tree.replace(std::slice::from_ref(&input), 1, 7, files);
                    let context = format!("{from}..{to}, outputs {outputs:05b}");
                    assert_eq!(removed.len(), to - from, "{context}");
                    assert_eq!(tree.broken_invariant(), None, "{context}");
                    let found: Vec<u32> = tree.level(1).files().map(|file| file.smallest).collect();
                    assert_eq!(found, expected, "{context}");
                }
            }
        }
    }
}
