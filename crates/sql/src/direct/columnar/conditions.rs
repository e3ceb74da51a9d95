//! Conditions on one or two columns each, which are evaluated on the columns of a block without
//! assembling rows.

use cairn_table::row::Type;
use cairn_table::{Block, Table};
use cairn_vfs::sync::Arc;

use super::buffers::{Buffers, FEW};
use super::chosen::Chosen;
use super::filter::{Bound, Filter, Meaning};
use super::members::Members;
use super::pair::Pair;
use crate::error::Result;
use crate::expr::{Env, Node};

/// Conditions on columns of one table. The other operand is independent of the row, or another
/// column.
#[derive(Debug)]
pub(crate) struct Conditions {
    filters: Vec<Filter>,
    pairs: Vec<Pair>,
}

/// The conditions with their parameters bound.
#[derive(Debug)]
pub(crate) enum Chooser {
    /// The condition to apply to rows.
    Rows(Bounds),
    /// No row meets the conditions.
    Never,
    /// The values have types that columns cannot be compared with.
    Unknown,
}

/// Conditions whose values are known.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    bounds: Vec<Bound>,
    /// Tested last, because they need two decoded columns.
    pairs: Vec<Pair>,
}

impl Conditions {
    /// Splits a condition; `None` if a part of it is not on one or two columns.
    pub fn of(condition: Option<&Node>, table: &Table) -> Option<Conditions> {
        let kind_of = |column: usize| table.def().columns.get(column).map(|column| column.kind.clone());
        let conjuncts = condition.cloned().map(Node::conjuncts).unwrap_or_default();
        let (mut filters, mut pairs) = (Vec::new(), Vec::new());
        for node in &conjuncts {
            match Pair::of(node, kind_of) {
                Some(pair) => pairs.push(pair),
                None => filters.push(Filter::of(node, kind_of)?),
            }
        }
        Some(Conditions { filters, pairs })
    }

    /// The number of conditions.
    pub fn len(&self) -> usize {
        self.filters.len() + self.pairs.len()
    }

    /// The columns that the conditions read, with their types.
    pub fn columns(&self) -> impl Iterator<Item = (usize, Type)> {
        let filters = self.filters.iter().map(|filter| (filter.column, filter.kind.kind));
        filters.chain(self.pairs.iter().flat_map(|pair| [(pair.left, pair.kind), (pair.right, pair.kind)]))
    }

    /// Binds the parameters.
    ///
    /// Errors: those of computing the values.
    pub fn bind(&self, env: &Env<'_>) -> Result<Chooser> {
        let mut bounds: Vec<Bound> = Vec::with_capacity(self.filters.len());
        let mut is_empty = false;
        for filter in &self.filters {
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
        if is_empty {
            return Ok(Chooser::Never);
        }
        Ok(Chooser::Rows(Bounds { bounds, pairs: self.pairs.clone() }))
    }
}

impl Bounds {
    /// Adds a condition: the value of a column is one of these numbers.
    pub fn and_among(&mut self, column: usize, members: Arc<Members>) {
        self.bounds.push(Bound::among(column, members));
    }

    /// Chooses the rows of a block that meet all conditions. `buffers` must cover their columns.
    ///
    /// Errors: those of the table.
    pub fn choose(&self, block: &Block<'_>, buffers: &mut Buffers, chosen: &mut Chosen) -> Result<()> {
        buffers.clear();
        chosen.all(block.rows());
        for bound in &self.bounds {
            if !bound.keep_packed(block, chosen)? && chosen.any() {
                bound.keep(buffers.read(block, bound.column)?, chosen);
            }
            if !chosen.any() {
                return Ok(());
            }
        }
        for pair in &self.pairs {
            let count = chosen.count();
            if count == 0 {
                break;
            }
            let are_read = buffers.is_read(pair.left) && buffers.is_read(pair.right);
            if count * FEW < block.rows() && !are_read {
                // Decodes only the few rows that are left.
                let mut few = Chosen::default();
                few.all(count);
                buffers.read_chosen(block, pair.left, chosen)?;
                buffers.read_chosen(block, pair.right, chosen)?;
                pair.keep(buffers, &mut few);
                chosen.keep_those(&few);
            } else {
                buffers.read(block, pair.left)?;
                buffers.read(block, pair.right)?;
                pair.keep(buffers, chosen);
            }
        }
        Ok(())
    }
}
