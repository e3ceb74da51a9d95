//! Argument checks that every file system makes alike, so that an engine meets the same error on
//! each.

use std::io;
use std::path::Path;

use crate::{Access, Create, Error, OpenOptions, Operation};

/// Alignment of offsets, lengths and buffers under direct I/O.
pub(crate) const DIRECT_ALIGNMENT: usize = 4096;

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// A pipe or the like in the place of a file.
pub(crate) fn no_file(path: &Path) -> Error {
    Error::new(Operation::Open, path, invalid("it is a pipe or another device, expected a file"))
}

pub(crate) fn check_open(options: OpenOptions) -> io::Result<()> {
    if options.access == Access::Read && options.create != Create::Never {
        return Err(invalid("a file that is created must be opened for writing"));
    }
    Ok(())
}

pub(crate) fn check_writable(access: Access) -> io::Result<()> {
    match access {
        Access::Read => Err(invalid("the file was opened for reading only")),
        Access::ReadWrite => Ok(()),
    }
}

/// Offsets are signed inside the kernel.
pub(crate) fn check_offset(offset: u64, len: u64) -> io::Result<()> {
    match offset.checked_add(len) {
        Some(end) if i64::try_from(end).is_ok() => Ok(()),
        _ => Err(invalid("the offset does not fit 63 bits")),
    }
}

/// For the simulated file systems; a real one asks the kernel.
pub(crate) fn check_direct(buf: &[u8], offset: u64) -> io::Result<()> {
    let misaligned = buf.as_ptr().addr() | buf.len() | offset as usize;
    if !misaligned.is_multiple_of(DIRECT_ALIGNMENT) {
        return Err(invalid("direct I/O needs offset, length and buffer aligned to 4096 bytes"));
    }
    Ok(())
}
