//! Tables in which many keys have nearly the same hash. By chance there are none; who knows the
//! seed can make one.

use cairn_codec::checksum::xxh3_64_seeded;

use super::super::line::DISTANCE_MAX;
use super::super::place::Place;
use super::super::probe::line_at;
use super::*;

const SEED: u64 = 7;
/// As many as one line can be home to: a few hundred more, and the builder refuses.
const CROWD: usize = 6_900;
/// Fewer than make a second partition, and enough to keep the lines after the crowd full.
const OTHERS: usize = 1_200;

/// Keys that are at home in the first of `home_lines` lines, and others.
fn crowd(home_lines: u32) -> [Vec<Vec<u8>>; 2] {
    let (mut crowd, mut others) = (Vec::new(), Vec::new());
    for n in 0u64.. {
        let key = n.to_le_bytes().to_vec();
        if Place::new(xxh3_64_seeded(&key, SEED), home_lines).home == 0 {
            crowd.push(key);
        } else if others.len() < OTHERS {
            others.push(key);
        }
        if crowd.len() == CROWD {
            break;
        }
    }
    [crowd, others]
}

/// Goal: what the builder accepts, every search answers, also for a key that is absent among lines
/// that are all full.
/// Method: keys of one home, so many that the full lines after it reach farther than any entry may
/// stand from its home; absent keys of all homes, in each reader mode.
#[test]
fn absent_keys_in_a_crowd() {
    let home_lines = ((CROWD + OTHERS) as f64 / (28.0 * options().fill)).ceil() as u32;
    let [crowd, others] = crowd(home_lines);
    let records: Vec<_> = crowd.into_iter().chain(others).map(|key| (key, b"value".to_vec())).collect();
    let fs = fs();
    build(&fs, "t.cairn", options().seed(SEED), &records);
    let model: Model = records.into_iter().collect();
    let absent: Vec<Vec<u8>> = (0..2 * home_lines).map(|n| format!("absent {n}").into_bytes()).collect();
    for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
        let table = open(&fs, "t.cairn", mode);
        assert_eq!(table.partitions.as_slice()[0].home_lines, home_lines);
        let full = (0..).take_while(|&line| !line_at(&table, line).unwrap().is_last()).count();
        assert!(full > DISTANCE_MAX as usize + 10, "{full}");
        agrees(&table, &model, &absent);
    }
}
