//! Merges sorted lists of entries, and cuts the result into files as RocksDB does.

use crate::tree::{Entry, File};

/// A sorted list in pieces, as the files of a run hold it: ids ascend across all of them.
pub type Pieces<'a> = Vec<&'a [Entry]>;

/// Returns the union of runs, given newest first. Of entries with the same id, the newest is kept.
pub fn union(runs: &[Pieces<'_>]) -> Vec<Entry> {
    Merger::default().union(runs)
}

/// Merges runs, and keeps its buffers for the next merge.
#[derive(Debug, Clone, Default)]
pub struct Merger {
    newer: Vec<Entry>,
    older: Vec<Entry>,
    out: Vec<Entry>,
}

impl Merger {
    /// Returns the union of runs, see [`union`]. Older runs are usually larger, so the oldest is
    /// merged last, after the others have become one list.
    pub fn union(&mut self, runs: &[Pieces<'_>]) -> Vec<Entry> {
        let Some((oldest, above)) = runs.split_last() else { return Vec::new() };
        let mut lists: Vec<Vec<Entry>> = Vec::new();
        let newer = match above {
            [] => &[],
            [only] => whole(only, &mut self.newer),
            several => {
                lists.push(union_of_lists(several.iter().map(|run| run.concat()).collect(), &mut self.out));
                lists.last().map_or(&[][..], Vec::as_slice)
            }
        };
        let older = whole(oldest, &mut self.older);
        union_of_two(newer, older, &mut self.out)
    }
}

/// Returns a run as one slice.
fn whole<'r>(run: &'r Pieces<'_>, memory: &'r mut Vec<Entry>) -> &'r [Entry] {
    if let [only] = run.as_slice() {
        return only;
    }
    memory.clear();
    run.iter().for_each(|piece| memory.extend_from_slice(piece));
    memory
}

/// Merges neighbours in age, smallest sums first, which preserves the order of age.
fn union_of_lists(mut lists: Vec<Vec<Entry>>, memory: &mut Vec<Entry>) -> Vec<Entry> {
    while lists.len() > 1 {
        let sum = |at: usize| lists[at].len() + lists[at + 1].len();
        let at = (0..lists.len() - 1).min_by_key(|&at| sum(at)).unwrap_or(0);
        let older = lists.remove(at + 1);
        if let Some(newer) = lists.get_mut(at) {
            *newer = union_of_two(newer, &older, memory);
        }
    }
    lists.pop().unwrap_or_default()
}

/// Merges two lists as two independent halves in one loop. Each step depends on the comparison
/// before it, and steps of the other half fill that latency.
fn union_of_two(newer: &[Entry], older: &[Entry], memory: &mut Vec<Entry>) -> Vec<Entry> {
    debug_assert!(is_sorted(newer) && is_sorted(older), "found a list that is not in order of ids");
    let most = newer.len() + older.len();
    if memory.len() < most {
        memory.resize(most, Entry::default());
    }
    // The longer list is halved, and the shorter one is split at the same id.
    let half = |long: &[Entry], short: &[Entry]| {
        let at = long.len() / 2;
        let id = long.get(at).map_or(0, |entry| entry.id());
        (at, short.partition_point(|entry| entry.id() < id))
    };
    let (a, b) = match older.len() >= newer.len() {
        true => {
            let (b, a) = half(older, newer);
            (a, b)
        }
        false => half(newer, older),
    };
    let (first_out, second_out) = memory.split_at_mut(a + b);
    let (newer_first, newer_second) = newer.split_at(a);
    let (older_first, older_second) = older.split_at(b);
    let mut first = Part { newer: newer_first, older: older_first, a: 0, b: 0, count: 0 };
    let mut second = Part { newer: newer_second, older: older_second, a: 0, b: 0, count: 0 };
    while first.step(first_out) & second.step(second_out) {}
    while first.step(first_out) {}
    while second.step(second_out) {}
    let mut out = Vec::with_capacity(first.total() + second.total());
    for (part, written) in [(&first, first_out), (&second, second_out)] {
        out.extend_from_slice(written.get(..part.count).unwrap_or(&[]));
        out.extend_from_slice(part.rest());
    }
    debug_assert!(is_sorted(&out), "found a union that is not in order of ids");
    debug_assert!(
        out.len() >= newer.len().max(older.len()) && out.len() <= most,
        "found {} entries in the union of {} and {}",
        out.len(),
        newer.len(),
        older.len()
    );
    out
}

