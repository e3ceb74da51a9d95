//! Conditions that rows have to meet, all of them on one column each, so that a block's rows are chosen without putting one together.

use cairn_table::row::Type;
use cairn_table::{Block, Table};
use cairn_vfs::sync::Arc;

use super::buffers::Buffers;
use super::chosen::Chosen;
use super::filter::{Bound, Filter, Meaning};
use super::members::Members;
use crate::error::Result;
use crate::expr::{Env, Node};

/// Conditions on columns of one table, whose other sides do not depend on the row.
#[derive(Debug)]
pub(crate) struct Conditions(Vec<Filter>);

/// What conditions mean with these parameters.
#[derive(Debug)]
pub(crate) enum Chooser {
    /// Rows are chosen so.
    Rows(Bounds),
    /// No row meets them.
    Never,
    /// Nobody knows here: values are of types that are not compared column by column.
    Unknown,
}

/// Conditions whose values are known.
#[derive(Debug, Default)]
pub(crate) struct Bounds(Vec<Bound>);

impl Conditions {
    /// What a condition is made of; `None` where a part of it is none of one column.
    pub fn of(condition: Option<&Node>, table: &Table) -> Option<Conditions> {
        let kind_of = |column: usize| table.def().columns.get(column).map(|column| column.kind.clone());
        let conjuncts = condition.cloned().map(Node::conjuncts).unwrap_or_default();
        conjuncts.iter().map(|node| Filter::of(node, kind_of)).collect::<Option<_>>().map(Conditions)
    }

    /// The columns that are looked at, and their types.
    pub fn columns(&self) -> impl Iterator<Item = (usize, Type)> {
        self.0.iter().map(|filter| (filter.column, filter.kind.kind))
    }

    /// What they mean with these parameters.
    ///
    /// Errors: those of computing their values.
    pub fn bind(&self, env: &Env<'_>) -> Result<Chooser> {
        let mut bounds: Vec<Bound> = Vec::with_capacity(self.0.len());
        let mut is_empty = false;
        for filter in &self.0 {
            match filter.bind(env)? {
                Meaning::Check(bound) => {
                    let left = bounds.iter_mut().try_fold(bound, |bound, other| match other.narrow(bound) {
                        Some(bound) => Ok(bound),
                        None => Err(()),
                    });
                    bounds.extend(left);
                }
                Meaning::Never => is_empty = true,
                Meaning::Unknown => return Ok(Chooser::Unknown),
            }
        }
        Ok(if is_empty { Chooser::Never } else { Chooser::Rows(Bounds(bounds)) })
    }
}

impl Bounds {
    /// Rows have to meet this too: a column's value is one of these numbers.
    pub fn and_among(&mut self, column: usize, members: Arc<Members>) {
        self.0.push(Bound::among(column, members));
    }

    /// Chooses the rows of a block that meet them all. `buffers` are for the columns that they are on.
    ///
    /// Errors: of the table.
    pub fn choose(&self, block: &Block<'_>, buffers: &mut Buffers, chosen: &mut Chosen) -> Result<()> {
        buffers.clear();
        chosen.all(block.rows());
        for bound in &self.0 {
            if !bound.keep_packed(block, chosen)? && chosen.any() {
                bound.keep(buffers.read(block, bound.column)?, chosen);
            }
            if !chosen.any() {
                break;
            }
        }
        Ok(())
    }
}
