//! Chooses the tree that serves a condition best, and determines the residual condition.

use cairn_table::Table;
use cairn_table::row::Order;
use cairn_table::schema::{ColumnType, KeyColumn};
use cairn_vfs::sync::Arc;

use super::columnar::Conditions;
use super::place::keeps_values;
use super::row::slots;
use crate::expr::{Comparison, Node};

/// The access path of a table.
#[derive(Debug)]
pub(crate) struct Access {
    pub table: Arc<Table>,
    /// The index; `None` for the table itself.
    pub index: Option<usize>,
    /// Whether rows must be fetched from the table for each index entry.
    pub fetches: bool,
    pub range: RangePlan,
    pub backward: bool,
    /// The part of the condition that the range does not cover.
    pub residual: Option<Node>,
    /// The residual condition for readers of whole columns, if each of its parts is on one or two
    /// columns.
    pub conditions: Option<Conditions>,
    /// The columns that are read, including those of the condition.
    pub columns: Vec<usize>,
}

/// The range of a tree: the first columns of its key have the values of `prefix`, and the next
/// column is in a range.
#[derive(Debug, Default)]
pub(crate) struct RangePlan {
    pub prefix: Vec<Node>,
    /// The column after the prefix is one of these values, or within the bounds below.
    pub any_of: Option<Vec<Node>>,
    pub lower: Option<(Node, bool)>,
    pub upper: Option<(Node, bool)>,
    /// The prefix is a whole unique key, which at most one row has.
    pub is_point: bool,
}

/// The requirements on the rows besides the condition.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// The columns that are read.
    pub columns: &'a [usize],
    /// The order of the rows.
    pub order: &'a [(usize, Order)],
}

/// A tree, with the part of the condition that it covers.
struct Candidate {
    index: Option<usize>,
    range: RangePlan,
    /// Positions of the conjuncts that the range covers.
    used: Vec<usize>,
    fetches: bool,
    backward: bool,
    ordered: bool,
    score: u32,
}

impl Access {
    /// Returns the best access path for rows that meet all conjuncts, and whether it yields the
    /// wanted order.
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

    /// The path that reads a whole tree.
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

/// Returns the columns of a tree's key. In an index the columns of the primary key follow, and can
/// be used too.
fn key_columns(table: &Table, index: Option<usize>) -> Vec<KeyColumn> {
    let def = table.def();
    match index.and_then(|index| def.indexes.get(index)) {
        None => def.primary_key.clone(),
        // Entries of a unique index hold the primary key only if one of the index's own columns is
        // NULL.
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
        let Some((at, value)) = equality(conjuncts, &Key::of(table, column)) else { break };
        range.prefix.push(value);
        used.push(at);
    }
    let whole = range.prefix.len() == own && own > 0;
    range.is_point = whole && unique;
    let next = columns.get(range.prefix.len()).filter(|_| range.prefix.len() < own);
    if let Some(next) = next {
        let next = Key::of(table, next);
        if let Some((at, list)) = one_of(conjuncts, &next) {
            range.any_of = Some(list);
            used.push(at);
        } else {
            bounds(conjuncts, &next, &mut range, &mut used);
        }
    }
    let fetches =
        index.is_some_and(|index| !wanted.columns.iter().all(|&column| table.index_covers(index, column)));
    let (ordered, backward) = order(&columns, &range, wanted);
    let score = score(table, index, &range, fetches, ordered, wanted);
    Candidate { index, range, used, fetches, backward, ordered, score }
}

/// Rates an access path; higher is better. It prefers points to ranges, long prefixes, trees that
/// have all columns, the wanted order, and the table to an index.
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
            // A narrow index has fewer leaves than the table. The columns of the primary key in its
            // entries have to be decoded value by value, which takes longer than reading a column
            // of the table.
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
        // Each row costs a descent of the table's tree.
        (Some(_), true) if is_full => return if order > 0 && table.rows() < 1_000 { 60 } else { 0 },
        (Some(_), true) => 0,
    };
    1 + narrow + order + tree
}

/// Returns the value to which a conjunct equates the column.
fn equality(conjuncts: &[Node], key: &Key<'_>) -> Option<(usize, Node)> {
    conjuncts.iter().enumerate().find_map(|(at, node)| match comparison(node, key)? {
        (Comparison::Equal, value) => Some((at, value.clone())),
        _ => None,
    })
}

/// Returns the values of a conjunct that lists them for the column.
fn one_of(conjuncts: &[Node], key: &Key<'_>) -> Option<(usize, Vec<Node>)> {
    conjuncts.iter().enumerate().find_map(|(at, node)| match node {
        Node::In { operand, list, negated: false } if key.is(operand) && list.iter().all(is_value) => {
            Some((at, list.clone()))
        }
        _ => None,
    })
}

