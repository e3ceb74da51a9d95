//! How measurements are taken: what one of them is ([`job`]), how it is carried out
//! ([`mod@bench`]), and how it reaches a fresh process ([`worker`]).
//!
//! ```text
//!   quick   for each case, for each round, for each contender in a shuffled order: measure here
//!   full    for each round, for each contender in a shuffled order: measure all cases in a new process
//! ```
//!
//! Either way the contenders take turns, so that a slow minute of the machine is shared by all.

pub(crate) mod begun;
pub mod bench;
pub mod job;
pub mod reading;
pub mod worker;
