//! Compaction strategies, which decide which tables are merged, and when: those of
//! `cairn-lsm-policy`, for keys that are byte strings. The simulator runs the same ones.

pub use cairn_lsm_policy::bytes::*;
