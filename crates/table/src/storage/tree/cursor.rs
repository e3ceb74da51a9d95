//! Cursors: the records of a tree in order.

use std::fmt;
use std::ops::{Bound, Range};

use cairn_pool::{Changed, Lsn, Optimistic, PageVersion};

use super::{Attempt, Tree};
use crate::Result;
use crate::storage::node::Node;
use crate::storage::packed::{CHUNK, Packed, Unpacked};

/// The direction of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// A cursor over the records of a range. It holds a copy of one leaf at a time, so no other thread
/// ever waits for it. It sees each leaf as of the moment when it reached the leaf.
pub struct Cursor {
    pub(super) tree: Tree,
    direction: Direction,
    /// The end of the range.
    pub(super) end: Bound<Vec<u8>>,
    leaf: Vec<u8>,
    /// The node above the leaf. `None` if the search for the next leaf starts at the root.
    pub(super) parent: Option<Parent>,
    /// LSN of the last change of the leaf.
    lsn: Lsn,
    /// Records of the leaf that are still to come.
    records: Range<usize>,
    /// The start of the next leaf; `None` after the last one.
    pub(super) next: Option<Seek>,
    /// A buffer for the next key of `next`.
    fence_buffer: Vec<u8>,
    key: Vec<u8>,
    /// Location of the current value in the leaf.
    value: Range<usize>,
    /// Whether the leaf is packed, and its records that are unpacked.
    is_packed: bool,
    unpacked: Unpacked,
    /// The current record.
    at: usize,
    /// The part of packed leaves to copy; `None` for all of them.
    part: Option<Part>,
    /// Whether only that part of the current leaf was copied.
    is_partial: bool,
    /// Number of records to unpack next. It grows, because a reader that has read many is likely to
    /// read many more.
    chunk: usize,
}

/// Maximum number of records to unpack at once.
const MAX_UNPACKED: usize = 1024;
const _: () = assert!(CHUNK > 0 && CHUNK <= MAX_UNPACKED);

/// The node above a leaf, as it was when the leaf was read. While it is unchanged, it leads to the
/// adjacent leaf without a descent from the root, which saves a quarter of a scan's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    page: u32,
    version: PageVersion,
    /// Position of the leaf among its children.
    at: usize,
}

/// The part of packed leaves that a reader needs.
#[derive(Debug, Clone)]
struct Part {
    columns: Vec<usize>,
    /// Whether the lead of the records is included, so that records can be unpacked.
    with_lead: bool,
    all_visible: Lsn,
    /// Locations of this part in the previous leaf. The next leaf is likely to have it in the same
    /// places.
    places: Vec<Range<usize>>,
}

/// The leaf to look for.
#[derive(Debug, Clone)]
pub(super) enum Seek {
    /// The first leaf, or the last one.
    Outermost,
    /// The leaf with this key, inclusive.
    At(Vec<u8>),
    /// The leaf with the records beyond this key.
    Beyond(Vec<u8>),
}