/// Takes the first bound on either side; the others stay in the residual condition. The narrowest
/// bound is unknown until the values are.
fn bounds(conjuncts: &[Node], key: &Key<'_>, range: &mut RangePlan, used: &mut Vec<usize>) {
    for (at, node) in conjuncts.iter().enumerate() {
        let Some((comparison, value)) = comparison(node, key) else { continue };
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

/// Matches a comparison of the column with an expression that does not depend on the row.
fn comparison<'n>(node: &'n Node, key: &Key<'_>) -> Option<(Comparison, &'n Node)> {
    let Node::Compare(comparison, pair) = node else { return None };
    let [left, right] = &**pair;
    if key.is(left) && is_value(right) {
        return Some((*comparison, right));
    }
    (key.is(right) && is_value(left)).then_some((comparison.flipped(), left))
}

/// A column of a tree's key.
struct Key<'t> {
    column: usize,
    kind: Option<&'t ColumnType>,
}

impl<'t> Key<'t> {
    fn of(table: &'t Table, key: &KeyColumn) -> Self {
        let kind = table.def().columns.get(key.column).map(|column| &column.kind);
        Key { column: key.column, kind }
    }

    /// Whether the expression is the column, or a lossless conversion of it to a wider type.
    fn is(&self, node: &Node) -> bool {
        let mut node = node;
        while let Node::Cast { operand, to } = node {
            if !self.kind.is_some_and(|from| keeps_values(from, to)) {
                return false;
            }
            node = operand;
        }
        matches!(node, Node::Slot { slot, .. } if *slot == self.column)
    }
}

fn is_value(node: &Node) -> bool {
    node.is_free() && !node.is_volatile()
}

