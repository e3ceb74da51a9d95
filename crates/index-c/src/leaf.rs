//! Reading pages.

use cairn_index::{Checked, Damage, Leaf};

use crate::{DAMAGED, FAULT, INVALID, OK, guarded, guarded_handle, slice_of, slice_of_mut};

/// A page opened for reading, and a buffer for one string of it.
pub struct CairnLeaf {
    leaf: Leaf<'static>,
    string: Vec<u8>,
    damage: Damage,
}

impl CairnLeaf {
    fn code(&mut self, result: Checked<()>) -> i32 {
        match result {
            Ok(()) => OK,
            Err(damage) => {
                self.damage = damage;
                DAMAGED
            }
        }
    }
}

/// The space and encoding of a column, or of the row ids, in a page.
#[repr(C)]
pub struct CairnColumnStats {
    encoding: *const u8,
    encoding_len: usize,
    bytes: usize,
    runs: usize,
    strings: usize,
    has_nulls: i32,
}

/// Creates a closed leaf. Free it with `cairn_leaf_free`.
#[unsafe(no_mangle)]
pub extern "C" fn cairn_leaf_new() -> *mut CairnLeaf {
    guarded_handle(|| {
        let damage = Damage { offset: 0, what: "" };
        Box::into_raw(Box::new(CairnLeaf { leaf: Leaf::default(), string: Vec::with_capacity(256), damage }))
    })
}

/// Frees a leaf. Does nothing if `leaf` is null.
///
/// # Safety
/// `leaf` comes from `cairn_leaf_new` and is not used again, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_free(leaf: *mut CairnLeaf) {
    if !leaf.is_null() {
        // SAFETY: the caller passes a pointer from `cairn_leaf_new`, and only once.
        drop(unsafe { Box::from_raw(leaf) });
    }
}

/// Opens the page at `page` and closes the previous one.
///
/// # Safety
/// `leaf` is live; `page` points to `bytes` readable bytes, which stay valid and unchanged until
/// the leaf is opened again or freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_open(leaf: *mut CairnLeaf, page: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller keeps both valid, and the page unchanged, as long as the leaf reads it.
    let (leaf, page) = unsafe { (&mut *leaf, slice_of(page, bytes)) };
    guarded(|| {
        let result = leaf.leaf.reopen(page);
        leaf.code(result)
    })
}

/// Returns the number of rows of the page.
///
/// # Safety
/// `leaf` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_rows(leaf: *const CairnLeaf) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { (*leaf).leaf.rows() as u32 }
}

/// Returns the number of columns of the page.
///
/// # Safety
/// `leaf` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_columns(leaf: *const CairnLeaf) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { (*leaf).leaf.columns() as u32 }
}

/// Describes the last damage that was found. Sets `*offset` to its offset in the page and `*what`
/// to a text, which is not zero-terminated. Returns the length of the text.
///
/// # Safety
/// `leaf` is live; the other pointers can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_error(
    leaf: *const CairnLeaf,
    offset: *mut u32,
    what: *mut *const u8,
) -> usize {
    // SAFETY: guaranteed by the caller; the text is static.
    unsafe {
        let damage = &(*leaf).damage;
        *offset = damage.offset;
        *what = damage.what.as_ptr();
        damage.what.len()
    }
}

/// Reads row ids `start..start + count` in the layout of PostgreSQL: block high, block low, offset,
/// 16 bits each.
///
/// # Safety
/// `leaf` is live and open; `out` has room for 6 × `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_tids(
    leaf: *mut CairnLeaf,
    start: u32,
    count: u32,
    out: *mut [u16; 3],
) -> i32 {
    // SAFETY: guaranteed by the caller; an item pointer has the alignment of u16.
    let (leaf, out) = unsafe { (&mut *leaf, slice_of_mut(out, count as usize)) };
    guarded(|| {
        let mut ids = [0; 256];
        let mut at = start as usize;
        for tids in out.chunks_mut(256) {
            let ids = &mut ids[..tids.len()];
            let result = leaf.leaf.ids(at, ids);
            if result.is_err() {
                return leaf.code(result);
            }
            for (tid, id) in tids.iter_mut().zip(ids) {
                *tid = [(*id >> 32) as u16, (*id >> 16) as u16, *id as u16];
            }
            at += tids.len();
        }
        OK
    })
}

