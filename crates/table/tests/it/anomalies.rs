//! Known isolation anomalies by name, and whether each level allows them.

use cairn_table::row::{Type, Value};
use cairn_table::{Durability, Error, Isolation};

use crate::{Fixture, all, def, get, index, key, set};

const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

/// Goal: at every level, no transaction reads uncommitted data (dirty read) or an intermediate
/// version (intermediate read).
#[test]
fn dirty_reads() {
    for level in LEVELS {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 10)]);
        let mut writer = fixture.db.begin(level).unwrap();
        set(&mut writer, &table, 1, 11).unwrap();
        let mut reader = fixture.db.begin(level).unwrap();
        assert_eq!(get(&reader, &table, 1), Some(10));
        set(&mut writer, &table, 1, 12).unwrap();
        reader.begin_statement().unwrap();
        assert_eq!(get(&reader, &table, 1), Some(10));
        writer.rollback().unwrap();
        reader.begin_statement().unwrap();
        assert_eq!(get(&reader, &table, 1), Some(10));
    }
}

/// Goal: repeated reads of a row or a range return the same (no phantoms), except with read
/// committed.
#[test]
fn repeated_reads_and_phantoms() {
    for level in LEVELS {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 10)]);
        let mut reader = fixture.db.begin(level).unwrap();
        assert_eq!(crate::all(&reader, &table, None).len(), 1);
        fixture.run(|transaction| {
            set(transaction, &table, 1, 11).unwrap();
            transaction.insert(&table, &[Value::Int(2), Value::Int(20)]).unwrap();
        });
        reader.begin_statement().unwrap();
        let expected = if level == Isolation::ReadCommitted { (Some(11), 2) } else { (Some(10), 1) };
        assert_eq!((get(&reader, &table, 1), crate::all(&reader, &table, None).len()), expected, "{level:?}");
    }
}

/// Goal: if two transactions read a row and then change it, one of them fails (no lost update),
/// except with read committed.
#[test]
fn lost_updates() {
    for level in LEVELS {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 10)]);
        let mut first = fixture.db.begin(level).unwrap();
        let mut second = fixture.db.begin(level).unwrap();
        let (a, b) = (get(&first, &table, 1).unwrap(), get(&second, &table, 1).unwrap());
        set(&mut first, &table, 1, a + 1).unwrap();
        first.commit(Durability::Buffered).unwrap();
        let lost = set(&mut second, &table, 1, b + 1);
        match level {
            Isolation::ReadCommitted => assert!(lost.unwrap()),
            _ => assert!(matches!(lost, Err(Error::SerializationFailure { .. })), "{lost:?}"),
        }
    }
}

/// Goal: inserting a row in place of one that another transaction has deleted, but that this one
/// still sees, fails (otherwise a lost update), except with read committed: the transaction would
/// see both rows, one in the table and one in an index. A conflicting row is a violation at every
/// level. Method: with the primary key, with a unique index, and after a search for a conflict.
#[test]
fn insert_in_place_of_deleted_row_conflicts() {
    for level in LEVELS {
        for (unique, arbiter, row) in
            [(false, None, (1, 20)), (true, None, (1, 20)), (true, None, (2, 10)), (true, Some(0), (2, 10))]
        {
            let fixture = Fixture::new();
            let table = fixture.run(|transaction| {
                let mut def = def("t", &[("id", Type::Int), ("v", Type::Int)], &[0]);
                def.indexes = vec![index("t_v", &[1], unique)];
                let table = transaction.create_table(def).unwrap();
                transaction.insert(&table, &[Value::Int(1), Value::Int(10)]).unwrap();
                table
            });
            let mut late = fixture.db.begin(level).unwrap();
            assert_eq!(get(&late, &table, 1), Some(10));
            fixture.run(|transaction| {
                assert!(transaction.delete(&table, &key(&table, 1)).unwrap());
                transaction.insert(&table, &[Value::Int(3), Value::Int(30)]).unwrap();
            });
            late.begin_statement().unwrap();
            let there = late.insert(&table, &[Value::Int(3), Value::Int(31)]);
            assert!(matches!(there, Err(Error::UniqueViolation { .. })), "{level:?} {there:?}");
            let row = [Value::Int(row.0), Value::Int(row.1)];
            let looked = arbiter.map_or(Ok(None), |at| late.conflict(&table, Some(at), &row));
            let put = looked.and_then(|_| late.insert(&table, &row));
            match level {
                Isolation::ReadCommitted => {
                    put.unwrap();
                    assert_eq!(all(&late, &table, None).len(), 2);
                    assert_eq!(all(&late, &table, Some(0)).len(), 2);
                }
                _ => assert!(
                    matches!(put, Err(Error::SerializationFailure { .. })),
                    "{level:?} unique: {unique} {row:?} {put:?}"
                ),
            }
        }
    }
}

