//! Which sizes of garbage an index may give, since its writers count differently.
//!
//! All count the PUT records that are overwritten or deleted. Java's counts nothing else. The C
//! library's counts DELETE records too, but only those that it indexed itself: where it finds an
//! index of the log's beginning, whoever wrote it, it goes on from that index's sum. When it also
//! changes the size of the hashes, it begins at the front again and keeps the old sum all the same.
//! An index is written where a writer flushed its log, which ends a block.

use std::collections::HashMap;

use cairn_codec::checksum::xxh3_64;

use super::log::Log;
use super::log_scan::LogScan;
use super::record::RecordKind;
use crate::Result;

/// The sums at one place where an index may have been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    /// Bytes of the PUT records that are dead by then.
    dead_bytes: u64,
    /// Bytes of the DELETE records up to there.
    delete_bytes: u64,
}

/// True when one of the writers, or several in turn, can have given an index of all records of
/// `log` this size of garbage.
///
/// Cost: reads the log, and takes some 40 bytes of memory for each live key and 16 for each block,
/// or each DELETE record of an uncompressed log. For sizes that are neither all garbage with, nor
/// all without the DELETE records.
pub(super) fn is_possible(log: &Log, garbage_bytes: u64) -> Result<bool> {
    let places = places(log)?;
    let end = places.last().copied().unwrap_or_default();
    // The C library went on from an index of another's: the deletes after that count.
    let after_another = garbage_bytes.checked_sub(end.dead_bytes);
    if after_another.is_some_and(|deletes| starts_with(&places, end.delete_bytes.checked_sub(deletes))) {
        return Ok(true);
    }
    // It began again, with the sum of an old index on top, which it or another had written.
    let Some(old) = garbage_bytes.checked_sub(end.dead_bytes + end.delete_bytes) else { return Ok(false) };
    Ok(places.iter().enumerate().any(|(number, place)| {
        let skipped = (place.dead_bytes + place.delete_bytes).checked_sub(old);
        starts_with(&places[..=number], skipped)
    }))
}

/// True when at one of `places` the DELETE records take `delete_bytes`.
fn starts_with(places: &[Sums], delete_bytes: Option<u64>) -> bool {
    delete_bytes.is_some_and(|bytes| places.binary_search_by_key(&bytes, |place| place.delete_bytes).is_ok())
}

/// The places between records where a log can have ended once, in order, the last of those between
/// which no sum changes.
fn places(log: &Log) -> Result<Vec<Sums>> {
    let mut places = vec![Sums::default()];
    let mut now = Sums::default();
    // The record bytes of each live key, by its hash: of two keys with one, the sum could be off.
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
    Ok(places)
}
