//! Random expressions of a given type over the columns in scope.

use super::draw::Draw;
use super::schema::{Table, Type};

/// Text literals that sort, compare and change case in the same way in all engines, quoted for SQL.
pub const TEXTS: [&str; 12] =
    ["", "a", "b", "ab", "abc", "B", "Zz", "it''s", "x_y", "100%", "hello world", "0"];

const PATTERNS: [&str; 8] = ["%", "a%", "%b", "_", "%b%", "a_c", "x\\_y", "Z%"];

/// The columns that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Qualified names, such as `x.a`, with their types.
    pub names: Vec<(String, Type)>,
}

impl Scope {
    /// Returns a scope with the columns of a table under an alias.
    pub fn of(table: &Table, alias: &str) -> Self {
        let mut scope = Scope::default();
        scope.add(table, alias);
        scope
    }

    /// Adds the columns of a table under an alias.
    pub fn add(&mut self, table: &Table, alias: &str) {
        let names = table.columns.iter().map(|column| (format!("{alias}.{}", column.name), column.kind));
        self.names.extend(names);
    }

    /// Draws a column of a type; `None` if there is none.
    pub fn column(&self, draw: &mut Draw, kind: Type) -> Option<&str> {
        let of_kind: Vec<&str> =
            self.names.iter().filter(|(_, other)| *other == kind).map(|(name, _)| name.as_str()).collect();
        draw.one(&of_kind).copied()
    }
}

/// Draws expressions.
#[derive(Debug)]
pub struct Expressions<'d> {
    /// Source of random draws.
    pub draw: &'d mut Draw,
    /// The columns that expressions may use.
    pub scope: &'d Scope,
}

impl Expressions<'_> {
    /// Draws an expression of either type.
    pub fn any(&mut self, depth: u32) -> (String, Type) {
        if self.draw.chance(60) { (self.int(depth), Type::Int) } else { (self.text(depth), Type::Text) }
    }

    /// Draws an expression of the given type.
    pub fn of(&mut self, kind: Type, depth: u32) -> String {
        match kind {
            Type::Int => self.int(depth),
            Type::Text => self.text(depth),
        }
    }

    fn leaf(&mut self, kind: Type) -> String {
        if self.draw.chance(75)
            && let Some(column) = self.scope.column(self.draw, kind)
        {
            return column.to_owned();
        }
        match kind {
            Type::Int if self.draw.chance(10) => "CAST(NULL AS INTEGER)".to_owned(),
            Type::Int => self.draw.between(-5, 12).to_string(),
            Type::Text if self.draw.chance(10) => "CAST(NULL AS VARCHAR)".to_owned(),
            Type::Text => format!("'{}'", self.draw.pick(&TEXTS)),
        }
    }

    /// Draws a numeric expression.
    pub fn int(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(Type::Int);
        }
        let depth = depth - 1;
        match self.draw.below(14) {
            0 | 1 => self.leaf(Type::Int),
            2 => format!("({} + {})", self.int(depth), self.int(depth)),
            3 => format!("({} - {})", self.int(depth), self.int(depth)),
            4 => format!("({} * {})", self.int(depth), self.draw.between(-3, 4)),
            5 => format!("({} / {})", self.int(depth), self.draw.between(1, 7)),
            6 => format!("({} % {})", self.int(depth), self.draw.between(2, 7)),
            7 => format!("abs({})", self.int(depth)),
            8 => format!("coalesce({}, {})", self.int(depth), self.int(depth)),
            9 => format!("nullif({}, {})", self.int(depth), self.int(depth)),
            10 => format!("length({})", self.text(depth)),
            11 => {
                let (when, then, other) = (self.bool(depth), self.int(depth), self.int(depth));
                format!("CASE WHEN {when} THEN {then} ELSE {other} END")
            }
            12 => {
                let (of, a, b) = (self.int(depth), self.int(depth), self.int(depth));
                format!("CASE {of} WHEN 1 THEN {a} WHEN 2 THEN {b} END")
            }
            _ => format!("(- {})", self.int(depth)),
        }
    }

    /// Draws a text expression.
    pub fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(Type::Text);
        }
        let depth = depth - 1;
        match self.draw.below(12) {
            0 | 1 => self.leaf(Type::Text),
            2 => format!("({} || {})", self.text(depth), self.text(depth)),
            3 => format!("upper({})", self.text(depth)),
            4 => format!("lower({})", self.text(depth)),
            5 => {
                let of = self.text(depth);
                format!("substr({of}, {}, {})", self.draw.between(1, 4), self.draw.between(0, 4))
            }
            6 => format!("trim({})", self.text(depth)),
            7 => format!("replace({}, 'b', '{}')", self.text(depth), self.draw.pick(&["", "xy", "-"])),
            8 => format!("coalesce({}, {})", self.text(depth), self.text(depth)),
            9 => format!("nullif({}, {})", self.text(depth), self.text(depth)),
            10 => format!("CAST({} AS VARCHAR)", self.int(depth)),
            _ => {
                let (when, then, other) = (self.bool(depth), self.text(depth), self.text(depth));
                format!("CASE WHEN {when} THEN {then} ELSE {other} END")
            }
        }
    }

    /// Draws a condition.
    pub fn bool(&mut self, depth: u32) -> String {
        let kind = if self.draw.chance(65) { Type::Int } else { Type::Text };
        let below = depth.saturating_sub(1);
        match self.draw.below(if depth == 0 { 8 } else { 12 }) {
            0..=2 => {
                let operator = self.draw.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("{} {operator} {}", self.of(kind, below), self.of(kind, below))
            }
            3 => format!("{} IS {}NULL", self.of(kind, below), self.draw.pick(&["", "NOT "])),
            4 => {
                let (of, low, high) = (self.int(below), self.draw.between(-5, 5), self.draw.between(3, 15));
                format!("{of} {}BETWEEN {low} AND {high}", self.draw.pick(&["", "NOT "]))
            }
            5 => {
                let not = self.draw.pick(&["", "NOT "]);
                let items: Vec<String> = (0..=self.draw.below(3)).map(|_| self.leaf(kind)).collect();
                format!("{} {not}IN ({})", self.of(kind, below), items.join(", "))
            }
            6 => {
                let (of, pattern) = (self.text(below), self.draw.pick(&PATTERNS));
                let escape = if pattern.contains('\\') { " ESCAPE '\\'" } else { "" };
                format!("{of} {}LIKE '{pattern}'{escape}", self.draw.pick(&["", "NOT "]))
            }
            7 => {
                let not = self.draw.pick(&["", "NOT "]);
                format!("{} IS {not}DISTINCT FROM {}", self.of(kind, below), self.of(kind, below))
            }
            8 => format!("(NOT ({}))", self.bool(below)),
            9 | 10 => format!("({} AND {})", self.bool(below), self.bool(below)),
            _ => format!("({} OR {})", self.bool(below), self.bool(below)),
        }
    }
}
