//! The alignment that direct reads of a file require.

use std::fs;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags};

/// The alignment that every device accepts.
const PAGE: u64 = 4096;
const _: () = assert!(PAGE == crate::checks::DIRECT_ALIGNMENT as u64);

/// Returns the smallest alignment for offsets, lengths and buffers of direct reads of `file`, which
/// is on `device`. It is the kernel's answer for the file (from Linux 6.1 on), else the logical
/// block size of the device, else a page.
pub(super) fn alignment(file: BorrowedFd<'_>, device: u64) -> u64 {
    let found = of_file(file).or_else(|| of_device(device));
    found.filter(|bytes| bytes.is_power_of_two() && *bytes <= PAGE).unwrap_or(PAGE)
}

fn of_file(file: BorrowedFd<'_>) -> Option<u64> {
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    // 0 means that the file system does not tell, or that the file does not support direct I/O.
    let bytes = u64::from(found.stx_dio_mem_align.max(found.stx_dio_offset_align));
    (found.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && bytes > 0).then_some(bytes)
}

fn of_device(device: u64) -> Option<u64> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // A partition has no queue of its own; its parent device has.
    ["queue", "../queue"].iter().find_map(|queue| {
        let path = format!("/sys/dev/block/{major}:{minor}/{queue}/logical_block_size");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    })
}
