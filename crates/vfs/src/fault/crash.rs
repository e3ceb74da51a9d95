//! The possible states of a disk after a power loss, derived from its durable state and its pending
//! changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::disk::{Disk, apply_to};
use super::options::FaultOptions;
use super::pending::{DataChange, FileState};
use crate::mem::content::Content;
use crate::mem::tree::{Names, Node, ROOT, Tree};
use crate::{Rng, SeededRng};

const SECTOR_BYTES: u64 = 512;
const _: () =
    assert!(SECTOR_BYTES.is_power_of_two() && crate::mem::content::PAGE.is_multiple_of(SECTOR_BYTES));

/// Which of the pending changes a crash keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrashImage {
    /// None: the disk holds exactly the synced state.
    None,
    /// All: the disk holds exactly the state that programs saw, except for changes that a failed
    /// sync left only in the cache.
    All,
    /// Drawn from the seed. Each change is independently lost, kept whole, torn at sectors, cut to
    /// a prefix, reduced to a subset of its bytes, or turned into garbage. Lengths and names are
    /// drawn separately from bytes. The probabilities are drawn first, for the image as a whole, so
    /// that some images lose nearly everything, some nearly nothing, and some only tear.
    Random(u64),
}

impl fmt::Display for CrashImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrashImage::None => f.write_str("none"),
            CrashImage::All => f.write_str("all"),
            CrashImage::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

/// The fate of the bytes of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Whole,
    /// Each sector is lost or kept on its own.
    Torn,
    /// Kept up to some byte.
    Prefix,
    /// Each byte is lost or kept on its own.
    Subset,
    /// Each sector is lost, whole or random bytes, and at least one is random bytes.
    Garbage,
}

const FATES: [Fate; 6] = [Fate::Lost, Fate::Whole, Fate::Torn, Fate::Prefix, Fate::Subset, Fate::Garbage];

impl Disk {
    /// Returns the disk after a power loss, with nothing pending.
    pub(super) fn after_crash(&self, image: CrashImage, options: &FaultOptions) -> Disk {
        let mut draw = Draw::new(image, options, self);
        let mut dirs = self.durable.clone();
        let mut kept_names = BTreeSet::new();
        for item in self.pending_names.iter() {
            // The second half of a rename never survives without the first.
            let is_second = item.sequence != item.group;
            let first_lost = is_second
                && !kept_names.contains(&item.group)
                && self.pending_names.binary_search_by_key(&item.group, |first| first.sequence).is_ok();
            if draw.keeps_name(item.sequence) && !first_lost {
                kept_names.insert(item.sequence);
                apply_to(&mut dirs, &item.change);
            }
        }
        debug_assert!(image != CrashImage::None || kept_names.is_empty(), "an unsynced name survives");
        debug_assert!(
            image != CrashImage::All || kept_names.len() == self.pending_names.len(),
            "{} names survive of {}",
            kept_names.len(),
            self.pending_names.len()
        );
        debug_assert!(
            !options.ordered
                || self
                    .pending_names
                    .iter()
                    .take(kept_names.len())
                    .all(|item| kept_names.contains(&item.sequence)),
            "an ordered disk keeps the names {kept_names:?}, but not all before them"
        );
        let disk = self.collect_reachable(&mut dirs, &mut draw);
        debug_assert!(disk.pending_names.is_empty(), "a name is pending after the restart");
        debug_assert!(
            disk.tree.files().all(|(_, file)| file.is_settled()),
            "bytes are pending after the restart"
        );
        disk
    }

    /// Collects everything reachable from the root through `dirs`.
    fn collect_reachable(&self, dirs: &mut BTreeMap<u64, Arc<Names>>, draw: &mut Draw<'_>) -> Disk {
        let mut tree = Tree::new();
        let mut durable = BTreeMap::new();
        let mut seen = BTreeSet::from([ROOT]);
        let mut todo = vec![ROOT];
        while let Some(dir) = todo.pop() {
            let mut names = dirs.remove(&dir).unwrap_or_default();
            // A directory keeps only one name, even when a rename of it left two. Otherwise cycles
            // could form.
            let duplicates: Vec<_> = names
                .iter()
                .filter(|&(_, &inode)| self.tree.is_dir(inode) && !seen.insert(inode))
                .map(|(name, _)| name.clone())
                .collect();
            for name in duplicates {
                Arc::make_mut(&mut names).remove(&name);
            }
            for &inode in names.values() {
                match self.tree.node(inode) {
                    Some(Node::Dir(_)) => todo.push(inode),
                    Some(Node::File(file)) if seen.insert(inode) => {
                        tree.insert(inode, Node::File(draw.file(file)));
                    }
                    _ => {}
                }
            }
            tree.insert(dir, Node::Dir(Arc::clone(&names)));
            durable.insert(dir, names);
        }
        debug_assert!(tree.nodes().all(|(inode, _)| seen.contains(&inode)), "an unreachable inode is kept");
        Disk::settled(tree, durable)
    }