/// Whether ids ascend strictly.
fn is_sorted(entries: &[Entry]) -> bool {
    entries.is_sorted_by(|a, b| a.id() < b.id())
}

/// A half of a merge of two lists.
struct Part<'a> {
    newer: &'a [Entry],
    older: &'a [Entry],
    /// Positions in both lists.
    a: usize,
    b: usize,
    /// Entries written so far.
    count: usize,
}

impl<'a> Part<'a> {
    /// Takes the next entry, from both lists if they have the same id. Avoids branches on the ids,
    /// because they cannot be predicted. Returns false when one list has ended.
    #[inline]
    fn step(&mut self, out: &mut [Entry]) -> bool {
        let (Some(&x), Some(&y), Some(slot)) =
            (self.newer.get(self.a), self.older.get(self.b), out.get_mut(self.count))
        else {
            return false;
        };
        let (is_newer, is_older) = (x.id() <= y.id(), y.id() <= x.id());
        *slot = if is_newer { x } else { y };
        self.count += 1;
        self.a += usize::from(is_newer);
        self.b += usize::from(is_older);
        true
    }

    /// Returns the remaining entries once one list has ended.
    fn rest(&self) -> &'a [Entry] {
        debug_assert!(
            self.a == self.newer.len() || self.b == self.older.len(),
            "found both lists unfinished, at {} and {}",
            self.a,
            self.b
        );
        let (newer, older) = (self.newer.get(self.a..), self.older.get(self.b..));
        newer.filter(|rest| !rest.is_empty()).or(older).unwrap_or(&[])
    }

    /// Returns the number of entries of the union.
    fn total(&self) -> usize {
        self.count + self.rest().len()
    }
}

/// A position in files in key order, which moves along with ascending ids.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    files: &'a [File],
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over the files of a run.
    pub fn new(files: &'a [File]) -> Cursor<'a> {
        Cursor { files }
    }

    /// Whether the range of a file contains `id`. Calls must not go back to smaller ids.
    pub fn covers(&mut self, id: u32) -> bool {
        while self.files.first().is_some_and(|file| file.largest < id) {
            self.files = self.files.get(1..).unwrap_or(&[]);
        }
        self.files.first().is_some_and(|file| file.smallest <= id)
    }
}

/// The rules for cutting output into files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutRule {
    /// The target size of files.
    pub target_bytes: f64,
    /// The size at which a file ends in any case.
    pub most_bytes: f64,
    /// Maximum bytes of a file together with the files that it overlaps in the next level.
    pub compaction_bytes_max: f64,
    /// Whether files may end early at file boundaries of the next level.
    pub at_boundaries: bool,
}

/// Bytes that entries take in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Bytes of a put.
    pub put: f64,
    /// Bytes of a tombstone.
    pub tombstone: f64,
    /// Bytes of an empty file.
    pub file: f64,
}

impl Weights {
    /// Returns the bytes of an entry.
    #[inline]
    pub fn of(&self, entry: Entry) -> f64 {
        if entry.is_tombstone() { self.tombstone } else { self.put }
    }
}

/// A position in the level below the output, which tracks the overlap of the current file. RocksDB
/// calls the files there grandparents.
struct Grandparents<'a> {
    files: &'a [File],
    at: usize,
    in_gap: bool,
    seen: bool,
    /// Bytes of the files that the current output file overlaps.
    overlapped: f64,
    /// File boundaries that the current output file has crossed.
    crossed: u32,
}

