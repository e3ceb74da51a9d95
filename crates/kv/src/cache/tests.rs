//! Capacity, eviction order, removed tables and threads.

use cairn_vfs::{Rng, SeededRng};
use proptest::prelude::*;

use super::*;

fn block(len: usize) -> Arc<Block> {
    Arc::new(Block::for_tests(len))
}

/// Returns the weight of a block of `block(len)`.
fn weight(len: usize) -> u64 {
    block(len).weight() as u64
}

/// Looks up a block and inserts it on a miss, as a table does. Returns true on a hit.
fn ask(cache: &Cache, slots: &Arc<Slots>, index: usize, len: usize) -> bool {
    if slots.get(index).is_some() {
        cache.count_hit(true);
        return true;
    }
    cache.count_miss(true);
    cache.insert(slots, index, block(len));
    false
}

/// Goal: a lookup returns the inserted block itself, and a second insertion keeps the first block.
/// Method: single operations.
#[test]
fn hits_and_misses() {
    let cache = Cache::new(1 << 20);
    let slots = cache.slots(4);
    assert!(slots.get(2).is_none() && slots.get(99).is_none());
    let first = cache.insert(&slots, 2, block(100));
    let found = slots.get(2).and_then(|guard| guard.as_ref().map(Arc::clone)).unwrap();
    assert!(Arc::ptr_eq(&first, &found) && slots.has(2) && !slots.has(1));
    let second = cache.insert(&slots, 2, block(100));
    assert!(Arc::ptr_eq(&first, &second));
    assert!(ask(&cache, &slots, 2, 100) && !ask(&cache, &slots, 3, 100));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.inserts, stats.evictions), (1, 1, 2, 0));
    assert_eq!(stats.used_bytes, 2 * weight(100));
}

/// Goal: lookups of data blocks are counted apart from those of indexes and filters, and the totals
/// include both. Method: direct counts.
#[test]
fn counters_know_what_was_asked_for() {
    let cache = Cache::new(1 << 20);
    (0..3).for_each(|_| cache.count_hit(true));
    (0..5).for_each(|_| cache.count_hit(false));
    (0..7).for_each(|_| cache.count_miss(true));
    cache.count_miss(false);
    (0..2).for_each(|_| cache.count_filter_skipping());
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (8, 8));
    assert_eq!((stats.data_hits, stats.data_misses, stats.filters_skipping), (3, 7, 2));
}

/// Goal: with no capacity nothing is kept, and a block larger than the capacity is returned
/// uncached. Method: both.
#[test]
fn too_large_is_returned() {
    for capacity in [0, 1000] {
        let cache = Cache::new(capacity);
        let slots = cache.slots(1);
        assert_eq!(cache.insert(&slots, 0, block(5000)).weight() as u64, weight(5000));
        assert!(slots.get(0).is_none());
        assert_eq!((cache.stats().used_bytes, cache.stats().rejected), (0, 1));
    }
}

/// Goal: blocks accessed repeatedly survive a scan of many blocks accessed once. Method: a hot set
/// of half the capacity is accessed twice, then a hundred times the capacity is scanned, with an
/// occasional access to a hot block.
#[test]
fn scans_do_not_push_out_what_is_hot() {
    let room = 400;
    let cache = Cache::new(room * weight(200));
    let (hot, cold) = (cache.slots(200), cache.slots(40_000));
    for _ in 0..2 {
        (0..200).for_each(|index| _ = ask(&cache, &hot, index, 200));
    }
    let mut kept = 0;
    for index in 0..40_000 {
        ask(&cache, &cold, index, 200);
        if index % 8 == 0 {
            kept += u64::from(ask(&cache, &hot, index / 8 % 200, 200));
        }
    }
    println!("{kept} of 5000 questions for hot blocks hit");
    assert!(kept >= 4900, "{kept}");
}

/// Goal: a block that was evicted for lack of room and returns soon is treated as hot. Method: a
/// loop slightly larger than the small queue but within the total capacity stays cached after some
/// rounds.
#[test]
fn returning_blocks_stay() {
    let cache = Cache::new(100 * weight(200));
    let (noise, looped) = (cache.slots(100_000), cache.slots(30));
    let mut hits = [0; 20];
    let mut next = 0;
    for round in &mut hits {
        for index in 0..30 {
            *round += usize::from(ask(&cache, &looped, index, 200));
            ask(&cache, &noise, next, 200);
            next += 1;
        }
    }
    assert!(hits[19] >= 28, "{hits:?}");
}

