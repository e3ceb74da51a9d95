//! Concurrent reads or writes through an `io_uring` of the calling thread.
//!
//! A ring costs two pages and a descriptor, and is created when a thread first needs it. Where the
//! kernel has no rings, or does not let this process create or use one (containers), callers fall
//! back to one operation after the other.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use io_uring::{IoUring, opcode, squeue, types};

/// Maximum number of requests in flight.
const DEPTH: u32 = 64;
const _: () = assert!(DEPTH.is_power_of_two());

/// Set when the kernel refuses rings, so that no thread tries again.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static RING: RefCell<Option<IoUring>> = const { RefCell::new(None) };
}

/// Reads parts of a file. Returns `None` when there is no ring.
pub(super) fn read(
    file: BorrowedFd<'_>,
    mut parts: Vec<(u64, &mut [IoSliceMut<'_>])>,
) -> Option<Vec<io::Result<usize>>> {
    let fd = types::Fd(file.as_raw_fd());
    let entries = parts.iter_mut().map(|(offset, buffers)| {
        // The standard library guarantees this layout. If there are more buffers than the kernel
        // takes in one call, the read is short.
        let vectors = buffers.as_mut_ptr().cast::<libc::iovec>();
        let count = buffers.len().min(libc::UIO_MAXIOV as usize) as u32;
        opcode::Readv::new(fd, vectors, count).offset(*offset).build()
    });
    // SAFETY: `parts` borrows the buffers and their descriptions until `run` returns, when the
    // kernel no longer uses any of them. Nothing else refers to the buffers, since they are
    // borrowed mutably.
    unsafe { run(entries.collect()) }
}

/// Writes parts of a file. Returns `None` when there is no ring.
pub(super) fn write(file: BorrowedFd<'_>, parts: Vec<(u64, &[u8])>) -> Option<Vec<io::Result<usize>>> {
    let fd = types::Fd(file.as_raw_fd());
    let entries = parts.iter().map(|(offset, bytes)| {
        let len = u32::try_from(bytes.len()).unwrap_or(1 << 30);
        opcode::Write::new(fd, bytes.as_ptr(), len).offset(*offset).build()
    });
    // SAFETY: `parts` borrows the bytes until `run` returns, and the kernel only reads them.
    unsafe { run(entries.collect()) }
}

/// Submits all entries and returns when all are complete, whether or not they succeeded.
///
/// # Safety
/// The memory that the entries point to outlives this call, and nothing else accesses the memory
/// that the kernel writes.
unsafe fn run(entries: Vec<squeue::Entry>) -> Option<Vec<io::Result<usize>>> {
    if IS_REFUSED.load(Relaxed) {
        return None;
    }
    // The access fails in a thread that is terminating and has dropped its ring.
    let run = RING.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        if own.is_none() {
            *own = IoUring::new(DEPTH).map_err(|_| IS_REFUSED.store(true, Relaxed)).ok();
        }
        let ring = own.as_mut()?;
        let mut results: Vec<Option<i32>> = vec![None; entries.len()];
        let (mut begun, mut ended) = (0, 0);
        while ended < entries.len() {
            while begun < entries.len() && begun - ended < DEPTH as usize {
                let Some(entry) = entries.get(begun) else { break };
                let entry = entry.clone().user_data(begun as u64);
                // SAFETY: the caller guarantees that the entry's memory outlives this call, and
                // this call does not return before the entry is complete.
                if unsafe { ring.submission().push(&entry) }.is_err() {
                    break;
                }
                begun += 1;
            }
            debug_assert!(
                ended < begun && begun - ended <= DEPTH as usize,
                "{ended} of {begun} are complete"
            );
            // Even after a failure, every entry that the kernel has taken must complete before this
            // returns, because the kernel writes to the caller's memory. Interrupted and busy calls
            // are repeated.
            let failure = ring.submit_and_wait(1).err();
            if failure.is_some_and(|error| !is_transient(&error)) && begun - ended == ring.submission().len()
            {
                // The ring is unusable, and the kernel holds none of its entries. The caller
                // repeats the operations, including the completed ones.
                *own = None;
                IS_REFUSED.store(true, Relaxed);
                return None;
            }
            for completion in ring.completion() {
                debug_assert!(
                    (completion.user_data() as usize) < begun,
                    "a request completes that was not made"
                );
                if let Some(result) = results.get_mut(completion.user_data() as usize) {
                    debug_assert!(result.is_none(), "request {} completes twice", completion.user_data());
                    *result = Some(completion.result());
                    ended += 1;
                }
            }
        }
        // The kernel no longer uses the caller's memory.
        assert!(ended == begun && results.iter().all(Option::is_some), "{ended} of {begun} are complete");
        Some(results.into_iter().map(|result| of_kernel(result.unwrap_or(-libc::EIO))).collect())
    });
    run.ok().flatten()
}

