//! The body of the fuzz target, as a plain function that tests call too.

use crate::Leaf;

/// A page from anywhere: whatever it holds, reading it ends in values or an error.
pub fn page(bytes: &[u8]) {
    let Ok(leaf) = Leaf::open(bytes) else { return };
    let rows = leaf.rows();
    let _ = leaf.verify();
    let mut mask = vec![u64::MAX; rows.div_ceil(64)];
    for column in 0..leaf.columns() {
        let _ = leaf.sum(column, 0, rows, None);
        let _ = leaf.extremes(column, 0, rows, None);
        let _ = leaf.filter(column, 0, rows, -5, 5, &mut mask);
        let _ = leaf.filter_nulls(column, rows / 3, rows, true, &mut mask);
        let _ = leaf.sum(column, 0, rows, Some(&mask));
        let _ = leaf.count_before(column, 0..rows, 3, true, false);
        let _ = leaf.column_stats(column);
    }
}