/// Goal: two serializable transactions that each read data the other changes (write skew) do not
/// both commit; with snapshots they do.
#[test]
fn write_skew() {
    for level in LEVELS {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 10), (2, 20)]);
        let mut first = fixture.db.begin(level).unwrap();
        let mut second = fixture.db.begin(level).unwrap();
        for transaction in [&first, &second] {
            assert_eq!(get(transaction, &table, 1).unwrap() + get(transaction, &table, 2).unwrap(), 30);
        }
        set(&mut first, &table, 1, 0).unwrap();
        set(&mut second, &table, 2, 0).unwrap();
        first.commit(Durability::Buffered).unwrap();
        let committed = second.commit(Durability::Buffered);
        assert_eq!(committed.is_ok(), level != Isolation::Serializable, "{level:?} {committed:?}");
    }
}

/// Goal: inserting into a range that another transaction has scanned (phantom write skew) is
/// detected if both are serializable.
#[test]
fn phantom_write_skew() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let mut first = fixture.db.begin(Isolation::Serializable).unwrap();
    let mut second = fixture.db.begin(Isolation::Serializable).unwrap();
    for (transaction, id) in [(&mut first, 5), (&mut second, 6)] {
        assert_eq!(crate::all(transaction, &table, None).len(), 1);
        transaction.insert(&table, &[Value::Int(id), Value::Int(0)]).unwrap();
    }
    first.commit(Durability::Buffered).unwrap();
    assert!(matches!(second.commit(Durability::Buffered), Err(Error::SerializationFailure { .. })));
    assert_eq!(crate::all(&fixture.begin(), &table, None).len(), 2);
}

/// Goal: the anomaly in which a read-only transaction exposes an impossible order (Fekete, O'Neil,
/// O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation", 2004) does not happen if all
/// transactions are serializable.
#[test]
fn read_only_anomaly() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 0), (2, 0)]);
    let mut withdraws = fixture.db.begin(Isolation::Serializable).unwrap();
    let (x, y) = (get(&withdraws, &table, 1).unwrap(), get(&withdraws, &table, 2).unwrap());
    let mut deposits = fixture.db.begin(Isolation::Serializable).unwrap();
    assert_eq!(get(&deposits, &table, 2), Some(0));
    set(&mut deposits, &table, 2, 20).unwrap();
    deposits.commit(Durability::Buffered).unwrap();
    let reads = fixture.db.begin(Isolation::Serializable).unwrap();
    assert_eq!((get(&reads, &table, 1), get(&reads, &table, 2)), (Some(0), Some(20)));
    reads.commit(Durability::Buffered).unwrap();
    set(&mut withdraws, &table, 1, x - 10 - i32::from(x + y < 10)).unwrap();
    assert!(matches!(withdraws.commit(Durability::Buffered), Err(Error::SerializationFailure { .. })));
}

/// Goal: deadlocks are detected at once. Method: two threads each request the other's row; one of
/// them fails, and the other continues.
#[test]
fn deadlocks() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10), (2, 20)]);
    let turn = |mine: i32, other: i32, barrier: &std::sync::Barrier| {
        let mut transaction = fixture.begin();
        set(&mut transaction, &table, mine, 1).unwrap();
        barrier.wait();
        match set(&mut transaction, &table, other, 1) {
            Ok(_) => transaction.commit(Durability::Buffered).is_ok(),
            Err(Error::Deadlock { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    };
    for _ in 0..20 {
        let barrier = std::sync::Barrier::new(2);
        let done = cairn_vfs::thread::scope(|scope| {
            let one = scope.spawn(|| turn(1, 2, &barrier));
            let two = turn(2, 1, &barrier);
            (one.join().unwrap(), two)
        });
        assert!(done.0 != done.1, "{done:?}");
    }
    assert_eq!(fixture.db.stats().deadlocks, 20);
}
