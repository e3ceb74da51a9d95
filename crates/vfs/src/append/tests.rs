use std::path::Path;

use super::*;
use crate::{Fs, MemFs, OpenOptions, Rng, SeededRng};

fn file(fs: &MemFs) -> Arc<dyn File> {
    Arc::from(fs.open(Path::new("log"), OpenOptions::create()).unwrap())
}

/// Goal: whatever the sizes, the file ends up with exactly the written bytes, and `position` is
/// always right.
/// Method: random pieces compared with a `Vec`, for buffers from 0 bytes to larger than everything.
#[test]
fn writes_what_it_is_given() {
    for buffer_bytes in [0, 1, 7, 64, 100_000] {
        let fs = MemFs::new();
        let file = file(&fs);
        file.write_all_at(b"head", 0).unwrap();
        let mut expected = b"head".to_vec();
        let mut writer = AppendWriter::new(file, 4, buffer_bytes);
        let mut rng = SeededRng::new(buffer_bytes as u64);
        for _ in 0..200 {
            let mut piece = vec![0; rng.below(150) as usize];
            rng.fill(&mut piece);
            writer.write_all(&piece).unwrap();
            expected.extend_from_slice(&piece);
            assert_eq!(writer.position(), expected.len() as u64);
            if rng.chance(0.05) {
                writer.flush().unwrap();
                assert_eq!(writer.file().len().unwrap(), writer.position());
            }
        }
        let file = writer.into_file().unwrap();
        assert_eq!(&*file.map().unwrap(), expected);
    }
}

/// Goal: small writes are buffered. Method: the file is empty until the buffer overflows; then it
/// holds one whole buffer.
#[test]
fn gathers_small_writes() {
    let fs = MemFs::new();
    let mut writer = AppendWriter::new(file(&fs), 0, 8);
    writer.write_all(b"123456").unwrap();
    assert_eq!(writer.file().len().unwrap(), 0);
    writer.write_all(b"789").unwrap();
    assert_eq!((writer.file().len().unwrap(), writer.position()), (8, 9));
}

/// Goal: after one failed write nothing succeeds again. Method: a handle without write access.
#[test]
fn stays_failed() {
    let fs = MemFs::new();
    drop(file(&fs));
    let read_only: Arc<dyn File> = Arc::from(fs.open(Path::new("log"), OpenOptions::read()).unwrap());
    let mut writer = AppendWriter::new(read_only, 0, 4);
    writer.write_all(b"abc").unwrap();
    let first = writer.flush().unwrap_err();
    assert_eq!(first.operation, Operation::Write);
    for error in [writer.write_all(b"").unwrap_err(), writer.flush().unwrap_err()] {
        assert!(error.to_string().contains("earlier write failed"), "{error}");
    }
    assert!(writer.into_file().is_err());
}
