//! Transactions: several reads and writes that are executed as if nothing else ran.
//!
//! Both kinds are serializable and buffer their writes until `commit`, which is one atomic batch.
//!
//! | | optimistic | pessimistic |
//! |---|---|---|
//! | reads | as of its begin | newest, under a lock held to the end |
//! | other transactions may | write anything | not write keys it read, not touch keys it wrote |
//! | conflict | found at commit: run it again | waits; fails on deadlock or timeout |
//! | for | little contention | hot keys, long transactions |
//!
//! A scan counts as a read of everything it passed, including absent keys, so there are no phantoms
//! (Kung and Robinson, *On Optimistic Methods for Concurrency Control*, TODS 1981; Gray et al.,
//! *Granularity of Locks*, 1976). Plain writes concurrent with transactions take no locks. A
//! transaction of either kind that depends on data changed by them fails with a conflict.

mod lock_table;
mod overlay;
mod range;
mod reads;
#[cfg(test)]
mod tests;
mod transaction;

pub(crate) use lock_table::LockTable;
pub use range::TransactionRange;
pub use transaction::{Transaction, TransactionOptions};
