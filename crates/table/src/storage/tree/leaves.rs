//! Leaves of a tree that is being built, packed where that saves enough. Nothing is written here,
//! so that a thread of its own can make them while another one writes the ones before.

use cairn_pool::Changed;

use super::level::{Level, Records, separator};
use crate::storage::node::Bounds;
use crate::storage::packed::{Layout, Packer};

/// Bytes of records that are looked at together before they are packed: some ten leaves.
const WAITING: usize = 256 << 10;

/// Records that go into ordinary leaves before the next attempt to pack: within those that wait,
/// and after one that was not worth it.
const PLAIN: usize = 64;
const AGAIN: usize = 10_000;

/// A leaf that can be written.
#[derive(Debug)]
pub(super) struct Leaf {
    pub payload: Vec<u8>,
    /// Where it ends.
    pub upper: Vec<u8>,
}

/// Takes records and makes leaves of them.
#[derive(Debug)]
pub(super) struct Leaves {
    /// Those of an ordinary leaf that is not full yet.
    level: Level,
    /// Bytes of a page, and as many of them an ordinary leaf gets.
    payload: usize,
    most: usize,
    /// Records that may come into packed leaves.
    packer: Option<Packer>,
    /// As many records go into ordinary leaves before the packer is asked again: it did not save
    /// enough.
    plain: usize,
    /// What can be written.
    made: Vec<Leaf>,
}

impl Leaves {
    /// For pages with so many bytes, of which an ordinary leaf gets `most`. With a layout leaves
    /// are packed where that saves enough.
    pub fn new(payload: usize, most: usize, layout: Option<Layout>) -> Leaves {
        let packer = layout.map(|layout| Packer::new(layout, payload));
        Leaves { level: Level::default(), payload, most, packer, plain: 0, made: Vec::new() }
    }

    /// Takes records, which come behind all before them, and gives the leaves that are done.
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

    /// What is left: leaves that are done, and the last one, which has no end.
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

    /// Puts a record into an ordinary leaf.
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

    /// Ends the ordinary leaf with `upper`.
    fn finish_leaf(&mut self, upper: Vec<u8>) -> Result<(), Changed> {
        let payload = self.level.node(0, Some(&upper), None, self.payload)?;
        self.level.clear(upper.clone());
        self.made.push(Leaf { payload, upper });
        Ok(())
    }

    /// Gives a record to the packer, if it takes it.
    fn packs(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Changed> {
        let Some(packer) = &mut self.packer else { return Ok(false) };
        if self.plain > 0 {
            self.plain -= 1;
            return Ok(false);
        }
        if !packer.push(key, value) {
            // One that cannot be packed: those before it have to be written first.
            self.pack(false)?;
            return Ok(false);
        }
        if packer.bytes() >= WAITING {
            self.pack(true)?;
        }
        Ok(true)
    }

    /// Makes packed leaves of the records that wait, and ordinary ones where that does not save
    /// enough. All of them, or with `more` to come as many as fill pages for certain.
    fn pack(&mut self, more: bool) -> Result<(), Changed> {
        let Some(mut packer) = self.packer.take() else { return Ok(()) };
        packer.prepare();
        while packer.len() > 0 && !(more && packer.bytes() < WAITING / 4) {
            // What is left at the end goes into an ordinary leaf: new records are likely to come
            // behind it.
            let own = packer.len() - if more { 1 } else { self.tail(&packer) };
            let packed = self.pack_page(&mut packer, own)?;
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
        self.packer = Some(packer);
        Ok(())
    }

    /// Puts all that waits into ordinary leaves.
    fn push_all(&mut self, packer: &mut Packer) -> Result<(), Changed> {
        for at in 0..packer.len() {
            let Some((key, value)) = packer.record(at) else { break };
            self.push_plain(key, value)?;
        }
        packer.forget(packer.len());
        Ok(())
    }

    /// As many of the last records as fill a quarter of an ordinary leaf; all of them if they fit
    /// into one.
    fn tail(&self, packer: &Packer) -> usize {
        let len = packer.len();
        if packer.ordinary(0..len) < self.most {
            return len;
        }
        let mut tail = 1;
        while tail < len && packer.ordinary(len - tail..len) < self.most / 4 {
            tail += 1;
        }
        tail
    }

    /// Makes a packed leaf of the first records, of which it may have so many. Gives how many it
    /// has; 0 when an ordinary one is better.
    fn pack_page(&mut self, packer: &mut Packer, most: usize) -> Result<usize, Changed> {
        let lower = self.level.lower.as_deref().map_or(0, <[u8]>::len);
        let Some((count, plan)) = packer.fit(lower, most) else { return Ok(0) };
        // A quarter of the bytes at least, and a page.
        let ordinary = packer.ordinary(0..count);
        if plan.size * 4 > ordinary * 3 || ordinary < self.most * 3 / 2 {
            return Ok(0);
        }
        // Ordinary records that came before end where the packed ones begin.
        if let Some(last) = self.level.records.last_key() {
            let upper = self.level.end_before(last, packer.key(0));
            self.finish_leaf(upper)?;
        }
        let upper = separator(packer.key(count - 1), packer.key(count));
        let bounds = Bounds { lower: self.level.lower.as_deref(), upper: Some(&upper) };
        let Some(payload) = packer.page(&plan, bounds) else { return Ok(0) };
        self.level.clear(upper.clone());
        self.made.push(Leaf { payload, upper });
        Ok(count)
    }
}
