//! The byte layout of a trace: header, block heads and records. Each has its encoder and its
//! decoder here, side by side.
//!
//! ```text
//!   +--------+---------+---------+- - -+---------+
//!   | header | block 0 | block 1 |     |   end   |      docs/src/formats/trace.md
//!   +--------+---------+---------+- - -+---------+
//!   header   magic 8 · version 4 · flags 4 · started 8 · file id 8 · sample 4 · source bytes 4 ·
//!            source · [hash seed 8] · checksum 8
//!   block    magic 4 · bytes 4 · records 4 · lane 2 · sample 2 · first ns 8 · last ns 8 ·
//!            number 8 · checksum 8 · records
//!   end      as a block, but varints for records: all records · dropped · [ns an operation]
//!   record   kind and flags 1 · [delta ns] · [keyspace] · key · detail
//!            all varints except the first byte and hashes
//! ```
//!
//! The fields of header and end in brackets exist in versions 2 and 3, whose recorder may lower the
//! share of keys. There, each block head holds the sample at the time when the block was written:
//! one key in n. The largest n of all heads is the sample of the whole trace, even if the end block
//! is missing. A reader skips earlier records of keys outside that sample. In version 1 the sample
//! field of a block head is zero.

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_codec::varint;

use crate::event::{Detail, Event};

/// The first bytes of a trace.
pub const MAGIC: [u8; 8] = *b"CAIRNTRC";
/// The version of a trace whose share of keys is constant.
pub const VERSION: u32 = 1;
/// The version of a trace whose share of keys may have been lowered. It is a new version because a
/// reader of version 1 would not skip the records of keys outside the final sample.
pub const VERSION_ADAPTIVE: u32 = 3;
/// The former version of such a trace, which samples by [`SampleHash::Xxh3`].
pub const VERSION_ADAPTIVE_XXH3: u32 = 2;
/// The magic number of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"TBLK";
/// The magic number of the last block.
pub const END_MAGIC: [u8; 4] = *b"TEND";
/// The maximum length of a stored key or statement. Longer ones are truncated.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Bytes of a header without source and hash seed.
pub const HEADER_BYTES: usize = 48;
/// Bytes of a block head.
pub const BLOCK_HEAD_BYTES: usize = 48;
/// The maximum size of a block's records. A reader rejects longer blocks before it trusts their
/// length.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;
/// The maximum length of the source.
pub const SOURCE_BYTES_MAX: usize = 4096;

const CHECKED_BYTES: usize = 40;
const FLAG_HASHED: u32 = 1;
const FLAG_UNTIMED: u32 = 2;
const KIND_BITS: u8 = 0x0f;
const JOINED: u8 = 0x10;
const BACKWARDS: u8 = 0x20;
const KEYSPACE: u8 = 0x40;
const DELTA: u8 = 0x80;

const _: () = assert!(CHECKED_BYTES + 8 == BLOCK_HEAD_BYTES);

/// The form in which a trace stores keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyForm {
    /// As hashes. Their seed is not stored in the trace.
    #[default]
    Hashed,
    /// Unchanged.
    Raw,
}

/// The hash function that decides whether a key is in the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleHash {
    /// [`cairn_codec::key_hash`].
    #[default]
    Rapid,
    /// [`cairn_codec::checksum::xxh3_64_seeded`]: used by version 2, which can still be read.
    Xxh3,
}

/// Sampling parameters of a trace whose share of keys may have been lowered during recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// The hash function.
    pub hash: SampleHash,
    /// The seed of the hash function. Zero in a trace of hashes, which does not need it: with the
    /// seed one could test guessed keys.
    pub seed: u64,
}