/// Returns true for errors after which the call may succeed when repeated.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ENOMEM))
}

fn of_kernel(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{File, Fs, OpenOptions, ReadRequest, StdFs, WriteRequest};

    /// Goal: a ring that can be created but accepts no entries (in some containers) is abandoned,
    /// and callers learn that there is none. Method: replace the ring's descriptor by another file.
    #[test]
    fn rings_that_cannot_be_used() {
        let Ok(ring) = IoUring::new(DEPTH) else { return };
        let other = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: both descriptors are open; the ring's memory stays mapped.
        assert!(unsafe { libc::dup2(other.as_raw_fd(), ring.as_raw_fd()) } >= 0);
        RING.with(|own| *own.borrow_mut() = Some(ring));
        let file = tempfile::tempfile().unwrap();
        assert!(write(file.as_fd(), vec![(0, b"a"), (1, b"b")]).is_none());
        assert!(RING.with(|own| own.borrow().is_none()));
        IS_REFUSED.store(false, Relaxed);
    }

    /// Goal: batches of any size, buffered and direct, read and write the same bytes as single
    /// calls, and report a result for each part.
    /// Method: write pages in one batch larger than the ring and read them back out of order, the
    /// last ones past the end.
    #[test]
    fn batches() {
        // Two buffers, each of a size that direct I/O accepts.
        const PAGE: usize = 8192;
        let dir = tempfile::tempdir().unwrap();
        for direct in [false, true] {
            let options = OpenOptions { direct, ..OpenOptions::create() };
            let file: Box<dyn File> = match StdFs.open(&dir.path().join("file"), options) {
                Ok(file) => file,
                Err(error) if direct && error.source.kind() == io::ErrorKind::Unsupported => continue,
                Err(error) => panic!("{error}"),
            };
            let count = 3 * DEPTH as usize + 1;
            let mut bytes = crate::memory::Buffer::new(count * PAGE).unwrap();
            bytes.chunks_exact_mut(PAGE).zip(0u8..).for_each(|(page, at)| page.fill(at));
            let mut writes: Vec<WriteRequest<'_>> = (0u64..)
                .zip(bytes.chunks_exact(PAGE))
                .map(|(at, page)| WriteRequest::new(at * PAGE as u64, page))
                .collect();
            writes.reverse();
            file.write_batch(&mut writes);
            assert!(writes.iter().all(|write| matches!(write.result, Ok(PAGE))));
            let mut found = crate::memory::Buffer::new((count + 1) * PAGE).unwrap();
            let mut reads: Vec<ReadRequest<'_>> = (0u64..)
                .zip(found.chunks_exact_mut(PAGE))
                .map(|(at, page)| {
                    let (first, second) = page.split_at_mut(PAGE / 2);
                    let buffers = vec![IoSliceMut::new(first), IoSliceMut::new(second)];
                    ReadRequest::new(at * PAGE as u64, buffers)
                })
                .collect();
            reads.rotate_left(7);
            file.read_batch(&mut reads);
            for read in &reads {
                let expected = if read.offset == (count * PAGE) as u64 { 0 } else { PAGE };
                assert_eq!(*read.result.as_ref().unwrap(), expected);
            }
            drop(reads);
            assert!(found[..count * PAGE] == bytes[..]);
        }
        // A ring stays with its thread after its first use. Where the kernel provides none, this
        // tested the fallback.
        println!("batches went through a ring: {}", RING.with(|own| own.borrow().is_some()));
        let read_only = StdFs.open(&dir.path().join("file"), OpenOptions::read()).unwrap();
        let mut writes = [WriteRequest::new(0, b"a"), WriteRequest::new(1, b"b")];
        read_only.write_batch(&mut writes);
        assert!(writes.iter().all(|write| write.result.is_err()));
    }
}
