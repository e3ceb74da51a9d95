//! The correctness check of all constant stores, which their figures depend on.

use cairn_vfs::SystemClock;

use super::{Compression, ConstantReader, ConstantStore};
use crate::core::data_files::data_bytes;
use crate::core::digest::Digest;
use crate::core::histogram::Latencies;
use crate::core::scratch::Scratch;
use crate::core::workload::{Dataset, Distribution, KeyShape, Lookup, ReadOrder, ValueShape};

/// Builds 3,000 records with values of 0 to 300 bytes in every compression that the store supports,
/// opens them in every way, and compares all answers with those of the data set: present and absent
/// keys, one by one, batched and timed, from two sessions at once.
pub(crate) fn check_store(store: &dyn ConstantStore) {
    let data = Dataset::synthetic(3_000, &KeyShape::default(), &ValueShape::Range { min: 0, max: 300 });
    let orders = [Lookup::Present, Lookup::Absent]
        .map(|lookup| ReadOrder::new(&data, Distribution::Uniform, lookup, 2_500, 7));
    let mut supported = 0;
    for compression in Compression::ALL.into_iter().filter(|&compression| store.supports(compression)) {
        supported += 1;
        let scratch = Scratch::temporary("a #store? 100%").unwrap();
        let built = store.build(scratch.path(), &data, compression).unwrap();
        let bytes = data_bytes(scratch.path()).unwrap();
        assert!(bytes > 50_000, "{} keeps 3,000 records in {bytes} bytes", store.name());
        assert!(built.index_bytes.is_none_or(|index| index > 0 && index < bytes), "{built:?} of {bytes}");
        for (index, variant) in
            store.variants().iter().enumerate().filter(|(_, variant)| variant.suits(compression))
        {
            let reader = store.open(scratch.path(), index).unwrap();
            for order in &orders {
                check_reader(&*reader, order, &format!("{} {compression}", variant.name));
            }
        }
    }
    assert!(supported > 0);
}

fn check_reader(reader: &dyn ConstantReader, order: &ReadOrder, name: &str) {
    let clock = SystemClock::new();
    let mut latencies = Latencies::new(0);
    let (mut one, mut two) = (reader.session().unwrap(), reader.session().unwrap());
    let mut total = Digest::default();
    for chunk in 0..order.chunks() {
        let (keys, expected) = order.chunk(chunk);
        assert_eq!(one.run(keys).unwrap(), expected, "{name}");
        assert_eq!(two.run_batched(keys).unwrap(), expected, "{name}, batched");
        assert_eq!(one.run_timed(keys, &clock, &mut latencies).unwrap(), expected, "{name}, timed");
        total = total.merge(expected);
    }
    assert_eq!(total.found, order.found());
    assert_eq!(latencies.count(), order.len() as u64, "{name}");
}
