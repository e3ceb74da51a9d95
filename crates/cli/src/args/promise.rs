//! Durability of writes, under one name in every command.

use clap::ValueEnum;

/// Durability of a write when its call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Promise {
    /// In memory: may be lost when the process ends
    Memory,
    /// In the kernel: survives the end of the process, but not a power loss
    Buffered,
    /// On stable storage: survives a power loss
    Sync,
}

impl From<Promise> for cairn_bench::core::workload::Durability {
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
