//! Homogeneous ribbon filters.
//!
//! Each key represents one linear equation over bits: a window of 128 rows, with position and
//! coefficients derived from the key's hash, sums to zero. The filter is a table of rows that
//! solves the equations of all keys. An absent key's equation holds by chance, with probability one
//! half per column of the table. Since all right sides are zero, a solution always exists, and
//! Gaussian elimination in place ("banding") never fails. Rows that no equation determines are
//! filled with random bits; otherwise the table would be all zeros.
//!
//! ```text
//! rows in blocks of 128:   block := columns × u128          bit i of column j = row i's bit j
//! key: start = hash scaled to the starts; coefficients = 128 bits of a remix, the lowest set
//! passes when for every column   parity(coefficients & rows[start .. start + 128]) = 0
//! ```
//!
//! For sizes between whole numbers of columns, blocks from some index on have one column more.

use super::{TRAILER_BYTES, Trailer, remix};
use crate::{Error, Result};

/// Number of rows in a window, and in a block.
const WIDTH: usize = 128;
const COLUMN_BYTES: usize = 16;
const COLUMNS_MAX: u32 = 32;

const _: () = assert!(WIDTH == u128::BITS as usize && COLUMN_BYTES * 8 == WIDTH);
const _: () = assert!(COLUMNS_MAX < u64::BITS && COLUMNS_MAX <= u8::MAX as u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ribbon {
    blocks: u32,
    first_wide: u32,
    columns: u32,
}

/// Working memory of the builder.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    rows: Vec<u128>,
}

impl Ribbon {
    pub(super) fn parse(trailer: Trailer, data_bytes: usize) -> Result<Self> {
        let Trailer { units: blocks, first_wide, bits, .. } = trailer;
        let ribbon = Ribbon { blocks, first_wide, columns: u32::from(bits) };
        let sound = blocks > 0
            && first_wide <= blocks
            && (0..=COLUMNS_MAX).contains(&ribbon.columns)
            && data_bytes as u64 == ribbon.data_columns() * COLUMN_BYTES as u64;
        if sound {
            return Ok(ribbon);
        }
        let Ribbon { columns, .. } = ribbon;
        Err(Error::Filter {
            what: format!(
                "a ribbon filter of {data_bytes} bytes cannot have {blocks} blocks of {columns} columns, wide from \
                 block {first_wide}"
            ),
        })
    }

    fn data_columns(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.columns) + u64::from(self.blocks - self.first_wide)
    }

    /// Returns the position of a block in columns, and its number of columns.
    #[inline(always)]
    fn block(&self, block: u32) -> (usize, usize) {
        debug_assert!(block < self.blocks, "block {block} of {}", self.blocks);
        let wide_before = block.saturating_sub(self.first_wide);
        let start = block as usize * self.columns as usize + wide_before as usize;
        (start, self.columns as usize + usize::from(block >= self.first_wide))
    }

    #[inline]
    pub(super) fn may_contain(&self, bytes: &[u8], hash: u64) -> bool {
        let (start, coefficients) = equation(hash, self.blocks);
        let (block, shift) = ((start / WIDTH as u64) as u32, (start % WIDTH as u64) as u32);
        let low = coefficients << shift;
        // A window that begins at a block boundary also ends with the block. Reading the block
        // twice is harmless then.
        let (high, after) = if shift == 0 { (0, block) } else { (coefficients >> (128 - shift), block + 1) };
        let (table, _) = bytes.as_chunks::<COLUMN_BYTES>();
        let (here, columns) = self.block(block);
        let (there, _) = self.block(after);
        let Some((here, there)) = table.get(here..here + columns).zip(table.get(there..there + columns))
        else {
            return true;
        };
        here.iter().zip(there).all(|(here, there)| {
            !parity(u128::from_le_bytes(*here) & low ^ u128::from_le_bytes(*there) & high)
        })
    }
}

/// Returns the position and the coefficients of a key's equation.
#[inline(always)]
fn equation(hash: u64, blocks: u32) -> (u64, u128) {
    let starts = u64::from(blocks - 1) * WIDTH as u64 + 1;
    let start = ((u128::from(hash) * u128::from(starts)) >> 64) as u64;
    let low = remix(hash);
    debug_assert!(start < starts, "start {start} of {starts}");
    let high = remix(low ^ 0x9e37_79b9_7f4a_7c15);
    (start, u128::from(high) << 64 | u128::from(low) | 1)
}

#[inline(always)]
fn parity(bits: u128) -> bool {
    ((bits >> 64) as u64 ^ bits as u64).count_ones() % 2 == 1
}

