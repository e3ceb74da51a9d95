//! The content of a built index.

use super::*;
use crate::sparkey::index::hash_key;

/// A slot of the model: the home slot, the address and the number of the key.
type ModelSlot = Option<(u64, u64, usize)>;

/// An independent implementation of Robin Hood hashing, with keys in memory and plain remainders.
struct Model {
    slots: Vec<ModelSlot>,
    garbage: u64,
}

impl Model {
    fn distance(&self, slot: usize, home: u64) -> u64 {
        let capacity = self.slots.len() as u64;
        (slot as u64 + capacity - home) % capacity
    }

    fn find(&self, home: u64, key: usize) -> Option<usize> {
        let capacity = self.slots.len();
        (0..capacity)
            .map(|step| (home as usize + step) % capacity)
            .take_while(|&slot| self.slots[slot].is_some())
            .find(|&slot| self.slots[slot].is_some_and(|(_, _, found)| found == key))
    }

    fn put(&mut self, home: u64, address: u64, key: usize, old_bytes: u64) {
        if let Some(slot) = self.find(home, key) {
            self.slots[slot] = Some((home, address, key));
            self.garbage += old_bytes;
            return;
        }
        let mut carried = (home, address, key);
        for step in 0.. {
            let slot = (home as usize + step) % self.slots.len();
            let Some(found) = self.slots[slot] else {
                self.slots[slot] = Some(carried);
                return;
            };
            let (mine, other) = (self.distance(slot, carried.0), self.distance(slot, found.0));
            if (other, carried.1) < (mine, found.1) || other < mine {
                self.slots[slot] = Some(carried);
                carried = found;
            }
        }
    }

    fn delete(&mut self, home: u64, key: usize, old_bytes: u64) {
        let Some(mut gap) = self.find(home, key) else { return };
        self.garbage += old_bytes;
        loop {
            let next = (gap + 1) % self.slots.len();
            match self.slots[next] {
                Some((home, ..)) if self.distance(next, home) > 0 => self.slots[gap] = self.slots[next],
                _ => break,
            }
            gap = next;
        }
        self.slots[gap] = None;
    }
}

/// Builds the slots of a log's index with the model, in log order or sorted by home slot.
fn model(store: &Store, header: &IndexHeader, sorted: bool) -> (Vec<ModelSlot>, u64) {
    let log = LogReader::open_in(&store.fs, LOG, Mode::Mmap).unwrap();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut input = Vec::new();
    let mut scan = log.scan();
    while let Some(entry) = scan.next_entry().unwrap() {
        let number = keys.iter().position(|key| key == entry.key()).unwrap_or_else(|| {
            keys.push(entry.key().to_vec());
            keys.len() - 1
        });
        let home = hash_key(header.hash_bytes, header.seed, entry.key()) % header.capacity;
        let address = entry.position() << header.entry_bits | entry.number_in_block();
        input.push((home, address, number, entry.kind(), entry.record_bytes()));
    }
    if sorted {
        input.sort_by_key(|&(home, address, ..)| (home, address));
    }
    let mut model = Model { slots: vec![None; header.capacity.get() as usize], garbage: 0 };
    let mut sizes = vec![0; keys.len()];
    for (home, address, number, kind, bytes) in input {
        match kind {
            RecordKind::Put => model.put(home, address, number, std::mem::replace(&mut sizes[number], bytes)),
            RecordKind::Delete => model.delete(home, number, sizes[number]),
        }
    }
    (model.slots, model.garbage)
}

fn addresses(store: &Store, reader: &SparkeyReader) -> Vec<u64> {
    let header = reader.info().index;
    let (hash_bytes, address_bytes) = (header.hash_bytes as usize, header.address_bytes as usize);
    let slots = &store.read(INDEX)[112..];
    let address =
        |slot: &[u8]| slot[hash_bytes..].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    slots.chunks(hash_bytes + address_bytes).map(address).collect()
}

