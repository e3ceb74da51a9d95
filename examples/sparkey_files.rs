//! Write a Sparkey log and index, read them, and see what a Java or C program would see.

use cairn_hash::sparkey::{self, IndexOptions, LogOptions, LogWriter, ReaderOptions, SparkeyReader};
use cairn_vfs::{Fs, StdFs};

pub(crate) fn main() -> cairn_hash::Result<()> {
    let log = std::env::temp_dir().join(format!("cairn-example-sparkey-{}.spl", std::process::id()));

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

    let fs = StdFs::new();
    [log.clone(), sparkey::index_path(&log)].iter().try_for_each(|file| Ok(fs.remove(file)?))
}
