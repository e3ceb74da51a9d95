use std::collections::BTreeMap;

use cairn_vfs::{Rng, SeededRng};

use super::*;
use crate::storage::node::{Bounds, Node};

const PAYLOAD: usize = 4080;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// The distribution of a column's values.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Constant,
    Near,
    Any,
    Few,
    Rising,
    Null,
}

const KINDS: [Kind; 6] = [Kind::Constant, Kind::Near, Kind::Any, Kind::Few, Kind::Rising, Kind::Null];

fn number(kind: Kind, at: usize, rng: &mut SeededRng) -> i128 {
    match kind {
        Kind::Constant | Kind::Null => -77,
        Kind::Near => 1_000_000_007 + i128::from(rng.below(500)),
        Kind::Any => i128::from(rng.next_u64() as i64) << rng.below(50),
        Kind::Few => [i128::MIN, -1, 12_345_678_901_234_567_890, 3][rng.below(4) as usize],
        Kind::Rising => at as i128 * 3,
    }
}

fn text(kind: Kind, at: usize, rng: &mut SeededRng) -> Vec<u8> {
    const WORDS: [&str; 8] = ["river ", "stone ", "ledger ", "harbour ", "signal ", "copper ", "é\0", ""];
    match kind {
        Kind::Constant => b"the same".to_vec(),
        Kind::Null => Vec::new(),
        Kind::Any => (0..rng.below(20)).map(|_| rng.below(256) as u8).collect(),
        Kind::Near => (0..rng.below(9)).flat_map(|_| WORDS[rng.below(8) as usize].bytes()).collect(),
        Kind::Few => WORDS[rng.below(8) as usize].as_bytes().to_vec(),
        Kind::Rising => format!("number {at:08x}").into_bytes(),
    }
}

/// Builds the value of a record as the format specifies it.
fn value(layout: &Layout, kinds: &[Kind], nulls: u64, at: usize, rng: &mut SeededRng) -> Vec<u8> {
    let mut value = vec![0];
    match layout.lead {
        Lead::Nothing => {}
        Lead::Length => value.extend([9 + (at % 3) as u8, 0]),
        Lead::Bytes => {
            let key = text(Kind::Rising, at, rng);
            value.extend((key.len() as u16).to_le_bytes());
            value.extend(key);
        }
    }
    let mut bits = vec![0u8; layout.widths.len().div_ceil(8)];
    let (mut fixed, mut ends, mut body) = (Vec::new(), Vec::new(), Vec::new());
    for (column, (&width, &kind)) in layout.widths.iter().zip(kinds).enumerate() {
        let is_null = matches!(kind, Kind::Null) || rng.below(100) < nulls;
        bits[column / 8] |= u8::from(is_null) << (column % 8);
        let number = if is_null { 0 } else { number(kind, at, rng) };
        fixed.extend(&number.to_le_bytes()[..usize::from(width)]);
        if width == 0 {
            body.extend(if is_null { Vec::new() } else { text(kind, at, rng) });
            ends.extend((body.len() as u16).to_le_bytes());
        }
    }
    [value, bits, fixed, ends, body].concat()
}

/// Generates keys in order: consecutive numbers, sparse numbers, several columns, texts.
fn keys(form: u64, count: usize, rng: &mut SeededRng) -> Vec<Vec<u8>> {
    let mut keys = BTreeMap::new();
    for at in 0..count as u64 {
        let key = match form {
            0 => (0x8000_0000_0000_1000 + at).to_be_bytes().to_vec(),
            1 => [&b"\x01table"[..], &(rng.next_u64() >> 30).to_be_bytes()].concat(),
            2 => [rng.next_u64().to_be_bytes(), rng.next_u64().to_be_bytes()].concat(),
            3 => [[1; 8], (at / 40).to_be_bytes(), rng.next_u64().to_be_bytes()].concat(),
            4 => "common ".bytes().chain((0..rng.below(12)).map(|_| rng.below(4) as u8)).collect(),
            _ => [vec![7], [rng.next_u64().to_be_bytes(); 4].concat()].concat(),
        };
        keys.insert(key, ());
    }
    keys.into_keys().collect()
}

