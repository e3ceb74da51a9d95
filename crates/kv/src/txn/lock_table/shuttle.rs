//! The lock table under schedules that follow from a seed: see `testing/schedules.rs`. Waits never
//! time out there, so shuttle detects waiters that are not woken and deadlocks that the table
//! misses.

use cairn_vfs::sync::Arc;
use cairn_vfs::{ManualClock, thread};

use super::*;
use crate::schedules::explore;

const KEYSPACE: KeyspaceId = KeyspaceId(0);
const TIMEOUT: Duration = Duration::from_secs(1);

/// The locks held, according to the holders.
#[derive(Default)]
struct Held {
    readers: BTreeMap<u8, Vec<TransactionId>>,
    writers: BTreeMap<u8, TransactionId>,
}

#[derive(Default)]
struct Table {
    locks: LockTable,
    held: Mutex<Held>,
}

#[derive(Clone, Copy)]
enum Want {
    Read(u8),
    Write(u8),
    /// All keys from the first (inclusive) to the second (exclusive).
    Scan(u8, u8),
}

impl Table {
    /// Acquires a lock and records it. Asserts that no other transaction holds a conflicting one.
    fn acquire(&self, id: TransactionId, want: Want, clock: &ManualClock) -> Result<()> {
        let (from, to, mode) = match want {
            Want::Read(key) => (key, key + 1, Mode::Shared),
            Want::Write(key) => (key, key + 1, Mode::Exclusive),
            Want::Scan(from, to) => (from, to, Mode::Shared),
        };
        let (bounds, key) = (Bounds { lower: Some(vec![from]), upper: Some(vec![to]) }, [from]);
        let target = if matches!(want, Want::Scan(..)) { Target::Range(&bounds) } else { Target::Key(&key) };
        self.locks.acquire(id, KEYSPACE, target, mode, TIMEOUT, clock)?;
        let mut held = lock(&self.held);
        for key in from..to {
            let writer = held.writers.get(&key).copied().filter(|writer| *writer != id);
            assert!(writer.is_none(), "key {key}: {id} came in beside writer {writer:?}");
            if mode == Mode::Exclusive {
                let readers: Vec<_> =
                    held.readers.get(&key).into_iter().flatten().filter(|reader| **reader != id).collect();
                assert!(readers.is_empty(), "key {key}: writer {id} came in beside readers {readers:?}");
                held.writers.insert(key, id);
            } else {
                held.readers.entry(key).or_default().push(id);
            }
        }
        Ok(())
    }

    fn release(&self, id: TransactionId) {
        let mut held = lock(&self.held);
        held.writers.retain(|_, writer| *writer != id);
        held.readers.values_mut().for_each(|readers| readers.retain(|reader| *reader != id));
        drop(held);
        self.locks.release(id);
    }

    /// Acquires all locks, starting over after each deadlock. Returns the number of deadlocks.
    fn run(&self, wants: &[Want], clock: &ManualClock) -> usize {
        let mut deadlocks = 0;
        loop {
            let id = self.locks.begin();
            let result = wants.iter().try_for_each(|want| self.acquire(id, *want, clock));
            self.release(id);
            match result {
                Ok(()) => return deadlocks,
                Err(error) => assert!(error.is_conflict(), "{error}"),
            }
            deadlocks += 1;
            // Otherwise this transaction could always run first.
            thread::yield_now();
        }
    }
}

fn together(wants: &'static [&'static [Want]]) {
    explore(1_500, move || {
        let (table, clock) = (Arc::new(Table::default()), Arc::new(ManualClock::new(Duration::ZERO)));
        thread::scope(|scope| {
            for wants in wants {
                let (table, clock) = (&table, &clock);
                scope.spawn(move || table.run(wants, clock));
            }
        });
        assert!(table.locks.is_empty());
    });
}

/// Goal: locks exclude each other, waiters are woken, and one transaction of each cycle is refused.
/// Method: three transactions that lock the same keys in three orders.
#[test]
fn cycles() {
    together(&[
        &[Want::Write(0), Want::Write(1)],
        &[Want::Write(1), Want::Write(2)],
        &[Want::Write(2), Want::Read(0)],
    ]);
}

/// Goal: the same if readers become writers, which deadlocks any two of them. Method: two
/// transactions that read and then write one key, and one that only reads it.
#[test]
fn upgrades() {
    together(&[&[Want::Read(0), Want::Write(0)], &[Want::Read(0), Want::Write(0)], &[Want::Read(0)]]);
}

/// Goal: the same with scans, which also keep writers off absent keys. Method: overlapping scans,
/// followed by writes to ranges that others have scanned.
#[test]
fn scans() {
    together(&[
        &[Want::Scan(0, 3), Want::Write(1)],
        &[Want::Scan(1, 4), Want::Write(3)],
        &[Want::Write(2), Want::Read(3)],
    ]);
}
