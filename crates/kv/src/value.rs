//! Values returned by lookups.

use std::fmt;
use std::ops::{Deref, Range};

use crate::table::BlockRef;

/// Values up to this many bytes are stored inline.
const INLINE_BYTES: usize = 30;

const _: () = assert!(INLINE_BYTES <= u8::MAX as usize, "the length of an inline value is one byte");

/// A value that was read. Dereferences to its bytes.
///
/// Short values are stored inline, without an allocation. A long value from a table is not copied
/// but keeps its block alive. Holding many such values for long prevents the block cache from
/// freeing their memory; [`Value::into_vec`] copies the bytes.
#[derive(Clone)]
pub struct Value(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Owned(Box<[u8]>),
    Block { block: BlockRef, range: Range<u32> },
}

#[cfg(not(cairn_shuttle))]
const _: () = assert!(size_of::<Value>() == 32, "an inline value, its length and the variant");

impl Value {
    /// Copies `bytes`.
    #[inline]
    pub(crate) fn copy(bytes: &[u8]) -> Value {
        if bytes.len() <= INLINE_BYTES { Value::inline(bytes) } else { Value(Repr::Owned(bytes.into())) }
    }

    #[inline]
    fn inline(value: &[u8]) -> Value {
        debug_assert!(value.len() <= INLINE_BYTES, "{} bytes inline", value.len());
        let mut bytes = [0; INLINE_BYTES];
        bytes[..value.len()].copy_from_slice(value);
        Value(Repr::Inline { len: value.len() as u8, bytes })
    }

    /// Creates a value from `value`, a slice of `block`. Short values are copied; longer ones keep
    /// the block alive.
    #[inline]
    pub(crate) fn in_block(value: &[u8], block: &BlockRef) -> Value {
        if value.len() <= INLINE_BYTES {
            return Value::inline(value);
        }
        debug_assert!(block.range_of(value).is_some(), "the value lies in another block");
        match block.range_of(value) {
            Some(range) => Value(Repr::Block { block: block.clone(), range }),
            None => Value::copy(value),
        }
    }

    /// Takes ownership of `vec`.
    pub(crate) fn owned(vec: Vec<u8>) -> Value {
        Value(Repr::Owned(vec.into_boxed_slice()))
    }

    /// Returns the value as a vector, copying it if necessary.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Repr::Owned(bytes) => bytes.into_vec(),
            _ => self.to_vec(),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Owned(bytes) => bytes,
            Repr::Block { block, range } => {
                debug_assert!(
                    range.end as usize <= block.bytes().len(),
                    "a value from {range:?} of its block"
                );
                block.bytes().get(range.start as usize..range.end as usize).unwrap_or_default()
            }
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value(\"{}\")", self.escape_ascii())
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.into_vec()
    }
}
