//! Making the leaves of a tree under construction, packed where that saves enough. Nothing is
//! written here, so that a separate thread can make leaves while another writes the previous ones.

use cairn_pool::Changed;

use super::level::{Level, Records, separator};
use crate::storage::node::{Bounds, Node};
use crate::storage::packed::{Layout, Packer};

/// Size of the records considered together before packing: some ten leaves.
const WAITING: usize = 256 << 10;

/// Number of records that go into ordinary leaves before the next attempt to pack: among pending
/// records, and after an attempt that did not pay off.
const PLAIN: usize = 64;
const AGAIN: usize = 10_000;
/// Records wait for their leaf until it can be filled.
const _: () = assert!(PLAIN < AGAIN && WAITING > 0);

/// A finished leaf, ready to be written.
#[derive(Debug)]
pub(super) struct Leaf {
    pub payload: Vec<u8>,
    /// The upper fence.
    pub upper: Vec<u8>,
}

/// Turns records into leaves.
#[derive(Debug)]
pub(super) struct Leaves {
    /// Records of an unfinished ordinary leaf.
    level: Level,
    /// Size of a page, and number of bytes to fill in an ordinary leaf.
    payload: usize,
    most: usize,
    /// Records that may go into packed leaves.
    packer: Option<Packer>,
    /// Number of records that go into ordinary leaves before the packer is tried again, after it
    /// did not save enough.
    plain: usize,
    /// Finished leaves.
    made: Vec<Leaf>,
}

impl Leaves {
    /// Creates a leaf maker for pages with this payload, of which an ordinary leaf fills `most`.
    /// With a layout, leaves are packed where that saves enough.
    pub fn new(payload: usize, most: usize, layout: Option<Layout>) -> Leaves {
        debug_assert!(most <= payload, "{most} bytes of {payload} are filled");
        let packer = layout.map(|layout| Packer::new(layout, payload));
        Leaves { level: Level::default(), payload, most, packer, plain: 0, made: Vec::new() }
    }

    /// Takes records, which must come after all previous ones, and returns the finished leaves.
    ///
    /// Errors: records that do not fit into a page.
    pub fn take(&mut self, records: &Records) -> Result<Vec<Leaf>, Changed> {
        for at in 0..records.len() {
            let Some((key, value)) = records.get(at) else { break };
            if !self.packs(key, value)? {
                self.push_plain(key, value)?;
            }
        }
        Ok(std::mem::take(&mut self.made))
    }

    /// Returns the remaining leaves, and the last one, which has no upper fence.
    ///
    /// Errors: as [`Leaves::take`].
    pub fn finish(mut self) -> Result<(Vec<Leaf>, Vec<u8>), Changed> {
        self.pack(false)?;
        while let Some((upper, rest)) = self.level.halve(0, self.payload) {
            self.finish_leaf(upper)?;
            self.level = rest;
        }
        let last = self.level.node(0, None, None, self.payload)?;
        Ok((self.made, last))
    }

    /// Adds a record to the ordinary leaf.
    fn push_plain(&mut self, key: &[u8], value: &[u8]) -> Result<(), Changed> {
        if self.level.size_with(key, value) > self.most
            && let Some(last) = self.level.records.last_key()
        {
            let upper = self.level.end_before(last, key);
            self.finish_leaf(upper)?;
        }
        self.level.records.push(key, value);
        Ok(())
    }

    /// Finishes the ordinary leaf with upper fence `upper`.
    fn finish_leaf(&mut self, upper: Vec<u8>) -> Result<(), Changed> {
        let payload = self.level.node(0, Some(&upper), None, self.payload)?;
        self.assert_is_next(&payload, &upper, self.level.records.len());
        self.level.clear(upper.clone());
        self.made.push(Leaf { payload, upper });
        Ok(())
    }

    /// Checks that a finished leaf has all of its records, and comes after the one before it.
    fn assert_is_next(&self, payload: &[u8], upper: &[u8], count: usize) {
        let found = Node(payload).count();
        debug_assert!(found == Ok(count), "a leaf of {count} records has {found:?}");
        debug_assert!(
            self.level.lower.as_deref().is_none_or(|lower| lower < upper),
            "a leaf ends at {upper:?}, where it begins or before"
        );
        debug_assert!(
            self.made.last().is_none_or(|last| Some(&last.upper[..]) == self.level.lower.as_deref()),
            "a leaf does not begin where the one before it ends"
        );
    }

