use super::*;

#[test]
fn smoke() {
    let m = Arc::new(Memtable::new());
    for n in 1..20000u64 {
        let k = format!("{:016}", n - 1);
        m.insert(k.as_bytes(), n, Kind::Put, k.as_bytes()).unwrap();
        if m.versions(k.as_bytes(), u64::MAX).next().is_none() {
            panic!("lost at {n} {:?}", m.tree.leaf(&super::probe::Probe::new(k.as_bytes())).0.get());
        }
    }
    for i in 0..10000u64 {
        let k = format!("{:016}", i);
        assert!(m.versions(k.as_bytes(), u64::MAX).next().is_some(), "{k}");
    }
}