struct Case {
    layout: Layout,
    records: Records,
    rng: SeededRng,
}

fn case(seed: u64, count: usize) -> Case {
    let mut rng = SeededRng::new(seed).fork("packed");
    let lead = [Lead::Nothing, Lead::Length, Lead::Bytes][rng.below(3) as usize];
    let widths: Vec<u8> = (0..rng.below(9)).map(|_| [0, 0, 1, 2, 4, 8, 16][rng.below(7) as usize]).collect();
    let kinds: Vec<Kind> = widths.iter().map(|_| KINDS[rng.below(6) as usize]).collect();
    let layout = Layout { lead, widths };
    let nulls = [0, 0, 20][rng.below(3) as usize];
    let form = rng.below(6);
    let records = keys(form, count, &mut rng).into_iter().enumerate();
    let records = records.map(|(at, key)| (key, value(&layout, &kinds, nulls, at, &mut rng))).collect();
    Case { layout, records, rng }
}

/// Packs as many of the first records as fit into a page.
fn packed(case: &Case) -> (Vec<u8>, usize) {
    let mut packer = Packer::new(case.layout.clone(), PAYLOAD);
    for (key, value) in &case.records {
        assert!(packer.push(key, value));
    }
    packer.prepare();
    let lower = vec![0];
    let (count, plan) = packer.fit(lower.len(), case.records.len()).unwrap();
    let bounds = Bounds { lower: Some(&lower), upper: Some(&case.records[count - 1].0) };
    (packer.page(&plan, bounds).unwrap(), count)
}

fn record(page: &[u8], at: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    Node(page).key(at, &mut key).unwrap();
    Node(page).value(at, &mut value).unwrap();
    (key, value)
}

/// Checks that a page contains the records, and that searches find them and the gaps between them.
fn has(page: &[u8], records: &[(Vec<u8>, Vec<u8>)], rng: &mut SeededRng) {
    let node = Node(page);
    assert_eq!(node.count().unwrap(), records.len());
    for (at, expected) in records.iter().enumerate() {
        assert!(record(page, at) == *expected, "{at}");
        assert_eq!(node.search(&expected.0).unwrap(), (at, true));
        let mut other = expected.0.clone();
        match rng.below(4) {
            0 => other.push(rng.below(256) as u8),
            1 => _ = other.pop(),
            _ => {
                let at = rng.below(other.len() as u64) as usize;
                other[at] = other[at].wrapping_add(1 + rng.below(255) as u8);
            }
        }
        let place = records.binary_search_by(|record| record.0.cmp(&other));
        let (place, is_there) = place.map_or_else(|place| (place, false), |place| (place, true));
        assert_eq!(node.search(&other).unwrap(), (place, is_there), "{other:?}");
    }
    let mut unpacked = Unpacked::default();
    let start = rng.below(records.len() as u64) as usize;
    let range = start..start + 1 + rng.below((records.len() - start) as u64) as usize;
    unpacked.fill(Packed(page), range.clone(), None).unwrap();
    for at in range {
        let (key, value) = unpacked.record(at).unwrap();
        assert!(key == records[at].0 && value == records[at].1);
    }
}

