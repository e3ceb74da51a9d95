//! Making durable what an earlier process wrote.
//!
//! Syncing its files again proves nothing: if a sync failed in that process, the kernel may hold bytes that it does not
//! mean to write any more, shows them to readers, and says that all is well. Nor may the bytes be written over in
//! place, for among them may be records that were acknowledged. So the file is written anew and takes the name.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{AtomicFile, Fs, OpenOptions};

use crate::Result;

const PIECE_BYTES: usize = 1 << 20;

/// Writes a segment anew in its place, byte for byte up to `end`, zeros behind. Costs a copy, and two syncs.
pub(crate) fn harden(fs: &Arc<dyn Fs>, path: &Path, end: u32) -> Result<()> {
    let source = fs.open(path, OpenOptions::read())?;
    let file_bytes = source.len()?;
    let len = file_bytes.min(u64::from(end));
    let target = AtomicFile::create(fs, path)?;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(len).unwrap_or(PIECE_BYTES))];
    let mut offset = 0;
    while offset < len {
        let bytes = piece.len().min(usize::try_from(len - offset).unwrap_or(usize::MAX));
        let piece = piece.get_mut(..bytes).unwrap_or_default();
        source.read_exact_at(piece, offset)?;
        // Much of it may be zeros that were never written.
        if piece.iter().any(|&byte| byte != 0) {
            target.file().write_all_at(piece, offset)?;
        }
        offset += bytes as u64;
    }
    target.file().set_len(file_bytes)?;
    Ok(target.commit()?)
}
