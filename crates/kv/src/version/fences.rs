//! Key ranges reduced to eight bytes per bound, so that a search stays within a few cache lines.

/// Heads of the bounds of ranges, which may be ascending or unordered: their common prefix once,
/// then the next eight bytes of each bound as a big-endian number, padded with zeros.
///
/// A smaller head means a smaller key. If heads are equal, the caller must compare the keys.
#[derive(Debug)]
pub(super) struct Fences {
    prefix: Box<[u8]>,
    smallest: Box<[u64]>,
    largest: Box<[u64]>,
}

impl Fences {
    /// Creates the heads of `ranges`, in their order.
    pub(super) fn new<'a>(ranges: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Fences {
        let first = ranges.clone().map(|(smallest, _)| smallest).min().unwrap_or(&[]);
        let last = ranges.clone().map(|(_, largest)| largest).max().unwrap_or(&[]);
        // Every key between two keys begins with the common prefix of the two.
        let prefix_len = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        debug_assert!(
            ranges.clone().all(|(smallest, largest)| smallest <= largest),
            "a range ends before it starts"
        );
        debug_assert!(
            ranges.clone().all(|(smallest, largest)| {
                smallest.starts_with(&first[..prefix_len]) && largest.starts_with(&first[..prefix_len])
            }),
            "a bound without the common prefix"
        );
        let cut = |key: &[u8]| head(key.get(prefix_len..).unwrap_or(&[]));
        let fences = Fences {
            prefix: first.iter().take(prefix_len).copied().collect(),
            smallest: ranges.clone().map(|(smallest, _)| cut(smallest)).collect(),
            largest: ranges.map(|(_, largest)| cut(largest)).collect(),
        };
        debug_assert!(
            fences.smallest.iter().zip(&fences.largest).all(|(smallest, largest)| smallest <= largest),
            "heads contradict the keys"
        );
        fences
    }

    /// Returns the head of `key`, or `None` when it does not have the common prefix and therefore
    /// lies outside all ranges.
    #[inline]
    pub(super) fn head(&self, key: &[u8]) -> Option<u64> {
        key.strip_prefix(&self.prefix[..]).map(head)
    }

    /// Returns true if every range lies after `key`, which must not have the common prefix.
    pub(super) fn all_after(&self, key: &[u8]) -> bool {
        debug_assert!(!key.starts_with(&self.prefix), "a key with the common prefix lies among the ranges");
        key < &self.prefix[..]
    }

    /// In ascending ranges, returns the last one that starts at or before the key with this head.
    /// `starts_by` compares full keys; it is only called for equal heads.
    #[inline]
    pub(super) fn last_starting_by(&self, head: u64, starts_by: impl Fn(usize) -> bool) -> Option<usize> {
        let mut end = self.smallest.partition_point(|&smallest| smallest <= head);
        if end > 0 && self.smallest.get(end - 1) == Some(&head) {
            end = self.untie(end, head, starts_by);
        }
        end.checked_sub(1)
    }

    #[cold]
    fn untie(&self, end: usize, head: u64, starts_by: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (self.smallest.partition_point(|&smallest| smallest < head), end);
        while low < high {
            let middle = low + (high - low) / 2;
            if starts_by(middle) { low = middle + 1 } else { high = middle }
        }
        debug_assert!(low <= end, "range {low} of {end}");
        debug_assert!(low == end || !starts_by(low), "range {low} starts by the key, so it is not the last");
        low
    }

    /// Returns true if range `at` ends before the key with this head. `in_full` decides for equal
    /// heads.
    #[inline]
    pub(super) fn ends_before(&self, at: usize, head: u64, in_full: impl FnOnce() -> bool) -> bool {
        debug_assert!(at < self.largest.len(), "range {at} of {}", self.largest.len());
        match self.largest.get(at) {
            Some(&largest) if largest == head => in_full(),
            Some(&largest) => largest < head,
            None => true,
        }
    }

    /// Returns true if range `at` may contain the key with this head. False positives occur only
    /// with equal heads.
    #[inline]
    pub(super) fn may_hold(&self, at: usize, head: u64) -> bool {
        debug_assert!(at < self.smallest.len(), "range {at} of {}", self.smallest.len());
        matches!((self.smallest.get(at), self.largest.get(at)), (Some(&s), Some(&l)) if s <= head && head <= l)
    }
}

/// Returns the first eight bytes as a number with the same order.
#[inline]
fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(&bytes) => u64::from_be_bytes(bytes),
        None => key.iter().enumerate().fold(0, |head, (at, &byte)| head | u64::from(byte) << (56 - 8 * at)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::test_config::cases(512))]

        /// Goal: heads never contradict the keys.
        /// Method: random keys of two letters and zero bytes; compare heads and keys.
        #[test]
        fn heads_sort_as_keys(a in "[a-b\\x00]{0,12}", b in "[a-b\\x00]{0,12}") {
            match head(a.as_bytes()).cmp(&head(b.as_bytes())) {
                std::cmp::Ordering::Equal => {}
                order => prop_assert_eq!(order, a.cmp(&b)),
            }
        }
    }
}
