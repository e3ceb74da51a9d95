//! One turn of one contender in one case.

use std::time::Duration;

use cairn_vfs::OpenOptions;

use super::options::Options;
use super::plan::{PoolCase, STARVING, Work};
use super::shape::{Shape, Tape};
use crate::core::error::Result;
use crate::core::threads;
use crate::stores::page_buffer::Buffer;
use crate::stores::page_file::{self, PageFile, WRITES_AT, word};
use crate::stores::pages::{Access, PageStore, Pages, Setup};

/// The results of a turn in which every sum of stamps was correct.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// Nanoseconds per request, one value per sample: the sample's time divided by the number of
    /// requests of all threads.
    pub nanos: Vec<f64>,
    /// Requests whose pages were in memory, and all requests, if the contender counts them.
    pub hits: Option<(u64, u64)>,
}

/// The place of a turn among others. It ensures that no cold case begins at pages that another turn
/// has just read.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The position among all turns in this case, from 0 to 1.
    pub share: f64,
}

/// Takes a turn. Returns `None` if the contender does not support the case.
pub fn take(
    options: &Options,
    store: &dyn PageStore,
    case: &PoolCase,
    file: &PageFile,
    place: Place,
) -> Result<Option<Turn>> {
    let setup = Setup { file, frames: case.frames, reach: case.pages(), writes: case.writes() };
    match case.work {
        Work::Timed { access, shape, chunks, .. } => {
            if !store.can(access, case.threads) {
                return Ok(None);
            }
            let before = if setup.writes { Some(writes(store.name(), file)?) } else { None };
            let open = store.open(&setup)?;
            let timed = Timed { name: store.name(), open: &*open, case, access };
            let tapes: Vec<Tape> =
                (0..case.threads).map(|thread| shape.tape(thread, case.threads, options.seed)).collect();
            let (turn, changed) = timed.run(options, &tapes, chunks, place)?;
            open.close()?;
            if let Some(before) = before {
                check_writes(store.name(), file, before + changed)?;
            }
            Ok(Some(turn))
        }
        Work::Hits { shape, requests } => {
            if !store.can(Access::Shared, 1) {
                return Ok(None);
            }
            let open = store.open(&setup)?;
            let turn = count(store.name(), &*open, shape, requests, options.seed)?;
            open.close()?;
            Ok(turn)
        }
        Work::Starvation => {
            if !store.can(Access::Shared, STARVING as u32) {
                return Ok(None);
            }
            let open = store.open(&setup)?;
            let mut nanos = Vec::new();
            for _ in 0..options.samples_each().min(3) {
                match open.starvation(case.frames, STARVING)? {
                    Some(time) => nanos.push(time.as_nanos() as f64),
                    None => return Ok(None),
                }
            }
            open.close()?;
            Ok(Some(Turn { nanos, hits: None }))
        }
    }
}

struct Timed<'a> {
    name: &'a str,
    open: &'a dyn Pages,
    case: &'a PoolCase,
    access: Access,
}

