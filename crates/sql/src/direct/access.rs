//! Which tree a condition is best looked up in, and what is left of the condition then.

use cairn_table::Table;
use cairn_table::row::Order;
use cairn_table::schema::KeyColumn;
use cairn_vfs::sync::Arc;

use super::columnar::Conditions;
use super::select::slots;
use crate::expr::{Comparison, Node};

/// How the rows of a table are found.
#[derive(Debug)]
pub(crate) struct Access {
    pub table: Arc<Table>,
    /// The index, or the table itself.
    pub index: Option<usize>,
    /// Whether rows have to be fetched from the table by what the index says.
    pub fetches: bool,
    pub range: RangePlan,
    pub backward: bool,
    /// What of the condition the tree does not see to.
    pub residual: Option<Node>,
    /// The same for who reads column by column, if all of it is made of conditions on one column each, or on two.
    pub conditions: Option<Conditions>,
    /// Columns of the table that are looked at; those of the condition are among them.
    pub columns: Vec<usize>,
}

/// Which part of a tree: where the first columns of its key have these values, and the next one is in this range.
#[derive(Debug, Default)]
pub(crate) struct RangePlan {
    pub prefix: Vec<Node>,
    /// The column behind the prefix is one of these, or within these bounds.
    pub any_of: Option<Vec<Node>>,
    pub lower: Option<(Node, bool)>,
    pub upper: Option<(Node, bool)>,
    /// The prefix is the whole key of at most one row.
    pub is_point: bool,
}

/// What is wanted of the rows besides that they meet the condition.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Columns that are looked at.
    pub columns: &'a [usize],
    /// Their order: columns with how each is ordered.
    pub order: &'a [(usize, Order)],
}

/// A tree, and how much of the condition it takes.
struct Candidate {
    index: Option<usize>,
    range: RangePlan,
    /// Conjuncts that the tree sees to, by their places.
    used: Vec<usize>,
    fetches: bool,
    backward: bool,
    ordered: bool,
    score: u32,
}

impl Access {
    /// The best way to the rows that meet all the conjuncts. Says also whether they come in the order that is wanted.
    pub fn plan(table: &Arc<Table>, conjuncts: Vec<Node>, wanted: &Wanted<'_>) -> (Access, bool) {
        let trees = std::iter::once(None).chain((0..table.def().indexes.len()).map(Some));
        let candidates = trees.map(|index| candidate(table, index, &conjuncts, wanted));
        let mut best: Option<Candidate> = None;
        for candidate in candidates {
            if best.as_ref().is_none_or(|best| candidate.score > best.score) {
                best = Some(candidate);
            }
        }
        let best = best.unwrap_or_else(|| candidate(table, None, &[], wanted));
        let mut columns = slots(conjuncts.iter());
        columns.extend(wanted.columns);
        columns.sort_unstable();
        columns.dedup();
        let used = &best.used;
        let rest = conjuncts.into_iter().enumerate().filter(|(at, _)| !used.contains(at));
        let residual = Node::all(rest.map(|(_, node)| node).collect());
        let conditions = Conditions::of(residual.as_ref(), table);
        let access = Access {
            table: Arc::clone(table),
            index: best.index,
            fetches: best.fetches,
            range: best.range,
            backward: best.backward,
            residual,
            conditions,
            columns,
        };
        (access, best.ordered)
    }

    /// All keys of a tree.
    pub(super) fn of_tree(table: &Arc<Table>, index: Option<usize>) -> Access {
        Access {
            table: Arc::clone(table),
            index,
            fetches: false,
            range: RangePlan::default(),
            backward: false,
            residual: None,
            conditions: None,
            columns: Vec::new(),
        }
    }

    /// Whether it reads the whole tree.
    pub fn is_full(&self) -> bool {
        let range = &self.range;
        range.prefix.is_empty() && range.any_of.is_none() && range.lower.is_none() && range.upper.is_none()
    }
}

/// The columns of a tree's key; those of the primary key follow in an index, so that they are of use there too.
fn key_columns(table: &Table, index: Option<usize>) -> Vec<KeyColumn> {
    let def = table.def();
    match index.and_then(|index| def.indexes.get(index)) {
        None => def.primary_key.clone(),
        // A unique index has no primary key behind its own columns, unless one of them is NULL.
        Some(index) if index.unique => index.columns.clone(),
        Some(index) => {
            let mut columns = index.columns.clone();
            columns.extend(&def.primary_key);
            columns
        }
    }
}

fn candidate(table: &Arc<Table>, index: Option<usize>, conjuncts: &[Node], wanted: &Wanted<'_>) -> Candidate {
    let columns = key_columns(table, index);
    let own = index
        .and_then(|index| table.def().indexes.get(index))
        .map_or(columns.len(), |index| index.columns.len());
    let unique = index.is_none_or(|index| table.def().indexes.get(index).is_some_and(|index| index.unique));
    let mut range = RangePlan::default();
    let mut used = Vec::new();
    for column in columns.iter().take(own) {
        let Some((at, value)) = equality(conjuncts, column.column) else { break };
        range.prefix.push(value);
        used.push(at);
    }
    let whole = range.prefix.len() == own && own > 0;
    range.is_point = whole && unique;
    let next = columns.get(range.prefix.len()).filter(|_| range.prefix.len() < own);
    if let Some(next) = next {
        if let Some((at, list)) = one_of(conjuncts, next.column) {
            range.any_of = Some(list);
            used.push(at);
        } else {
            bounds(conjuncts, next.column, &mut range, &mut used);
        }
    }
    let fetches =
        index.is_some_and(|index| !wanted.columns.iter().all(|&column| table.index_covers(index, column)));
    let (ordered, backward) = order(&columns, &range, wanted);
    let score = score(table, index, &range, fetches, ordered, wanted);
    Candidate { index, range, used, fetches, backward, ordered, score }
}