/// Returns whether a range yields the wanted order, and whether it does so when read backward.
fn order(columns: &[KeyColumn], range: &RangePlan, wanted: &Wanted<'_>) -> (bool, bool) {
    if wanted.order.is_empty() || range.is_point {
        return (true, false);
    }
    // Columns with a fixed value fit any order. A list of values is read in the column's order.
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

#[cfg(test)]
mod tests {
    use cairn_table::row::Type;
    use cairn_table::schema::ColumnType;
    use cairn_vfs::MemFs;
    use cairn_vfs::sync::Arc;

    use crate::executor::Plan;
    use crate::{Connection, Database, Datum, Outcome};

    fn database() -> Database {
        Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap()
    }

    /// Returns the first column of a statement's rows, in order.
    fn rows(c: &mut Connection, sql: &str, types: &[Type], params: &[Datum]) -> Vec<String> {
        let types: Vec<Option<ColumnType>> = types.iter().map(|kind| Some((*kind).into())).collect();
        let statement = c.prepare_typed(sql, &types).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut found = Vec::new();
        let outcome = c.run(&statement, params).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let Outcome::Rows(mut rows) = outcome else { panic!("{sql} gives no rows") };
        while let Some(row) = rows.next().unwrap() {
            found.push(row.get(0).to_string());
        }
        found.sort();
        found
    }

    /// Goal: a key is looked up by values of other types, and exactly the rows that meet the
    /// condition are found, for values at, between and beyond the key's. Method: the plans of
    /// statements with parameters of each type, and their rows compared with those of an unindexed
    /// column.
    #[test]
    fn keys_are_looked_up_by_other_types() {
        let database = database();
        let mut c = database.connect();
        let decimal = |unscaled, scale| Datum::Decimal { unscaled, scale };
        let whole =
            [0, 1, 3, 7, 40_000, -40_000, i64::from(i32::MAX) + 1, i64::MIN, i64::MAX].map(Datum::BigInt);
        let fractions: Vec<Datum> =
            [0.0, 1.5, -1.5, 3.0, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
                .map(Datum::Double)
                .into();
        let numerics = [decimal(15, 1), decimal(-15, 1), decimal(300, 2), decimal(10_i128.pow(30), 0)];
        let day = 86_400_000_000;
        let moments = [0, 1, day, day - 1, -1, 3 * day, i64::MAX / 2, i64::MIN / 2].map(Datum::Timestamp);
        let days = [0, 1, 3, -1].map(Datum::Date);
        for (kind, key, type_of, values) in [
            ("int", "i", Type::BigInt, whole.to_vec()),
            ("smallint", "i", Type::BigInt, whole.to_vec()),
            ("bigint", "i", Type::SmallInt, [0, 3].map(Datum::SmallInt).to_vec()),
            ("int", "i", Type::Decimal, numerics.to_vec()),
            ("bigint", "i", Type::Decimal, numerics.to_vec()),
            ("numeric(12,2)", "i", Type::BigInt, whole.to_vec()),
            ("numeric(12,0)", "i", Type::Decimal, numerics.to_vec()),
            ("int", "i", Type::Double, fractions.clone()),
            ("smallint", "i", Type::Real, [1.5, 3.0].map(Datum::Real).to_vec()),
            ("real", "i / 2.0", Type::Double, fractions.clone()),
            ("double precision", "i / 2.0", Type::Real, [1.5, 3.0].map(Datum::Real).to_vec()),
            ("date", "date '1970-01-01' + i", Type::Timestamp, moments.to_vec()),
            ("timestamp", "timestamp '1970-01-01' + i * interval '12 hours'", Type::Date, days.to_vec()),
        ] {
            c.execute("drop table if exists t", &[]).unwrap();
            c.execute(&format!("create table t (k {kind} primary key, same {kind})"), &[]).unwrap();
            let source = "from generate_series(-9, 9) as g(i)";
            c.execute(&format!("insert into t select {key}, {key} {source}"), &[]).unwrap();
            for (condition, count) in [
                ("# = $1", 1),
                ("# < $1", 1),
                ("# <= $1", 1),
                ("# > $1", 1),
                ("$1 <= #", 1),
                ("# between $1 and $2", 2),
                ("# > $1 and # <= $2", 2),
                ("# in ($1, $2)", 2),
                ("# in ($1, 3, $2)", 2),
            ] {
                if condition.contains('3') && matches!(type_of, Type::Timestamp | Type::Date) {
                    continue;
                }
                let sql = |column| format!("select k from t where {}", condition.replace('#', column));
                let types = vec![type_of; count];
                let given: Vec<_> = types.iter().map(|kind| Some((*kind).into())).collect();
                let statement = c.prepare_typed(&sql("k"), &given).unwrap();
                let planned = statement.planned();
                let Plan::Select(select) = &planned.plan else {
                    panic!("{kind} {condition}: {:?}", planned.plan)
                };
                let access = select.select.access.as_ref().unwrap();
                assert!(!access.is_full(), "{kind} {type_of:?} {condition}: {:?}", access.range);
                assert!(access.residual.is_none(), "{kind} {type_of:?} {condition}: {:?}", access.residual);
                for (at, value) in values.iter().enumerate() {
                    let mut params = vec![value.clone()];
                    params.extend(values.get((at + 1) % values.len()).cloned().filter(|_| count > 1));
                    let found = rows(&mut c, &sql("k"), &types, &params);
                    let expected = rows(&mut c, &sql("same"), &types, &params);
                    assert_eq!(found, expected, "{kind} {condition} {params:?}");
                }
            }
        }
    }

    /// Goal: changes of rows and joins look keys up in the same way, and values beyond a key's type
    /// are not an error. Method: the plans of an UPDATE, a DELETE and joins of tables with keys of
    /// different types.
    #[test]
    fn changes_and_joins_look_up_by_other_types() {
        let database = database();
        let mut c = database.connect();
        for sql in [
            "create table t (k int primary key, v int)",
            "create table u (k bigint primary key, t bigint)",
            "insert into t select i, i from generate_series(1, 1000) as g(i)",
            "insert into u select i, i * 3 from generate_series(1, 1000) as g(i)",
            "insert into u values (5000000000, 5000000000)",
        ] {
            c.execute(sql, &[]).unwrap();
        }
        let given = [Some(ColumnType::new(Type::BigInt))];
        for (sql, count) in [("update t set v = 0 where k = $1", 1), ("delete from t where k in ($1, 7)", 2)]
        {
            let statement = c.prepare_typed(sql, &given).unwrap();
            let planned = statement.planned();
            let access = match &planned.plan {
                Plan::Update(update) => format!("{update:?}"),
                Plan::Delete(delete) => format!("{delete:?}"),
                other => panic!("{sql}: {other:?}"),
            };
            assert!(
                access.contains("prefix: [Param(0)]") || access.contains("any_of: Some"),
                "{sql}: {access}"
            );
            for (key, count) in [(9, count), (1 << 40, count - 1)] {
                let Outcome::Done(tag) = c.run(&statement, &[Datum::BigInt(key)]).unwrap() else {
                    panic!("{sql}")
                };
                assert_eq!(tag.rows, Some(count), "{sql}");
                c.execute("insert into t values (7, 7) on conflict do nothing", &[]).unwrap();
            }
        }
        for sql in [
            "select t.k from u join t on t.k = u.t where u.k = $1",
            "select t.k from t join u on t.k = u.t where u.k = $1",
            "select u.k from t join u on u.k = t.v where t.k = $1",
        ] {
            let statement = c.prepare_typed(sql, &given).unwrap();
            let planned = statement.planned();
            let Plan::Select(select) = &planned.plan else { panic!("{sql}: {:?}", planned.plan) };
            assert!(
                select.select.joined.is_some() && select.select.access.as_ref().unwrap().range.is_point,
                "{sql}"
            );
        }
        let found = |c: &mut Connection, key| {
            rows(
                c,
                "select t.k from u join t on t.k = u.t where u.k = $1",
                &[Type::BigInt],
                &[Datum::BigInt(key)],
            )
        };
        assert_eq!(found(&mut c, 20), ["60"]);
        assert_eq!(found(&mut c, 5_000_000_000), Vec::<String>::new());
    }
}
