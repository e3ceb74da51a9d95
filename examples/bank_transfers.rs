//! Transfers that never create or lose money, by threads that conflict with each other: first
//! optimistic transactions, which run again after a conflict, then pessimistic ones, which lock.
//!
//! Run it with `cargo run --example bank_transfers`.
#![allow(clippy::disallowed_methods)] // plain threads, as in your own program

use std::error::Error;
use std::thread;

use cairn_kv::{Db, TransactionOptions};

const ACCOUNTS: u64 = 8;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 500;

type Failure = Box<dyn Error + Send + Sync>;

fn account(number: u64) -> String {
    format!("account {:02}", number % ACCOUNTS)
}

fn amount(value: Option<&[u8]>) -> Result<u64, Failure> {
    let bytes = value.ok_or("there is no such account")?;
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

/// Makes one attempt. Returns false if the balance is too low. Dropping a transaction rolls it
/// back.
fn attempt(db: &Db, options: &TransactionOptions, from: &str, to: &str, sum: u64) -> Result<bool, Failure> {
    let mut transaction = db.transaction_with(options.clone());
    // `get` would also be correct. `get_for_update` tells a pessimistic transaction to take a write
    // lock at once.
    let source = amount(transaction.get_for_update(db, from)?.as_deref())?;
    let target = amount(transaction.get_for_update(db, to)?.as_deref())?;
    if source < sum || from == to {
        return Ok(false);
    }
    transaction.put(db, from, (source - sum).to_be_bytes())?;
    transaction.put(db, to, (target + sum).to_be_bytes())?;
    transaction.commit()?; // fails if another transaction has changed the values that were read
    Ok(true)
}

/// Repeats a transfer until it succeeds, and returns the number of conflicts. A deadlock is a
/// conflict too: one of the waiting transactions must start over.
fn transfer(db: &Db, options: &TransactionOptions, from: &str, to: &str, sum: u64) -> Result<u64, Failure> {
    let mut conflicts = 0;
    loop {
        match attempt(db, options, from, to, sum) {
            Ok(_) => return Ok(conflicts),
            Err(error) => match error.downcast_ref::<cairn_kv::Error>() {
                Some(lost) if lost.is_conflict() => conflicts += 1,
                _ => return Err(error),
            },
        }
    }
}

fn worker(db: &Db, options: &TransactionOptions, thread: u64) -> Result<u64, Failure> {
    let mut conflicts = 0;
    for round in 0..TRANSFERS {
        let (from, to) = (account(round * 5 + thread), account(round * 3 + thread * 2 + 1));
        conflicts += transfer(db, options, &from, &to, 1 + round % 50)?;
    }
    Ok(conflicts)
}

pub(crate) fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let db = Db::open(dir.path().join("bank"))?;
    for number in 0..ACCOUNTS {
        db.put(account(number), 1_000u64.to_be_bytes())?;
    }

    for pessimistic in [false, true] {
        let options = TransactionOptions { pessimistic, ..TransactionOptions::default() };
        let mut conflicts = 0;
        thread::scope(|scope| {
            let (db, options) = (&db, &options);
            let workers: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || worker(db, options, thread))).collect();
            for worker in workers {
                conflicts += worker.join().map_err(|_| "a thread panicked")??;
            }
            Ok::<_, Failure>(())
        })?;
        let kind = if pessimistic { "pessimistic" } else { "optimistic" };
        println!("{kind}: {} transfers, {conflicts} started over", THREADS * TRANSFERS);

        // An iterator sees one moment, so the sum is right even while other threads transfer.
        let mut total = 0;
        for entry in db.iter() {
            total += amount(Some(&entry?.1))?;
        }
        println!("  {total} in all accounts, as before: {}", total == ACCOUNTS * 1_000);
    }

    // A conflict names the key.
    let mut first = db.transaction();
    first.get(&db, account(0))?;
    first.put(&db, account(1), 0u64.to_be_bytes())?;
    db.put(account(0), 7u64.to_be_bytes())?;
    match first.commit() {
        Err(error) => println!("refused: {error}"),
        Ok(()) => println!("committed, which it should not have been"),
    }
    Ok(())
}
