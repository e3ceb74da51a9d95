//! Merge operators: read-modify-write without the read.

use std::fmt::Debug;

use cairn_vfs::sync::Arc;

/// Combines the operands of `merge` writes into a value, like the associative and full merge
/// operators of RocksDB.
///
/// An operator must be deterministic: reads and compactions call it on any grouping of operands
/// that keeps their order.
pub trait MergeOperator: Debug + Send + Sync + 'static {
    /// Returns the name that the store keeps. A keyspace can only be opened with an operator of the
    /// same name.
    fn name(&self) -> &str;

    /// Applies `operands`, oldest first, to `base` and returns the new value. `base` is `None` if
    /// the key has no value.
    ///
    /// Errors: a sentence that says why the operands cannot be applied. Reads of the key then fail
    /// with it. Flushes and compactions keep the base and the operands as they are; they do the
    /// same if the value would be longer than [`crate::VALUE_BYTES_MAX`].
    ///
    /// A panic is caught. Reads of the key then fail with [`crate::Error::Panicked`], flushes keep
    /// the base and the operands, and a compaction that meets the key is abandoned.
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String>;

    /// Combines `operands`, oldest first, into a single equivalent operand. Compactions use it to
    /// shorten chains of operands. Returns `None`, the default, if the operands cannot be combined.
    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}

/// Adds unsigned little-endian 64-bit integers, wrapping on overflow. A missing value counts as 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddU64;

impl AddU64 {
    fn number(bytes: &[u8]) -> Result<u64, String> {
        let bytes = bytes.try_into().map_err(|_| format!("AddU64 expects 8 bytes, found {}", bytes.len()))?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl MergeOperator for AddU64 {
    fn name(&self) -> &str {
        "cairn.add_u64"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut sum = base.map_or(Ok(0), Self::number)?;
        for operand in operands {
            sum = sum.wrapping_add(Self::number(operand)?);
        }
        Ok(sum.to_le_bytes().to_vec())
    }

    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.merge(key, None, operands).ok()
    }
}

/// Appends operands to the value, like Redis' `APPEND`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "cairn.append"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut value = base.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| value.extend_from_slice(operand));
        Ok(value)
    }

    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.merge(key, None, operands).ok()
    }
}

/// The merge operator of a keyspace, if it has one.
pub(crate) type Operator = Option<Arc<dyn MergeOperator>>;

/// The name of a merge operator in messages.
pub(crate) const OPERATOR: &str = "the merge operator";
