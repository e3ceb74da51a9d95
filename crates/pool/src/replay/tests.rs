use super::*;

fn hits(pages: &[u64], kind: PolicyKind, capacity: usize) -> u64 {
    replay(&Trace::from_pages(pages.iter().copied()), kind, capacity).hits
}

/// Goal: LRU, Clock and SIEVE on traces worked out by hand. Method: the comments give the victim of
/// each miss.
#[test]
fn policies_match_traces_worked_by_hand() {
    // LRU, three frames. 4 replaces 2 (1 was just requested), 2 replaces 3, 3 replaces 1.
    assert_eq!(hits(&[1, 2, 3, 1, 4, 2, 3], PolicyKind::Lru, 3), 1);
    // Clock: all unmarked but 1. 4 replaces 2 (1 loses its mark), 2 replaces 3, 1 is hit.
    assert_eq!(hits(&[1, 2, 3, 1, 4, 2, 1], PolicyKind::Clock, 3), 2);
    // SIEVE: the hand clears 1 and evicts 2. It continues at 3 for the next miss, although 1 is
    // older and unmarked.
    assert_eq!(hits(&[1, 2, 3, 1, 4, 5, 1], PolicyKind::Sieve, 3), 2);
    // LRU-2: 1 and 2 were requested twice, so 3, 4 and 5 replace each other.
    assert_eq!(hits(&[1, 2, 1, 2, 3, 4, 5, 1, 2], PolicyKind::LruK, 3), 4);
}

/// Goal: Belady's optimum. Method: the textbook string of twenty pages in three frames, which has
/// nine faults; LRU has twelve.
#[test]
fn optimum_matches_the_textbook() {
    let trace = Trace::from_pages([7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1]);
    assert_eq!(optimum(&trace, 3).misses, 9);
    assert_eq!(replay(&trace, PolicyKind::Lru, 3).misses, 12);
}

/// Goal: the optimum is optimal. Method: try every possible eviction on short traces.
#[test]
fn optimum_matches_exhaustive_search() {
    fn best(requests: &[u64], resident: &[u64], capacity: usize) -> u64 {
        let Some((page, rest)) = requests.split_first() else { return 0 };
        if resident.contains(page) {
            return 1 + best(rest, resident, capacity);
        }
        if resident.len() < capacity {
            return best(rest, &[resident, &[*page]].concat(), capacity);
        }
        let without = |at: usize| [&resident[..at], &resident[at + 1..], &[*page]].concat();
        (0..resident.len()).map(|at| best(rest, &without(at), capacity)).max().unwrap_or(0)
    }
    let mut dice = 1_u64;
    for _ in 0..200 {
        let requests: Vec<u64> = (0..12)
            .map(|_| {
                dice = dice.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                (dice >> 33) % 5
            })
            .collect();
        for capacity in 1..4 {
            let trace = Trace::from_pages(requests.iter().copied());
            assert_eq!(optimum(&trace, capacity).hits, best(&requests, &[], capacity), "{requests:?}");
        }
    }
}

/// Goal: with a frame for each page, only first requests miss, under every policy. Method: one
/// trace, all policies.
#[test]
fn everything_fits() {
    let trace = Trace::from_pages((0..1000).map(|at| (at * at) % 97));
    for kind in PolicyKind::ALL {
        for capacity in [trace.distinct(), trace.distinct() + 5] {
            assert_eq!(replay(&trace, kind, capacity).misses, trace.distinct() as u64, "{kind}");
        }
        assert_eq!(replay(&trace, kind, 0).hits, 0, "{kind}");
    }
    assert_eq!(optimum(&trace, 0).hits, 0);
    assert_eq!(optimum(&trace, trace.distinct()).misses, trace.distinct() as u64);
}

/// Goal: traces in common notations parse, and errors name the bad line. Method: comments, blank
/// lines, further columns; a word.
#[test]
fn parsing() {
    let trace = Trace::parse("# pages\n7\n\n 8 read\r\n7\n").unwrap();
    assert_eq!(trace, Trace::from_pages([7, 8, 7]));
    assert_eq!((trace.len(), trace.distinct(), trace.is_empty()), (3, 2, false));
    let error = Trace::parse("1\ntwo\n").unwrap_err();
    assert_eq!(error, BadLine { line: 2, found: "two".to_owned() });
    assert!(Trace::parse("-1").is_err());
    assert!(Trace::parse("").unwrap().is_empty());
}

/// Goal: tables hold the results of single replays. Method: compare both.
#[test]
fn tables() {
    let trace = Trace::from_pages((0..500).map(|at| (at * 31) % 83));
    let kinds = [PolicyKind::Arc, PolicyKind::Clock];
    let rows = table(&trace, &kinds, &[trace.frames_at(10.0), 40]);
    assert_eq!(rows.iter().map(|row| row.capacity).collect::<Vec<_>>(), [8, 40]);
    for row in rows {
        assert_eq!(row.policies, kinds.map(|kind| (kind, replay(&trace, kind, row.capacity))));
        assert_eq!(row.optimum, optimum(&trace, row.capacity));
    }
    assert_eq!(trace.frames_at(0.0), 1);
}
