use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Returns all records with their whole keys.
fn records(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let node = Node(bytes);
    let record = |at| {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        node.key(at, &mut key).unwrap();
        node.value(at, &mut value).unwrap();
        (key, value)
    };
    (0..node.count().unwrap()).map(record).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(usize),
    Replace(usize, Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(0u8..4, 0..12);
    prop_oneof![
        3 => (bytes(), bytes()).prop_map(|(key, value)| Step::Insert(key, value)),
        1 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(at, value)| Step::Replace(at, value)),
    ]
}

proptest! {
    #![proptest_config(crate::test_config::cases(300))]

    /// Goal: a node behaves like a sorted map, across compactions, with and without a prefix.
    /// Method: random steps in a page of 512 bytes.
    #[test]
    fn behaves_like_a_map(prefix in prop::collection::vec(any::<u8>(), 0..9), steps in prop::collection::vec(step(), 0..200)) {
        let mut bytes = vec![0xaa; 512];
        let (lower, upper) = ([&prefix[..], &[]].concat(), [&prefix[..], &[9]].concat());
        let bounds = Bounds { lower: Some(&lower), upper: Some(&upper) };
        NodeMut(&mut bytes).clear(0, bounds).unwrap();
        let mut map = BTreeMap::new();
        for step in steps {
            let node = Node(&bytes[..]);
            prop_assert_eq!(node.prefix_len().unwrap(), prefix.len());
            match step {
                Step::Insert(rest, value) => {
                    let key = [&prefix[..], &rest].concat();
                    let (at, is_there) = node.search(&key).unwrap();
                    prop_assert_eq!(is_there, map.contains_key(&key));
                    prop_assert_eq!(at, map.range(..key.clone()).count());
                    if !is_there && node.free().unwrap() >= rest.len() + value.len() + SLOT {
                        NodeMut(&mut bytes).insert(at, &rest, &value).unwrap();
                        map.insert(key, value);
                    }
                }
                Step::Remove(at) if !map.is_empty() => {
                    let at = at % map.len();
                    NodeMut(&mut bytes).remove(at).unwrap();
                    let key = map.keys().nth(at).unwrap().clone();
                    map.remove(&key);
                }
                Step::Replace(at, value) if !map.is_empty() => {
                    let at = at % map.len();
                    if node.free().unwrap() + node.value_len(at).unwrap() >= value.len() {
                        NodeMut(&mut bytes).replace(at, &value).unwrap();
                        *map.values_mut().nth(at).unwrap() = value;
                    }
                }
                _ => {}
            }
            prop_assert_eq!(records(&bytes), map.clone().into_iter().collect::<Vec<_>>());
        }
        let mut fence = Vec::new();
        prop_assert!(Node(&bytes[..]).lower(&mut fence).unwrap() && fence == lower);
        prop_assert!(Node(&bytes[..]).upper(&mut fence).unwrap() && fence == upper);
    }

    /// Goal: reading or changing a node of arbitrary bytes never panics. Method: random bytes in
    /// the header, slots and heap.
    #[test]
    fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 24..200), key in prop::collection::vec(any::<u8>(), 0..9), at in 0usize..9) {
        let node = Node(&bytes[..]);
        let mut buffer = Vec::new();
        let _ = (node.search(&key), node.child_of(&key), node.child(at), node.free());
        let _ = (node.key(at, &mut buffer), node.value(at, &mut buffer), node.record(at));
        let _ = (node.lower(&mut buffer), node.upper(&mut buffer));
        let mut node = NodeMut(&mut bytes);
        let _ = (node.insert(at, &key, b"value"), node.replace(at, &[1; 30]), node.remove(at), node.set_child(at, 7));
        let _ = node.compact();
    }
}

/// Goal: children are found by key, including the last one, beyond all keys.
#[test]
fn children_are_found_by_key() {
    let mut bytes = vec![0; 512];
    let mut node = NodeMut(&mut bytes);
    node.clear(1, Bounds { lower: None, upper: None }).unwrap();
    node.set_last_child(99).unwrap();
    for (at, key) in [b"b", b"d"].into_iter().enumerate() {
        node.insert(at, key, &(at as u32 + 10).to_le_bytes()).unwrap();
    }
    let child = |bytes: &[u8], key: &[u8]| Node(bytes).child_of(key).unwrap();
    for (key, expected) in [
        (&b"a"[..], (10, 0)),
        (b"b", (10, 0)),
        (b"c", (11, 1)),
        (b"d", (11, 1)),
        (b"da", (99, 2)),
        (b"z", (99, 2)),
    ] {
        assert_eq!(child(&bytes, key), expected);
    }
    let mut node = NodeMut(&mut bytes);
    node.set_child(1, 55).unwrap();
    node.set_child(2, 56).unwrap();
    assert_eq!((child(&bytes, b"c"), child(&bytes, b"e")), ((55, 1), (56, 2)));
    assert_eq!((Node(&bytes[..]).kind(), Node(&bytes[..]).level()), (Ok(INNER), Ok(1)));
}
