//! Sorts result rows, and keeps only as many as are needed.

use std::cmp::Ordering;

use crate::datum::Datum;
use crate::direct::Sort;
use crate::error::Result;
use crate::expr::{Env, compare};

/// The least number of rows to collect before sorting.
const AT_ONCE: usize = 1024;

/// The sort keys of a row, and the row.
type Sortable<T> = (Vec<Datum>, T);

/// Collects rows, or stand-ins for them, and returns the first few, sorted or in the order of
/// arrival.
#[derive(Debug)]
pub(super) struct FirstRows<'s, T> {
    sort: Option<&'s Sort>,
    skip: usize,
    left: usize,
    rows: Vec<Sortable<T>>,
    bytes: usize,
}

/// The memory that a row takes.
pub(super) trait Bytes {
    fn bytes(&self) -> usize;
}

impl Bytes for Vec<Datum> {
    fn bytes(&self) -> usize {
        let own = |datum: &Datum| match datum {
            Datum::Text(text) => text.len(),
            Datum::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        self.iter().map(|datum| size_of::<Datum>() + own(datum)).sum::<usize>() + size_of::<Self>()
    }
}

impl Bytes for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len() + size_of::<Self>()
    }
}

fn to_len(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl<'s, T: Bytes> FirstRows<'s, T> {
    /// `left` counts the rows of LIMIT after the `skip` rows of OFFSET.
    pub fn new(sort: Option<&'s Sort>, skip: u64, left: u64) -> Self {
        FirstRows { sort, skip: to_len(skip), left: to_len(left), rows: Vec::new(), bytes: 0 }
    }

    fn wanted(&self) -> usize {
        self.skip.saturating_add(self.left)
    }

    /// Adds a row. `env` is the input for the sort expressions.
    ///
    /// Errors: those of the expressions.
    pub fn push(&mut self, env: &Env<'_>, row: T) -> Result<()> {
        let Some(sort) = self.sort else {
            self.rows.push((Vec::new(), row));
            return Ok(());
        };
        let keys = sort.keys.iter().map(|(node, _)| Ok(node.eval(env)?.into_datum()));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        self.bytes += keys.bytes() + row.bytes();
        self.rows.push((keys, row));
        // At most twice the wanted rows are kept at a time.
        if self.rows.len() >= self.wanted().saturating_mul(2).max(AT_ONCE) {
            self.rows.sort_by(|a, b| order_of(sort, a, b));
            self.rows.truncate(self.wanted());
            self.bytes = self.rows.iter().map(|(keys, row)| keys.bytes() + row.bytes()).sum();
        }
        Ok(())
    }

    /// The memory that the collected rows take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the wanted rows in order.
    pub fn finish(mut self) -> Vec<T> {
        if let Some(sort) = self.sort {
            self.rows.sort_by(|a, b| order_of(sort, a, b));
        }
        self.rows.into_iter().map(|(_, row)| row).skip(self.skip).take(self.left).collect()
    }
}

fn order_of<T>(sort: &Sort, (a, _): &Sortable<T>, (b, _): &Sortable<T>) -> Ordering {
    let by = sort.keys.iter().zip(a.iter().zip(b)).map(|((_, order), (a, b))| {
        let null_first = if order.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => null_first,
            (false, true) => null_first.reverse(),
            (false, false) => {
                let by = compare(a.borrow(), b.borrow()).unwrap_or(Ordering::Equal);
                if order.descending { by.reverse() } else { by }
            }
        }
    });
    by.fold(Ordering::Equal, Ordering::then)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cairn_vfs::MemFs;

    use crate::executor::Plan;
    use crate::{Connection, Database};

    fn rows(c: &mut Connection, sql: &str) -> Vec<String> {
        let mut rows = c.query(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let columns: Vec<String> = (0..row.len()).map(|column| row.get(column).to_string()).collect();
            all.push(columns.join("|"));
        }
        all
    }

    /// Goal: a sort uses a share of the memory of queries, and beyond that is left to the general
    /// path.
    /// Method: little and ample memory, over five thousand rows that are found through an index,
    /// alone and in a join by keys.
    #[test]
    fn sorts_of_many_rows() {
        let queries = [
            ("select id, t from a where tenant = 1 order by v, id", true),
            (
                "select a.id, b.t from a as b join a on a.id = b.id where b.tenant = 1 order by a.v, a.id",
                true,
            ),
            ("select id, t from a where tenant = 1 order by v, id limit 10", false),
            ("select id, t from a where tenant = 2 order by v, id", false),
        ];
        let mut found = Vec::new();
        for memory in [64 << 20, 1 << 30] {
            let database = Database::builder().fs(Arc::new(MemFs::new())).cache_bytes(16 << 20).threads(2);
            let mut c = database.memory_limit(memory).open("f.db").unwrap().connect();
            let mut run = |sql: &str| c.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            run("create table a (id int primary key, tenant int, v int, t text)");
            run("create index on a (tenant)");
            run(
                "insert into a select i, 1, i * 7919 % 5003, repeat('t', 1000) from generate_series(1, 5000) as s(i)",
            );
            run("insert into a select i, 2, -i, 'x' from generate_series(5001, 5100) as s(i)");
            for (sql, is_much) in queries {
                let statement = c.prepare(sql).unwrap();
                assert!(matches!(statement.planned().plan, Plan::Select(_)), "{sql}");
                found.push((sql, rows(&mut c, sql)));
                let planned = c.prepare(sql).unwrap().planned();
                let gave_up = is_much && memory < 1 << 30;
                assert_eq!(matches!(planned.plan, Plan::Query(_)), gave_up, "{sql}: {memory}");
            }
        }
        let (little, much) = found.split_at(queries.len());
        assert_eq!(little, much);
        assert_eq!(little.iter().map(|(_, rows)| rows.len()).collect::<Vec<_>>(), [5000, 5000, 10, 100]);
    }
}