impl Tree {
    /// Returns a cursor over a range of keys. Nothing is read before the first call of
    /// [`Cursor::next`].
    pub fn scan(&self, range: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> Cursor {
        let (start, end) = match direction {
            Direction::Forward => range,
            Direction::Backward => (range.1, range.0),
        };
        let next = match start {
            Bound::Unbounded => Seek::Outermost,
            Bound::Included(key) => Seek::At(key.to_vec()),
            Bound::Excluded(key) => Seek::Beyond(key.to_vec()),
        };
        let end = end.map(<[u8]>::to_vec);
        Cursor {
            tree: self.clone(),
            direction,
            end,
            leaf: Vec::new(),
            parent: None,
            lsn: Lsn::NONE,
            records: 0..0,
            next: Some(next),
            fence_buffer: Vec::new(),
            key: Vec::new(),
            value: 0..0,
            is_packed: false,
            unpacked: Unpacked::default(),
            at: 0,
            part: None,
            is_partial: false,
            chunk: CHUNK,
        }
    }

    /// Copies the leaf for `seek`. `parent` is the parent of the previous leaf, if known, and is
    /// updated to that of this leaf. Returns the leaf's last change, and whether it is adjacent to
    /// the previous leaf.
    fn copy_leaf(
        &self,
        seek: &Seek,
        direction: Direction,
        parent: &mut Option<Parent>,
        part: Option<&mut Part>,
        to: &mut Vec<u8>,
    ) -> Attempt<(Lsn, bool)> {
        let adjacent = match parent.take() {
            Some(parent) => {
                let places = part.as_ref().map(|part| &part.places[..]);
                self.adjacent_leaf(parent, direction, places.unwrap_or_default())?
            }
            None => None,
        };
        let is_adjacent = adjacent.is_some();
        let (view, above) = match adjacent {
            Some((view, above)) => (view, Some(above)),
            None => self.leaf_of(seek, direction)?,
        };
        to.resize(view.len(), 0);
        let lsn = view.lsn();
        match part {
            Some(part) if lsn <= part.all_visible && self.sound(&view, Node(&view).is_packed())? => {
                self.sound(
                    &view,
                    Packed(&view).copy_columns(&part.columns, part.with_lead, to, &mut part.places),
                )?;
            }
            _ => view.copy_to(0, to)?,
        }
        view.validate()?;
        *parent = above;
        Ok((lsn, is_adjacent))
    }

    /// Returns the leaf adjacent to the one that `parent` describes, or `None` if the parent has
    /// changed or has no more children. Prefetches `places` of the leaf after it, to load them
    /// while this one is processed.
    fn adjacent_leaf(
        &self,
        parent: Parent,
        direction: Direction,
        places: &[Range<usize>],
    ) -> Attempt<Option<(Optimistic<'_>, Parent)>> {
        // The page may have been reused by now, or truncated from the file. The descent from the
        // root reports the problem, if there is one.
        let Ok(view) = self.space.file.optimistic(parent.page) else { return Ok(None) };
        let at = match direction {
            Direction::Forward => Some(parent.at + 1),
            Direction::Backward => parent.at.checked_sub(1),
        };
        let Some(at) = at.filter(|_| view.version() == parent.version) else { return Ok(None) };
        if at > self.sound(&view, Node(&view).count())? {
            return Ok(None);
        }
        let child = self.sound(&view, Node(&view).child(at))?;
        let leaf = self.below(&view, 1, child)?;
        if direction == Direction::Forward
            && let Ok(next) = Node(&view).child(at + 1)
        {
            places.iter().for_each(|place| self.space.file.hint(next, place.clone()));
        }
        Ok(Some((leaf, Parent { at, ..parent })))
    }

    /// Returns the leaf found by a descent from the root, and the node above it, if there is one.
    fn leaf_of(&self, seek: &Seek, direction: Direction) -> Attempt<(Optimistic<'_>, Option<Parent>)> {
        let mut view = self.view(self.root)?;
        let mut level = self.level(&view)?;
        let mut parent = None;
        while level > 0 {
            let node = Node(&view);
            let count = self.sound(&view, node.count())?;
            let at = match (seek, direction) {
                (Seek::Outermost, Direction::Forward) => 0,
                (Seek::Outermost, Direction::Backward) => count,
                (Seek::At(key) | Seek::Beyond(key), _) => {
                    let (at, is_there) = self.sound(&view, node.search(key))?;
                    // A key equal to the separator is the last one of the child before it.
                    let is_past = matches!((seek, direction), (Seek::Beyond(_), Direction::Forward));
                    if is_there && is_past { at + 1 } else { at }
                }
            };
            let child = self.sound(&view, node.child(at))?;
            parent = (level == 1).then(|| Parent { page: view.id().page(), version: view.version(), at });
            view = self.below(&view, level, child)?;
            level -= 1;
        }
        Ok((view, parent))
    }
}

impl Cursor {
    /// Returns the last change of the leaf from which [`Cursor::next`] returned its last record.
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Returns the next record, or `None` after the last one. Errors: as [`Cursor::advance`].
    #[allow(clippy::should_implement_trait, reason = "the record borrows from the cursor")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(if self.advance()? { Some((self.key(), self.value())) } else { None })
    }

