//! Encoding of version edits, the payload of manifest records.
//!
//! ```text
//! edit         field*                                  in any order; those of keyspaces may repeat
//!
//!  1 last seqno        seqno                           all numbers are varints,
//!  2 next file         number                          strings and keys are varint bytes | bytes
//!  3 next keyspace     id
//!  4 keyspace created  id | name | options
//!  5 keyspace dropped  id
//!  6 options changed   id | options
//!  7 log start         id | position
//!  8 table removed     id | level | number
//!  9 table added       id | level | run | number | bytes | smallest | largest
//!                      | lowest seqno | highest seqno | entries | tombstones | raw bytes
//!                      | oldest secs | expires secs | checksum
//!                      | blob count | (blob number | bytes)* | field*
//! 10 blob added        id | number | bytes | values | value bytes | checksum | field*
//! 11 blob removed      id | number
//! 12 blob garbage      id | number | bytes
//! 13 last ingest       seqno                           may be skipped
//! 14 log               id | position reached | salt of its segment; zeros for a store without one
//!
//!  fields of a table:
//!  1 ingested          seqno of all its entries | number under which it was written
//!  2 newest secs       secs                            may be skipped; absent if = oldest secs
//!  3 footer            checksum                        may be skipped; absent if unknown
//!
//!  fields of a blob file:
//!  1 footer            checksum                        may be skipped; absent if unknown
//! ```
//!
//! The trailing fields of tables and blobs are for later versions. Docs:
//! `docs/src/formats/manifest.md`.

use cairn_codec::varint;
use cairn_wal::{Known, Lsn};

use super::edit::{KeyspaceEdit, KeyspaceId, NewKeyspace, NewTable, OldTable, VersionEdit};
use super::fields::{Malformed, Reader, push_bytes, push_field, push_skippable};
use super::levels::LEVELS_MAX;
use crate::file::{BlobMeta, Ingested, TableMeta};

const LAST_SEQNO: u64 = 1;
const NEXT_FILE: u64 = 2;
const NEXT_KEYSPACE: u64 = 3;
const CREATED: u64 = 4;
const DROPPED: u64 = 5;
const OPTIONS: u64 = 6;
const LOG_START: u64 = 7;
const REMOVED: u64 = 8;
const ADDED: u64 = 9;
const BLOB_ADDED: u64 = 10;
const BLOB_REMOVED: u64 = 11;
const BLOB_GARBAGE: u64 = 12;
const LAST_INGEST: u64 = 13;
const LOG: u64 = 14;

// The decoder handles the fields of one keyspace by this range.
const _: () = assert!(OPTIONS < LOG_START && LOG_START + 5 == BLOB_GARBAGE && BLOB_GARBAGE < LAST_INGEST);
const _: () = assert!(LEVELS_MAX == 32, "the decoder's message names the limit");

/// Fields after the values of an added table.
const INGESTED: u64 = 1;
const NEWEST_SECS: u64 = 2;
const TABLE_FOOTER: u64 = 3;

/// Fields after the values of an added blob file.
const BLOB_FOOTER: u64 = 1;

/// Encodes `edit`.
pub(crate) fn encode(edit: &VersionEdit) -> Vec<u8> {
    let mut out = Vec::new();
    for new in &edit.created {
        push_field(CREATED, &mut out, |out| {
            push_numbers(&[new.id.0.into()], out);
            push_bytes(new.name.as_bytes(), out);
            push_bytes(&new.options, out);
        });
    }
    for (id, options) in &edit.options {
        push_field(OPTIONS, &mut out, |out| {
            push_numbers(&[id.0.into()], out);
            push_bytes(options, out);
        });
    }
    for (&id, keyspace) in &edit.keyspaces {
        encode_keyspace(id, keyspace, &mut out);
    }
    for id in &edit.dropped {
        push_field(DROPPED, &mut out, |out| push_numbers(&[id.0.into()], out));
    }
    let counters = [
        (LAST_SEQNO, edit.last_seqno),
        (NEXT_FILE, edit.next_file),
        (NEXT_KEYSPACE, edit.next_keyspace.map(u64::from)),
    ];
    for (number, value) in counters {
        if let Some(value) = value {
            push_field(number, &mut out, |out| push_numbers(&[value], out));
        }
    }
    if let Some(seqno) = edit.last_ingest {
        push_skippable(LAST_INGEST, &mut out, |out| push_numbers(&[seqno], out));
    }
    if let Some(log) = edit.log {
        push_field(LOG, &mut out, |out| push_numbers(&[log.log_id, log.reached.get(), log.salt], out));
    }
    debug_assert!(decode(&out).is_ok(), "an edit that recovery could not read");
    out
}

