//! The properties that a table stores about itself.
//!
//! ```text
//! properties := (id varint | length varint | bytes)*     ids ascend
//! ```
//!
//! Numbers are varints. Readers skip unknown ids, so that later versions can add some.

use std::fmt;

use cairn_codec::filter::{FilterKind, FilterPolicy};
use cairn_codec::varint;

use super::frame::Handle;
use super::options::{Compression, PrefixExtractor};
use crate::file::FileNumber;
use crate::kind::Seqno;

/// Facts about a table, collected while it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Properties {
    /// Number of entries in data blocks.
    pub entries: u64,
    /// Number of tombstones among the entries.
    pub deletes: u64,
    /// Number of merge operands among the entries.
    pub merges: u64,
    /// Number of range tombstones.
    pub range_tombstones: u64,
    /// Total bytes of keys, each version counted.
    pub key_bytes: u64,
    /// Total bytes of values.
    pub value_bytes: u64,
    /// Number of data blocks.
    pub data_blocks: u32,
    /// Number of index partitions.
    pub partitions: u32,
    /// Bytes of the data blocks in the file, which begin at offset 0.
    pub data_bytes: u64,
    /// Bytes of the filter partitions in the file, which follow the data blocks.
    pub filter_bytes: u64,
    /// Bytes of the index partitions in the file, which follow the filters.
    pub index_bytes: u64,
    /// The first key, range tombstones included.
    pub smallest: Vec<u8>,
    /// The last key, range tombstones included.
    pub largest: Vec<u8>,
    /// The lowest and the highest sequence number, range tombstones included.
    pub seqnos: (Seqno, Seqno),
    /// As in [`TableMeta`](crate::file::TableMeta).
    pub oldest_secs: u64,
    /// As in [`TableMeta`](crate::file::TableMeta).
    pub newest_secs: u64,
    /// As in [`TableMeta`](crate::file::TableMeta).
    pub expires_secs: u64,
    /// The compression option of the writer. Single blocks may be stored uncompressed.
    pub compression: Compression,
    /// The filters' policy.
    pub filter: Option<FilterPolicy>,
    /// The extractor of the filters' prefixes.
    pub prefix: Option<PrefixExtractor>,
    /// The place of the block of range tombstones, if there is one.
    pub range_tombstone_block: Option<Handle>,
    /// The place of the dictionary, if there is one.
    pub dictionary_block: Option<Handle>,
    /// As in [`TableMeta`](crate::file::TableMeta).
    pub blobs: Vec<(FileNumber, u64)>,
    /// All writes to the keyspace up to this sequence number were in tables when this one was
    /// written; 0 if unknown. It tells where to start the replay of a log without manifest, because
    /// compactions set the sequence numbers of entries to 0.
    pub flushed_seqno: Seqno,
    /// Id and name of its keyspace, so that a store can be rebuilt without its manifest.
    pub keyspace: Option<(u32, String)>,
}

impl Default for Properties {
    fn default() -> Self {
        Properties {
            entries: 0,
            deletes: 0,
            merges: 0,
            range_tombstones: 0,
            key_bytes: 0,
            value_bytes: 0,
            data_blocks: 0,
            partitions: 0,
            data_bytes: 0,
            filter_bytes: 0,
            index_bytes: 0,
            smallest: Vec::new(),
            largest: Vec::new(),
            seqnos: (0, 0),
            oldest_secs: 0,
            newest_secs: 0,
            expires_secs: u64::MAX,
            compression: Compression::None,
            filter: None,
            prefix: None,
            range_tombstone_block: None,
            dictionary_block: None,
            blobs: Vec::new(),
            flushed_seqno: 0,
            keyspace: None,
        }
    }
}

/// Property ids, in the order in which they are written. Never reused.
mod id {
    pub(super) const COUNTS: u64 = 1;
    pub(super) const SIZES: u64 = 2;
    pub(super) const SMALLEST: u64 = 3;
    pub(super) const LARGEST: u64 = 4;
    pub(super) const SEQNOS: u64 = 5;
    pub(super) const TIMES: u64 = 6;
    pub(super) const COMPRESSION: u64 = 7;
    pub(super) const FILTER: u64 = 8;
    pub(super) const PREFIX: u64 = 9;
    pub(super) const RANGE_TOMBSTONES: u64 = 10;
    pub(super) const DICTIONARY: u64 = 11;
    pub(super) const BLOBS: u64 = 12;
    pub(super) const KEYSPACE: u64 = 13;
    pub(super) const FLUSHED: u64 = 14;
    pub(super) const NEWEST_SECS: u64 = 15;
}