/// Gets the first and the last heap block of rows `from..to`. Returns 1 if there are any, 0 if not,
/// or an error.
///
/// # Safety
/// `leaf` is live and open; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_blocks(
    leaf: *mut CairnLeaf,
    from: u32,
    to: u32,
    out: *mut [u64; 2],
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out) = unsafe { (&mut *leaf, &mut *out) };
    guarded(|| match leaf.leaf.blocks(from as usize, to as usize) {
        Ok(Some((first, last))) => {
            *out = [first, last];
            1
        }
        Ok(None) => 0,
        Err(damage) => leaf.code(Err(damage)),
    })
}

/// Reads the integers, or the codes of strings, of rows `start..start + count`.
///
/// # Safety
/// `leaf` is live and open; `out` has room for `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_integers(
    leaf: *mut CairnLeaf,
    column: u32,
    start: u32,
    count: u32,
    out: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out) = unsafe { (&mut *leaf, slice_of_mut(out, count as usize)) };
    guarded(|| {
        let result = leaf.leaf.integers(column as usize, start as usize, out);
        leaf.code(result)
    })
}

/// Reads the NULLs of rows `start..start + count`: 1 for a NULL, otherwise 0.
///
/// # Safety
/// As for `cairn_leaf_integers`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_nulls(
    leaf: *mut CairnLeaf,
    column: u32,
    start: u32,
    count: u32,
    out: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out) = unsafe { (&mut *leaf, slice_of_mut(out, count as usize)) };
    guarded(|| {
        let result = leaf.leaf.nulls(column as usize, start as usize, out);
        leaf.code(result)
    })
}

/// Returns 1 if the column has NULLs in this page, 0 if not, or an error.
///
/// # Safety
/// `leaf` is live and open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_has_nulls(leaf: *mut CairnLeaf, column: u32) -> i32 {
    // SAFETY: guaranteed by the caller.
    let leaf = unsafe { &mut *leaf };
    guarded(|| match leaf.leaf.has_nulls(column as usize) {
        Ok(has) => i32::from(has),
        Err(damage) => leaf.code(Err(damage)),
    })
}

/// Reads the integer, or the code, of one row. Returns 1 if it is NULL, 0 if not, or an error.
///
/// # Safety
/// `leaf` is live and open; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_cell(leaf: *mut CairnLeaf, column: u32, row: u32, out: *mut u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out) = unsafe { (&mut *leaf, &mut *out) };
    guarded(|| {
        let (column, row) = (column as usize, row as usize);
        let read = leaf.leaf.is_null(column, row).and_then(|null| {
            *out = leaf.leaf.integer(column, row)?;
            Ok(null)
        });
        match read {
            Ok(null) => i32::from(null),
            Err(damage) => leaf.code(Err(damage)),
        }
    })
}

/// Gets the string of `code`. The pointer is valid until the next call with this leaf.
///
/// # Safety
/// `leaf` is live and open; the other pointers can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_string(
    leaf: *mut CairnLeaf,
    column: u32,
    code: u64,
    out: *mut *const u8,
    len: *mut usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out, len) = unsafe { (&mut *leaf, &mut *out, &mut *len) };
    guarded(|| {
        let result = leaf.leaf.string(column as usize, code, &mut leaf.string);
        *out = leaf.string.as_ptr();
        *len = leaf.string.len();
        leaf.code(result)
    })
}

/// Counts how many of rows `from..to` come before `value` in an integer column that is sorted in
/// this range and has no NULLs in it.
///
/// # Safety
/// `leaf` is live and open; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_count_before(
    leaf: *mut CairnLeaf,
    column: u32,
    from: u32,
    to: u32,
    value: i64,
    or_equal: i32,
    descends: i32,
    out: *mut u32,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out) = unsafe { (&mut *leaf, &mut *out) };
    guarded(|| {
        let range = from as usize..to as usize;
        match leaf.leaf.count_before(column as usize, range, value, or_equal != 0, descends != 0) {
            Ok(count) => {
                *out = count as u32;
                OK
            }
            Err(damage) => leaf.code(Err(damage)),
        }
    })
}

/// Clears the bits of the rows in `from..to` whose integer is NULL or not within `least..=most`.
/// Bit 0 is row `from`. Returns 0 if it is certain that no row is left, 1 if not, or an error.
///
/// # Safety
/// `leaf` is live and open; `mask` has a bit for each row, in whole words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_filter(
    leaf: *mut CairnLeaf,
    column: u32,
    from: u32,
    to: u32,
    least: i64,
    most: i64,
    mask: *mut u64,
) -> i32 {
    if from > to {
        return INVALID;
    }
    // SAFETY: guaranteed by the caller.
    let (leaf, mask) = unsafe { (&mut *leaf, slice_of_mut(mask, ((to - from) as usize).div_ceil(64))) };
    guarded(|| match leaf.leaf.filter(column as usize, from as usize, to as usize, least, most, mask) {
        Ok(left) => i32::from(left),
        Err(damage) => leaf.code(Err(damage)),
    })
}

