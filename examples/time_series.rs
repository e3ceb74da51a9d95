//! Measurements over time: keys that sort by sensor and time, windows as ranges, retention by
//! deleting ranges, and a keyspace that keeps only a fixed number of the newest bytes.
//!
//! Run it with `cargo run --example time_series`.

use std::error::Error;

use cairn_kv::strategy::{FifoOptions, StrategyOptions};
use cairn_kv::{Db, Durability, KeyspaceOptions, PrefixExtractor, Range};

const SENSORS: u16 = 5;
const MINUTES: u64 = 7 * 24 * 60;
const DAY: u64 = 24 * 60;

/// Big-endian numbers sort by value: all keys of a sensor are adjacent, ordered by time.
fn key(sensor: u16, minute: u64) -> [u8; 10] {
    let mut key = [0; 10];
    key[..2].copy_from_slice(&sensor.to_be_bytes());
    key[2..].copy_from_slice(&minute.to_be_bytes());
    key
}

/// A temperature that varies over the day.
fn measure(sensor: u16, minute: u64) -> f64 {
    let hour = (minute % DAY) as f64 / 60.0;
    12.0 + f64::from(sensor) - 6.0 * (hour / 24.0 * std::f64::consts::TAU).cos()
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let db = Db::open(dir.path().join("weather"))?;
    let history = KeyspaceOptions {
        // Scans of one sensor skip tables without any of its keys.
        prefix_extractor: Some(PrefixExtractor::Fixed(2)),
        ..KeyspaceOptions::default()
    };
    let history = db.create_keyspace("history", history)?;
    // A ring buffer: tables are never merged, and the oldest are dropped when the size limit is
    // reached. They could also be dropped by age.
    let recent = KeyspaceOptions {
        memtable_bytes: 128 << 10,
        compaction: StrategyOptions::Fifo(FifoOptions { bytes_max: 512 << 10, ..FifoOptions::default() }),
        ..KeyspaceOptions::default()
    };
    let recent = db.create_keyspace("recent", recent)?;

    for minute in 0..MINUTES {
        for sensor in 0..SENSORS {
            let value = measure(sensor, minute).to_le_bytes();
            history.put(key(sensor, minute), value)?;
            // Without the log, because losing some of these in a crash does not matter.
            recent.put_with(key(sensor, minute), [value; 4].concat(), Durability::Memory)?;
        }
    }

    // The third day of sensor 2, newest first.
    let day = key(2, 2 * DAY)..key(2, 3 * DAY);
    let (mut values, mut sum, mut latest) = (0, 0.0, None);
    for entry in history.range(day).rev() {
        let (_, value) = entry?;
        let degrees = f64::from_le_bytes(value.as_slice().try_into()?);
        latest.get_or_insert(degrees);
        (values, sum) = (values + 1, sum + degrees);
    }
    let latest = latest.ok_or("no measurement")?;
    println!(
        "sensor 2, day 3: {values} values, {:.2} on average, {latest:.2} at last",
        sum / f64::from(values)
    );

    // Retention: one entry per sensor hides all older entries, however many there are. Compactions
    // then drop them, by whole blocks and tables if possible.
    let before = count(history.iter())?;
    for sensor in 0..SENSORS {
        history.delete_range(key(sensor, 0), key(sensor, 5 * DAY))?;
    }
    println!("{before} values, {} after all but two days were deleted", count(history.iter())?);
    history.compact_range(..)?;

    recent.flush()?;
    db.wait_idle()?;
    let oldest = recent.prefix(0u16.to_be_bytes()).next().ok_or("nothing recent")??;
    let minute = u64::from_be_bytes(oldest.0[2..].try_into()?);
    println!("the ring buffer has {} values, from minute {minute} of {MINUTES} on", count(recent.iter())?);
    for keyspace in db.stats().keyspaces.iter().filter(|keyspace| keyspace.name != "default") {
        let bytes: u64 = keyspace.levels.iter().map(|level| level.bytes).sum();
        println!("{:<8} {:>4} KiB in tables", keyspace.name, bytes >> 10);
    }
    Ok(())
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
