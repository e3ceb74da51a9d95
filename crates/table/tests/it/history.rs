//! Whole histories of many threads, looked through for circles: "list append", after Kingsbury, Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
//! Observations", VLDB 2020. Rows hold lists that only grow, so what a transaction has read says which appends it has seen and which not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Durability, Error, Isolation, Result, RowBuf, Table, Transaction};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{Rng, SeededRng};

use crate::{Fixture, def, key};

type List = Vec<u32>;

/// What a transaction that has committed has done.
#[derive(Debug, Default, Clone)]
struct Done {
    reads: Vec<(i32, List)>,
    appends: Vec<(i32, u32)>,
}

fn read(transaction: &Transaction, table: &Table, id: i32) -> Result<List> {
    let mut row = RowBuf::default();
    if !transaction.view().get(table, &key(table, id), &mut row)? {
        return Ok(List::new());
    }
    let Value::Text(text) = row.row(table).get(1) else { return Ok(List::new()) };
    Ok(text.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap()).collect())
}

fn append(transaction: &mut Transaction, table: &Arc<Table>, id: i32, value: u32) -> Result<()> {
    let mut row = RowBuf::default();
    let text = match transaction.lock(table, &key(table, id), &mut row)? {
        true => match row.row(table).get(1) {
            Value::Text(text) => format!("{text},{value}"),
            _ => value.to_string(),
        },
        false => return transaction.insert(table, &[Value::Int(id), Value::Text(&value.to_string())]),
    };
    transaction.update(table, &key(table, id), &[Value::Int(id), Value::Text(&text)]).map(|_| ())
}

fn is_retry(error: &Error) -> bool {
    matches!(
        error,
        Error::SerializationFailure { .. } | Error::Deadlock { .. } | Error::UniqueViolation { .. }
    )
}

/// One transaction of some reads and appends. `None` when it did not commit.
fn turn(
    fixture: &Fixture,
    table: &Arc<Table>,
    level: Isolation,
    rng: &mut SeededRng,
    next: &Mutex<u32>,
) -> Option<Done> {
    let mut done = Done::default();
    let mut transaction = fixture.db.begin(level).unwrap();
    for _ in 0..1 + rng.below(4) {
        let id = rng.below(5) as i32;
        transaction.begin_statement().unwrap();
        let worked = if rng.below(2) == 0 {
            read(&transaction, table, id).map(|list| done.reads.push((id, list)))
        } else {
            let value = {
                let mut next = lock(next);
                *next += 1;
                *next
            };
            append(&mut transaction, table, id, value).map(|()| done.appends.push((id, value)))
        };
        match worked {
            Ok(()) => {}
            Err(error) if is_retry(&error) => {
                transaction.rollback().unwrap();
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    if rng.below(8) == 0 {
        transaction.rollback().unwrap();
        return None;
    }
    match transaction.commit(Durability::Buffered) {
        Ok(()) => Some(done),
        Err(error) if is_retry(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A way from a transaction back to itself, if there is one.
fn circle(edges: &BTreeMap<usize, BTreeSet<usize>>, count: usize) -> Option<usize> {
    // 0 not seen, 1 on the way, 2 done.
    let mut marks = vec![0u8; count];
    for start in 0..count {
        let mut way = vec![(start, false)];
        while let Some((at, is_left)) = way.pop() {
            if is_left {
                marks[at] = 2;
                continue;
            }
            match marks[at] {
                1 | 2 => continue,
                _ => marks[at] = 1,
            }
            way.push((at, true));
            for &to in edges.get(&at).into_iter().flatten() {
                if marks[to] == 1 {
                    return Some(to);
                }
                way.push((to, false));
            }
        }
    }
    None
}

/// Looks a history through. Gives the edges between transactions: who wrote before whom, who read what whom wrote, who read what another has replaced.
fn check(level: Isolation, last: &BTreeMap<i32, List>, history: &[Done]) {
    let mut writer = BTreeMap::new();
    for (at, done) in history.iter().enumerate() {
        done.appends.iter().for_each(|append| _ = writer.insert(*append, at));
    }
    let written: usize = last.values().map(List::len).sum();
    assert_eq!(written, writer.len(), "{level:?}: appends were lost, or ones that did not commit are there");
    let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut edge = |from: usize, to: usize| {
        if from != to {
            edges.entry(from).or_default().insert(to);
        }
    };
    for (id, list) in last {
        for pair in list.windows(2) {
            edge(writer[&(*id, pair[0])], writer[&(*id, pair[1])]);
        }
    }
    for (at, done) in history.iter().enumerate() {
        for (id, list) in &done.reads {
            let all = last.get(id).cloned().unwrap_or_default();
            assert!(all.starts_with(list), "{level:?}: {list:?} was read of {id}, which became {all:?}");
            if let Some(value) = list.last() {
                edge(writer[&(*id, *value)], at);
            }
            if let Some(value) = all.get(list.len()) {
                edge(at, writer[&(*id, *value)]);
            }
        }
    }
    if level == Isolation::Serializable
        && let Some(at) = circle(&edges, history.len())
    {
        panic!("a circle through {:?}", history[at]);
    }
}

/// Goal: serializable transactions of many threads can be put in a line, and at no level an append is lost or one is read that did not commit. Method: threads that
/// read and append, and a graph of who must come before whom. What the threads do follows from a seed; how they interleave is the machine's matter, and whatever it
/// is must pass.
#[test]
fn list_append() {
    for level in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let fixture = Fixture::new();
        let table = fixture.run(|transaction| {
            transaction.create_table(def("lists", &[("id", Type::Int), ("list", Type::Text)], &[0])).unwrap()
        });
        let (next, history) = (Mutex::new(0), Mutex::new(Vec::new()));
        cairn_vfs::thread::scope(|scope| {
            for thread in 0..4 {
                let (fixture, table, next, history) = (&fixture, &table, &next, &history);
                scope.spawn(move || {
                    let mut rng = SeededRng::new(thread).fork("turns");
                    for _ in 0..150 {
                        if let Some(done) = turn(fixture, table, level, &mut rng, next) {
                            lock(history).push(done);
                        }
                    }
                });
            }
        });
        let transaction = fixture.begin();
        let last = (0..5).map(|id| (id, read(&transaction, &table, id).unwrap())).collect();
        let history = lock(&history);
        assert!(history.len() > 100, "{level:?}: {} committed", history.len());
        check(level, &last, &history);
        drop(transaction);
        // Each that ends cleans up after a few.
        (0..100).for_each(|_| fixture.run(|transaction| append(transaction, &table, 0, u32::MAX).unwrap()));
        let stats = fixture.db.stats();
        assert_eq!(stats.versioned_rows, 0, "{level:?} {stats:?}");
        fixture.db.check().unwrap();
    }
}

/// Goal: the checker finds what it is there for.
#[test]
fn circles_are_found() {
    let skew = [
        Done { reads: vec![(1, vec![]), (2, vec![])], appends: vec![(1, 10)] },
        Done { reads: vec![(1, vec![]), (2, vec![])], appends: vec![(2, 20)] },
    ];
    let last = BTreeMap::from([(1, vec![10]), (2, vec![20])]);
    check(Isolation::Snapshot, &last, &skew);
    assert!(std::panic::catch_unwind(|| check(Isolation::Serializable, &last, &skew)).is_err());
    let lost = BTreeMap::from([(1, vec![10])]);
    assert!(std::panic::catch_unwind(|| check(Isolation::Snapshot, &lost, &skew)).is_err());
}
