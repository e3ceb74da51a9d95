//! Damaged Sparkey files must not cause unbounded allocations in a reader or an index builder.
//!
//! This is a separate test program, because it replaces the global allocator with a counting one.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_hash::sparkey::{
    Compression, Construction, IndexOptions, LogOptions, LogReader, LogWriter, Mode, ReaderOptions,
    SparkeyReader, build_index, build_index_in,
};
use cairn_vfs::{Fs, MemFs, OpenOptions};

/// Forwards all calls to the system allocator and counts the bytes.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LOG: &str = "x.spl";
const INDEX: &str = "x.spi";

/// Memory that a store of less than a kilobyte may need: buffers of fixed sizes, and blocks up to
/// the size to which so many compressed bytes could expand.
const BYTES_MAX: usize = 256 << 10;

fn build(compression: Compression) -> [Vec<u8>; 2] {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = LogOptions::default().compression(compression).block_bytes(200).identifier(7);
    let mut writer = LogWriter::create_in(&fs, LOG, &options).unwrap();
    for n in 0..10 {
        writer.put(format!("key {n}").as_bytes(), format!("value {n}").repeat(n).as_bytes()).unwrap();
    }
    writer.put(b"key 3", b"new").unwrap();
    writer.delete(b"key 5").unwrap();
    writer.close().unwrap();
    build_index_in(&fs, LOG, &IndexOptions::default().seed(1)).unwrap();
    [LOG, INDEX].map(|name| fs.open(Path::new(name), OpenOptions::read()).unwrap().map().unwrap().to_vec())
}

fn store(files: &[Vec<u8>; 2]) -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    for (name, bytes) in [LOG, INDEX].into_iter().zip(files) {
        fs.open(Path::new(name), OpenOptions::create()).unwrap().write_all_at(bytes, 0).unwrap();
    }
    fs
}

/// Performs every kind of operation on two files and ignores errors. Returns the maximum memory
/// held at once.
fn exercise(files: &[Vec<u8>; 2]) -> usize {
    let fs = store(files);
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    for mode in [Mode::Mmap, Mode::Pread] {
        if let Ok(log) = LogReader::open_in(&fs, LOG, mode) {
            let mut scan = log.scan();
            while let Ok(Some(mut entry)) = scan.next_entry() {
                let _ = entry.value();
            }
        }
        if let Ok(reader) = SparkeyReader::open_in(&fs, LOG, &ReaderOptions::default().mode(mode)) {
            for n in 0..12 {
                let _ = reader.get(format!("key {n}").as_bytes());
            }
            let _ = reader.verify();
        }
    }
    for construction in [Construction::InMemory, Construction::Sorting { memory_bytes: 1 << 16 }] {
        let _ = build_index_in(&fs, LOG, &IndexOptions::default().construction(construction));
    }
    PEAK.load(Ordering::Relaxed) - before
}

/// Serializes the tests that count.
static COUNTING: Mutex<()> = Mutex::new(());

/// Goal: memory stays in proportion to the files, whatever damage a bit or a field has. Method:
/// every flipped bit, every four and eight bytes set to large values, and every truncation, in both
/// files of a store with each compression; check the maximum memory held.
#[test]
fn damage_does_not_allocate_at_will() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    for compression in [Compression::None, Compression::Snappy, Compression::ZSTD] {
        let sound = build(compression);
        let mut most = 0;
        for file in 0..2 {
            for at in 0..sound[file].len() {
                let mut cut = sound.clone();
                cut[file].truncate(at);
                most = most.max(exercise(&cut));
                for bit in 0..8 {
                    let mut files = sound.clone();
                    files[file][at] ^= 1 << bit;
                    most = most.max(exercise(&files));
                }
                for width in [4, 8] {
                    for byte in [0x7f, 0xff] {
                        let mut files = sound.clone();
                        let end = sound[file].len().min(at + width);
                        files[file][at..end].fill(byte);
                        most = most.max(exercise(&files));
                    }
                }
            }
        }
        assert!(most <= BYTES_MAX, "{compression:?}: {most} bytes were held at once");
        assert!(most > 10_000, "{compression:?}: only {most} bytes were held, so nothing was counted");
    }
}