proptest! {
    #![proptest_config(cases(150))]

    /// Goal: both constructions give the slots of Java's insertion, with the same garbage size.
    /// Method: an independent model with keys in memory.
    #[test]
    fn slots_are_those_of_the_model(ops in ops(150), log in compressions(), seed: u32, sorted: bool, wide: bool) {
        let width = if wide { HashWidth::Bits64 } else { HashWidth::Bits32 };
        let construction = match sorted {
            true => Construction::Sorting { memory_bytes: IndexOptions::MEMORY_BYTES_MIN },
            false => Construction::InMemory,
        };
        let options = IndexOptions::default().seed(seed).hash_width(width).construction(construction);
        let store = Store::build(&ops, &log, &options);
        let reader = store.reader();
        let header = reader.info().index;
        let (slots, garbage) = model(&store, &header, sorted);
        let expected: Vec<u64> = slots.iter().map(|slot| slot.map_or(0, |(_, address, _)| address)).collect();
        prop_assert_eq!(addresses(&store, &reader), expected);
        prop_assert_eq!(header.garbage_bytes, garbage);
        prop_assert_eq!(header.entries, store.live.len() as u64);
    }

    /// Goal: if no key occurs twice, both constructions give the same bytes. Method: puts of
    /// different keys only.
    #[test]
    fn constructions_agree_on_unique_keys(mut ops in ops(200), log in compressions(), more in 0usize..2000) {
        let mut seen = std::collections::HashSet::new();
        ops.extend((0..more).map(|n| put(&format!("more {n}"), "")));
        ops.retain(|op| matches!(op, Op::Put(key, _) if seen.insert(key.clone())));
        let options = IndexOptions::default().seed(3);
        let store = Store::build(&ops, &log, &options.clone().construction(Construction::InMemory));
        let in_memory = store.read(INDEX);
        let sorting = Construction::Sorting { memory_bytes: IndexOptions::MEMORY_BYTES_MIN };
        let summary = build_index_in(&store.fs, LOG, &options.construction(sorting)).unwrap();
        prop_assert!(summary.sorted);
        prop_assert!(in_memory == store.read(INDEX));
    }
}

