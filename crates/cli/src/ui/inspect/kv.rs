//! Inspects a key-value store: levels, runs, tables, blocks, keys.

use std::path::Path;
use std::sync::Arc;

use cairn_kv::{Compression, Db, FilterKind, Keyspace, TableInfo, list_keyspaces_in, verify_in};
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::SHOWN_MAX;
use super::bytes::shown;
use crate::error::Error;
use crate::kv;
use crate::web::Refusal;

/// The maximum number of tables listed per keyspace.
const TABLES_MAX: usize = 4_096;

fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Db, Refusal> {
    Ok(kv::whole(fs, path, true, "")?)
}

fn keyspace(db: &Db, name: &str) -> Result<Keyspace, Refusal> {
    db.keyspace(name).ok_or_else(|| Refusal::missing(format!("there is no keyspace {name:?}")))
}

/// Returns the current keyspaces with their levels and tables.
pub fn summary(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
    let is_open_elsewhere = kv::is_open_elsewhere(fs, path)?;
    let db = open(fs, path)?;
    let made = list_keyspaces_in(fs, path)?;
    let stats = db.stats();
    let mut keyspaces = kv::keyspaces(&stats, &made);
    for described in &mut keyspaces {
        let name = described.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let tables = keyspace(&db, &name)?.tables()?;
        if let Some(described) = described.as_object_mut() {
            let listed: Vec<Value> = tables.iter().take(TABLES_MAX).map(table).collect();
            described.insert("files".to_owned(), listed.into());
        }
    }
    Ok(json!({ "open_elsewhere": is_open_elsewhere, "last_write": stats.last_seqno, "keyspaces": keyspaces }))
}

fn table(table: &TableInfo) -> Value {
    let raw = table.key_bytes + table.value_bytes;
    let compression = match table.compression {
        Compression::None => "none".to_owned(),
        Compression::Lz4 => "lz4".to_owned(),
        Compression::Snappy => "snappy".to_owned(),
        Compression::Zstd { level, .. } if table.has_dictionary => format!("zstd {level} with a dictionary"),
        Compression::Zstd { level, .. } => format!("zstd {level}"),
    };
    let filter = table.filter.map(|filter| {
        let kind = match filter.kind {
            FilterKind::Bloom => "bloom",
            FilterKind::Ribbon => "ribbon",
        };
        format!("{kind}, {} bits per key", (filter.bits_per_key * 10.0).round() / 10.0)
    });
    json!({
        "number": table.number,
        "file": table.file.file_name().unwrap_or_default().to_string_lossy(),
        "level": table.level,
        "run": table.run,
        "bytes": table.bytes,
        "raw_bytes": raw,
        "entries": table.entries,
        "tombstones": table.tombstones,
        "merges": table.merges,
        "range_tombstones": table.range_tombstones,
        "smallest": shown(&table.smallest),
        "largest": shown(&table.largest),
        "first_write": table.seqnos.0,
        "last_write": table.seqnos.1,
        "blocks": table.blocks,
        "data_bytes": table.data_bytes,
        "filter_bytes": table.filter_bytes,
        "index_bytes": table.index_bytes,
        "compression": compression,
        "filter": filter,
    })
}

/// Returns the blocks of a table, beginning with number `from`.
pub fn blocks(fs: &Arc<dyn Fs>, path: &Path, name: &str, table: u64, from: usize) -> Result<Value, Refusal> {
    let db = open(fs, path)?;
    let blocks = keyspace(&db, name)?.blocks(table, from, SHOWN_MAX)?;
    let blocks = blocks.ok_or_else(|| Refusal::missing(format!("there is no table {table} any more")))?;
    let listed = blocks.iter().enumerate().map(|(at, block)| {
        json!({
            "block": from + at,
            "offset": block.offset,
            "bytes": block.bytes,
            "raw_bytes": block.raw_bytes,
            "entries": block.entries,
            "tombstones": block.tombstones,
            "first": shown(&block.first_key),
            "last": shown(&block.last_key),
        })
    });
    Ok(json!({ "blocks": listed.collect::<Vec<_>>(), "more": blocks.len() == SHOWN_MAX }))
}

/// Returns entries, beginning with a key or with the first entry.
pub fn entries(fs: &Arc<dyn Fs>, path: &Path, name: &str, from: Option<&[u8]>) -> Result<Value, Refusal> {
    let db = open(fs, path)?;
    let mut cursor = keyspace(&db, name)?.cursor()?;
    cursor.seek(from.unwrap_or_default())?;
    let mut listed = Vec::new();
    while cursor.valid() && listed.len() < SHOWN_MAX {
        listed.push(json!({ "key": shown(cursor.key()), "value": shown(cursor.value()) }));
        cursor.next()?;
    }
    let next = cursor.valid().then(|| crate::output::to_hex(cursor.key()));
    Ok(json!({ "entries": listed, "next": next }))
}

/// Returns the value of a key.
pub fn get(fs: &Arc<dyn Fs>, path: &Path, name: &str, key: &[u8]) -> Result<Option<Value>, Refusal> {
    let db = open(fs, path)?;
    Ok(keyspace(&db, name)?.get(key)?.map(|value| shown(&value)))
}

/// Reads and verifies everything. Also reports whether another process has the store open for
/// writing: a file that was just replaced would then look damaged.
pub fn verify(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
    let was_open_elsewhere = kv::is_open_elsewhere(fs, path)?;
    let report = verify_in(fs, path).map_err(Error::from)?;
    // Also detect a process that has opened the store during the check.
    let is_open_elsewhere = was_open_elsewhere || kv::is_open_elsewhere(fs, path)?;
    let what = format!(
        "{} tables, {} entries, {} blob files, {} bytes, {} records of the log",
        report.tables, report.entries, report.blobs, report.bytes, report.log_records
    );
    Ok(json!({
        "sound": report.is_sound(),
        "what": what,
        "damage": kv::damages(&report.damage),
        "open_elsewhere": is_open_elsewhere,
    }))
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;

    use super::*;

    /// Goal: the result of a check tells that another program has the store open. Method: an open
    /// store, and the same store closed.
    #[test]
    fn verification_reports_that_the_store_is_in_use() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let path = Path::new("/store");
        let db = Db::builder(path).fs(Arc::clone(&fs)).open().unwrap();
        let check = || verify(&fs, path).unwrap();
        assert_eq!((&check()["sound"], &check()["open_elsewhere"]), (&true.into(), &true.into()));
        drop(db);
        assert_eq!((&check()["sound"], &check()["open_elsewhere"]), (&true.into(), &false.into()));
    }
}