impl Timed<'_> {
    /// Takes all samples of a turn. Also returns the total number of requests.
    fn run(
        &self,
        options: &Options,
        tapes: &[Tape],
        chunks: Option<usize>,
        place: Place,
    ) -> Result<(Turn, u64)> {
        let samples = options.samples_each();
        // Cold pages must not have been requested before the clock starts. All other cases begin
        // after every page has been requested once.
        let (first, warm) = match chunks {
            Some(_) => (tapes.first().map_or(0, |tape| (place.share * tape.chunks() as f64) as usize), 0),
            None => (0, self.warm_up(tapes)?),
        };
        let mut made = warm;
        let (each, first) = match chunks {
            Some(each) => {
                // These requests fill the pool before the clock starts, and use everything else for
                // the first time.
                let fill = self.case.frames.div_ceil(super::plan::COLD_AT_ONCE) + 1;
                made += self.sample(tapes, first, fill, 1)?.1;
                (each, first + fill)
            }
            None => {
                let (each, more) = self.calibrate(tapes, options.sample_seconds_of(self.case.threads))?;
                made += more;
                (each, first)
            }
        };
        let before = self.open.misses();
        let (times, requests) = self.sample(tapes, first, each, samples)?;
        let misses = self.open.misses().zip(before).map(|(after, before)| after - before);
        made += requests;
        let nanos = times
            .iter()
            .enumerate()
            .map(|(sample, time)| {
                time.as_nanos() as f64 / requests_of(tapes, first, each, sample).max(1) as f64
            })
            .collect();
        Ok((Turn { nanos, hits: misses.map(|misses| (requests.saturating_sub(misses), requests)) }, made))
    }

    /// Requests every page once, by one thread.
    fn warm_up(&self, tapes: &[Tape]) -> Result<u64> {
        let mut session = self.open.session()?;
        let mut all: Vec<u32> = tapes.iter().flat_map(|tape| tape.order().iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let once = Tape::new(all, 512);
        for index in 0..once.chunks() {
            let (order, expected) = once.chunk(index);
            self.hold(session.run(self.access, order)?, expected, order)?;
        }
        Ok(once.order().len() as u64)
    }

    /// Returns how many chunks fill the time of a sample. Also warms up everything that the pages
    /// themselves do not.
    fn calibrate(&self, tapes: &[Tape], seconds: f64) -> Result<(usize, u64)> {
        let (mut each, mut made) = (1, 0);
        loop {
            let (times, requests) = self.sample(tapes, 0, each, 2)?;
            made += requests;
            // The second sample counts, because the first may have included cold work.
            let took = times.last().map_or(0.0, Duration::as_secs_f64).max(1e-9);
            if took >= seconds / 2.0 || each >= 1 << 24 {
                return Ok((((each as f64 * seconds / took).ceil() as usize).clamp(1, 1 << 24), made));
            }
            each = (each as f64 * (seconds / took).clamp(2.0, 16.0)).ceil() as usize;
        }
    }

    /// Takes samples of `each` chunks on each thread, the first at chunk `first` of its tape.
    /// Returns the duration of each sample, and the total number of requests.
    fn sample(
        &self,
        tapes: &[Tape],
        first: usize,
        each: usize,
        samples: usize,
    ) -> Result<(Vec<Duration>, u64)> {
        let make = |_: usize| self.open.session();
        let work =
            |thread: usize, session: &mut Box<dyn crate::stores::pages::Session + '_>, sample: usize| {
                let Some(tape) = tapes.get(thread) else { return Ok(()) };
                for index in first + sample * each..first + (sample + 1) * each {
                    let (order, expected) = tape.chunk(index);
                    self.hold(session.run(self.access, order)?, expected, order)?;
                }
                Ok(())
            };
        let times = threads::take(self.case.threads, samples, &make, &work)?;
        Ok((times, (0..samples).map(|sample| requests_of(tapes, first, each, sample)).sum()))
    }

    #[inline]
    fn hold(&self, found: u64, expected: u64, order: &[u32]) -> Result<()> {
        if found == expected { Ok(()) } else { Err(sum_is_wrong(self.name, order, expected, found)) }
    }
}

#[cold]
fn sum_is_wrong(name: &str, order: &[u32], expected: u64, found: u64) -> crate::core::error::Error {
    let first = order.first().copied().unwrap_or_default();
    let what = format!(
        "wrong answer: the stamps of {} pages from page {first} on add up to {found:#018x}, \
         expected {expected:#018x}",
        order.len()
    );
    crate::core::error::Error::engine(name, what)
}

fn requests_of(tapes: &[Tape], first: usize, each: usize, sample: usize) -> u64 {
    let of = |tape: &Tape| -> u64 {
        let (start, chunks) = (first + sample * each, tape.chunks().max(1));
        let rest = (start..start + each % chunks).map(|index| tape.chunk(index).0.len() as u64);
        (each / chunks) as u64 * tape.order().len() as u64 + rest.sum::<u64>()
    };
    tapes.iter().map(of).sum()
}

/// Counts the hits among this many requests by one thread, beginning with nothing in memory.
fn count(name: &str, open: &dyn Pages, shape: Shape, requests: usize, seed: u64) -> Result<Option<Turn>> {
    let tape = shape.tape(0, 1, seed);
    let mut session = open.session()?;
    let (mut made, mut index) = (0, 0);
    while made < requests {
        let (order, expected) = tape.chunk(index);
        let found = session.run(Access::Shared, order)?;
        if found != expected {
            return Err(sum_is_wrong(name, order, expected, found));
        }
        made += order.len();
        index += 1;
    }
    drop(session);
    Ok(open.misses().map(|misses| {
        let made = made as u64;
        Turn { nanos: Vec::new(), hits: Some((made.saturating_sub(misses), made)) }
    }))
}

/// Reads the file without any pool, compares each page completely, and returns the sum of the
/// pages' write counts.
fn writes(who: &str, file: &PageFile) -> Result<u64> {
    let open = file.open(OpenOptions::read())?;
    let mut buffer = Buffer::new(file.page_size);
    let mut sum = 0;
    for page in 0..file.pages {
        let bytes = buffer.bytes_mut(file.page_size);
        open.read_exact_at(bytes, u64::from(page) * file.page_size as u64)?;
        page_file::check(who, page, bytes)?;
        sum += word(bytes, WRITES_AT);
    }
    Ok(sum)
}

fn check_writes(who: &str, file: &PageFile, expected: u64) -> Result<()> {
    let found = writes(who, file)?;
    if found == expected {
        return Ok(());
    }
    Err(crate::core::error::Error::engine(
        who,
        format!("lost changes: {expected} were made, {found} are in the file"),
    ))
}
