//! The cases, in the guide's five phases and under its names.

use super::options::Options;
use super::shape::Shape;
use crate::core::results::Case;
use crate::stores::pages::Access;

/// Number of pages in a sample of cold pins.
pub const COLD_AT_ONCE: usize = 128;

/// Maximum number of pages for cold pins. Longer runs go through the pages again. By then the pages
/// have been evicted from a pool of that size.
const COLD_PAGES_MAX: usize = 16 << 10;

/// Thread counts of the concurrent cases.
pub const THREADS: [u32; 8] = [2, 4, 8, 16, 32, 64, 128, 256];

/// Frames of the pool in phase 5, which tests latches and not the number of frames.
pub const CONCURRENT_FRAMES: usize = 4096;

/// Number of pages of each thread in `pin:tN`.
const PINNED_EACH: u32 = 10;

/// Number of waiting threads in the case of starvation.
pub const STARVING: usize = 4;

/// Number of requests in phase 4, whose hits are counted.
const COUNTED: usize = 100_000;

/// The measurement of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Time of requests by all threads together.
    Timed {
        /// The access to each page.
        access: Access,
        /// The order of pages.
        shape: Shape,
        /// Whether to show the time per request instead of requests per second.
        latency: bool,
        /// Number of requests in a sample; `None` for as many as fill its time.
        chunks: Option<usize>,
    },
    /// Hits among requests of one thread.
    Hits {
        /// The order of pages.
        shape: Shape,
        /// Number of requests.
        requests: usize,
    },
    /// Time until waiting threads get a frame.
    Starvation,
}

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolCase {
    /// The phase, 1 to 5.
    pub phase: u8,
    /// Name in filters and lists: `Random MT x4 (K=50, uniform)`, `pin:t8`.
    pub name: String,
    /// The case as it is stored.
    pub case: Case,
    /// The work to measure.
    pub work: Work,
    /// Number of pages that may be in memory.
    pub frames: usize,
    /// Number of threads.
    pub threads: u32,
}

impl PoolCase {
    /// Returns the number of pages that the file must have.
    pub fn pages(&self) -> u32 {
        match self.work {
            Work::Timed { shape, .. } | Work::Hits { shape, .. } => shape.pages(self.threads),
            Work::Starvation => (self.frames + STARVING) as u32,
        }
    }

    /// Returns whether pages are changed.
    pub fn writes(&self) -> bool {
        matches!(self.work, Work::Timed { access: Access::Dirty, .. })
    }
}

/// Returns the [`PoolCase::name`] of a stored case.
///
/// ```text
///   operation                      threads  name
///   Random (K=50, uniform)         1        Random (K=50, uniform)
///   Random (K=50, uniform)         4        Random MT x4 (K=50, uniform)
///   Sequential Scan (120 blocks)   4        Seq Scan MT x4 (120 blocks)
///   hotset_k4:optimistic           8        hotset:t8_k4:optimistic
/// ```
pub fn name_of(case: &Case) -> String {
    let (operation, threads) = (case.operation.as_str(), case.threads);
    if let Some(rest) = operation.strip_prefix("pin") {
        return format!("pin:t{threads}{rest}");
    }
    if let Some(rest) = operation.strip_prefix("hotset") {
        return format!("hotset:t{threads}{rest}");
    }
    if threads <= 1 {
        return operation.to_owned();
    }
    let (what, rest) = operation.split_once(" (").unwrap_or((operation, ""));
    let what = if what == "Sequential Scan" { "Seq Scan" } else { what };
    let rest = if rest.is_empty() { String::new() } else { format!(" ({rest}") };
    format!("{what} MT x{threads}{rest}")
}

/// Returns true if a filter selects a case, because the filter is part of the case's name. A token
/// of phase 5 that ends in a number matches exactly that number: `pin:t2` does not match
/// `pin:t256`.
pub fn is_chosen(name: &str, filter: &str) -> bool {
    if !is_token(filter) {
        return name.contains(filter);
    }
    name.match_indices(filter).any(|(at, found)| {
        let next = name[at + found.len()..].chars().next();
        !(found.ends_with(|c: char| c.is_ascii_digit()) && next.is_some_and(|c| c.is_ascii_digit()))
    })
}

fn is_token(filter: &str) -> bool {
    filter.starts_with("pin:") || filter.starts_with("hotset:")
}

/// Returns every case of a run, in order. A run for a dashboard has all cases, whatever its filter.
pub fn plan(options: &Options) -> Vec<PoolCase> {
    let mut plan = Planner { options, cases: Vec::new() };
    plan.latencies();
    plan.patterns();
    plan.sizes();
    plan.hit_rates();
    plan.concurrency();
    let mut cases = plan.cases;
    cases.retain(|case| options.phases.contains(&case.phase));
    if let Some(filter) = options.filter.as_deref().filter(|_| !options.for_dashboard) {
        cases.retain(|case| is_chosen(&case.name, filter));
    }
    cases
}

struct Planner<'a> {
    options: &'a Options,
    cases: Vec<PoolCase>,
}