impl Grandparents<'_> {
    /// Advances to `id`. Returns the number of boundaries between it and the previous id.
    fn advance(&mut self, id: u32) -> u32 {
        let mut crossed = 0;
        while let Some(file) = self.files.get(self.at) {
            if self.in_gap {
                if id < file.smallest {
                    break;
                }
                if self.seen {
                    crossed += 1;
                    self.overlapped += file.bytes as f64;
                }
                self.in_gap = false;
            } else {
                if id <= file.largest {
                    break;
                }
                crossed += u32::from(self.seen);
                self.in_gap = true;
                self.at += 1;
            }
        }
        if !self.seen && !self.in_gap {
            self.overlapped = self.current();
        }
        self.seen = true;
        debug_assert!(
            self.at <= self.files.len() && u64::from(id) < self.next_boundary(),
            "id {id} is passed"
        );
        self.crossed += crossed;
        crossed
    }

    /// Returns the first id at which [`Grandparents::advance`] will cross a boundary.
    fn next_boundary(&self) -> u64 {
        match self.files.get(self.at) {
            None => u64::MAX,
            Some(file) if self.in_gap => u64::from(file.smallest),
            Some(file) => u64::from(file.largest) + 1,
        }
    }

    fn current(&self) -> f64 {
        if self.in_gap { 0.0 } else { self.files.get(self.at).map_or(0.0, |file| file.bytes as f64) }
    }

    fn new_file(&mut self) {
        self.overlapped = self.current();
        self.crossed = 0;
    }
}

/// Cuts entries into files. Returns the index after the last entry of each file, and its bytes.
///
/// A file ends at the maximum size. It also ends at a file boundary of the next level in three
/// cases: it would overlap too much there; it would take in a file of the next level that the merge
/// could skip; or it has reached half of its target size, plus five percent for each boundary that
/// it has crossed, up to nine tenths. (RocksDB since 7.8, `compaction_outputs.cc`.)
///
/// `splits` are ids, ascending, before which a file ends in any case.
pub fn cut(
    entries: &[Entry],
    next_level: &[File],
    rule: &CutRule,
    splits: &[u32],
    weights: &Weights,
) -> Vec<(usize, u64)> {
    debug_assert!(is_sorted(entries), "found entries that are not in order of ids");
    debug_assert!(splits.is_sorted(), "found splits that do not ascend");
    debug_assert!(weights.put > 0.0 && weights.tombstone > 0.0, "found entries without bytes: {weights:?}");
    let mut next =
        Grandparents { files: next_level, at: 0, in_gap: true, seen: false, overlapped: 0.0, crossed: 0 };
    let mut cuts = Vec::new();
    let mut bytes = 0.0;
    let mut boundary = 0;
    let mut splits = splits.iter().map(|&id| u64::from(id));
    let mut split = splits.next().unwrap_or(u64::MAX);
    let mut index = 0;
    while let Some(&entry) = entries.get(index) {
        let is_split = u64::from(entry.id()) >= split;
        let mut ends = bytes >= rule.most_bytes || is_split;
        while u64::from(entry.id()) >= split {
            split = splits.next().unwrap_or(u64::MAX);
        }
        if u64::from(entry.id()) >= boundary {
            let before = next.overlapped;
            let crossed = next.advance(entry.id());
            boundary = next.next_boundary();
            ends |= crossed > 0 && bytes > 0.0 && stops_at_boundary(rule, &next, crossed, before, bytes);
        }
        if ends && bytes > 0.0 {
            cuts.push((index, (bytes + weights.file).round() as u64));
            bytes = 0.0;
            next.new_file();
        }
        let rest = entries.get(index..).unwrap_or(&[]);
        let stretch = stretch(rest, boundary.min(split), rule.most_bytes - bytes, weights);
        bytes += stretch.1;
        index += stretch.0;
    }
    if bytes > 0.0 {
        cuts.push((entries.len(), (bytes + weights.file).round() as u64));
    }
    debug_assert_eq!(cuts.last().map_or(0, |cut| cut.0), entries.len(), "the files have all entries");
    debug_assert!(cuts.is_sorted_by(|a, b| a.0 < b.0), "found an empty file");
    cuts
}

