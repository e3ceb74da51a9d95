//! Every encoding compared with the plain values.

use proptest::prelude::*;

use super::*;

fn encode(values: &[u64]) -> Vec<u8> {
    let plan = plan(values);
    let mut out = Vec::new();
    plan.emit(values, &mut out);
    assert_eq!(out.len(), plan.bytes, "the plan knows its size");
    out
}

/// Generates columns of many shapes: lines, runs, few distinct values, ascending, random of all
/// widths.
fn column() -> impl Strategy<Value = Vec<u64>> {
    let run = (any::<i32>(), prop_oneof![Just(0i64), Just(1), -5..5i64], 1..60usize).prop_map(
        |(base, step, rows)| {
            (0..rows as i64).map(|i| (i64::from(base) + step * i) as u64).collect::<Vec<_>>()
        },
    );
    prop_oneof![
        (any::<u64>(), any::<u64>(), 0..900usize).prop_map(|(base, step, rows)| (0..rows as u64)
            .map(|i| base.wrapping_add(step.wrapping_mul(i)))
            .collect()),
        prop::collection::vec(run, 0..30).prop_map(|runs| runs.concat()),
        (0u32..64, prop::collection::vec(any::<u64>(), 0..900))
            .prop_map(|(shift, values)| values.into_iter().map(|v| (v as i64 >> shift) as u64).collect()),
        prop::collection::vec(0..400u64, 0..900).prop_map(|steps| {
            steps
                .iter()
                .scan(0, |sum, step| {
                    *sum += step;
                    Some(*sum)
                })
                .collect()
        }),
        (prop::collection::vec(any::<u64>(), 1..9), prop::collection::vec(any::<usize>(), 0..900))
            .prop_map(|(few, picks)| picks.into_iter().map(|pick| few[pick % few.len()]).collect()),
    ]
}

proptest! {
    #![proptest_config(crate::test_config::cases(400))]

    /// Goal: a search gives the same result as a search in the plain values. Method: sorted columns
    /// of every shape, ascending and descending, random ranges, and random values to search, some
    /// of which are present.
    #[test]
    fn searches(mut values in column(), from: usize, len: usize, probe: i64, pick: usize, there: bool, descends: bool) {
        values.sort_unstable_by_key(|value| *value as i64);
        if descends {
            values.reverse();
        }
        let probe = if there && !values.is_empty() { values[pick % values.len()] as i64 } else { probe };
        let bytes = encode(&values);
        let stream = Stream::parse(Cursor::new(&bytes, 0, bytes.len()).unwrap(), values.len()).unwrap();
        let from = from % (values.len() + 1);
        let to = from + len % (values.len() - from + 1);
        for or_equal in [false, true] {
            let is_before = |value: u64| {
                let value = value as i64;
                (if descends { value > probe } else { value < probe }) || or_equal && value == probe
            };
            let expected = from + values[from..to].partition_point(|value| is_before(*value));
            prop_assert_eq!(stream.partition(from..to, is_before).unwrap(), expected, "{}", stream.encoding());
        }
    }

    /// Goal: decoding, random access, sums, extremes and filters agree with the plain values.
    /// Method: random columns of every shape and a random range, compared with loops over the
    /// values.
    #[test]
    fn against_values(values in column(), from: usize, len: usize, mut least: i64, mut most: i64, pick: usize) {
        let bytes = encode(&values);
        let stream = Stream::parse(Cursor::new(&bytes, 0, bytes.len()).unwrap(), values.len()).unwrap();
        for (row, &value) in values.iter().enumerate() {
            prop_assert_eq!(stream.get(row).unwrap(), value, "row {} as {}", row, stream.encoding());
        }
        let from = from % (values.len() + 1);
        let to = from + len % (values.len() - from + 1);
        let mut out = vec![0; to - from];
        stream.decode(from, &mut out).unwrap();
        prop_assert_eq!(&out[..], &values[from..to]);
        let part = &values[from..to];
        prop_assert_eq!(stream.sum(from, to).unwrap(), part.iter().map(|v| i128::from(*v as i64)).sum::<i128>());
        let extremes = part.iter().map(|v| *v as i64).min().zip(part.iter().map(|v| *v as i64).max());
        prop_assert_eq!(stream.extremes(from, to, None).unwrap().map(|e| (e.least, e.most)), extremes);
        if !values.is_empty() && pick % 2 == 0 {
            // Bounds that match some values.
            least = values[pick % values.len()] as i64;
            most = least.saturating_add((pick / 7 % 50) as i64);
        }
        let mut mask = vec![u64::MAX; (to - from).div_ceil(64)];
        stream.filter(from, to, least, most, &mut mask).unwrap();
        let mut sum = 0i128;
        for (index, value) in part.iter().enumerate() {
            let kept = mask[index / 64] >> (index % 64) & 1 == 1;
            prop_assert_eq!(kept, (least..=most).contains(&(*value as i64)), "{} of {}", index, stream.encoding());
            if kept { sum += i128::from(*value as i64); }
        }
        prop_assert_eq!(stream.sum_masked(from, to, &mask).unwrap(), sum);
        // Bounds that just include or exclude all rows: the bounds in the head of the stream must
        // not be too narrow.
        if let Some((low, high)) = extremes {
            for (least, most) in [(i64::MIN, i64::MAX), (low, high), (low.saturating_add(1), high), (low, high.saturating_sub(1)),
                (high, i64::MAX), (high.saturating_add(1), i64::MAX), (i64::MIN, low), (i64::MIN, low.saturating_sub(1))]
            {
                let mut mask = vec![u64::MAX; part.len().div_ceil(64)];
                stream.filter(from, to, least, most, &mut mask).unwrap();
                for (index, value) in part.iter().enumerate() {
                    let kept = mask[index / 64] >> (index % 64) & 1 == 1;
                    prop_assert_eq!(kept, (least..=most).contains(&(*value as i64)), "{} of {} in {}..={}", index, stream.encoding(), least, most);
                }
            }
        }
        let kept: Vec<i64> = part.iter().map(|v| *v as i64).filter(|v| (least..=most).contains(v)).collect();
        let want = kept.iter().min().zip(kept.iter().max()).map(|(a, b)| (*a, *b));
        prop_assert_eq!(stream.extremes(from, to, Some(&mask)).unwrap().map(|e| (e.least, e.most)), want);
    }

    /// Goal: corrupt bytes lead to values or an error. Method: sound streams with some bytes
    /// changed, and arbitrary numbers of rows.
    #[test]
    fn hostile(values in column(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8), rows in 0..1000usize) {
        let mut bytes = encode(&values);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        for rows in [values.len(), rows] {
            let Ok(stream) = Stream::parse(Cursor::new(&bytes, 0, bytes.len()).unwrap(), rows) else { continue };
            let mut out = vec![0; rows];
            let _ = stream.decode(0, &mut out);
            let _ = stream.sum(0, rows);
            let _ = stream.extremes(0, rows, None);
            let _ = stream.filter(0, rows, -7, 7, &mut vec![u64::MAX; rows.div_ceil(64)]);
            for row in (0..rows).step_by(17) {
                let _ = stream.get(row);
            }
        }
    }
}

