//! Verifies everything in an index and its log that the format allows to verify.

use std::collections::HashSet;

use cairn_codec::checksum::xxh3_64;

use super::cursor::Cursor;
use super::garbage;
use super::live_scan::is_live;
use super::log_scan::{LogEntry, LogScan};
use super::reader::SparkeyReader;
use super::record::RecordKind;
use super::robin_hood::StatisticsCounter;
use super::slot::Slot;
use crate::{Error, Result};

/// The result of [`SparkeyReader::verify`] for a sound store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Number of PUT records.
    pub puts: u64,
    /// Number of DELETE records.
    pub deletes: u64,
    /// Number of live keys.
    pub entries: u64,
    /// Number of slots of the index.
    pub slots: u64,
    /// Total size of all records before compression, in bytes.
    pub record_bytes: u64,
    /// Size of the PUT records that are overwritten or deleted, before compression, in bytes.
    pub garbage_bytes: u64,
}

/// Totals over the records of the log.
#[derive(Debug, Default)]
struct Totals {
    puts: u64,
    deletes: u64,
    put_bytes: u64,
    delete_bytes: u64,
    live: u64,
    live_bytes: u64,
    key_bytes_max: u64,
    value_bytes_max: u64,
    block_entries_max: u64,
}

impl SparkeyReader {
    /// Reads everything that the index covers, and checks it against the headers and for
    /// consistency.
    ///
    /// Checked: every slot points to a PUT record whose key has the hash of the slot, and is no
    /// further from its home than an entry may be; every key has its last value, or none if it was
    /// deleted last; the counts, sizes, displacements and collisions in the headers. Not checked,
    /// because Sparkey has no checksums: the bytes of values, and of keys that are no longer in the
    /// index.
    ///
    /// Cost: one pass over index and log with a lookup for each slot and each record, and some 30
    /// bytes of memory for each deleted key. If the C library continued from an index of Java, it
    /// counts a part of the DELETE records as garbage; this costs another pass over the log, with
    /// some 40 bytes for each key. In an index that was crafted so that many keys share one hash, a
    /// lookup visits all of them, and verification takes time quadratic in their number. Errors:
    /// [`Error::Corruption`] at the first contradiction.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_slots()?;
        let totals = self.verify_records()?;
        self.verify_totals(&totals)?;
        debug_assert!(totals.live <= totals.puts && totals.live_bytes <= totals.put_bytes);
        Ok(VerifyReport {
            puts: totals.puts,
            deletes: totals.deletes,
            entries: totals.live,
            slots: self.index.ring.capacity,
            record_bytes: totals.put_bytes + totals.delete_bytes,
            garbage_bytes: totals.put_bytes - totals.live_bytes,
        })
    }

    fn verify_slots(&self) -> Result<()> {
        let (index, header) = (&self.index, &self.index.header);
        let wrong = |offset, detail: String| Err(Error::corruption(&index.path, offset, detail));
        let mut cursor = Cursor::for_lookup(&self.log);
        let mut counter = StatisticsCounter::new(index.ring);
        let mut key = Vec::new();
        let (mut entries, mut ends) = (0, [Slot::EMPTY; 2]);
        index.for_each_slot(|slot, found| {
            counter.add(slot, found);
            // The entry after a free slot is at home. The entry after a used slot is at most one
            // slot further from its home than the entry before it.
            let before = std::mem::replace(&mut ends[1], found);
            if slot == 0 {
                ends[0] = found;
            } else {
                self.verify_neighbours(slot - 1, before, slot, found)?;
            }
            if found.is_empty() {
                return match found.hash {
                    0 => Ok(()),
                    hash => wrong(header.slot_offset(slot), format!("an empty slot with hash {hash:#x}")),
                };
            }
            entries += 1;
            let (position, number) = header.split(found.address);
            let head = cursor.seek(position, number)?;
            if head.kind == RecordKind::Delete {
                return wrong(
                    header.slot_offset(slot),
                    format!("slot points to a DELETE record at {position}"),
                );
            }
            key.clear();
            cursor.append_to(head.key_bytes, &mut key)?;
            let hash = index.hash(&key);
            if hash != found.hash {
                let detail = format!("slot has hash {:#x}, the key at {position} has {hash:#x}", found.hash);
                return wrong(header.slot_offset(slot), detail);
            }
            Ok(())
        })?;
        self.verify_neighbours(index.ring.capacity - 1, ends[1], 0, ends[0])?;
        self.verify_statistics(entries, counter)
    }

    /// Verifies the statistics in the header of the index against the slots, without reading the
    /// log.
    ///
    /// Cost: one pass over the index. Errors: [`Error::Corruption`].
    pub fn verify_counts(&self) -> Result<()> {
        let mut counter = StatisticsCounter::new(self.index.ring);
        let mut entries = 0;
        self.index.for_each_slot(|slot, found| {
            counter.add(slot, found);
            entries += u64::from(!found.is_empty());
            Ok(())
        })?;
        self.verify_statistics(entries, counter)
    }

    fn verify_statistics(&self, entries: u64, counter: StatisticsCounter) -> Result<()> {
        let (index, header) = (&self.index, &self.index.header);
        let wrong = |offset, detail: String| Err(Error::corruption(&index.path, offset, detail));
        if entries != header.entries {
            return wrong(
                60,
                format!("the header says {} entries, but {entries} slots are used", header.entries),
            );
        }
        let (found, collisions_of_c) = counter.finish();
        let mut fields = vec![
            (84, "largest displacement", header.displacement_max, found.displacement_max),
            (104, "total displacement", header.displacement_total, found.displacement_total),
        ];
        if header.collisions != collisions_of_c {
            fields.push((96, "number of collisions", header.collisions, found.collisions));
        }
        match fields.iter().find(|(_, _, header, found)| header != found) {
            Some((offset, name, header, found)) => {
                wrong(*offset, format!("{name} is {found}, the header says {header}"))
            }
            None => Ok(()),
        }
    }

    /// Checks that a lookup for the entry of a slot would not stop at the slot before it.
    fn verify_neighbours(&self, slot_before: u64, before: Slot, slot: u64, found: Slot) -> Result<()> {
        let ring = &self.index.ring;
        let most = if before.is_empty() { 0 } else { ring.displacement(slot_before, before.hash) + 1 };
        let displacement = ring.displacement(slot, found.hash);
        if found.is_empty() || displacement <= most {
            return Ok(());
        }
        let detail = format!(
            "slot {slot} is {displacement} slots from its home and out of reach, expected at most {most}"
        );
        Err(Error::corruption(&self.index.path, self.index.header.slot_offset(slot), detail))
    }

    fn verify_records(&self) -> Result<Totals> {
        let mut totals = Totals::default();
        let mut cursor = Cursor::for_lookup(&self.log);
        // Keys that are absent from the index, whose PUT was read and whose DELETE was not read
        // yet.
        let mut vanished = HashSet::new();
        let mut scan = LogScan::new(&self.log);
        while let Some(entry) = scan.next_entry()? {
            let latest = self.latest(&mut cursor, &entry)?;
            let here = (entry.position(), entry.number_in_block());
            totals.block_entries_max = totals.block_entries_max.max(here.1 + 1);
            match entry.kind() {
                RecordKind::Put => {
                    totals.add_put(&entry, is_live(self, &mut cursor, &entry)?);
                    match latest {
                        None => _ = vanished.insert(xxh3_64(entry.key())),
                        Some(latest) if latest < here => return Err(self.outdated(&entry, latest)),
                        Some(_) => {}
                    }
                }
                RecordKind::Delete => {
                    totals.deletes += 1;
                    totals.delete_bytes += entry.record_bytes();
                    vanished.remove(&xxh3_64(entry.key()));
                    if let Some(latest) = latest.filter(|&latest| latest < here) {
                        return Err(self.outdated(&entry, latest));
                    }
                }
            }
        }
        if vanished.is_empty() {
            return Ok(totals);
        }
        let detail =
            format!("{} keys of the log are missing, although they were not deleted", vanished.len());
        Err(Error::corruption(&self.index.path, super::index_header::INDEX_HEADER_BYTES as u64, detail))
    }

    /// Returns the position and number of the record that the index has for the key of `entry`.
    fn latest<'a>(&'a self, cursor: &mut Cursor<'a>, entry: &LogEntry<'_, '_>) -> Result<Option<(u64, u64)>> {
        let key = entry.key();
        self.index.find(self.index.hash(key), |address| {
            let place = self.index.header.split(address);
            Ok(super::cursor::match_put(cursor, place.0, place.1, key)?.map(|_| place))
        })
    }

    pub(super) fn outdated(&self, entry: &LogEntry<'_, '_>, latest: (u64, u64)) -> Error {
        let detail = format!(
            "for the key of the record at {} the index has an older record, number {} at {}",
            entry.position(),
            latest.1,
            latest.0
        );
        Error::corruption(&self.index.path, super::index_header::INDEX_HEADER_BYTES as u64, detail)
    }

    fn verify_totals(&self, totals: &Totals) -> Result<()> {
        let (index, log) = (&self.index.header, &self.log.header);
        let garbage = totals.put_bytes - totals.live_bytes;
        let mut fields = vec![
            (&self.index.path, 44, "number of puts", index.puts, totals.puts),
            (&self.index.path, 60, "number of entries", index.entries, totals.live),
            (&self.index.path, 28, "longest key", index.key_bytes_max, totals.key_bytes_max),
            (&self.index.path, 36, "longest value", index.value_bytes_max, totals.value_bytes_max),
        ];
        // The C library also counts DELETE records, some or all of them.
        let is_common = [garbage, garbage + totals.delete_bytes].contains(&index.garbage_bytes);
        if !is_common && !garbage::is_possible(&self.log, index.garbage_bytes)? {
            fields.push((&self.index.path, 52, "size of the garbage", index.garbage_bytes, garbage));
        }
        if index.data_end == log.data_end {
            fields.extend([
                (&self.log.path, 16, "number of puts", log.puts, totals.puts),
                (&self.log.path, 24, "number of deletes", log.deletes, totals.deletes),
                (&self.log.path, 56, "size of the deletes", log.delete_bytes, totals.delete_bytes),
                (&self.log.path, 72, "size of the puts", log.put_bytes, totals.put_bytes),
                (&self.log.path, 40, "longest key", log.key_bytes_max, totals.key_bytes_max),
                (&self.log.path, 48, "longest value", log.value_bytes_max, totals.value_bytes_max),
            ]);
            // A larger number in the header does no harm, and writers need not reduce it. Without
            // blocks it has no meaning.
            let most = u64::from(log.block_entries_max);
            if self.log.is_compressed() && totals.block_entries_max > most {
                fields.push((&self.log.path, 80, "entries per block", most, totals.block_entries_max));
            }
        }
        match fields.iter().find(|(_, _, _, header, found)| header != found) {
            Some((path, offset, name, header, found)) => {
                Err(Error::corruption(path, *offset, format!("{name} is {found}, the header says {header}")))
            }
            None => Ok(()),
        }
    }
}

impl Totals {
    fn add_put(&mut self, entry: &LogEntry<'_, '_>, live: bool) {
        self.puts += 1;
        self.put_bytes += entry.record_bytes();
        self.key_bytes_max = self.key_bytes_max.max(entry.key().len() as u64);
        self.value_bytes_max = self.value_bytes_max.max(entry.value_bytes());
        if live {
            self.live += 1;
            self.live_bytes += entry.record_bytes();
        }
    }
}
