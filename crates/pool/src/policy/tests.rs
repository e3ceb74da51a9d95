//! The policies, compared with simple models and checked against the rules that every policy must
//! follow.

mod arc_model;
mod models;
mod world;

use proptest::prelude::*;

use self::models::Model;
use self::world::{Step, World, steps};
use super::lirs::Lirs;
use super::sketch::Sketch;
use super::*;
use crate::replay::{Trace, optimum, replay};

fn model(kind: PolicyKind, capacity: usize) -> Option<Box<dyn Model>> {
    Some(match kind {
        PolicyKind::Lru => Box::new(models::Lru::default()),
        PolicyKind::Clock => Box::new(models::Clock::default()),
        PolicyKind::Sieve => Box::new(models::Sieve::default()),
        PolicyKind::TwoQ => Box::new(models::TwoQ::new(capacity)),
        PolicyKind::LruK => Box::new(models::LruK::new(capacity)),
        PolicyKind::S3Fifo => Box::new(models::S3Fifo::new(capacity)),
        PolicyKind::Arc => Box::new(arc_model::Arc::new(capacity)),
        PolicyKind::Lirs => Box::new(models::Lirs::new(capacity)),
        PolicyKind::WTinyLfu | PolicyKind::Adaptive => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Goal: each policy evicts as described. Method: random requests, pins, removals, evictions
    /// ahead of a miss and resizes, side by side with a model over vectors; the victim must be the
    /// same each time. Two policies have no model and only have to keep the invariants of the
    /// world.
    #[test]
    fn policies_match_their_models(capacity in 1_usize..14, steps in steps(400)) {
        for kind in PolicyKind::ALL {
            let mut world = World::new(kind.build(capacity), model(kind, capacity), capacity);
            world.run(&steps);
        }
    }

    /// Goal: LIRS that evicts by recency from the first request on is LRU. (After a later switch,
    /// it is LRU once the pages that were resident at the switch are gone.) Method: side by side
    /// with the LRU model.
    #[test]
    fn lirs_by_recency_is_lru(capacity in 1_usize..14, steps in steps(400)) {
        let mut lirs = Lirs::new(capacity);
        lirs.set_by_recency(true);
        World::new(Box::new(lirs), Some(Box::new(models::Lru::default())), capacity).run(&steps);
    }

    /// Goal: a stack that switches at any time stays consistent. Method: the world's invariants,
    /// with a switch every few steps.
    #[test]
    fn lirs_stays_consistent_across_switches(capacity in 1_usize..14, turns in proptest::collection::vec(steps(30), 1..12)) {
        let mut world = World::new(Box::new(Lirs::new(capacity)), None, capacity);
        for (turn, steps) in turns.iter().enumerate() {
            world.run_on(steps);
            world.policy.set_by_recency(turn % 2 == 0);
        }
        world.finish();
    }

    /// Goal: ARC has the same hits as in the paper. Method: figure 4 of the paper, implemented over
    /// vectors.
    #[test]
    fn arc_as_in_the_paper(capacity in 1_usize..20, requests in proptest::collection::vec(0_u64..50, 1..600)) {
        let trace = Trace::from_pages(requests.iter().copied());
        prop_assert_eq!(replay(&trace, PolicyKind::Arc, capacity).hits, arc_model::paper_hits(&requests, capacity));
    }

    /// Goal: no policy beats Belady, and each counts every request once. Method: random traces, all
    /// policies.
    #[test]
    fn no_policy_beats_belady(capacity in 0_usize..20, requests in proptest::collection::vec(0_u64..40, 0..400)) {
        let trace = Trace::from_pages(requests);
        let best = optimum(&trace, capacity);
        prop_assert_eq!(best.hits + best.misses, trace.len() as u64);
        for kind in PolicyKind::ALL {
            let outcome = replay(&trace, kind, capacity);
            prop_assert_eq!(outcome.hits + outcome.misses, trace.len() as u64);
            prop_assert!(outcome.hits <= best.hits, "{} has {:?}, the best are {:?}", kind, outcome, best);
        }
    }

    /// Goal: the sketch never undercounts as long as it has not aged. Method: compare with exact
    /// counts, up to the maximum of the counters.
    #[test]
    fn sketch_counts_enough(requests in proptest::collection::vec(0_u64..64, 0..600)) {
        let mut sketch = Sketch::new(64);
        let mut exact = [0_u64; 64];
        for page in requests {
            sketch.count(PageId::from_u64(page));
            exact[page as usize] += 1;
        }
        for (page, &count) in (0..).zip(&exact) {
            prop_assert!(sketch.estimate(PageId::from_u64(page)) >= count.min(15));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Goal: the same with more frames, where one percent, a tenth and a quarter differ and ghosts
    /// fill up. Method: as above, with long runs on hot and cold pages.
    #[test]
    fn policies_match_their_models_with_many_frames(capacity in 100_usize..260, seed in any::<u64>()) {
        let mut dice = seed | 1;
        let mut draw = |n: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % n
        };
        let mut steps = Vec::new();
        for at in 0..2000_u64 {
            steps.push(Step::Request(match draw(4) {
                0 => draw(60),
                1 => 1000 + at % 300,
                _ => draw(900),
            }));
        }
        for kind in PolicyKind::ALL {
            let mut world = World::new(kind.build(capacity), model(kind, capacity), capacity);
            world.run(&steps);
        }
    }
}

/// Goal: old popularity fades. Method: a page counted to the maximum, then many others.
#[test]
fn sketch_ages() {
    let mut sketch = Sketch::new(64);
    let page = PageId::from_u64(1);
    (0..15).for_each(|_| sketch.count(page));
    assert_eq!(sketch.estimate(page), 15);
    (0..3 * 640).for_each(|at| sketch.count(PageId::from_u64(1000 + at)));
    assert!(sketch.estimate(page) < 8, "{}", sketch.estimate(page));
}

/// Goal: scan resistance. Method: twenty hot pages, requested until every policy knows them, then
/// rounds of one request for each of them and a scan of three times the pool; only hot requests can
/// hit.
#[test]
fn a_scan_leaves_the_hot_set() {
    let (hot, rounds) = (20, 50);
    // Out of A1in and the small queue, into the ghosts, and back.
    let mut requests: Vec<u64> = (0..hot).chain(1000..1105).chain(0..hot).chain(0..hot).collect();
    let warm = Trace::from_pages(requests.iter().copied());
    for round in 0..rounds {
        requests.extend((0..300).map(|at| 10_000 + 300 * round + at));
        requests.extend(0..hot);
    }
    let trace = Trace::from_pages(requests);
    for kind in PolicyKind::ALL {
        let hits = replay(&trace, kind, 100).hits - replay(&warm, kind, 100).hits;
        let share = hits as f64 / (hot * rounds) as f64;
        match kind {
            PolicyKind::Lru | PolicyKind::Clock => assert!(share < 0.05, "{kind}: {share}"),
            _ => assert!(share > 0.9, "{kind}: {share}"),
        }
    }
}

/// Goal: scan resistance where the scan is interleaved with hot requests, at which SIEVE is good.
/// Method: a hot set of half the frames, with four scan pages per hot request; 2Q is left out
/// because its ghosts do not reach back to the last request.
#[test]
fn a_scan_between_hot_requests() {
    let (hot, rounds) = (50, 4000);
    let scan = |at: u64| (0..4).map(move |page| 100_000 + 4 * at + page);
    let warm = (0..3 * hot).map(|at| at % hot);
    let trace = Trace::from_pages(
        warm.chain((0..rounds).flat_map(|at| std::iter::once(7 * at % hot).chain(scan(at)))),
    );
    for kind in PolicyKind::ALL {
        let share = replay(&trace, kind, 100).hits.saturating_sub(2 * hot) as f64 / rounds as f64;
        match kind {
            PolicyKind::Lru | PolicyKind::Clock => assert!(share < 0.05, "{kind}: {share}"),
            PolicyKind::TwoQ => {}
            _ => assert!(share > 0.9, "{kind}: {share}"),
        }
    }
}

/// Goal: behaviour on a loop that does not fit. Method: LRU has no hit; LIRS, W-TinyLFU and the
/// default keep most of the part that fits.
#[test]
fn a_loop_that_does_not_fit() {
    let trace = Trace::from_pages((0..20_000).map(|at| at % 200));
    let hits = |kind| replay(&trace, kind, 100).hit_ratio();
    assert_eq!(hits(PolicyKind::Lru), 0.0);
    for kind in [PolicyKind::Lirs, PolicyKind::WTinyLfu, PolicyKind::Adaptive] {
        assert!(hits(kind) > 0.45, "{kind}: {}", hits(kind));
    }
}

/// Goal: the default follows the better policy, in both directions. Method: a loop that does not
/// fit, then requests for recent pages only, then the loop again; in each part, close to the better
/// of LIRS and LRU.
#[test]
fn default_follows_the_better_policy() {
    let mut dice = 0x9E37_79B9_u64;
    let mut draw = |n: u64| {
        dice = dice.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (dice >> 33) % n
    };
    let looped: Vec<u64> = (0..30_000).map(|at| at % 400).collect();
    let recent: Vec<u64> = (0..30_000_u64).map(|at| 1000 + at / 4 + draw(180)).collect();
    for parts in [[&looped, &recent, &looped], [&recent, &looped, &recent]] {
        let mut end = Vec::new();
        let mut before = [0_u64; 3];
        for part in parts {
            end.extend_from_slice(part);
            let trace = Trace::from_pages(end.iter().copied());
            let hits = [PolicyKind::Lru, PolicyKind::Lirs, PolicyKind::Adaptive]
                .map(|kind| replay(&trace, kind, 200).hits);
            let [lru, lirs, adaptive] = std::array::from_fn(|at| hits[at] - before[at]);
            before = hits;
            assert!(adaptive + 900 >= lru.max(lirs), "LRU {lru}, LIRS {lirs}, adaptive {adaptive} of 30000");
        }
    }
}

/// Goal: a sampled shadow decides the same way. Method: pools of 5000 frames, which are sampled, on
/// a loop and on recent pages.
#[test]
fn default_follows_a_sampled_shadow() {
    let mut dice = 7_u64;
    let mut draw = |n: u64| {
        dice = dice.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (dice >> 33) % n
    };
    let looped = Trace::from_pages((0..100_000).map(|at| at % 8000));
    let recent = Trace::from_pages((0..100_000_u64).map(|at| at / 4 + draw(4500)));
    for trace in [looped, recent] {
        let ratio = |kind| replay(&trace, kind, 5000).hit_ratio();
        let best = ratio(PolicyKind::Lru).max(ratio(PolicyKind::Lirs));
        assert!(ratio(PolicyKind::Adaptive) > best - 0.02, "{} of {best}", ratio(PolicyKind::Adaptive));
    }
}

/// Goal: names parse back to the policy in any spelling, and unknown names are refused with a list.
/// Method: all of them.
#[test]
fn names() {
    for kind in PolicyKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(kind.title().parse(), Ok(kind));
        assert_eq!(kind.build(4).kind(), kind);
    }
    let error = "fifo".parse::<PolicyKind>().unwrap_err().to_string();
    for kind in PolicyKind::ALL {
        assert!(error.contains(kind.name()), "{error} does not name {kind}");
    }
    assert_eq!(PolicyKind::default(), PolicyKind::DEFAULT);
}
