//! Loads a map into memory ahead of its use, and measures how much of it is resident.

use std::io;
use std::ops::Range;

use rustix::io::Errno;
use rustix::mm;
use rustix::process::{Resource, getrlimit};

use super::{Map, Pages};

/// `mincore` is called for at most this many pages at a time, which bounds its result to 64 KiB of
/// memory.
const MINCORE_PAGES: usize = 64 << 10;

/// How to treat memory that is not resident yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Load {
    /// Do nothing: each page is read at its first use.
    #[default]
    None,
    /// Read everything in now. The kernel may drop it again.
    Prefetch,
    /// Read everything in now and keep it there (`mlock`).
    Lock,
}

/// The result of [`Map::load`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// Bytes of the requested range that lie in the map.
    pub requested_bytes: usize,
    /// The number of these bytes that are in memory now (`mincore`). For a file that this process
    /// neither owns nor may write, Linux since 5.2 reports every page as resident, so that a
    /// process cannot observe which parts others read.
    pub resident_bytes: usize,
    /// The number of these bytes that are locked in memory.
    pub locked_bytes: usize,
    /// Why less was achieved than requested, as text for a person.
    pub problem: Option<String>,
}

impl Map {
    /// Brings a range into memory. Never fails: the report describes the outcome and any obstacle.
    ///
    /// Costs a read of each missing page, plus one pass of `mincore`. If the kernel refuses a
    /// [`Load::Lock`], it is carried out as a [`Load::Prefetch`].
    pub fn load(&self, range: Range<usize>, load: Load) -> LoadReport {
        let Some(pages) = self.pages(&range) else { return LoadReport::default() };
        let requested_bytes = range.end.min(self.len) - range.start;
        debug_assert!(requested_bytes > 0 && requested_bytes <= pages.bytes - pages.head);
        let mut report = LoadReport { requested_bytes, ..LoadReport::default() };
        match load {
            Load::None => {}
            Load::Prefetch => {
                report.problem = prefetch(&pages).err().map(|e| format!("prefetch failed: {e}"))
            }
            // SAFETY: locking changes where pages reside, not their content. `pages` is mapped,
            // since it covers bytes of this map.
            Load::Lock => match unsafe { mm::mlock(pages.start, pages.bytes) } {
                Ok(()) => {
                    self.remember_locked(&pages);
                    report.locked_bytes = requested_bytes;
                }
                Err(errno) => {
                    report.problem = Some(lock_problem(&pages, errno));
                    if let Err(error) = prefetch(&pages) {
                        report.problem =
                            report.problem.map(|lock| format!("{lock}; prefetch failed: {error}"));
                    }
                }
            },
        }
        match resident_bytes(&pages, requested_bytes) {
            Ok(bytes) => report.resident_bytes = bytes,
            Err(error) => {
                let unknown = format!("residency is unknown: {error}");
                report.problem = Some(report.problem.map_or(unknown.clone(), |p| format!("{p}; {unknown}")));
            }
        }
        debug_assert!(report.resident_bytes <= requested_bytes, "more is resident than was requested");
        debug_assert!(
            load != Load::Lock || report.locked_bytes == requested_bytes || report.problem.is_some(),
            "{} bytes are locked of {requested_bytes}, without a reason",
            report.locked_bytes
        );
        report
    }
}

/// Reads all pages in.
fn prefetch(pages: &Pages) -> io::Result<()> {
    // SAFETY: populating reads pages in and changes nothing. Unlike a touch, it reports an
    // unreadable page as an error instead of a signal.
    match unsafe { mm::madvise(pages.start, pages.bytes, mm::Advice::LinuxPopulateRead) } {
        // Kernels before 5.14 do not support this advice.
        Err(Errno::INVAL | Errno::NOSYS) => touch(pages),
        other => Ok(other?),
    }
}

