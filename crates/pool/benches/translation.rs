//! Ways to get from a page number to its bytes, each in its simplest form. The choice on the design
//! page is based on this.
//!
//! `cargo bench -p cairn-pool --bench translation`
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark")]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::Instant;

use cairn_vfs::memory::Reservation;
use cairn_vfs::{File, Fs, OpenOptions, StdFs};

const PAGE: usize = 4096;
const NONE: u32 = u32::MAX;

/// Returns the minimum time of some rounds, in nanoseconds per step, for `count` steps.
fn least(count: usize, mut round: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        round();
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..7).map(once).fold(f64::MAX, f64::min)
}

fn shuffled(pages: u32, count: usize) -> Vec<u32> {
    let mut state = 12345u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32 % pages
    };
    (0..count).map(|_| next()).collect()
}

/// An open-addressing table of atomics: key and frame in one word, twice as many places as pages.
/// Supports only lookups.
struct OpenTable(Vec<AtomicU64>);

impl OpenTable {
    fn new(pages: u32) -> Self {
        let table = OpenTable((0..2 * pages.next_power_of_two()).map(|_| AtomicU64::new(u64::MAX)).collect());
        for page in 0..pages {
            let mut at = table.place(page);
            while table.0[at].load(Relaxed) != u64::MAX {
                at = (at + 1) % table.0.len();
            }
            table.0[at].store(u64::from(page) << 32 | u64::from(page), Relaxed);
        }
        table
    }

    fn place(&self, page: u32) -> usize {
        (u64::from(page).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize & (self.0.len() - 1)
    }

    #[inline]
    fn frame(&self, page: u32) -> u32 {
        let mut at = self.place(page);
        loop {
            let entry = self.0[at].load(Acquire);
            if (entry >> 32) as u32 == page {
                return entry as u32;
            }
            if entry == u64::MAX {
                return NONE;
            }
            at = (at + 1) & (self.0.len() - 1);
        }
    }
}

/// Doubling segments, as in the pool.
struct Segments(Vec<Vec<AtomicU32>>);

impl Segments {
    fn new(pages: u32) -> Self {
        let mut segments =
            Segments((12..20).map(|log| (0..1u32 << log).map(|_| AtomicU32::new(NONE)).collect()).collect());
        for page in 0..pages {
            let (segment, index) = Self::locate(page);
            *segments.0[segment][index].get_mut() = page;
        }
        segments
    }

    #[inline]
    fn locate(page: u32) -> (usize, usize) {
        let shifted = page as u64 + 4096;
        let log = 63 - shifted.leading_zeros();
        ((log - 12) as usize, (shifted - (1 << log)) as usize)
    }

    #[inline]
    fn frame(&self, page: u32) -> u32 {
        let (segment, index) = Self::locate(page);
        self.0.get(segment).and_then(|entries| entries.get(index)).map_or(NONE, |entry| entry.load(Acquire))
    }
}

fn lookups() {
    println!("{:<28} {:>12} {:>12} {:>12}", "a lookup, ns", "100 pages", "10,000", "500,000");
    let sizes = [100, 10_000, 500_000];
    let row = |name: &str, nanos: Vec<f64>| {
        println!("{name:<28} {:>12.2} {:>12.2} {:>12.2}", nanos[0], nanos[1], nanos[2])
    };
    type Lookup = Box<dyn Fn(&[u32]) -> u64>;
    let each = |build: &dyn Fn(u32) -> Lookup| {
        let one = |pages| {
            let (lookup, order) = (build(pages), shuffled(pages, 1_000_000));
            least(order.len(), || _ = black_box(lookup(&order)))
        };
        sizes.map(one).to_vec()
    };
    row(
        "array in segments",
        each(&|pages| {
            let table = Segments::new(pages);
            Box::new(move |order| order.iter().map(|&page| u64::from(table.frame(page))).sum())
        }),
    );
    row(
        "open addressing, atomics",
        each(&|pages| {
            let table = OpenTable::new(pages);
            Box::new(move |order| order.iter().map(|&page| u64::from(table.frame(page))).sum())
        }),
    );
    row(
        "HashMap behind RwLock",
        each(&|pages| {
            let table: RwLock<HashMap<u32, u32>> = RwLock::new((0..pages).map(|page| (page, page)).collect());
            Box::new(move |order| order.iter().map(|page| u64::from(table.read().unwrap()[page])).sum())
        }),
    );
    // A page's address follows from its number; the lookup reads the word with its state.
    row(
        "one word a page (vmcache)",
        each(&|pages| {
            let table: Vec<AtomicU64> = (0..pages).map(|page| AtomicU64::new(u64::from(page))).collect();
            Box::new(move |order| order.iter().map(|&page| table[page as usize].load(Acquire)).sum())
        }),
    );
}

fn misses(file: &dyn File, pages: u32) {
    let frames = 1000usize;
    let order = shuffled(pages, 100_000);
    let read = |place: &mut [u8], page: u32| {
        file.read_exact_at(place, u64::from(page) * PAGE as u64).unwrap();
        assert_eq!(place[0], page as u8);
    };
    let mut arena = cairn_vfs::memory::Buffer::new(frames * PAGE).unwrap();
    let mut at = 0;
    let into_frames = least(order.len(), || {
        for &page in &order {
            at = (at + 1) % frames;
            read(&mut arena[at * PAGE..(at + 1) * PAGE], page);
        }
    });
    let whole = Reservation::new(pages as usize * PAGE).unwrap();
    let mut resident = std::collections::VecDeque::new();
    let mapped = least(order.len(), || {
        for &page in &order {
            let start = page as usize * PAGE;
            if resident.len() == frames {
                let victim: usize = resident.pop_front().unwrap();
                // SAFETY: single-threaded, and no reference to the page exists.
                unsafe { whole.release(victim..victim + PAGE) };
            }
            resident.push_back(start);
            // SAFETY: within the reservation, which belongs to this thread alone.
            let place = unsafe { std::slice::from_raw_parts_mut(whole.start().as_ptr().add(start), PAGE) };
            read(place, page);
        }
    });
    println!("\n{:<44} {into_frames:>9.0} ns", "a miss: read into a frame used before");
    println!("{:<44} {mapped:>9.0} ns", "a miss: read into the page's own address,");
    println!("{:<44}", "        and another one given back (vmcache)");
}

fn main() {
    lookups();
    let dir = tempfile::tempdir().unwrap();
    let file = StdFs::new().open(&dir.path().join("pages"), OpenOptions::create()).unwrap();
    let pages = 20_000;
    (0..pages)
        .for_each(|page: u32| file.write_all_at(&[page as u8; PAGE], u64::from(page) * PAGE as u64).unwrap());
    misses(&*file, pages);
}
