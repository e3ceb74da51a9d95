//! Key ranges of sets of tables.

use super::state::TableInfo;

/// Returns the first and the last key of all tables, or `None` without tables.
pub(super) fn hull<'s, 'a: 's>(
    tables: impl Iterator<Item = &'s TableInfo<'a>> + Clone,
) -> Option<(&'a [u8], &'a [u8])> {
    let smallest = tables.clone().map(|table| table.smallest).min()?;
    let largest = tables.map(|table| table.largest).max()?;
    Some((smallest, largest))
}

/// A connected set of tables of two levels: their ranges overlap, directly or through each other.
#[derive(Debug, Default)]
pub(super) struct Component<'s, 'a> {
    /// Tables of the upper level.
    pub(super) upper: Vec<&'s TableInfo<'a>>,
    /// Tables of the lower level.
    pub(super) lower: Vec<&'s TableInfo<'a>>,
}

impl Component<'_, '_> {
    pub(super) fn upper_bytes(&self) -> u64 {
        self.upper.iter().map(|table| table.bytes).sum()
    }
}

/// Splits the tables of two levels at keys that no table spans, into parts that can be compacted
/// independently. Parts without a table of the upper level are left out. The result is in key
/// order.
pub(super) fn components<'s, 'a>(
    upper: impl Iterator<Item = &'s TableInfo<'a>>,
    lower: impl Iterator<Item = &'s TableInfo<'a>>,
) -> Vec<Component<'s, 'a>> {
    let mut all: Vec<(bool, &TableInfo<'a>)> =
        upper.map(|table| (true, table)).chain(lower.map(|table| (false, table))).collect();
    all.sort_by_key(|(_, table)| table.smallest);
    let mut components: Vec<Component<'s, 'a>> = Vec::new();
    let mut end: Option<&[u8]> = None;
    for (is_upper, table) in all {
        if end.is_none_or(|end| table.smallest > end) {
            components.push(Component::default());
        }
        end = end.max(Some(table.largest));
        if let Some(last) = components.last_mut() {
            if is_upper { last.upper.push(table) } else { last.lower.push(table) }
        }
    }
    components.retain(|component| !component.upper.is_empty());
    components
}

/// Widens `from..to` in a run's tables until no key has versions on both sides of a bound.
///
/// Adjacent tables of a run share a bound in two cases. If the first table has a range tombstone,
/// the tombstone was cut there and does not include that key. If it has no tombstones, both tables
/// have versions of the key.
pub(super) fn whole_keys(tables: &[TableInfo<'_>], mut from: usize, mut to: usize) -> (usize, usize) {
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
    (from, to)
}