/// Builds a log of some 3 MB in small records, none longer than 120 bytes, with its index.
fn build_large(compression: Compression) -> [Vec<u8>; 2] {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = LogOptions::default().compression(compression).block_bytes(200).identifier(7);
    let mut writer = LogWriter::create_in(&fs, LOG, &options).unwrap();
    for n in 0..30_000u32 {
        let value: Vec<u8> =
            (0..100u32).map(|m| ((n * 100 + m).wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        writer.put(format!("key {n:05}").as_bytes(), &value).unwrap();
    }
    writer.close().unwrap();
    build_index_in(&fs, LOG, &IndexOptions::default().seed(1)).unwrap();
    [LOG, INDEX].map(|name| fs.open(Path::new(name), OpenOptions::read()).unwrap().map().unwrap().to_vec())
}

/// Goal: a damaged length is trusted only up to the maxima in the header, not up to the size of the
/// log. Method: the first record, or block, of a large log claims 2 MiB minus one; look it up, and
/// scan the log.
#[test]
fn lengths_beyond_the_header_do_not_allocate() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let huge = [0xff, 0xff, 0x7f];
    for compression in [Compression::None, Compression::Snappy, Compression::ZSTD] {
        let mut files = build_large(compression);
        assert!(files[0].len() > 3_000_000);
        if compression == Compression::None {
            assert_eq!(files[0][84..95], *b"\x0a\x64key 00000");
            files[0][85..88].copy_from_slice(&huge);
            files[0][88..97].copy_from_slice(b"key 00000");
        } else {
            files[0][84..87].copy_from_slice(&huge);
        }
        let fs = store(&files);
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let reader = SparkeyReader::open_in(&fs, LOG, &ReaderOptions::default().mode(Mode::Pread)).unwrap();
        reader.get(b"key 00000").unwrap_err();
        let mut value = Vec::new();
        reader.get_into(b"key 00000", &mut value).unwrap_err();
        reader.scan_log().next_entry().map(|_| ()).unwrap_err();
        let held = PEAK.load(Ordering::Relaxed) - before;
        // A scan reads ahead by 256 KiB.
        assert!(held < 600 << 10, "{compression:?}: {held} bytes were held at once");
    }
}

/// Goal: the batches of an index build do not accumulate long keys. Method: as many keys of 1 MiB
/// as a batch has records; check the maximum memory held.
#[test]
fn long_keys_are_not_gathered() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut writer = LogWriter::create_in(&fs, LOG, &LogOptions::default()).unwrap();
    for n in 0..64 {
        writer.put(&vec![n; 1 << 20], b"").unwrap();
    }
    writer.close().unwrap();
    let options = IndexOptions::default().construction(Construction::InMemory);
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    build_index_in(&fs, LOG, &options).unwrap();
    let held = PEAK.load(Ordering::Relaxed) - before;
    assert!(held < 8 << 20, "{held} bytes were held at once");
}

/// Goal: a build keeps its memory limit, whatever the size of the log. Method: a log of many
/// records, a third of which are overwritten, on a real disk; the maximum memory held must depend
/// on the limit and not on the log.
#[test]
fn builds_keep_their_limit() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.spl");
    let limit = 512 << 10;
    for compression in [Compression::None, Compression::Snappy] {
        let options = LogOptions::default().compression(compression).replace(true);
        let mut writer = LogWriter::create(&path, &options).unwrap();
        for n in 0..60_000u32 {
            writer.put(format!("key {}", n % 40_000).as_bytes(), &n.to_le_bytes().repeat(10)).unwrap();
        }
        writer.close().unwrap();
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let auto = IndexOptions::default().construction(Construction::Auto { memory_bytes: limit });
        let summary = build_index(&path, &auto).unwrap();
        let held = PEAK.load(Ordering::Relaxed) - before;
        assert!(summary.sorted && summary.header.entries == 40_000, "{summary:?}");
        // A growing buffer is counted twice here while it is copied. Memory outside the limit:
        // pages of the index, windows of the log.
        assert!(held as u64 <= 2 * limit + (1 << 20), "{compression:?}: {held} bytes were held at once");
    }
}
