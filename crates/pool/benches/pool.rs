//! Nanoseconds per call of the pool, without a peer, for work on the pool itself. `cairn bench
//! pool` compares with peers.
//!
//! `cargo bench -p cairn-pool --bench pool -- [hits|cold|scan|threads|dirty] [policy]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use cairn_pool::{BackgroundWriter, FileOptions, Format, Lsn, PolicyKind, Pool, PoolFile};
use cairn_vfs::{File, Fs, OpenOptions, StdFs};

const PAGE: usize = 4096;

fn report(name: &str, count: usize, time: Duration) {
    let nanos = time.as_nanos() as f64 / count as f64;
    println!("{name:<44} {nanos:>9.1} ns   {:>8.2} M/s", 1e3 / nanos);
}

/// Returns the minimum over some rounds, to filter out other load on the machine.
fn least(rounds: usize, mut round: impl FnMut() -> Duration) -> Duration {
    (0..rounds).map(|_| round()).min().unwrap()
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn shuffled(pages: u32, count: usize) -> Vec<u32> {
    let mut state = 12345u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32 % pages
    };
    (0..count).map(|_| next()).collect()
}

struct Bed {
    dir: tempfile::TempDir,
    policy: PolicyKind,
}

impl Bed {
    fn raw(&self, direct: bool) -> Box<dyn File> {
        StdFs::new()
            .open(&self.dir.path().join("pages"), OpenOptions { direct, ..OpenOptions::create() })
            .unwrap()
    }

    fn pool(&self, frames: usize) -> Pool {
        Pool::builder()
            .frames(frames)
            .policy(self.policy)
            .background_writer(BackgroundWriter::Off)
            .build()
            .unwrap()
    }

    fn file(&self, pool: &Pool, format: Format, direct: bool) -> PoolFile {
        pool.open(self.raw(direct), FileOptions::new().format(format)).unwrap()
    }

    /// Recreates the file with this many pages, each holding its own number.
    fn fill(&self, pages: u32, format: Format) {
        self.raw(false).set_len(0).unwrap();
        let pool = self.pool(1024);
        let file = self.file(&pool, format, false);
        for page in 0..pages {
            let mut guard = file.create(page).unwrap();
            guard.payload_mut(Lsn::NONE)[..4].copy_from_slice(&page.to_le_bytes());
        }
        file.close().unwrap();
    }
}

fn number(page: &[u8]) -> u32 {
    u32::from_le_bytes(page[..4].try_into().unwrap())
}

fn hits(bed: &Bed) {
    for (pages, frames) in [(10u32, 12usize), (1000, 1200), (100_000, 110_000)] {
        bed.fill(pages, Format::Checked);
        let pool = bed.pool(frames);
        let file = bed.file(&pool, Format::Checked, false);
        file.prefetch(0..pages);
        let order = shuffled(pages, 1_000_000);
        let each = |name: &str, call: &dyn Fn(u32) -> u32| {
            let best =
                least(5, || time(|| order.iter().for_each(|&page| assert_eq!(black_box(call(page)), page))));
            report(&format!("{name}, {pages} pages"), order.len(), best);
        };
        each("shared", &|page| number(&file.read(page).unwrap()));
        each("shared, not read", &|page| file.read(page).unwrap().id().page());
        each("exclusive", &|page| number(&file.write(page).unwrap()));
        each("exclusive, changed", &|page| {
            let mut guard = file.write(page).unwrap();
            number(guard.payload_mut(Lsn(1)))
        });
        each("optimistic", &|page| {
            let view = file.optimistic(page).unwrap();
            let number = view.u32(0).unwrap();
            view.validate().unwrap();
            number
        });
        each("read_with", &|page| file.read_with(page, |view| view.u32(0)).unwrap());
        drop(file);
    }
}

fn cold(bed: &Bed) {
    let pages = 20_000;
    for (format, direct) in
        [(Format::Raw, false), (Format::Checked, false), (Format::Raw, true), (Format::Checked, true)]
    {
        bed.fill(pages, format);
        let order = shuffled(pages, if direct { 20_000 } else { 200_000 });
        let name = format!("{format:?}{}", if direct { ", direct" } else { "" });
        for frames in [12, 1000] {
            let pool = bed.pool(frames);
            let file = bed.file(&pool, format, direct);
            let raw = bed.raw(direct);
            let mut buffer = cairn_vfs::memory::Buffer::new(PAGE * frames).unwrap();
            let skip = if format == Format::Checked { 16 } else { 0 };
            let (mut bare, mut cold) = (Vec::new(), Vec::new());
            for _ in 0..9 {
                let mut at = 0;
                bare.push(time(|| {
                    for &page in &order {
                        // Vary the destination as a pool of that size would, instead of always
                        // reading into the same bytes.
                        at = (at + 1) % frames;
                        let place = &mut buffer[at * PAGE..(at + 1) * PAGE];
                        raw.read_exact_at(place, u64::from(page) * PAGE as u64).unwrap();
                        assert_eq!(number(&place[skip..]), page);
                    }
                }));
                cold.push(time(|| {
                    order.iter().for_each(|&page| assert_eq!(number(&file.read(page).unwrap()), page))
                }));
            }
            bare.sort();
            cold.sort();
            report(&format!("raw read, {name}, {frames} frames"), order.len(), bare[4]);
            report(&format!("cold pin, {name}, {frames} frames"), order.len(), cold[4]);
            println!(
                "{:<44} {:>9.3}   least {:.3}",
                "",
                cold[4].as_secs_f64() / bare[4].as_secs_f64(),
                cold[0].as_secs_f64() / bare[0].as_secs_f64()
            );
        }
    }
}