/// Returns the number of entries, at least one, before the next place where a file may end, and
/// their bytes.
fn stretch(entries: &[Entry], boundary: u64, room: f64, weights: &Weights) -> (usize, f64) {
    if weights.put != weights.tombstone {
        return (1, entries.first().map_or(0.0, |entry| weights.of(*entry)));
    }
    let fits = (room / weights.put).ceil().clamp(1.0, entries.len() as f64) as usize;
    let within = entries.get(1..fits).unwrap_or(&[]);
    let is_within = within.last().is_none_or(|entry| u64::from(entry.id()) < boundary);
    let below = |entry: &Entry| u64::from(entry.id()) < boundary;
    debug_assert!(fits >= 1 && fits <= entries.len(), "found {fits} of {} entries", entries.len());
    let count = 1 + if is_within { within.len() } else { within.partition_point(below) };
    (count, count as f64 * weights.put)
}

fn stops_at_boundary(
    rule: &CutRule,
    next: &Grandparents<'_>,
    crossed: u32,
    overlapped_before: f64,
    bytes: f64,
) -> bool {
    if next.overlapped + bytes > rule.compaction_bytes_max {
        return true;
    }
    if !rule.at_boundaries {
        return false;
    }
    let skippable = if next.in_gap { 2 } else { 3 };
    if crossed >= skippable && next.overlapped - overlapped_before > rule.target_bytes / 8.0 {
        return true;
    }
    let share = f64::from((50 + 5 * next.crossed.min(8)).min(90)) / 100.0;
    bytes >= rule.target_bytes * share
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(ids: &[u32], seq: u64) -> Vec<Entry> {
        ids.iter().map(|&id| Entry::new(id, seq, false)).collect()
    }

    fn file(from: u32, to: u32, bytes: u64) -> File {
        File {
            number: 1,
            smallest: from,
            largest: to,
            bytes,
            compensated_bytes: bytes,
            tombstones: 0,
            created_secs: 0.0,
            newest_secs: 0.0,
            seqs: (0, 0),
            compacting: false,
            ratio: 1.0,
            entries: entries(&[from, to], 0).into_iter().collect(),
        }
    }

    const WEIGHTS: Weights = Weights { put: 1.0, tombstone: 1.0, file: 0.0 };

    fn rule(target: f64) -> CutRule {
        CutRule {
            target_bytes: target,
            most_bytes: 2.0 * target,
            compaction_bytes_max: 1e9,
            at_boundaries: true,
        }
    }

    /// Goal: without a next level, a file ends at its maximum size; with one, at the boundary after
    /// half of the target. Method: consecutive ids over hand-made next levels.
    #[test]
    fn files_end_at_boundaries() {
        let ids: Vec<u32> = (0..1000).collect();
        let all = entries(&ids, 0);
        let ends = |next: &[File], rule: &CutRule| {
            cut(&all, next, rule, &[], &WEIGHTS).iter().map(|cut| cut.0).collect::<Vec<_>>()
        };
        assert_eq!(ends(&[], &rule(200.0)), vec![400, 800, 1000]);
        // At 130, two boundaries have been crossed, so 60 % of 200 are enough. At 110 they are not
        // reached.
        let next = [file(0, 129, 50), file(130, 600, 50), file(700, 999, 50)];
        assert_eq!(ends(&next, &rule(200.0))[0], 130);
        assert_eq!(ends(&[file(0, 109, 50), file(110, 600, 50)], &rule(200.0))[0], 400);
        let wide = CutRule { at_boundaries: false, ..rule(200.0) };
        assert_eq!(ends(&next, &wide), vec![400, 800, 1000]);
        let tight = CutRule { compaction_bytes_max: 120.0, ..rule(200.0) };
        assert!(ends(&next, &tight)[0] <= 130);
        let split = cut(&all, &[], &rule(200.0), &[150, 500, 500], &WEIGHTS);
        assert_eq!(split.iter().map(|cut| cut.0).collect::<Vec<_>>(), vec![150, 500, 900, 1000]);
    }

    /// Goal: boundaries crossed by a file do not count for the next file. Method: the first file
    /// crosses many narrow files below and ends at nine tenths of its target; the next crosses one
    /// end and one start, for which 60 % are enough.
    #[test]
    fn boundaries_count_for_their_own_file() {
        let ids: Vec<u32> = (0..1000).collect();
        let mut next: Vec<File> = (0..18).map(|at| file(at * 10, at * 10 + 9, 1)).collect();
        next.extend([file(180, 299, 1), file(300, 999, 1)]);
        let cuts = cut(&entries(&ids, 0), &next, &rule(200.0), &[], &WEIGHTS);
        assert_eq!(cuts.iter().map(|cut| cut.0).collect::<Vec<_>>(), vec![180, 300, 700, 1000]);
    }

    /// Goal: tombstones count with their own size. Method: the file ends of alternating puts and
    /// tombstones.
    #[test]
    fn tombstones_are_short() {
        let mixed: Vec<Entry> = (0..1000).map(|id| Entry::new(id, 0, id % 2 == 1)).collect();
        let weights = Weights { put: 9.0, tombstone: 1.0, file: 5.0 };
        let cuts = cut(&mixed, &[], &rule(1000.0), &[], &weights);
        assert_eq!(cuts, vec![(400, 2005), (800, 2005), (1000, 1005)]);
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(64))]

        /// Goal: a union has each id once, in order, with its newest entry. Method: random lists
        /// against a map.
        #[test]
        fn unions_are_maps(lists in prop::collection::vec(prop::collection::btree_set(0u32..200, 0..80), 1..6)) {
            let lists: Vec<Vec<Entry>> = lists
                .iter()
                .enumerate()
                .map(|(age, ids)| ids.iter().map(|&id| Entry::new(id, age as u64, age % 2 == 1)).collect())
                .collect();
            let mut expected = std::collections::BTreeMap::new();
            for list in lists.iter().rev() {
                for entry in list {
                    expected.insert(entry.id(), *entry);
                }
            }
            // The same lists in one piece and in several.
            for piece in [1, 7, 1000] {
                let runs: Vec<Pieces<'_>> = lists.iter().map(|list| list.chunks(piece).collect()).collect();
                prop_assert_eq!(union(&runs), expected.values().copied().collect::<Vec<_>>());
            }
        }

        /// Goal: cutting loses no entries, and no file exceeds the maximum size. Method: random ids
        /// and next levels.
        #[test]
        fn cuts_cover_everything(ids in prop::collection::btree_set(0u32..5000, 1..900),
                                 bounds in prop::collection::btree_set(0u32..5000, 2..40),
                                 target in 5u32..300) {
            let all: Vec<Entry> = ids.iter().map(|&id| Entry::new(id, 0, false)).collect();
            let bounds: Vec<u32> = bounds.into_iter().collect();
            let next: Vec<File> = bounds.chunks_exact(2).map(|pair| file(pair[0], pair[1], 100)).collect();
            let rule = rule(f64::from(target));
            let cuts = cut(&all, &next, &rule, &[], &WEIGHTS);
            prop_assert_eq!(cuts.last().map(|cut| cut.0), Some(all.len()));
            let mut from = 0;
            for (to, bytes) in cuts {
                prop_assert!(to > from);
                prop_assert_eq!(bytes, (to - from) as u64);
                prop_assert!((to - from) as f64 <= rule.most_bytes.ceil());
                from = to;
            }
        }
    }
}
