//! Random queries of each kind: joins, groups, windows, set operations, subqueries, orders.

use super::draw::Draw;
use super::expr::{Expressions, Scope};
use super::schema::{Table, Type};
use super::{Kind, Statement};

/// Draws queries over several tables, of which there is at least one.
#[derive(Debug)]
pub struct Queries<'d> {
    /// Source of random draws.
    pub draw: &'d mut Draw,
    /// The tables.
    pub tables: &'d [Table],
}

const JOINS: [&str; 5] = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"];

const AGGREGATES: [&str; 4] = ["sum", "min", "max", "count"];

impl Queries<'_> {
    fn expressions<'s>(&'s mut self, scope: &'s Scope) -> Expressions<'s> {
        Expressions { draw: self.draw, scope }
    }

    fn table(&mut self) -> Option<&Table> {
        let tables = self.tables;
        self.draw.one(tables)
    }

    /// Draws a FROM clause such as `t1 AS x LEFT JOIN t2 AS y ON …`, and returns it with its scope.
    fn from(&mut self, most: usize) -> (String, Scope) {
        let (mut text, mut scope) = (String::new(), Scope::default());
        for alias in ["x", "y", "z"].into_iter().take(1 + self.draw.below(most)) {
            let Some(table) = self.table().cloned() else { break };
            let joined = format!("{} AS {alias}", table.name);
            if text.is_empty() {
                scope.add(&table, alias);
                text = joined;
                continue;
            }
            let join = self.draw.pick(&JOINS);
            let left = scope.column(self.draw, Type::Int).unwrap_or("1").to_owned();
            let right = Scope::of(&table, alias).column(self.draw, Type::Int).unwrap_or("1").to_owned();
            scope.add(&table, alias);
            text += &if join == "CROSS JOIN" {
                format!(" {join} {joined}")
            } else {
                format!(" {join} {joined} ON {left} = {right}")
            };
        }
        (text, scope)
    }

    fn filter(&mut self, scope: &Scope, percent: u64) -> String {
        if !self.draw.chance(percent) {
            return String::new();
        }
        format!(" WHERE {}", self.expressions(scope).bool(2))
    }

    /// Draws several expressions, with their types.
    fn list(&mut self, scope: &Scope, most: usize, depth: u32) -> Vec<(String, Type)> {
        (0..=self.draw.below(most)).map(|_| self.expressions(scope).any(depth)).collect()
    }

    /// Draws the parts of a pair of [`super::partition`]: a FROM clause, a select list whose first
    /// column is `v`, and a condition.
    pub(super) fn conditional(&mut self) -> (String, String, String) {
        let (from, scope) = self.from(3);
        let list: Vec<String> = self
            .list(&scope, 3, 1)
            .into_iter()
            .enumerate()
            .map(|(at, (text, _))| if at == 0 { format!("{text} AS v") } else { format!("{text} AS v{at}") })
            .collect();
        let depth = 1 + self.draw.below(3) as u32;
        let condition = self.expressions(&scope).bool(depth);
        (from, list.join(", "), condition)
    }

    /// Draws a query without tables.
    pub fn bare(&mut self) -> Statement {
        let list = self.list(&Scope::default(), 3, 3);
        Statement::new(Kind::Query, format!("SELECT {}", texts(&list)))
    }

    /// Draws a query with a condition on up to `tables` tables.
    pub fn plain(&mut self, tables: usize) -> Statement {
        let (from, scope) = self.from(tables);
        let list = self.list(&scope, 4, 2);
        let filter = self.filter(&scope, 80);
        let distinct = if self.draw.chance(15) { "DISTINCT " } else { "" };
        Statement::new(Kind::Query, format!("SELECT {distinct}{} FROM {from}{filter}", texts(&list)))
    }

    /// Draws a query with a total order and a limit.
    pub fn ordered(&mut self) -> Statement {
        let (from, scope) = self.from(2);
        let list = self.list(&scope, 3, 1);
        let filter = self.filter(&scope, 40);
        let order: Vec<String> = (1..=list.len())
            .map(|place| {
                let way = self.draw.pick(&[
                    "ASC NULLS FIRST",
                    "ASC NULLS LAST",
                    "DESC NULLS FIRST",
                    "DESC NULLS LAST",
                ]);
                format!("{place} {way}")
            })
            .collect();
        let mut text = format!("SELECT {} FROM {from}{filter} ORDER BY {}", texts(&list), order.join(", "));
        if self.draw.chance(60) {
            text += &format!(" LIMIT {}", self.draw.between(0, 12));
        }
        if self.draw.chance(30) && text.contains("LIMIT") {
            text += &format!(" OFFSET {}", self.draw.between(0, 5));
        }
        Statement::new(Kind::Ordered, text)
    }

    fn aggregate(&mut self, scope: &Scope) -> String {
        if self.draw.chance(20) {
            return "count(*)".to_owned();
        }
        let name = self.draw.pick(&AGGREGATES);
        let distinct = if self.draw.chance(20) { "DISTINCT " } else { "" };
        let kind = if name == "sum" || self.draw.chance(70) { Type::Int } else { Type::Text };
        let of = self.expressions(scope).of(kind, 1);
        let filter = if self.draw.chance(20) {
            format!(" FILTER (WHERE {})", self.expressions(scope).bool(1))
        } else {
            String::new()
        };
        format!("{name}({distinct}{of}){filter}")
    }

    /// Draws a query with groups and aggregates.
    pub fn grouped(&mut self) -> Statement {
        let (from, scope) = self.from(2);
        let filter = self.filter(&scope, 40);
        let aggregates: Vec<String> = (0..=self.draw.below(3)).map(|_| self.aggregate(&scope)).collect();
        if self.draw.chance(25) {
            return Statement::new(
                Kind::Query,
                format!("SELECT {} FROM {from}{filter}", aggregates.join(", ")),
            );
        }
        let keys: Vec<String> = (0..=self.draw.below(2))
            .filter_map(|_| {
                let kind = if self.draw.chance(70) { Type::Int } else { Type::Text };
                scope.column(self.draw, kind).map(str::to_owned)
            })
            .collect();
        let keys = keys.join(", ");
        let having = if self.draw.chance(30) {
            format!(" HAVING {} > {}", self.aggregate_of_numbers(&scope), self.draw.between(-2, 6))
        } else {
            String::new()
        };
        Statement::new(
            Kind::Query,
            format!("SELECT {keys}, {} FROM {from}{filter} GROUP BY {keys}{having}", aggregates.join(", ")),
        )
    }

    fn aggregate_of_numbers(&mut self, scope: &Scope) -> String {
        let name = self.draw.pick(&AGGREGATES);
        format!("{name}({})", self.expressions(scope).int(1))
    }

    /// Draws a query with window functions. The primary key is the last column of each window's
    /// order, so that the order is total.
    pub fn windowed(&mut self) -> Statement {
        let Some(table) = self.table().cloned() else { return self.bare() };
        let scope = Scope::of(&table, "x");
        let calls: Vec<String> = (0..=self.draw.below(2)).map(|_| self.window(&scope)).collect();
        let filter = self.filter(&scope, 30);
        Statement::new(
            Kind::Query,
            format!("SELECT x.id, {} FROM {} AS x{filter}", calls.join(", "), table.name),
        )
    }

    fn window(&mut self, scope: &Scope) -> String {
        let kind = if self.draw.chance(70) { Type::Int } else { Type::Text };
        let of = self.expressions(scope).of(kind, 1);
        let number = self.expressions(scope).int(1);
        let (call, may_frame) = match self.draw.below(11) {
            0 => ("row_number()".to_owned(), false),
            1 => ("rank()".to_owned(), false),
            2 => ("dense_rank()".to_owned(), false),
            3 => (format!("ntile({})", self.draw.between(1, 4)), false),
            4 => (format!("lag({of})"), false),
            5 => (format!("lead({of}, {})", self.draw.between(1, 3)), false),
            6 => (format!("first_value({of})"), true),
            7 => (format!("last_value({of})"), true),
            8 => (format!("sum({number})"), true),
            9 => (format!("count({of})"), true),
            _ => (format!("{}({number})", self.draw.pick(&["min", "max"])), true),
        };
        let mut over = Vec::new();
        if self.draw.chance(60)
            && let Some(column) = scope.column(self.draw, Type::Int)
        {
            over.push(format!("PARTITION BY {column}"));
        }
        let key = scope.column(self.draw, kind).unwrap_or("x.id");
        let way = self.draw.pick(&["ASC NULLS FIRST", "DESC NULLS LAST"]);
        over.push(format!("ORDER BY {key} {way}, x.id"));
        if may_frame && self.draw.chance(50) {
            let start = self.draw.pick(&["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW"]);
            let end = self.draw.pick(&["CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"]);
            over.push(format!("ROWS BETWEEN {start} AND {end}"));
        }
        format!("{call} OVER ({})", over.join(" "))
    }

    /// Draws a set operation of two or three queries.
    pub fn set(&mut self) -> Statement {
        let kinds: Vec<Type> = (0..=self.draw.below(2))
            .map(|_| if self.draw.chance(60) { Type::Int } else { Type::Text })
            .collect();
        let mut text = self.arm(&kinds);
        for _ in 0..=self.draw.below(2) {
            let operator = self.draw.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
            // The left side is a derived table, because engines differ in the precedence of set
            // operators.
            text = format!("SELECT * FROM ({text}) AS u {operator} {}", self.arm(&kinds));
        }
        Statement::new(Kind::Query, text)
    }

    fn arm(&mut self, kinds: &[Type]) -> String {
        let (from, scope) = self.from(1);
        let list: Vec<String> = kinds.iter().map(|kind| self.expressions(&scope).of(*kind, 1)).collect();
        let filter = self.filter(&scope, 50);
        format!("SELECT {} FROM {from}{filter}", list.join(", "))
    }

    /// Draws a query with a subquery.
    pub fn nested(&mut self) -> Statement {
        let (Some(outer), Some(inner)) = (self.table().cloned(), self.table().cloned()) else {
            return self.bare();
        };
        let (out, mut both) = (Scope::of(&outer, "x"), Scope::of(&inner, "y"));
        let inside = both.clone();
        both.add(&outer, "x");
        let (outer, inner) = (&outer.name, &inner.name);
        let column = |scope: &Scope, draw: &mut Draw| scope.column(draw, Type::Int).unwrap_or("1").to_owned();
        let (mine, theirs) = (column(&out, self.draw), column(&inside, self.draw));
        let condition = self.expressions(&both).bool(1);
        let not = self.draw.pick(&["", "NOT "]);
        let list = texts(&self.list(&out, 2, 1));
        let text = match self.draw.below(7) {
            0 => format!(
                "SELECT {list} FROM {outer} AS x WHERE {not}EXISTS (SELECT 1 FROM {inner} AS y WHERE {theirs} = {mine} AND {condition})"
            ),
            1 => format!(
                "SELECT {list} FROM {outer} AS x WHERE {mine} {not}IN (SELECT {theirs} FROM {inner} AS y WHERE {condition})"
            ),
            2 => format!(
                "SELECT x.id, (SELECT {}({theirs}) FROM {inner} AS y WHERE {condition}) FROM {outer} AS x",
                self.draw.pick(&AGGREGATES)
            ),
            3 => format!(
                "SELECT {list} FROM {outer} AS x WHERE {mine} > (SELECT min({theirs}) FROM {inner} AS y WHERE {condition})"
            ),
            4 => format!(
                "WITH w AS (SELECT {theirs} AS v, count(*) AS n FROM {inner} AS y GROUP BY {theirs}) SELECT w.v, w.n, x.id FROM w JOIN \
                 {outer} AS x ON w.v = {mine}"
            ),
            5 => format!(
                "WITH RECURSIVE w (n) AS (SELECT 1 UNION ALL SELECT n + {} FROM w WHERE n < {}) SELECT w.n, count(x.id) FROM w LEFT JOIN \
                 {outer} AS x ON {mine} = w.n GROUP BY w.n",
                self.draw.between(1, 3),
                self.draw.between(3, 9)
            ),
            _ => format!(
                "SELECT q.v, sum(q.n) FROM (SELECT {mine} AS v, {} AS n FROM {outer} AS x) AS q GROUP BY q.v",
                self.expressions(&out).int(1)
            ),
        };
        Statement::new(Kind::Query, text)
    }
}

fn texts(list: &[(String, Type)]) -> String {
    let texts: Vec<&str> = list.iter().map(|(text, _)| text.as_str()).collect();
    texts.join(", ")
}
