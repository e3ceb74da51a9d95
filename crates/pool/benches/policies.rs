//! The costs of the policies: nanoseconds per hit and per miss (evict and insert), with a thousand
//! and with a million frames.
//!
//! `cargo bench -p cairn-pool --bench policies` prints a row for each policy; `-- lirs arc` runs
//! only those. The result is the best of several rounds. Pages are drawn before the clock starts.
//! Frames are random, so that with a million frames each request also costs cache misses.
//!
//! - `hit`: requests for random resident frames. For policies that read marks, this is a store into
//!   a byte.
//! - `miss`: a sequence of new pages, each of which evicts one.
//! - `back`: pages out of twice as many as there are frames, of which about half miss; the time per
//!   request.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::cell::Cell;
use std::hint::black_box;

use cairn_pool::policy::{Frames, Hits, Policy};
use cairn_pool::{Frame, PageId, PolicyKind};
use cairn_vfs::{Clock, SystemClock};

const ROUNDS: usize = 11;
const REQUESTS: usize = 200_000;

fn main() {
    let wanted: Vec<PolicyKind> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .map(|arg| arg.parse().unwrap())
        .collect();
    println!("{:<12} {:>24} {:>24}", "ns", "1,000 frames", "1,000,000 frames");
    println!("{:<12} {:>8}{:>8}{:>8} {:>8}{:>8}{:>8}", "", "hit", "miss", "back", "hit", "miss", "back");
    for kind in PolicyKind::ALL {
        if wanted.is_empty() || wanted.contains(&kind) {
            let [small, large] = [1_000, 1_000_000].map(|frames| Bench::new(kind, frames).figures());
            print!("{:<12}", kind.title());
            small.iter().for_each(|figure| print!(" {figure:>7.1}"));
            print!(" ");
            large.iter().for_each(|figure| print!("{figure:>7.1} "));
            println!();
        }
    }
}

/// Marks, without a pool; nothing is pinned.
struct Marks(Vec<Cell<u8>>);

impl Frames for Marks {
    fn mark(&self, frame: Frame) -> u8 {
        self.0[frame as usize].get()
    }
    fn set_mark(&self, frame: Frame, mark: u8) {
        self.0[frame as usize].set(mark);
    }
    fn claim(&self, _frame: Frame) -> bool {
        true
    }
}

struct Bench {
    policy: Box<dyn Policy>,
    marks: Marks,
    frames: usize,
    clock: SystemClock,
    dice: u64,
    /// The next page never requested before.
    fresh: u64,
    /// The frame of each page of the last case, and the page of each frame.
    frame_of: Vec<Option<Frame>>,
    page_of: Vec<u64>,
}

impl Bench {
    fn new(kind: PolicyKind, frames: usize) -> Self {
        let mut bench = Bench {
            policy: kind.build(frames),
            marks: Marks(vec![Cell::new(0); frames]),
            frames,
            clock: SystemClock::new(),
            dice: 0x9E37_79B9_7F4A_7C15,
            fresh: 1 << 40,
            frame_of: vec![None; 2 * frames],
            page_of: vec![u64::MAX; frames],
        };
        for frame in 0..frames as Frame {
            bench.policy.insert(frame, PageId::from_u64(u64::from(frame)), &bench.marks);
            bench.frame_of[frame as usize] = Some(frame);
            bench.page_of[frame as usize] = u64::from(frame);
        }
        bench
    }

    fn figures(mut self) -> [f64; 3] {
        // The first round of each case also brings the policy into the state for that case.
        let back = self.best(Bench::back);
        let hit = self.best(Bench::hit);
        let miss = self.best(Bench::miss);
        [hit, miss, back]
    }

    fn best(&mut self, case: fn(&mut Bench) -> f64) -> f64 {
        (0..ROUNDS).map(|_| case(self)).fold(f64::INFINITY, f64::min)
    }

    fn draw(&mut self, below: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        ((self.dice >> 32) as usize * below) >> 32
    }

    fn timed(&mut self, run: impl FnOnce(&mut Bench)) -> f64 {
        let start = self.clock.now();
        run(self);
        (self.clock.now() - start).as_nanos() as f64 / REQUESTS as f64
    }

    fn hit(&mut self) -> f64 {
        let frames: Vec<Frame> = (0..REQUESTS).map(|_| self.draw(self.frames) as Frame).collect();
        self.timed(|bench| match bench.policy.hits() {
            Hits::Logged => frames.iter().for_each(|&frame| bench.policy.hit(black_box(frame))),
            Hits::Marked { max } => frames.iter().for_each(|&frame| bench.mark(frame, max)),
        })
    }

    fn mark(&self, frame: Frame, max: u8) {
        let mark = self.marks.mark(frame);
        if mark < max {
            self.marks.set_mark(frame, mark + 1);
        }
    }

    fn miss(&mut self) -> f64 {
        self.timed(|bench| {
            for _ in 0..REQUESTS {
                bench.fresh += 1;
                bench.replace(bench.fresh);
            }
        })
    }

    fn replace(&mut self, page: u64) -> Frame {
        let page = PageId::from_u64(black_box(page));
        let frame = self.policy.evict(Some(page), &self.marks).unwrap();
        self.marks.set_mark(frame, 0);
        self.policy.insert(frame, page, &self.marks);
        frame
    }

    fn back(&mut self) -> f64 {
        // Half of the requests go to a tenth of the pages.
        let draw = |bench: &mut Bench| {
            let range = if bench.draw(2) == 0 { bench.frames / 5 } else { 2 * bench.frames };
            bench.draw(range) as u64
        };
        let pages: Vec<u64> = (0..REQUESTS).map(|_| draw(self)).collect();
        self.timed(|bench| {
            let max = if let Hits::Marked { max } = bench.policy.hits() { max } else { 0 };
            for &page in &pages {
                match bench.frame_of[page as usize] {
                    Some(frame) if max > 0 => bench.mark(frame, max),
                    Some(frame) => bench.policy.hit(frame),
                    None => {
                        let frame = bench.replace(page);
                        bench.frame_of[bench.page_of[frame as usize] as usize] = None;
                        bench.frame_of[page as usize] = Some(frame);
                        bench.page_of[frame as usize] = page;
                    }
                }
            }
        })
    }
}
