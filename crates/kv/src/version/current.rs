//! `CURRENT`, the file that names the valid manifest.
//!
//! ```text
//! MANIFEST-000007 5eed5eed5eed5eed 0123456789abcdef\n
//! ```
//!
//! These are the name, the store's id, and the XXH3 of both including the space between them;
//! numbers are hexadecimal. Earlier versions omit the id.
//!
//! The file is only replaced as a whole, so a crash leaves the old content or the new one.

use std::path::Path;

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::sync::Arc;
use cairn_vfs::{AtomicFile, Fs, OpenOptions, ensure};

use super::names::FileName;
use crate::file::FileNumber;
use crate::{Error, Result};

/// More than the length of the longest content.
const BYTES_MAX: u64 = 96;

const _: () =
    assert!("MANIFEST-".len() as u64 + 20 + 2 * (1 + 16) < BYTES_MAX, "name, id, checksum, line end");

/// Reads the number of the valid manifest and, if present, the id of its store.
///
/// Errors: `NotFound` (of the file system) without a `CURRENT`, [`Error::Corruption`] when it is
/// damaged.
pub(super) fn read(fs: &Arc<dyn Fs>, dir: &Path) -> Result<(FileNumber, Option<u64>)> {
    let path = FileName::Current.path(dir);
    let file = fs.open(&path, OpenOptions::read())?;
    let len = file.len()?;
    if len > BYTES_MAX {
        return Err(Error::corruption(
            &path,
            0,
            format!("{len} bytes, expected a manifest's name and its checksum"),
        ));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let read = std::str::from_utf8(&bytes).ok().and_then(parse);
    read.ok_or_else(|| Error::corruption(&path, 0, "expected a manifest's name and its checksum"))
}

/// Begins to make `number` the valid manifest of this store, durably.
///
/// ORDER: the manifest and its name are durable before this.
pub(super) fn begin(fs: &Arc<dyn Fs>, dir: &Path, number: FileNumber, store: u64) -> Result<AtomicFile> {
    let text = format(number, Some(store));
    ensure!(text.len() as u64 <= BYTES_MAX, "CURRENT would have {} bytes, at most {BYTES_MAX}", text.len());
    ensure!(parse(&text) == Some((number, Some(store))), "CURRENT would not be read back: {text:?}");
    let file = AtomicFile::create(fs, &FileName::Current.path(dir))?;
    file.file().write_all_at(text.as_bytes(), 0)?;
    Ok(file)
}

fn format(number: FileNumber, store: Option<u64>) -> String {
    let mut said = FileName::Manifest(number).to_string();
    if let Some(store) = store {
        said.push_str(&format!(" {store:016x}"));
    }
    format!("{said} {:016x}\n", xxh3_64(said.as_bytes()))
}

fn parse(text: &str) -> Option<(FileNumber, Option<u64>)> {
    let (name, rest) = text.split_once(' ')?;
    let store = rest.split_once(' ').and_then(|(store, _)| u64::from_str_radix(store, 16).ok());
    match FileName::parse(Path::new(name))? {
        // Formatted again and compared, so that no alternative spelling of a number or line end
        // passes.
        FileName::Manifest(number) if format(number, store) == text => Some((number, store)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every damage is detected.
    /// Method: every bit flipped, and every truncation.
    #[test]
    fn damage_is_seen() {
        for store in [Some(0x5eed), Some(u64::MAX), None] {
            let text = format(1234567, store);
            assert!(text.len() as u64 <= BYTES_MAX);
            assert_eq!(parse(&text), Some((1234567, store)));
            for end in 0..text.len() {
                assert_eq!(parse(&text[..end]), None);
            }
            for bit in 0..text.len() * 8 {
                let mut bytes = text.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(std::str::from_utf8(&bytes).ok().and_then(parse), None, "bit {bit}");
            }
        }
    }
}
