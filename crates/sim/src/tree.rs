//! The tree: levels of sorted runs of files, and files as sorted lists of sampled keys.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use cairn_lsm_policy::{LevelInfo, RunInfo, RunningJob, State, TableInfo};

use crate::keys::IDS_MAX;

/// A sampled key in a file: its id, the sequence number of its write, and whether it is a
/// tombstone.
///
/// ```text
/// 63      40 39            1 0
/// | id      | number       |d|
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(pub u64);

/// The position of the id, which has the bits that [`IDS_MAX`] needs.
const ID_BITS: u32 = 24;
const ID_SHIFT: u32 = u64::BITS - ID_BITS;
const SEQ_MASK: u64 = (1 << ID_SHIFT) - 2;
const _: () = assert!(IDS_MAX <= 1 << ID_BITS);

impl Entry {
    /// Creates the entry of the write with sequence number `seq`.
    pub fn new(id: u32, seq: u64, is_tombstone: bool) -> Entry {
        debug_assert!(u64::from(id) < IDS_MAX, "found id {id}, expected one below {IDS_MAX}");
        Entry(u64::from(id) << ID_SHIFT | (seq << 1 & SEQ_MASK) | u64::from(is_tombstone))
    }

    /// Returns the sampled key.
    #[inline]
    pub fn id(self) -> u32 {
        (self.0 >> ID_SHIFT) as u32
    }

    /// Returns the sequence number, which counts writes of sampled keys. 0 if no older entry can
    /// exist.
    #[inline]
    pub fn seq(self) -> u64 {
        (self.0 & SEQ_MASK) >> 1
    }

    /// Whether it is a tombstone.
    #[inline]
    pub fn is_tombstone(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns the entry without its sequence number.
    #[inline]
    pub fn without_seq(self) -> Entry {
        Entry(self.0 & !SEQ_MASK)
    }
}

/// Returns the smallest and the largest sequence number of some entries.
pub fn seq_range(entries: &[Entry]) -> (u64, u64) {
    let seqs = || entries.iter().map(|entry| entry.seq());
    (seqs().min().unwrap_or(0), seqs().max().unwrap_or(0))
}

/// The entries of a file: a range of the output of its job, which is allocated in one piece. A job
/// writes a dozen files of about a hundred entries, and an allocation and a copy for each would
/// take longer than the merge.
#[derive(Debug, Clone)]
pub struct Entries {
    all: Arc<Vec<Entry>>,
    // Ids have fewer than 32 bits.
    from: u32,
    to: u32,
}

impl Entries {
    /// Splits entries at `ends`, which ascend: each part ends before the entry of that index.
    pub fn divided(entries: Vec<Entry>, ends: impl Iterator<Item = usize>) -> impl Iterator<Item = Entries> {
        let all = Arc::new(entries);
        let mut from = 0;
        ends.map(move |to| {
            debug_assert!(
                from as usize <= to && to <= all.len(),
                "found a part that ends at {to} of {}",
                all.len()
            );
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

/// A table file. The fields that compaction rules read come first, in half of the struct, because
/// the rules scan thousands of files.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct File {
    /// The file number; newer files have higher numbers.
    pub number: u64,
    /// The smallest id.
    pub smallest: u32,
    /// The largest id, inclusive.
    pub largest: u32,
    /// Size on disk.
    pub bytes: u64,
    /// `bytes` plus the size of the values that its tombstones hide, as RocksDB weighs it.
    pub compensated_bytes: u64,
    /// Number of sampled tombstones.
    pub tombstones: u32,
    /// Whether a running job reads it.
    pub compacting: bool,
    /// The time at which its oldest data was flushed, virtual seconds.
    pub created_secs: f64,
    /// The time at which its newest data was flushed.
    pub newest_secs: f64,
    /// The smallest and the largest sequence number of its entries. Below level 0, it is maintained
    /// only if `compaction_pri` uses it.
    pub seqs: (u64, u64),
    /// Compressed size of its data blocks / their uncompressed size.
    pub ratio: f64,
    /// Its entries, by ascending id.
    pub entries: Entries,
}

impl File {
    /// Whether its range overlaps `smallest..=largest`.
    #[inline]
    pub fn overlaps(&self, smallest: u32, largest: u32) -> bool {
        self.smallest <= largest && smallest <= self.largest
    }

    fn info(&self) -> TableInfo<u32> {
        TableInfo {
            number: self.number,
            bytes: self.bytes,
            smallest: self.smallest,
            largest: self.largest,
            entries: self.entries.len() as u64,
            tombstones: u64::from(self.tombstones),
            seqnos: self.seqs,
            oldest_secs: self.created_secs as u64,
            newest_secs: self.newest_secs as u64,
            expires_secs: u64::MAX,
            compacting: self.compacting,
            marked: false,
        }
    }
}

/// A sorted run: disjoint files in key order.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Higher is newer within a level.
    pub id: u64,
    /// The files; never empty in a tree.
    pub files: Vec<File>,
}

impl Run {
    /// Returns the bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the bytes of all files, with the extra weight of tombstones.
    pub fn compensated_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.compensated_bytes).sum()
    }