/// Goal: a packed leaf returns its records byte for byte, by key, by position and together. So do
/// its parts, and the same leaf with other bounds. Method: random layouts, kinds of values and of
/// keys.
#[test]
fn records_round_trip() {
    let mut forms = std::collections::BTreeSet::new();
    for seed in 0..150 {
        let mut case = case(seed, 40 + seed as usize * 5);
        let (page, count) = packed(&case);
        let records = case.records[..count].to_vec();
        has(&page, &records, &mut case.rng);
        for nth in 0..Packed(&page[..]).shape().unwrap().0 {
            let stream = Packed(&page[..]).stream(nth).unwrap();
            forms.insert((
                stream.form,
                stream.bits.min(1),
                stream.nulls.clamp(0, 2) + stream.nulls / ALL_NULL,
            ));
        }
        let cut = 1 + case.rng.below(count as u64 - 1) as usize;
        let separator = records[cut].0.clone();
        for (range, bounds) in [
            (0..cut, Bounds { lower: None, upper: Some(&separator[..]) }),
            (cut..count, Bounds { lower: Some(&separator[..]), upper: None }),
        ] {
            let mut unpacked = Unpacked::default();
            unpacked.fill(Packed(&page[..]), 0..count, None).unwrap();
            let part = Packed(&page[..]).part(&unpacked, range.clone(), bounds).unwrap();
            // A small part may not fit with longer fences, but only if the whole filled the page.
            let part = part.unwrap_or_else(|| panic!("seed {seed}: {range:?} of {count} do not fit"));
            has(&part, &records[range], &mut case.rng);
        }
        let moved = Packed(&page[..]).with_bounds(Bounds { lower: None, upper: Some(b"zz") }).unwrap();
        has(&moved, &records, &mut case.rng);
    }
    // Every form, with and without NULLs.
    assert!((NUMBERS..=CODES).all(|form| forms.iter().any(|found| found.0 == form)), "{forms:?}");
    assert!(forms.iter().any(|found| found.2 == 3) && forms.iter().any(|found| found.2 == 2), "{forms:?}");
}

/// Returns the value of a record with only some of its columns; the others are NULL.
fn with_only(layout: &Layout, value: &[u8], wanted: &[usize]) -> Vec<u8> {
    let start = match layout.lead {
        Lead::Nothing => 1,
        Lead::Length => 3,
        Lead::Bytes => 3 + usize::from(u16::from_le_bytes([value[1], value[2]])),
    };
    let (head, row) = value.split_at(start);
    let (bits, row) = row.split_at(layout.widths.len().div_ceil(8));
    let (mut bits, texts) = (bits.to_vec(), layout.widths.iter().filter(|width| **width == 0).count());
    let (fixed, row) = row.split_at(layout.widths.iter().map(|width| usize::from(*width)).sum());
    let (ends, body) = row.split_at(2 * texts);
    let (mut fixed, mut fixed_at) = (fixed.to_vec(), 0);
    let (mut kept_ends, mut kept, mut start) = (Vec::new(), Vec::new(), 0);
    let mut ends = ends.chunks(2).map(|end| usize::from(u16::from_le_bytes([end[0], end[1]])));
    for (column, &width) in layout.widths.iter().enumerate() {
        let width = usize::from(width);
        if !wanted.contains(&column) {
            bits[column / 8] |= 1 << (column % 8);
            fixed[fixed_at..fixed_at + width].fill(0);
        }
        fixed_at += width;
        if width == 0 {
            let end = ends.next().unwrap();
            if wanted.contains(&column) {
                kept.extend(&body[start..end]);
            }
            kept_ends.extend((kept.len() as u16).to_le_bytes());
            start = end;
        }
    }
    [head, &bits, &fixed, &kept_ends, &kept].concat()
}

/// Goal: reading some columns returns them, with NULL for the others, from the page and from a copy
/// with only the parts they need. Method: random layouts and columns; the rest of the copy is
/// garbage.
#[test]
fn some_columns_round_trip() {
    let (mut few, mut copied) = (0, 0);
    for seed in 200..320 {
        let mut case = case(seed, 40 + (seed as usize % 60) * 5);
        let (page, count) = packed(&case);
        let columns = case.layout.widths.len();
        let wanted: Vec<usize> = (0..columns).filter(|_| case.rng.below(2) == 0).collect();
        few += usize::from(wanted.len() < columns);
        let mut copy: Vec<u8> = (0..page.len()).map(|_| case.rng.below(256) as u8).collect();
        Packed(&page[..]).copy_columns(&wanted, true, &mut copy, &mut Vec::new()).unwrap();
        copied += copy.iter().zip(&page).filter(|(copy, page)| copy == page).count() * 100 / page.len();
        let start = case.rng.below(count as u64) as usize;
        for page in [&page, &copy] {
            let mut unpacked = Unpacked::default();
            unpacked.fill(Packed(&page[..]), start..count, Some(&wanted)).unwrap();
            for at in start..count {
                let (key, value) = &case.records[at];
                let expected = (&key[..], &with_only(&case.layout, value, &wanted)[..]);
                assert!(unpacked.record(at) == Some(expected), "seed {seed}: {at} of {wanted:?}");
            }
        }
    }
    assert!(few > 80 && copied / 120 < 80, "{few} {copied}");
}

