//! What a statement may be at most, so that hostile ones end in an error instead of ending the
//! process.
//!
//! Trees are walked, cloned, printed and dropped by recursion, by the parser, by us and by
//! DataFusion. So how deep a tree can get is bounded before there is one: by the tokens between two
//! commas, added up over the brackets around them ([`depth`]). Once there is a tree its levels are
//! counted ([`levels`]), and whatever walks it runs where there is room for so many frames
//! ([`deep`]).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, SetExpr, Statement, TableFactor, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::names::last_name;
use crate::error::{Error, Result};
use crate::sqlstate::{PROGRAM_LIMIT_EXCEEDED, STATEMENT_TOO_COMPLEX};
use crate::syntax::walk;

/// Bytes of a statement.
pub(super) const LONGEST: usize = 64 << 20;
/// Tokens that may each be a level of the tree which the parser makes.
const MOST_TOKENS: usize = 6_000;
/// Levels of a tree, and of the plan that is made of it.
pub(crate) const DEEPEST: usize = 2_000;
/// Relations that a statement names, those of the views in it among them.
pub(crate) const MOST_RELATIONS: usize = 1_000;
/// Calls within calls, in queries that DataFusion plans.
const MOST_CALLS: usize = 100;
/// And those of COALESCE, CASE and BETWEEN, each of which doubles what it is about.
const MOST_DOUBLED: usize = 10;
/// Brackets in brackets, and whatever else the parser goes into by recursion.
pub(super) const MOST_BRACKETS: usize = 1_000;
/// Of the frames that a level has on the stack where a tree is parsed, walked or dropped, in a
/// build without optimization.
const LEVEL_BYTES: usize = 32 << 10;
/// And where it is planned.
const PLANNED_LEVEL_BYTES: usize = 64 << 10;
/// What planning takes besides.
const BASE_BYTES: usize = 4 << 20;
/// What a step of [`deeper`] takes.
const STEP_BYTES: usize = 256 << 10;
/// Levels for which every thread has room.
const SHALLOW: usize = 16;

pub(super) fn check_length(sql: &str) -> Result<()> {
    if sql.len() <= LONGEST {
        return Ok(());
    }
    Err(Error::new(
        PROGRAM_LIMIT_EXCEEDED,
        format!("a statement of {} bytes is too long: {LONGEST} is the most", sql.len()),
    ))
}

/// How deep a tree these tokens can make.
pub(super) fn depth(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut levels = vec![0usize];
    let (mut sum, mut most) = (0usize, 0usize);
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(0);
                sum += 1;
            }
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                // What was in the brackets is over, but there may be more behind them: `a[1][2]`.
                sum -= levels.pop().unwrap_or_default();
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                }
            }
            Token::Comma => {
                if let Some(level) = levels.last_mut() {
                    sum -= std::mem::take(level);
                }
            }
            Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period => {}
            Token::Word(word) if !deepens(word.keyword) => {}
            _ => {
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                }
                sum += 1;
            }
        }
        most = most.max(sum);
        if levels.len() > MOST_BRACKETS || most > MOST_TOKENS {
            return Err(too_deep());
        }
    }
    Ok(most)
}

/// That a statement has more levels than there may be.
pub(crate) fn too_deep() -> Error {
    let what = format!(
        "the statement is nested too deeply: {DEEPEST} levels and {MOST_BRACKETS} brackets are the most"
    );
    Error::new(STATEMENT_TOO_COMPLEX, what)
}

/// How many levels the tree of a statement has, and the plan that is made of it: relations are
/// joined one by one, and so are the parts of a UNION.
///
/// Errors: 54001 for more than there may be.
pub(crate) fn levels(statement: &Statement) -> Result<usize> {
    let mut counted = Levels::default();
    let _: ControlFlow<()> = walk::visit(statement, &mut counted);
    counted.total()
}

/// As [`levels`], of an expression on its own.
pub(super) fn levels_of(expr: &Expr) -> Result<usize> {
    let mut counted = Levels::default();
    let _: ControlFlow<()> = walk::visit(expr, &mut counted);
    counted.total()
}

/// Sees that a query is not too involved for DataFusion, of which some steps look at all below each
/// call, some at names that are as long as what is below, and some write an argument down twice.
///
/// Errors: 54001.
pub(crate) fn too_involved(statement: &Statement) -> Result<()> {
    let mut calls = Calls::default();
    match walk::visit(statement, &mut calls) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let what = format!(
                "the query is nested too deeply: {MOST_CALLS} calls within calls are the most, and {MOST_DOUBLED} of COALESCE, CASE, ROW and BETWEEN"
            );
            Err(Error::new(STATEMENT_TOO_COMPLEX, what).with_hint(
                "Compute a part of it in a subquery, or in a query of one table, where more is taken.",
            ))
        }
    }
}

/// How calls are within one another at a place.
#[derive(Debug, Clone, Copy, Default)]
struct Nested {
    calls: usize,
    doubled: usize,
    /// Whether a call is around it that no CASE is in between.
    is_argument: bool,
}