fn scan(bed: &Bed) {
    let pages = 50_000;
    for (format, direct) in
        [(Format::Raw, false), (Format::Checked, false), (Format::Raw, true), (Format::Checked, true)]
    {
        bed.fill(pages, format);
        let name = format!("{format:?}{}", if direct { ", direct" } else { "" });
        let pool = bed.pool(4096);
        let file = bed.file(&pool, format, direct);
        let raw = bed.raw(direct);
        let skip = if format == Format::Checked { 16 } else { 0 };
        for window in [1, 16, 64, 256] {
            // As much memory as the pool cycles through.
            let mut buffer = cairn_vfs::memory::Buffer::new(4096 * PAGE).unwrap();
            let bare = least(5, || {
                time(|| {
                    for (chunk, at) in (0..pages).step_by(window).zip(0..) {
                        let count = window.min((pages - chunk) as usize);
                        let start = at % (4096 / window) * window;
                        let place = &mut buffer[start * PAGE..(start + count) * PAGE];
                        raw.read_exact_at(place, u64::from(chunk) * PAGE as u64).unwrap();
                        place
                            .chunks(PAGE)
                            .zip(chunk..)
                            .for_each(|(bytes, page)| assert_eq!(number(&bytes[skip..]), page));
                    }
                })
            });
            report(&format!("raw read of {window}, {name}"), pages as usize, bare);
            let scan = least(5, || {
                time(|| {
                    file.scan(0..pages)
                        .window(window as u32)
                        .zip(0..)
                        .for_each(|(guard, page)| assert_eq!(number(&guard.unwrap()), page))
                })
            });
            report(&format!("scan of {window}, {name}"), pages as usize, scan);
        }
    }
}

fn threads(bed: &Bed) {
    bed.fill(4096, Format::Checked);
    let pool = bed.pool(5000);
    let file = bed.file(&pool, Format::Checked, false);
    file.prefetch(0..4096);
    type Call<'a> = &'a (dyn Fn(u32) -> u32 + Sync);
    let shared: Call<'_> = &|page| number(&file.read(page).unwrap());
    let optimistic: Call<'_> = &|page| file.read_with(page, |view| view.u32(0)).unwrap();
    for (name, call, hot) in [
        ("pin, own pages", shared, None),
        ("hot set of 4, shared", shared, Some(4u32)),
        ("hot set of 4, optimistic", optimistic, Some(4)),
    ] {
        for threads in [1usize, 2, 4, 16, 256] {
            // Long enough for the scheduler to spread many threads.
            let each = 60_000_000 / threads;
            let best = least(3, || {
                let barrier = Barrier::new(threads + 1);
                std::thread::scope(|scope| {
                    for thread in 0..threads {
                        let barrier = &barrier;
                        scope.spawn(move || {
                            // Each thread uses its own pages, or all use the same few.
                            let (from, pages) = match hot {
                                Some(pages) => (0, pages),
                                None => ((thread * 4096 / threads) as u32, (4096 / threads) as u32),
                            };
                            barrier.wait();
                            for at in 0..each as u32 {
                                let page = from + at % pages;
                                assert_eq!(call(page), page);
                            }
                            barrier.wait();
                        });
                    }
                    // The time starts before the threads are released: with more threads than
                    // processors, this one may be the last to run again.
                    time(|| {
                        barrier.wait();
                        barrier.wait();
                    })
                })
            });
            report(&format!("{name}, {threads} threads"), each * threads, best);
        }
    }
}

fn dirty(bed: &Bed) {
    let pages = 20_000;
    bed.fill(pages, Format::Checked);
    let pool = bed.pool(12);
    let file = bed.file(&pool, Format::Checked, false);
    let raw = bed.raw(false);
    let order = shuffled(pages, 100_000);
    let mut page_bytes = vec![1; PAGE];
    let bare = least(5, || {
        time(|| {
            for &page in &order {
                let offset = u64::from(page) * PAGE as u64;
                raw.read_exact_at(&mut page_bytes, offset).unwrap();
                raw.write_all_at(&page_bytes, offset).unwrap();
            }
        })
    });
    report("raw read and write", order.len(), bare);
    let dirty = least(5, || {
        time(|| order.iter().for_each(|&page| file.write(page).unwrap().payload_mut(Lsn::NONE)[4] += 1))
    });
    report("dirty eviction", order.len(), dirty);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wants = |part: &str| {
        let parts = ["hits", "cold", "scan", "threads", "dirty"];
        !arguments.iter().any(|argument| parts.contains(&argument.as_str()))
            || arguments.iter().any(|argument| argument == part)
    };
    let policies: Vec<PolicyKind> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let policies = if policies.is_empty() { vec![PolicyKind::Clock] } else { policies };
    for policy in policies {
        println!("{policy}");
        let bed = Bed { dir: tempfile::tempdir().unwrap(), policy };
        type Part = fn(&Bed);
        let parts: [(&str, Part); 5] =
            [("hits", hits), ("cold", cold), ("scan", scan), ("threads", threads), ("dirty", dirty)];
        parts.into_iter().filter(|(name, _)| wants(name)).for_each(|(_, part)| part(&bed));
    }
}
