//! Copying only the parts of a packed leaf that some columns need. The other parts are not even
//! loaded from memory.

use std::ops::Range;

use cairn_pool::Changed;

use super::read::{Packed, Stream};
use super::{ALL_NULL, BYTES, CODES, END, HEADER, HIGH, NO_NULLS, STREAM, TEXTS, VALUES};
use crate::storage::source::Source;

impl<S: Source + ?Sized> Packed<'_, S> {
    /// Copies the header, the fences, the keys, and the data of some row columns, each to its own
    /// offset. With `with_lead` also copies the lead of the records. The rest of `to`, which is as
    /// long as a page, is unchanged.
    pub(crate) fn copy_columns(
        &self,
        columns: &[usize],
        with_lead: bool,
        to: &mut [u8],
        copied: &mut Vec<Range<usize>>,
    ) -> Result<(), Changed> {
        let (streams, lead) = self.shape()?;
        let head = HEADER + streams * STREAM;
        copied.clear();
        let mut copy = |start: usize, end: usize, to: &mut [u8]| {
            copied.push(start..end);
            self.copy(start, end, to)
        };
        copy(0, head, to)?;
        copy(self.0.u16(4)?.into(), to.len(), to)?;
        let end = usize::from(self.0.u16(END)?);
        copy(head, if streams == 0 { end } else { self.begin(0)? }, to)?;
        let (mut column, mut is_wanted) = (0, false);
        for nth in 0..streams {
            let width = self.0.u8(HEADER + nth * STREAM)?;
            if nth < usize::from(lead > 0) {
                is_wanted = with_lead;
            } else if width != HIGH {
                is_wanted = columns.contains(&column);
                column += 1;
            }
            if is_wanted {
                let last = if nth + 1 == streams { end } else { self.begin(nth + 1)? };
                copy(self.begin(nth)?, last, to)?;
            }
        }
        Ok(())
    }

    /// Copies a range of bytes, and the slack after it that is read with its last number.
    fn copy(&self, start: usize, end: usize, to: &mut [u8]) -> Result<(), Changed> {
        let end = (end + super::SLACK).min(to.len());
        let part = to.get_mut(start..end).ok_or(Changed)?;
        self.0.copy_to(start, part)
    }

    /// Returns the offset where a stream's data begins. All data of the next stream comes after it.
    fn begin(&self, nth: usize) -> Result<usize, Changed> {
        let Stream { width, form, place, nulls, heap, table, .. } = self.stream(nth)?;
        let mut begin = place;
        if !matches!(nulls, NO_NULLS | ALL_NULL) {
            begin = begin.min(nulls);
        }
        if width == BYTES || form == VALUES {
            begin = begin.min(heap);
        }
        if width == BYTES && matches!(form, TEXTS | CODES) {
            begin = begin.min(table);
        }
        Ok(begin.into())
    }
}
