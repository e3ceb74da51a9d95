//! Resolving the versions of one key to its value.

use std::path::Path;

use crate::escape::printable;
use crate::kind::{Kind, Seqno, Version};
use crate::merge_operator::{OPERATOR, Operator};
use crate::{Error, Result, user_code};

/// Resolves the versions of a key, fed newest first.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    /// Merge operands, newest first.
    operands: Vec<Vec<u8>>,
}

/// The result of one version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An operand: older versions decide.
    Older,
    /// This version, of kind `Put` or `Blob`, is the key's value.
    Found,
    /// This version, of kind `Put` or `Blob`, is the base of the key's operands: call
    /// [`Resolver::merge`] with it.
    Base,
    /// The key has no value, or only operands: call [`Resolver::merge`] without a base.
    Gone,
}

impl Resolver {
    /// Processes the next older version. `covered` is the sequence number of the newest range
    /// tombstone over the key that the reader sees, or 0 when there is none.
    #[inline]
    pub(crate) fn step(&mut self, version: Version<'_>, covered: Seqno) -> Step {
        if version.seqno < covered {
            return Step::Gone;
        }
        match version.kind {
            Kind::Delete => Step::Gone,
            Kind::Put | Kind::Blob if self.operands.is_empty() => Step::Found,
            Kind::Put | Kind::Blob => Step::Base,
            Kind::Merge => {
                self.operands.push(version.value.to_vec());
                Step::Older
            }
        }
    }

    /// Creates a resolver with operands that were collected elsewhere, newest first.
    pub(crate) fn from_operands(operands: Vec<Vec<u8>>) -> Self {
        debug_assert!(!operands.is_empty(), "a merge without operands");
        Resolver { operands }
    }

    /// Returns true when merge operands wait for their base.
    #[inline]
    pub(crate) fn has_operands(&self) -> bool {
        !self.operands.is_empty()
    }

    /// Removes the operands.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.operands.clear();
    }

    /// Applies the operands to `base`.
    ///
    /// Errors: [`Error::NoMergeOperator`] when `keyspace` was opened without one,
    /// [`Error::Invalid`] when the operator rejects the operands, [`Error::Panicked`] when it
    /// panics.
    pub(crate) fn merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operator: &Operator,
        (store, keyspace): (&Path, &str),
    ) -> Result<Vec<u8>> {
        debug_assert!(self.has_operands(), "a merge without operands");
        let refuse = |what: &str| {
            Error::invalid(format!("{}: key {} cannot be merged: {what}", store.display(), printable(key)))
        };
        let Some(operator) = operator else {
            return Err(Error::NoMergeOperator { path: store.to_owned(), key: printable(key) });
        };
        let operands: Vec<&[u8]> = self.operands.iter().rev().map(Vec::as_slice).collect();
        let merged = user_code::call(keyspace, key, OPERATOR, || operator.merge(key, base, &operands))?;
        merged.map_err(|what| refuse(&what))
    }
}
