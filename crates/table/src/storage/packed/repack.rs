//! Writing a part of a packed leaf as a leaf of its own.

use std::ops::Range;

use cairn_pool::Changed;

use super::pack::{Layout, Lead, Packer};
use super::plan::Plan;
use super::read::{LENGTH, LENGTH_AND_BYTES, Packed, Stream};
use super::symbols::{Found, Table};
use super::{BYTES, CODES, END, HEADER, HIGH, SLACK, TEXTS, Unpacked, VALUES};
use crate::storage::node::{Bounds, put_fences};
use crate::storage::source::Source;

impl Packed<'_, [u8]> {
    /// Writes some of the records, already unpacked by the caller, as a packed leaf with other
    /// bounds. Returns `None` if they do not fit.
    pub(crate) fn part(
        &self,
        unpacked: &Unpacked,
        records: Range<usize>,
        bounds: Bounds<'_>,
    ) -> Result<Option<Vec<u8>>, Changed> {
        let (streams, lead) = self.shape()?;
        let found: Vec<Stream> = (0..streams).map(|nth| self.stream(nth)).collect::<Result<_, _>>()?;
        let own = found.iter().skip(usize::from(lead > 0));
        let layout = Layout {
            lead: match lead {
                LENGTH => Lead::Length,
                LENGTH_AND_BYTES => Lead::Bytes,
                _ => Lead::Nothing,
            },
            widths: own.map(|stream| stream.width).filter(|width| *width != HIGH).collect(),
        };
        let mut packer = Packer::new(layout, self.0.len());
        for at in records.clone() {
            let (key, value) = unpacked.record(at).ok_or(Changed)?;
            if !packer.push(key, value) {
                return Err(Changed);
            }
        }
        for (nth, stream) in found.iter().enumerate() {
            packer.had_dictionary(nth, matches!(stream.form, TEXTS | VALUES));
            if stream.width == BYTES && stream.form == CODES {
                let (codes, ends) = self.codes(stream, records.clone())?;
                packer.set_codes(nth, self.symbols(stream)?, codes, ends);
            }
        }
        debug_assert!(packer.len() == records.len(), "{} of {records:?} are packed", packer.len());
        let plan = Plan::new(&packer, 0..records.len());
        Ok(packer.page(&plan, bounds))
    }

    /// Returns the same records with other bounds, or `None` if they do not fit.
    pub(crate) fn with_bounds(&self, bounds: Bounds<'_>) -> Option<Vec<u8>> {
        let end = usize::from(self.0.u16(END).ok()?);
        let mut bytes = self.0.to_vec();
        bytes.get_mut(end..)?.fill(0);
        put_fences(&mut bytes, bounds, end + SLACK).ok()?;
        debug_assert!(
            bytes.get(HEADER..end) == self.0.get(HEADER..end),
            "other bounds have changed the records of a packed leaf"
        );
        Some(bytes)
    }

    /// Returns the codes of some values and the ends of each.
    fn codes(&self, stream: &Stream, records: Range<usize>) -> Result<(Vec<u8>, Vec<u64>), Changed> {
        let (mut codes, mut ends) = (Vec::new(), Vec::with_capacity(records.len()));
        for at in records {
            let (start, end) = stream.ends().range(self.0, at)?;
            let heap = usize::from(stream.heap);
            codes.extend_from_slice(self.0.get(heap + start..heap + end).ok_or(Changed)?);
            ends.push(codes.len() as u64);
        }
        debug_assert!(ends.is_sorted(), "the codes of texts overlap");
        Ok((codes, ends))
    }

    fn symbols(&self, stream: &Stream) -> Result<Found, Changed> {
        let table = Table::read(self.0, stream.table)?;
        let symbols =
            (0..table.count()).map(|code| table.symbol(self.0, code).map(|(word, len)| (word, len as u8)));
        Ok(Found { symbols: symbols.collect::<Result<_, _>>()? })
    }
}
