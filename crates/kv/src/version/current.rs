//! `CURRENT`: the one file whose content says which manifest counts.
//!
//! ```text
//! MANIFEST-000007 0123456789abcdef\n        the name, and the XXH3 of the name in hexadecimal digits
//! ```
//!
//! It is only ever replaced as a whole, so a crash leaves the old one or the new one.

use std::path::Path;

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::sync::Arc;
use cairn_vfs::{AtomicFile, Fs, OpenOptions};

use super::names::FileName;
use crate::file::FileNumber;
use crate::{Error, Result};

/// More bytes than the longest name and its checksum take.
const BYTES_MAX: u64 = 64;

/// The number of the manifest that counts.
///
/// Errors: `NotFound` (of the file system) without a `CURRENT`, [`Error::Corruption`] when it is not as it was written.
pub(super) fn read(fs: &Arc<dyn Fs>, dir: &Path) -> Result<FileNumber> {
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
    let number = std::str::from_utf8(&bytes).ok().and_then(parse);
    number.ok_or_else(|| Error::corruption(&path, 0, "expected a manifest's name and its checksum"))
}

/// Makes `number` the manifest that counts, durably. ORDER: the manifest and its name are durable before this.
pub(super) fn begin(fs: &Arc<dyn Fs>, dir: &Path, number: FileNumber) -> Result<AtomicFile> {
    let file = AtomicFile::create(fs, &FileName::Current.path(dir))?;
    file.file().write_all_at(format(number).as_bytes(), 0)?;
    Ok(file)
}

fn format(number: FileNumber) -> String {
    let name = FileName::Manifest(number).to_string();
    format!("{name} {:016x}\n", xxh3_64(name.as_bytes()))
}

fn parse(text: &str) -> Option<FileNumber> {
    let (name, _) = text.split_once(' ')?;
    match FileName::parse(Path::new(name))? {
        // Written back, so that no second spelling of checksum or line end passes.
        FileName::Manifest(number) if format(number) == text => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only what was written is read. Method: every bit of it flipped, and every cut.
    #[test]
    fn damage_is_seen() {
        let text = format(1234567);
        assert_eq!(parse(&text), Some(1234567));
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
