//! What a table says of itself.

use std::fmt;
use std::path::{Path, PathBuf};

use cairn_codec::compress::Format;

use super::format::Header;

/// The header of a table, in the units people ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The file.
    pub path: PathBuf,
    /// Its id, by which deltas name their base.
    pub id: u64,
    /// The id of the generation below, 0 for a base.
    pub parent: u64,
    /// The generation, 0 for a first base.
    pub generation: u64,
    /// Keys, tombstones among them.
    pub entries: u64,
    /// Keys that are deleted here (only in a delta).
    pub tombstones: u64,
    /// Records the builder was given, overwritten ones among them.
    pub puts: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values as given.
    pub value_bytes: u64,
    /// The longest key in bytes.
    pub key_bytes_max: u64,
    /// The longest value in bytes.
    pub value_bytes_max: u64,
    /// Bytes of the records on disk.
    pub data_bytes: u64,
    /// Bytes of values kept outside the records.
    pub blob_bytes: u64,
    /// Bytes of the index: lines and partitions.
    pub index_bytes: u64,
    /// Bytes of the compression dictionary.
    pub dictionary_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How values are compressed that are shorter so.
    pub compression: Format,
    /// True when keys have one length and values have one length.
    pub fixed_width: bool,
    /// True for a delta generation.
    pub delta: bool,
}

impl TableInfo {
    pub(crate) fn new(path: &Path, header: &Header) -> Self {
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

    /// Bytes of index for each entry; 0 for an empty table.
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

/// A count with the word for it.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what a table says of itself agrees with its numbers, and calls its compression as the
    /// option does.
    #[test]
    fn one_is_no_plural() {
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