/// Goal: each encoding is chosen if it is the smallest. Method: one column made for each.
#[test]
fn choices() {
    let name = |values: &[u64]| {
        let bytes = encode(values);
        Stream::parse(Cursor::new(&bytes, 0, bytes.len()).unwrap(), values.len()).unwrap().encoding()
    };
    let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    assert_eq!(name(&(0..5000).map(|i| i * 7).collect::<Vec<_>>()), "line");
    assert_eq!(name(&(0..5000).map(|i| i / 100).collect::<Vec<_>>()), "runs");
    assert_eq!(name(&(0..5000).map(noise).collect::<Vec<_>>()), "packed");
    assert_eq!(name(&(0..5000).map(|i| i * 50 + noise(i) % 16).collect::<Vec<_>>()), "chunked");
    assert_eq!(name(&(0..5000).map(|i| noise(noise(i) % 5) << 30).collect::<Vec<_>>()), "dictionary");
}

/// Goal: a filter keeps exactly the matching rows, and reports whether there are any, among many
/// constant runs of which whole chunks do not match; sums and extremes of the kept rows are right.
/// Method: 1,000 runs with values that occur once, twice or in every chunk; each value and some
/// ranges of values, over all rows and over some, compared with the plain values.
#[test]
fn filters_pass_over_chunks() {
    let values: Vec<u64> = (0..1000u64)
        .flat_map(|run| {
            let value = match run {
                // The first run of a chunk, the last one, and one in between.
                384 | 900 => 5_000,
                640 | 767 => 6_000,
                _ => 10 + run % 7 + 100 * (run / 128),
            };
            std::iter::repeat_n(value, 3 + run as usize % 3)
        })
        .collect();
    let bytes = encode(&values);
    let stream = Stream::parse(Cursor::new(&bytes, 0, bytes.len()).unwrap(), values.len()).unwrap();
    assert_eq!(stream.encoding(), "runs");
    let rows = values.len();
    for (from, to) in [(0, rows), (1, rows), (700, rows), (0, rows - 1), (3, 2500), (1700, 3800)] {
        for (least, most) in
            [(5_000, 5_000), (6_000, 6_000), (5_000, 6_000), (10, 12), (410, 410), (712, 999), (1_000, 4_999)]
        {
            let mut mask = vec![u64::MAX; (to - from).div_ceil(64)];
            let left = stream.filter(from, to, least, most, &mut mask).unwrap();
            let mut any = false;
            let kept = || {
                values[from..to]
                    .iter()
                    .map(|value| *value as i64)
                    .filter(|value| (least..=most).contains(value))
            };
            assert_eq!(stream.sum_masked(from, to, &mask).unwrap(), kept().map(i128::from).sum::<i128>());
            let extremes = stream.extremes(from, to, Some(&mask)).unwrap();
            assert_eq!(extremes.map(|found| (found.least, found.most)), kept().min().zip(kept().max()));
            for (index, value) in values[from..to].iter().enumerate() {
                let kept = mask[index / 64] >> (index % 64) & 1 == 1;
                assert_eq!(
                    kept,
                    (least..=most).contains(&(*value as i64)),
                    "row {index} of {from}..{to}, {least}..={most}"
                );
                any |= kept;
            }
            assert_eq!(left, any, "{from}..{to}, {least}..={most}");
        }
    }
}
