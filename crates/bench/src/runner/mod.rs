//! How measurements are taken: the description of one measurement ([`job`]), its execution
//! ([`mod@bench`]), and its delivery to a fresh process ([`worker`]).
//!
//! ```text
//!   quick   for each case, for each round, for each contender in shuffled order: measure here
//!   full    for each round, for each contender in shuffled order: all cases in a new process
//! ```
//!
//! Either way the contenders take turns, so that a slow minute of the machine affects all of them.

pub(crate) mod begun;
pub mod bench;
pub mod job;
pub mod reading;
pub mod worker;
