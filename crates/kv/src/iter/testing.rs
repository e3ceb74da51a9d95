//! A cursor over a vector, the model for all other cursors.

use crate::Result;
use crate::cursor::Cursor;
use crate::kind::{Kind, Seqno};

/// One entry of a [`VecCursor`].
pub(crate) type Entry = (Vec<u8>, Seqno, Kind, Vec<u8>);

/// Iterates over entries sorted by key, then by descending sequence number.
pub(crate) struct VecCursor {
    entries: Vec<Entry>,
    at: Option<usize>,
}

impl VecCursor {
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        VecCursor { entries, at: None }
    }

    fn place(&mut self, at: Option<usize>) -> Result<()> {
        self.at = at.filter(|&at| at < self.entries.len());
        Ok(())
    }

    fn current(&self) -> &Entry {
        &self.entries[self.at.unwrap()]
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.place(Some(0))
    }

    fn seek_last(&mut self) -> Result<()> {
        self.place(self.entries.len().checked_sub(1))
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        let at = self.entries.partition_point(|e| e.0.as_slice() < key || (e.0 == key && e.1 > seqno));
        self.place(Some(at))
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        let past = self.entries.partition_point(|e| e.0.as_slice() < key || (inclusive && e.0 == key));
        self.place(past.checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.place(self.at.map(|at| at + 1))
    }

    fn prev(&mut self) -> Result<()> {
        self.place(self.at.unwrap().checked_sub(1))
    }

    fn key(&self) -> &[u8] {
        &self.current().0
    }

    fn seqno(&self) -> Seqno {
        self.current().1
    }

    fn kind(&self) -> Kind {
        self.current().2
    }

    fn value(&self) -> &[u8] {
        &self.current().3
    }
}
