//! Minimises a failing list of operations.

/// Returns a minimal subset of `items`, in order, for which `still_fails` holds: removing any one
/// more item makes it pass. The method is delta debugging (Zeller and Hildebrandt, "Simplifying and
/// Isolating Failure-Inducing Input", 2002).
///
/// Calls `still_fails` O(n log n) times if a single item causes the failure, O(n²) at worst. If
/// `still_fails` does not hold for all of `items`, they are returned unchanged.
pub fn shrink<T: Clone>(items: &[T], mut still_fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut items = items.to_vec();
    if !still_fails(&items) {
        return items;
    }
    let mut pieces = 2;
    while !items.is_empty() {
        debug_assert!(pieces >= 2, "the list as a whole is left out");
        let size = items.len().div_ceil(pieces);
        debug_assert!(size > 0);
        let smaller = (0..items.len()).step_by(size).find_map(|start| {
            let end = (start + size).min(items.len());
            let rest = [&items[..start], &items[end..]].concat();
            still_fails(&rest).then_some(rest)
        });
        match smaller {
            Some(rest) => {
                debug_assert!(rest.len() < items.len(), "{} items shrink to {}", items.len(), rest.len());
                items = rest;
                pieces = (pieces - 1).max(2);
            }
            None if size == 1 => break,
            None => pieces = (pieces * 2).min(items.len()),
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: exactly the failure-causing items remain, in order. Method: several sets of culprits,
    /// spread over 300 items.
    #[test]
    fn finds_the_culprits() {
        let items: Vec<u32> = (0..300).collect();
        for culprits in [&[][..], &[0], &[299], &[17, 18], &[3, 150, 297], &[5, 6, 7, 8, 100]] {
            let found = shrink(&items, |part| culprits.iter().all(|culprit| part.contains(culprit)));
            assert_eq!(found, culprits);
        }
    }

    /// Goal: a list that does not fail is returned whole, and so is one whose every item is needed.
    #[test]
    fn keeps_what_it_must() {
        let items = [1, 2, 3, 4, 5];
        assert_eq!(shrink(&items, |_| false), items);
        assert_eq!(shrink(&items, |part| part.len() == 5), items);
        assert_eq!(shrink::<u8>(&[], |_| true), []);
    }

    /// Goal: the cost stays near n log n for one culprit in 4,096.
    #[test]
    fn is_fast_for_one_culprit() {
        let items: Vec<u32> = (0..4096).collect();
        let mut calls = 0;
        let found = shrink(&items, |part| {
            calls += 1;
            part.contains(&4095)
        });
        assert_eq!(found, [4095]);
        assert!(calls < 100, "{calls}");
    }
}
