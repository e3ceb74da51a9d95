//! Shared code of Cairn's constant readers: the same loops measure both formats.

use std::borrow::Cow;

use cairn_hash::{Result as HashResult, sparkey, table};

use super::lookups::{Lookups, in_batches};
use super::{ConstantReader, Session};
use crate::core::error::Result;
use crate::core::workload::KeyBatch;

/// Number of keys per call of `get_many`.
const BATCH_KEYS: usize = 256;

/// The lookups of a reader of `cairn-hash`.
pub(super) trait Lookup: Send + Sync {
    fn get(&self, key: &[u8]) -> HashResult<Option<Cow<'_, [u8]>>>;

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> HashResult<bool>;

    fn get_many(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> HashResult<()>;
}

macro_rules! lookup_by {
    ($reader:ty) => {
        impl Lookup for $reader {
            #[inline]
            fn get(&self, key: &[u8]) -> HashResult<Option<Cow<'_, [u8]>>> {
                self.get(key)
            }

            #[inline]
            fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> HashResult<bool> {
                self.get_into(key, value)
            }

            #[inline]
            fn get_many(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> HashResult<()> {
                self.get_many(keys, found)
            }
        }
    };
}

lookup_by!(table::Reader);
lookup_by!(sparkey::SparkeyReader);

/// An open store of Cairn's.
pub(super) struct CairnReader<R> {
    pub reader: R,
    /// True if the reader lends values instead of copying them to a buffer.
    pub borrows: bool,
}

impl<R: Lookup> ConstantReader for CairnReader<R> {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(if self.borrows {
            Box::new(Borrowing(&self.reader))
        } else {
            Box::new(Copying { reader: &self.reader, value: Vec::new() })
        })
    }
}

struct Borrowing<'a, R>(&'a R);

impl<R: Lookup> Lookups for Borrowing<'_, R> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            visit(self.0.get(key)?.as_deref());
        }
        Ok(())
    }

    fn each_batched(&mut self, keys: KeyBatch<'_>, visit: impl FnMut(usize, Option<&[u8]>)) -> Result<()> {
        batched(self.0, keys, visit)
    }
}

struct Copying<'a, R> {
    reader: &'a R,
    value: Vec<u8>,
}

impl<R: Lookup> Lookups for Copying<'_, R> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            let found = self.reader.get_into(key, &mut self.value)?;
            visit(found.then_some(self.value.as_slice()));
        }
        Ok(())
    }

    fn each_batched(&mut self, keys: KeyBatch<'_>, visit: impl FnMut(usize, Option<&[u8]>)) -> Result<()> {
        batched(self.reader, keys, visit)
    }
}

#[inline]
fn batched<R: Lookup>(
    reader: &R,
    keys: KeyBatch<'_>,
    mut visit: impl FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    in_batches(keys, BATCH_KEYS, |first, keys| {
        Ok(reader.get_many(keys, |position, value| visit(first + position, value))?)
    })
}
