//! Records of a tree in order.

use std::fmt;
use std::ops::{Bound, Range};

use cairn_pool::{Changed, Lsn, Optimistic, Seen};

use super::{Attempt, Tree};
use crate::Result;
use crate::storage::node::Node;
use crate::storage::packed::{CHUNK, Packed, Unpacked};

/// Which way a cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// Walks the records of a range. It has a copy of one leaf at a time, so it holds nothing that
/// anybody could wait for; what it finds is what each leaf was when the cursor came to it.
pub struct Cursor {
    pub(super) tree: Tree,
    direction: Direction,
    /// Where it ends.
    pub(super) end: Bound<Vec<u8>>,
    leaf: Vec<u8>,
    /// The node above the leaf, unless the way to the next one begins at the root.
    pub(super) parent: Option<Parent>,
    /// The last change of the leaf.
    lsn: Lsn,
    /// Records of the leaf that are still to come.
    records: Range<usize>,
    /// From where the next leaf is sought; `None` after the last one.
    pub(super) next: Option<Seek>,
    /// Room for the next key of these.
    spare: Vec<u8>,
    key: Vec<u8>,
    /// Where the value of the record is in the leaf.
    value: Range<usize>,
    /// Whether the leaf is packed, and the records of it that are put together.
    is_packed: bool,
    unpacked: Unpacked,
    /// The record that it is at.
    at: usize,
    /// What is copied of a packed leaf; all if nobody said.
    part: Option<Part>,
    /// Whether no more than that was copied of the leaf it is at.
    is_partial: bool,
    /// As many records are put together next: more and more, since who has read many will read
    /// many.
    chunk: usize,
}

/// As many records are put together at most.
const MOST_AT_ONCE: usize = 1024;

/// The node above a leaf, as it was when the leaf was read. As long as it is the same it leads to
/// the leaf beside it, which saves the walk down from the root: a quarter of a scan's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    page: u32,
    seen: Seen,
    /// Which of its children the leaf is.
    at: usize,
}

/// A part of packed leaves.
#[derive(Debug, Clone)]
struct Part {
    columns: Vec<usize>,
    /// Also what records begin with, so that they can be put together.
    with_lead: bool,
    all_visible: Lsn,
    /// Where these were in the leaf before: the one after it is likely to have them there too.
    places: Vec<Range<usize>>,
}

/// Where a leaf is sought.
#[derive(Debug, Clone)]
pub(super) enum Seek {
    /// The first leaf, or the last one.
    Outermost,
    /// Records from this key on, it included.
    At(Vec<u8>),
    /// Records beyond this key.
    Beyond(Vec<u8>),
}

impl Tree {
    /// The records of a range of keys. Nothing is read before the first call of [`Cursor::next`].
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
            spare: Vec::new(),
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

    /// Copies the leaf at the end of a tree, or the one where a key is, or where the keys beyond it
    /// begin. `parent` is that of the leaf before, if it is known, and becomes that of this one.
    /// Gives its last change, and whether it is the one beside the leaf before.
    fn copy_leaf(
        &self,
        seek: &Seek,
        direction: Direction,
        parent: &mut Option<Parent>,
        part: Option<&mut Part>,
        to: &mut Vec<u8>,
    ) -> Attempt<(Lsn, bool)> {
        let beside = match parent.take() {
            Some(parent) => {
                let places = part.as_ref().map(|part| &part.places[..]);
                self.beside(parent, direction, places.unwrap_or_default())?
            }
            None => None,
        };
        let is_beside = beside.is_some();
        let (view, above) = match beside {
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
        Ok((lsn, is_beside))
    }

    /// The leaf beside the one whose parent this is; `None` where the parent has changed, or has no
    /// more. Of the one beside that, `places` are brought near: they come while this one is worked
    /// on.
    fn beside(
        &self,
        parent: Parent,
        direction: Direction,
        places: &[Range<usize>],
    ) -> Attempt<Option<(Optimistic<'_>, Parent)>> {
        // Its page may be anything by now, or be cut off the file: the walk from the root tells
        // what is wrong, if anything is.
        let Ok(view) = self.space.file.optimistic(parent.page) else { return Ok(None) };
        let at = match direction {
            Direction::Forward => Some(parent.at + 1),
            Direction::Backward => parent.at.checked_sub(1),
        };
        let Some(at) = at.filter(|_| view.seen() == parent.seen) else { return Ok(None) };
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

    /// The leaf that a search from the root finds, and the node above it, if there is one.
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
                    // The key itself is the last one of the child before.
                    let is_past = matches!((seek, direction), (Seek::Beyond(_), Direction::Forward));
                    if is_there && is_past { at + 1 } else { at }
                }
            };
            let child = self.sound(&view, node.child(at))?;
            parent = (level == 1).then(|| Parent { page: view.id().page(), seen: view.seen(), at });
            view = self.below(&view, level, child)?;
            level -= 1;
        }
        Ok((view, parent))
    }
}