    /// Whether a running job reads one of its files.
    pub fn is_compacting(&self) -> bool {
        self.files.iter().any(|file| file.compacting)
    }

    fn info(&self) -> RunInfo<u32> {
        RunInfo { id: self.id, tables: self.files.iter().map(File::info).collect() }
    }

    /// Returns the indices of the files that overlap `smallest..=largest`.
    pub fn overlapping(&self, smallest: u32, largest: u32) -> std::ops::Range<usize> {
        let from = self.files.partition_point(|file| file.largest < smallest);
        let to = self.files.partition_point(|file| file.smallest <= largest);
        from..to.max(from)
    }
}

/// A level: runs, newest first. RocksDB's levels below 0 have at most one.
#[derive(Debug, Clone, Default)]
pub struct Level {
    /// The runs. Only the tree changes them, together with the sums.
    pub runs: Vec<Run>,
    /// Sums over all files. Compaction rules read them at every event, and a level may have ten
    /// thousand files.
    bytes: u64,
    compensated_bytes: u64,
    /// Compensated bytes of files that running jobs read.
    busy_bytes: u64,
    /// The round-robin cursor of RocksDB: files before this id have had their turn.
    cursor: u32,
}

impl Level {
    /// Returns the bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of files that no job reads, with the extra weight of tombstones.
    pub fn free_bytes(&self) -> u64 {
        self.compensated_bytes - self.busy_bytes
    }

    /// Returns the bytes of all files, with the extra weight of tombstones.
    pub fn compensated_bytes(&self) -> u64 {
        self.compensated_bytes
    }

    /// Returns the round-robin cursor; 0 for the start, and if round robin is not used.
    pub fn cursor(&self) -> u32 {
        self.cursor
    }

    /// Returns the index of the file whose turn it is in round robin.
    pub fn next_in_turn(&self) -> usize {
        let files = self.only();
        let at = files.partition_point(|file| file.smallest < self.cursor);
        if at < files.len() { at } else { 0 }
    }

    /// Returns all files, run by run.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.runs.iter().flat_map(|run| &run.files)
    }

    /// Returns the files of the only run; empty if there is none.
    pub fn only(&self) -> &[File] {
        self.runs.first().map_or(&[], |run| &run.files)
    }

    /// Returns the number of files.
    pub fn file_count(&self) -> usize {
        self.runs.iter().map(|run| run.files.len()).sum()
    }

    /// Returns a description of the first violation of the order of runs and files, which every
    /// search relies on.
    fn broken_order(&self) -> Option<&'static str> {
        if !self.runs.is_sorted_by(|a, b| a.id > b.id) {
            return Some("runs are not newest first");
        }
        if self.runs.iter().any(|run| run.files.is_empty()) {
            return Some("an empty run");
        }
        let is_ordered = |run: &Run| run.files.is_sorted_by(|a, b| a.largest < b.smallest);
        (!self.runs.iter().all(is_ordered)).then_some("files overlap")
    }
}

/// The levels and key range of a running compaction, which later picks must avoid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// The number of the job.
    pub job: u64,
    /// The input level.
    pub from_level: usize,
    /// The output level.
    pub output_level: usize,
    /// The smallest id of its inputs.
    pub smallest: u32,
    /// The largest id of its inputs.
    pub largest: u32,
}

impl Running {
    fn info(&self) -> RunningJob<u32> {
        let Running { output_level, smallest, largest, .. } = *self;
        RunningJob { output_level, smallest, largest }
    }
}

