//! A constant store: generations, index, fill, records.

use std::path::Path;
use std::sync::Arc;

use cairn_hash::table::Reader;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::SHOWN_MAX;
use super::bytes::shown;
use crate::hash::{Store, of_pair, of_table};
use crate::web::Refused;

/// Headers, and how full the indexes are.
pub fn summary(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refused> {
    match Store::open(fs, path)? {
        // The base first, as people think of it.
        Store::Table(store) => {
            let tables: Result<Vec<Value>, Refused> = store.tables().iter().rev().map(generation).collect();
            Ok(json!({ "generations": tables? }))
        }
        Store::Sparkey(store) => {
            let info = store.info();
            let mut pair = of_pair(&info);
            let slots = info.index.capacity.get();
            if let Some(pair) = pair.as_object_mut() {
                pair.insert("fill".to_owned(), (info.index.entries as f64 / slots as f64).into());
                let mean = info.index.displacement_total as f64 / info.index.entries.max(1) as f64;
                pair.insert("displacement_mean".to_owned(), mean.into());
            }
            Ok(json!({ "pair": pair }))
        }
    }
}

fn generation(table: &Reader) -> Result<Value, Refused> {
    let mut described = of_table(&table.info());
    let fill = table.fill()?;
    if let Some(described) = described.as_object_mut() {
        let index = json!({
            "share": fill.share(),
            "lines_by_slots": fill.lines_by_slots,
            "home_lines": fill.home_lines,
            "tail_lines": fill.tail_lines,
            "passed_on": fill.passed_on,
            "partitions": fill.partitions,
        });
        described.insert("fill".to_owned(), index);
    }
    Ok(described)
}

/// The first entries, in the order of the file.
pub fn entries(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refused> {
    let mut listed = Vec::new();
    Store::open(fs, path)?.for_each(|key, value| {
        listed.push(json!({ "key": shown(key), "value": shown(value) }));
        Ok(listed.len() < SHOWN_MAX)
    })?;
    Ok(json!({ "entries": listed, "next": null }))
}

/// A value.
pub fn get(fs: &Arc<dyn Fs>, path: &Path, key: &[u8]) -> Result<Option<Value>, Refused> {
    let store = Store::open(fs, path)?;
    let value = store.get(key)?;
    Ok(value.map(|value| shown(&value)))
}

/// Everything, read and checked.
pub fn verify(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refused> {
    let what = match Store::open(fs, path)? {
        Store::Table(store) => {
            let reports: Vec<String> = store.verify()?.iter().map(ToString::to_string).collect();
            reports.join("; ")
        }
        Store::Sparkey(store) => {
            let report = store.verify()?;
            format!(
                "{} entries, {} slots: as far as a format without checksums can tell",
                report.entries, report.slots
            )
        }
    };
    Ok(json!({ "sound": true, "what": what, "damage": [] }))
}
