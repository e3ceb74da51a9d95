//! Transactions: several reads and writes that happen as if nothing else did.
//!
//! Both kinds are serialisable and buffer their writes until `commit`, which is one atomic batch.
//!
//! | | optimistic | pessimistic |
//! |---|---|---|
//! | reads | as of its begin | newest, under a lock held to the end |
//! | others may meanwhile | write anything | not write what it read, not touch what it wrote |
//! | conflict | found at commit: run it again | waits, and fails on deadlock or when the wait gets too long |
//! | for | little contention | hot keys, long transactions |
//!
//! Scans count as reads of all that they passed, absent keys included, so there are no phantoms
//! (Kung and Robinson, *On Optimistic Methods for Concurrency Control*, TODS 1981; Gray et al.,
//! *Granularity of Locks*, 1976). Plain writes beside transactions take no locks; a transaction of
//! either kind that depends on what they changed fails with a conflict.

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