/// Goal: pinned bytes reduce the room at once, and give it back. Method: pin half of the capacity,
/// then more than all of it.
#[test]
fn pinning_takes_room() {
    let capacity = 100 * weight(200);
    let cache = Cache::new(capacity);
    let slots = cache.slots(200);
    (0..200).for_each(|index| _ = ask(&cache, &slots, index, 200));
    assert!(cache.stats().used_bytes > capacity * 9 / 10);
    assert!(cache.can_pin(capacity / 2) && !cache.can_pin(capacity / 2 + 1));
    assert!(cache.pin(capacity / 2));
    assert!(cache.stats().used_bytes <= capacity / 2);
    assert!(!cache.pin(capacity));
    assert_eq!(cache.stats().used_bytes, 0);
    cache.unpin(capacity + capacity / 2);
    (0..200).for_each(|index| _ = ask(&cache, &slots, index, 200));
    assert!(cache.stats().used_bytes > capacity * 9 / 10);
    cache.set_capacity(1000);
    assert!(cache.stats().used_bytes <= 1000);
}

/// Goal: the blocks of a removed table are removed, and so are its queue entries. Method: thousands
/// of tables come and go in a cache that is never full; in the end the queues contain only entries
/// of the last ones.
#[test]
fn tables_go() {
    let cache = Cache::new(1 << 30);
    for _ in 0..2000 {
        let slots = cache.slots(20);
        (0..20).for_each(|index| _ = ask(&cache, &slots, index, 50));
        assert_eq!(cache.stats().used_bytes, 20 * weight(50));
        cache.remove(&slots);
        assert_eq!(cache.stats().used_bytes, 0);
    }
    let queued: usize = cache.shards.iter().map(Shard::queued).sum();
    assert!(queued < 64 * cache.shards.len() + 100, "{queued} entries of dead tables");
}

/// Goal: threads that look up, insert and remove tables never exceed the capacity, and leave no
/// byte counted. Method: four threads on one small cache, each of which checks the total
/// repeatedly.
#[test]
fn threads() {
    let cache = Arc::new(Cache::new(2 << 20));
    let shared: Vec<_> = (0..4).map(|_| cache.slots(2000)).collect();
    cairn_vfs::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, shared) = (Arc::clone(&cache), &shared);
            scope.spawn(move || {
                let mut rng = SeededRng::new(thread);
                for round in 0..20_000 {
                    let slots = &shared[rng.below(4) as usize];
                    let index = (rng.below(2000) * rng.below(2000) / 2000) as usize;
                    ask(&cache, slots, index, 100 + index % 5 * 400);
                    if let Some(guard) = slots.get(index) {
                        assert!(guard.as_ref().is_some_and(|block| block.may_contain_for_tests(1)));
                    }
                    if round % 500 == 0 {
                        let own = cache.slots(30);
                        (0..30).for_each(|index| _ = ask(&cache, &own, index, 500));
                        cache.remove(&own);
                    }
                    if round % 100 == 0 {
                        let stats = cache.stats();
                        assert!(stats.used_bytes <= stats.capacity_bytes, "{stats:?}");
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    assert!(stats.evictions > 1000 && stats.hits > 1000, "{stats:?}");
    shared.iter().for_each(|slots| cache.remove(slots));
    assert_eq!(cache.stats().used_bytes, 0);
}

proptest! {
    #![proptest_config(crate::test_config::cases(64))]

    /// Goal: the counted bytes are those of the cached blocks and never exceed the capacity.
    /// Method: random lookups, pins and removals, with the slots as the model.
    #[test]
    fn accounting(
        steps in prop::collection::vec((0u8..20, 0usize..6, 0usize..60, 0usize..5), 1..600),
        capacity in prop_oneof![Just(5_000u64), Just(60_000), Just(40 << 20)],
    ) {
        let cache = Cache::new(capacity);
        let mut tables: Vec<_> = (0..6).map(|_| cache.slots(60)).collect();
        let mut pinned = 0;
        for (kind, table, index, size) in steps {
            match kind {
                0 => {
                    let gone = std::mem::replace(&mut tables[table], cache.slots(60));
                    cache.remove(&gone);
                }
                1 => {
                    pinned += index as u64 * 10;
                    cache.pin(index as u64 * 10);
                }
                2 => {
                    cache.unpin(pinned);
                    pinned = 0;
                }
                _ => _ = ask(&cache, &tables[table], index, [10, 100, 700, 3000, 20_000][size]),
            }
            let held: u64 = tables
                .iter()
                .flat_map(|slots| (0..60).filter_map(|at| slots.peek(at)))
                .map(|block| block.weight() as u64)
                .sum();
            let stats = cache.stats();
            prop_assert_eq!(held, stats.used_bytes);
            prop_assert!(held == 0 || held + pinned <= capacity, "{:?}", stats);
        }
    }
}
