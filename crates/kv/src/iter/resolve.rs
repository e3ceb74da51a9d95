//! From the versions of one key to its value.

use std::path::Path;

use crate::kind::{Kind, Seqno, Version};
use crate::merge_operator::{OPERATOR, Operator};
use crate::{Error, Result, foreign};

/// What the versions of a key, seen newest first, come to.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    /// Values of merge entries, newest first.
    operands: Vec<Vec<u8>>,
}

/// What a resolver makes of a version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An operand: older versions decide.
    Older,
    /// The key's value is this version's, its kind `Put` or `Blob`.
    Found,
    /// The key has a base (this version, `Put` or `Blob`) below its operands: [`Resolver::merge`]
    /// them.
    Base,
    /// The key has no value, or only operands: [`Resolver::merge`] with no base.
    Gone,
}

impl Resolver {
    /// Takes the next older version. `covered` is the newest range tombstone over the key that the
    /// reader sees, 0 when there is none.
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

    /// With operands, newest first, that somebody else has gathered.
    pub(crate) fn from_operands(operands: Vec<Vec<u8>>) -> Self {
        Resolver { operands }
    }

    /// True when merge operands wait for their base.
    #[inline]
    pub(crate) fn has_operands(&self) -> bool {
        !self.operands.is_empty()
    }

    /// Forgets the operands.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.operands.clear();
    }

    /// The operands applied to `base`.
    ///
    /// Errors: [`Error::NoMergeOperator`] when `keyspace` was opened without one,
    /// [`Error::Invalid`] when it refuses the operands, [`Error::Panicked`].
    pub(crate) fn merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operator: &Operator,
        (store, keyspace): (&Path, &str),
    ) -> Result<Vec<u8>> {
        let refuse = |what: &str| {
            Error::invalid(format!("{}: key {} cannot be merged: {what}", store.display(), printable(key)))
        };
        let Some(operator) = operator else {
            return Err(Error::NoMergeOperator { path: store.to_owned(), key: printable(key) });
        };
        let operands: Vec<&[u8]> = self.operands.iter().rev().map(Vec::as_slice).collect();
        let merged = foreign::call(keyspace, key, OPERATOR, || operator.merge(key, base, &operands))?;
        merged.map_err(|what| refuse(&what))
    }
}

/// A key for messages: as text where it is, escaped where not, cut when long.
pub(crate) fn printable(key: &[u8]) -> String {
    const SHOWN_BYTES: usize = 64;
    let shown = key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii();
    if key.len() > SHOWN_BYTES {
        format!("\"{shown}\"... ({} bytes)", key.len())
    } else {
        format!("\"{shown}\"")
    }
}