/// The header of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The form in which keys are stored.
    pub keys: KeyForm,
    /// False if times are only an order, as in a list of pages.
    pub timed: bool,
    /// The wall clock at the start, in nanoseconds since 1970.
    pub started_ns: u64,
    /// The seed of the checksums, so that a block of another file is never taken for one of this
    /// file.
    pub file_id: u64,
    /// The operations of one key in this many were recorded. If the share may have been lowered,
    /// this is the initial value; see [`crate::Trace::sample`].
    pub sample: u32,
    /// Present if the share may have been lowered during recording.
    pub adaptive: Option<Adaptive>,
    /// A description of the traced program.
    pub source: String,
}

impl Header {
    /// Encodes the header. A source that is too long is truncated.
    pub fn encode(&self) -> Vec<u8> {
        let mut cut = self.source.len().min(SOURCE_BYTES_MAX);
        while !self.source.is_char_boundary(cut) {
            cut -= 1;
        }
        let source = self.source.get(..cut).unwrap_or_default().as_bytes();
        let hashed = if self.keys == KeyForm::Hashed { FLAG_HASHED } else { 0 };
        let untimed = if self.timed { 0 } else { FLAG_UNTIMED };
        let mut out = Vec::with_capacity(HEADER_BYTES + source.len() + 8);
        let version = match self.adaptive.map(|adaptive| adaptive.hash) {
            None => VERSION,
            Some(SampleHash::Xxh3) => VERSION_ADAPTIVE_XXH3,
            Some(SampleHash::Rapid) => VERSION_ADAPTIVE,
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&(hashed | untimed).to_le_bytes());
        out.extend_from_slice(&self.started_ns.to_le_bytes());
        out.extend_from_slice(&self.file_id.to_le_bytes());
        out.extend_from_slice(&self.sample.to_le_bytes());
        out.extend_from_slice(&(source.len() as u32).to_le_bytes());
        out.extend_from_slice(source);
        if let Some(Adaptive { seed, .. }) = self.adaptive {
            let seed = if self.keys == KeyForm::Raw { seed } else { 0 };
            out.extend_from_slice(&seed.to_le_bytes());
        }
        let checksum = xxh3_64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the header at the front of `bytes` and returns it with its length.
    ///
    /// Errors: the defect, and whether it is only an unknown version.
    pub fn decode(bytes: &[u8]) -> Result<(Header, usize), HeaderError> {
        let bad = |what: &str| HeaderError { what: what.to_owned(), version: false };
        let mut rest = bytes;
        if take::<8>(&mut rest) != Some(MAGIC) {
            return Err(bad("expected \"CAIRNTRC\" at the start"));
        }
        let cut = || bad("the header is cut short");
        let version = take_u32(&mut rest).ok_or_else(cut)?;
        let hash = match version {
            VERSION => None,
            VERSION_ADAPTIVE_XXH3 => Some(SampleHash::Xxh3),
            VERSION_ADAPTIVE => Some(SampleHash::Rapid),
            _ => {
                let what = format!("version {version}, expected {VERSION} to {VERSION_ADAPTIVE}");
                return Err(HeaderError { what, version: true });
            }
        };
        let flags = take_u32(&mut rest).ok_or_else(cut)?;
        let started_ns = take_u64(&mut rest).ok_or_else(cut)?;
        let file_id = take_u64(&mut rest).ok_or_else(cut)?;
        let sample = take_u32(&mut rest).ok_or_else(cut)?;
        let source_bytes = take_u32(&mut rest).ok_or_else(cut)? as usize;
        if source_bytes > SOURCE_BYTES_MAX {
            return Err(bad("the source is too long"));
        }
        let (source, mut after) = rest.split_at_checked(source_bytes).ok_or_else(cut)?;
        let mut head_bytes = HEADER_BYTES - 8 + source_bytes;
        let mut adaptive = None;
        if let Some(hash) = hash {
            adaptive = Some(Adaptive { hash, seed: take_u64(&mut after).ok_or_else(cut)? });
            head_bytes += 8;
        }
        let checksum = take_u64(&mut after).ok_or_else(cut)?;
        if bytes.get(..head_bytes).map(xxh3_64) != Some(checksum) {
            return Err(bad("the header's checksum is wrong"));
        }
        if flags & !(FLAG_HASHED | FLAG_UNTIMED) != 0 || sample == 0 {
            return Err(bad("the header has unknown flags or an invalid sampling"));
        }
        let source = String::from_utf8_lossy(source).into_owned();
        let keys = if flags & FLAG_HASHED != 0 { KeyForm::Hashed } else { KeyForm::Raw };
        let header =
            Header { keys, timed: flags & FLAG_UNTIMED == 0, started_ns, file_id, sample, adaptive, source };
        Ok((header, head_bytes + 8))
    }
}

/// The reason why a header was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderError {
    /// A description of the defect.
    pub what: String,
    /// True if only the version is unknown.
    pub version: bool,
}

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// True for the end block of a trace.
    pub end: bool,
    /// Size of the records in bytes.
    pub bytes: u32,
    /// The number of records.
    pub records: u32,
    /// The lane of the records, below 2^16.
    pub lane: u32,
    /// One key in this many was recorded when the block was written. 0 if unknown, as in version 1.
    pub sample: u16,
    /// The time of the first record.
    pub first_ns: u64,
    /// The time of the last record.
    pub last_ns: u64,
    /// The block's index within the file.
    pub number: u64,
}