// A decoder recognizes complete properties by the last mandatory id.
const _: () = assert!(id::COUNTS == 1 && id::BLOBS < id::KEYSPACE && id::BLOBS < id::FLUSHED);
const _: () = assert!(id::KEYSPACE < id::FLUSHED && id::FLUSHED < id::NEWEST_SECS, "as they are written");

fn push(out: &mut Vec<u8>, id: u64, bytes: &[u8]) {
    varint::push(id, out);
    varint::push(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn push_numbers(out: &mut Vec<u8>, id: u64, numbers: impl IntoIterator<Item = u64>) {
    let mut bytes = Vec::new();
    numbers.into_iter().for_each(|number| varint::push(number, &mut bytes));
    push(out, id, &bytes);
}

impl Properties {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let counts = [self.entries, self.deletes, self.merges, self.range_tombstones];
        push_numbers(
            &mut out,
            id::COUNTS,
            counts.into_iter().chain([self.data_blocks.into(), self.partitions.into()]),
        );
        let sizes = [self.key_bytes, self.value_bytes, self.data_bytes, self.filter_bytes, self.index_bytes];
        push_numbers(&mut out, id::SIZES, sizes);
        push(&mut out, id::SMALLEST, &self.smallest);
        push(&mut out, id::LARGEST, &self.largest);
        push_numbers(&mut out, id::SEQNOS, [self.seqnos.0, self.seqnos.1]);
        push_numbers(&mut out, id::TIMES, [self.oldest_secs, self.expires_secs]);
        let (code, level, dictionary_bytes) = match self.compression {
            Compression::None => (0, 0, 0),
            Compression::Lz4 => (1, 0, 0),
            Compression::Snappy => (2, 0, 0),
            Compression::Zstd { level, dictionary_bytes } => (3, level, dictionary_bytes),
        };
        push_numbers(&mut out, id::COMPRESSION, [code, u64::from(level as u32), u64::from(dictionary_bytes)]);
        if let Some(policy) = self.filter {
            let kind = match policy.kind {
                FilterKind::Bloom => 1,
                FilterKind::Ribbon => 2,
            };
            push_numbers(&mut out, id::FILTER, [kind, policy.bits_per_key.to_bits()]);
        }
        match self.prefix {
            None => {}
            Some(PrefixExtractor::Fixed(len)) => push_numbers(&mut out, id::PREFIX, [1, len.into()]),
            Some(PrefixExtractor::UpTo(byte)) => push_numbers(&mut out, id::PREFIX, [2, byte.into()]),
        }
        for (id, handle) in
            [(id::RANGE_TOMBSTONES, self.range_tombstone_block), (id::DICTIONARY, self.dictionary_block)]
        {
            if let Some(handle) = handle {
                push_numbers(&mut out, id, [handle.offset, handle.len.into()]);
            }
        }
        push_numbers(&mut out, id::BLOBS, self.blobs.iter().flat_map(|&(number, bytes)| [number, bytes]));
        if let Some((id, name)) = &self.keyspace {
            let mut bytes = Vec::new();
            varint::push(u64::from(*id), &mut bytes);
            bytes.extend_from_slice(name.as_bytes());
            push(&mut out, id::KEYSPACE, &bytes);
        }
        if self.flushed_seqno > 0 {
            push_numbers(&mut out, id::FLUSHED, [self.flushed_seqno]);
        }
        if self.newest_secs != self.oldest_secs {
            push_numbers(&mut out, id::NEWEST_SECS, [self.newest_secs]);
        }
        debug_assert!(
            Properties::decode(&out).as_ref() == Some(self),
            "properties that would not be read back: {self:?}"
        );
        out
    }

    /// Decodes the output of `encode`. Returns `None` for bytes that `encode` cannot produce.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut properties = Properties::default();
        let mut seen = 0;
        while !bytes.is_empty() {
            let id = take(&mut bytes)?;
            let len = usize::try_from(take(&mut bytes)?).ok()?;
            let (field, rest) = bytes.split_at_checked(len)?;
            bytes = rest;
            if id <= seen {
                return None;
            }
            seen = id;
            properties.set(id, field)?;
        }
        // All mandatory properties were present.
        (seen >= id::BLOBS && properties.data_blocks as u64 <= properties.data_bytes).then_some(properties)
    }

    fn set(&mut self, id: u64, mut field: &[u8]) -> Option<()> {
        match id {
            id::COUNTS => {
                let [entries, deletes, merges, tombstones, blocks, partitions] = numbers(field)?;
                (self.entries, self.deletes, self.merges) = (entries, deletes, merges);
                self.range_tombstones = tombstones;
                (self.data_blocks, self.partitions) = (blocks.try_into().ok()?, partitions.try_into().ok()?);
            }
            id::SIZES => {
                [self.key_bytes, self.value_bytes, self.data_bytes, self.filter_bytes, self.index_bytes] =
                    numbers(field)?;
            }
            id::SMALLEST => self.smallest = field.to_vec(),
            id::LARGEST => self.largest = field.to_vec(),
            id::SEQNOS => self.seqnos = numbers::<2>(field)?.into(),
            id::TIMES => {
                [self.oldest_secs, self.expires_secs] = numbers(field)?;
                // The default, unless a later field sets it.
                self.newest_secs = self.oldest_secs;
            }
            id::COMPRESSION => {
                self.compression = match numbers(field)? {
                    [0, 0, 0] => Compression::None,
                    [1, 0, 0] => Compression::Lz4,
                    [2, 0, 0] => Compression::Snappy,
                    [3, level, dictionary] => Compression::Zstd {
                        level: u32::try_from(level).ok()? as i32,
                        dictionary_bytes: dictionary.try_into().ok()?,
                    },
                    _ => return None,
                }
            }
            id::FILTER => {
                let [kind, bits] = numbers(field)?;
                let kind =
                    [FilterKind::Bloom, FilterKind::Ribbon].get(kind.checked_sub(1)? as usize).copied()?;
                self.filter = Some(FilterPolicy { kind, bits_per_key: f64::from_bits(bits) });
            }
            id::PREFIX => {
                self.prefix = Some(match numbers(field)? {
                    [1, len] => PrefixExtractor::Fixed(len.try_into().ok()?),
                    [2, byte] => PrefixExtractor::UpTo(byte.try_into().ok()?),
                    _ => return None,
                });
            }
            id::RANGE_TOMBSTONES => self.range_tombstone_block = Some(handle(field)?),
            id::DICTIONARY => self.dictionary_block = Some(handle(field)?),
            id::BLOBS => {
                while !field.is_empty() {
                    self.blobs.push((take(&mut field)?, take(&mut field)?));
                }
            }
            id::KEYSPACE => {
                let number = take(&mut field)?.try_into().ok()?;
                self.keyspace = Some((number, String::from_utf8(field.to_vec()).ok()?));
            }
            id::FLUSHED => [self.flushed_seqno] = numbers(field)?,
            id::NEWEST_SECS => [self.newest_secs] = numbers(field)?,
            _ => {}
        }
        Some(())
    }
}

