//! Options that are kept with a keyspace because stored bytes mean something else without them.
//!
//! ```text
//! 0   version       u8     1
//! 1   ttl           varint seconds; 0 is none
//!     operator      varint length, then the merge operator's name; empty is none
//! ```

use std::path::Path;

use cairn_codec::varint;

use crate::options::KeyspaceOptions;
use crate::{Error, Result};

const VERSION: u8 = 1;

/// The options of a keyspace that its data depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StoredOptions {
    pub ttl_secs: u64,
    pub merge_operator: String,
}

impl StoredOptions {
    pub(crate) fn of(options: &KeyspaceOptions) -> Self {
        StoredOptions {
            ttl_secs: options.ttl.map_or(0, |ttl| ttl.as_secs()),
            merge_operator: options.merge_operator.as_ref().map_or(String::new(), |it| it.name().to_owned()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        varint::push(self.ttl_secs, &mut out);
        varint::push(self.merge_operator.len() as u64, &mut out);
        out.extend_from_slice(self.merge_operator.as_bytes());
        out
    }

    /// Errors: [`Error::Unsupported`] for another version, [`Error::Corruption`] for what no version writes; both name
    /// `store`.
    pub(crate) fn decode(bytes: &[u8], store: &Path) -> Result<Self> {
        let damaged = || Error::corruption(store, 0, "options of a keyspace in the manifest cannot be read");
        let (&version, rest) = bytes.split_first().ok_or_else(damaged)?;
        if version != VERSION {
            let what = format!("keyspace options of version {version}, supported is {VERSION}");
            return Err(Error::unsupported(store, what));
        }
        let (ttl_secs, used) = varint::decode(rest).map_err(|_| damaged())?;
        let rest = &rest[used..];
        let (len, used) = varint::decode(rest).map_err(|_| damaged())?;
        let name = rest.get(used..).filter(|name| name.len() as u64 == len).ok_or_else(damaged)?;
        let merge_operator = String::from_utf8(name.to_vec()).map_err(|_| damaged())?;
        Ok(StoredOptions { ttl_secs, merge_operator })
    }

    /// Holds what the keyspace was made with against what it is opened with.
    ///
    /// A keyspace without merge operator may get one, which is kept from then on. Opening without the operator is fine: reads that need it say so.
    /// Errors: [`Error::Invalid`] with both values.
    pub(crate) fn check(&self, name: &str, given: &StoredOptions) -> Result<()> {
        if self.ttl_secs != given.ttl_secs {
            let (stored, given) = (self.ttl_secs, given.ttl_secs);
            return Err(Error::invalid(format!(
                "ttl: keyspace {name:?} was made with {stored} seconds (0 is none) and is opened with {given}"
            )));
        }
        let (stored, given) = (&self.merge_operator, &given.merge_operator);
        if !stored.is_empty() && !given.is_empty() && stored != given {
            return Err(Error::invalid(format!(
                "merge_operator: keyspace {name:?} was made with {stored:?} and is opened with {given:?}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: options come back, other versions and cut ones are refused.
    #[test]
    fn round_trip() {
        let options = StoredOptions { ttl_secs: 1 << 40, merge_operator: "cairn.add_u64".to_owned() };
        let bytes = options.encode();
        let store = Path::new("/store");
        assert_eq!(StoredOptions::decode(&bytes, store).unwrap(), options);
        for len in 0..bytes.len() {
            assert!(StoredOptions::decode(&bytes[..len], store).is_err(), "{len}");
        }
        let other = StoredOptions::decode(&[2, 0, 0], store).unwrap_err();
        assert!(other.to_string().contains("version 2"), "{other}");
    }
}