fn encode_keyspace(id: KeyspaceId, edit: &KeyspaceEdit, out: &mut Vec<u8>) {
    let id = u64::from(id.0);
    if let Some(position) = edit.log_start {
        push_field(LOG_START, out, |out| push_numbers(&[id, position], out));
    }
    for old in &edit.removed {
        push_field(REMOVED, out, |out| push_numbers(&[id, old.level as u64, old.number], out));
    }
    for new in &edit.added {
        push_field(ADDED, out, |out| encode_table(id, new, out));
    }
    for &number in &edit.blobs_removed {
        push_field(BLOB_REMOVED, out, |out| push_numbers(&[id, number], out));
    }
    for blob in &edit.blobs_added {
        let numbers = [id, blob.number, blob.bytes, blob.values, blob.value_bytes, blob.checksum];
        push_field(BLOB_ADDED, out, |out| {
            push_numbers(&numbers, out);
            if blob.footer != 0 {
                push_skippable(BLOB_FOOTER, out, |out| push_numbers(&[blob.footer], out));
            }
        });
    }
    for &(number, bytes) in &edit.blob_garbage {
        push_field(BLOB_GARBAGE, out, |out| push_numbers(&[id, number, bytes], out));
    }
}

fn encode_table(id: u64, new: &NewTable, out: &mut Vec<u8>) {
    let meta = &new.meta;
    debug_assert!(new.level < LEVELS_MAX, "level {}, which the decoder refuses", new.level);
    debug_assert!(id <= u64::from(u32::MAX), "keyspace {id}");
    push_numbers(&[id, new.level as u64, new.run, meta.number, meta.bytes], out);
    push_bytes(&meta.smallest, out);
    push_bytes(&meta.largest, out);
    push_numbers(&[meta.seqnos.0, meta.seqnos.1, meta.entries, meta.tombstones, meta.raw_bytes], out);
    push_numbers(&[meta.oldest_secs, meta.expires_secs, meta.checksum, meta.blobs.len() as u64], out);
    for &(number, bytes) in &meta.blobs {
        push_numbers(&[number, bytes], out);
    }
    if let Some(Ingested { seqno, number }) = meta.ingested {
        push_field(INGESTED, out, |out| push_numbers(&[seqno, number], out));
    }
    if meta.newest_secs != meta.oldest_secs {
        push_skippable(NEWEST_SECS, out, |out| push_numbers(&[meta.newest_secs], out));
    }
    if meta.footer != 0 {
        push_skippable(TABLE_FOOTER, out, |out| push_numbers(&[meta.footer], out));
    }
}

fn push_numbers(numbers: &[u64], out: &mut Vec<u8>) {
    for &number in numbers {
        varint::push(number, out);
    }
}

/// Decodes an edit.
pub(crate) fn decode(bytes: &[u8]) -> Result<VersionEdit, Malformed> {
    let mut edit = VersionEdit::default();
    let mut rest = Reader::new(bytes);
    while !rest.is_empty() {
        let (number, skippable, mut value) = rest.field()?;
        match number {
            LAST_SEQNO => edit.last_seqno = Some(value.u64()?),
            LAST_INGEST => edit.last_ingest = Some(value.u64()?),
            NEXT_FILE => edit.next_file = Some(value.u64()?),
            LOG => {
                let (log_id, reached) = (value.u64()?, Lsn::from(value.u64()?));
                edit.log = Some(Known { log_id, reached, salt: value.u64()? });
            }
            NEXT_KEYSPACE => edit.next_keyspace = Some(value.u32()?),
            CREATED => {
                let (id, name) = (KeyspaceId(value.u32()?), value.string()?);
                edit.created.push(NewKeyspace { id, name, options: value.bytes()?.to_vec() });
            }
            DROPPED => edit.dropped.push(KeyspaceId(value.u32()?)),
            OPTIONS => edit.options.push((KeyspaceId(value.u32()?), value.bytes()?.to_vec())),
            LOG_START..=BLOB_GARBAGE => {
                let id = KeyspaceId(value.u32()?);
                decode_change(number, &mut value, edit.keyspace(id))?;
            }
            _ if skippable => continue,
            _ => return Err(Malformed::Newer { field: number }),
        }
        value.finish()?;
    }
    Ok(edit)
}

