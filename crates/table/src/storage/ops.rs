//! Operations on a page. The same code applies them when they are made and when the log is
//! replayed.
//!
//! ```text
//!   insert   1 | at u16 | key length u16 | value length u16 | key without prefix | value
//!   remove   2 | at u16
//!   replace  3 | at u16 | value length u16 | value
//!   child    4 | at u16 | child u32
//!   image    5 | end of the lower part u16 | start of the upper part u16 | lower part | upper part
//!                zeros in between
//!   meta     6 | pages u32 | first free page u32
//!   free     7 | next free page u32
//!   chain    8 | next page u32 | length u16 | bytes
//! ```
//!
//! Numbers are little endian. Offsets are relative to the payload.

use cairn_pool::Changed;

use super::chain;
use super::node::{HEADER, Node, NodeMut, SLOT};
use super::source::Source;
use super::space::{self, Meta};

/// One operation on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Insert {
        at: u16,
        key: &'a [u8],
        value: &'a [u8],
    },
    Remove {
        at: u16,
    },
    Replace {
        at: u16,
        value: &'a [u8],
    },
    Child {
        at: u16,
        child: u32,
    },
    /// The whole page: the part before the free space and the part after it.
    Image {
        low: &'a [u8],
        high: &'a [u8],
        high_at: u16,
    },
    Meta(Meta),
    Free {
        next: u32,
    },
    Chain {
        next: u32,
        bytes: &'a [u8],
    },
}

/// Returns the image of a node, without its free space.
pub(crate) fn image(payload: &[u8]) -> Result<Op<'_>, Changed> {
    let node = Node(payload);
    let low = match node.is_packed()? {
        true => payload.u16(6)?.into(),
        false => HEADER + node.count()? * SLOT,
    };
    let high_at = payload.u16(4)?;
    if low > usize::from(high_at) {
        return Err(Changed);
    }
    let (low, high) = (payload.get(..low), payload.get(usize::from(high_at)..));
    Ok(Op::Image { low: low.ok_or(Changed)?, high: high.ok_or(Changed)?, high_at })
}

impl<'a> Op<'a> {
    /// Returns an upper bound of the encoded size, up to a constant.
    pub(crate) fn len(&self) -> usize {
        match self {
            Op::Insert { key, value, .. } => key.len() + value.len(),
            Op::Replace { value, .. } => value.len(),
            Op::Image { low, high, .. } => low.len() + high.len(),
            Op::Chain { bytes, .. } => bytes.len(),
            Op::Remove { .. } | Op::Child { .. } | Op::Meta(_) | Op::Free { .. } => 0,
        }
    }