/// Clears the bits of the rows that are NULL, or, if `keep_values` is 0, of those that are not.
///
/// # Safety
/// As for `cairn_leaf_filter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_filter_nulls(
    leaf: *mut CairnLeaf,
    column: u32,
    from: u32,
    to: u32,
    keep_values: i32,
    mask: *mut u64,
) -> i32 {
    if from > to {
        return INVALID;
    }
    // SAFETY: guaranteed by the caller.
    let (leaf, mask) = unsafe { (&mut *leaf, slice_of_mut(mask, ((to - from) as usize).div_ceil(64))) };
    guarded(|| {
        let result =
            leaf.leaf.filter_nulls(column as usize, from as usize, to as usize, keep_values != 0, mask);
        leaf.code(result)
    })
}

/// Returns `mask` as a slice, unless it is null.
///
/// # Safety
/// `mask` is null or has a bit for each of `rows`, in whole words, which stay valid for the
/// lifetime that the caller chooses.
unsafe fn optional_mask<'m>(mask: *const u64, rows: usize) -> Option<&'m [u64]> {
    // SAFETY: guaranteed by the caller.
    (!mask.is_null()).then(|| unsafe { slice_of(mask, rows.div_ceil(64)) })
}

/// Computes the sum of rows `from..to`, or, unless `mask` is null, of those with a set bit in it.
/// Stores the low and the high half of 128 bits, in two's complement.
///
/// # Safety
/// `leaf` is live and open; `mask` is null or has a bit for each row; `out` has room for two
/// values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_sum(
    leaf: *mut CairnLeaf,
    column: u32,
    from: u32,
    to: u32,
    mask: *const u64,
    out: *mut [u64; 2],
) -> i32 {
    if from > to {
        return INVALID;
    }
    // SAFETY: guaranteed by the caller.
    let (leaf, mask, out) = unsafe { (&mut *leaf, optional_mask(mask, (to - from) as usize), &mut *out) };
    guarded(|| match leaf.leaf.sum(column as usize, from as usize, to as usize, mask) {
        Ok(sum) => {
            *out = [sum as u64, (sum >> 64) as u64];
            OK
        }
        Err(damage) => leaf.code(Err(damage)),
    })
}

/// Gets the least and the greatest integer of rows `from..to`, or, unless `mask` is null, of those
/// with a set bit in it. Returns 1 if there are any, 0 if not, or an error.
///
/// # Safety
/// As for `cairn_leaf_sum`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_extremes(
    leaf: *mut CairnLeaf,
    column: u32,
    from: u32,
    to: u32,
    mask: *const u64,
    out: *mut [i64; 2],
) -> i32 {
    if from > to {
        return INVALID;
    }
    // SAFETY: guaranteed by the caller.
    let (leaf, mask, out) = unsafe { (&mut *leaf, optional_mask(mask, (to - from) as usize), &mut *out) };
    guarded(|| match leaf.leaf.extremes(column as usize, from as usize, to as usize, mask) {
        Ok(Some(found)) => {
            *out = [found.least, found.most];
            1
        }
        Ok(None) => 0,
        Err(damage) => leaf.code(Err(damage)),
    })
}

/// Gets the space and encoding of a column, or of the row ids if `column` is -1.
///
/// # Safety
/// `leaf` is live and open; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_stats(
    leaf: *mut CairnLeaf,
    column: i32,
    out: *mut CairnColumnStats,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (leaf, out) = unsafe { (&mut *leaf, &mut *out) };
    guarded(|| {
        let stats = match usize::try_from(column) {
            Ok(column) => leaf.leaf.column_stats(column),
            Err(_) => match leaf.leaf.id_stats() {
                Some(stats) => Ok(stats),
                None => return FAULT,
            },
        };
        match stats {
            Ok(stats) => {
                *out = CairnColumnStats {
                    encoding: stats.encoding.as_ptr(),
                    encoding_len: stats.encoding.len(),
                    bytes: stats.bytes,
                    runs: stats.runs,
                    strings: stats.strings,
                    has_nulls: i32::from(stats.has_nulls),
                };
                OK
            }
            Err(damage) => leaf.code(Err(damage)),
        }
    })
}

/// Reads every value of the page and checks it.
///
/// # Safety
/// `leaf` is live and open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_leaf_verify(leaf: *mut CairnLeaf) -> i32 {
    // SAFETY: guaranteed by the caller.
    let leaf = unsafe { &mut *leaf };
    guarded(|| {
        let result = leaf.leaf.verify();
        leaf.code(result)
    })
}