/// Appends the filter of `hashes`, in about `bits` bits.
pub(super) fn build(hashes: &[u64], bits: f64, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let ribbon = shape(hashes.len(), bits);
    let rows = &mut scratch.rows;
    rows.clear();
    rows.resize(ribbon.blocks as usize * WIDTH, 0);
    for &hash in hashes {
        let (start, coefficients) = equation(hash, ribbon.blocks);
        band(rows, start as usize, coefficients);
    }
    let start = out.len();
    out.reserve(ribbon.data_columns() as usize * COLUMN_BYTES + TRAILER_BYTES);
    out.resize(start + ribbon.data_columns() as usize * COLUMN_BYTES, 0);
    solve(rows, &ribbon, &mut out[start..]);
    Trailer { units: ribbon.blocks, first_wide: ribbon.first_wide, kind: 2, bits: ribbon.columns as u8 }
        .push(out);
}

/// Adds an equation to the triangle, where each row holds at most one equation that begins with it.
fn band(rows: &mut [u128], mut row: usize, mut coefficients: u128) {
    debug_assert!(coefficients & 1 == 1 && row + WIDTH <= rows.len(), "row {row} of {}", rows.len());
    // BOUND: each turn clears the lowest coefficient, and there are 128.
    while let Some(taken) = rows.get_mut(row) {
        if *taken == 0 {
            *taken = coefficients;
            return;
        }
        coefficients ^= *taken;
        if coefficients == 0 {
            return; // implied by the equations already there
        }
        let skip = coefficients.trailing_zeros();
        coefficients >>= skip;
        debug_assert!(coefficients & 1 == 1);
        row += skip as usize;
    }
}

/// Solves the triangle from the last row up, all columns at once, and stores the columns block by
/// block.
fn solve(rows: &[u128], ribbon: &Ribbon, table: &mut [u8]) {
    debug_assert!(rows.len() == ribbon.blocks as usize * WIDTH);
    debug_assert!(table.len() as u64 == ribbon.data_columns() * COLUMN_BYTES as u64);
    let (table, _) = table.as_chunks_mut::<COLUMN_BYTES>();
    // Bit t of a column's window is its bit in the row t below the current one.
    let mut windows = [0u128; COLUMNS_MAX as usize + 1];
    for block in (0..ribbon.blocks).rev() {
        let (start, columns) = ribbon.block(block);
        let first_row = block as usize * WIDTH;
        for (index, &coefficients) in rows[first_row..first_row + WIDTH].iter().enumerate().rev() {
            let free = if coefficients == 0 { remix(!((first_row + index) as u64)) } else { 0 };
            for (column, window) in windows[..columns].iter_mut().enumerate() {
                let fixed = parity(coefficients & (*window << 1));
                *window = *window << 1 | u128::from(fixed) | u128::from(free >> column & 1);
            }
        }
        for (to, window) in table[start..start + columns].iter_mut().zip(windows) {
            *to = window.to_le_bytes();
        }
    }
}

/// Returns the number of rows per key for a number of columns. With fewer rows, equations crowd,
/// and the equations of absent keys follow from those of present ones. The more columns there are,
/// the less of that is tolerable (section 4 of the paper).
fn rows_per_key(columns: f64) -> f64 {
    1.0 + (4.0 + columns / 4.0) / WIDTH as f64
}

/// Returns the fractional number of columns that fit in so many bits per key.
fn columns_for(bits_per_key: f64) -> f64 {
    // Solves bits_per_key = columns * rows_per_key(columns), which is quadratic in the columns.
    let (a, b) = (0.25 / WIDTH as f64, 1.0 + 4.0 / WIDTH as f64);
    ((b * b + 4.0 * a * bits_per_key).sqrt() - b) / (2.0 * a)
}

fn shape(keys: usize, bits: f64) -> Ribbon {
    let keys = keys.max(1) as f64;
    let wanted = columns_for(bits / keys).clamp(0.0, f64::from(COLUMNS_MAX));
    let blocks = (keys * rows_per_key(wanted) / WIDTH as f64).ceil().max(1.0);
    // The last block may have more rows than the keys need, so the number of columns is adjusted to
    // match the total size.
    let columns = (bits / (blocks * WIDTH as f64)).clamp(0.5, f64::from(COLUMNS_MAX) - 1.0);
    let wide = (blocks * columns.fract()).round().clamp(0.0, blocks);
    let ribbon =
        Ribbon { blocks: blocks as u32, first_wide: (blocks - wide) as u32, columns: columns as u32 };
    debug_assert!(ribbon.blocks > 0 && ribbon.first_wide <= ribbon.blocks && ribbon.columns < COLUMNS_MAX);
    ribbon
}

/// Returns the false positive rate: one half per column, averaged over the share of blocks of each
/// width.
pub(super) fn false_positive_rate(bits_per_key: f64) -> f64 {
    let columns = columns_for(bits_per_key);
    let whole = columns.floor();
    let rate = 0.5f64.powf(whole) * (1.0 - columns.fract() / 2.0);
    debug_assert!((0.0..=1.0).contains(&rate), "{rate} at {bits_per_key} bits is no probability");
    rate
}