    /// Returns whether the operation overwrites the whole page, regardless of its previous
    /// contents.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Op::Image { .. } | Op::Free { .. } | Op::Chain { .. })
    }

    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        let start = to.len();
        let len = |bytes: &[u8]| {
            debug_assert!(u16::try_from(bytes.len()).is_ok(), "a part of a page has {} bytes", bytes.len());
            (bytes.len() as u16).to_le_bytes()
        };
        match *self {
            Op::Insert { at, key, value } => {
                to.push(1);
                to.extend(at.to_le_bytes());
                to.extend(len(key));
                to.extend(len(value));
                to.extend(key);
                to.extend(value);
            }
            Op::Remove { at } => {
                to.push(2);
                to.extend(at.to_le_bytes());
            }
            Op::Replace { at, value } => {
                to.push(3);
                to.extend(at.to_le_bytes());
                to.extend(len(value));
                to.extend(value);
            }
            Op::Child { at, child } => {
                to.push(4);
                to.extend(at.to_le_bytes());
                to.extend(child.to_le_bytes());
            }
            Op::Image { low, high, high_at } => {
                to.push(5);
                to.extend(len(low));
                to.extend(high_at.to_le_bytes());
                to.extend((high.len() as u32).to_le_bytes());
                to.extend(low);
                to.extend(high);
            }
            Op::Meta(meta) => {
                to.push(6);
                to.extend(meta.pages.to_le_bytes());
                to.extend(meta.free.to_le_bytes());
            }
            Op::Free { next } => {
                to.push(7);
                to.extend(next.to_le_bytes());
            }
            Op::Chain { next, bytes } => {
                to.push(8);
                to.extend(next.to_le_bytes());
                to.extend(len(bytes));
                to.extend(bytes);
            }
        }
        debug_assert!(to.len() - start <= self.len() + 16, "{self:?} takes {} bytes", to.len() - start);
        debug_assert!(
            Op::decode(to.get(start..).unwrap_or_default()) == Some((*self, &[][..])),
            "{self:?} is not decoded as it was encoded"
        );
    }

    /// Decodes the first operation, and returns the bytes after it. Returns `None` for bytes that
    /// are not an operation.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<(Op<'a>, &'a [u8])> {
        let mut rest = bytes;
        let op = match take(&mut rest, 1)?.first()? {
            1 => {
                let (at, key, value) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
                Op::Insert { at, key: take(&mut rest, key.into())?, value: take(&mut rest, value.into())? }
            }
            2 => Op::Remove { at: number(&mut rest)? },
            3 => {
                let (at, value) = (number(&mut rest)?, number(&mut rest)?);
                Op::Replace { at, value: take(&mut rest, value.into())? }
            }
            4 => Op::Child { at: number(&mut rest)?, child: page(&mut rest)? },
            5 => {
                let (low, high_at, high) = (number(&mut rest)?, number(&mut rest)?, page(&mut rest)?);
                Op::Image {
                    low: take(&mut rest, low.into())?,
                    high: take(&mut rest, high as usize)?,
                    high_at,
                }
            }
            6 => Op::Meta(Meta { pages: page(&mut rest)?, free: page(&mut rest)? }),
            7 => Op::Free { next: page(&mut rest)? },
            8 => {
                let (next, len) = (page(&mut rest)?, number(&mut rest)?);
                Op::Chain { next, bytes: take(&mut rest, len.into())? }
            }
            _ => return None,
        };
        Some((op, rest))
    }

    /// Applies the operation to a page. Errors: [`Changed`] if the page cannot be the one that the
    /// operation was made for.
    pub(crate) fn apply(&self, payload: &mut [u8]) -> Result<(), Changed> {
        let len = payload.len();
        let mut node = NodeMut(payload);
        match *self {
            Op::Insert { at, key, value } => node.insert(at.into(), key, value),
            Op::Remove { at } => node.remove(at.into()),
            Op::Replace { at, value } => node.replace(at.into(), value),
            Op::Child { at, child } => node.set_child(at.into(), child),
            Op::Image { low, high, high_at } => {
                let high_at = usize::from(high_at);
                if low.len() > high_at || high_at + high.len() != len {
                    return Err(Changed);
                }
                let (front, back) = payload.split_at_mut(high_at);
                let (first, free) = front.split_at_mut(low.len());
                first.copy_from_slice(low);
                free.fill(0);
                back.copy_from_slice(high);
                Ok(())
            }
            Op::Meta(meta) => space::put_meta(payload, meta),
            Op::Free { next } => space::put_free(payload, next),
            Op::Chain { next, bytes } => chain::put(payload, next, bytes),
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    take(rest, 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn page(rest: &mut &[u8]) -> Option<u32> {
    take(rest, 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: a sequence of operations decodes to the same operations, and truncated bytes are
    /// refused.
    #[test]
    fn encodings() {
        let ops = [
            Op::Insert { at: 3, key: b"key", value: b"" },
            Op::Remove { at: 65_535 },
            Op::Replace { at: 0, value: b"value" },
            Op::Child { at: 9, child: u32::MAX },
            Op::Image { low: b"low", high: b"high", high_at: 100 },
            Op::Meta(Meta { pages: 7, free: 8 }),
            Op::Free { next: 5 },
            Op::Chain { next: 6, bytes: b"chain" },
        ];
        let mut bytes = Vec::new();
        ops.iter().for_each(|op| op.encode(&mut bytes));
        let mut rest = &bytes[..];
        for op in ops {
            let mut alone = Vec::new();
            op.encode(&mut alone);
            (0..alone.len()).for_each(|cut| assert!(Op::decode(&alone[..cut]).is_none()));
            let (found, left) = Op::decode(rest).unwrap();
            assert_eq!(found, op);
            rest = left;
        }
        assert!(rest.is_empty() && Op::decode(&[99, 0, 0]).is_none());
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(300))]

        /// Goal: no operation panics on any page.
        #[test]
        fn any_bytes(op in prop::collection::vec(any::<u8>(), 0..60), mut page in prop::collection::vec(any::<u8>(), 24..300)) {
            if let Some((op, _)) = Op::decode(&op) {
                let _ = op.apply(&mut page);
            }
        }
    }
}