fn handle(field: &[u8]) -> Option<Handle> {
    let [offset, len] = numbers(field)?;
    Some(Handle { offset, len: len.try_into().ok()? })
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (value, used) = varint::decode(bytes).ok()?;
    *bytes = bytes.get(used..)?;
    Some(value)
}

/// Decodes exactly `N` varints.
fn numbers<const N: usize>(mut field: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = take(&mut field)?;
    }
    field.is_empty().then_some(numbers)
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "entries           {} ({} deletes, {} merges), {} range tombstones",
            self.entries, self.deletes, self.merges, self.range_tombstones
        )?;
        writeln!(f, "raw bytes         {} of keys, {} of values", self.key_bytes, self.value_bytes)?;
        writeln!(
            f,
            "data              {} bytes in {} blocks, {:?}",
            self.data_bytes, self.data_blocks, self.compression
        )?;
        writeln!(f, "index             {} bytes in {} partitions", self.index_bytes, self.partitions)?;
        match self.filter {
            Some(policy) => writeln!(
                f,
                "filter            {} bytes, {:?} of {} bits a key",
                self.filter_bytes, policy.kind, policy.bits_per_key
            )?,
            None => writeln!(f, "filter            none")?,
        }
        if let Some(prefix) = self.prefix {
            writeln!(f, "prefix            {prefix:?}")?;
        }
        writeln!(f, "keys              {} to {}", self.smallest.escape_ascii(), self.largest.escape_ascii())?;
        writeln!(f, "sequence numbers  {} to {}", self.seqnos.0, self.seqnos.1)?;
        if let Some(dictionary) = self.dictionary_block {
            writeln!(f, "dictionary        {} bytes", dictionary.len)?;
        }
        write!(f, "blob files        {}", self.blobs.len())
    }
}