/// Goal: records that cannot be reconstructed are refused, and the pending records stay unchanged.
#[test]
fn unpackable_records_are_refused() {
    let layout = Layout { lead: Lead::Length, widths: vec![4, 0] };
    let mut packer = Packer::new(layout, PAYLOAD);
    let good = [0, 7, 0, 0, 1, 2, 3, 4, 2, 0, b'a', b'b'];
    assert!(packer.push(b"a", &good));
    let refused: [&[u8]; 9] = [
        &[],
        // A ghost; a long and a wide row.
        &[1],
        &[2, 7, 0, 0, 1, 2, 3, 4, 2, 0, b'a', b'b'],
        &[4, 7, 0, 0, 1, 2, 3, 4, 2, 0, b'a', b'b'],
        // Too short and too long.
        &good[..11],
        &[0, 7, 0, 0, 1, 2, 3, 4, 1, 0, b'a', b'b'],
        // A bit for a column that does not exist; NULLs that have values.
        &[0, 7, 0, 4, 1, 2, 3, 4, 2, 0, b'a', b'b'],
        &[0, 7, 0, 1, 1, 2, 3, 4, 2, 0, b'a', b'b'],
        &[0, 7, 0, 2, 1, 2, 3, 4, 2, 0, b'a', b'b'],
    ];
    for value in refused {
        assert!(!packer.push(b"b", value), "{value:?}");
    }
    assert!(!packer.push(&[9; 256], &good));
    assert!(packer.push(b"c", &[0, 7, 0, 3, 0, 0, 0, 0, 0, 0]));
    assert_eq!((packer.len(), packer.record(0).unwrap()), (2, (&b"a"[..], &good[..])));
}

/// Goal: no changed byte in a packed leaf makes a read panic, loop forever, or take much memory,
/// and data read in two ways is equal. Method: every byte of some pages, two values each, through
/// the body of the fuzz target.
#[test]
fn changed_bytes_do_not_panic() {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let (mut refused, mut read) = (0, 0);
    for seed in 0..3 {
        let case = case(100 + seed, 60);
        let (page, _) = packed(&case);
        let used = usize::from(u16::from_le_bytes([page[END], page[END + 1]]));
        let mut broken = page.clone();
        for at in (1..used).chain(PAYLOAD - 20..PAYLOAD) {
            for change in [if at % 2 == 0 { 1 } else { 0xff }, 0x80] {
                broken[at] = page[at] ^ change;
                fuzz::packed_leaf(&broken);
                let node = Node(&broken[..]);
                let count = node.count().unwrap();
                for at in [0, 1, count / 2, count.saturating_sub(1), count] {
                    value.clear();
                    let found = node.value(at, &mut value).and(node.key(at, &mut key));
                    if found.is_ok() {
                        read += 1
                    } else {
                        refused += 1
                    }
                    assert!(value.len() < 100_000);
                }
                let _ = node.search(&case.records[7].0);
                let _ = node.search(b"");
                if let Ok(Some(words)) = Packed(&broken[..]).key_words(1, 4) {
                    let _ = Packed(&broken[..]).key_numbers(&words, 0..count.min(300), |_| ());
                }
            }
            broken[at] = page[at];
        }
    }
    assert!(refused > 1_000 && read > 1_000, "{refused} {read}");
}
