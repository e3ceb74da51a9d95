//! Single parts: heads and the arena.

use cairn_vfs::Rng;
use proptest::prelude::*;

use crate::memtable::arena::Arena;
use crate::memtable::probe;

use super::*;

proptest! {
    #![proptest_config(crate::test_config::cases(256))]

    /// Goal: a head is the eight bytes after an offset, padded with zeros past the end, and heads
    /// never contradict the order of keys. Method: comparison with a padded copy.
    #[test]
    fn heads(key in prop::collection::vec(any::<u8>(), 0..20), other in prop::collection::vec(0..3_u8, 0..20), at in 0..24_usize) {
        let padded = [&key[..], &[0; 40]].concat();
        let expected = u64::from_be_bytes(padded[at..at + 8].try_into().unwrap());
        prop_assert_eq!(probe::head(&key, at), if at < key.len() { expected } else { 0 });
        let (a, b) = (probe::head(&key, 0), probe::head(&other, 0));
        if a != b {
            prop_assert_eq!(a.cmp(&b), key.cmp(&other));
        }
        prop_assert_eq!(probe::prefix_words(&key), [0, 8, 16].map(|at| probe::head(&key, at)));
        let common = probe::common_prefix(&key, &other);
        prop_assert_eq!(&key[..common], &other[..common]);
        prop_assert!(key.get(common).is_none() || key.get(common) != other.get(common));
    }
}

/// Goal: each piece of memory is handed out once and aligned, whatever its size. Method: allocate
/// many pieces and check that none overlap.
#[test]
fn arena_pieces_are_apart() {
    let (arena, mut rng) = (Arena::new(), SeededRng::new(3));
    let mut pieces = Vec::new();
    for number in 0..2_000 {
        let len = if rng.chance(0.01) { rng.below(3 << 20) } else { rng.below(200) } as usize + 1;
        let start = arena.entry(len, number, Kind::Put, len);
        assert_eq!(start.as_ptr() as usize % 8, 0);
        pieces.push((start.as_ptr() as usize, len));
    }
    assert!(pieces.iter().map(|(_, len)| len).sum::<usize>() <= arena.allocated_bytes());
    pieces.sort_unstable();
    assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    assert_eq!(arena.counts().entries, 2_000);
}