    /// Draws content that the disk may hold for one file.
    pub(super) fn draw_content(
        &self,
        file: &FileState,
        image: CrashImage,
        options: &FaultOptions,
    ) -> Content {
        Draw::new(image, options, self).content(file)
    }

    /// Returns the sequence numbers of all pending changes, in ascending order.
    fn pending_sequences(&self) -> Vec<u64> {
        let data = self.tree.files().flat_map(|(_, file)| file.pending.iter().map(|item| item.sequence));
        let mut all: Vec<u64> = data.chain(self.pending_names.iter().map(|item| item.sequence)).collect();
        all.sort_unstable();
        debug_assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "two changes have one number");
        all
    }
}

/// Draws fates.
struct Draw<'a> {
    image: CrashImage,
    options: &'a FaultOptions,
    rng: SeededRng,
    /// The relative frequency of each fate, out of `weight_sum`.
    weights: [u64; FATES.len()],
    weight_sum: u64,
    keep_length: f64,
    keep_name: f64,
    /// On an ordered device: the first change that did not arrive whole.
    cut: Option<u64>,
}

impl<'a> Draw<'a> {
    fn new(image: CrashImage, options: &'a FaultOptions, disk: &Disk) -> Self {
        let mut rng = SeededRng::new(match image {
            CrashImage::Random(seed) => seed,
            CrashImage::None | CrashImage::All => 0,
        });
        // Swarm testing (Groce and others, ISSTA 2012): switching some fates off completely finds
        // bugs that an even mix hides.
        let mut weights = FATES.map(|_| if rng.chance(0.5) { 1 + rng.below(8) } else { 0 });
        if weights.iter().all(|&weight| weight == 0) {
            weights = FATES.map(|_| 1);
        }
        let odds = [0.1, 0.5, 0.9];
        let mut pick = || odds[rng.below(odds.len() as u64) as usize];
        let (keep_length, keep_name) = (pick(), pick());
        let cut = options.ordered.then(|| {
            let sequences = disk.pending_sequences();
            let index = rng.below(sequences.len() as u64 + 1) as usize;
            sequences.get(index).copied().unwrap_or(u64::MAX)
        });
        let weight_sum = weights.iter().sum();
        debug_assert!(weight_sum > 0, "no fate can be drawn");
        Draw { image, options, rng, weights, weight_sum, keep_length, keep_name, cut }
    }

    /// Returns the fate that an ordered device imposes: whole before the cut, lost after it.
    fn ordered(&self, sequence: u64) -> Option<bool> {
        self.cut.filter(|&cut| cut != sequence).map(|cut| sequence < cut)
    }

    fn keeps_name(&mut self, sequence: u64) -> bool {
        match self.image {
            CrashImage::None => false,
            CrashImage::All => true,
            CrashImage::Random(_) => {
                self.ordered(sequence).unwrap_or_else(|| self.rng.chance(self.keep_name))
            }
        }
    }

    fn keeps_length(&mut self, sequence: u64) -> bool {
        self.ordered(sequence).unwrap_or_else(|| self.rng.chance(self.keep_length))
    }

    fn fate(&mut self, sequence: u64) -> Fate {
        match self.ordered(sequence) {
            Some(true) => Fate::Whole,
            Some(false) => Fate::Lost,
            None => {
                let mut ticket = self.rng.below(self.weight_sum);
                debug_assert!(ticket < self.weight_sum);
                for (fate, weight) in FATES.into_iter().zip(self.weights) {
                    if ticket < weight {
                        return fate;
                    }
                    ticket -= weight;
                }
                Fate::Lost
            }
        }
    }

    fn file(&mut self, file: &Arc<FileState>) -> Arc<FileState> {
        if file.is_settled() {
            return Arc::clone(file);
        }
        Arc::new(FileState::settled(match self.image {
            CrashImage::None => file.durable.clone(),
            CrashImage::All => file.all_applied(),
            CrashImage::Random(_) => self.content(file),
        }))
    }

