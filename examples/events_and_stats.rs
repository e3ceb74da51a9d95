//! Why is the store slow right now? A listener receives flushes, compactions and stalls with their
//! causes, and the store reports statistics. Memory limits are far too small here, so that writers
//! get ahead of the background work.
//!
//! Run it with `cargo run --example events_and_stats`.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, Db, Event, EventListener, KeyspaceOptions};

/// Counts events by kind. The threads that do the work call it, so it must be quick and not use the
/// store.
#[derive(Debug, Default)]
struct Heard {
    events: Mutex<BTreeMap<String, (u32, Duration)>>,
}

impl EventListener for Heard {
    fn on_event(&self, event: &Event) {
        let (what, took) = match event {
            Event::Flushed { keyspace, took, .. } => (format!("flush of {keyspace}"), *took),
            Event::Compacted { keyspace, level, took, .. } => {
                (format!("compaction of {keyspace} into level {level}"), *took)
            }
            // Each stall names its cause, which tells you what to change.
            Event::Stalled { cause, waited, .. } => (format!("stall: {cause}"), *waited),
            Event::Failed { error } => (format!("failure: {error}"), Duration::ZERO),
            other => (format!("{other:?}"), Duration::ZERO),
        };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, total) = events.entry(what).or_default();
        (*count, *total) = (*count + 1, *total + took);
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let heard = Arc::new(Heard::default());
    let options = KeyspaceOptions {
        memtable_bytes: 128 << 10, // the default is 64 MiB
        sealed_memtables_max: 1,   // the default is 4
        compaction: StrategyOptions::Leveled(LeveledOptions {
            table_bytes: 128 << 10,
            level_zero_runs_max: 4,
            level_zero_bytes: 512 << 10,
            base_bytes: 512 << 10,
            ..LeveledOptions::default()
        }),
        ..KeyspaceOptions::default()
    };
    let db = Db::builder(dir.path().join("store"))
        .default_keyspace(options)
        .background(Background::Threads(1))
        .listener(heard.clone())
        .open()?;

    for number in 0..30_000u64 {
        // Scattered keys, so that every flush overlaps every table.
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 20_000;
        db.put(key.to_be_bytes(), [b'v'; 100])?;
    }
    db.wait_idle()?;

    println!("what was heard:");
    let events = heard.events.lock().unwrap_or_else(PoisonError::into_inner);
    for (what, (count, took)) in events.iter() {
        println!("  {count:>4} x {what}, {took:.1?} together");
    }

    // Statistics can be read at any time. `Display` is for people; every figure is also a field.
    let stats = db.stats();
    println!("\n{stats}\n");
    let waited = stats.stalls.memtables + stats.stalls.level_zero + stats.stalls.pending_compaction;
    println!("writers have waited {waited:.1?}; write amplification {:.1}", stats.write_amplification());
    Ok(())
}
