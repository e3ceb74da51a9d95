//! Tests of tables: compared with a model, damaged, cut, swapped and on failing disks.

mod cursors;
mod damage;
mod files;
mod fuzzing;
mod model;
mod speed;
mod units;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, MemFs};

use super::*;
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::file::{FileNumber, TableMeta};
use crate::kind::{Kind, Seqno};
use crate::{Error, Result};

/// All versions of all keys, in the order of a table.
type Model = BTreeMap<Place, (Kind, Vec<u8>)>;

/// A key and its sequence number, in the order of a table.
type Place = (Vec<u8>, Reverse<Seqno>);

/// An entry as returned by a cursor.
type Shown = (Vec<u8>, Seqno, Kind, Vec<u8>);

fn disk() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

fn create(fs: &Arc<dyn Fs>, path: &str) -> Arc<dyn cairn_vfs::File> {
    Arc::from(fs.open(Path::new(path), cairn_vfs::OpenOptions::create()).unwrap())
}

fn try_write(
    fs: &Arc<dyn Fs>,
    path: &str,
    number: FileNumber,
    options: &TableOptions,
    model: &Model,
) -> Result<TableMeta> {
    let file = fs.open(Path::new(path), cairn_vfs::OpenOptions::create())?;
    let mut writer = TableWriter::new(Arc::from(file), number, options.clone())?;
    for ((key, Reverse(seqno)), (kind, value)) in model {
        writer.add(key, *seqno, *kind, value)?;
    }
    writer.finish()
}

fn write(
    fs: &Arc<dyn Fs>,
    path: &str,
    number: FileNumber,
    options: &TableOptions,
    model: &Model,
) -> TableMeta {
    try_write(fs, path, number, options, model).unwrap()
}

fn open(fs: &Arc<dyn Fs>, path: &str, number: FileNumber) -> Result<Arc<Table>> {
    let cache = Arc::new(Cache::new(1 << 20));
    Table::open(fs, Path::new(path), number, &cache, OpenOptions::default())
}

fn shown(cursor: &impl Cursor) -> Option<Shown> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.seqno(), cursor.kind(), cursor.value().to_vec()))
}

fn entry((key, value): (&Place, &(Kind, Vec<u8>))) -> Shown {
    (key.0.clone(), key.1.0, value.0, value.1.clone())
}

/// Returns all entries of a table, read with a cursor.
fn scan(table: &Arc<Table>) -> Result<Vec<Shown>> {
    let mut cursor = table.cursor(&CursorOptions::default());
    cursor.seek_first()?;
    let mut entries = Vec::new();
    while let Some(entry) = shown(&cursor) {
        entries.push(entry);
        cursor.next()?;
    }
    Ok(entries)
}

/// Returns the versions of a key that `get` finds.
fn versions(table: &Table, key: &[u8], at: Seqno) -> Result<Vec<(Seqno, Kind, Vec<u8>)>> {
    let mut versions = Vec::new();
    table.get(key, hash_key(key), at, |version, block| {
        let range = block.range_of(version.value).expect("the value is in the block");
        assert_eq!(&block.bytes()[range.start as usize..range.end as usize], version.value);
        versions.push((version.seqno, version.kind, version.value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(versions)
}

/// Returns a model of numbered keys; every seventh has older versions, every eleventh is deleted.
fn numbered(count: u64, value_bytes: usize) -> Model {
    let mut model = Model::new();
    for n in 0..count {
        let key = format!("key{:08}", n * 3).into_bytes();
        for older in 0..if n % 7 == 0 { 3 } else { 1 } {
            let seqno = 1000 + n * 5 - older;
            let entry = match n % 11 {
                0 => (Kind::Delete, Vec::new()),
                _ => (Kind::Put, format!("{n:0value_bytes$}").into_bytes()),
            };
            model.insert((key.clone(), Reverse(seqno)), entry);
        }
    }
    model
}

/// Returns all kinds of compression, the last with a dictionary.
fn compressions() -> [Compression; 5] {
    [
        Compression::None,
        Compression::Lz4,
        Compression::Snappy,
        Compression::Zstd { level: 1, dictionary_bytes: 0 },
        Compression::Zstd { level: 3, dictionary_bytes: 1024 },
    ]
}