/// All levels, and the compactions that run on them.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The levels, from level 0.
    pub levels: Vec<Level>,
    /// Running compactions.
    pub running: Vec<Running>,
    /// The tree as Cairn's policies see it, made when they are first asked after a change. They
    /// are asked at most events, and a tree has up to ten thousand files.
    policy_state: RefCell<Option<State<u32>>>,
}

/// Files of one run that a job reads: level, run id, and file numbers in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The level.
    pub level: usize,
    /// The run.
    pub run: u64,
    /// The file numbers.
    pub files: Vec<u64>,
    /// The smallest and the largest id. A run of a large store has thousands of files, and only
    /// those in this range are scanned.
    pub range: (u32, u32),
}

impl Input {
    /// Returns the indices of its files in their run; other files may lie between them.
    fn span(&self, run: &Run) -> std::ops::Range<usize> {
        run.overlapping(self.range.0, self.range.1)
    }
}

impl Tree {
    /// Creates an empty tree.
    pub fn new(levels: usize) -> Tree {
        Tree { levels: vec![Level::default(); levels], running: Vec::new(), policy_state: RefCell::default() }
    }

    /// Returns a level; an empty one if the number is out of range.
    pub fn level(&self, level: usize) -> &Level {
        static NONE: Level =
            Level { runs: Vec::new(), bytes: 0, compensated_bytes: 0, busy_bytes: 0, cursor: 0 };
        self.levels.get(level).unwrap_or(&NONE)
    }

    /// Returns the deepest level with files; 0 if there is none.
    pub fn last_used(&self) -> usize {
        (0..self.levels.len()).rev().find(|&level| !self.level(level).runs.is_empty()).unwrap_or(0)
    }

