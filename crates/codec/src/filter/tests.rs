//! No false negatives, false positives as in theory, hostile bytes.

use proptest::prelude::*;

use super::*;
use crate::checksum::xxh3_64;

const KINDS: [FilterKind; 2] = [FilterKind::Bloom, FilterKind::Ribbon];

fn hash(n: u64) -> u64 {
    xxh3_64(&n.to_le_bytes())
}

fn build(policy: FilterPolicy, keys: u64) -> Vec<u8> {
    let mut builder = FilterBuilder::new(policy);
    (0..keys).for_each(|n| builder.add(hash(n)));
    let mut out = Vec::new();
    builder.finish(&mut out).unwrap();
    assert!(builder.is_empty());
    out
}

/// Returns the share of absent keys that pass.
fn measured_rate(bytes: &[u8], questions: u64) -> f64 {
    let filter = Filter::parse(bytes).unwrap();
    let passed = (0..questions).filter(|n| filter.may_contain(bytes, hash(1 << 40 | n))).count();
    passed as f64 / questions as f64
}

/// Goal: present keys always pass. Method: filters of all sizes around a line and a block, with
/// many bit budgets.
#[test]
fn no_false_negatives() {
    for kind in KINDS {
        for keys in [0, 1, 2, 3, 50, 100, 127, 128, 129, 500, 5000] {
            for bits_per_key in [0.5, 1.0, 1.7, 4.0, 7.3, 10.0, 16.0, 21.5, 32.0] {
                let bytes = build(FilterPolicy { kind, bits_per_key }, keys);
                let filter = Filter::parse(&bytes).unwrap();
                assert_eq!(filter.kind(), kind);
                for n in 0..keys {
                    assert!(filter.may_contain(&bytes, hash(n)), "{kind:?} {bits_per_key} {keys} {n}");
                }
            }
        }
    }
}

/// Goal: filters have the requested size and the theoretical false positive rate. Method: 100,000
/// keys, a million lookups; five standard deviations and a twentieth of the rate are allowed.
#[test]
fn false_positives_match_theory() {
    let (keys, questions) = (100_000, 1_000_000);
    for kind in KINDS {
        for bits_per_key in [1.0, 3.3, 6.0, 8.0, 10.0, 12.5, 16.0] {
            let policy = FilterPolicy { kind, bits_per_key };
            let bytes = build(policy, keys);
            let bits = bytes.len() as f64 * 8.0 / keys as f64;
            assert!((bits / bits_per_key - 1.0).abs() < 0.01, "{policy:?} took {bits} bits a key");
            let (expected, rate) = (policy.false_positive_rate(), measured_rate(&bytes, questions));
            println!("{policy:?}: {rate:.6} measured, {expected:.6} expected");
            let allowed = 5.0 * (expected / questions as f64).sqrt() + expected / 20.0;
            assert!((rate - expected).abs() < allowed, "{policy:?}: {rate} against {expected}");
        }
    }
}

/// Goal: ribbon is worth its cost. Method: at 7.2 bits it has no more false positives than bloom
/// at 10.
#[test]
fn ribbon_is_smaller() {
    let bloom = measured_rate(&build(FilterPolicy::bloom(10.0), 50_000), 500_000);
    let ribbon = measured_rate(&build(FilterPolicy::ribbon(7.2), 50_000), 500_000);
    println!("bloom 10 bits: {bloom:.5}, ribbon 7.2 bits: {ribbon:.5}");
    assert!(ribbon <= bloom, "{ribbon} against {bloom}");
}

/// Goal: the binary format is fixed. Method: the checksum of two filters, as first written.
#[test]
fn golden() {
    let sums = KINDS.map(|kind| xxh3_64(&build(FilterPolicy { kind, bits_per_key: 9.5 }, 1000)));
    assert_eq!(sums, GOLDEN, "{sums:#x?}");
}

const GOLDEN: [u64; 2] = [0x4bdd_5079_7e10_4555, 0x91e3_5a0d_ca51_4ca4];

/// Goal: out-of-range policies are refused. Method: each limit and values beyond it.
#[test]
fn policies_are_checked() {
    for sound in [0.5, 10.0, 32.0] {
        assert!(FilterPolicy::bloom(sound).check().is_ok());
    }
    for bad in [0.0, 0.49, -1.0, 33.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(FilterPolicy::ribbon(bad).check(), Err(Error::Filter { .. })), "{bad}");
        build(FilterPolicy::ribbon(bad), 10);
    }
}

/// Goal: truncation and wrong trailers are refused. Method: every prefix, and every bit of the
/// trailer flipped, which must be refused or harmless.
#[test]
fn damage_is_refused_or_harmless() {
    for kind in KINDS {
        let bytes = build(FilterPolicy { kind, bits_per_key: 10.3 }, 600);
        for len in 0..bytes.len() {
            if let Ok(filter) = Filter::parse(&bytes[..len]) {
                panic!("{kind:?} cut to {len} is taken for {filter:?}");
            }
        }
        for bit in 0..8 * TRAILER_BYTES {
            let mut other = bytes.clone();
            let at = bytes.len() - 1 - bit / 8;
            other[at] ^= 1 << (bit % 8);
            if let Ok(filter) = Filter::parse(&other) {
                (0..1000).for_each(|n| _ = filter.may_contain(&other, hash(n)));
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::test_config::cases(64))]

    /// Goal: garbage is harmless. Method: random data under trailers with small numbers, which
    /// sometimes parse.
    #[test]
    fn garbage(
        data in prop::collection::vec(any::<u8>(), 0..400),
        units in 0u32..8, first_wide in 0u32..8, kind in 0u8..4, bits in 0u8..20, hashes: [u64; 8],
    ) {
        let mut bytes = data;
        for whole in [false, true] {
            if whole {
                let columns = u64::from(units) * u64::from(bits) + u64::from(units.saturating_sub(first_wide));
                bytes.resize(if kind == 1 { units as usize * 64 } else { columns as usize * 16 }, 7);
            }
            let mut bytes = bytes.clone();
            Trailer { units, first_wide, kind, bits }.push(&mut bytes);
            if let Ok(filter) = Filter::parse(&bytes) {
                hashes.iter().for_each(|&hash| _ = filter.may_contain(&bytes, hash));
                prop_assert!(filter.may_contain(&[], hashes[0]), "other bytes prove nothing");
            }
        }
    }
}