impl Planner<'_> {
    fn add(&mut self, phase: u8, operation: impl Into<String>, (frames, threads): (usize, u32), work: Work) {
        let (shape, keys) = match work {
            Work::Timed { shape, .. } | Work::Hits { shape, .. } => (Some(shape), "resident or not"),
            Work::Starvation => (None, "pinned"),
        };
        let distribution = shape.map_or_else(|| "one each".to_owned(), Shape::distribution);
        let case = Case::new(operation, format!("phase {phase}"), frames as u64);
        let case = case.lookups(keys, distribution, threads);
        let case = Case { value_bytes: self.options.page_size as u32, ..case };
        self.cases.push(PoolCase { phase, name: name_of(&case), case, work, frames, threads });
    }

    fn timed(
        &mut self,
        phase: u8,
        operation: impl Into<String>,
        size: (usize, u32),
        access: Access,
        shape: Shape,
    ) {
        self.add(phase, operation, size, Work::Timed { access, shape, latency: phase == 1, chunks: None });
    }

    /// Returns the number of pages of a working set that fits.
    fn fitting(&self) -> u32 {
        self.options.buffers.saturating_sub(2).clamp(1, 10) as u32
    }

    fn latencies(&mut self) {
        let frames = self.options.buffers;
        let resident = Shape::Uniform { pages: self.fitting() };
        for (name, access) in [
            ("Pin/Unpin (hit)", Access::Shared),
            ("Pin/Unpin (hit, chained)", Access::SharedChained),
            ("Exclusive Pin/Unpin (hit)", Access::Exclusive),
            ("Optimistic Read (hit)", Access::Optimistic),
            ("Optimistic Read (hit, chained)", Access::OptimisticChained),
        ] {
            self.timed(1, name, (frames, 1), access, resident);
        }
        let samples = COLD_AT_ONCE * self.options.iterations as usize;
        let pages = (samples.min(COLD_PAGES_MAX) + 4 * frames).next_multiple_of(COLD_AT_ONCE) as u32;
        let cold = |access, pages| Work::Timed {
            access,
            shape: Shape::Once { pages },
            latency: true,
            chunks: Some(1),
        };
        self.add(1, "Cold Pin (miss)", (frames, 1), cold(Access::Shared, pages));
        // Fewer pages, because they must be created for each contender.
        let pages = (1024 + 4 * frames).next_multiple_of(COLD_AT_ONCE) as u32;
        self.add(1, "Dirty Eviction", (frames, 1), cold(Access::Dirty, pages));
    }

    fn patterns(&mut self) {
        let (frames, fitting) = (self.options.buffers, self.fitting());
        let blocks = 10 * frames as u32;
        let scan = Shape::Scan { pages: blocks };
        self.timed(2, format!("Sequential Scan ({blocks} blocks)"), (frames, 1), Access::Scan, scan);
        self.timed(
            2,
            format!("Sequential Scan ({blocks} blocks, page by page)"),
            (frames, 1),
            Access::Shared,
            scan,
        );
        let patterns = [
            (format!("Sequential Scan ({blocks} blocks)"), Access::Scan, scan),
            (format!("Repeated Access ({fitting} blocks)"), Access::Shared, Shape::Cycle { pages: fitting }),
            ("Random (K=10, uniform)".to_owned(), Access::Shared, Shape::Uniform { pages: 10 }),
            ("Random (K=50, uniform)".to_owned(), Access::Shared, Shape::Uniform { pages: 50 }),
            ("Random (K=100, uniform)".to_owned(), Access::Shared, Shape::Uniform { pages: 100 }),
            ("Zipfian (80/20)".to_owned(), Access::Shared, Shape::EightyTwenty { pages: 3 * frames as u32 }),
        ];
        for (name, access, shape) in patterns {
            let single = !matches!(shape, Shape::Scan { .. });
            let threads = [1].into_iter().filter(|_| single).chain(self.options.threads.iter().copied());
            for threads in threads {
                self.timed(2, name.as_str(), (frames, threads), access, shape);
            }
        }
    }

    fn sizes(&mut self) {
        let uniform = |pages| Shape::Uniform { pages };
        for frames in [8, 16, 32, 64, 128, 256] {
            self.timed(
                3,
                format!("Pool Size ({frames} buffers, K=100)"),
                (frames, 1),
                Access::Shared,
                uniform(100),
            );
        }
        for over in [0, 1, 5, 10, 20] {
            let name = format!("Memory Pressure (32 buffers, working set +{over})");
            self.timed(3, name, (32, 1), Access::Shared, uniform(32 + over));
        }
    }

    fn hit_rates(&mut self) {
        let frames = self.options.buffers;
        let pages = 3 * frames as u32;
        for (name, shape) in [
            ("Sequential", Shape::Scan { pages: 10 * frames as u32 }),
            ("Repeated", Shape::Cycle { pages: self.fitting() }),
            ("Random K=10", Shape::Uniform { pages: 10 }),
            ("Random K=50", Shape::Uniform { pages: 50 }),
            ("Random K=100", Shape::Uniform { pages: 100 }),
            ("Zipfian 80/20", Shape::EightyTwenty { pages }),
            ("Zipfian theta 0.99", Shape::Zipf { pages, theta: 0.99 }),
            (
                "Zipfian theta 0.99 with scans",
                Shape::ZipfWithScans { pages, theta: 0.99, scan: 4 * frames as u32 },
            ),
        ] {
            let work = Work::Hits { shape, requests: COUNTED };
            self.add(4, format!("Hit Rate ({name})"), (frames, 1), work);
        }
    }

    fn concurrency(&mut self) {
        let frames = self.options.buffers.max(CONCURRENT_FRAMES);
        let (own, hot) = (Shape::Own { each: PINNED_EACH }, Shape::Cycle { pages: 4 });
        for (name, access, shape) in [
            ("pin", Access::Shared, own),
            ("pin:optimistic", Access::Optimistic, own),
            ("hotset_k4", Access::Shared, hot),
            ("hotset_k4:optimistic", Access::Optimistic, hot),
        ] {
            for threads in [1].into_iter().chain(self.options.threads.iter().copied()) {
                self.timed(5, name, (frames, threads), access, shape);
            }
        }
        self.add(5, "Buffer Starvation", (self.options.buffers, 1), Work::Starvation);
    }
}
