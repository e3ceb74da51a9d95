//! Compactions, and the parts they share with flushes: the stream of surviving entries, and the
//! strategies that choose tables to merge.

pub mod strategy;
pub(crate) mod stream;
