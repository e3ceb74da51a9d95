//! Inspects a constant store: generations, index, fill, records.

use std::path::Path;
use std::sync::Arc;

use cairn_hash::table::Reader;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::SHOWN_MAX;
use super::bytes::shown;
use crate::hash::{Store, of_pair, of_table};
use crate::web::Refusal;

/// Returns the headers and the fill of the indexes.
pub fn summary(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
    match Store::open(fs, path)? {
        // Oldest first: the base, then its deltas.
        Store::Table(store) => {
            let tables: Result<Vec<Value>, Refusal> = store.tables().iter().rev().map(generation).collect();
            Ok(json!({ "generations": tables? }))
        }
        Store::Sparkey(store) => {
            store.verify_counts()?;
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

fn generation(table: &Reader) -> Result<Value, Refusal> {
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

/// Returns the first entries in file order, and whether there are more. There is no next page,
/// because file order has no key to continue from.
pub fn entries(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
    let (mut listed, mut more) = (Vec::new(), false);
    Store::open(fs, path)?.for_each(|key, value| {
        more = listed.len() == SHOWN_MAX;
        if !more {
            listed.push(json!({ "key": shown(key), "value": shown(value) }));
        }
        Ok(!more)
    })?;
    Ok(json!({ "entries": listed, "next": null, "more": more }))
}

/// Returns the value of a key.
pub fn get(fs: &Arc<dyn Fs>, path: &Path, key: &[u8]) -> Result<Option<Value>, Refusal> {
    let store = Store::open(fs, path)?;
    let value = store.get(key)?;
    Ok(value.map(|value| shown(&value)))
}

/// Reads and verifies everything.
pub fn verify(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
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

#[cfg(test)]
mod tests {
    use cairn_hash::table::{BuildOptions, Builder};
    use cairn_vfs::{MemFs, SeededRng};

    use super::*;

    /// Goal: a truncated list reports that there is more. Method: exactly as many entries as are
    /// shown, and one more.
    #[test]
    fn long_list_is_marked_incomplete() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        for (name, count) in [("/all.cairn", SHOWN_MAX), ("/more.cairn", SHOWN_MAX + 1)] {
            let path = Path::new(name);
            let mut builder =
                Builder::create_in(&fs, path, BuildOptions::default(), &mut SeededRng::new(1)).unwrap();
            (0..count).for_each(|number| builder.put(&number.to_be_bytes(), b"value").unwrap());
            builder.finish().unwrap();
            let found = entries(&fs, path).unwrap();
            assert_eq!(found["entries"].as_array().unwrap().len(), SHOWN_MAX, "{name}");
            assert_eq!(found["more"], count > SHOWN_MAX, "{name}");
        }
    }
}
