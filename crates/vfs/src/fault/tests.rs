//! Shows each fault happening, and not happening without its cause.

use super::*;
use crate::Rng;

mod crash;
mod crash_names;
mod determinism;
mod faults;
mod model;
mod space;
mod sweeps;
mod sync;

fn quiet() -> FaultFs {
    FaultFs::new(FaultOptions::default())
}

fn create(fs: &FaultFs, path: &str) -> Box<dyn File> {
    fs.open(Path::new(path), OpenOptions::create()).unwrap()
}

fn write(fs: &FaultFs, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = create(fs, path);
    file.write_all_at(bytes, 0).unwrap();
    file
}

/// Installs a durable file and opens it.
fn install(fs: &FaultFs, path: &str, bytes: &[u8]) -> Box<dyn File> {
    fs.install(Path::new(path), bytes).unwrap();
    fs.open(Path::new(path), OpenOptions::write()).unwrap()
}

fn read(fs: &FaultFs, path: &str) -> Option<Vec<u8>> {
    fs.bytes_of(Path::new(path))
}

fn files(fs: &FaultFs) -> Vec<String> {
    fs.files().into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// Returns the distinct results of `look` over many random images.
fn over_images<T: Ord>(
    fs: &FaultFs,
    count: u64,
    look: impl Fn(&FaultFs) -> T,
) -> std::collections::BTreeSet<T> {
    let point = fs.crash_point();
    (0..count).map(|seed| look(&point.image(CrashImage::Random(seed)))).collect()
}
