//! The garbage sizes that an index may have, given that its writers count differently.
//!
//! All writers count the PUT records that are overwritten or deleted. Java counts nothing else. The
//! C library also counts DELETE records, but only those that it indexed itself: if it finds an
//! index of the beginning of the log, whoever wrote it, it continues from the sum in that index. If
//! it also changes the size of the hashes, it indexes the log from the beginning and still keeps
//! the old sum. An index is written where a writer flushed its log, which ends a block.

use std::collections::HashMap;

use cairn_codec::checksum::xxh3_64;

use super::log::Log;
use super::log_scan::LogScan;
use super::record::RecordKind;
use crate::Result;

/// The sums at one position where an index may have been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    /// Size of the PUT records that are dead at that position.
    dead_bytes: u64,
    /// Size of the DELETE records up to that position.
    delete_bytes: u64,
}

/// Returns true if one writer, or several in turn, may have given an index of all records of `log`
/// this garbage size.
///
/// Cost: reads the log, and needs some 40 bytes of memory for each live key and 16 for each block,
/// or for each DELETE record of an uncompressed log. Only needed for sizes that equal the garbage
/// neither with nor without all DELETE records.
pub(super) fn is_possible(log: &Log, garbage_bytes: u64) -> Result<bool> {
    let places = places(log)?;
    debug_assert!(places.is_sorted_by_key(|place| place.delete_bytes), "sums only grow");
    let end = places.last().copied().unwrap_or_default();
    // The C library continued from an index of another writer, and counted the deletes after that.
    let after_another = garbage_bytes.checked_sub(end.dead_bytes);
    if after_another.is_some_and(|deletes| starts_with(&places, end.delete_bytes.checked_sub(deletes))) {
        return Ok(true);
    }
    // The C library started again, on top of the sum of an old index, written by itself or another
    // writer.
    let Some(old) = garbage_bytes.checked_sub(end.dead_bytes + end.delete_bytes) else { return Ok(false) };
    Ok(places.iter().enumerate().any(|(number, place)| {
        let skipped = (place.dead_bytes + place.delete_bytes).checked_sub(old);
        starts_with(&places[..=number], skipped)
    }))
}

/// Returns true if the DELETE records up to one of `places` have the size `delete_bytes`.
fn starts_with(places: &[Sums], delete_bytes: Option<u64>) -> bool {
    delete_bytes.is_some_and(|bytes| places.binary_search_by_key(&bytes, |place| place.delete_bytes).is_ok())
}

/// Returns the positions between records where the log may once have ended, in order. Of successive
/// positions with equal sums only one is returned.
fn places(log: &Log) -> Result<Vec<Sums>> {
    let mut places = vec![Sums::default()];
    let mut now = Sums::default();
    // The record size of each live key, by the hash of the key. If two keys shared a hash, the sum
    // could be wrong.
    let mut live = HashMap::new();
    let mut scan = LogScan::new(log);
    while let Some(entry) = scan.next_entry()? {
        if entry.number_in_block() == 0 && places.last() != Some(&now) {
            places.push(now);
        }
        let key = xxh3_64(entry.key());
        let dead = match entry.kind() {
            RecordKind::Put => live.insert(key, entry.record_bytes()),
            RecordKind::Delete => {
                now.delete_bytes += entry.record_bytes();
                live.remove(&key)
            }
        };
        now.dead_bytes += dead.unwrap_or(0);
    }
    if places.last() != Some(&now) {
        places.push(now);
    }
    debug_assert!(places.is_sorted_by_key(|place| place.dead_bytes), "a dead record stays dead");
    Ok(places)
}
