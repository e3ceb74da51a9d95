//! Statements of shapes that planners tend to get wrong: aggregates in correlated subqueries, parts
//! with an order of their own, grouping sets over keys, CTEs that are used several times.

use super::draw::Draw;
use super::expr::{Expressions, Scope};
use super::query::Queries;
use super::records::Make;
use super::schema::{Table, Type};
use super::{Kind, Statement};

/// The shapes, and the function that draws each.
pub const SHAPES: [(&str, Make); 7] = [
    ("aggregated subqueries", |queries| queries.aggregated()),
    ("changes by aggregated subqueries", |queries| queries.changed_by_aggregate()),
    ("ordered parts", |queries| queries.ordered_parts()),
    ("grouping sets", |queries| queries.grouping_sets()),
    ("joins in order", |queries| queries.joined_in_order()),
    ("limits over orders", |queries| queries.limited_over_order()),
    ("a CTE used often", |queries| queries.cte_used_often()),
];

const AGGREGATES: [&str; 5] = ["max", "min", "sum", "count", "count(*)"];

const WAYS: [&str; 4] = ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"];

impl Queries<'_> {
    /// Draws two tables, with aliases `x` and `y`.
    fn two(&mut self) -> Option<(Table, Scope, Table, Scope)> {
        let (outer, inner) = (self.draw.one(self.tables)?.clone(), self.draw.one(self.tables)?.clone());
        let (outside, inside) = (Scope::of(&outer, "x"), Scope::of(&inner, "y"));
        Some((outer, outside, inner, inside))
    }

    /// Draws a condition on a subquery that has an aggregate and no GROUP BY. Such a subquery
    /// returns a row even if no input row matches.
    fn aggregated_condition(&mut self, outside: &Scope, inner: &Table, inside: &Scope) -> String {
        let column = |scope: &Scope, draw: &mut Draw| scope.column(draw, Type::Int).unwrap_or("1").to_owned();
        let (mine, theirs) = (column(outside, self.draw), column(inside, self.draw));
        let what = match self.draw.pick(&AGGREGATES) {
            "count(*)" => "count(*)".to_owned(),
            name => format!("{name}({})", column(inside, self.draw)),
        };
        let what = if self.draw.chance(20) { format!("coalesce({what}, 0)") } else { what };
        let shift = self.draw.pick(&["", " + 1", " + 100"]);
        let having = match self.draw.chance(20) {
            true => format!(" HAVING count(*) {} 0", self.draw.pick(&[">", "="])),
            false => String::new(),
        };
        let subquery =
            format!("(SELECT {what} FROM {} AS y WHERE {theirs} = {mine}{shift}{having})", inner.name);
        let not = self.draw.pick(&["", "NOT "]);
        let other = column(outside, self.draw);
        match self.draw.below(4) {
            0 | 1 => format!("{not}EXISTS {subquery}"),
            2 => format!("{other} {not}IN {subquery}"),
            _ => format!("{other} {} {subquery}", self.draw.pick(&["=", "<>", "<", ">="])),
        }
    }

    /// Draws a query with conditions on aggregates in subqueries, in the WHERE clause or the select
    /// list.
    pub fn aggregated(&mut self) -> Statement {
        let Some((outer, outside, inner, inside)) = self.two() else { return self.bare() };
        let condition = self.aggregated_condition(&outside, &inner, &inside);
        let outer = outer.name;
        Statement::new(
            Kind::Query,
            match self.draw.below(3) {
                0 => format!("SELECT x.id FROM {outer} AS x WHERE {condition}"),
                1 => {
                    format!("SELECT x.id, CASE WHEN {condition} THEN 1 ELSE 0 END FROM {outer} AS x")
                }
                _ => format!("SELECT x.id FROM {outer} AS x WHERE {condition} OR x.id < 3"),
            },
        )
    }

    /// Draws a DELETE or an UPDATE of the rows for which such a condition holds.
    pub fn changed_by_aggregate(&mut self) -> Statement {
        let Some((outer, _, inner, inside)) = self.two() else { return self.bare() };
        let outside = Scope::of(&outer, &outer.name);
        let condition = self.aggregated_condition(&outside, &inner, &inside);
        let outer = outer.name;
        Statement::new(
            Kind::Change,
            match self.draw.chance(60) {
                true => format!("DELETE FROM {outer} WHERE {condition} AND id > 4"),
                false => format!("UPDATE {outer} SET a = id WHERE {condition}"),
            },
        )
    }

    /// Draws an ORDER BY list over all of `columns` columns.
    fn order(&mut self, columns: usize) -> String {
        let all: Vec<String> =
            (1..=columns).map(|place| format!("{place} {}", self.draw.pick(&WAYS))).collect();
        all.join(", ")
    }

    /// Draws set operations over CTEs and subqueries that have orders and limits of their own.
    pub fn ordered_parts(&mut self) -> Statement {
        let Some((outer, outside, inner, inside)) = self.two() else { return self.bare() };
        let kind = if self.draw.chance(70) { Type::Int } else { Type::Text };
        let column = |scope: &Scope, draw: &mut Draw| scope.column(draw, kind).unwrap_or("1").to_owned();
        let (mine, theirs) = (column(&outside, self.draw), column(&inside, self.draw));
        let (first, last) = (self.order(1), self.order(1));
        let (few, most) = (self.draw.between(1, 5), self.draw.between(1, 6));
        let (distinct, set) =
            (self.draw.pick(&["", "DISTINCT "]), self.draw.pick(&["UNION ALL", "UNION ALL", "UNION"]));
        let (outer, inner) = (outer.name, inner.name);
        Statement::new(
            Kind::Ordered,
            format!(
                "WITH s AS (SELECT {mine} AS v FROM {outer} AS x ORDER BY {first} LIMIT {few}) SELECT {distinct}v FROM (SELECT v FROM s {set} \
                 SELECT v FROM s {set} SELECT {theirs} FROM {inner} AS y) AS q ORDER BY {last} LIMIT {most}"
            ),
        )
    }

    /// Draws a query with several grouping sets that include the primary key, in an order.
    pub fn grouping_sets(&mut self) -> Statement {
        let Some(table) = self.draw.one(self.tables).cloned() else { return self.bare() };
        // The column is not the key itself, because without its optimizer DataFusion confuses two
        // sets of the same column.
        let mut others = Scope::of(&table, "x");
        others.names.retain(|(name, _)| name != "x.id");
        let column = others.column(self.draw, Type::Int).unwrap_or("x.a").to_owned();
        let sets = self.draw.pick(&[
            "ROLLUP (x.id, #)",
            "CUBE (x.id, #)",
            "GROUPING SETS ((x.id, #), (x.id))",
            "GROUPING SETS ((#, x.id), (#), ())",
        ]);
        let (order, limit) = (self.order(2), self.draw.between(2, 20));
        let (name, sets) = (table.name, sets.replace('#', &column));
        Statement::new(
            Kind::Ordered,
            format!(
                "SELECT k, v FROM (SELECT x.id AS k, {column} AS v FROM {name} AS x GROUP BY {sets}) AS q ORDER BY {order} LIMIT {limit}"
            ),
        )
    }

    /// Draws a join that is ordered by its columns, with a condition on some of them.
    pub fn joined_in_order(&mut self) -> Statement {
        let Some((outer, outside, inner, inside)) = self.two() else { return self.bare() };
        let column = |scope: &Scope, draw: &mut Draw| scope.column(draw, Type::Int).unwrap_or("1").to_owned();
        let (mine, theirs) = (column(&outside, self.draw), column(&inside, self.draw));
        let join = self.draw.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let (least, second) = (self.draw.between(0, 5), column(&inside, self.draw));
        let filter = match self.draw.below(4) {
            0 => format!(" WHERE (y.id, {second}) > ({least}, 0)"),
            1 => format!(" WHERE x.id = {least}"),
            2 => " WHERE y.id IS NULL".to_owned(),
            _ => String::new(),
        };
        let order = self.order(3);
        let (outer, inner) = (outer.name, inner.name);
        Statement::new(
            Kind::Ordered,
            format!(
                "SELECT x.id, y.id, {second} FROM {outer} AS x {join} {inner} AS y ON {mine} = {theirs}{filter} ORDER BY {order}"
            ),
        )
    }

    /// Draws a limit over an ordered subquery.
    pub fn limited_over_order(&mut self) -> Statement {
        let Some(table) = self.draw.one(self.tables).cloned() else { return self.bare() };
        let scope = Scope::of(&table, "x");
        let column = scope.column(self.draw, Type::Int).unwrap_or("x.id").to_owned();
        let filter = Expressions { draw: self.draw, scope: &scope }.bool(1);
        let (way, limit) = (self.draw.pick(&WAYS), self.draw.between(1, 8));
        let name = table.name;
        Statement::new(
            Kind::Ordered,
            format!(
                "SELECT * FROM (SELECT x.id FROM {name} AS x WHERE {filter} ORDER BY {column} {way}, x.id) AS q LIMIT {limit}"
            ),
        )
    }

    /// Draws a query that reads a CTE in several places.
    pub fn cte_used_often(&mut self) -> Statement {
        let Some((outer, outside, inner, _)) = self.two() else { return self.bare() };
        let mine = outside.column(self.draw, Type::Int).unwrap_or("1").to_owned();
        let filter = Expressions { draw: self.draw, scope: &outside }.bool(1);
        let set = self.draw.pick(&["UNION ALL", "EXCEPT", "INTERSECT"]);
        let (outer, inner) = (outer.name, inner.name);
        Statement::new(
            Kind::Query,
            format!(
                "WITH w AS (SELECT {mine} AS v FROM {outer} AS x WHERE {filter}) SELECT a.v, count(*) FROM w AS a LEFT JOIN w AS b ON a.v = b.v \
                 WHERE a.v IN (SELECT v FROM w) OR a.v NOT IN (SELECT id FROM {inner} AS y) GROUP BY a.v {set} SELECT v, 1 FROM w"
            ),
        )
    }
}
