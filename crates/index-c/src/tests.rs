//! Calls as C makes them.

use std::ptr::{null, null_mut};

use crate::leaf::*;
use crate::packer::*;
use crate::{DAMAGED, INVALID, OK};

/// Goal: any array without values may be null. Method: every call that takes an array, with a page
/// without columns and one with a column; every call returns.
#[test]
fn empty_arrays_may_be_null() {
    let kinds: [&[u8]; 2] = [&[], &[0]];
    for kinds in kinds {
        let start = if kinds.is_empty() { null() } else { kinds.as_ptr() };
        let (mut page, mut bytes, mut sum) = (null(), 0, [0; 2]);
        // SAFETY: each handle is used only between its creation and its release, in this thread;
        // null arrays have no values; the page belongs to the packer, which outlives the leaf's use
        // of it.
        unsafe {
            let packer = cairn_packer_new(start, kinds.len(), 4000, 100);
            assert!(!packer.is_null());
            let row = CairnValue { bytes: null(), integer: 7, is_null: 0 };
            let values = if kinds.is_empty() { null() } else { &raw const row };
            assert_eq!(cairn_packer_push(packer, 1 << 16 | 1, values), 0);
            assert_eq!(cairn_packer_cut(packer, 1, &raw mut page, &raw mut bytes), 1);
            let leaf = cairn_leaf_new();
            assert_eq!(cairn_leaf_open(leaf, null(), 0), DAMAGED);
            assert_eq!(cairn_leaf_open(leaf, page, bytes), OK);
            assert_eq!((cairn_leaf_rows(leaf), cairn_leaf_columns(leaf)), (1, kinds.len() as u32));
            assert_eq!(cairn_leaf_tids(leaf, 0, 0, null_mut()), OK);
            let answers = [
                cairn_leaf_integers(leaf, 0, 0, 0, null_mut()),
                cairn_leaf_nulls(leaf, 0, 0, 0, null_mut()),
                cairn_leaf_filter(leaf, 0, 1, 1, 0, 9, null_mut()),
                cairn_leaf_filter_nulls(leaf, 0, 1, 1, 1, null_mut()),
                cairn_leaf_sum(leaf, 0, 1, 1, null(), &raw mut sum),
            ];
            println!("with {} columns: {answers:?}", kinds.len());
            assert!(answers.iter().all(|&answer| if kinds.is_empty() {
                answer == DAMAGED
            } else {
                answer >= OK
            }));
            cairn_leaf_free(leaf);
            cairn_packer_free(packer);
        }
    }
}

/// Goal: an empty string may have a null pointer, and invalid ranges and shapes are refused.
/// Method: a packer of strings; a range that ends before it begins; a page size that is too large.
#[test]
fn strings_and_ranges() {
    let (mut page, mut bytes, mut out, mut len) = (null(), 0, null(), 9);
    // SAFETY: the same as in `empty_arrays_may_be_null`.
    unsafe {
        let packer = cairn_packer_new([1].as_ptr(), 1, 4000, 100);
        let row = CairnValue { bytes: null(), integer: 0, is_null: 0 };
        assert_eq!(cairn_packer_push(packer, 1 << 16 | 1, &raw const row), 0);
        assert_eq!(cairn_packer_cut(packer, 1, &raw mut page, &raw mut bytes), 1);
        let leaf = cairn_leaf_new();
        assert_eq!(cairn_leaf_open(leaf, page, bytes), OK);
        assert_eq!(cairn_leaf_string(leaf, 0, 0, &raw mut out, &raw mut len), OK);
        assert_eq!(len, 0);
        assert_eq!(cairn_leaf_filter(leaf, 0, 1, 0, 0, 9, null_mut()), INVALID);
        assert!(cairn_packer_new(null(), 0, 1 << 20, 100).is_null());
        cairn_leaf_free(leaf);
        cairn_packer_free(packer);
    }
}
