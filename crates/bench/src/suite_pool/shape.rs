//! In which order pages are asked for.

use cairn_vfs::{Rng, SeededRng};

use super::store::expected;
use crate::workload::Zipf;

/// Requests that a thread has ready at least; it begins anew after the last one.
const TAPE: usize = 4096;

/// Requests that are drawn for each page at least: of fewer the same few pages would come again and
/// again, and fit into a pool that all do not fit into.
const DRAWS_A_PAGE: usize = 8;

/// How many requests are drawn among so many pages.
fn draws(pages: u32) -> std::ops::Range<usize> {
    0..TAPE.max(DRAWS_A_PAGE * pages as usize)
}

/// Requests between two looks at the sum of the stamps.
const CHUNK: usize = 512;

/// Requests between two scans of [`Shape::ZipfWithScans`].
const BETWEEN_SCANS: usize = 2_000;

/// An order of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// The pages below `pages`, in order, over and over. Several threads begin at different places
    /// of the circle.
    Scan {
        /// How many.
        pages: u32,
    },
    /// As [`Shape::Scan`], of pages that fit; all threads begin at the first.
    Cycle {
        /// How many.
        pages: u32,
    },
    /// Pages below `pages`, all alike.
    Uniform {
        /// How many.
        pages: u32,
    },
    /// Four of five requests go to the first fifth of the pages, all alike within each part.
    EightyTwenty {
        /// How many.
        pages: u32,
    },
    /// By Zipf's law, popular pages first.
    Zipf {
        /// How many.
        pages: u32,
        /// The skew.
        theta: f64,
    },
    /// By Zipf's law, and from time to time a scan of other pages, each of which is asked for once
    /// in a while.
    ZipfWithScans {
        /// Pages by Zipf's law.
        pages: u32,
        /// The skew.
        theta: f64,
        /// Pages of each scan.
        scan: u32,
    },
    /// Each thread goes round in pages of its own.
    Own {
        /// How many each thread has.
        each: u32,
    },
    /// Pages below `pages`, each once in random order, then again in the same order.
    Once {
        /// How many.
        pages: u32,
    },
}

impl Shape {
    /// Pages that the file must have for `threads` threads.
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

    /// The requests of one thread of some.
    pub fn tape(self, thread: u32, threads: u32, seed: u64) -> Tape {
        let mut rng = SeededRng::new(seed).fork(&format!("{self:?} {thread} of {threads}"));
        let at_least = |pages: u32| 0..(TAPE as u32).max(pages);
        match self {
            Shape::Scan { pages } => {
                let first = (u64::from(thread) * u64::from(pages) / u64::from(threads.max(1))) as u32;
                // One thread reads as far as it can in one go; several need chances to end a
                // sample.
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

    /// How pages are drawn, in a word.
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

/// Requests, made before the clock starts, in chunks whose sums are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tape {
    order: Vec<u32>,
    chunk: usize,
    sums: Vec<u64>,
}

impl Tape {
    /// In chunks of `chunk` requests; the last one may be shorter.
    pub fn new(order: Vec<u32>, chunk: usize) -> Self {
        let sums = order.chunks(chunk).map(expected).collect();
        Tape { order, chunk, sums }
    }

    /// How many chunks.
    pub fn chunks(&self) -> usize {
        self.sums.len()
    }

    /// Chunk `index`, counted round and round, with the sum of its stamps.
    #[inline]
    pub fn chunk(&self, index: usize) -> (&[u32], u64) {
        let index = index % self.sums.len().max(1);
        let start = index * self.chunk;
        let end = (start + self.chunk).min(self.order.len());
        (self.order.get(start..end).unwrap_or_default(), self.sums.get(index).copied().unwrap_or_default())
    }

    /// All requests.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite_pool::pages::stamp;

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

    /// Goal: tapes stay within the pages that they say, repeat themselves with the seed, differ
    /// between threads where they are drawn, and know the sums of their chunks, round after round.
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

    /// Goal: what is drawn among many pages is drawn often enough to touch them as the law says.
    /// Method: pages of which the first few thousand draws touch a part.
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

    /// Goal: the laws hold. Method: shares of some thousand draws; each page once; own pages apart;
    /// scans from different places.
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
