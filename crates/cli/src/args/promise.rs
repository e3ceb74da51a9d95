//! What a write promises: one word for it in every command.

use clap::ValueEnum;

/// What a write promises when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Promise {
    /// Nothing: it may be lost with the process
    Memory,
    /// It is with the kernel: it survives the process, not the power
    Buffered,
    /// It is on stable storage
    Sync,
}

impl From<Promise> for cairn_bench::workload::Durability {
    fn from(promise: Promise) -> Self {
        match promise {
            Promise::Memory => Self::Memory,
            Promise::Buffered => Self::Buffered,
            Promise::Sync => Self::Sync,
        }
    }
}

impl From<Promise> for cairn_kv::Durability {
    fn from(promise: Promise) -> Self {
        match promise {
            Promise::Memory => Self::Memory,
            Promise::Buffered => Self::Buffered,
            Promise::Sync => Self::Sync,
        }
    }
}

#[cfg(feature = "sql")]
impl From<Promise> for cairn_sql::Durability {
    fn from(promise: Promise) -> Self {
        match promise {
            Promise::Memory => Self::Memory,
            Promise::Buffered => Self::Buffered,
            Promise::Sync => Self::Sync,
        }
    }
}
