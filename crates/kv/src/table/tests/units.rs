//! Tests of the small parts: separators, footers, properties, frames.

use proptest::prelude::*;

use super::super::footer::{FOOTER_BYTES, Footer, FooterError};
use super::super::frame::{Handle, Header, Role, Sealer};
use super::super::index::separator;
use super::super::properties::Properties;
use super::*;

proptest! {
    #![proptest_config(crate::test_config::cases(2000))]

    /// Goal: separators lie between their keys and are no longer than needed.
    /// Method: random pairs of similar keys.
    #[test]
    fn separators(
        common in prop::collection::vec(any::<u8>(), 0..4),
        a in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xfe), Just(0xff)], 0..5),
        b in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xfe), Just(0xff)], 0..5),
    ) {
        let (last, next) = ([&common[..], a.as_slice().min(&b)].concat(), [&common[..], a.as_slice().max(&b)].concat());
        let mut between = Vec::new();
        separator(&last, &next, &mut between);
        prop_assert!(last <= between, "{:?} {:?} {:?}", last, between, next);
        prop_assert!(between < next || (last == next && between == next), "{:?} {:?} {:?}", last, between, next);
        prop_assert!(between.len() <= last.len().max(next.len().saturating_sub(1)), "{:?} {:?} {:?}", last, between, next);
    }

    /// Goal: frames survive the round trip, and their header has the right sizes.
    /// Method: random payloads of every compression.
    #[test]
    fn frames(raw in prop::collection::vec(0u8..6, 0..2000), at in 0usize..5, number: u64, offset: u64) {
        let mut sealer = Sealer::new(number, compressions()[at]).unwrap();
        let mut out = b"before".to_vec();
        let handle = sealer.seal(Role::Data, &raw, offset, &mut out).unwrap();
        let frame = &out[6..];
        prop_assert_eq!(handle, Handle { offset, len: frame.len() as u32 });
        prop_assert!(frame.len() <= raw.len() + 20);
        let header = Header::check(frame, number, offset, Role::Data).unwrap();
        let unpacked = header.unpack(&frame[20..], None).unwrap();
        prop_assert_eq!(&unpacked[..], &raw[..]);
        prop_assert!(Header::check(frame, number, offset, Role::Index).is_err());
        prop_assert!(Header::check(frame, number.wrapping_add(1), offset, Role::Data).is_err());
        prop_assert!(Header::check(frame, number, offset.wrapping_add(1), Role::Data).is_err());
    }

    /// Goal: properties survive the round trip; truncated or changed ones are refused or harmless.
    /// Method: random properties.
    #[test]
    fn properties(
        numbers: [u64; 6], smallest: Vec<u8>, blobs: Vec<(u64, u64)>, bits in 0.5f64..32.0, at in 0usize..5, cut: usize,
    ) {
        let properties = Properties {
            entries: numbers[0],
            data_blocks: numbers[1] as u32,
            data_bytes: numbers[2] | 1 << 33,
            seqnos: (numbers[3], numbers[4]),
            expires_secs: numbers[5],
            smallest,
            blobs,
            filter: Some(FilterPolicy::ribbon(bits)),
            prefix: Some(PrefixExtractor::UpTo(numbers[0] as u8)),
            compression: compressions()[at],
            ..Properties::default()
        };
        let bytes = properties.encode();
        prop_assert_eq!(Properties::decode(&bytes), Some(properties.clone()));
        let cut = cut % bytes.len();
        prop_assert_eq!(Properties::decode(&bytes[..cut]), None);
        let mut longer = bytes.clone();
        longer.extend([99, 2, 0, 0]);
        prop_assert_eq!(Properties::decode(&longer), Some(properties), "a later version's field is skipped");
    }
}

/// Goal: a footer is refused for each possible defect.
/// Method: one change each.
#[test]
fn footers() {
    let handle = |offset, len| Handle { offset, len };
    let footer = Footer { top: handle(100, 50), properties: handle(20, 80), number: 9, body: 77 };
    let bytes = footer.encode();
    assert_eq!(Footer::decode(&bytes, 150 + FOOTER_BYTES as u64), Ok(footer));
    assert!(matches!(Footer::decode(&bytes, 149 + FOOTER_BYTES as u64), Err(FooterError::Damaged(_))));
    for at in 0..FOOTER_BYTES {
        let mut other = bytes;
        other[at] ^= 1;
        assert!(Footer::decode(&other, 1000).is_err(), "{at}");
    }
    let of_version = |version: u8, body: u64| {
        let mut other = Footer { body, ..footer }.encode();
        other[40] = version;
        let checksum = cairn_codec::checksum::xxh3_64(&other[..48]);
        other[48..56].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Footer::sum_of(&other), checksum);
        Footer::decode(&other, 1000)
    };
    assert_eq!(of_version(3, 77), Err(FooterError::Version(3)));
    assert_eq!(of_version(1, 77), Err(FooterError::Damaged("version 1 has a zero at 32")));
    assert_eq!(of_version(1, 0), Ok(Footer { body: 0, ..footer }));
}

/// Goal: the extractors return the documented prefixes.
/// Method: fixed examples.
#[test]
fn extractors() {
    assert_eq!(PrefixExtractor::Fixed(3).prefix_of(b"abcd"), Some(&b"abc"[..]));
    assert_eq!(PrefixExtractor::Fixed(3).prefix_of(b"ab"), None);
    assert_eq!(PrefixExtractor::UpTo(b'/').prefix_of(b"a/b/c"), Some(&b"a/"[..]));
    assert_eq!(PrefixExtractor::UpTo(b'/').prefix_of(b"abc"), None);
}
