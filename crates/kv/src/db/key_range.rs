//! Types that are accepted as a range of keys.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: any of Rust's ranges over byte-like keys, a pair of bounds, or `..` for all
/// keys.
///
/// Like [`RangeBounds`], except that `..` needs no type annotation for the keys.
pub trait KeyRange {
    /// Returns the first key in the range and the first key after it; `None` for an unbounded end.
    fn half_open(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>);
}

impl KeyRange for RangeFull {
    fn half_open(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (None, None)
    }
}

macro_rules! key_ranges {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn half_open(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
                half_open::<K>(self)
            }
        }
    )*};
}

key_ranges!(Range<K>, RangeFrom<K>, RangeInclusive<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));

fn half_open<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let after = |key: &K| [key.as_ref(), &[0]].concat();
    let lower = match range.start_bound() {
        Bound::Included(key) => Some(key.as_ref().to_vec()),
        Bound::Excluded(key) => Some(after(key)),
        Bound::Unbounded => None,
    };
    let upper = match range.end_bound() {
        Bound::Included(key) => Some(after(key)),
        Bound::Excluded(key) => Some(key.as_ref().to_vec()),
        Bound::Unbounded => None,
    };
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each kind of range contains the same keys as in Rust. Method: keys around its ends,
    /// compared with `contains`.
    #[test]
    fn kinds() {
        fn check(range: impl KeyRange, contains: impl Fn(&&str) -> bool) {
            let (lower, upper) = range.half_open();
            for key in ["", "a", "b", "b\0", "c", "c\0", "d"] {
                let bytes = key.as_bytes();
                let is_in = lower.as_ref().is_none_or(|lower| &**lower <= bytes)
                    && upper.as_ref().is_none_or(|upper| bytes < &**upper);
                assert_eq!(is_in, contains(&key), "{key:?} of {lower:?}..{upper:?}");
            }
        }
        check(.., |_| true);
        check("b".."c", |key| ("b".."c").contains(key));
        check("b"..="c", |key| ("b"..="c").contains(key));
        check("b".., |key| ("b"..).contains(key));
        check(.."c", |key| (.."c").contains(key));
        check(..="c", |key| (..="c").contains(key));
        let pair = (Bound::Excluded("b"), Bound::Included("c"));
        check(pair, |key| *key > "b" && *key <= "c");
    }
}
