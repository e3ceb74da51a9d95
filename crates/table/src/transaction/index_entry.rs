//! Index entries of rows.

use crate::catalog::{Index, RowRef, Table};
use crate::{Error, Result};

/// An index entry of a row.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl Entry {
    /// Fills in the entry of a row.
    pub(super) fn set(&mut self, table: &Table, index: &Index, row: &RowRef<'_>) -> Result<()> {
        self.key.clear();
        self.value.clear();
        if !table.encode_entry(index, row, &mut self.key, &mut self.value) {
            return Err(Error::Invalid {
                what: format!("the columns that index {} includes are longer than 64 KiB", index.def.name),
            });
        }
        debug_assert!(
            table.indexes.iter().any(|other| other.tree.root() == index.tree.root()),
            "index {} is of another table than {}",
            index.def.name,
            table.def().name
        );
        let (key, value, most) = (self.key.len(), self.value.len(), index.tree.max_record());
        if key + value > most {
            return Err(Error::TooLong { key, value, most });
        }
        Ok(())
    }
}