impl Cursor {
    /// The last change of the leaf that the record came from which [`Cursor::next`] gave last.
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The next record, or `None` after the last. Errors: as [`Cursor::advance`].
    #[allow(clippy::should_implement_trait, reason = "the record borrows from the cursor")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(if self.advance()? { Some((self.key(), self.value())) } else { None })
    }

    /// The key of the record that it is at.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.is_packed { self.packed_record().0 } else { &self.key }
    }

    fn packed_record(&self) -> (&[u8], &[u8]) {
        self.unpacked.record(self.at).unwrap_or_default()
    }

    /// The value of the record that it is at.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.is_packed {
            return self.packed_record().1;
        }
        self.leaf.get(self.value.clone()).unwrap_or_default()
    }

    /// Goes to the next record; false after the last. Errors: the pool's,
    /// [`Error::Corruption`](crate::Error::Corruption); the call after an error tries the same leaf
    /// again.
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
        if self.is_packed {
            self.unpack(at)?;
            return Ok(true);
        }
        self.go_to(at)?;
        Ok(true)
    }

    /// Puts a record of a packed leaf together, with those that come after it.
    #[inline]
    fn unpack(&mut self, at: usize) -> Result<()> {
        self.at = at;
        if self.unpacked.range().contains(&at) {
            return Ok(());
        }
        // The last few of a range come together.
        let left = match self.direction {
            Direction::Forward => self.records.end.max(at + 1) - at,
            Direction::Backward => at + 1 - self.records.start.min(at),
        };
        let count = if left <= 2 * self.chunk { left } else { self.chunk };
        let range = match self.direction {
            Direction::Forward => at..at + count,
            Direction::Backward => (at + 1).saturating_sub(count)..at + 1,
        };
        self.chunk = (self.chunk * 2).min(MOST_AT_ONCE);
        let wanted = self.part.as_ref().filter(|_| self.is_partial).map(|part| &part.columns[..]);
        self.unpacked.fill(Packed(&self.leaf[..]), range, wanted).map_err(|Changed| self.damaged())
    }

    /// Only these columns are going to be asked for, besides keys, of packed leaves that nobody has
    /// changed behind `all_visible`: of such a leaf nothing else may be read. `as_records`: by
    /// records, whose other columns are NULL then; else column by column.
    pub(crate) fn read_only(&mut self, columns: Vec<usize>, as_records: bool, all_visible: Lsn) {
        self.part = Some(Part { columns, with_lead: as_records, all_visible, places: Vec::new() });
    }

    /// Goes to the next leaf that has records of the range, for who takes them all at once; false
    /// after the last. What is left of the leaf it is at is passed over.
    /// Errors: as [`Cursor::advance`].
    pub(crate) fn advance_leaf(&mut self) -> Result<bool> {
        self.records = 0..0;
        while self.records.is_empty() {
            if !self.load_next()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies the next leaf; false after the last. After an error the same leaf is still the next
    /// one.
    fn load_next(&mut self) -> Result<bool> {
        let Some(seek) = self.next.take() else { return Ok(false) };
        if let Err(error) = self.load(&seek) {
            self.next = Some(seek);
            return Err(error);
        }
        if let Seek::At(key) | Seek::Beyond(key) = seek {
            self.spare = key;
        }
        Ok(true)
    }

    /// The leaf that it is at.
    pub(crate) fn leaf(&self) -> Node<'_, [u8]> {
        Node(&self.leaf)
    }

    /// Whether it is packed.
    pub(crate) fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// Key and value of a record of the leaf. Errors: as [`Cursor::advance`].
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
        let node = Node(&self.leaf[..]);
        self.value =
            node.key(at, &mut self.key).and_then(|()| node.record(at)).map_err(|Changed| self.damaged())?.1;
        Ok(())
    }

    /// The records of the leaf that are of the range.
    pub(crate) fn records(&self) -> Range<usize> {
        self.records.clone()
    }

    /// The page of the tree's root.
    pub(crate) fn root(&self) -> u32 {
        self.tree.root
    }

    /// Which way it goes.
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    fn damaged(&self) -> crate::Error {
        self.tree
            .space
            .damaged(self.tree.root, "a leaf of its tree has records that reach outside of the leaf")
    }

    /// Copies the leaf of `seek`, and finds the records in it that belong to the range, and where
    /// to go on.
    fn load(&mut self, seek: &Seek) -> Result<()> {
        let (tree, direction) = (&self.tree, self.direction);
        let (parent, part, leaf) = (&mut self.parent, &mut self.part, &mut self.leaf);
        let (lsn, is_beside) =
            tree.attempt(|| tree.copy_leaf(seek, direction, parent, part.as_mut(), leaf))?;
        self.lsn = lsn;
        (self.records, self.next) = self.place(seek, is_beside).map_err(|Changed| self.damaged())?;
        self.unpacked.clear();
        self.is_packed = self.leaf().is_packed().map_err(|Changed| self.damaged())?;
        self.is_partial =
            self.is_packed && self.part.as_ref().is_some_and(|part| self.lsn <= part.all_visible);
        Ok(())
    }

    /// The records of the leaf that belong to the range, and where the next leaf is sought.
    fn place(&mut self, seek: &Seek, is_beside: bool) -> Result<(Range<usize>, Option<Seek>), Changed> {
        let mut fence = std::mem::take(&mut self.spare);
        let node = Node(&self.leaf[..]);
        let count = node.count()?;
        let mut records = 0..count;
        // The leaf beside another one begins where that one ends.
        if let Seek::At(key) | Seek::Beyond(key) = seek
            && !is_beside
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
        // A range that goes on behind the leaf's fence has all of it.
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
        // Forward the fence is the last key of this leaf, backward it is the last one of the leaf
        // before.
        let next = match self.direction {
            Direction::Forward => Seek::Beyond(fence),
            Direction::Backward => Seek::At(fence),
        };
        Ok((records, (!is_last).then_some(next)))
    }

    /// As [`Node::search`], also for keys that the leaf may not hold: they are before or after all
    /// of its records.
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
