//! A pool and a model of it: each page has a version, which its bytes repeat from end to end.

use std::path::Path;
use std::time::Duration;

use cairn_pool::{BackgroundWriter, Error, FileOptions, Lsn, PolicyKind, Pool, PoolFile, Result};
use cairn_vfs::{FaultFs, Fs, OpenOptions, Rng, SeededRng};

pub const PAGE: usize = 4096;

/// The parameters of a run, drawn from a seed.
#[derive(Debug, Clone)]
pub struct Shape {
    pub frames: usize,
    pub pages: u32,
    pub policy: PolicyKind,
    pub double_write: bool,
}

impl Shape {
    pub fn new(seed: u64, double_write: bool) -> Self {
        let mut rng = SeededRng::new(seed).fork("shape");
        Shape {
            frames: 2 + rng.below(6) as usize,
            pages: 4 + rng.below(12) as u32,
            policy: PolicyKind::ALL[rng.below(PolicyKind::ALL.len() as u64) as usize],
            double_write,
        }
    }
}

/// Fills a page's payload with its number and a version.
pub fn put(payload: &mut [u8], page: u32, version: u32) {
    let pattern = (u64::from(page) << 32 | u64::from(version)).to_le_bytes();
    payload.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&pattern));
}

/// Returns the version of a page, which must be whole and in its own place; 0 for a page that was
/// never written.
pub fn version(payload: &[u8], page: u32) -> u32 {
    let first = u64::from_le_bytes(payload[..8].try_into().unwrap());
    let words = payload.as_chunks::<8>().0;
    assert!(words.iter().all(|word| u64::from_le_bytes(*word) == first), "page {page} is torn");
    assert!(first == 0 || first >> 32 == u64::from(page), "page {page} holds page {}", first >> 32);
    first as u32
}

/// An operation on a pool.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Read(u32),
    ReadWith(u32),
    Write(u32),
    Create(u32),
    Prefetch(u32, u32),
    Scan(u32, u32),
    Flush,
    Sync,
    Resize(usize),
}

impl Step {
    pub fn draw(rng: &mut SeededRng, shape: &Shape) -> Step {
        let page = rng.below(u64::from(shape.pages)) as u32;
        match rng.below(100) {
            0..20 => Step::Read(page),
            20..30 => Step::ReadWith(page),
            30..70 => Step::Write(page),
            70..76 => Step::Create(page),
            76..80 => Step::Prefetch(page, page + rng.below(6) as u32),
            80..84 => Step::Scan(page, shape.pages),
            84..90 => Step::Flush,
            90..96 => Step::Sync,
            _ => Step::Resize(1 + rng.below(8) as usize),
        }
    }
}

/// A pool, its file, and the expected content.
pub struct Run {
    pub fs: FaultFs,
    pub shape: Shape,
    pub pool: Pool,
    pub file: PoolFile,
    /// The version that a reader must find, for each page.
    pub versions: Vec<u32>,
    /// The minimum version that a power loss must leave: written and then synced.
    pub durable: Vec<u32>,
    written: Vec<u32>,
}

pub fn open(fs: &FaultFs, shape: &Shape) -> Result<(Pool, PoolFile)> {
    let pool = Pool::builder()
        .frames(shape.frames)
        .max_frames(16)
        .policy(shape.policy)
        .background_writer(BackgroundWriter::Off)
        .wait_limit(Duration::from_millis(50))
        .build()?;
    let mut options = FileOptions::new();
    if shape.double_write {
        options = options.double_write(fs.open(Path::new("/double"), OpenOptions::create())?);
    }
    let file = pool.open(fs.open(Path::new("/pages"), OpenOptions::create())?, options)?;
    Ok((pool, file))
}

impl Run {
    /// Creates a durable file with pages of version 1.
    pub fn new(fs: &FaultFs, shape: &Shape) -> Run {
        let (pool, file) = open(fs, shape).unwrap();
        for page in 0..shape.pages {
            put(file.create(page).unwrap().payload_mut(Lsn::NONE), page, 1);
        }
        file.flush().unwrap();
        file.sync().unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        let versions = vec![1; shape.pages as usize];
        let (durable, written) = (versions.clone(), versions.clone());
        Run { fs: fs.clone(), shape: shape.clone(), pool, file, versions, durable, written }
    }

    /// Kills the process and lets another one open the file: written pages stay in the page cache,
    /// and unwritten changes are gone.
    pub fn killed(self) -> Run {
        let Run { fs, shape, pool, file, durable, .. } = self;
        // Nothing is flushed.
        std::mem::forget((pool, file));
        let (pool, file) = open(&fs, &shape).unwrap();
        let versions: Vec<u32> =
            (0..shape.pages).map(|page| version(&file.read(page).unwrap(), page)).collect();
        Run { written: versions.clone(), fs, shape, pool, file, versions, durable }
    }

    fn check(&self, page: u32, found: u32) {
        assert_eq!(found, self.versions[page as usize], "page {page}");
    }

    /// Executes one step. Compares everything read with the model, which an error leaves unchanged.
    pub fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Read(page) => self.check(page, version(&self.file.read(page)?, page)),
            Step::ReadWith(page) => {
                let mut bytes = [0; PAGE - 16];
                self.file.read_with(page, |view| view.copy_to(0, &mut bytes))?;
                self.check(page, version(&bytes, page));
            }
            Step::Write(page) => {
                let mut guard = self.file.write(page)?;
                assert_eq!(version(&guard, page), self.versions[page as usize], "page {page}");
                self.versions[page as usize] += 1;
                put(guard.payload_mut(Lsn::NONE), page, self.versions[page as usize]);
            }
            Step::Create(page) => {
                let mut guard = self.file.create(page)?;
                assert!(guard.iter().all(|&byte| byte == 0));
                self.versions[page as usize] += 1;
                put(guard.payload_mut(Lsn::NONE), page, self.versions[page as usize]);
            }
            Step::Prefetch(from, to) => _ = self.file.prefetch(from..to.min(self.shape.pages)),
            Step::Scan(from, to) => {
                for (page, guard) in (from..to).zip(self.file.scan(from..to)) {
                    self.check(page, version(&guard?, page));
                }
            }
            Step::Flush => {
                self.file.flush()?;
                self.written.clone_from(&self.versions);
            }
            Step::Sync => {
                self.file.sync()?;
                self.durable.clone_from(&self.written);
            }
            Step::Resize(frames) => self.pool.resize(frames)?,
        }
        Ok(())
    }

    /// Asserts that everything readable matches the model, now and after another pool opens the
    /// file.
    pub fn check_all(self) {
        for page in 0..self.shape.pages {
            self.check(page, version(&self.file.read(page).unwrap(), page));
        }
        let Run { fs, shape, pool, file, versions, .. } = self;
        // No frame has been lost by the policy.
        let resident = (0..64).filter(|&page| file.is_resident(page)).count();
        assert_eq!(pool.stats().resident, resident);
        file.close().unwrap();
        let stats = pool.stats();
        assert_eq!((stats.dirty, stats.resident), (0, 0), "{stats:?}");
        let (_pool, file) = open(&fs, &shape).unwrap();
        for (page, &expected) in (0..).zip(&versions) {
            assert_eq!(version(&file.read(page).unwrap(), page), expected, "page {page}, opened again");
        }
    }
}

/// Returns true when nothing can be written until the file is reopened.
pub fn is_poisoned(error: &Error) -> bool {
    matches!(error, Error::Poisoned { .. })
}