    /// Passes a record to the packer. Returns false if the packer does not take it.
    fn packs(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Changed> {
        let Some(packer) = &mut self.packer else { return Ok(false) };
        if self.plain > 0 {
            self.plain -= 1;
            return Ok(false);
        }
        if !packer.push(key, value) {
            // The record cannot be packed, so those before it must be written first.
            self.pack(false)?;
            return Ok(false);
        }
        if packer.bytes() >= WAITING {
            self.pack(true)?;
        }
        Ok(true)
    }

    /// Packs pending records into leaves, or puts them into ordinary leaves where packing does not
    /// save enough. With `more` records to come, packs only as many as certainly fill pages;
    /// otherwise all.
    fn pack(&mut self, more: bool) -> Result<(), Changed> {
        let Some(mut packer) = self.packer.take() else { return Ok(()) };
        packer.prepare();
        while packer.len() > 0 && !(more && packer.bytes() < WAITING / 4) {
            // The last records go into an ordinary leaf, because new records are likely to follow
            // them.
            let own = packer.len() - if more { 1 } else { self.tail(&packer) };
            debug_assert!(own <= packer.len(), "{own} of {} records are packed", packer.len());
            let packed = self.pack_page(&mut packer, own)?;
            debug_assert!(packed <= own, "{packed} records are packed instead of up to {own}");
            if packed > 0 {
                packer.forget(packed);
                packer.wrote();
                continue;
            }
            let count = if own == 0 { packer.len() } else { packer.len().min(PLAIN) };
            for at in 0..count {
                let Some((key, value)) = packer.record(at) else { break };
                self.push_plain(key, value)?;
            }
            packer.forget(count);
            if more && own > 0 {
                self.plain = AGAIN;
                self.push_all(&mut packer)?;
            }
        }
        debug_assert!(more || packer.len() == 0, "{} records are left after the last one", packer.len());
        self.packer = Some(packer);
        Ok(())
    }

    /// Moves all pending records to ordinary leaves.
    fn push_all(&mut self, packer: &mut Packer) -> Result<(), Changed> {
        for at in 0..packer.len() {
            let Some((key, value)) = packer.record(at) else { break };
            self.push_plain(key, value)?;
        }
        packer.forget(packer.len());
        debug_assert!(packer.len() == 0, "{} records are left in the packer", packer.len());
        Ok(())
    }

    /// Returns how many of the last records fill a quarter of an ordinary leaf, or all of them if
    /// they fit into one.
    fn tail(&self, packer: &Packer) -> usize {
        let len = packer.len();
        if packer.ordinary(0..len) < self.most {
            return len;
        }
        let mut tail = 1;
        while tail < len && packer.ordinary(len - tail..len) < self.most / 4 {
            tail += 1;
        }
        debug_assert!((1..=len).contains(&tail), "{tail} of {len} records are the last ones");
        tail
    }

    /// Packs up to `most` of the first records into a leaf. Returns the number of records packed,
    /// or 0 if an ordinary leaf is better.
    fn pack_page(&mut self, packer: &mut Packer, most: usize) -> Result<usize, Changed> {
        let lower = self.level.lower.as_deref().map_or(0, <[u8]>::len);
        let Some((count, plan)) = packer.fit(lower, most) else { return Ok(0) };
        // Packing must save at least a quarter of the bytes, and save pages.
        let ordinary = packer.ordinary(0..count);
        if plan.size * 4 > ordinary * 3 || ordinary < self.most * 3 / 2 {
            return Ok(0);
        }
        // A preceding ordinary leaf ends where the packed one begins.
        if let Some(last) = self.level.records.last_key() {
            let upper = self.level.end_before(last, packer.key(0));
            self.finish_leaf(upper)?;
        }
        let upper = separator(packer.key(count - 1), packer.key(count));
        let bounds = Bounds { lower: self.level.lower.as_deref(), upper: Some(&upper) };
        let Some(payload) = packer.page(&plan, bounds) else { return Ok(0) };
        self.assert_is_next(&payload, &upper, count);
        debug_assert!(
            packer.is_read_back(&plan, &payload),
            "{count} records are not read as they were packed"
        );
        self.level.clear(upper.clone());
        self.made.push(Leaf { payload, upper });
        Ok(count)
    }
}
