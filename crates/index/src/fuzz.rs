//! The bodies of the fuzz targets, as plain functions that tests also call.

use std::path::Path;

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_vfs::{Fs, MemFs, OpenOptions};

use crate::file::{Index, SUM_BYTES};
use crate::{Cell, Leaf};

/// Reads an arbitrary page; any content must give values or an error.
pub fn page(bytes: &[u8]) {
    let Ok(leaf) = Leaf::open(bytes) else { return };
    let rows = leaf.rows();
    let _ = leaf.verify();
    let _ = leaf.blocks(0, rows);
    let _ = leaf.blocks(rows / 3, rows / 2);
    let mut mask = vec![u64::MAX; rows.div_ceil(64)];
    let mut few = [0; 7];
    for column in 0..leaf.columns() {
        let _ = leaf.sum(column, 0, rows, None);
        let _ = leaf.extremes(column, 0, rows, None);
        let _ = leaf.filter(column, 0, rows, -5, 5, &mut mask);
        let _ = leaf.filter_nulls(column, rows / 3, rows, true, &mut mask);
        let _ = leaf.sum(column, 0, rows, Some(&mask));
        let _ = leaf.count_before(column, 0..rows, 3, true, false);
        let _ = leaf.column_stats(column);
        for row in (0..rows).step_by(rows / 16 + 1) {
            let _ = leaf.integer(column, row);
            let _ = leaf.is_null(column, row);
            let _ = leaf.integers(column, row, &mut few);
            let _ = leaf.ids(row, &mut few);
        }
    }
}

/// Reads an arbitrary file. If the first byte is odd, the checksums of the rest are recomputed
/// first, so that the reader gets past them.
pub fn file(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if first & 1 == 1 {
        make_sums_right(&mut bytes);
    }
    let (fs, path) = (MemFs::new(), Path::new("index"));
    let written = fs.open(path, OpenOptions::create()).and_then(|file| file.write_all_at(&bytes, 0));
    let (Ok(()), Ok(index)) = (written, Index::open(&fs, path)) else { return };
    let _ = index.verify();
    let (low, high) = ([Cell::Integer(-3)], [Cell::Integer(70)]);
    let Ok(range) = index.range(&low[..]..&high[..]) else { return };
    let _ = (range.count(), range.sum(0), range.min(0), range.max(0), range.groups());
    let _ = range.iter().take(100).filter(Result::is_ok).count();
    let _ = range.iter().rev().take(100).filter(Result::is_ok).count();
}

fn make_sums_right(bytes: &mut [u8]) {
    let Some(size) = bytes.get(12..16).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes) else {
        return;
    };
    let size = size as usize;
    if !(512..=32_768).contains(&size) || bytes.len() < size {
        return;
    }
    let pages = bytes.get(104..112).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes);
    let end = usize::try_from(pages.saturating_add(1).saturating_mul(size as u64))
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    if let (Some(directory), true) = (bytes.get(end..).map(xxh3_64), bytes.len() > 136) {
        bytes[128..136].copy_from_slice(&directory.to_le_bytes());
    }
    for (number, page) in bytes[..end].chunks_exact_mut(size).enumerate() {
        let (body, sum) = page.split_at_mut(size - SUM_BYTES);
        let right = if number == 0 { xxh3_64(body) } else { xxh3_64_seeded(body, number as u64) };
        sum.copy_from_slice(&right.to_le_bytes());
    }
}
