//! Checks that no table is placed above a newer one.
//!
//! Lookups search the runs from the newest to the oldest and stop at the first hit, so of two
//! tables with a common key the newer one must come first. Sequence numbers do not tell which one
//! is newer: parts of levels move down separately, and compactions set numbers to 0. The edit
//! tells. A table that an edit adds in place of others has their age: it is newer than the tables
//! below its inputs and older than the tables above them. A table that replaces no table with its
//! keys is newer than every table there. If the order was right before an edit that follows these
//! rules, it is right afterwards.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound::Included;

use cairn_vfs::sync::Arc;

use super::edit::{KeyspaceEdit, NewTable};
use super::handle::TableFile;
use super::levels::Version;
use crate::file::{FileNumber, TableMeta};

/// The position of a table in the search order: lower places are searched first.
type Place = (usize, Reverse<u64>);

/// Checks that after `edit`, every table of `base` and every added table is above the older tables
/// with its keys.
///
/// Costs a search of each run per added table. The error names the tables in the wrong order.
pub(super) fn check_order(base: &Version, edit: &KeyspaceEdit) -> Result<(), String> {
    if edit.added.is_empty() {
        return Ok(());
    }
    let gone: BTreeSet<FileNumber> = edit.removed.iter().map(|old| old.number).collect();
    let mut fresh = Vec::new();
    for new in &edit.added {
        let (inputs, others) = overlapping(base, &gone, &new.meta);
        if inputs.is_empty() {
            check_fresh(new, &others)?;
            fresh.push(new);
        } else {
            check_merged(new, &inputs, &others)?;
        }
    }
    check_together(&fresh)
}

/// A table and its place.
type Placed<'a> = (Place, &'a Arc<TableFile>);

/// Returns the tables of `base` with keys in the range of `meta`: those that are removed, and those
/// that stay.
fn overlapping<'a>(
    base: &'a Version,
    gone: &BTreeSet<FileNumber>,
    meta: &'a TableMeta,
) -> (Vec<Placed<'a>>, Vec<Placed<'a>>) {
    let (lower, upper) = (Included(&meta.smallest[..]), Included(&meta.largest[..]));
    let levels = base.levels().iter().enumerate();
    let tables = levels.flat_map(|(level, runs)| {
        let runs = runs.overlapping(lower, upper);
        runs.flat_map(move |(run, tables)| tables.iter().map(move |it| ((level, Reverse(run.id())), it)))
    });
    let (inputs, others): (Vec<Placed<'a>>, Vec<Placed<'a>>) =
        tables.partition(|(_, table)| gone.contains(&table.number()));
    debug_assert!(
        inputs.iter().chain(&others).all(|(_, table)| share_keys(&table.meta, meta)),
        "a table that does not overlap"
    );
    (inputs, others)
}

fn place(new: &NewTable) -> Place {
    (new.level, Reverse(new.run))
}

fn share_keys(a: &TableMeta, b: &TableMeta) -> bool {
    a.smallest <= b.largest && b.smallest <= a.largest
}

/// A table of new writes must be above all existing tables. The exception is a table whose sequence
/// numbers are all higher: it was ingested while the new table was being written. Tables of its own
/// run are checked where runs are assembled.
fn check_fresh(new: &NewTable, others: &[(Place, &Arc<TableFile>)]) -> Result<(), String> {
    let is_older = |other: &TableMeta| other.seqnos.0 <= new.meta.seqnos.1;
    match others.iter().find(|(at, other)| *at < place(new) && is_older(&other.meta)) {
        Some((_, above)) => Err(wrong(above.number(), new.meta.number, "of new writes")),
        None => Ok(()),
    }
}

/// A table merged from others must have the same order relative to the tables that stay as its
/// inputs had.
fn check_merged(
    new: &NewTable,
    inputs: &[(Place, &Arc<TableFile>)],
    others: &[(Place, &Arc<TableFile>)],
) -> Result<(), String> {
    debug_assert!(!inputs.is_empty(), "a table without inputs is one of new writes");
    let to = place(new);
    for &(from, input) in inputs {
        for &(at, other) in others.iter().filter(|(_, other)| share_keys(&input.meta, &other.meta)) {
            let number = new.meta.number;
            if at < from && to < at {
                return Err(wrong(number, other.number(), &format!("than table {}", input.number())));
            }
            if at > from && to > at {
                return Err(wrong(other.number(), number, &format!("by table {}", input.number())));
            }
        }
    }
    Ok(())
}

/// Of two tables of new writes in one edit, the upper one must not have only sequence numbers below
/// those of the lower one.
fn check_together(fresh: &[&NewTable]) -> Result<(), String> {
    for (at, a) in fresh.iter().enumerate() {
        for b in fresh.iter().skip(at + 1).filter(|b| place(b) != place(a)) {
            let (upper, lower) = if place(a) < place(b) { (a, b) } else { (b, a) };
            if upper.meta.seqnos.1 < lower.meta.seqnos.0 && share_keys(&upper.meta, &lower.meta) {
                return Err(wrong(upper.meta.number, lower.meta.number, "by its numbers"));
            }
        }
    }
    Ok(())
}

fn wrong(above: FileNumber, newer: FileNumber, why: &str) -> String {
    format!(
        "table {above} would be above table {newer}, which is newer ({why}) and overlaps its range of keys"
    )
}