impl BlockHead {
    /// Writes the head and its checksum to the front of `block`, which has space for the head,
    /// followed by the records.
    pub fn seal(&self, block: &mut [u8], file_id: u64) {
        let mut head = [0; CHECKED_BYTES];
        let magic = if self.end { END_MAGIC } else { BLOCK_MAGIC };
        assert!(self.lane < 1 << 16, "lanes have numbers of 16 bits");
        let lane = self.lane | u32::from(self.sample) << 16;
        let words = [self.bytes, self.records, lane].map(u32::to_le_bytes);
        let longs = [self.first_ns, self.last_ns, self.number].map(u64::to_le_bytes);
        let fields = [&magic[..]].into_iter().chain(words.iter().map(|word| &word[..]));
        let fields = fields.chain(longs.iter().map(|long| &long[..]));
        for (slot, byte) in head.iter_mut().zip(fields.flatten()) {
            *slot = *byte;
        }
        let Some((front, records)) = block.split_at_mut_checked(BLOCK_HEAD_BYTES) else { return };
        let checksum = checksum(&head, records, file_id);
        let (checked, sum) = front.split_at_mut(CHECKED_BYTES);
        checked.copy_from_slice(&head);
        sum.copy_from_slice(&checksum.to_le_bytes());
    }

    /// Decodes the block at the front of `bytes` and returns its head and its records. Returns
    /// `None` if the block is incomplete or its checksum does not match.
    pub fn decode(bytes: &[u8], file_id: u64) -> Option<(BlockHead, &[u8])> {
        let (front, rest) = bytes.split_at_checked(BLOCK_HEAD_BYTES)?;
        let (head, mut sum) = front.split_first_chunk::<CHECKED_BYTES>()?;
        let mut fields = &head[..];
        let end = match take::<4>(&mut fields)? {
            BLOCK_MAGIC => false,
            END_MAGIC => true,
            _ => return None,
        };
        let (length, records) = (take_u32(&mut fields)?, take_u32(&mut fields)?);
        let (lane, sample) = (take_u16(&mut fields)?, take_u16(&mut fields)?);
        let (first_ns, last_ns) = (take_u64(&mut fields)?, take_u64(&mut fields)?);
        let number = take_u64(&mut fields)?;
        if length as usize > BLOCK_BYTES_MAX {
            return None;
        }
        let payload = rest.get(..length as usize)?;
        let sound = take_u64(&mut sum)? == checksum(head, payload, file_id);
        let head = BlockHead {
            end,
            bytes: length,
            records,
            lane: u32::from(lane),
            sample,
            first_ns,
            last_ns,
            number,
        };
        sound.then_some((head, payload))
    }
}

