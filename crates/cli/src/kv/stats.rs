//! `cairn kv stats`: the contents and the layout of a store.

use std::sync::Arc;

use cairn_kv::{KeyspaceInfo, Stats, list_keyspaces_in};
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::store;
use crate::args::kv::StatsArgs;
use crate::error::Result;
use crate::output::{Outcome, Output, counted, human};

/// Prints the statistics that a store's files hold. Counters of work done exist only in the process
/// that did it.
pub fn stats(fs: &Arc<dyn Fs>, args: &StatsArgs) -> Result<Outcome> {
    let db = store::whole(fs, &args.store, true, "")?;
    let made = list_keyspaces_in(fs, &args.store)?;
    let stats = db.stats();
    let mut out = Output::new();
    if args.json {
        let keyspaces = keyspaces(&stats, &made);
        let store = args.store.display().to_string();
        out.json(&json!({ "store": store, "last_write": stats.last_seqno, "keyspaces": keyspaces }))?;
    } else {
        describe(&mut out, args, &stats, &made)?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn made_as<'a>(made: &'a [KeyspaceInfo], name: &str) -> Option<&'a KeyspaceInfo> {
    made.iter().find(|info| info.name == name)
}

/// Returns the keyspaces with their levels as JSON, for scripts.
pub fn keyspaces(stats: &Stats, made: &[KeyspaceInfo]) -> Vec<Value> {
    let keyspaces = stats.keyspaces.iter();
    keyspaces
        .map(|keyspace| {
            let info = made_as(made, &keyspace.name);
            let levels = keyspace.levels.iter().enumerate().map(|(number, level)| {
                json!({
                    "level": number,
                    "runs": level.runs,
                    "tables": level.tables,
                    "bytes": level.bytes,
                    "entries": level.entries,
                })
            });
            json!({
                "name": keyspace.name,
                "ttl_secs": info.and_then(|info| info.ttl).map(|ttl| ttl.as_secs()),
                "merge_operator": info.and_then(|info| info.merge_operator.clone()),
                "memtable_bytes": keyspace.memtable_bytes,
                "tables": keyspace.levels.iter().map(|level| level.tables).sum::<usize>(),
                "table_bytes": keyspace.levels.iter().map(|level| level.bytes).sum::<u64>(),
                "table_entries": keyspace.levels.iter().map(|level| level.entries).sum::<u64>(),
                "levels": levels.collect::<Vec<_>>(),
                "blob_bytes": keyspace.blob_bytes,
                "blob_garbage_bytes": keyspace.blob_garbage_bytes,
                "pending_compaction_bytes": keyspace.pending_compaction_bytes,
            })
        })
        .collect()
}

fn describe(out: &mut Output, args: &StatsArgs, stats: &Stats, made: &[KeyspaceInfo]) -> Result<()> {
    out.line(args.store.display())?;
    out.line(format!("  last write     number {}", stats.last_seqno))?;
    for keyspace in &stats.keyspaces {
        out.line(format!("keyspace {}", keyspace.name))?;
        let info = made_as(made, &keyspace.name);
        if let Some(ttl) = info.and_then(|info| info.ttl) {
            out.line(format!("  entries live   {} seconds", ttl.as_secs()))?;
        }
        if let Some(operator) = info.and_then(|info| info.merge_operator.as_deref()) {
            out.line(format!("  merges         {operator}"))?;
        }
        out.line(format!("  memtables      {} of memory", human(keyspace.memtable_bytes)))?;
        for (number, level) in keyspace.levels.iter().enumerate().filter(|(_, level)| level.tables > 0) {
            let tables = counted(level.tables as u64, "table", "tables");
            let runs = counted(level.runs as u64, "run", "runs");
            let (bytes, entries) = (human(level.bytes), counted(level.entries, "entry", "entries"));
            out.line(format!("  level {number:<2}       {bytes} in {tables}, {runs}; {entries}"))?;
        }
        if keyspace.blob_bytes > 0 {
            let (bytes, garbage) = (human(keyspace.blob_bytes), human(keyspace.blob_garbage_bytes));
            out.line(format!("  large values   {bytes}, {garbage} of it garbage"))?;
        }
        out.line(format!("  to compact     {}", human(keyspace.pending_compaction_bytes)))?;
    }
    Ok(())
}
