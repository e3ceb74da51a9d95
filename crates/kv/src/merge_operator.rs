//! Merge operators: read-modify-write without the read.

use std::fmt::Debug;

use cairn_vfs::sync::Arc;

/// Combines the operands of `merge` writes into a value, as RocksDB's associative and full merge
/// operators do.
///
/// Must be deterministic: it runs at reads and at compactions, in any grouping that keeps the order
/// of operands.
pub trait MergeOperator: Debug + Send + Sync + 'static {
    /// The name that the store keeps: a keyspace can only be opened with an operator of the same
    /// name.
    fn name(&self) -> &str;

    /// The value that `operands`, oldest first, make of `base` (`None` when the key has no value).
    ///
    /// Errors: a sentence why the operands cannot be applied. Reads of the key fail with it;
    /// flushes and compactions keep base and operands as they are, as they do where the value would
    /// be longer than [`crate::VALUE_BYTES_MAX`].
    ///
    /// A panic is caught. Reads of the key fail with [`crate::Error::Panicked`]; flushes keep base
    /// and operands, and a compaction that meets the key is given up.
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String>;

    /// One operand that stands for `operands`, oldest first; `None` (as by default) when there is
    /// no such thing. Compactions shorten chains of operands with it.
    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}

/// Adds unsigned little-endian 64-bit numbers, wrapping round. A missing value counts as 0.
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

/// Appends operands to the value, as Redis' `APPEND`.
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

/// A keyspace's operator, when it has one.
pub(crate) type Operator = Option<Arc<dyn MergeOperator>>;

/// What messages call one.
pub(crate) const OPERATOR: &str = "the merge operator";