/// Computes the checksum of head and records: the checksum of the records seeds that of the head.
fn checksum(head: &[u8; CHECKED_BYTES], records: &[u8], file_id: u64) -> u64 {
    xxh3_64_seeded(head, xxh3_64_seeded(records, file_id))
}

/// A key in the form in which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredKey<'a> {
    Hash(u64, u32),
    Raw(&'a [u8]),
}

/// The fields of a record other than key and detail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub joined: bool,
    pub delta_ns: u64,
    pub keyspace: u32,
}

/// Appends one record. `end` is the end key of a [`Detail::DeleteRange`].
#[inline]
pub(crate) fn encode(
    out: &mut Vec<u8>,
    frame: Frame,
    key: StoredKey<'_>,
    detail: Detail<'_>,
    end: Option<StoredKey<'_>>,
) {
    match short(frame, key, detail) {
        // Append the whole array and truncate the padding: a store of fixed length is faster than
        // one byte at a time.
        Some((bytes, length)) => {
            let whole = out.len() + length;
            out.extend_from_slice(&bytes);
            out.truncate(whole);
        }
        None => encode_long(out, frame, key, detail, end),
    }
}

/// Encodes a lookup or write with a hashed key and small numbers, which is nearly every record.
/// Returns the zero-padded bytes and their length.
#[inline]
fn short(frame: Frame, key: StoredKey<'_>, detail: Detail<'_>) -> Option<([u8; 16], usize)> {
    let (kind, number) = match detail {
        Detail::Get(Some(found)) => (0, found.map_or(0, |bytes| bytes.saturating_add(2))),
        Detail::Put(bytes) => (1, bytes),
        _ => return None,
    };
    let StoredKey::Hash(hash, key_bytes) = key else { return None };
    if number >= 0x4000 || key_bytes >= 0x80 || frame.delta_ns != 0 || frame.keyspace != 0 {
        return None;
    }
    let head = kind | if frame.joined { JOINED } else { 0 };
    let (number, length) =
        if number < 0x80 { (number, 11) } else { ((number & 0x7f) | 0x80 | (number >> 7) << 8, 12) };
    let word =
        u128::from(head) | u128::from(hash) << 8 | u128::from(key_bytes) << 72 | u128::from(number) << 80;
    Some((word.to_le_bytes(), length))
}

fn encode_long(
    out: &mut Vec<u8>,
    frame: Frame,
    key: StoredKey<'_>,
    detail: Detail<'_>,
    end: Option<StoredKey<'_>>,
) {
    let (kind, number, backwards) = match detail {
        Detail::Get(None) => (0, Some(1), false),
        Detail::Get(Some(None)) => (0, Some(0), false),
        Detail::Get(Some(Some(bytes))) => (0, Some(bytes.saturating_add(2)), false),
        Detail::Put(bytes) => (1, Some(bytes), false),
        Detail::Delete => (2, None, false),
        Detail::Merge(bytes) => (3, Some(bytes), false),
        Detail::Scan { entries, backwards } => (4, Some(entries), backwards),
        Detail::DeleteRange { .. } => (5, None, false),
        Detail::Statement(rows) => (6, Some(rows), false),
        Detail::Block { bytes, hit } => {
            let state = hit.map_or(0, |hit| if hit { 1 } else { 2 });
            (7, Some(bytes.min(u64::MAX / 4) * 3 + state), false)
        }
    };
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(
        kind | flag(frame.joined, JOINED)
            | flag(backwards, BACKWARDS)
            | flag(frame.keyspace != 0, KEYSPACE)
            | flag(frame.delta_ns != 0, DELTA),
    );
    if frame.delta_ns != 0 {
        push_varint(out, frame.delta_ns);
    }
    if frame.keyspace != 0 {
        push_varint(out, u64::from(frame.keyspace));
    }
    push_key(out, key);
    if let Some(end) = end.filter(|_| kind == 5) {
        push_key(out, end);
    }
    if let Some(number) = number {
        push_varint(out, number);
    }
}

