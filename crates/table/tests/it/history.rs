//! Histories of many threads, searched for cycles: "list append", after Kingsbury, Alvaro, "Elle:
//! Inferring Isolation Anomalies from Experimental Observations", VLDB 2020. Rows hold lists that
//! only grow, so the list that a transaction has read shows which appends it has seen and which it
//! has not.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Direction, Durability, Error, Isolation, Result, RowBuf, Table, Transaction};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{Rng, SeededRng};

use crate::{Fixture, def, index, key};

type List = Vec<u32>;

/// The reads and appends of a committed transaction.
#[derive(Debug, Default, Clone)]
struct Done {
    reads: Vec<(i32, List)>,
    appends: Vec<(i32, u32)>,
}

/// Lists, spaced apart; rows between them are inserted and deleted.
const LISTS: i32 = 8;
const BETWEEN: i32 = 40;

fn parse(value: Value<'_>) -> List {
    let Value::Text(text) = value else { return List::new() };
    text.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap()).collect()
}

fn read(transaction: &Transaction, table: &Table, id: i32) -> Result<List> {
    let mut row = RowBuf::default();
    let found = transaction.view().get(table, &key(table, id * BETWEEN), &mut row)?;
    Ok(if found { parse(row.row(table).get(1)) } else { List::new() })
}

/// Reads some consecutive lists, and checks that the index has the last value of each, and nothing
/// else.
fn read_range(
    transaction: &Transaction,
    table: &Arc<Table>,
    ids: std::ops::Range<i32>,
) -> Result<Vec<(i32, List)>> {
    let mut found: BTreeMap<i32, List> = ids.clone().map(|id| (id, List::new())).collect();
    let (from, to) = (key(table, ids.start * BETWEEN), key(table, ids.end * BETWEEN));
    let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    let mut scan = transaction.view().scan(table, None, range, Direction::Forward)?;
    while let Some(row) = scan.next()? {
        if let Value::Int(id) = row.get(0)
            && id % BETWEEN == 0
        {
            found.insert(id / BETWEEN, parse(row.get(1)));
        }
    }
    let mut indexed = BTreeMap::new();
    let mut scan =
        transaction.view().scan(table, Some(0), (Bound::Unbounded, Bound::Unbounded), Direction::Backward)?;
    while let Some(row) = scan.next()? {
        if let (Value::Int(id), Value::Int(last)) = (row.get(0), row.get(2))
            && ids.contains(&(id / BETWEEN))
        {
            assert_eq!(indexed.insert(id / BETWEEN, last as u32), None, "two entries of one row");
        }
    }
    let last = found.iter().filter_map(|(id, list)| Some((*id, *list.last()?))).collect();
    assert_eq!(indexed, last, "the index has other rows than the table");
    Ok(found.into_iter().collect())
}

/// Appends to a list. This changes the length of its row and its index entry, or deletes the row
/// and inserts it again.
fn append(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    id: i32,
    value: u32,
    rng: &mut SeededRng,
) -> Result<()> {
    let mut row = RowBuf::default();
    let place = key(table, id * BETWEEN);
    let is_there = transaction.lock(table, &place, &mut row)?;
    let mut list = if is_there { parse(row.row(table).get(1)) } else { List::new() };
    list.push(value);
    let text = list.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let padding = "p".repeat(rng.below(900) as usize);
    let values =
        [Value::Int(id * BETWEEN), Value::Text(&text), Value::Int(value as i32), Value::Text(&padding)];
    if is_there && rng.below(3) > 0 {
        return transaction.update(table, &place, &values).map(|_| ());
    }
    if is_there {
        transaction.delete(table, &place)?;
    }
    transaction.insert(table, &values)
}

/// Inserts or deletes a row between two lists, so that leaves split and merge.
fn make_room(transaction: &mut Transaction, table: &Arc<Table>, rng: &mut SeededRng) -> Result<()> {
    let id = rng.below((LISTS * BETWEEN) as u64) as i32;
    if id % BETWEEN == 0 || transaction.delete(table, &key(table, id))? {
        return Ok(());
    }
    let padding = "p".repeat(rng.below(900) as usize);
    transaction.insert(table, &[Value::Int(id), Value::Null, Value::Null, Value::Text(&padding)])
}

fn is_retry(error: &Error) -> bool {
    matches!(
        error,
        Error::SerializationFailure { .. } | Error::Deadlock { .. } | Error::UniqueViolation { .. }
    )
}