/// More is better: points before ranges, longer prefixes, trees that have all columns, the right order, the table before an index.
fn score(
    table: &Table,
    index: Option<usize>,
    range: &RangePlan,
    fetches: bool,
    ordered: bool,
    wanted: &Wanted<'_>,
) -> u32 {
    if range.is_point {
        return if index.is_none() { 100_000 } else { 90_000 };
    }
    let bounds = u32::from(range.lower.is_some()) + u32::from(range.upper.is_some());
    let narrow = range.prefix.len() as u32 * 1_000 + if range.any_of.is_some() { 800 } else { bounds * 300 };
    let is_full = narrow == 0;
    let order = if ordered && !wanted.order.is_empty() { 250 } else { 0 };
    let tree = match (index, fetches) {
        (None, _) => 100,
        (Some(_), false) if is_full && wanted.columns.is_empty() => 110,
        (Some(index), false) if is_full => {
            // A narrow index has fewer leaves than the table. Of the primary key behind its columns every value has to be put together, which takes longer
            // than reading a column of the table.
            let is_narrow = table.def().indexes.get(index).is_some_and(|index| {
                let has = |column: &usize| {
                    index.include.contains(column) || index.columns.iter().any(|key| key.column == *column)
                };
                let width = index.columns.len() + index.include.len();
                width * 3 < table.def().columns.len() && wanted.columns.iter().all(has)
            });
            if is_narrow { 120 } else { 50 }
        }
        (Some(_), false) => 90,
        // Every row costs a walk down the table.
        (Some(_), true) if is_full => return if order > 0 && table.rows() < 1_000 { 60 } else { 0 },
        (Some(_), true) => 0,
    };
    1 + narrow + order + tree
}

/// A conjunct that says what a column is equal to.
fn equality(conjuncts: &[Node], column: usize) -> Option<(usize, Node)> {
    conjuncts.iter().enumerate().find_map(|(at, node)| match comparison(node, column)? {
        (Comparison::Equal, value) => Some((at, value.clone())),
        _ => None,
    })
}

/// A conjunct that lists what a column may be.
fn one_of(conjuncts: &[Node], column: usize) -> Option<(usize, Vec<Node>)> {
    conjuncts.iter().enumerate().find_map(|(at, node)| match node {
        Node::In { operand, list, negated: false }
            if is_column(operand, column) && list.iter().all(is_value) =>
        {
            Some((at, list.clone()))
        }
        _ => None,
    })
}

/// The narrowest bounds cannot be told before values are known: the first on either side is taken, the others stay conditions.
fn bounds(conjuncts: &[Node], column: usize, range: &mut RangePlan, used: &mut Vec<usize>) {
    for (at, node) in conjuncts.iter().enumerate() {
        let Some((comparison, value)) = comparison(node, column) else { continue };
        let (side, inclusive) = match comparison {
            Comparison::Greater => (&mut range.lower, false),
            Comparison::GreaterOrEqual => (&mut range.lower, true),
            Comparison::Less => (&mut range.upper, false),
            Comparison::LessOrEqual => (&mut range.upper, true),
            _ => continue,
        };
        if side.is_none() {
            *side = Some((value.clone(), inclusive));
            used.push(at);
        }
    }
}

/// A comparison of the column with something that does not depend on the row.
fn comparison(node: &Node, column: usize) -> Option<(Comparison, &Node)> {
    let Node::Compare(comparison, pair) = node else { return None };
    let [left, right] = &**pair;
    if is_column(left, column) && is_value(right) {
        return Some((*comparison, right));
    }
    (is_column(right, column) && is_value(left)).then_some((comparison.flipped(), left))
}

fn is_column(node: &Node, column: usize) -> bool {
    matches!(node, Node::Slot { slot, .. } if *slot == column)
}

fn is_value(node: &Node) -> bool {
    node.is_free() && !node.is_volatile()
}

/// Whether the rows of a range come in the order that is wanted, and whether they do when it is read backward.
fn order(columns: &[KeyColumn], range: &RangePlan, wanted: &Wanted<'_>) -> (bool, bool) {
    if wanted.order.is_empty() || range.is_point {
        return (true, false);
    }
    // Columns with one value are in any order. A list of values is read in their order.
    let is_fixed = |column: usize| columns.iter().take(range.prefix.len()).any(|key| key.column == column);
    let mut rest = columns.iter().skip(range.prefix.len());
    let mut direction: Option<bool> = None;
    for (column, order) in wanted.order {
        if is_fixed(*column) {
            continue;
        }
        let Some(key) = rest.next().filter(|key| key.column == *column) else { return (false, false) };
        let backward =
            match (key.order.descending == order.descending, key.order.nulls_first == order.nulls_first) {
                (true, true) => false,
                (false, false) => true,
                _ => return (false, false),
            };
        if *direction.get_or_insert(backward) != backward {
            return (false, false);
        }
    }
    (true, direction.unwrap_or(false))
}
