//! The orders in which pages are requested.

use cairn_vfs::{Rng, SeededRng};

use crate::core::workload::Zipf;
use crate::stores::pages::expected;

/// Minimum number of prepared requests per thread. After the last one, the thread begins anew.
const TAPE: usize = 4096;

/// Minimum number of random requests per page. With fewer, the same few pages would recur, and fit
/// into a pool that is too small for all.
const DRAWS_A_PAGE: usize = 8;

/// Returns the range of random requests for this many pages.
fn draws(pages: u32) -> std::ops::Range<usize> {
    0..TAPE.max(DRAWS_A_PAGE * pages as usize)
}

/// Number of requests between two comparisons of the sum of the stamps.
const CHUNK: usize = 512;

/// Number of requests between two scans of [`Shape::ZipfWithScans`].
const BETWEEN_SCANS: usize = 2_000;

/// An order of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// The pages below `pages`, in order, over and over. Several threads begin at different places
    /// of the cycle.
    Scan {
        /// Number of pages.
        pages: u32,
    },
    /// Like [`Shape::Scan`], for pages that fit; all threads begin at the first page.
    Cycle {
        /// Number of pages.
        pages: u32,
    },
    /// Random pages below `pages`, all equally likely.
    Uniform {
        /// Number of pages.
        pages: u32,
    },
    /// Four of five requests access the first fifth of the pages. Within each part all pages are
    /// equally likely.
    EightyTwenty {
        /// Number of pages.
        pages: u32,
    },
    /// Zipf-distributed, popular pages first.
    Zipf {
        /// Number of pages.
        pages: u32,
        /// The skew.
        theta: f64,
    },
    /// Zipf-distributed, with occasional scans of other pages, each of which is requested only
    /// rarely.
    ZipfWithScans {
        /// Number of Zipf-distributed pages.
        pages: u32,
        /// The skew.
        theta: f64,
        /// Number of pages in each scan.
        scan: u32,
    },
    /// Each thread cycles through pages of its own.
    Own {
        /// Number of pages per thread.
        each: u32,
    },
    /// Pages below `pages`, each once in random order, then again in the same order.
    Once {
        /// Number of pages.
        pages: u32,
    },
}

impl Shape {
    /// Returns the number of pages that the file must have for `threads` threads.
    pub fn pages(self, threads: u32) -> u32 {
        match self {
            Shape::Scan { pages }
            | Shape::Cycle { pages }
            | Shape::Uniform { pages }
            | Shape::EightyTwenty { pages }
            | Shape::Zipf { pages, .. }
            | Shape::Once { pages } => pages,
            Shape::ZipfWithScans { pages, scan, .. } => pages + 8 * scan,
            Shape::Own { each } => each * threads,
        }
    }

    /// Returns the requests of one of `threads` threads.
    pub fn tape(self, thread: u32, threads: u32, seed: u64) -> Tape {
        let mut rng = SeededRng::new(seed).fork(&format!("{self:?} {thread} of {threads}"));
        let at_least = |pages: u32| 0..(TAPE as u32).max(pages);
        match self {
            Shape::Scan { pages } => {
                let first = (u64::from(thread) * u64::from(pages) / u64::from(threads.max(1))) as u32;
                // One thread reads as much as it can in one call. Several threads need
                // opportunities to end a sample.
                let chunk = if threads > 1 { CHUNK } else { TAPE };
                Tape::new((first..pages).chain(0..first).collect(), chunk)
            }
            Shape::Cycle { pages } => Tape::new(at_least(pages).map(|at| at % pages).collect(), CHUNK),
            Shape::Own { each } => {
                Tape::new(at_least(each).map(|at| thread * each + at % each).collect(), CHUNK)
            }
            Shape::Uniform { pages } => {
                Tape::new(draws(pages).map(|_| below(&mut rng, pages)).collect(), CHUNK)
            }
            Shape::EightyTwenty { pages } => {
                let hot = (pages / 5).max(1);
                let draw = |rng: &mut SeededRng| {
                    if rng.below(100) < 80 || hot == pages {
                        below(rng, hot)
                    } else {
                        hot + below(rng, pages - hot)
                    }
                };
                Tape::new(draws(pages).map(|_| draw(&mut rng)).collect(), CHUNK)
            }
            Shape::Zipf { pages, theta } => {
                let zipf = Zipf::new(u64::from(pages), theta);
                Tape::new(draws(pages).map(|_| zipf.draw(&mut rng) as u32).collect(), CHUNK)
            }
            Shape::ZipfWithScans { pages, theta, scan } => {
                let zipf = Zipf::new(u64::from(pages), theta);
                let mut order = Vec::new();
                for round in 0..8 {
                    order.extend((0..BETWEEN_SCANS).map(|_| zipf.draw(&mut rng) as u32));
                    order.extend(pages + round * scan..pages + (round + 1) * scan);
                }
                Tape::new(order, CHUNK)
            }
            Shape::Once { pages } => {
                let mut order: Vec<u32> = (0..pages).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, below(&mut rng, last as u32 + 1) as usize);
                }
                Tape::new(order, super::plan::COLD_AT_ONCE)
            }
        }
    }

    /// Returns the name of the distribution of pages.
    pub fn distribution(self) -> String {
        match self {
            Shape::Scan { .. } => "sequential".to_owned(),
            Shape::Cycle { .. } | Shape::Own { .. } => "round robin".to_owned(),
            Shape::Uniform { .. } => "uniform".to_owned(),
            Shape::EightyTwenty { .. } => "hot set 0.2 0.8".to_owned(),
            Shape::Zipf { theta, .. } => format!("zipfian {theta} clustered"),
            Shape::ZipfWithScans { theta, .. } => format!("zipfian {theta} clustered, with scans"),
            Shape::Once { .. } => "each once, shuffled".to_owned(),
        }
    }
}

