//! The cache under schedules that follow from a seed: see `testing/schedules.rs`. Loading a slot
//! and replacing its block are one step each (`crate::swap`).

use cairn_vfs::thread;

use super::*;
use crate::schedules::explore;

/// All blocks of these tests are equal; only the slots matter.
const BLOCK_BYTES: usize = 100;

fn block() -> Arc<Block> {
    Arc::new(Block::for_tests(BLOCK_BYTES))
}

/// Looks up a block and loads it on a miss, as a table does, then uses it.
fn ask(cache: &Cache, slots: &Arc<Slots>, index: usize) {
    let found = slots.get(index).and_then(|guard| guard.as_ref().map(Arc::clone));
    let block = match found {
        Some(block) => {
            cache.count_hit(true);
            block
        }
        None => {
            cache.count_miss(true);
            cache.insert(slots, index, block())
        }
    };
    assert!(block.may_contain_for_tests(1));
}

fn assert_within(cache: &Cache, limit: u64) {
    let used = cache.stats().used_bytes;
    assert!(used <= limit, "{used} bytes of {limit}");
}

/// Goal: threads that look up, load, evict and remove blocks of several tables never exceed the
/// capacity, count no byte twice and leave none behind. Method: a cache of a few blocks; two
/// threads look up blocks of a shared table and of a table of their own, which they remove in the
/// end; a third thread pins, unpins and shrinks.
#[test]
fn load_evict_remove() {
    explore(2_000, || {
        let weight = block().weight() as u64;
        let cache = Cache::new(4 * weight);
        let shared = cache.slots(4);
        thread::scope(|scope| {
            for thread in 0..2 {
                let (cache, shared) = (&cache, &shared);
                scope.spawn(move || {
                    let own = cache.slots(3);
                    for index in [0, 1, 0, 2] {
                        ask(cache, shared, (index + thread) % 4);
                        ask(cache, &own, index);
                        assert_within(cache, 4 * weight);
                    }
                    cache.remove(&own);
                    assert!((0..3).all(|index| own.peek(index).is_none()));
                });
            }
            let (cache, shared) = (&cache, &shared);
            scope.spawn(move || {
                assert!(cache.pin(weight));
                assert_within(cache, 3 * weight);
                ask(cache, shared, 3);
                assert_within(cache, 3 * weight);
                cache.unpin(weight);
                cache.set_capacity(3 * weight);
                ask(cache, shared, 0);
                assert_within(cache, 3 * weight);
            });
        });
        let held: u64 = (0..4).filter_map(|at| shared.peek(at)).map(|block| block.weight() as u64).sum();
        assert_eq!(held, cache.stats().used_bytes);
        cache.remove(&shared);
        let stats = cache.stats();
        assert_eq!((stats.used_bytes, stats.pinned_bytes), (0, 0));
        assert!(stats.hits + stats.misses == 18 && stats.misses >= stats.inserts, "{stats:?}");
    });
}

/// Goal: if several threads load the same block, one wins and all get the winner's block. Method:
/// three threads at once, with and without room for the block.
#[test]
fn one_loader_wins() {
    for room in [0, 2] {
        explore(500, move || {
            let cache = Cache::new(room * block().weight() as u64);
            let slots = cache.slots(1);
            let got = cairn_vfs::sync::Mutex::new(Vec::new());
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let block = cache.insert(&slots, 0, block());
                        cairn_vfs::sync::lock(&got).push(block);
                    });
                }
            });
            let got = got.into_inner().unwrap();
            let winner = slots.peek(0);
            assert_eq!(winner.is_some(), room > 0);
            assert!(winner.is_none_or(|winner| got.iter().all(|block| Arc::ptr_eq(block, &winner))));
            assert_eq!(cache.stats().inserts, room.min(1));
        });
    }
}
