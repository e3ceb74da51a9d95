//! The distinct byte strings of a column in a page. Strings of equal length are stored as they are;
//! others are front-coded, with a restart every 16 strings. The common prefix of all strings is
//! stored once.
//!
//! ```text
//!   count varint | mode u8 | shared by all: length u16, bytes
//!   mode 0   length u16 | count × length bytes
//!   mode 1   offset of each 16th string u16 …
//!            | strings: shared varint, own length varint, own bytes
//! ```

use cairn_codec::varint;

use crate::cursor::Cursor;
use crate::damage::{Checked, Damage};

const RESTART: usize = 16;
const FIXED: u8 = 0;
const FRONT: u8 = 1;

pub(crate) fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Returns the number of bytes that string `index` adds if it is front-coded after `before`.
pub(crate) fn front_bytes(index: usize, before: &[u8], string: &[u8]) -> usize {
    let restart = index.is_multiple_of(RESTART);
    let shared = if restart { 0 } else { shared_len(before, string) };
    debug_assert!(shared <= string.len());
    let own = string.len() - shared;
    2 * usize::from(restart) + varint::encoded_len(shared as u64) + varint::encoded_len(own as u64) + own
}

/// Size of the fields before the strings, without the common prefix.
pub(crate) const HEAD_BYTES: usize = 3 + 1 + 2 + 2;

/// Appends `strings` in their order.
pub(crate) fn emit(strings: &[&[u8]], out: &mut Vec<u8>) {
    let all = strings.iter().skip(1).fold(strings.first().map_or(0, |s| s.len()), |shared, string| {
        shared.min(shared_len(strings[0], string))
    });
    debug_assert!(strings.len() <= usize::from(u16::MAX) && all <= usize::from(u16::MAX));
    debug_assert!(strings.iter().all(|string| string.starts_with(&strings[0][..all])), "a common prefix");
    varint::push(strings.len() as u64, out);
    let own = |index: usize| &strings[index][all..];
    let width = strings.first().map_or(0, |s| s.len()) - all;
    let is_fixed = strings.iter().all(|string| string.len() - all == width);
    let front: usize =
        (0..strings.len()).map(|i| front_bytes(i, if i == 0 { b"" } else { own(i - 1) }, own(i))).sum();
    let fixed = is_fixed && strings.len() * width <= front;
    out.push(if fixed { FIXED } else { FRONT });
    out.extend_from_slice(&(all as u16).to_le_bytes());
    if let Some(first) = strings.first() {
        out.extend_from_slice(&first[..all]);
    }
    if fixed {
        debug_assert!(width <= usize::from(u16::MAX), "strings of {width} bytes");
        out.extend_from_slice(&(width as u16).to_le_bytes());
        (0..strings.len()).for_each(|index| out.extend_from_slice(own(index)));
        return;
    }
    let offsets = out.len();
    out.resize(offsets + 2 * strings.len().div_ceil(RESTART), 0);
    let data = out.len();
    for index in 0..strings.len() {
        let shared = if index.is_multiple_of(RESTART) {
            let at = offsets + index / RESTART * 2;
            debug_assert!(out.len() - data <= usize::from(u16::MAX), "strings beyond a page");
            let offset = ((out.len() - data) as u16).to_le_bytes();
            out[at..at + 2].copy_from_slice(&offset);
            0
        } else {
            shared_len(own(index - 1), own(index))
        };
        varint::push(shared as u64, out);
        varint::push((own(index).len() - shared) as u64, out);
        out.extend_from_slice(&own(index)[shared..]);
    }
}

/// The strings of a page.
#[derive(Clone, Copy)]
pub(crate) struct Strings<'a> {
    at: usize,
    count: usize,
    all: &'a [u8],
    body: Body<'a>,
}

#[derive(Clone, Copy)]
enum Body<'a> {
    Fixed { width: usize, data: &'a [u8] },
    Front { offsets: &'a [u8], data: Cursor<'a> },
}

impl<'a> Strings<'a> {
    pub(crate) fn parse(mut part: Cursor<'a>) -> Checked<Self> {
        let at = part.at();
        let count = usize::try_from(part.varint()?).unwrap_or(usize::MAX);
        let mode = part.u8()?;
        let all = usize::from(part.u16()?);
        let all = part.take(all)?;
        if count > usize::from(u16::MAX) {
            return Err(Damage::at(at, "no more strings than a page has rows"));
        }
        let body = match mode {
            FIXED => {
                let width = usize::from(part.u16()?);
                Body::Fixed { width, data: part.take(count * width)? }
            }
            FRONT => {
                let offsets = part.take(2 * count.div_ceil(RESTART))?;
                let left = part.end() - part.at();
                Body::Front { offsets, data: part.part(left)? }
            }
            _ => return Err(Damage::at(at, "a known string encoding")),
        };
        Ok(Strings { at, count, all, body })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Replaces the content of `out` with string `index`. Reads at most 16 strings.
    pub(crate) fn read(&self, index: u64, out: &mut Vec<u8>) -> Checked<()> {
        if index >= self.count as u64 {
            return Err(Damage::at(self.at, "a string for every row"));
        }
        let index = index as usize;
        out.clear();
        out.extend_from_slice(self.all);
        match self.body {
            Body::Fixed { width, data } => {
                out.extend_from_slice(data.get(index * width..(index + 1) * width).unwrap_or_default());
            }
            Body::Front { offsets, mut data } => {
                let at = index / RESTART * 2;
                let offset = offsets.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
                data.take(usize::from(offset))?;
                for _ in 0..=index % RESTART {
                    let shared = data.varint()?.saturating_add(self.all.len() as u64);
                    let own = data.varint()?;
                    if shared > out.len() as u64 {
                        return Err(Damage::at(data.at(), "no more shared bytes than the string before has"));
                    }
                    out.truncate(shared as usize);
                    out.extend_from_slice(data.take(usize::try_from(own).unwrap_or(usize::MAX))?);
                }
            }
        }
        debug_assert!(out.starts_with(self.all), "every string begins with the common prefix");
        Ok(())
    }
}