    /// Returns the key of the current record.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.is_packed { self.packed_record().0 } else { &self.key }
    }

    fn packed_record(&self) -> (&[u8], &[u8]) {
        self.unpacked.record(self.at).unwrap_or_default()
    }

    /// Returns the value of the current record.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.is_packed {
            return self.packed_record().1;
        }
        self.leaf.get(self.value.clone()).unwrap_or_default()
    }

    /// Moves to the next record. Returns false after the last one. Errors: the pool's,
    /// [`Error::Corruption`](crate::Error::Corruption). The next call after an error retries the
    /// same leaf.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        while self.records.is_empty() {
            if !self.load_next()? {
                return Ok(false);
            }
        }
        let at = match self.direction {
            Direction::Forward => self.records.next(),
            Direction::Backward => self.records.next_back(),
        };
        let Some(at) = at else { return Ok(false) };
        debug_assert!(!self.records.contains(&at), "record {at} is returned, and still to come");
        if self.is_packed {
            self.unpack(at)?;
            return Ok(true);
        }
        self.go_to(at)?;
        Ok(true)
    }

    /// Unpacks a record of a packed leaf along with those that come after it.
    #[inline]
    fn unpack(&mut self, at: usize) -> Result<()> {
        self.at = at;
        if self.unpacked.range().contains(&at) {
            return Ok(());
        }
        // The last few records of a range are unpacked together.
        let left = match self.direction {
            Direction::Forward => self.records.end.max(at + 1) - at,
            Direction::Backward => at + 1 - self.records.start.min(at),
        };
        let count = if left <= 2 * self.chunk { left } else { self.chunk };
        let range = match self.direction {
            Direction::Forward => at..at + count,
            Direction::Backward => (at + 1).saturating_sub(count)..at + 1,
        };
        debug_assert!(range.contains(&at), "record {at} is unpacked with {range:?}");
        debug_assert!(range.len() <= 2 * MAX_UNPACKED, "{} records are unpacked at once", range.len());
        self.chunk = (self.chunk * 2).min(MAX_UNPACKED);
        let wanted = self.part.as_ref().filter(|_| self.is_partial).map(|part| &part.columns[..]);
        self.unpacked.fill(Packed(&self.leaf[..]), range, wanted).map_err(|Changed| self.damaged())
    }

    /// Declares that only these columns will be read, besides keys, from packed leaves that have
    /// not changed after `all_visible`. Nothing else of such a leaf may then be read. With
    /// `as_records`, records are read whole, with NULL in the other columns; otherwise column by
    /// column.
    pub(crate) fn read_only(&mut self, columns: Vec<usize>, as_records: bool, all_visible: Lsn) {
        debug_assert!(self.leaf.is_empty(), "columns are chosen after the first leaf was copied");
        self.part = Some(Part { columns, with_lead: as_records, all_visible, places: Vec::new() });
    }

    /// Moves to the next leaf with records in the range, for callers that process whole leaves.
    /// Returns false after the last one. The rest of the current leaf is skipped. Errors: as
    /// [`Cursor::advance`].
    pub(crate) fn advance_leaf(&mut self) -> Result<bool> {
        self.records = 0..0;
        while self.records.is_empty() {
            if !self.load_next()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies the next leaf. Returns false after the last one. After an error, the same leaf
    /// remains the next one.
    fn load_next(&mut self) -> Result<bool> {
        let Some(seek) = self.next.take() else { return Ok(false) };
        if let Err(error) = self.load(&seek) {
            self.next = Some(seek);
            return Err(error);
        }
        if let Seek::At(key) | Seek::Beyond(key) = seek {
            self.fence_buffer = key;
        }
        Ok(true)
    }

    /// Returns the current leaf.
    pub(crate) fn leaf(&self) -> Node<'_, [u8]> {
        Node(&self.leaf)
    }

    /// Returns whether the current leaf is packed.
    pub(crate) fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// Returns a record of the current leaf. Errors: as [`Cursor::advance`].
    pub(crate) fn record(&mut self, at: usize) -> Result<(&[u8], &[u8])> {
        if self.is_packed {
            self.unpack(at)?;
        } else {
            self.go_to(at)?;
        }
        Ok((self.key(), self.value()))
    }

    #[inline]
    fn go_to(&mut self, at: usize) -> Result<()> {
        debug_assert!(!self.is_packed, "record {at} of a packed leaf is read in place");
        let node = Node(&self.leaf[..]);
        self.value =
            node.key(at, &mut self.key).and_then(|()| node.record(at)).map_err(|Changed| self.damaged())?.1;
        Ok(())
    }

    /// Returns the positions of the leaf's records that are in the range.
    pub(crate) fn records(&self) -> Range<usize> {
        self.records.clone()
    }

    /// Returns the root page of the tree.
    pub(crate) fn root(&self) -> u32 {
        self.tree.root
    }

    /// Returns the direction.
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    fn damaged(&self) -> crate::Error {
        self.tree.space.damaged(self.tree.root, "a leaf of its tree has records that extend beyond the page")
    }

    /// Copies the leaf for `seek`, and determines its records in the range and the next leaf.
    fn load(&mut self, seek: &Seek) -> Result<()> {
        let (tree, direction) = (&self.tree, self.direction);
        let (parent, part, leaf) = (&mut self.parent, &mut self.part, &mut self.leaf);
        let (lsn, is_adjacent) =
            tree.attempt(|| tree.copy_leaf(seek, direction, parent, part.as_mut(), leaf))?;
        self.lsn = lsn;
        (self.records, self.next) =
            self.records_in_range(seek, is_adjacent).map_err(|Changed| self.damaged())?;
        self.unpacked.clear();
        self.is_packed = self.leaf().is_packed().map_err(|Changed| self.damaged())?;
        debug_assert!(self.unpacked.range().is_empty(), "records of the leaf before are unpacked");
        self.is_partial =
            self.is_packed && self.part.as_ref().is_some_and(|part| self.lsn <= part.all_visible);
        Ok(())
    }

    /// Returns the records of the leaf that are in the range, and where the next leaf begins.
    fn records_in_range(
        &mut self,
        seek: &Seek,
        is_adjacent: bool,
    ) -> Result<(Range<usize>, Option<Seek>), Changed> {
        let mut fence = std::mem::take(&mut self.fence_buffer);
        let node = Node(&self.leaf[..]);
        let count = node.count()?;
        let mut records = 0..count;
        // An adjacent leaf begins exactly where the previous one ended.
        if let Seek::At(key) | Seek::Beyond(key) = seek
            && !is_adjacent
        {
            let (at, is_there) = self.search(node, key)?;
            let is_in = is_there && matches!(seek, Seek::At(_));
            match self.direction {
                Direction::Forward => records.start = if is_there && !is_in { at + 1 } else { at },
                Direction::Backward => records.end = if is_in { at + 1 } else { at },
            }
        }
        let has_more = match self.direction {
            Direction::Forward => node.upper(&mut fence)?,
            Direction::Backward => node.lower(&mut fence)?,
        };
        let mut is_last = !has_more;
        // If the range extends beyond the leaf's fence, all remaining records are in it.
        let goes_on = |key: &Vec<u8>| {
            has_more
                && match self.direction {
                    Direction::Forward => fence < *key,
                    Direction::Backward => fence >= *key,
                }
        };
        if let Bound::Included(key) | Bound::Excluded(key) = &self.end
            && !goes_on(key)
        {
            let (at, is_there) = self.search(node, key)?;
            let is_in = is_there && matches!(self.end, Bound::Included(_));
            match self.direction {
                Direction::Forward => {
                    let end = if is_in { at + 1 } else { at };
                    is_last |= end < count || fence >= *key;
                    records.end = end;
                }
                Direction::Backward => {
                    let start = if is_there && !is_in { at + 1 } else { at };
                    is_last |= start > 0 || fence < *key;
                    records.start = start;
                }
            }
        }
        if records.start > records.end {
            records.end = records.start;
        }
        debug_assert!(records.end <= count, "records {records:?} of {count} are in the range");
        // Going forward, the fence is the last key of this leaf; going backward, it is the last key
        // of the leaf before.
        let next = match self.direction {
            Direction::Forward => Seek::Beyond(fence),
            Direction::Backward => Seek::At(fence),
        };
        Ok((records, (!is_last).then_some(next)))
    }

    /// Like [`Node::search`], but also accepts keys outside the leaf's range, which are before or
    /// after all of its records.
    fn search(&self, node: Node<'_, [u8]>, key: &[u8]) -> Result<(usize, bool), Changed> {
        let mut fence = Vec::new();
        if node.lower(&mut fence)? && *key <= *fence {
            return Ok((0, false));
        }
        if node.upper(&mut fence)? && *key > *fence {
            return Ok((node.count()?, false));
        }
        node.search(key)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("direction", &self.direction)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
