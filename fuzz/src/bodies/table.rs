//! Cairn's own table.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_hash::table::{Mode, Reader, ReaderOptions, Trust};
use cairn_vfs::Fs;

use super::disk;

const TABLE: &str = "t";
const PAGE: usize = 4096;
/// Entries by key.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes after which a streamed value is cut off; reading more would find nothing new.
const STREAM_BYTES_MAX: u64 = 1 << 20;

/// `how u8 | file`. Bit 0 of `how` corrects all checksums before the file is opened, so that the
/// code behind them is reached; bit 1 opens it unchecked.
///
/// Apart from panics, it looks for answers that differ between the ways to ask or to open, and for
/// entries of a table that passes `verify` but does not find them. Any answer may also be an error,
/// because the file may be damaged.
pub fn table_open(data: &[u8]) {
    let Some((how, file)) = data.split_first() else { return };
    let mut file = file.to_vec();
    if how & 1 != 0 {
        repair(&mut file);
    }
    let trust = if how & 2 != 0 { Trust::Unchecked } else { Trust::Checked };
    let fs = disk(&[(TABLE, &file)]);
    let mut sound: Option<(Mode, Entries)> = None;
    for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
        let Some(entries) = exercise(&fs, ReaderOptions::default().trust(trust).mode(mode)) else { continue };
        match &sound {
            Some((first, expected)) => {
                assert!(*expected == entries, "{first:?} and {mode:?}, the same table")
            }
            None => sound = Some((mode, entries)),
        }
    }
}

/// Calls every operation on a table. Returns its entries if it is sound.
fn exercise(fs: &Arc<dyn Fs>, options: ReaderOptions) -> Option<Entries> {
    let reader = Reader::open_in(fs, Path::new(TABLE), options).ok()?;
    let _ = reader.info().to_string();
    let mut entries = BTreeMap::new();
    let mut repeated = false;
    for entry in reader.scan().map_while(Result::ok) {
        repeated |= entries.insert(entry.key.into_owned(), entry.value.into_owned()).is_some();
    }
    let sound = reader.verify().is_ok();
    let absent: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n)]).collect();
    let mut keys: Vec<&Vec<u8>> = entries.keys().take(64).collect();
    keys.extend(&absent);
    let answers: Vec<_> = keys.iter().map(|key| ask(&reader, key)).collect();
    if sound && !repeated {
        for (key, answer) in keys.iter().zip(&answers) {
            assert_eq!(
                answer.clone().flatten().as_ref(),
                entries.get(*key),
                "a sound table finds its entries"
            );
        }
    }
    let mut next = 0;
    let all = reader.get_many(&keys, |position, value| {
        assert_eq!(position, next, "in the order given");
        next += 1;
        if let Some(answer) = &answers[position] {
            assert_eq!(value, answer.as_deref(), "alone and among others, one answer");
        }
    });
    assert!(all.is_err() || next == keys.len(), "an answer for every key");
    (sound && !repeated).then_some(entries)
}

/// Looks up a key in every possible way; those that succeed must agree. Returns the value, or
/// `None` for an error.
fn ask(reader: &Reader, key: &[u8]) -> Option<Option<Vec<u8>>> {
    let found = reader.get(key).map(|value| value.map(|value| value.into_owned())).ok();
    let mut buffer = Vec::new();
    if let (Some(found), Ok(present)) = (&found, reader.get_into(key, &mut buffer)) {
        assert_eq!(found.as_deref(), present.then_some(&buffer[..]), "borrowed and copied, one answer");
    }
    if let (Some(found), Ok(present)) = (&found, reader.contains(key)) {
        assert_eq!(found.is_some(), present, "there or not, one answer");
    }
    if let (Some(found), Ok(stream)) = (&found, reader.get_reader(key)) {
        assert_eq!(found.is_some(), stream.is_some(), "a stream of what is there");
        if let (Some(found), Some(stream)) = (found, stream) {
            assert_eq!(stream.remaining(), found.len() as u64, "as long as the value");
            buffer.clear();
            if stream.take(STREAM_BYTES_MAX).read_to_end(&mut buffer).is_ok() {
                let bytes = found.len().min(STREAM_BYTES_MAX as usize);
                assert!(found[..bytes] == buffer[..], "streamed, the same value");
            }
        }
    }
    found
}

/// Corrects all checksums: those of the pages, as far as the header gives their place, and the
/// header's own.
fn repair(file: &mut Vec<u8>) {
    const SUMS_OFFSET_AT: usize = 144;
    const ROOT_SUM_AT: usize = 152;
    const FILE_BYTES_AT: usize = 160;
    if file.len() < PAGE {
        return;
    }
    let sums_offset = file.get(SUMS_OFFSET_AT..SUMS_OFFSET_AT + 8).and_then(|word| word.try_into().ok());
    let sums_offset = usize::try_from(sums_offset.map_or(0, u64::from_le_bytes)).unwrap_or(0);
    if sums_offset >= 2 * PAGE && sums_offset.is_multiple_of(PAGE) && sums_offset <= file.len() {
        file.truncate(sums_offset);
        let mut sums: Vec<u64> = file[PAGE..].chunks(PAGE).map(xxh3_64).collect();
        loop {
            let mut level: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            level.resize(level.len().next_multiple_of(PAGE), 0);
            file.extend_from_slice(&level);
            sums = level.chunks(PAGE).map(xxh3_64).collect();
            if let [root] = sums[..] {
                file[ROOT_SUM_AT..ROOT_SUM_AT + 8].copy_from_slice(&root.to_le_bytes());
                break;
            }
        }
        let length = file.len() as u64;
        file[FILE_BYTES_AT..FILE_BYTES_AT + 8].copy_from_slice(&length.to_le_bytes());
    }
    let sum = xxh3_64(&file[..PAGE - 8]);
    file[PAGE - 8..PAGE].copy_from_slice(&sum.to_le_bytes());
}