/// Counts calls within calls, and those of which each doubles the work.
#[derive(Debug, Default)]
struct Calls {
    now: Nested,
    around: Vec<Nested>,
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.around.push(self.now);
        match expr {
            Expr::Function(function) => {
                let name = last_name(&function.name);
                self.now.calls += 1;
                self.now.is_argument = true;
                self.now.doubled += usize::from(is_doubled(&name));
            }
            Expr::Case { .. } => {
                self.now.calls += 1;
                self.now.doubled += usize::from(std::mem::take(&mut self.now.is_argument));
            }
            Expr::Between { .. } => self.now.doubled += 1,
            Expr::Array(_)
            | Expr::Tuple(_)
            | Expr::Extract { .. }
            | Expr::Substring { .. }
            | Expr::Position { .. }
            | Expr::Trim { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Overlay { .. }
            | Expr::AtTimeZone { .. } => {
                self.now.calls += 1;
                self.now.is_argument = true;
            }
            _ => {}
        }
        match self.now.calls > MOST_CALLS || self.now.doubled > MOST_DOUBLED {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now = self.around.pop().unwrap_or_default();
        ControlFlow::Continue(())
    }
}

/// Whether a call of a function makes twice the work of what is in it: those that are written as a
/// CASE with an argument in it twice, and those that DataFusion knows by another name too. A call
/// by such a name has a second one, in which all of its arguments are written out.
fn is_doubled(name: &str) -> bool {
    matches!(
        name,
        "coalesce"
            | "nvl"
            | "ifnull"
            | "nullif"
            | "row"
            | "length"
            | "char_length"
            | "character_length"
            | "date_format"
            | "datepart"
            | "datetrunc"
            | "instr"
            | "position"
            | "pow"
            | "substring"
            | "substring_index"
            | "trim"
            | "element_at"
            | "make_list"
            | "array_cat"
            | "array_contains"
            | "array_empty"
            | "array_extract"
            | "array_indexof"
            | "array_join"
            | "array_push_back"
            | "array_push_front"
            | "arrays_overlap"
            | "string_to_list"
    ) || name.starts_with("list_")
}

#[derive(Debug, Default)]
struct Levels {
    now: usize,
    most: usize,
    relations: usize,
    operations: usize,
}

impl Levels {
    fn total(&self) -> Result<usize> {
        if self.relations > MOST_RELATIONS {
            let what =
                format!("the statement names {} relations: {MOST_RELATIONS} are the most", self.relations);
            return Err(Error::new(STATEMENT_TOO_COMPLEX, what));
        }
        let total = self.most + self.relations + self.operations;
        if total > DEEPEST { Err(too_deep()) } else { Ok(total) }
    }

    fn enter(&mut self) -> ControlFlow<()> {
        self.now += 1;
        self.most = self.most.max(self.now);
        ControlFlow::Continue(())
    }

    fn leave(&mut self) -> ControlFlow<()> {
        self.now -= 1;
        ControlFlow::Continue(())
    }
}

impl Visitor for Levels {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        // The parts of `a UNION b UNION c` are to the left of one another.
        let mut body = &*query.body;
        while let SetExpr::SetOperation { left, .. } = body {
            self.operations += 1;
            body = left;
        }
        self.enter()
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.leave()
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.enter()
    }

    fn post_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.leave()
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.enter()
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.leave()
    }

    fn pre_visit_relation(&mut self, _: &ObjectName) -> ControlFlow<()> {
        self.relations += 1;
        ControlFlow::Continue(())
    }
}

/// Words that stand between or before expressions and queries.
fn deepens(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::BETWEEN
            | Keyword::CASE
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::JOIN
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::OPERATOR
            | Keyword::EXPLAIN
            | Keyword::SIMILAR
            | Keyword::PRIOR
            | Keyword::DIV
            | Keyword::XOR
            | Keyword::INTERVAL
            | Keyword::PREPARE
            | Keyword::DECLARE
            | Keyword::DESCRIBE
            | Keyword::DESC
            | Keyword::NOTNULL
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::OVERLAPS
            | Keyword::MEMBER
            | Keyword::MINUS
            | Keyword::APPLY
            | Keyword::STRAIGHT_JOIN
            | Keyword::BINARY
            | Keyword::CONNECT_BY_ROOT
            | Keyword::BEGIN
            | Keyword::IF
            | Keyword::WHILE
            | Keyword::LATERAL
    )
}

/// Runs `f` where there is room on the stack for trees of so many levels: on a stack of its own
/// where this thread's has less left.
pub(crate) fn deep<T>(levels: usize, f: impl FnOnce() -> T) -> T {
    if levels <= SHALLOW {
        return f();
    }
    let bytes = levels.min(MOST_TOKENS) * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes + BASE_BYTES, f)
}

/// As [`deep`], for one of many steps that go into each other, of which nobody knows how many there
/// are.
pub(crate) fn deeper<T>(levels: usize, f: impl FnOnce() -> T) -> T {
    let bytes = STEP_BYTES + levels.min(MOST_TOKENS) * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes + BASE_BYTES, f)
}

/// As [`deep`], for what plans queries: DataFusion has large frames however flat a query is.
pub(crate) fn planning<T>(levels: usize, f: impl FnOnce() -> T) -> T {
    let bytes = BASE_BYTES + levels.min(DEEPEST) * PLANNED_LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes + BASE_BYTES, f)
}
