//! Builds a constant store, looks up keys one by one and in a batch, and verifies the whole file.
//!
//! Run it with `cargo run --example constant_store`.

use std::error::Error;

use cairn_hash::table::{BuildOptions, Builder, Compression, Mode, Reader, ReaderOptions};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let path = dir.path().join("users.cairn");

    // Entries come in any order, in one pass; of equal keys, the last one counts.
    let options = BuildOptions::default().compression(Compression::zstd()).memory_bytes(256 << 20);
    let mut builder = Builder::create(&path, options)?;
    for number in 0..10_000 {
        builder
            .put(format!("user:{number}").as_bytes(), format!("{{\"name\":\"user {number}\"}}").as_bytes())?;
    }
    let summary = builder.finish()?; // synced, and visible under its name only from now on
    println!(
        "{} entries, {} bytes, {} of them index",
        summary.entries, summary.file_bytes, summary.index_bytes
    );

    // A reader can be shared between threads.
    let reader = Reader::open(&path, ReaderOptions::default().mode(Mode::Mmap))?;
    assert_eq!(reader.get(b"user:42")?.as_deref(), Some(&b"{\"name\":\"user 42\"}"[..]));
    assert!(!reader.contains(b"user:10000")?);

    // A batch overlaps the cache misses of its lookups.
    let keys: Vec<String> = (0..20_000).step_by(2).map(|number| format!("user:{number}")).collect();
    let mut found = 0;
    reader.get_many(&keys, |_, value| found += u64::from(value.is_some()))?;
    assert_eq!(found, 5_000);
    println!("{found} of {} keys are there", keys.len());

    println!("{}", reader.verify()?);
    Ok(())
}
