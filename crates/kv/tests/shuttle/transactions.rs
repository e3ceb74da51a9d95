//! Transactions: whatever the schedule, the outcome equals that of some serial order.

use cairn_kv::{Result, Transaction, TransactionOptions};

use super::*;

const START: u64 = 50;

/// Runs `work` until it commits.
fn retry(db: &Db, pessimistic: bool, work: impl Fn(&mut Transaction) -> Result<()>) {
    loop {
        let options = TransactionOptions { pessimistic, ..TransactionOptions::default() };
        let mut transaction = db.transaction_with(options);
        match work(&mut transaction).and_then(|()| transaction.commit()) {
            Ok(()) => return,
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
        // Otherwise this thread could always be scheduled first.
        thread::yield_now();
    }
}

fn transfer(db: &Db, pessimistic: bool, from: &str, to: &str, amount: u64) {
    retry(db, pessimistic, |transaction| {
        let source = number(transaction.get(db, from)?.as_deref());
        let amount = amount.min(source);
        if amount == source {
            // An empty account is closed, so that scans encounter phantoms.
            transaction.delete(db, from)?;
        } else {
            transaction.put(db, from, (source - amount).to_be_bytes())?;
        }
        let target = number(transaction.get(db, to)?.as_deref());
        transaction.put(db, to, (target + amount).to_be_bytes())
    });
}

/// Sums all accounts with a scan and writes the result. A committed audit had nothing in between.
fn audit(db: &Db, pessimistic: bool) {
    retry(db, pessimistic, |transaction| {
        let mut sum = 0;
        for pair in transaction.range(db, "account a".."account z")? {
            sum += number(Some(&pair?.1));
        }
        assert!(!pessimistic || sum == 2 * START, "under locks a scan sees {sum}");
        transaction.put(db, "audit", sum.to_be_bytes())
    });
    assert_eq!(number(db.get("audit").unwrap().as_deref()), 2 * START);
}

fn bank(pessimistic: [bool; 3]) {
    explore(300, move || {
        let fs = memory();
        let options = KeyspaceOptions { memtable_bytes: 12 << 10, ..keyspace() };
        let db = builder(&fs, 1, &options).open().unwrap();
        for account in ["account a", "account b"] {
            db.put(account, START.to_be_bytes()).unwrap();
        }
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || {
                transfer(db, pessimistic[0], "account a", "account b", START);
                transfer(db, pessimistic[0], "account b", "account c", 7);
            });
            scope.spawn(move || transfer(db, pessimistic[1], "account b", "account a", 30));
            scope.spawn(move || audit(db, pessimistic[2]));
        });
        let sum: u64 = db.prefix("account ").map(|pair| number(Some(&pair.unwrap().1))).sum();
        assert_eq!(sum, 2 * START);
    });
}

/// Goal: optimistic transactions are serializable, including phantoms.
/// Method: transfers that open and close accounts, and an audit that scans and then writes;
/// memtables are sealed and flushed concurrently.
#[test]
fn optimistic_bank() {
    bank([false; 3]);
}

/// Goal: the same for pessimistic transactions; deadlocks are detected, and every waiter is woken.
#[test]
fn pessimistic_bank() {
    bank([true; 3]);
}

/// Goal: the same for both kinds together.
#[test]
fn mixed_bank() {
    bank([false, true, true]);
    bank([true, false, false]);
}

/// Goal: plain writes beside a transaction cause a conflict or come after it.
/// Method: a transaction of either kind adds to a counter that plain writes set meanwhile.
#[test]
fn plain_writes() {
    for pessimistic in [false, true] {
        explore(300, move || {
            let fs = memory();
            let db = builder(&fs, 1, &keyspace()).open().unwrap();
            thread::scope(|scope| {
                let db = &db;
                scope.spawn(move || {
                    [100u64, 200].iter().for_each(|at| db.put("n", at.to_be_bytes()).unwrap())
                });
                for _ in 0..2 {
                    scope.spawn(move || {
                        retry(db, pessimistic, |transaction| {
                            let found = number(transaction.get(db, "n")?.as_deref());
                            transaction.put(db, "n", (found + 1).to_be_bytes())
                        });
                    });
                }
            });
            // The number of transactions, of two, that committed after the last plain write.
            let found = number(db.get("n").unwrap().as_deref());
            assert!((200..=202).contains(&found), "{found}");
        });
    }
}
