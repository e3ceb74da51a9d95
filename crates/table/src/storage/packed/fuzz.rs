//! The body of the fuzz target for packed leaves: takes bytes and panics if reading them goes
//! wrong.

use super::{Packed, Unpacked};
use crate::storage::node::{Bounds, Node};

/// BOUND: a header may claim more records than are worth reading.
const RECORDS_MAX: usize = 500;

/// Treats arbitrary bytes as a leaf: reads its records one by one, together, and as columns, and
/// writes parts of it. Data that is read in two ways must be equal.
pub fn packed_leaf(data: &[u8]) {
    // Without the kind of a packed leaf, nothing would be read.
    let mut page = data.to_vec();
    match page.get_mut(..2) {
        Some(head) => head.copy_from_slice(&[super::PACKED, 0]),
        None => return,
    }
    let (node, packed) = (Node(&page[..]), Packed(&page[..]));
    let Ok(count) = node.count().map(|count| count.min(RECORDS_MAX)) else { return };
    let mut unpacked = Unpacked::default();
    let is_whole = unpacked.fill(packed, 0..count, None).is_ok();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for at in 0..count {
        value.clear();
        let alone = node.key(at, &mut key).and_then(|()| node.value(at, &mut value));
        if is_whole && alone.is_ok() {
            assert_eq!(unpacked.record(at), Some((&key[..], &value[..])), "a record is the same either way");
        }
        if alone.is_ok() {
            let _ = node.search(&key);
        }
    }
    let mut copy = vec![0; page.len()];
    let wanted = [0, 2];
    let _ = packed.copy_columns(&wanted, true, &mut copy, &mut Vec::new());
    let mut some = Unpacked::default();
    let _ = some.fill(packed, 0..count, Some(&wanted));
    // The offsets in a corrupt page may point outside the copied parts.
    let _ = some.fill(Packed(&copy[..]), 0..count, Some(&wanted));
    for (column, width) in (0..4).zip([0, 4, 8, 16]) {
        let Ok(column) = packed.column(column, width) else { continue };
        let _ = packed.numbers(&column, 0..count, |_| ());
        let _ = packed.long_numbers(&column, 0..count, |_| ());
        let _ = packed.texts(&column, 0..count, (&mut Vec::new(), &mut Vec::new()));
    }
    let bounds = Bounds { lower: None, upper: None };
    let _ = packed.with_bounds(bounds);
    if is_whole {
        let _ = packed.part(&unpacked, 0..count / 2, bounds);
    }
}
