//! Options stored with a keyspace: those that determine the meaning of its stored bytes, and its
//! compaction strategy, which applies until an open specifies another one.
//!
//! ```text
//! 0   version       u8     2
//! 1   ttl           varint seconds; 0 for none
//!     operator      varint length, then the merge operator's name; empty for none
//!     strategy      see [`stored_strategy`]; absent if unknown, as in version 1
//! ```

use std::path::Path;

use cairn_codec::varint;

use crate::compaction::strategy::StrategyOptions;
use crate::db::stored_strategy;
use crate::options::KeyspaceOptions;
use crate::{Error, Result};

const VERSION: u8 = 2;

const _: () = assert!(VERSION == 2, "what `encode` writes, `decode` reads, and it knows versions 1 and 2");

/// The options stored with a keyspace.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StoredOptions {
    pub ttl_secs: u64,
    pub merge_operator: String,
    /// The last compaction strategy, or `None` if none was ever specified.
    pub compaction: Option<StrategyOptions>,
}

impl StoredOptions {
    pub(crate) fn of(options: &KeyspaceOptions) -> Self {
        StoredOptions {
            ttl_secs: options.ttl.map_or(0, |ttl| ttl.as_secs()),
            merge_operator: options.merge_operator.as_ref().map_or(String::new(), |it| it.name().to_owned()),
            compaction: Some(options.compaction.clone()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        varint::push(self.ttl_secs, &mut out);
        varint::push(self.merge_operator.len() as u64, &mut out);
        out.extend_from_slice(self.merge_operator.as_bytes());
        if let Some(compaction) = &self.compaction {
            stored_strategy::encode(compaction, &mut out);
        }
        let is_refused = self.compaction.as_ref().is_some_and(|it| it.check().is_err());
        debug_assert!(
            is_refused || StoredOptions::decode(&out, Path::new("")).is_ok_and(|decoded| decoded == *self),
            "options that would not be read back: {self:?}"
        );
        out
    }

    /// Decodes the stored options of a keyspace. Errors: [`Error::Unsupported`] for an unknown
    /// version, [`Error::Corruption`] for invalid bytes. Both name `store`.
    pub(crate) fn decode(bytes: &[u8], store: &Path) -> Result<Self> {
        let damaged = || Error::corruption(store, 0, "options of a keyspace in the manifest cannot be read");
        let (&version, rest) = bytes.split_first().ok_or_else(damaged)?;
        match version {
            1 | 2 => {}
            other => {
                let what =
                    format!("keyspace options of version {other}, supported versions are 1 to {VERSION}");
                return Err(Error::unsupported(store, what));
            }
        }
        let (ttl_secs, used) = varint::decode(rest).map_err(|_| damaged())?;
        let rest = &rest[used..];
        let (len, used) = varint::decode(rest).map_err(|_| damaged())?;
        let rest = rest.get(used..).unwrap_or_default();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let (name, rest) = rest.split_at_checked(len).ok_or_else(damaged)?;
        let merge_operator = String::from_utf8(name.to_vec()).map_err(|_| damaged())?;
        let compaction = match (version, rest) {
            (1 | 2, []) => None,
            (2, rest) => Some(stored_strategy::decode(rest).ok_or_else(damaged)?),
            _ => return Err(damaged()),
        };
        Ok(StoredOptions { ttl_secs, merge_operator, compaction })
    }

    /// Checks the options given at an open against those with which the keyspace was created.
    ///
    /// A keyspace without a merge operator may get one, which is stored from then on. Opening
    /// without the operator is allowed: reads that need it return an error.
    ///
    /// Errors: [`Error::Invalid`] with both values.
    pub(crate) fn check(&self, name: &str, given: &StoredOptions) -> Result<()> {
        if self.ttl_secs != given.ttl_secs {
            let (stored, given) = (self.ttl_secs, given.ttl_secs);
            return Err(Error::invalid(format!(
                "ttl: keyspace {name:?} was created with {stored} seconds (0 is none), \
                 but is opened with {given}"
            )));
        }
        let (stored, given) = (&self.merge_operator, &given.merge_operator);
        if !stored.is_empty() && !given.is_empty() && stored != given {
            return Err(Error::invalid(format!(
                "merge_operator: keyspace {name:?} was created with {stored:?}, but is opened with {given:?}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: options survive a round trip, unknown versions and truncated bytes are refused, and
    /// version 1 has no strategy.
    #[test]
    fn round_trip() {
        let compaction = Some(StrategyOptions::default());
        let options =
            StoredOptions { ttl_secs: 1 << 40, merge_operator: "cairn.add_u64".to_owned(), compaction };
        let bytes = options.encode();
        let store = Path::new("/store");
        assert_eq!(StoredOptions::decode(&bytes, store).unwrap(), options);
        let none = StoredOptions { compaction: None, ..options.clone() };
        let shortest = none.encode();
        for len in (0..bytes.len()).filter(|len| *len != shortest.len()) {
            assert!(StoredOptions::decode(&bytes[..len], store).is_err(), "{len}");
        }
        let mut first = shortest.clone();
        first[0] = 1;
        assert_eq!(StoredOptions::decode(&first, store).unwrap(), none);
        let mut strange = bytes;
        strange[0] = 1;
        assert!(StoredOptions::decode(&strange, store).is_err(), "version 1 has nothing behind the name");
        let other = StoredOptions::decode(&[3, 0, 0], store).unwrap_err();
        assert!(other.to_string().contains("version 3"), "{other}");
    }
}
