//! Sessions that expire by themselves, and a compaction filter that removes those of closed
//! accounts.
//!
//! The example controls the clock, so that a day passes at once; without `.clock(..)`, it is the
//! machine's.
//!
//! Run it with `cargo run --example sessions`.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cairn_kv::{CompactionFilter, Db, FilterDecision, KeyspaceOptions};
use cairn_vfs::ManualClock;

const HOUR: Duration = Duration::from_secs(3600);

/// Removes sessions of closed accounts. Keys are `account/session`.
#[derive(Debug, Default)]
struct ForgetClosed {
    closed: RwLock<BTreeSet<Vec<u8>>>,
}

impl ForgetClosed {
    fn close(&self, account: &str) {
        let mut closed = self.closed.write().unwrap_or_else(PoisonError::into_inner);
        closed.insert(account.as_bytes().to_vec());
    }
}

impl CompactionFilter for ForgetClosed {
    fn name(&self) -> &str {
        "forget closed accounts"
    }

    /// Called for entries that a compaction processes anyway, so removing them costs no extra
    /// writes. Until then they can still be read.
    fn filter(&self, _level: usize, key: &[u8], _value: &[u8]) -> FilterDecision {
        let account = key.split(|byte| *byte == b'/').next().unwrap_or_default();
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if closed.contains(account) { FilterDecision::Remove } else { FilterDecision::Keep }
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_767_225_600)));
    let filter = Arc::new(ForgetClosed::default());
    let options = KeyspaceOptions {
        ttl: Some(24 * HOUR), // set when the keyspace is created, and stored with it
        compaction_filter: Some(filter.clone()),
        ..KeyspaceOptions::default()
    };
    let builder = Db::builder(dir.path().join("store")).clock(clock.clone());
    let db = builder.keyspace("sessions", options).open()?;
    let sessions = db.keyspace("sessions").ok_or("no sessions")?;
    let show = |when: &str| -> cairn_kv::Result<()> {
        let keys = sessions.iter().map(|entry| Ok(entry?.0)).collect::<cairn_kv::Result<Vec<_>>>()?;
        let names: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
        println!("{when:<24} {}", names.join(", "));
        Ok(())
    };

    for session in ["ada/laptop", "ada/phone", "grace/terminal"] {
        sessions.put(session, "signed in")?;
    }
    show("at first")?;

    clock.advance(16 * HOUR);
    sessions.put("ada/phone", "seen again")?; // lives for another day
    sessions.put("alan/desktop", "signed in")?;
    show("after 16 hours")?;

    clock.advance(9 * HOUR);
    show("after 25 hours")?; // two have expired, though no compaction has removed them yet

    filter.close("alan");
    show("alan's account is closed")?;
    sessions.compact_range(..)?;
    show("after a compaction")?;
    println!("{} entries were left out of tables: expired, or filtered", db.stats().dropped.filtered);
    Ok(())
}
