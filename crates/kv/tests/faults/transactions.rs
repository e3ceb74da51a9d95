//! Transactions under threads: whatever the interleaving, the outcome equals that of some serial
//! order.

use std::sync::atomic::{AtomicU64, Ordering};

use cairn_kv::{Background, Transaction, TransactionOptions};
use cairn_vfs::{MemFs, Rng, SeededRng, thread};

use super::*;

const ACCOUNTS: u64 = 12;
const START: u64 = 100;
const THREADS: u64 = 4;

fn store(own: u64) -> Db {
    let shape = Shape { background: Background::Threads(2), ..Shape::new(own) };
    shape.builder(Arc::new(MemFs::new())).clock(Arc::new(cairn_vfs::SystemClock::new())).open().unwrap()
}

fn key(account: u64) -> String {
    format!("account {account:03}")
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

/// Runs `work` until it commits, and counts the conflicts.
fn retry(db: &Db, pessimistic: bool, conflicts: &AtomicU64, work: impl Fn(&mut Transaction) -> Result<()>) {
    loop {
        let options = TransactionOptions { pessimistic, ..TransactionOptions::default() };
        let mut transaction = db.transaction_with(options);
        match work(&mut transaction).and_then(|()| transaction.commit()) {
            Ok(()) => return,
            Err(error) => {
                let is_lost = error.is_conflict() || matches!(error, cairn_kv::Error::Busy { .. });
                assert!(is_lost, "{error}");
                conflicts.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Moves money between accounts that it reads. It also opens and closes accounts, so that scans
/// encounter phantoms.
fn transfer(db: &Db, rng: &mut SeededRng, pessimistic: bool, conflicts: &AtomicU64) {
    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
    let amount = rng.below(30);
    retry(db, pessimistic, conflicts, |transaction| {
        let Some(source) = transaction.get(db, key(from))? else { return Ok(()) };
        let (source, amount) = (number(&source), amount.min(number(&source)));
        if from == to {
            return Ok(());
        }
        let target = transaction.get(db, key(to))?.map_or(0, |bytes| number(&bytes));
        // Lets other threads run in between.
        thread::yield_now();
        // An empty account is closed.
        if source == amount {
            transaction.delete(db, key(from))?;
        } else {
            transaction.put(db, key(from), (source - amount).to_be_bytes())?;
        }
        if target + amount > 0 {
            transaction.put(db, key(to), (target + amount).to_be_bytes())?;
        }
        Ok(())
    });
}

/// Sums all accounts with a scan and writes the result, which is wrong if a phantom appeared in
/// between.
fn audit(db: &Db, pessimistic: bool, conflicts: &AtomicU64) {
    retry(db, pessimistic, conflicts, |transaction| {
        let mut sum = 0;
        for pair in transaction.range(db, "account ".."account!")? {
            sum += number(&pair?.1);
        }
        assert!(!pessimistic || sum == ACCOUNTS * START, "under locks a scan sees {sum}");
        transaction.put(db, "audit", sum.to_be_bytes())
    });
    // A committed audit had nothing in between.
    assert_eq!(number(&db.get("audit").unwrap().unwrap()), ACCOUNTS * START);
}

fn bank(own: u64, pessimistic: impl Fn(u64) -> bool + Sync) -> u64 {
    let db = store(own);
    for account in 0..ACCOUNTS {
        db.put(key(account), START.to_be_bytes()).unwrap();
    }
    let conflicts = AtomicU64::new(0);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (db, conflicts, pessimistic) = (&db, &conflicts, &pessimistic);
            let work = move || {
                let mut rng = SeededRng::new(own + index);
                for round in 0..rounds(150, 5000) {
                    let pessimistic = pessimistic(index);
                    match round % 10 {
                        9 => audit(db, pessimistic, conflicts),
                        _ => transfer(db, &mut rng, pessimistic, conflicts),
                    }
                    if round % 40 == 39 {
                        db.flush().unwrap();
                    }
                }
            };
            thread::spawn_scoped(scope, "teller", work).unwrap();
        }
    });
    let sum: u64 = db.prefix("account ").map(|pair| number(&pair.unwrap().1)).sum();
    assert_eq!(sum, ACCOUNTS * START);
    conflicts.into_inner()
}

/// Goal: optimistic transactions are serializable, including phantoms.
/// Method: transfers that open and close accounts, and audits that scan and then write; the sum is
/// constant in every committed audit. Flushes run concurrently.
#[test]
fn optimistic_bank() {
    println!("optimistic bank: {} conflicts", bank(seed(17), |_| false));
}

/// Goal: the same for pessimistic transactions, whose scans always see the right sum and whose
/// deadlocks are detected.
#[test]
fn pessimistic_bank() {
    println!("pessimistic bank: {} conflicts", bank(seed(18), |_| true));
}

/// Goal: both kinds of transactions together are serializable too.
#[test]
fn mixed_bank() {
    println!("mixed bank: {} conflicts", bank(seed(19), |index| index % 2 == 0));
}

/// Goal: of two transactions that read both of two keys and write one each, one fails (write skew).
/// Method: one thread, in the order in which snapshot isolation goes wrong.
#[test]
fn write_skew() {
    for pessimistic in [false, true] {
        let db = store(1);
        db.put("on call: ann", "yes").unwrap();
        db.put("on call: bob", "yes").unwrap();
        let options = TransactionOptions {
            pessimistic,
            lock_timeout: std::time::Duration::ZERO,
            ..TransactionOptions::default()
        };
        let mut first = db.transaction_with(options.clone());
        let mut second = db.transaction_with(options);
        let leave = |transaction: &mut Transaction, who: &str| -> Result<()> {
            let on_call = transaction.range(&db, "on call: ".."on call; ")?.count();
            assert_eq!(on_call, 2);
            transaction.delete(&db, format!("on call: {who}"))
        };
        let results = [leave(&mut first, "ann"), leave(&mut second, "bob")];
        let committed = [first, second]
            .into_iter()
            .zip(results)
            .map(|(transaction, result)| result.and_then(|()| transaction.commit()));
        let won = committed.filter(Result::is_ok).count();
        assert!(won <= 1, "pessimistic: {pessimistic}: both went off call");
        assert!(db.prefix("on call: ").count() >= 1);
    }
}
