//! Information about a table.

use std::fmt;
use std::path::{Path, PathBuf};

use cairn_codec::compress::Format;

use super::format::Header;

/// The header of a table, in the units that users ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The file.
    pub path: PathBuf,
    /// Its id, by which deltas refer to the generation below.
    pub id: u64,
    /// The id of the generation below; 0 for a base.
    pub parent: u64,
    /// The number of the generation; 0 for a first base.
    pub generation: u64,
    /// Number of keys, tombstones included.
    pub entries: u64,
    /// Number of keys that are deleted here (only in a delta).
    pub tombstones: u64,
    /// Number of records given to the builder, overwritten ones included.
    pub puts: u64,
    /// Total size of all keys in bytes.
    pub key_bytes: u64,
    /// Total size of all values in bytes, before compression.
    pub value_bytes: u64,
    /// Size of the longest key in bytes.
    pub key_bytes_max: u64,
    /// Size of the longest value in bytes.
    pub value_bytes_max: u64,
    /// Size of the records on disk in bytes.
    pub data_bytes: u64,
    /// Size of the values stored outside the records, in bytes.
    pub blob_bytes: u64,
    /// Size of the index in bytes: lines and partitions.
    pub index_bytes: u64,
    /// Size of the compression dictionary in bytes.
    pub dictionary_bytes: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// The compression of the values that it makes shorter.
    pub compression: Format,
    /// True if all keys have the same length and all values have the same length.
    pub fixed_width: bool,
    /// True for a delta generation.
    pub delta: bool,
}

impl TableInfo {
    pub(crate) fn new(path: &Path, header: &Header) -> Self {
        debug_assert!(header.index_bytes() <= header.file_bytes, "the index is a part of the file");
        TableInfo {
            path: path.to_owned(),
            id: header.id,
            parent: header.parent,
            generation: header.generation,
            entries: header.entries,
            tombstones: header.tombstones,
            puts: header.puts,
            key_bytes: header.key_bytes,
            value_bytes: header.value_bytes,
            key_bytes_max: header.key_bytes_max,
            value_bytes_max: header.value_bytes_max,
            data_bytes: header.data_bytes,
            blob_bytes: header.blob_bytes,
            index_bytes: header.index_bytes(),
            dictionary_bytes: header.dictionary_bytes,
            file_bytes: header.file_bytes,
            compression: header.compression,
            fixed_width: header.is_fixed(),
            delta: header.is_delta(),
        }
    }

    /// Returns the size of the index per entry in bytes; 0 for an empty table.
    pub fn index_bytes_per_entry(&self) -> f64 {
        if self.entries == 0 { 0.0 } else { self.index_bytes as f64 / self.entries as f64 }
    }
}

impl fmt::Display for TableInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.delta { "delta over" } else { "base, parent" };
        writeln!(f, "{}", self.path.display())?;
        writeln!(
            f,
            "  id             {:016x}, generation {}, {kind} {:016x}",
            self.id, self.generation, self.parent
        )?;
        writeln!(
            f,
            "  entries        {} ({}, {})",
            self.entries,
            counted(self.tombstones, "tombstone", "tombstones"),
            counted(self.puts, "put", "puts")
        )?;
        let bytes = |bytes| counted(bytes, "byte", "bytes");
        writeln!(f, "  keys           {}, longest {}", bytes(self.key_bytes), self.key_bytes_max)?;
        writeln!(f, "  values         {}, longest {}", bytes(self.value_bytes), self.value_bytes_max)?;
        let layout = match self.fixed_width {
            true => "fixed width".to_owned(),
            false => format!("compression {}", self.compression),
        };
        writeln!(
            f,
            "  records        {}, {layout}; blobs {}",
            bytes(self.data_bytes),
            bytes(self.blob_bytes)
        )?;
        writeln!(
            f,
            "  index          {}, {:.2} an entry",
            bytes(self.index_bytes),
            self.index_bytes_per_entry()
        )?;
        write!(f, "  file           {}, dictionary {}", bytes(self.file_bytes), self.dictionary_bytes)
    }
}

/// Formats a count with the singular or plural noun.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the text uses singular and plural correctly, and names the compression as the option
    /// does.
    #[test]
    fn counts_of_one_are_singular() {
        let mut info = TableInfo {
            path: PathBuf::from("t"),
            id: 1,
            parent: 0,
            generation: 0,
            entries: 1,
            tombstones: 1,
            puts: 1,
            key_bytes: 1,
            value_bytes: 2,
            key_bytes_max: 1,
            value_bytes_max: 2,
            data_bytes: 1,
            blob_bytes: 0,
            index_bytes: 64,
            dictionary_bytes: 0,
            file_bytes: 4096,
            compression: Format::None,
            fixed_width: false,
            delta: false,
        };
        let text = info.to_string();
        assert!(text.contains("(1 tombstone, 1 put)") && text.contains("1 byte, longest 1"), "{text}");
        assert!(text.contains("1 byte, compression none; blobs 0 bytes"), "{text}");
        info.fixed_width = true;
        assert!(info.to_string().contains("1 byte, fixed width;"), "{info}");
    }
}
