//! The store of the fixtures. Small, but with every kind of file and entry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_kv::{AddU64, Background, Backups, Builder, Compression, Db, KeyspaceOptions};
use cairn_vfs::{Fs, ManualClock};

pub const STORE: &str = "/store";

/// The pairs of each keyspace.
pub type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Returns the name and the options of each keyspace, in the order of their creation.
pub fn keyspaces() -> Vec<(String, KeyspaceOptions)> {
    let options = || KeyspaceOptions { block_bytes: 512, ..KeyspaceOptions::default() };
    let compressed = KeyspaceOptions { compression: vec![Compression::Lz4], ..options() };
    let large = KeyspaceOptions { blob_bytes_min: Some(64), ..options() };
    let counters = KeyspaceOptions { merge_operator: Some(Arc::new(AddU64)), ..options() };
    let sessions = KeyspaceOptions { ttl: Some(Duration::from_secs(3600)), ..options() };
    let all = [("default", compressed), ("large", large), ("counters", counters), ("sessions", sessions)];
    all.into_iter().map(|(name, options)| (name.to_owned(), options)).collect()
}

/// Returns a builder of the store, with a clock that stands still.
pub fn builder(fs: &Arc<dyn Fs>) -> Builder {
    let clock = ManualClock::new(Duration::from_secs(1_700_000_000));
    let builder =
        Db::builder(STORE).fs(Arc::clone(fs)).clock(Arc::new(clock)).seed(1).background(Background::Inline);
    keyspaces().into_iter().fold(builder, |builder, (name, options)| {
        if name == "default" { builder.default_keyspace(options) } else { builder.keyspace(name, options) }
    })
}

fn value(number: u32, round: u32) -> String {
    format!("value {number} of round {round}")
}

fn large_value(number: u32) -> Vec<u8> {
    (0..100).map(|at| b'a' + ((number + at) % 26) as u8).collect()
}

/// Writes the store and a backup of it. The last writes are only in its log.
pub fn write(fs: &Arc<dyn Fs>) {
    let db = builder(fs).open().unwrap();
    let named = |name: &str| db.keyspace(name).unwrap();
    let (large, counters, sessions) = (named("large"), named("counters"), named("sessions"));
    for number in 0..120 {
        db.put(format!("key{number:03}"), value(number, 1)).unwrap();
    }
    for number in 0..8 {
        large.put(format!("large-{number:02}"), large_value(number)).unwrap();
        large.put(format!("small-{number:02}"), value(number, 1)).unwrap();
        counters.merge(format!("counter{number}"), u64::from(number).to_le_bytes()).unwrap();
        sessions.put(format!("session{number}"), value(number, 1)).unwrap();
    }
    db.keyspaces().iter().for_each(|keyspace| keyspace.flush().unwrap());
    for number in (0..120).step_by(7) {
        db.put(format!("key{number:03}"), value(number, 2)).unwrap();
    }
    db.delete("key005").unwrap();
    db.delete_range("key040", "key050").unwrap();
    large.put("large-01", large_value(25)).unwrap();
    counters.merge("counter3", 1000_u64.to_le_bytes()).unwrap();
    db.keyspaces().iter().for_each(|keyspace| keyspace.flush().unwrap());
    for number in 118..123 {
        db.put(format!("key{number:03}"), value(number, 3)).unwrap();
    }
    db.delete("key100").unwrap();
    counters.merge("counter3", 5_u64.to_le_bytes()).unwrap();
    sessions.put("session9", value(9, 3)).unwrap();
    db.sync().unwrap();
    let backups = Backups::open_in(fs, Path::new("/backups")).unwrap();
    backups.create(&db).unwrap();
}

/// Returns the contents that [`write`] leaves.
pub fn expected() -> Contents {
    let mut default = BTreeMap::new();
    for number in (0..123_u32).filter(|number| ![5, 100].contains(number) && !(40..50).contains(number)) {
        let round = match number {
            118.. => 3,
            number if number % 7 == 0 => 2,
            _ => 1,
        };
        default.insert(format!("key{number:03}").into_bytes(), value(number, round).into_bytes());
    }
    let (mut large, mut counters, mut sessions) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for number in 0..8_u32 {
        let seen = if number == 1 { 25 } else { number };
        large.insert(format!("large-{number:02}").into_bytes(), large_value(seen));
        large.insert(format!("small-{number:02}").into_bytes(), value(number, 1).into_bytes());
        let sum = if number == 3 { 1008 } else { u64::from(number) };
        counters.insert(format!("counter{number}").into_bytes(), sum.to_le_bytes().to_vec());
        sessions.insert(format!("session{number}").into_bytes(), value(number, 1).into_bytes());
    }
    sessions.insert(b"session9".to_vec(), value(9, 3).into_bytes());
    let all = [("default", default), ("large", large), ("counters", counters), ("sessions", sessions)];
    all.into_iter().map(|(name, pairs)| (name.to_owned(), pairs)).collect()
}