/// Decodes a field of one keyspace, after its id.
fn decode_change(number: u64, value: &mut Reader<'_>, edit: &mut KeyspaceEdit) -> Result<(), Malformed> {
    match number {
        LOG_START => edit.log_start = Some(value.u64()?),
        REMOVED => edit.removed.push(OldTable { level: decode_level(value)?, number: value.u64()? }),
        ADDED => edit.added.push(decode_table(value)?),
        BLOB_REMOVED => edit.blobs_removed.push(value.u64()?),
        BLOB_ADDED => {
            let (number, bytes, values) = (value.u64()?, value.u64()?, value.u64()?);
            let (value_bytes, checksum) = (value.u64()?, value.u64()?);
            let footer = decode_blob_fields(value)?;
            edit.blobs_added.push(BlobMeta { number, bytes, values, value_bytes, checksum, footer });
        }
        _ => {
            debug_assert_eq!(number, BLOB_GARBAGE, "the caller passes the fields of a keyspace only");
            edit.blob_garbage.push((value.u64()?, value.u64()?));
        }
    }
    Ok(())
}

fn decode_level(value: &mut Reader<'_>) -> Result<usize, Malformed> {
    let before = *value;
    let level = usize::try_from(value.u64()?).unwrap_or(usize::MAX);
    if level < LEVELS_MAX { Ok(level) } else { Err(before.damaged("expected a level below 32")) }
}

fn decode_table(value: &mut Reader<'_>) -> Result<NewTable, Malformed> {
    let (level, run) = (decode_level(value)?, value.u64()?);
    let (number, bytes) = (value.u64()?, value.u64()?);
    let (smallest, largest) = (value.bytes()?.to_vec(), value.bytes()?.to_vec());
    let seqnos = (value.u64()?, value.u64()?);
    let (entries, tombstones, raw_bytes) = (value.u64()?, value.u64()?, value.u64()?);
    let (oldest_secs, expires_secs, checksum) = (value.u64()?, value.u64()?, value.u64()?);
    // BOUND: every iteration consumes at least two bytes of the record, so an excessive count does
    // no harm.
    let blobs =
        (0..value.u64()?).map(|_| Ok((value.u64()?, value.u64()?))).collect::<Result<_, Malformed>>()?;
    let mut meta = TableMeta {
        number,
        bytes,
        smallest,
        largest,
        seqnos,
        entries,
        tombstones,
        raw_bytes,
        oldest_secs,
        newest_secs: oldest_secs,
        expires_secs,
        checksum,
        footer: 0,
        blobs,
        ingested: None,
    };
    decode_table_fields(value, &mut meta)?;
    Ok(NewTable { level, run, meta })
}

/// Decodes the fields after a table's values.
fn decode_table_fields(value: &mut Reader<'_>, meta: &mut TableMeta) -> Result<(), Malformed> {
    while !value.is_empty() {
        let (number, skippable, mut field) = value.field()?;
        match number {
            INGESTED => meta.ingested = Some(Ingested { seqno: field.u64()?, number: field.u64()? }),
            NEWEST_SECS => meta.newest_secs = field.u64()?,
            TABLE_FOOTER => meta.footer = field.u64()?,
            _ if skippable => continue,
            _ => return Err(Malformed::Newer { field: number }),
        }
        field.finish()?;
    }
    Ok(())
}

/// Decodes the fields after a blob file's values. Returns the checksum in its footer, or 0.
fn decode_blob_fields(value: &mut Reader<'_>) -> Result<u64, Malformed> {
    let mut footer = 0;
    while !value.is_empty() {
        let (number, skippable, mut field) = value.field()?;
        match number {
            BLOB_FOOTER => footer = field.u64()?,
            _ if skippable => continue,
            _ => return Err(Malformed::Newer { field: number }),
        }
        field.finish()?;
    }
    Ok(footer)
}
