//! Argument checks shared by all file systems, so that an engine sees the same error on each.

use std::io;
use std::path::Path;

use crate::{Access, Create, Error, OpenOptions, Operation};

/// Alignment of offsets, lengths and buffers under direct I/O.
pub(crate) const DIRECT_ALIGNMENT: usize = 4096;

const _: () = assert!(DIRECT_ALIGNMENT.is_power_of_two());

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The error for opening a pipe or another device as a file.
pub(crate) fn not_a_file(path: &Path) -> Error {
    Error::new(Operation::Open, path, invalid("it is a pipe or another device, expected a file"))
}

pub(crate) fn check_open(options: OpenOptions) -> io::Result<()> {
    if options.access == Access::Read && options.create != Create::Never {
        return Err(invalid("creating a file requires write access"));
    }
    Ok(())
}

pub(crate) fn check_writable(access: Access) -> io::Result<()> {
    match access {
        Access::Read => Err(invalid("the file was opened for reading only")),
        Access::ReadWrite => Ok(()),
    }
}

/// Checks that the range fits the kernel's signed offsets.
pub(crate) fn check_offset(offset: u64, len: u64) -> io::Result<()> {
    match offset.checked_add(len) {
        Some(end) if i64::try_from(end).is_ok() => Ok(()),
        _ => Err(invalid("the offset exceeds 63 bits")),
    }
}

/// Checks the alignment of direct I/O, for the simulated file systems. The real one leaves this to
/// the kernel.
pub(crate) fn check_direct(buf: &[u8], offset: u64) -> io::Result<()> {
    let misaligned = buf.as_ptr().addr() | buf.len() | offset as usize;
    if !misaligned.is_multiple_of(DIRECT_ALIGNMENT) {
        return Err(invalid("direct I/O needs offset, length and buffer aligned to 4096 bytes"));
    }
    Ok(())
}
