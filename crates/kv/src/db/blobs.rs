//! Values that live apart from their keys.

use crate::iter::visible::BlobSource;
use crate::{Error, Result};

/// A store without blob files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoBlobs;

impl BlobSource for NoBlobs {
    fn load(&self, _reference: &[u8], _out: &mut Vec<u8>) -> Result<()> {
        Err(Error::invalid("a reference to a blob file in a store that has none"))
    }
}
