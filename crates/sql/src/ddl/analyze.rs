//! ANALYZE and VACUUM.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use cairn_table::row::Value;
use cairn_table::{ColumnStatistics, OwnedValue, Table, TableStatistics, View};
use cairn_vfs::sync::Arc;
use sqlparser::ast::ObjectName;

use crate::command_tag::CommandTag;
use crate::error::{Error, Result};
use crate::runtime::sequence::HIDDEN;
use crate::session::Session;
use crate::sqlstate::ACTIVE_SQL_TRANSACTION;

/// The number of least hashes to keep. The range that they cover yields the number of distinct
/// values.
const SKETCH: usize = 1_024;

/// Statistics of a column in progress.
#[derive(Debug, Default)]
struct Seen {
    nulls: u64,
    bytes: u64,
    /// The least hashes. Bar-Yossef and others, "Counting Distinct Elements in a Data Stream",
    /// RANDOM 2002.
    hashes: std::collections::BTreeSet<u64>,
    min: Option<OwnedValue>,
    max: Option<OwnedValue>,
}

impl Seen {
    fn add(&mut self, value: Value<'_>) {
        if value == Value::Null {
            self.nulls += 1;
            return;
        }
        self.bytes += width(&value);
        let hash = hash_of(&value);
        if self.hashes.len() < SKETCH || self.hashes.last().is_some_and(|most| hash < *most) {
            self.hashes.insert(hash);
            if self.hashes.len() > SKETCH {
                self.hashes.pop_last();
            }
        }
        let beats = |best: &Option<OwnedValue>, wanted| {
            best.as_ref().is_none_or(|best| value.order(&best.value()) == Some(wanted))
        };
        if beats(&self.min, std::cmp::Ordering::Less) {
            self.min = Some(value.into());
        }
        if beats(&self.max, std::cmp::Ordering::Greater) {
            self.max = Some(value.into());
        }
    }

    fn end(self, rows: u64) -> ColumnStatistics {
        let distinct = match self.hashes.last() {
            Some(most) if self.hashes.len() >= SKETCH => {
                let share = *most as f64 / u64::MAX as f64;
                ((SKETCH - 1) as f64 / share) as u64
            }
            _ => self.hashes.len() as u64,
        };
        let values = rows - self.nulls;
        ColumnStatistics {
            nulls: self.nulls,
            distinct: distinct.min(values),
            min: self.min,
            max: self.max,
            average_width: self.bytes.checked_div(values).unwrap_or(0) as u32,
        }
    }
}

fn width(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64,
        Value::Blob(bytes) => bytes.len() as u64,
        other => other.type_of().and_then(cairn_table::row::Type::width).unwrap_or(0) as u64,
    }
}

fn hash_of(value: &Value<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Text(text) => text.hash(&mut hasher),
        Value::Blob(bytes) => bytes.hash(&mut hasher),
        Value::Real(value) => value.to_bits().hash(&mut hasher),
        Value::Double(value) => value.to_bits().hash(&mut hasher),
        other => crate::datum::DatumRef::from_value(*other, 0).to_string().hash(&mut hasher),
    }
    hasher.finish()
}

fn look_at(view: &View, table: &Arc<Table>) -> Result<TableStatistics> {
    use std::ops::Bound::Unbounded;
    let mut columns: Vec<Seen> = table.def().columns.iter().map(|_| Seen::default()).collect();
    let mut scan = view.scan(table, None, (Unbounded, Unbounded), cairn_table::Direction::Forward)?;
    let mut rows = 0;
    while let Some(row) = scan.next()? {
        rows += 1;
        columns.iter_mut().enumerate().for_each(|(at, column)| column.add(row.get(at)));
    }
    Ok(TableStatistics { rows, columns: columns.into_iter().map(|column| column.end(rows)).collect() })
}

impl Session {
    /// Collects statistics on all rows of these tables, or of all tables.
    ///
    /// Errors: 42P01; those of the tables.
    pub(crate) fn analyze(&mut self, names: &[ObjectName]) -> Result<()> {
        let mut tables = Vec::new();
        if names.is_empty() {
            let catalog = Arc::clone(self.transaction()?.view().catalog());
            tables.extend(catalog.tables().filter(|table| table.def().schema != HIDDEN).cloned());
        }
        for name in names {
            tables.push(self.table_named(name)?);
        }
        let mut seen = HashSet::new();
        tables.retain(|table| seen.insert(table.id()));
        // The scan runs before the schema is locked, so that other sessions can go on.
        let view = self.transaction()?.current_rows()?;
        let found = tables.iter().map(|table| look_at(&view, table)).collect::<Result<Vec<_>>>()?;
        drop(view);
        self.lock_schema()?;
        for (table, statistics) in tables.into_iter().zip(found) {
            self.keep_statistics(&table, statistics)?;
        }
        Ok(())
    }

    /// Stores the statistics of a table. If its columns have changed since, it is scanned again.
    fn keep_statistics(&mut self, table: &Arc<Table>, mut statistics: TableStatistics) -> Result<()> {
        let Some(now) = self.transaction()?.view().catalog().table_by_id(table.id()).cloned() else {
            let name = &table.def().name;
            self.warn("01000", format!("skipping analyze of \"{name}\" --- relation no longer exists"));
            return Ok(());
        };
        if now.def().columns != table.def().columns {
            let view = self.transaction()?.current_rows()?;
            statistics = look_at(&view, &now)?;
        }
        Ok(self.transaction()?.set_statistics(&now, statistics)?)
    }

    /// Returns unused space to the file system.
    ///
    /// Errors: 25001 in a transaction block.
    pub(crate) fn vacuum(&mut self, analyze: bool, names: &[ObjectName]) -> Result<CommandTag> {
        if self.in_block() {
            return Err(Error::new(ACTIVE_SQL_TRANSACTION, "VACUUM cannot run inside a transaction block"));
        }
        for name in names {
            self.table_named(name)?;
        }
        if analyze {
            self.analyze(names)?;
        }
        self.commit()?;
        self.shared.reclaim()?;
        Ok(CommandTag::new("VACUUM"))
    }
}
