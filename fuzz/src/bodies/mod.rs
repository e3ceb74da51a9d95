//! A function for each fuzz target, which panics if something is wrong with its input.
//!
//! `crates/hash/tests/fuzz_corpus.rs` includes this module too, and runs the functions on the
//! committed corpus and on mutations of it.

mod codec;
mod sparkey;
mod table;

pub use codec::{decompress, varint};
pub use sparkey::{sound_log, sparkey_index, sparkey_log, sparkey_pair};
pub use table::table_open;

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, MemFs, OpenOptions};

/// A target: its name, which is also that of its corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 6] = [
    ("table_open", table_open),
    ("sparkey_index", sparkey_index),
    ("sparkey_log", sparkey_log),
    ("sparkey_pair", sparkey_pair),
    ("varint", varint),
    ("decompress", decompress),
];

/// Creates a disk in memory with these files.
fn disk(files: &[(&str, &[u8])]) -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    for (name, bytes) in files {
        let written =
            fs.open(Path::new(name), OpenOptions::create()).and_then(|file| file.write_all_at(bytes, 0));
        assert!(written.is_ok(), "a disk in memory takes what it is given");
    }
    fs
}
