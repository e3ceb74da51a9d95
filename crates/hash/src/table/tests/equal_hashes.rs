//! Tables with many keys of nearly the same hash. They do not occur by chance, but an attacker who
//! knows the seed can make one.

use cairn_codec::checksum::xxh3_64_seeded;

use super::super::line::DISTANCE_MAX;
use super::super::place::Place;
use super::super::probe::line_at;
use super::*;

const SEED: u64 = 7;
/// As many keys as one line can be the home of. With a few hundred more, the builder refuses.
const CROWD: usize = 6_900;
/// Too few for a second partition, and enough to keep the lines after the crowd full.
const OTHERS: usize = 1_200;

/// Returns keys whose home is the first of `home_lines` lines, and others.
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

/// Goal: searches succeed in every table that the builder accepts, also for an absent key among
/// lines that are all full.
/// Method: so many keys of one home that the full lines after it extend beyond the maximum distance
/// of an entry from its home; absent keys of all homes, in each reader mode.
#[test]
fn absent_keys_among_equal_hashes() {
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
