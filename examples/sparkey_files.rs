//! Writes a Sparkey log and index, and reads them as a Java or C program would.
//!
//! Run it with `cargo run --example sparkey_files`.

use std::error::Error;

use cairn_hash::sparkey::{self, IndexOptions, LogOptions, LogWriter, ReaderOptions, SparkeyReader};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let log = dir.path().join("songs.spl");

    let mut writer = LogWriter::create(&log, &LogOptions::default())?;
    writer.put(b"key", b"value")?;
    writer.put(b"gone", b"soon")?;
    writer.delete(b"gone")?;
    writer.close()?;
    sparkey::build_index(&log, &IndexOptions::default())?;

    let reader = SparkeyReader::open(&log, &ReaderOptions::default())?;
    assert_eq!(reader.get(b"key")?.as_deref(), Some(&b"value"[..]));
    assert_eq!(reader.get(b"gone")?, None);
    println!("{} entry", reader.len());
    for file in [&log, &sparkey::index_path(&log)] {
        println!("{}", file.file_name().unwrap_or_default().to_string_lossy());
    }
    Ok(())
}