    fn content(&mut self, file: &FileState) -> Content {
        debug_assert!(matches!(self.image, CrashImage::Random(_)), "a fixed image is drawn");
        let mut content = file.durable.clone();
        let mut appends_intact = true;
        for item in &file.pending {
            match &item.change {
                DataChange::Write { offset, bytes, grows } => {
                    let fate = self.fate(item.sequence);
                    self.write(&mut content, fate, *offset, bytes);
                    if *grows {
                        let mut keeps = self.keeps_length(item.sequence);
                        if self.options.append_safe {
                            appends_intact &= fate == Fate::Whole;
                            keeps &= appends_intact;
                        }
                        if keeps {
                            content.grow(offset + bytes.len() as u64);
                        }
                    }
                }
                DataChange::SetLen(len) => {
                    if self.keeps_length(item.sequence) {
                        content.set_len(*len);
                    }
                }
            }
        }
        content.trim();
        debug_assert!(appends_intact || self.options.append_safe);
        debug_assert!(
            content.len() == file.durable.len()
                || file.pending.iter().any(|item| match &item.change {
                    DataChange::Write { offset, bytes, .. } => offset + bytes.len() as u64 == content.len(),
                    DataChange::SetLen(len) => *len == content.len(),
                }),
            "the file never had {} bytes",
            content.len()
        );
        content
    }

    /// Applies a write with the given fate.
    fn write(&mut self, content: &mut Content, fate: Fate, offset: u64, bytes: &[u8]) {
        match fate {
            Fate::Lost => return,
            Fate::Whole => return content.put(bytes, offset),
            _ => {}
        }
        // A device with atomic units loses and keeps whole units only, and produces no garbage.
        let atomic = self.options.atomic_write.unit_bytes();
        debug_assert!(atomic.is_none_or(|unit| unit.is_multiple_of(SECTOR_BYTES)), "units tear sectors");
        let wide = self.options.wide_garbage && fate == Fate::Garbage && atomic.is_none();
        let (start, end) = (offset, offset + bytes.len() as u64);
        let (from, to) = if wide {
            (start / SECTOR_BYTES * SECTOR_BYTES, end.next_multiple_of(SECTOR_BYTES))
        } else {
            (start, end)
        };
        debug_assert!(from <= start && start < end && end <= to, "{start}..{end} in {from}..{to}");
        let mut old = vec![0; (to - from) as usize];
        content.peek(&mut old, from);
        let mut new = old.clone();
        let inside = (start - from) as usize;
        new[inside..inside + bytes.len()].copy_from_slice(bytes);
        let merged = match (fate, atomic) {
            (Fate::Prefix, None) => {
                let kept = self.rng.below(old.len() as u64) as usize;
                old[..kept].copy_from_slice(&new[..kept]);
                old
            }
            (Fate::Subset, None) => self.byte_subset(old, &new),
            (Fate::Garbage, None) => self.garbage(old, &new, from),
            (Fate::Prefix, Some(unit)) => {
                let kept = self.rng.below(pieces(from, to, unit).count() as u64);
                let pieces = pieces(from, to, unit).take(kept as usize);
                pieces.for_each(|piece| old[piece.clone()].copy_from_slice(&new[piece]));
                old
            }
            (_, unit) => {
                for piece in pieces(from, to, unit.unwrap_or(SECTOR_BYTES)) {
                    if self.rng.chance(0.5) {
                        old[piece.clone()].copy_from_slice(&new[piece]);
                    }
                }
                old
            }
        };
        debug_assert!(merged.len() as u64 == to - from);
        content.put(&merged, from);
    }

    fn byte_subset(&mut self, mut old: Vec<u8>, new: &[u8]) -> Vec<u8> {
        debug_assert!(old.len() == new.len());
        for (old, new) in old.chunks_mut(64).zip(new.chunks(64)) {
            let mask = self.rng.next_u64();
            for (bit, (old, new)) in old.iter_mut().zip(new).enumerate() {
                if mask >> bit & 1 == 1 {
                    *old = *new;
                }
            }
        }
        old
    }

    fn garbage(&mut self, mut old: Vec<u8>, new: &[u8], from: u64) -> Vec<u8> {
        debug_assert!(old.len() == new.len() && !old.is_empty());
        let to = from + old.len() as u64;
        let certain = self.rng.below(pieces(from, to, SECTOR_BYTES).count() as u64) as usize;
        for (index, piece) in pieces(from, to, SECTOR_BYTES).enumerate() {
            let choice = if index == certain { 2 } else { self.rng.below(3) };
            match choice {
                0 => {}
                1 => old[piece.clone()].copy_from_slice(&new[piece]),
                _ => self.rng.fill(&mut old[piece]),
            }
        }
        old
    }
}

/// Splits `from..to` at multiples of `unit`. The returned ranges are relative to `from`.
fn pieces(from: u64, to: u64, unit: u64) -> impl Iterator<Item = std::ops::Range<usize>> {
    debug_assert!(from <= to && unit > 0, "{from}..{to} in units of {unit}");
    (from / unit..to.div_ceil(unit)).map(move |index| {
        let start = (index * unit).max(from) - from;
        let end = ((index + 1) * unit).min(to) - from;
        start as usize..end as usize
    })
}
