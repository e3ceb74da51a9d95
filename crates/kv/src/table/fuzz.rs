//! Table decoders for the fuzz targets. They take bytes, return nothing, and panic when a check
//! fails.

use std::ops::ControlFlow;
use std::path::Path;

use cairn_codec::filter::Filter;
use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, MemFs};

use super::block::{BlockCursor, Entries, Layout};
use super::footer::FOOTER_BYTES;
use super::frame::{HEADER_BYTES, reseal};
use super::{CursorOptions, OpenOptions, Query, Table, hash_key};
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::kind::SEQNO_MAX;

/// BOUND: an index may refer to one block repeatedly, so a small file can yield very many entries.
const STEPS_MAX: usize = 20_000;

/// The table number with which the corpus was written.
pub const NUMBER: u64 = 42;

/// Decodes a block of entries. If it passes validation, it is iterated in both directions and
/// searched.
pub fn block(data: &[u8]) {
    let Ok(layout) = Layout::check(data) else { return };
    let entries = Entries::new(data, &layout);
    let mut cursor = BlockCursor::default();
    let (mut count, mut keys) = (0, Vec::new());
    cursor.seek_first(&entries);
    while cursor.valid() {
        count += 1;
        if keys.len() < 50 {
            keys.push(cursor.key().to_vec());
        }
        assert!(data.get(cursor.value()).is_some(), "values lie in the block");
        assert!(cursor.seqno(&entries) <= SEQNO_MAX);
        cursor.next(&entries);
    }
    assert_eq!(count, layout.entries, "every entry is reached forwards");
    cursor.seek_last(&entries);
    while cursor.valid() {
        count -= 1;
        cursor.prev(&entries);
    }
    assert_eq!(count, 0, "and backwards");
    for key in keys {
        cursor.seek(&entries, &key);
        let value = entries.value_at_or_after(&key);
        assert!(value.as_ref().is_none_or(|value| data.get(value.clone()).is_some()));
        entries.lookup(&key, SEQNO_MAX, &mut |_, _, value| {
            assert!(data.get(value).is_some());
            ControlFlow::Continue(())
        });
    }
}

/// Decodes a filter and, if it is valid, looks up hashes in it.
pub fn filter(data: &[u8]) {
    let Ok(filter) = Filter::parse(data) else { return };
    let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..100 {
        hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29) ^ 1;
        filter.may_contain(data, hash);
    }
    assert!(filter.may_contain(&[], hash), "what was not parsed proves nothing");
}

/// Decodes `how u8 | table`. If bit 0 of `how` is set, the checksums are corrected first, so that
/// the decoders behind them see the damage.
pub fn table(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if how & 1 == 1 {
        make_checksums_right(&mut bytes);
    }
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let path = Path::new("t");
    let written =
        fs.open(path, cairn_vfs::OpenOptions::create()).and_then(|file| file.write_all_at(&bytes, 0));
    assert!(written.is_ok(), "a disk in memory takes what it is given");
    let cache = Arc::new(Cache::new(u64::from(*how) << 12));
    let options = OpenOptions { pin: how & 2 == 2, foreign: true, ..OpenOptions::default() };
    if let Ok(table) = Table::open(&fs, path, NUMBER, &cache, options) {
        exercise(&table);
    }
    let stats = cache.stats();
    assert_eq!((stats.used_bytes, stats.pinned_bytes), (0, 0), "a dropped table leaves nothing behind");
}

/// Reads a table through all interfaces. Errors are fine; panics and endless loops are not.
fn exercise(table: &Arc<Table>) {
    assert!(!table.properties().to_string().is_empty());
    let mut cursor = table.cursor(&CursorOptions::default());
    let mut keys = vec![Vec::new(), vec![0xff; 9]];
    let mut done = cursor.seek_first();
    for _ in 0..STEPS_MAX {
        if done.is_err() || !cursor.valid() {
            break;
        }
        if keys.len() < 40 {
            keys.push(cursor.key().to_vec());
        }
        done = cursor.next();
    }
    let mut cursor = table.cursor(&CursorOptions { fill_cache: false, ..CursorOptions::default() });
    let mut done = cursor.seek_last();
    for _ in 0..STEPS_MAX {
        if done.is_err() || !cursor.valid() {
            break;
        }
        done = cursor.prev();
    }
    for key in &keys {
        let _ = table.get(key, hash_key(key), SEQNO_MAX, |version, block| {
            assert!(block.range_of(version.value).is_some(), "a value lies in its block");
            ControlFlow::Continue(())
        });
        let _ = table.approximate_offset(key);
        let _ = table.may_contain_prefix(key);
    }
    let queries: Vec<_> = keys.iter().map(|key| Query { key, hash: hash_key(key) }).collect();
    let _ = table.get_many(&queries, SEQNO_MAX, |_, _, _| ControlFlow::Continue(()));
    let _ = table.verify(None);
}

/// Corrects the checksums of all consecutive frames and of the footer.
fn make_checksums_right(bytes: &mut [u8]) {
    let Some(frames_end) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let (frames, footer) = bytes.split_at_mut(frames_end);
    let number = footer.get(24..32).and_then(|number| number.try_into().ok()).map_or(0, u64::from_le_bytes);
    let mut at = 0;
    while let Some(stored) = frames.get(at + 8..).and_then(|rest| rest.first_chunk::<4>()) {
        let end = at + HEADER_BYTES + u32::from_le_bytes(*stored) as usize;
        let Some(frame) = frames.get_mut(at..end) else { break };
        reseal(frame, number, at as u64);
        at = end;
    }
    let checksum = cairn_codec::checksum::xxh3_64(&footer[..48]);
    footer[48..56].copy_from_slice(&checksum.to_le_bytes());
}