#[inline]
fn push_key(out: &mut Vec<u8>, key: StoredKey<'_>) {
    match key {
        StoredKey::Hash(hash, bytes) => {
            out.extend_from_slice(&hash.to_le_bytes());
            push_varint(out, u64::from(bytes));
        }
        StoredKey::Raw(key) => {
            push_varint(out, key.len() as u64);
            out.extend_from_slice(key);
        }
    }
}

/// Like [`varint::push`], but optimized for small numbers.
#[inline]
fn push_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x80 => out.push(value as u8),
        0x80..0x4000 => out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]),
        _ => varint::push(value, out),
    }
}

/// Decodes the record at the front of `bytes`; the record before it has the time `before_ns`.
/// Returns the event and the number of bytes consumed.
///
/// Errors: a description of the defect.
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    keys: KeyForm,
    lane: u32,
    before_ns: u64,
) -> Result<(Event<'a>, usize), &'static str> {
    let mut rest = bytes;
    let [head] = take::<1>(&mut rest).ok_or("a record is cut short")?;
    let delta = if head & DELTA != 0 { take_varint(&mut rest)? } else { 0 };
    let keyspace = if head & KEYSPACE != 0 { take_varint(&mut rest)? } else { 0 };
    let keyspace = u32::try_from(keyspace).map_err(|_| "keyspace number exceeds 32 bits")?;
    let (key, key_bytes) = take_key(&mut rest, keys)?;
    let detail = match head & KIND_BITS {
        0 => Detail::Get(match take_varint(&mut rest)? {
            0 => Some(None),
            1 => None,
            more => Some(Some(more - 2)),
        }),
        1 => Detail::Put(take_varint(&mut rest)?),
        2 => Detail::Delete,
        3 => Detail::Merge(take_varint(&mut rest)?),
        4 => Detail::Scan { entries: take_varint(&mut rest)?, backwards: head & BACKWARDS != 0 },
        5 => {
            let (end, end_bytes) = take_key(&mut rest, keys)?;
            Detail::DeleteRange { end, end_bytes }
        }
        6 => Detail::Statement(take_varint(&mut rest)?),
        7 => {
            let number = take_varint(&mut rest)?;
            let hit = match number % 3 {
                0 => None,
                state => Some(state == 1),
            };
            Detail::Block { bytes: number / 3, hit }
        }
        _ => return Err("a record is of an unknown kind"),
    };
    let event = Event {
        time_ns: before_ns.checked_add(delta).ok_or("a time is over 64 bits")?,
        lane,
        joined: head & JOINED != 0,
        keyspace,
        key,
        key_bytes,
        detail,
    };
    Ok((event, bytes.len() - rest.len()))
}

fn take_key<'a>(rest: &mut &'a [u8], keys: KeyForm) -> Result<(&'a [u8], u32), &'static str> {
    let cut = "a key is cut short";
    let (key, after) = match keys {
        KeyForm::Hashed => rest.split_at_checked(8).ok_or(cut)?,
        KeyForm::Raw => {
            let length = take_varint(rest)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= KEY_BYTES_MAX);
            rest.split_at_checked(length.ok_or("a key is too long")?).ok_or(cut)?
        }
    };
    *rest = after;
    let key_bytes = match keys {
        KeyForm::Hashed => u32::try_from(take_varint(rest)?).map_err(|_| "a key's length is over 32 bits")?,
        KeyForm::Raw => key.len() as u32,
    };
    Ok((key, key_bytes))
}

/// Takes the next varint of a record or of the end block.
pub(crate) fn take_varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let (value, used) = varint::decode(rest).map_err(|_| "truncated or overlong varint")?;
    *rest = rest.get(used..).unwrap_or_default();
    Ok(value)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*front)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    take(rest).map(u16::from_le_bytes)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
