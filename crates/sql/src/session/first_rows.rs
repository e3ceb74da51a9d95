//! Sorting what comes out, and keeping no more of it than is asked for.

use std::cmp::Ordering;

use crate::datum::Datum;
use crate::direct::Sort;
use crate::error::Result;
use crate::expr::{Env, compare};

/// Rows that are sorted at once at the least.
const AT_ONCE: usize = 1024;

/// What a row is sorted by, and the row.
type Sortable<T> = (Vec<Datum>, T);

/// Rows, or what stands for them, from which the first few are wanted, in an order or as they come.
#[derive(Debug)]
pub(super) struct FirstRows<'s, T> {
    sort: Option<&'s Sort>,
    skip: usize,
    left: usize,
    rows: Vec<Sortable<T>>,
}

fn to_len(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl<'s, T> FirstRows<'s, T> {
    /// Those of LIMIT behind those of OFFSET.
    pub fn new(sort: Option<&'s Sort>, skip: u64, left: u64) -> Self {
        FirstRows { sort, skip: to_len(skip), left: to_len(left), rows: Vec::new() }
    }

    fn wanted(&self) -> usize {
        self.skip.saturating_add(self.left)
    }

    /// Takes a row. `env` is what the expressions of the order look at.
    ///
    /// Errors: theirs.
    pub fn push(&mut self, env: &Env<'_>, row: T) -> Result<()> {
        let Some(sort) = self.sort else {
            self.rows.push((Vec::new(), row));
            return Ok(());
        };
        let keys = sort.keys.iter().map(|(node, _)| Ok(node.eval(env)?.into_datum()));
        self.rows.push((keys.collect::<Result<_>>()?, row));
        // Of the first few of many only some more than those are kept at a time.
        if self.rows.len() >= self.wanted().saturating_mul(2).max(AT_ONCE) {
            self.rows.sort_by(|a, b| order_of(sort, a, b));
            self.rows.truncate(self.wanted());
        }
        Ok(())
    }

    /// The rows that are wanted, in their order.
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