/// Goal: a build is correct if it spills its sort, writes its file page by page and wraps around
/// the end of the table. Method: 40,000 keys with overwrites and deletes under the smallest memory
/// limit; every key is looked up.
#[test]
fn sorting_spills() {
    let mut ops: Vec<Op> = (0..40_000).map(|n| put(&format!("key {n}"), &format!("value {n}"))).collect();
    ops.extend((0..40_000).step_by(7).map(|n| put(&format!("key {n}"), "new")));
    ops.extend((0..40_000).step_by(11).map(|n| delete(&format!("key {n}"))));
    let options = IndexOptions::default().seed(1);
    let small =
        options.clone().construction(Construction::Auto { memory_bytes: IndexOptions::MEMORY_BYTES_MIN });
    let store = Store::build(&ops, &LogOptions::default().identifier(1), &small);
    let reader = store.reader();
    assert_eq!(reader.verify().unwrap().entries, store.live.len() as u64);
    for (key, value) in &store.live {
        assert_eq!(reader.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    let (mut sorted, summary) = (addresses(&store, &reader), reader.info().index);
    let in_memory = build_index_in(&store.fs, LOG, &options.construction(Construction::InMemory)).unwrap();
    assert!(!in_memory.sorted);
    let mut other = addresses(&store, &store.reader());
    sorted.sort_unstable();
    other.sort_unstable();
    assert_eq!(sorted, other);
    assert_eq!(in_memory.header, summary);
    assert_eq!(store.fs.read_dir(Path::new("")).map_or(2, |names| names.len()), 2);
}

/// Goal: sizes are chosen according to the table in the format documentation. Method: small stores
/// and options whose sizes are known. Uncompressed logs never have entry bits, even if Java's
/// header says one entry per block.
#[test]
fn slot_widths_follow_the_options() {
    let store =
        Store::build(&[put("a", "1")], &LogOptions::default(), &IndexOptions::default().sparsity(5.0));
    assert_eq!(store.reader().info().index.capacity.get(), 5);
    let store = Store::build(&vec![put("a", "1"); 10], &LogOptions::default(), &IndexOptions::default());
    let header = store.reader().info().index;
    assert_eq!(
        (header.capacity.get(), header.hash_bytes, header.address_bytes, header.entry_bits),
        (13, 4, 4, 0)
    );
    let mut log = store.read(LOG);
    log[0x50] = 1;
    store.write(LOG, &log);
    assert_eq!(build_index_in(&store.fs, LOG, &IndexOptions::default()).unwrap().header.entry_bits, 0);
}

/// Goal: options out of range are refused before any file changes. Method: a value beyond each
/// limit.
#[test]
fn options_are_checked() {
    let store = Store::log_only(&[put("a", "1")], &LogOptions::default());
    let bad = [
        IndexOptions::default().sparsity(1.2),
        IndexOptions::default().sparsity(f64::NAN),
        IndexOptions::default().sparsity(101.0),
        IndexOptions::default().construction(Construction::Sorting { memory_bytes: 1000 }),
    ];
    for options in bad {
        let error = build_index_in(&store.fs, LOG, &options).unwrap_err();
        assert!(matches!(error, crate::Error::Invalid { .. }), "{error}");
        assert!(!store.fs.exists(Path::new(INDEX)).unwrap());
    }
    for block_bytes in [15, (1 << 30) + 1] {
        let options =
            LogOptions::default().compression(Compression::Snappy).block_bytes(block_bytes).replace(true);
        assert!(matches!(LogWriter::create_in(&store.fs, LOG, &options), Err(crate::Error::Invalid { .. })));
        assert!(store.fs.exists(Path::new(LOG)).unwrap());
    }
}

/// Goal: an index is deterministic except for its seed. Method: build twice with one seed, and
/// twice without.
#[test]
fn seed_comes_from_options_or_rng() {
    let store = Store::log_only(&[put("a", "1"), put("b", "2")], &LogOptions::default());
    let build = |options: &IndexOptions| {
        build_index_in(&store.fs, LOG, options).unwrap();
        store.read(INDEX)
    };
    let fixed = IndexOptions::default().seed(9);
    assert_eq!(build(&fixed), build(&fixed));
    assert_ne!(build(&IndexOptions::default()), build(&IndexOptions::default()));
}

/// Goal: a build with a memory limit maps nothing, because the pages of a mapping count as memory
/// of the process as long as the system has free memory. Method: count the mappings of each kind of
/// build.
#[test]
fn builds_with_a_limit_map_nothing() {
    use cairn_vfs::{FaultFs, FaultOptions, Operation};
    let ops: Vec<Op> = (0..3000).map(|n| put(&format!("key {}", n % 2000), &"v".repeat(n % 50))).collect();
    for compression in [Compression::None, Compression::ZSTD] {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let options = LogOptions::default().compression(compression);
        let mut writer = LogWriter::create_in(&fs, LOG, &options).unwrap();
        apply(&mut writer, &ops);
        writer.close().unwrap();
        let memory_bytes = IndexOptions::MEMORY_BYTES_MIN;
        for (construction, maps) in [
            (Construction::Auto { memory_bytes }, 0),
            (Construction::Auto { memory_bytes: 1 << 30 }, 0),
            (Construction::Sorting { memory_bytes }, 0),
            (Construction::InMemory, 1),
        ] {
            let before = disk.operation_count_of(Operation::Map);
            build_index_in(&fs, LOG, &IndexOptions::default().construction(construction)).unwrap();
            assert_eq!(disk.operation_count_of(Operation::Map) - before, maps, "{construction:?}");
        }
    }
}
