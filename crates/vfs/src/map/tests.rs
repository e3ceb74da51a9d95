use std::path::Path;

use super::*;
use crate::{Fs, MemFs, OpenOptions, StdFs};

/// Returns `len` bytes of a pattern whose period divides no page size.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn on_disk(directory: &Path, bytes: &[u8]) -> Box<dyn File> {
    let file = StdFs::new().open(&directory.join("f"), OpenOptions::create()).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

/// Returns maps of the same bytes, one for each kind of owner.
fn every_kind(directory: &Path, bytes: &[u8]) -> Vec<Map> {
    let file = on_disk(directory, bytes);
    vec![file.map().unwrap(), Map::copy_of(&*file).unwrap(), Map::from_vec(bytes.to_vec())]
}

/// Goal: every kind shows the file's bytes, at sizes around page and huge-page edges; empty files
/// are fine.
#[test]
fn shows_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    for len in [0, 1, 4095, 4096, 4097, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 5 * HUGE_PAGE_BYTES + 17] {
        let bytes = pattern(len);
        for map in every_kind(directory.path(), &bytes) {
            assert!(*map == *bytes, "{map:?}");
            let (clone, kind) = (map.clone(), format!("{map:?}"));
            drop(map);
            assert!(clone.as_ref() == bytes, "{kind} after its first handle is gone");
        }
    }
}

/// Goal: a copy large enough for huge pages begins on a huge-page boundary, or the kernel cannot
/// use one.
#[test]
fn copies_are_aligned_for_huge_pages() {
    let map = Map::filled(HUGE_PAGE_BYTES + 5, |bytes| bytes[HUGE_PAGE_BYTES] = 9).unwrap();
    assert_eq!(map.as_ptr().addr() % HUGE_PAGE_BYTES, 0);
    assert_eq!((map[0], map[HUGE_PAGE_BYTES]), (0, 9));
}

/// Goal: a prefetch makes any range of any kind resident and reports exactly its bytes.
#[test]
fn prefetch_makes_resident() {
    let directory = tempfile::tempdir().unwrap();
    for map in every_kind(directory.path(), &pattern(300_000)) {
        for range in [0..300_000, 1..2, 4000..4200, 299_999..300_000, 250_000..999_999_999] {
            let expected = range.end.min(300_000) - range.start;
            let report = map.load(range.clone(), Load::Prefetch);
            let whole =
                LoadReport { requested_bytes: expected, resident_bytes: expected, ..Default::default() };
            assert_eq!(report, whole, "{map:?} {range:?}");
        }
    }
}

/// Goal: empty ranges load nothing and report nothing, reversed ranges included.
#[test]
#[allow(clippy::reversed_empty_ranges)]
fn empty_ranges() {
    let directory = tempfile::tempdir().unwrap();
    let maps =
        every_kind(directory.path(), &pattern(100)).into_iter().chain(every_kind(directory.path(), &[]));
    for map in maps {
        for range in [0..0, 100..200, 7..3, usize::MAX..usize::MAX] {
            assert_eq!(map.load(range.clone(), Load::Lock), LoadReport::default());
            map.advise(range, Advice::WillNeed);
        }
    }
}

/// Goal: `Load::None` measures residency without changing it. Method: a sparse anonymous map with
/// one page touched.
#[test]
fn none_only_measures() {
    let map = Map::filled(64 << 10, |bytes| bytes[20_000] = 1).unwrap();
    let page = rustix::param::page_size();
    for _ in 0..2 {
        assert_eq!(map.load(0..map.len(), Load::None).resident_bytes, page);
    }
    assert_eq!(map.load(20_000..20_001, Load::None).resident_bytes, 1);
    assert_eq!(map.load(0..1, Load::None).resident_bytes, 0);
}

/// Goal: a lock either holds all bytes or explains why not, and in both cases the bytes are
/// resident; a locked heap map can be freed. Method: 64 KiB, which the default limit of 64 KiB to 8
/// MiB may or may not allow.
#[test]
fn lock_holds_or_explains() {
    let directory = tempfile::tempdir().unwrap();
    for map in every_kind(directory.path(), &pattern(64 << 10)) {
        let report = map.load(10..map.len(), Load::Lock);
        assert_eq!(report.resident_bytes, report.requested_bytes);
        match &report.problem {
            None => assert_eq!(report.locked_bytes, report.requested_bytes),
            Some(problem) => {
                assert_eq!(report.locked_bytes, 0);
                assert!(problem.contains("RLIMIT_MEMLOCK"), "{problem}");
            }
        }
    }
}

/// Goal: no advice ever changes the content. `DontNeed` on private memory would zero it if passed
/// on.
#[test]
fn advice_keeps_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = pattern(40_000);
    let advice = [Advice::Normal, Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::DontNeed];
    for map in every_kind(directory.path(), &bytes) {
        for advice in advice {
            map.advise(0..map.len(), advice);
            map.advise(5000..5001, advice);
            assert!(*map == *bytes, "{map:?} {advice:?}");
        }
    }
}

/// Goal: copying a file that is shorter than its reported length fails with an error that names it.
#[test]
fn copy_of_a_shrinking_file() {
    #[derive(Debug)]
    struct Claims(Box<dyn File>);
    impl File for Claims {
        fn path(&self) -> &Path {
            self.0.path()
        }
        fn id(&self) -> crate::FileId {
            self.0.id()
        }
        fn len(&self) -> Result<u64> {
            Ok(100)
        }
        fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
            self.0.read_at(buf, offset)
        }
        fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
            self.0.write_at(buf, offset)
        }
        fn set_len(&self, len: u64) -> Result<()> {
            self.0.set_len(len)
        }
        fn allocate(&self, offset: u64, len: u64) -> Result<()> {
            self.0.allocate(offset, len)
        }
        fn sync_data(&self) -> Result<()> {
            self.0.sync_data()
        }
        fn try_lock(&self) -> Result<()> {
            self.0.try_lock()
        }
        fn advise(&self, offset: u64, len: u64, advice: Advice) {
            self.0.advise(offset, len, advice);
        }
        fn map(&self) -> Result<Map> {
            self.0.map()
        }
    }
    let file = MemFs::new().open(Path::new("short"), OpenOptions::create()).unwrap();
    file.write_all_at(&pattern(60), 0).unwrap();
    let error = Map::copy_of(&Claims(file)).unwrap_err();
    assert_eq!(
        (error.operation, error.offset, error.path.as_path()),
        (Operation::Read, Some(60), Path::new("short"))
    );
}
