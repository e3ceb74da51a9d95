//! Counters without read-modify-write: merge operators, a built-in one and a custom one.
//!
//! Run it with `cargo run --example counters`.
#![allow(clippy::disallowed_methods)] // plain threads, as in your own program

use std::error::Error;
use std::sync::Arc;
use std::thread;

use cairn_kv::{AddU64, Db, KeyspaceOptions, MergeOperator};

const THREADS: u64 = 4;
const VISITS: u64 = 5_000;

/// Keeps the largest number ever merged in. It must be deterministic, because it runs in reads and
/// again in compactions.
#[derive(Debug)]
struct Largest;

impl MergeOperator for Largest {
    /// Stored with the keyspace, which then opens only with an operator of this name.
    fn name(&self) -> &str {
        "example.largest"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let all = base.iter().chain(operands);
        let numbers = all.map(|bytes| number(bytes)).collect::<Result<Vec<_>, _>>()?;
        Ok(numbers.into_iter().max().unwrap_or(0).to_le_bytes().to_vec())
    }

    /// Lets compactions shorten long chains of operands that have not reached their base value.
    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.merge(key, None, operands).ok()
    }
}

fn number(bytes: &[u8]) -> Result<u64, String> {
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| format!("{} bytes, expected 8", bytes.len()))
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let db = Db::open(dir.path().join("site"))?;
    let merging = |operator: Arc<dyn MergeOperator>| KeyspaceOptions {
        merge_operator: Some(operator),
        ..KeyspaceOptions::default()
    };
    let visits = db.create_keyspace("visits", merging(Arc::new(AddU64)))?;
    let slowest = db.create_keyspace("slowest", merging(Arc::new(Largest)))?;

    // No lock, no lookup, no transaction: each merge is as cheap as a put.
    thread::scope(|scope| {
        let work = |thread: u64| -> cairn_kv::Result<()> {
            for visit in 0..VISITS {
                let page = ["/", "/about", "/shop"][(visit % 3) as usize];
                visits.merge(page, 1u64.to_le_bytes())?;
                let micros = (visit * 37 + thread * 101) % 9_973;
                slowest.merge(page, micros.to_le_bytes())?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        for worker in workers {
            worker.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;

    let mut total = 0;
    for entry in visits.iter() {
        let (page, count) = entry?;
        let (count, largest) = (number(&count)?, slowest.get(&page)?.ok_or("never measured")?);
        total += count;
        println!("{:<7} {count:>6} visits, the slowest took {:>5} µs", text(&page), number(&largest)?);
    }
    println!("{total} visits in all, {} expected", THREADS * VISITS);

    // Compactions fold the operands: one entry per visit becomes one entry per page.
    visits.compact_range(..)?;
    let entries = |name: &str| {
        let stats = db.stats();
        let levels =
            stats.keyspaces.iter().filter(|keyspace| keyspace.name == name).flat_map(|it| &it.levels);
        levels.map(|level| level.entries).sum::<u64>()
    };
    println!("{} entries in tables", entries("visits"));
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
