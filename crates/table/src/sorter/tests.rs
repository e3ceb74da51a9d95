use std::path::Path;

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, MemFs, Operation, Rng, SeededRng};
use proptest::prelude::*;

use super::*;

fn scratch(fs: impl Fs, memory: usize) -> Scratch {
    Scratch { fs: Arc::new(fs), path: PathBuf::from("sort"), memory }
}

fn all(sorter: Sorter) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut sorted = sorter.finish()?;
    let mut found = Vec::new();
    while let Some((key, value)) = sorted.next()? {
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok(found)
}

proptest! {
    #![proptest_config(crate::test_config::cases(200))]

    /// Goal: the output contains the same records as the input, in order, for every amount of
    /// memory: enough for everything, for a single record, or so little that runs are merged in
    /// several passes.
    #[test]
    fn sorted_output_equals_input(
        records in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), 0usize..90), 0..300),
        memory in prop::sample::select(vec![1usize, 600, 2_000, 1 << 20]),
    ) {
        let fs = MemFs::new();
        let mut sorter = Sorter::new(scratch(fs.clone(), memory));
        let mut expected = Vec::new();
        for (key, len) in &records {
            // The value includes the key, because the order of equal keys is unspecified.
            let value = [&key[..], &vec![7; *len]].concat();
            sorter.push(key, &value).unwrap();
            let used = sorter.bytes.len() + sorter.places.len() * size_of::<Place>();
            prop_assert!(used <= memory || sorter.places.len() == 1, "{} bytes of {}", used, memory);
            expected.push((key.clone(), value));
        }
        let mut found = all(sorter).unwrap();
        prop_assert!(found.is_sorted_by_key(|(key, _)| key.clone()));
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
        prop_assert!(!fs.exists(Path::new("sort")).unwrap(), "the file is nobody's but the sorter's");
    }
}

fn push(sorter: &mut Sorter, count: u32) -> Result<()> {
    let mut rng = SeededRng::new(1);
    (0..count).try_for_each(|_| sorter.push(&rng.below(1 << 40).to_be_bytes(), &[9; 50]))
}

/// Goal: a failed operation is reported, and nothing is missing otherwise. Method: each operation
/// in turn fails, and full disks.
#[test]
fn failed_operations_are_reported() {
    for fault in [Fault::Io, Fault::Full, Fault::Short] {
        let mut told = 0;
        for index in 0.. {
            let disk = FaultFs::new(FaultOptions::seeded(1));
            disk.inject(Rule::at(index, fault));
            let mut sorter = Sorter::new(scratch(disk.clone(), 4_000));
            match push(&mut sorter, 500).and_then(|()| all(sorter)) {
                Ok(found) => assert_eq!(found.len(), 500),
                Err(error) => {
                    told += 1;
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                }
            }
            if disk.operation_count() <= index {
                break;
            }
        }
        assert!(told > 20 || fault == Fault::Short, "{fault:?}: {told}");
    }
}

/// Goal: corrupt data in the file is detected. Method: flips a bit of each read in turn.
#[test]
fn flipped_bits_are_detected() {
    let mut told = 0;
    for nth in 0..200 {
        let disk = FaultFs::new(FaultOptions::seeded(nth));
        disk.inject(Rule::nth(Operation::Read, nth, Fault::BitFlip));
        let mut sorter = Sorter::new(scratch(disk.clone(), 4_000));
        push(&mut sorter, 300).unwrap();
        match all(sorter) {
            Ok(found) => assert!(found.len() == 300 && disk.injected_count() == 0),
            Err(error) => {
                // A corrupt length that points beyond the end of the file fails in the read.
                told += 1;
                assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io), "{error}");
            }
        }
    }
    assert!(told > 20, "{told}");
}
