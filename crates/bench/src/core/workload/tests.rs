use std::collections::HashSet;
use std::path::Path;

use cairn_vfs::{Fs, MemFs, OpenOptions, SeededRng};
use proptest::prelude::*;

use super::*;
use crate::core::digest::Digest;

fn counts(distribution: Distribution, len: u64, draws: usize) -> Vec<u64> {
    let mut sampler = Sampler::new(distribution, len, 42);
    let mut counts = vec![0; len as usize];
    for _ in 0..draws {
        counts[sampler.draw() as usize] += 1;
    }
    counts
}

/// Goal: the Zipf generator follows its distribution for skews below, at and above 1. Method:
/// 400,000 draws from 50 ranks; Pearson's chi-squared against the exact probabilities stays below
/// the 99.99 % quantile for 49 degrees (96.2).
#[test]
fn zipf_follows_its_law() {
    for theta in [0.5, 0.99, 1.0, 1.4] {
        let (len, draws) = (50_u64, 400_000);
        let zipf = Zipf::new(len, theta);
        let mut rng = SeededRng::new(9);
        let mut seen = vec![0_u64; len as usize];
        for _ in 0..draws {
            seen[zipf.draw(&mut rng) as usize] += 1;
        }
        let weights: Vec<f64> = (1..=len).map(|rank| (rank as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        let chi: f64 = seen
            .iter()
            .zip(&weights)
            .map(|(&seen, weight)| {
                let expected = weight / total * f64::from(draws);
                (seen as f64 - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 96.2, "theta {theta}: chi squared {chi}");
    }
}

/// Goal: draws from a large domain and from a domain of one rank stay in range.
#[test]
fn zipf_has_no_bad_sizes() {
    let mut rng = SeededRng::new(1);
    for len in [1, 2, 3, 1 << 40] {
        let zipf = Zipf::new(len, 0.99);
        assert!((0..1_000).all(|_| zipf.draw(&mut rng) < len));
    }
}

/// Goal: scrambling moves the popular keys without changing how popular they are. Method: the
/// shares of the most popular key in both forms agree within a tenth; only the clustered form has
/// that key at 0.
#[test]
fn scrambling_keeps_the_shape() {
    let plain = counts(Distribution::Zipfian { theta: 0.99, scrambled: false }, 1_000, 100_000);
    let scrambled = counts(Distribution::Zipfian { theta: 0.99, scrambled: true }, 1_000, 100_000);
    let (top_plain, top_scrambled) = (plain[0] as f64, *scrambled.iter().max().unwrap() as f64);
    assert_eq!(plain.iter().max(), Some(&plain[0]));
    assert!((top_plain / top_scrambled - 1.0).abs() < 0.1, "{top_plain} {top_scrambled}");
    assert_ne!(scrambled.iter().position(|&count| count as f64 == top_scrambled), Some(0));
}

/// Goal: each distribution has its documented weights.
#[test]
fn distributions_have_their_documented_weights() {
    let latest = counts(Distribution::Latest { theta: 0.99 }, 100, 10_000);
    assert_eq!(latest.iter().max(), Some(&latest[99]));
    let sequential = counts(Distribution::Sequential, 10, 25);
    assert_eq!(sequential, [3, 3, 3, 3, 3, 2, 2, 2, 2, 2]);
    let uniform = counts(Distribution::Uniform, 10, 100_000);
    assert!(uniform.iter().all(|count| (9_500..10_500).contains(count)), "{uniform:?}");
    let mut hot = counts(Distribution::HotSet { fraction: 0.1, probability: 0.9 }, 100, 100_000);
    hot.sort_unstable();
    let top: u64 = hot[90..].iter().sum();
    assert!((89_000..91_000).contains(&top), "{top}");
}

/// Goal: `FromStr` parses the output of `Display`; invalid text is rejected.
#[test]
fn distributions_read_back() {
    for text in
        ["uniform", "sequential", "zipfian 0.99", "zipfian 1.2 clustered", "latest 0.5", "hot set 0.1 0.9"]
    {
        assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
    }
    assert_eq!("zipfian".parse::<Distribution>().unwrap().to_string(), "zipfian 0.99");
    for text in ["", "zipf", "zipfian x", "zipfian -1", "hot", "hot set 2", "uniform 3"] {
        assert!(text.parse::<Distribution>().is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(crate::test_config::cases(256))]

    /// Goal: a permutation maps to every number once. Method: all of `0..len`, any length up to
    /// 3000 and any seed.
    #[test]
    fn permutation_is_a_bijection(len in 1_u64..3_000, seed: u64) {
        let permutation = Permutation::new(len, seed);
        let images: HashSet<u64> = (0..len).map(|n| permutation.apply(n)).collect();
        prop_assert_eq!(images.len() as u64, len);
        prop_assert!(images.iter().all(|&n| n < len));
    }

    /// Goal: keys of every shape are distinct, and keys and values have the specified lengths.
    #[test]
    fn shapes_keep_their_word(first: u32, bytes in 8_u32..40, min in 0_u32..30, more in 0_u32..30) {
        let write = |shape: &KeyShape, n: u64| { let mut key = Vec::new(); shape.write(n, &mut key); key };
        for shape in [KeyShape::default(), KeyShape::Fixed { bytes }] {
            let keys: HashSet<Vec<u8>> = (0..50).map(|n| write(&shape, u64::from(first) + n)).collect();
            prop_assert_eq!(keys.len(), 50);
        }
        prop_assert_eq!(write(&KeyShape::Fixed { bytes }, 7).len(), bytes as usize);
        let mut value = Vec::new();
        ValueShape::Range { min, max: min + more }.write(u64::from(first), &mut value);
        prop_assert!((min as usize..=(min + more) as usize).contains(&value.len()));
    }
}

/// Goal: Sparkey's shapes have the format of its guide, and the long value is the short one with
/// padding.
#[test]
fn sparkey_shapes() {
    let dataset = Dataset::synthetic(100_001, &KeyShape::default(), &ValueShape::Numbered { padding: 50 });
    assert_eq!(dataset.key(0), b"key_0");
    assert_eq!(dataset.key(100_000), b"key_100000");
    assert_eq!(dataset.value(100_000), [&b"100000"[..], &[b'x'; 50]].concat());
    assert_eq!((dataset.len(), dataset.mean_value_bytes()), (100_001, 55));
}

/// Goal: the expected digests are those of the data. Method: answer each of two chunks, the last
/// one short, directly from the data set; absent orders expect nothing, and their keys do not
/// exist.
#[test]
fn order_expects_what_the_data_holds() {
    let dataset = Dataset::synthetic(500, &KeyShape::default(), &ValueShape::Range { min: 0, max: 40 });
    let find = |key: &[u8]| dataset.iter().find(|(candidate, _)| *candidate == key).map(|(_, value)| value);
    let order = ReadOrder::new(&dataset, Distribution::Uniform, Lookup::Present, 1_500, 3);
    assert_eq!((order.len(), order.chunks(), order.found()), (1_500, 2, 1_500));
    for chunk in 0..order.chunks() {
        let (keys, expected) = order.chunk(chunk);
        let mut digest = Digest::default();
        keys.iter().enumerate().for_each(|(at, key)| digest.add_answer(at, find(key)));
        assert_eq!(digest, expected);
    }
    let again = ReadOrder::new(&dataset, Distribution::Uniform, Lookup::Present, 1_500, 3);
    assert_eq!(again.keys(), order.keys());
    let absent = ReadOrder::new(&dataset, Distribution::Uniform, Lookup::Absent, 200, 3);
    assert_eq!((absent.found(), absent.chunk(0).1), (0, Digest::default()));
    assert!(absent.keys().iter().all(|key| find(key).is_none()));
}

fn file(fs: &MemFs, path: &str, text: &str) {
    let file = fs.open(Path::new(path), OpenOptions::create_new()).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
}

/// Goal: a quoted CSV with repeated and empty keys yields each key once, with its last line
/// unchanged.
#[test]
fn records_of_csv() {
    let fs = MemFs::new();
    file(
        &fs,
        "/a.csv",
        "id,name\r\n1,one\r\n2,\"two,\nand a half\"\r\n\r\n,nobody\r\n1,uno\r\n\n 3\t, three ",
    );
    let records = Records::read(&fs, Path::new("/a.csv"), Separator::Comma, "id").unwrap();
    let pairs: Vec<_> = records.keys.iter().zip(records.values.iter()).collect();
    let expected: [(&[u8], &[u8]); 3] =
        [(b"2", b"2,\"two,\nand a half\""), (b"1", b"1,uno"), (b" 3\t", b" 3\t, three ")];
    assert_eq!(pairs, expected);
    assert_eq!((records.overwritten, records.keyless), (1, 1));
    let left_out = "lines left out: 1 with an empty key, 1 whose key is repeated later";
    assert_eq!(records.left_out().as_deref(), Some(left_out));
    let by_number = Records::read(&fs, Path::new("/a.csv"), Separator::Comma, "1").unwrap();
    assert_eq!(by_number, records);
}

/// Goal: an unclosed quote is an error with its line, not one long record; a byte order mark before
/// the header is not part of it; a column name that occurs twice is an error.
#[test]
fn records_are_not_guessed() {
    let fs = MemFs::new();
    file(&fs, "/open.csv", "id,v\n1,\"no end\n2,two\n3,three\n");
    file(&fs, "/marked.csv", "\u{feff}id,v\n1,one\n");
    file(&fs, "/twice.csv", "id,id\n1,one\n");
    let read = |path: &str| Records::read(&fs, Path::new(path), Separator::Comma, "id");
    let open = read("/open.csv").unwrap_err().to_string();
    assert!(open.contains("/open.csv, line 2: a quote"), "{open}");
    let marked = read("/marked.csv").unwrap();
    assert_eq!((marked.keys.get(0), marked.values.get(0)), (&b"1"[..], &b"1,one"[..]));
    let twice = read("/twice.csv").unwrap_err().to_string();
    assert!(twice.contains("/twice.csv, line 1: two columns"), "{twice}");
}

/// Goal: errors state the file, the line and the content. Absent keys of real data are absent, even
/// if every change of the last byte exists.
#[test]
fn records_refuse_and_real_keys_can_be_absent() {
    let fs = MemFs::new();
    file(&fs, "/a.tsv", "k\tv\n\"a\t1\nb\t2\n");
    file(&fs, "/short.tsv", "v\tk\n1\ta\n2\n");
    file(&fs, "/empty.tsv", "k\tv\n");
    let read = |path: &str, column| Records::read(&fs, Path::new(path), Separator::Tab, column);
    assert!(read("/a.tsv", "x").unwrap_err().to_string().contains("no column \"x\"; the columns are k, v"));
    let short = read("/short.tsv", "k").unwrap_err().to_string();
    assert!(short.contains("/short.tsv, line 3: 1 columns, but the key is in column 2"), "{short}");
    assert!(read("/empty.tsv", "k").unwrap_err().to_string().contains("no records"));
    assert!(read("/none.tsv", "k").is_err());

    let real = Dataset::real("a", read("/a.tsv", "k").unwrap());
    assert_eq!((real.key(0), real.value(0)), (&b"\"a"[..], &b"\"a\t1"[..]));
    let mut keys = Arena::default();
    let mut values = Arena::default();
    for byte in 0..=u8::MAX {
        keys.push(&[byte]);
        values.push(b"");
    }
    let full = Dataset::real("bytes", Records { keys, values, overwritten: 0, keyless: 0 });
    let order = ReadOrder::new(&full, Distribution::Sequential, Lookup::Absent, 256, 1);
    assert!(order.keys().iter().all(|key| key.len() == 2 && key.ends_with(b"~")));
}

/// Goal: an invalid workload is rejected with the name of its part, and a valid one survives a
/// round trip through JSON.
#[test]
fn workload_checks_and_serialises() {
    let workload = Workload {
        distribution: Distribution::HotSet { fraction: 0.2, probability: 0.8 },
        ..Default::default()
    };
    workload.check().unwrap();
    let json = serde_json::to_string(&workload).unwrap();
    assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
    let bad = [
        (Workload { entries: 0, ..Default::default() }, "entries"),
        (Workload { threads: 0, ..Default::default() }, "threads"),
        (Workload { read_fraction: 1.5, ..Default::default() }, "read fraction"),
        (Workload { keys: KeyShape::Fixed { bytes: 3 }, ..Default::default() }, "keys"),
        (Workload { values: ValueShape::Range { min: 3, max: 2 }, ..Default::default() }, "values"),
        (Workload { distribution: Distribution::Latest { theta: 0.0 }, ..Default::default() }, "theta"),
    ];
    for (workload, word) in bad {
        assert!(workload.check().unwrap_err().to_string().contains(word));
    }
}
