//! Salvage of log records that are not in any table.

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;
use cairn_wal::{Known, Lsn, Mode, Recovery};

use super::Repair;
use super::plan::Plan;
use crate::admin::capture::MemtableWriter;
use crate::batch::{Malformed, Record};
use crate::db::log_options;
use crate::db::write::insert;
use crate::kind::SEQNO_MAX;
use crate::memtable::Memtable;
use crate::table::TableOptions;
use crate::version::{KeyspaceId, NewTable};
use crate::{Error, Result};

/// Memory per keyspace for log entries before they are written to tables.
const MEMTABLE_BYTES: usize = 64 << 20;

type Memtables = BTreeMap<KeyspaceId, Arc<Memtable>>;

impl Repair<'_> {
    /// Writes the entries of the log to tables, and returns the end of the log. `known` is the
    /// manifest's knowledge of the log.
    pub(super) fn salvage_log(&mut self, plan: &mut Plan, known: Option<Known>) -> Result<Lsn> {
        let from = plan.keyspaces.values().map(|keyspace| keyspace.log_start).min().unwrap_or(0);
        // Without the manifest, it is unknown which segments were released.
        let options = log_options(known).nothing_released(!self.report.is_rebuilt).mode(Mode::Salvage);
        let mut log = match Recovery::open(&self.fs, self.dir, Lsn::from(from), &options) {
            Ok(log) => log,
            Err(error) => {
                self.found(self.dir.to_owned(), error.into())?;
                return Ok(Lsn::from(from));
            }
        };
        let mut memtables = Memtables::new();
        let mut end = Lsn::from(from);
        loop {
            let record = match log.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.found(self.dir.to_owned(), error.into())?;
                    break;
                }
            };
            end = end.max(record.lsn);
            match self.take_record(plan, &mut memtables, record.lsn, record.payload) {
                Ok(is_new) => self.report.log_records += u64::from(is_new),
                Err(error) => self.found(self.dir.to_owned(), error)?,
            }
            self.write_full(plan, &mut memtables, MEMTABLE_BYTES)?;
        }
        for damage in log.damage() {
            let what = match damage.to == damage.from {
                true => damage.what.clone(), // the file as a whole
                false => format!("bytes {} to {}: {}", damage.from, damage.to, damage.what),
            };
            let error = Error::corruption(&damage.file, damage.from, what);
            self.report.damage.push(crate::Damage { file: damage.file.clone(), error });
        }
        if let Ok(tail) = log.finish() {
            end = end.max(tail.end());
        }
        self.write_full(plan, &mut memtables, 0)?;
        Ok(end)
    }

    /// Inserts the operations of a record that are not in any table. Returns true if there were
    /// any.
    fn take_record(
        &self,
        plan: &mut Plan,
        memtables: &mut Memtables,
        lsn: Lsn,
        payload: &[u8],
    ) -> Result<bool> {
        let damaged = |what: &str| {
            Error::corruption(self.dir, lsn.get(), format!("the log record that ends at {lsn} has {what}"))
        };
        let record = Record::parse(payload, self.dir, lsn.get())?;
        let count = u64::from(record.count);
        if record.seqno == 0 || count == 0 || record.seqno > SEQNO_MAX - count {
            return Err(damaged("invalid sequence numbers"));
        }
        // A record is inserted completely or not at all.
        let operations: std::result::Result<Vec<_>, Malformed> = record.operations.collect();
        let operations = operations.map_err(|Malformed(what)| damaged(what))?;
        if operations.len() as u64 != count {
            return Err(damaged("an operation count that differs from its header"));
        }
        let mut is_new = false;
        for (seqno, (id, operation)) in (record.seqno..).zip(operations) {
            let options = |name: &str| self.options.keyspace(name);
            let Some(keyspace) = plan.keyspace(id, None, options) else { continue };
            if lsn.get() <= keyspace.log_start || seqno <= keyspace.flushed {
                continue;
            }
            insert(memtables.entry(id).or_insert_with(|| Arc::new(Memtable::new())), seqno, operation, None)?;
            is_new = true;
        }
        plan.last_seqno = plan.last_seqno.max(record.seqno + count - 1);
        Ok(is_new)
    }

    /// Writes memtables larger than `bytes` to tables.
    fn write_full(&mut self, plan: &mut Plan, memtables: &mut Memtables, bytes: usize) -> Result<()> {
        let full: Vec<KeyspaceId> = memtables
            .iter()
            .filter(|(_, memtable)| memtable.allocated_bytes() > bytes)
            .map(|(&id, _)| id)
            .collect();
        for id in full {
            let (Some(memtable), Some(keyspace)) = (memtables.remove(&id), plan.keyspaces.get_mut(&id))
            else {
                continue;
            };
            let number = self.number();
            debug_assert!(
                keyspace.tables.iter().all(|new| new.level > 0 || new.run < number),
                "a newer run exists"
            );
            debug_assert!(
                memtable.seqnos().is_none_or(|(oldest, _)| oldest > keyspace.flushed),
                "writes up to {} are in tables already",
                keyspace.flushed
            );
            let flushed_seqno = memtable.seqnos().map_or(0, |(_, newest)| newest);
            let ttl_secs = keyspace.ttl_secs(self.dir);
            let writer = MemtableWriter {
                fs: &*self.fs,
                dir: self.dir,
                number,
                options: TableOptions {
                    flushed_seqno,
                    ..keyspace.table_options(id, 0, 0, (self.now_secs, self.now_secs))
                },
                memtables: vec![memtable],
                last: SEQNO_MAX,
                operator: keyspace.options.merge_operator.clone(),
                ttl_secs,
                store: Arc::new(self.dir.to_owned()),
                keyspace: &keyspace.name,
            };
            let written = writer.write()?;
            // The run is newer than all earlier ones, whose ids are lower.
            keyspace.tables.extend(written.map(|meta| NewTable { level: 0, run: number, meta }));
        }
        Ok(())
    }
}