fn below(rng: &mut SeededRng, count: u32) -> u32 {
    rng.below(u64::from(count.max(1))) as u32
}

/// Requests that are prepared before the clock starts, in chunks whose sums are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tape {
    order: Vec<u32>,
    chunk: usize,
    sums: Vec<u64>,
}

impl Tape {
    /// Divides the requests into chunks of `chunk`. The last one may be shorter.
    pub fn new(order: Vec<u32>, chunk: usize) -> Self {
        let sums = order.chunks(chunk).map(expected).collect();
        Tape { order, chunk, sums }
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.sums.len()
    }

    /// Returns chunk `index`, counted cyclically, with the sum of its stamps.
    #[inline]
    pub fn chunk(&self, index: usize) -> (&[u32], u64) {
        let index = index % self.sums.len().max(1);
        let start = index * self.chunk;
        let end = (start + self.chunk).min(self.order.len());
        (self.order.get(start..end).unwrap_or_default(), self.sums.get(index).copied().unwrap_or_default())
    }

    /// Returns all requests.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::page_file::stamp;

    const ALL: [Shape; 8] = [
        Shape::Scan { pages: 120 },
        Shape::Cycle { pages: 10 },
        Shape::Uniform { pages: 100 },
        Shape::EightyTwenty { pages: 36 },
        Shape::Zipf { pages: 36, theta: 0.99 },
        Shape::ZipfWithScans { pages: 36, theta: 0.99, scan: 48 },
        Shape::Own { each: 10 },
        Shape::Once { pages: 1000 },
    ];

    /// Goal: tapes stay within their pages, are reproducible by seed, differ between threads if
    /// they are random, and know the sums of their chunks, cycle after cycle.
    #[test]
    fn tapes_are_what_they_say() {
        for shape in ALL {
            for threads in [1, 3] {
                for thread in 0..threads {
                    let tape = shape.tape(thread, threads, 7);
                    assert!(tape.order().iter().all(|&page| page < shape.pages(threads)), "{shape:?}");
                    assert_eq!(tape, shape.tape(thread, threads, 7));
                    let mut requests = 0;
                    for index in 0..tape.chunks() {
                        let (order, sum) = tape.chunk(index);
                        requests += order.len();
                        assert_eq!(sum, order.iter().fold(0_u64, |sum, page| sum.wrapping_add(stamp(*page))));
                        assert_eq!(tape.chunk(index + tape.chunks()), (order, sum));
                    }
                    assert_eq!(requests, tape.order().len());
                }
            }
        }
        let drawn = |thread| Shape::Uniform { pages: 100 }.tape(thread, 2, 7);
        assert_ne!(drawn(0), drawn(1));
        assert_ne!(drawn(0), Shape::Uniform { pages: 100 }.tape(0, 2, 8));
    }

    /// Goal: requests among many pages are so numerous that they touch the share of pages that the
    /// distribution implies. Method: page counts of which the first few thousand requests touch
    /// only a part.
    #[test]
    fn many_pages_have_long_tapes() {
        let pages = 12_288;
        for (shape, least) in [
            (Shape::Uniform { pages }, 0.99),
            (Shape::EightyTwenty { pages }, 0.75),
            (Shape::Cycle { pages }, 1.0),
            (Shape::Own { each: pages }, 1.0),
        ] {
            let mut touched = shape.tape(0, 1, 7).order().to_vec();
            touched.sort_unstable();
            touched.dedup();
            assert!(touched.len() as f64 >= least * f64::from(pages), "{shape:?}: {}", touched.len());
        }
    }

    /// Goal: the distributions hold. Method: shares of several thousand requests; each page once;
    /// separate pages of threads; scans from different places.
    #[test]
    fn orders_follow_their_laws() {
        let tape = Shape::EightyTwenty { pages: 36 }.tape(0, 1, 1);
        let hot = tape.order().iter().filter(|&&page| page < 7).count() as f64 / tape.order().len() as f64;
        assert!((hot - 0.8).abs() < 0.03, "{hot}");
        let mut once = Shape::Once { pages: 1000 }.tape(0, 1, 1).order().to_vec();
        assert_ne!(once, (0..1000).collect::<Vec<u32>>());
        once.sort_unstable();
        assert_eq!(once, (0..1000).collect::<Vec<u32>>());
        let own = |thread| Shape::Own { each: 10 }.tape(thread, 2, 1);
        assert!(
            own(0).order().iter().all(|page| *page < 10)
                && own(1).order().iter().all(|page| (10..20).contains(page))
        );
        let starts: Vec<u32> =
            (0..4).map(|thread| Shape::Scan { pages: 120 }.tape(thread, 4, 1).order()[0]).collect();
        assert_eq!(starts, [0, 30, 60, 90]);
        assert_eq!(Shape::EightyTwenty { pages: 1 }.tape(0, 1, 1).order()[0], 0);
    }
}
