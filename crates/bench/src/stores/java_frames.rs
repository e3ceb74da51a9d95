//! Records and keys in the form in which the Java process reads them.
//!
//! ```text
//!   records   u32 key length | u32 value length | key | value      little-endian, back to back
//!   keys      u32 key length | key
//! ```

use std::path::Path;

use cairn_vfs::{File, Fs, OpenOptions, StdFs};

use crate::core::digest::Outline;
use crate::core::error::Result;
use crate::core::workload::{Dataset, ReadOrder};

/// Bytes collected before each write.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes all records of `data`.
pub fn write_records(path: &Path, data: &Dataset) -> Result<()> {
    let mut out = Output::create(path)?;
    for (key, value) in data.iter() {
        out.buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
        out.buffer.extend_from_slice(key);
        out.buffer.extend_from_slice(value);
        out.flush_if_full()?;
    }
    out.flush()
}

/// Writes the keys of the first chunks of `order`, at least `keys_max` of them, and returns the
/// digest of their values.
pub fn write_keys(path: &Path, order: &ReadOrder, keys_max: usize) -> Result<Outline> {
    let mut out = Output::create(path)?;
    let mut expected = Outline::default();
    let mut written = 0;
    for chunk in 0..order.chunks() {
        if written >= keys_max.max(1) {
            break;
        }
        let (keys, _) = order.chunk(chunk);
        for key in keys.iter() {
            out.buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.buffer.extend_from_slice(key);
        }
        out.flush_if_full()?;
        expected = expected.merge(order.outline(chunk));
        written += keys.len();
    }
    out.flush()?;
    Ok(expected)
}

struct Output {
    file: Box<dyn File>,
    offset: u64,
    buffer: Vec<u8>,
}

impl Output {
    fn create(path: &Path) -> Result<Output> {
        let file = StdFs::new().open(path, OpenOptions::create())?;
        file.set_len(0)?;
        Ok(Output { file, offset: 0, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_all_at(&self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