    /// Returns the bytes of all levels.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).sum()
    }

    /// Returns the number of files.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(Level::file_count).sum()
    }

    /// Returns the number of sorted runs that a scan merges.
    pub fn run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs.len()).sum()
    }

    /// Whether a running job writes to this range of a level.
    pub fn is_written(&self, level: usize, smallest: u32, largest: u32) -> bool {
        self.running
            .iter()
            .any(|job| job.output_level == level && job.smallest <= largest && smallest <= job.largest)
    }

    /// Whether a level has files, or will have when a running job ends.
    pub fn is_used(&self, level: usize) -> bool {
        !self.level(level).runs.is_empty() || self.running.iter().any(|job| job.output_level == level)
    }

    /// Shows the tree to one of Cairn's policies.
    pub(crate) fn with_policy_state<T>(&self, now_secs: u64, look: impl FnOnce(&State<u32>) -> T) -> T {
        let mut state = self.policy_state.borrow_mut();
        let state = state.get_or_insert_with(|| self.to_policy_state());
        state.now_secs = now_secs;
        look(state)
    }

    fn to_policy_state(&self) -> State<u32> {
        let levels =
            self.levels.iter().map(|level| LevelInfo { runs: level.runs.iter().map(Run::info).collect() });
        State {
            levels: levels.collect(),
            running: self.running.iter().map(Running::info).collect(),
            now_secs: 0,
            oldest_snapshot: None,
            idle: false,
        }
    }

    /// Notes a compaction that has begun to read its marked inputs.
    pub fn begin(&mut self, running: Running) {
        debug_assert!(self.running.iter().all(|it| it.job != running.job), "job {} runs twice", running.job);
        debug_assert!(running.smallest <= running.largest, "found a job with its bounds out of order");
        self.policy_state.take();
        self.running.push(running);
    }

    /// Forgets a compaction that has ended.
    pub fn end(&mut self, job: u64) {
        self.policy_state.take();
        let before = self.running.len();
        self.running.retain(|running| running.job != job);
        debug_assert_eq!(self.running.len() + 1, before, "job {job} ends, expected it to run");
    }

    /// Marks files as read by a job, or as free.
    pub fn mark(&mut self, inputs: &[Input], compacting: bool) {
        self.policy_state.take();
        for input in inputs {
            let Some(level) = self.levels.get_mut(input.level) else { continue };
            let Some(run) = level.runs.iter_mut().find(|run| run.id == input.run) else { continue };
            // File numbers and files are both in key order.
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
            debug_assert_eq!(numbers.next(), None, "an input of level {} is not in its run", input.level);
        }
    }

    /// Advances the round-robin cursor past the files of an input.
    pub fn pass(&mut self, input: &Input) {
        if let Some(level) = self.levels.get_mut(input.level) {
            let next = level.only().iter().find(|file| file.smallest > input.range.1);
            level.cursor = next.map_or(0, |file| file.smallest);
        }
    }

    /// Returns the files of an input.
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

    /// Removes files.
    pub fn remove(&mut self, inputs: &[Input]) -> Vec<File> {
        let mut removed = Vec::new();
        for input in inputs {
            self.take(input, Vec::new(), &mut removed);
        }
        removed
    }

    /// Replaces the inputs of a job by its outputs. Most outputs take the place of inputs of the
    /// same run, so that the files behind them, perhaps thousands, move once or not at all.
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

    /// Whether the files of an input are adjacent, and `files` overlap no other files of their run.
    fn have_room(&self, input: &Input, files: &[File]) -> bool {
        let run = self.level(input.level).runs.iter().find(|run| run.id == input.run);
        let (Some(run), Some(first), Some(last)) = (run, files.first(), files.last()) else { return false };
        let span = input.span(run);
        let before = span.start.checked_sub(1).and_then(|at| run.files.get(at));
        span.len() == input.files.len()
            && before.is_none_or(|file| file.largest < first.smallest)
            && run.files.get(span.end).is_none_or(|file| last.largest < file.smallest)
    }

    /// Removes the files of an input, and inserts `files` in their place.
    fn take(&mut self, input: &Input, files: Vec<File>, removed: &mut Vec<File>) {
        self.policy_state.take();
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
        debug_assert_eq!(removed.len() - from, input.files.len(), "an input is not in its run");
        for file in removed.get(from..).unwrap_or(&[]) {
            level.bytes -= file.bytes;
            level.compensated_bytes -= file.compensated_bytes;
            level.busy_bytes -= if file.compacting { file.compensated_bytes } else { 0 };
        }
        level.runs.retain(|run| !run.files.is_empty());
        debug_assert_eq!(level.broken_order(), None, "of level {}", input.level);
    }

    /// Inserts files, in key order and without overlap, into a run of a level. Creates the run if
    /// it does not exist.
    pub fn add(&mut self, level: usize, run_id: u64, files: Vec<File>) {
        let Some(level) = self.levels.get_mut(level) else { return };
        if files.is_empty() {
            return;
        }
        debug_assert!(
            files.is_sorted_by(|a, b| a.largest < b.smallest),
            "found files for run {run_id} that overlap or are out of key order"
        );
        self.policy_state.take();
        for file in &files {
            level.bytes += file.bytes;
            level.compensated_bytes += file.compensated_bytes;
            level.busy_bytes += if file.compacting { file.compensated_bytes } else { 0 };
        }
        match level.runs.iter_mut().find(|run| run.id == run_id) {
            Some(run) => {
                // Outputs of one job may belong into several gaps, because a moved file can lie
                // between them.
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
        debug_assert_eq!(level.broken_order(), None, "after files of run {run_id}");
    }

    /// Checks the invariants: runs are sorted and disjoint, newest first; files are sorted and have
    /// correct bounds; sums are correct. Returns a description of the first violation.
    pub fn broken_invariant(&self) -> Option<String> {
        for (at, level) in self.levels.iter().enumerate() {
            if let Some(broken) = level.broken_order() {
                return Some(format!("level {at}: {broken}"));
            }
            let sum = level.files().map(|file| file.bytes).sum::<u64>();
            let busy: u64 =
                level.files().filter(|file| file.compacting).map(|file| file.compensated_bytes).sum();
            if (sum, busy) != (level.bytes, level.busy_bytes) {
                return Some(format!("level {at}: sums are wrong"));
            }
            for run in &level.runs {
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

    /// A tree whose level 1 has one run of files with these ranges, each of ten bytes.
    fn tree_of(ranges: &[(u32, u32)]) -> Tree {
        let mut tree = Tree::new(3);
        let files = ranges.iter().enumerate().map(|(number, (from, to))| file(number as u64, *from, *to, 10));
        tree.add(1, 7, files.collect());
        tree
    }

    /// Goal: a range finds exactly the files that overlap it. Method: every range over files with
    /// and without gaps, and a file of one id, against each file by itself.
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

    /// Goal: outputs end up in key order, whichever gaps of their run they belong into. Method:
    /// replaces each file and each two neighbours of a run by outputs in their place, before,
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