/// Starts read-ahead, then reads one byte of each page.
fn touch(pages: &Pages) -> io::Result<()> {
    debug_assert!(pages.head < pages.bytes.min(rustix::param::page_size()), "the map begins on another page");
    // SAFETY: a hint that changes nothing.
    unsafe { mm::madvise(pages.start, pages.bytes, mm::Advice::WillNeed) }?;
    for offset in (0..pages.bytes).step_by(rustix::param::page_size()) {
        // On the heap, the first page may begin with memory that belongs to another allocation.
        let offset = offset.max(pages.head);
        // SAFETY: each page holds a byte of the map: the first page at `head`, every other at its
        // start. `pages.start` was derived from the map's pointer. Volatile, so that the compiler
        // does not remove the loop.
        unsafe { pages.start.cast::<u8>().wrapping_add(offset).read_volatile() };
    }
    Ok(())
}

fn lock_problem(pages: &Pages, errno: Errno) -> String {
    let limit = match getrlimit(Resource::Memlock).current {
        Some(bytes) => format!("RLIMIT_MEMLOCK is {bytes} bytes"),
        None => "RLIMIT_MEMLOCK is unlimited".to_owned(),
    };
    format!("mlock of {} bytes failed: {} ({limit})", pages.bytes, io::Error::from(errno))
}

/// Returns the number of requested bytes that lie on resident pages.
fn resident_bytes(pages: &Pages, requested: usize) -> io::Result<usize> {
    let page = rustix::param::page_size();
    debug_assert!(
        pages.bytes.is_multiple_of(page) && pages.head + requested <= pages.bytes,
        "{requested} bytes are not on {} bytes of pages",
        pages.bytes
    );
    let mut states = vec![0_u8; (pages.bytes / page).min(MINCORE_PAGES)];
    let mut resident = 0;
    let mut done = 0;
    while done < pages.bytes {
        let count = ((pages.bytes - done) / page).min(MINCORE_PAGES);
        debug_assert!(count > 0 && count <= states.len(), "{count} pages, {} states", states.len());
        let start = pages.start.wrapping_byte_add(done);
        // SAFETY: the range is mapped and page-aligned, and `states` has a byte for each of its
        // pages.
        if unsafe { libc::mincore(start, count * page, states.as_mut_ptr().cast()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for (index, state) in states.iter().take(count).enumerate() {
            if state & 1 == 1 {
                let from = (done + index * page).max(pages.head);
                let to = (done + (index + 1) * page).min(pages.head + requested);
                resident += to.saturating_sub(from);
            }
        }
        done += count * page;
    }
    debug_assert!(
        done == pages.bytes && resident <= requested,
        "{resident} of {requested} bytes are resident"
    );
    Ok(resident)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: kernels without `MADV_POPULATE_READ` still read the range in. Method: call the
    /// fallback on a sparse anonymous region, none of which is resident before.
    #[test]
    fn touch_reads_every_page() {
        let map = Map::filled(1 << 20, |_| {}).unwrap();
        let pages = map.pages(&(0..map.len())).unwrap();
        assert_eq!(resident_bytes(&pages, map.len()).unwrap(), 0);
        touch(&pages).unwrap();
        assert_eq!(resident_bytes(&pages, map.len()).unwrap(), map.len());
    }

    /// Goal: the fallback only reads bytes of the map, wherever in a page it begins and ends.
    /// Method: ranges of a heap map and of a slice of it; Miri or a sanitizer detects reads
    /// outside.
    #[test]
    fn touch_stays_in_the_map() {
        let whole = Map::from_vec(vec![1; 20_000]);
        for map in [whole.slice(0..20_000), whole.slice(4999..15_001), whole.slice(19_999..20_000)] {
            for range in [0..map.len(), map.len() / 2..map.len(), 0..1] {
                touch(&map.pages(&range).unwrap()).unwrap();
            }
        }
    }

    /// Goal: the text of a refused lock explains the cause on its own.
    #[test]
    fn lock_problem_names_errno_and_limit() {
        let map = Map::from_vec(vec![1; 100]);
        let problem = lock_problem(&map.pages(&(0..100)).unwrap(), Errno::NOMEM);
        assert!(problem.contains("RLIMIT_MEMLOCK") && problem.contains("os error 12"), "{problem}");
    }
}
