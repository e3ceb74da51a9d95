//! Limits on statements, so that hostile ones end in an error and do not crash the process.
//!
//! The parser, this crate and DataFusion walk, clone, print and drop trees by recursion. Therefore
//! the depth of a tree is bounded before it is built: by the number of tokens between two commas,
//! summed over the enclosing brackets ([`depth`]). Once the tree exists, its levels are counted
//! ([`levels`]), and all code that walks it runs with enough stack for that many frames ([`deep`]).

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Query, SetExpr, Statement, TableFactor, Visitor};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::names::last_name;
use crate::error::{Error, Result};
use crate::sqlstate::{PROGRAM_LIMIT_EXCEEDED, STATEMENT_TOO_COMPLEX};
use crate::syntax::walk;

/// The longest statement, in bytes.
pub(super) const LONGEST: usize = 64 << 20;
/// The most tokens that may each add a level to the parsed tree.
const MAX_TOKENS: usize = 6_000;
/// The most levels of a tree, and of its plan.
pub(crate) const MAX_LEVELS: usize = 2_000;
/// The most relations of a statement, including those of its views.
pub(crate) const MAX_RELATIONS: usize = 1_000;
/// The most nested calls in queries that DataFusion plans.
const MOST_CALLS: usize = 100;
/// The most nested COALESCE, CASE and BETWEEN, each of which doubles its operand.
const MOST_DOUBLED: usize = 10;
/// The most nested brackets, and other recursions of the parser.
pub(super) const MAX_BRACKETS: usize = 1_000;
/// The stack per level for parsing, walking or dropping a tree, in a build without optimization.
const LEVEL_BYTES: usize = 32 << 10;
/// The stack per level for planning.
const PLANNED_LEVEL_BYTES: usize = 64 << 10;
/// The constant part of the stack for planning.
const BASE_BYTES: usize = 4 << 20;
/// The stack for a step of [`deeper`].
const STEP_BYTES: usize = 256 << 10;
/// The number of levels for which every thread has enough stack.
const SHALLOW: usize = 16;

pub(super) fn check_length(sql: &str) -> Result<()> {
    if sql.len() <= LONGEST {
        return Ok(());
    }
    Err(Error::new(
        PROGRAM_LIMIT_EXCEEDED,
        format!("a statement of {} bytes exceeds the limit of {LONGEST}", sql.len()),
    ))
}

/// Returns an upper limit on the depth of the tree for these tokens.
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
                // The brackets end, but more may follow them: `a[1][2]`.
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
        if levels.len() > MAX_BRACKETS || most > MAX_TOKENS {
            return Err(too_deep());
        }
    }
    Ok(most)
}

/// Returns the error for a statement with too many levels.
pub(crate) fn too_deep() -> Error {
    let message = format!(
        "the statement is nested too deeply: the maximum is {MAX_LEVELS} levels and {MAX_BRACKETS} brackets"
    );
    Error::new(STATEMENT_TOO_COMPLEX, message)
}

/// Counts the levels of a statement's tree and of its plan, in which relations and the parts of a
/// UNION are joined one by one.
///
/// Errors: 54001 for too many levels.
pub(crate) fn levels(statement: &Statement) -> Result<usize> {
    let mut counted = Levels::default();
    let _: ControlFlow<()> = walk::visit(statement, &mut counted);
    counted.total()
}

/// Like [`levels`], for a single expression.
pub(super) fn levels_of(expr: &Expr) -> Result<usize> {
    let mut counted = Levels::default();
    let _: ControlFlow<()> = walk::visit(expr, &mut counted);
    counted.total()
}

/// Checks that a query is not too complex for DataFusion. Some of its passes visit everything below
/// each call, some use names as long as the expression below, and some duplicate an argument.
///
/// Errors: 54001.
pub(crate) fn too_involved(statement: &Statement) -> Result<()> {
    let mut calls = Calls::default();
    match walk::visit(statement, &mut calls) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let what = format!(
                "the query is nested too deeply \
                 (limit: {MOST_CALLS} nested calls, {MOST_DOUBLED} of COALESCE, CASE, ROW and BETWEEN)"
            );
            Err(Error::new(STATEMENT_TOO_COMPLEX, what).with_hint(
                "Compute a part of it in a subquery, or in a query of one table, where more is taken.",
            ))
        }
    }
}

/// The nesting of calls at a position.
#[derive(Debug, Clone, Copy, Default)]
struct Nested {
    calls: usize,
    doubled: usize,
    /// Whether there is an enclosing call with no CASE in between.
    is_argument: bool,
}

/// Counts nested calls, and those among them that double the work.
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

/// Whether a call of a function doubles the work for its arguments. This holds for functions
/// rewritten to a CASE that duplicates an argument, and for those with an alias in DataFusion: a
/// call under such an alias gets a second name, which contains the text of all arguments.
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
        if self.relations > MAX_RELATIONS {
            let message =
                format!("the statement names {} relations: {MAX_RELATIONS} is the maximum", self.relations);
            return Err(Error::new(STATEMENT_TOO_COMPLEX, message));
        }
        let total = self.most + self.relations + self.operations;
        if total > MAX_LEVELS { Err(too_deep()) } else { Ok(total) }
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
        // The parts of `a UNION b UNION c` nest to the left.
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

/// Whether a keyword can stand between or before expressions and queries.
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

/// Runs `f` with enough stack for trees of this many levels. If the thread's stack is too small, it
/// runs on a separate one.
pub(crate) fn deep<T>(levels: usize, f: impl FnOnce() -> T) -> T {
    if levels <= SHALLOW {
        return f();
    }
    let bytes = levels.min(MAX_TOKENS) * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes + BASE_BYTES, f)
}

/// Like [`deep`], for one step of a recursion whose depth is unknown.
pub(crate) fn deeper<T>(levels: usize, f: impl FnOnce() -> T) -> T {
    let bytes = STEP_BYTES + levels.min(MAX_TOKENS) * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes + BASE_BYTES, f)
}

/// Like [`deep`], for planning queries: DataFusion has large frames even for flat queries.
pub(crate) fn planning<T>(levels: usize, f: impl FnOnce() -> T) -> T {
    let bytes = BASE_BYTES + levels.min(MAX_LEVELS) * PLANNED_LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes + BASE_BYTES, f)
}
