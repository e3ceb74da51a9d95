//! Flushes' and compactions' common ground: what survives, and the strategies that choose what is
//! merged.

pub mod strategy;
pub(crate) mod stream;