/// Runs one transaction of some reads and appends. Returns `None` if it did not commit.
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
        let id = rng.below(LISTS as u64) as i32;
        transaction.begin_statement().unwrap();
        let kind = rng.below(8);
        let worked = if kind < 3 {
            read(&transaction, table, id).map(|list| done.reads.push((id, list)))
        } else if kind == 3 {
            let to = (id + 3).min(LISTS);
            read_range(&transaction, table, id..to).map(|lists| done.reads.extend(lists))
        } else if kind == 4 {
            make_room(&mut transaction, table, rng)
        } else {
            let value = {
                let mut next = lock(next);
                *next += 1;
                *next
            };
            append(&mut transaction, table, id, value, rng).map(|()| done.appends.push((id, value)))
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

/// Returns a transaction on a cycle, if there is one.
fn circle(edges: &Edges, count: usize) -> Option<usize> {
    // 0 not visited, 1 on the path, 2 done.
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

/// Checks a history. Derives the dependencies between transactions: write-write, write-read, and
/// read-write.
fn check(level: Isolation, last: &BTreeMap<i32, List>, history: &[Done]) {
    let mut writer = BTreeMap::new();
    for (at, done) in history.iter().enumerate() {
        done.appends.iter().for_each(|append| _ = writer.insert(*append, at));
    }
    let written: usize = last.values().map(List::len).sum();
    assert_eq!(written, writer.len(), "{level:?}: appends were lost, or ones that did not commit are there");
    // Write and read dependencies; and anti-dependencies, in which a version read is replaced by
    // another transaction.
    let (mut before, mut replaced) = (Edges::new(), Edges::new());
    let edge = |edges: &mut Edges, from: usize, to: usize| {
        if from != to {
            edges.entry(from).or_default().insert(to);
        }
    };
    for (id, list) in last {
        for pair in list.windows(2) {
            edge(&mut before, writer[&(*id, pair[0])], writer[&(*id, pair[1])]);
        }
    }
    for (at, done) in history.iter().enumerate() {
        for (id, list) in &done.reads {
            let all = last.get(id).cloned().unwrap_or_default();
            assert!(all.starts_with(list), "{level:?}: {list:?} was read of {id}, which became {all:?}");
            if let Some(value) = list.last() {
                edge(&mut before, writer[&(*id, *value)], at);
            }
            if let Some(value) = all.get(list.len()) {
                edge(&mut replaced, at, writer[&(*id, *value)]);
            }
        }
    }
    // G1c: no level allows cycles of write and read dependencies.
    if let Some(at) = circle(&before, history.len()) {
        panic!("{level:?}: a circle of what was written and read, through {:?}", history[at]);
    }
    // G-single: with a single snapshot, no transaction sees a part of another's changes.
    if level != Isolation::ReadCommitted {
        for (&reader, writers) in &replaced {
            if let Some(&writer) = writers.iter().find(|writer| leads_to(&before, **writer, reader)) {
                panic!("{level:?}: {:?} has seen a part of {:?}", history[reader], history[writer]);
            }
        }
    }
    if level == Isolation::Serializable {
        for (from, to) in replaced {
            before.entry(from).or_default().extend(to);
        }
        if let Some(at) = circle(&before, history.len()) {
            panic!("a circle through {:?}", history[at]);
        }
    }
}

type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// Returns whether there is a path.
fn leads_to(edges: &Edges, from: usize, to: usize) -> bool {
    let (mut seen, mut way) = (BTreeSet::new(), vec![from]);
    while let Some(at) = way.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            way.extend(edges.get(&at).into_iter().flatten());
        }
    }
    false
}

/// Goal: serializable transactions of many threads have a serial order, and at no level is an
/// append lost, or one read that did not commit. Method: threads that read and append, and a graph
/// of their dependencies. The operations of each thread follow from a seed. Their interleaving
/// depends on the machine, and every one must pass.
#[test]
fn list_append() {
    for level in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        // Fewer frames than the table has pages, and enough for threads that split nodes
        // concurrently.
        let fixture = Fixture::with(|options| {
            options.store.page_size = 4096;
            options.store.frames = 32;
        });
        let table = fixture.run(|transaction| {
            let columns =
                [("id", Type::Int), ("list", Type::Text), ("last", Type::Int), ("padding", Type::Text)];
            let mut def = def("lists", &columns, &[0]);
            def.indexes = vec![index("lists_last", &[2], true)];
            let table = transaction.create_table(def).unwrap();
            let padding = "p".repeat(500);
            for id in (0..LISTS * BETWEEN).filter(|id| id % BETWEEN > 0) {
                let row = [Value::Int(id), Value::Null, Value::Null, Value::Text(&padding)];
                transaction.insert(&table, &row).unwrap();
            }
            table
        });
        assert!(fixture.db.pages().unwrap().0 > 32);
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
        let last = (0..LISTS).map(|id| (id, read(&transaction, &table, id).unwrap())).collect();
        let history = lock(&history);
        assert!(history.len() > 100, "{level:?}: {} committed", history.len());
        check(level, &last, &history);
        drop(transaction);
        // Each transaction that ends cleans up after a few.
        (0..100).for_each(|at| {
            fixture.run(|transaction| assert!(transaction.delete(&table, &key(&table, 1 + at % 30)).is_ok()))
        });
        let stats = fixture.db.stats();
        assert_eq!(stats.versioned_rows, 0, "{level:?} {stats:?}");
        fixture.db.check().unwrap();
    }
}

/// Goal: the checker detects the anomalies it is meant for.
#[test]
fn checker_detects_anomalies() {
    let skew = [
        Done { reads: vec![(1, vec![]), (2, vec![])], appends: vec![(1, 10)] },
        Done { reads: vec![(1, vec![]), (2, vec![])], appends: vec![(2, 20)] },
    ];
    let last = BTreeMap::from([(1, vec![10]), (2, vec![20])]);
    check(Isolation::Snapshot, &last, &skew);
    assert!(std::panic::catch_unwind(|| check(Isolation::Serializable, &last, &skew)).is_err());
    // A transaction that has seen the second half of another and not the first.
    let half = [
        Done { reads: vec![(1, vec![]), (2, vec![20])], appends: vec![] },
        Done { reads: vec![], appends: vec![(1, 10), (2, 20)] },
    ];
    check(Isolation::ReadCommitted, &last, &half);
    assert!(std::panic::catch_unwind(|| check(Isolation::Snapshot, &last, &half)).is_err());
    // Two transactions that have seen each other.
    let each = [
        Done { reads: vec![(2, vec![20])], appends: vec![(1, 10)] },
        Done { reads: vec![(1, vec![10])], appends: vec![(2, 20)] },
    ];
    assert!(std::panic::catch_unwind(|| check(Isolation::ReadCommitted, &last, &each)).is_err());
    let lost = BTreeMap::from([(1, vec![10])]);
    assert!(std::panic::catch_unwind(|| check(Isolation::Snapshot, &lost, &skew)).is_err());
}
