//! Rewriting.

use super::*;

proptest! {
    #![proptest_config(cases(80))]

    /// Goal: a rewrite keeps the live entries in their order, drops the rest and changes the format. Method: random
    /// stores from and to every format, to another place and onto themselves.
    #[test]
    fn keeps_what_is_alive(ops in ops(100), from in compressions(), to in compressions(), in_place: bool) {
        let store = Store::build(&ops, &from, &IndexOptions::default());
        let target = if in_place { "x" } else { "y" };
        let reader = store.reader();
        let mut order = Vec::new();
        let mut scan = reader.scan();
        while let Some(entry) = scan.next_entry().unwrap() {
            order.push(entry.key().to_vec());
        }
        let to = to.identifier(9);
        reader.rewrite_in(&store.fs, target, &to, &IndexOptions::default()).unwrap();
        prop_assert_eq!(scanned(&reader), live(&ops), "the old files live on under their reader");
        let new = SparkeyReader::open_in(&store.fs, target, &ReaderOptions::default()).unwrap();
        let report = new.verify().unwrap();
        prop_assert_eq!((report.deletes, report.garbage_bytes), (0, 0));
        prop_assert_eq!(new.info().log.identifier, 9);
        let mut scan = new.scan_log();
        for key in order {
            let entry = scan.next_entry().unwrap().unwrap();
            prop_assert_eq!(entry.key(), &key[..]);
        }
        prop_assert!(scan.next_entry().unwrap().is_none());
        prop_assert_eq!(scanned(&new), live(&ops));
    }
}

/// Goal: large values are streamed. Method: one of 3 MB between two small ones, compressed to uncompressed.
#[test]
fn large_values() {
    let big: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let ops = [put("a", "1"), Op::Put(b"big".to_vec(), big), put("z", "2")];
    let from = LogOptions::default().compression(Compression::ZSTD);
    let store = Store::build(&ops, &from, &IndexOptions::default());
    store.reader().rewrite_in(&store.fs, "y.spi", &LogOptions::default(), &IndexOptions::default()).unwrap();
    let new = SparkeyReader::open_in(&store.fs, "y", &ReaderOptions::default()).unwrap();
    assert!(scanned(&new) == live(&ops));
}
