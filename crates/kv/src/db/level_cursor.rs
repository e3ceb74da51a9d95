//! A cursor over the tables of a sorted run, which opens each table when the cursor reaches it.

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::cursor::Cursor;
use crate::db::tables::Tables;
use crate::db::tables::cursor_options;
use crate::iter::visible::Bounds;
use crate::kind::{Kind, Seqno};
use crate::options::ReadOptions;
use crate::table::{CursorOptions, TableCursor};
use crate::version::TableFile;

/// Iterates over disjoint tables in key order.
pub(crate) struct LevelCursor {
    tables: Arc<Tables>,
    files: Vec<Arc<TableFile>>,
    options: CursorOptions,
    /// The index of the table of `cursor`.
    at: usize,
    cursor: Option<TableCursor>,
}

impl LevelCursor {
    /// Creates a cursor over the parts of `files` within `bounds`.
    pub(crate) fn new(
        tables: Arc<Tables>,
        files: Vec<Arc<TableFile>>,
        bounds: &Bounds,
        options: &ReadOptions,
    ) -> Self {
        debug_assert!(
            files.is_sorted_by(|a, b| a.meta.largest <= b.meta.smallest),
            "the tables of a run are disjoint and in key order"
        );
        LevelCursor { tables, files, options: cursor_options(bounds, options), at: 0, cursor: None }
    }

    /// Makes `at` the current table. Past the end there is none.
    fn load(&mut self, at: usize) -> Result<Option<&mut TableCursor>> {
        if self.cursor.is_none() || self.at != at {
            self.cursor = None;
            let Some(file) = self.files.get(at) else { return Ok(None) };
            self.cursor = Some(self.tables.open(file)?.cursor(&self.options));
            self.at = at;
        }
        debug_assert!(self.at < self.files.len(), "table {} of {}", self.at, self.files.len());
        Ok(self.cursor.as_mut())
    }

    fn is_on_entry(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::valid)
    }

    /// While the current table is exhausted, moves to the first entry of the next one.
    fn skip_forward(&mut self) -> Result<()> {
        while self.cursor.is_some() && !self.is_on_entry() {
            if let Some(cursor) = self.load(self.at + 1)? {
                cursor.seek_first()?;
            }
        }
        debug_assert!(self.cursor.is_none() || self.is_on_entry(), "an exhausted table is kept");
        Ok(())
    }

    /// While the current table is exhausted, moves to the last entry of the previous one.
    fn skip_backward(&mut self) -> Result<()> {
        while self.cursor.is_some() && !self.is_on_entry() {
            match self.at.checked_sub(1) {
                None => self.cursor = None,
                Some(before) => {
                    if let Some(cursor) = self.load(before)? {
                        cursor.seek_last()?;
                    }
                }
            }
        }
        debug_assert!(self.cursor.is_none() || self.is_on_entry(), "an exhausted table is kept");
        Ok(())
    }

    /// Runs a move. If it fails, the cursor becomes invalid.
    fn run(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let result = step(self);
        if result.is_err() {
            self.cursor = None;
        }
        result
    }
}

impl Cursor for LevelCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.is_on_entry()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.run(|this| {
            if let Some(cursor) = this.load(0)? {
                cursor.seek_first()?;
            }
            this.skip_forward()
        })
    }

    fn seek_last(&mut self) -> Result<()> {
        self.run(|this| {
            if let Some(cursor) = this.load(this.files.len().saturating_sub(1))? {
                cursor.seek_last()?;
            }
            this.skip_backward()
        })
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.run(|this| {
            let at = this.files.partition_point(|file| file.meta.largest.as_slice() < key);
            if let Some(cursor) = this.load(at)? {
                cursor.seek(key, seqno)?;
            }
            this.skip_forward()
        })
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        self.run(|this| {
            let past = this.files.partition_point(|file| {
                let smallest = file.meta.smallest.as_slice();
                smallest < key || (inclusive && smallest == key)
            });
            let Some(at) = past.checked_sub(1) else {
                this.cursor = None;
                return Ok(());
            };
            if let Some(cursor) = this.load(at)? {
                cursor.seek_back(key, inclusive)?;
            }
            this.skip_backward()
        })
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            match cursor.next() {
                Ok(()) if cursor.valid() => return Ok(()),
                Ok(()) => {}
                Err(error) => {
                    self.cursor = None;
                    return Err(error);
                }
            }
        }
        self.run(Self::skip_forward)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            match cursor.prev() {
                Ok(()) if cursor.valid() => return Ok(()),
                Ok(()) => {}
                Err(error) => {
                    self.cursor = None;
                    return Err(error);
                }
            }
        }
        self.run(Self::skip_backward)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::key)
    }

    #[inline]
    fn seqno(&self) -> Seqno {
        self.cursor.as_ref().map_or(0, Cursor::seqno)
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.cursor.as_ref().map_or(Kind::Delete, Cursor::kind)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::value)
    }
}
