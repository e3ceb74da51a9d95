//! `cairn hash info` and `cairn hash verify`.

use std::sync::Arc;

use cairn_hash::sparkey::SparkeyInfo;
use cairn_hash::table::TableInfo;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::store::Store;
use crate::args::hash::StoreArgs;
use crate::error::Result;
use crate::output::{Outcome, Output};

/// Says what the headers say.
pub fn info(fs: &Arc<dyn Fs>, args: &StoreArgs) -> Result<Outcome> {
    let store = Store::open(fs, &args.store)?;
    let mut out = Output::new();
    match &store {
        Store::Table(store) => {
            // The base first, as people think of it.
            let tables: Vec<TableInfo> = store.tables().iter().rev().map(|table| table.info()).collect();
            if args.json {
                let generations: Vec<Value> = tables.iter().map(of_table).collect();
                let bytes: u64 = tables.iter().map(|table| table.file_bytes).sum();
                out.json(&json!({ "format": "cairn", "file_bytes": bytes, "generations": generations }))?;
            } else {
                tables.iter().try_for_each(|table| out.line(table))?;
            }
        }
        Store::Sparkey(store) if args.json => out.json(&of_pair(&store.info()))?,
        Store::Sparkey(store) => describe_pair(&store.info(), &mut out)?,
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// A table's header, for scripts.
pub fn of_table(table: &TableInfo) -> Value {
    json!({
        "file": table.path.display().to_string(),
        "id": format!("{:016x}", table.id),
        "parent": format!("{:016x}", table.parent),
        "generation": table.generation,
        "delta": table.delta,
        "entries": table.entries,
        "tombstones": table.tombstones,
        "records": table.puts,
        "key_bytes": table.key_bytes,
        "value_bytes": table.value_bytes,
        "key_bytes_max": table.key_bytes_max,
        "value_bytes_max": table.value_bytes_max,
        "data_bytes": table.data_bytes,
        "blob_bytes": table.blob_bytes,
        "index_bytes": table.index_bytes,
        "index_bytes_per_entry": table.index_bytes_per_entry(),
        "dictionary_bytes": table.dictionary_bytes,
        "file_bytes": table.file_bytes,
        "compression": table.compression.name(),
        "fixed_width": table.fixed_width,
    })
}

/// The headers of a pair, for scripts.
pub fn of_pair(info: &SparkeyInfo) -> Value {
    let SparkeyInfo { log, index, .. } = info;
    json!({
        "format": "sparkey",
        "index": info.index_path.display().to_string(),
        "log": info.log_path.display().to_string(),
        "identifier": format!("{:08x}", log.identifier),
        "entries": index.entries,
        "records": log.puts,
        "deletes": log.deletes,
        "not_indexed_bytes": log.data_end - index.data_end,
        "key_bytes_max": log.key_bytes_max,
        "value_bytes_max": log.value_bytes_max,
        "garbage_bytes": index.garbage_bytes,
        "compression": log.compression.to_string(),
        "block_bytes": log.block_bytes,
        "log_bytes": log.data_end,
        "index_bytes": info.index_bytes,
        "index_bytes_per_entry": per_entry(info),
        "hash_bits": index.hash_bytes * 8,
        "address_bits": index.address_bytes * 8,
        "slots": index.capacity.get(),
        "displacement_max": index.displacement_max,
        "file_bytes": log.data_end + info.index_bytes,
    })
}

fn per_entry(info: &SparkeyInfo) -> f64 {
    if info.index.entries == 0 { 0.0 } else { info.index_bytes as f64 / info.index.entries as f64 }
}

fn describe_pair(info: &SparkeyInfo, out: &mut Output) -> Result<()> {
    let SparkeyInfo { log, index, .. } = info;
    out.line(info.index_path.display())?;
    out.line(format!("  log            {}, identifier {:08x}", info.log_path.display(), log.identifier))?;
    out.line(format!("  entries        {} ({} puts, {} deletes)", index.entries, log.puts, log.deletes))?;
    out.line(format!(
        "  longest        key {} bytes, value {} bytes",
        log.key_bytes_max, log.value_bytes_max
    ))?;
    out.line(format!("  log            {} bytes, {}", log.data_end, log.compression))?;
    out.line(format!("  garbage        {} bytes before compression", index.garbage_bytes))?;
    if log.data_end > index.data_end {
        out.line(format!("  not indexed    {} bytes", log.data_end - index.data_end))?;
    }
    let slots =
        format!("{} slots of {} + {} bits", index.capacity, index.hash_bytes * 8, index.address_bytes * 8);
    out.line(format!("  index          {} bytes, {:.2} an entry; {slots}", info.index_bytes, per_entry(info)))
}

/// Reads everything and checks it.
pub fn verify(fs: &Arc<dyn Fs>, args: &StoreArgs) -> Result<Outcome> {
    let store = Store::open(fs, &args.store)?;
    let mut out = Output::new();
    match &store {
        Store::Table(store) => {
            for (table, report) in store.tables().iter().zip(store.verify()?).rev() {
                let file = table.path().display();
                if args.json {
                    out.json(&json!({
                        "file": file.to_string(),
                        "sound": true,
                        "pages": report.pages,
                        "entries": report.entries,
                        "tombstones": report.tombstones,
                        "value_bytes": report.value_bytes,
                    }))?;
                } else {
                    out.line(format!("{file}: {report}"))?;
                }
            }
        }
        Store::Sparkey(store) => {
            let report = store.verify()?;
            let file = store.info().index_path;
            if args.json {
                out.json(&json!({
                    "file": file.display().to_string(),
                    "sound": true,
                    "entries": report.entries,
                    "records": report.puts,
                    "deletes": report.deletes,
                    "slots": report.slots,
                    "record_bytes": report.record_bytes,
                    "garbage_bytes": report.garbage_bytes,
                }))?;
            } else {
                let (entries, puts, deletes, slots) =
                    (report.entries, report.puts, report.deletes, report.slots);
                out.line(format!(
                    "{}: {entries} entries, {puts} puts, {deletes} deletes, {slots} slots: sound, as far as a format \
                     without checksums can tell",
                    file.display()
                ))?;
            }
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}
