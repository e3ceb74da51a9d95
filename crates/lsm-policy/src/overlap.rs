//! Key ranges of sets of tables.

use super::state::TableInfo;
use crate::Key;

/// Returns the first and the last key of all tables, or `None` without tables.
pub(crate) fn hull<'s, K: Key + 's>(
    tables: impl Iterator<Item = &'s TableInfo<K>> + Clone,
) -> Option<(K, K)> {
    let smallest = tables.clone().map(|table| table.smallest).min()?;
    let largest = tables.map(|table| table.largest).max()?;
    debug_assert!(
        smallest <= largest,
        "found the bounds {smallest:?} and {largest:?}, expected them in order"
    );
    Some((smallest, largest))
}

/// A connected set of tables of two levels: their ranges overlap, directly or through each other.
#[derive(Debug)]
pub(crate) struct Component<'s, K> {
    /// Tables of the upper level.
    pub(crate) upper: Vec<&'s TableInfo<K>>,
    /// Tables of the lower level.
    pub(crate) lower: Vec<&'s TableInfo<K>>,
}

impl<K: Key> Component<'_, K> {
    pub(crate) fn upper_bytes(&self) -> u64 {
        self.upper.iter().map(|table| table.bytes).sum()
    }
}

/// Splits the tables of two levels at keys that no table spans, into parts that can be compacted
/// independently. Parts without a table of the upper level are left out. The result is in key
/// order.
pub(crate) fn components<'s, K: Key>(
    upper: impl Iterator<Item = &'s TableInfo<K>>,
    lower: impl Iterator<Item = &'s TableInfo<K>>,
) -> Vec<Component<'s, K>> {
    let mut all: Vec<(bool, &TableInfo<K>)> =
        upper.map(|table| (true, table)).chain(lower.map(|table| (false, table))).collect();
    let count = all.len();
    all.sort_by_key(|(_, table)| table.smallest);
    let mut components: Vec<Component<'s, K>> = Vec::new();
    let mut end: Option<K> = None;
    for (is_upper, table) in all {
        if end.is_none_or(|end| table.smallest > end) {
            components.push(Component { upper: Vec::new(), lower: Vec::new() });
        }
        end = end.max(Some(table.largest));
        if let Some(last) = components.last_mut() {
            if is_upper { last.upper.push(table) } else { last.lower.push(table) }
        }
    }
    let split = || components.iter().map(|part| part.upper.len() + part.lower.len()).sum::<usize>();
    debug_assert_eq!(split(), count, "each table belongs to exactly one component");
    debug_assert!(are_apart(&components), "a key is spanned by tables of two components");
    components.retain(|component| !component.upper.is_empty());
    components
}

/// Returns true if the components are in key order and share no key.
fn are_apart<K: Key>(components: &[Component<'_, K>]) -> bool {
    let hull_of = |part: &Component<'_, K>| hull(part.upper.iter().chain(&part.lower).copied());
    let bounds: Vec<(K, K)> = components.iter().filter_map(hull_of).collect();
    bounds.is_sorted_by(|a, b| a.1 < b.0)
}

/// Widens `from..to` in a run's tables until no key has versions on both sides of a bound.
///
/// Adjacent tables of a run share a bound in two cases. If the first table has a range tombstone,
/// the tombstone was cut there and does not include that key. If it has no tombstones, both tables
/// have versions of the key.
pub(crate) fn whole_keys<K: Key>(tables: &[TableInfo<K>], mut from: usize, mut to: usize) -> (usize, usize) {
    debug_assert!(from < to && to <= tables.len(), "found {from}..{to} of {} tables", tables.len());
    let asked = from..to;
    let share = |left: usize| match (tables.get(left), tables.get(left + 1)) {
        (Some(a), Some(b)) => a.largest == b.smallest && a.tombstones == 0,
        _ => false,
    };
    while from > 0 && share(from - 1) {
        from -= 1;
    }
    while to > 0 && share(to - 1) {
        to += 1;
    }
    debug_assert!(from <= asked.start && asked.end <= to, "found {from}..{to}, expected at least {asked:?}");
    debug_assert!(to <= tables.len(), "found {to} tables of a run of {}", tables.len());
    (from, to)
}
