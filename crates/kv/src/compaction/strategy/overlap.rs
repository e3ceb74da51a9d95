//! Key ranges of sets of tables.

use super::state::TableInfo;

/// The first and the last key of all tables; `None` without tables.
pub(super) fn hull<'s, 'a: 's>(
    tables: impl Iterator<Item = &'s TableInfo<'a>> + Clone,
) -> Option<(&'a [u8], &'a [u8])> {
    let smallest = tables.clone().map(|table| table.smallest).min()?;
    let largest = tables.map(|table| table.largest).max()?;
    Some((smallest, largest))
}

/// Tables of two levels whose ranges hang together.
#[derive(Debug, Default)]
pub(super) struct Component<'s, 'a> {
    /// Of the upper level.
    pub(super) upper: Vec<&'s TableInfo<'a>>,
    /// Of the lower level.
    pub(super) lower: Vec<&'s TableInfo<'a>>,
}

impl Component<'_, '_> {
    pub(super) fn upper_bytes(&self) -> u64 {
        self.upper.iter().map(|table| table.bytes).sum()
    }
}

/// Cuts the tables of two levels where no range goes over: parts that can be compacted apart. Parts
/// without a table of the upper level are left out. By key.
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

/// Widens `from..to` of a run's tables until no key is on both sides of an end.
///
/// Tables of a run have a key in common only if the first has a range tombstone that was cut there,
/// and that does not reach it. Of tables without tombstones it would mean that a key's versions are
/// in both.
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
