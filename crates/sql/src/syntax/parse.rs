//! Parses the statements of a text.

use std::ops::ControlFlow;

use sqlparser::ast::{DiscardObject, Expr, Ident, ObjectName, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::cursors::{self, Declared, Fetch};
use super::dialect::Dialect;
use super::limits::{self, MAX_BRACKETS, deep};
use super::{balance, precedence, symmetric};
use crate::error::{Error, Result};
use crate::sqlstate::SYNTAX_ERROR;
use crate::syntax::walk::visit_expressions_mut;

const DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// The recursion limit of the parser. Each bracket takes a level, and so do the expression in it
/// and a sign or NOT before it.
const RECURSION: usize = 3 * MAX_BRACKETS;

/// A parsed statement.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    /// Its text, without the semicolon.
    pub text: &'a str,
    /// Its tree.
    pub statement: Tree,
    /// The number of its levels.
    pub depth: usize,
}

/// A tree that is dropped with enough stack for its depth.
#[derive(Debug)]
pub(crate) struct Tree {
    plain: Option<Plain>,
    depth: usize,
}

impl Tree {
    pub(crate) fn new(plain: Plain, depth: usize) -> Self {
        Tree { plain: Some(plain), depth }
    }
}

impl std::ops::Deref for Tree {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        self.plain.as_ref().unwrap_or(&Plain::Empty)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let plain = self.plain.take();
        deep(self.depth, || drop(plain));
    }
}

/// A statement, including those that the parser has no tree for.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Plain {
    Tree(Statement),
    Empty,
    Vacuum {
        analyze: bool,
        tables: Vec<ObjectName>,
    },
    Analyze {
        tables: Vec<ObjectName>,
    },
    Checkpoint,
    AlterSequence {
        name: ObjectName,
        /// The next value: a number, or the start value.
        restart: Option<Option<i64>>,
        /// The column that owns the sequence, or none.
        owner: Option<Option<ObjectName>>,
    },
    /// DECLARE: a cursor, and the text of its query.
    Declare {
        declared: Declared,
        query: String,
    },
    /// FETCH, or MOVE.
    Fetch(Fetch),
    /// CLOSE of one cursor, or of all.
    Close {
        name: Option<String>,
    },
}

impl Plain {
    /// Whether it only runs outside of transactions.
    pub fn is_alone(&self) -> bool {
        match self {
            Plain::Vacuum { .. } => true,
            Plain::Tree(Statement::Discard { object_type }) => *object_type == DiscardObject::ALL,
            _ => false,
        }
    }
}

/// Splits a text into its statements, without the semicolons between them. Semicolons in quotes, in
/// dollar quotes and in comments do not count.
///
/// Errors: 42601 for a quote or comment without an end, 54000 for a text that is too long for a
/// statement.
pub fn split(sql: &str) -> Result<Vec<&str>> {
    let tokens = tokenize(sql)?;
    Ok(pieces(sql, &tokens).map(|(text, _)| text).collect())
}

/// Parses the statements of a text. Empty ones are skipped.
pub(crate) fn parse(sql: &str) -> Result<Vec<Parsed<'_>>> {
    let tokens = tokenize(sql)?;
    pieces(sql, &tokens).map(|(text, tokens)| parse_one(sql, text, tokens)).collect()
}

/// Parses a text that is a single statement.
pub(crate) fn one(sql: &str) -> Result<Parsed<'_>> {
    let mut all = parse(sql)?;
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Ok(Parsed { text: "", statement: Tree::new(Plain::Empty, 0), depth: 0 }),
        _ => Err(Error::new(SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")),
    }
}

/// Parses an expression, as the catalog stores defaults and checks.
pub(crate) fn expression(text: &str) -> Result<Expr> {
    let tokens = tokenize(text)?;
    let depth = limits::depth(&tokens)?;
    deep(depth, || expression_of(text, &tokens))
}

fn expression_of(text: &str, tokens: &[TokenWithSpan]) -> Result<Expr> {
    let dialect = Dialect::of(tokens.len());
    let parser = Parser::new(&dialect).with_recursion_limit(RECURSION);
    let mut parser = parser.with_tokens_with_locations(tokens.to_vec());
    let expr = parser.parse_expr().and_then(|expr| match parser.peek_token().token {
        Token::EOF => Ok(expr),
        _ => parser.expected("end of expression", parser.peek_token()),
    });
    let mut expr = expr.map_err(|error| syntax_error(text, tokens, &error))?;
    if symmetric::is_in(tokens) {
        symmetric::correct(&mut expr).map_err(|()| limits::too_deep())?;
    }
    let _ = visit_expressions_mut(&mut expr, |expr| {
        precedence::correct_expr(expr);
        ControlFlow::<()>::Continue(())
    });
    if balance::is_in(tokens) {
        balance::balance(&mut expr);
    }
    limits::levels_of(&expr)?;
    Ok(expr)
}

fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>> {
    limits::check_length(sql)?;
    let tokens = Tokenizer::new(&DIALECT, sql).tokenize_with_location();
    let mut tokens = tokens.map_err(|error| {
        Error::new(SYNTAX_ERROR, error.message.clone()).at(offset_in_chars(sql, error.location))
    })?;
    // Checked before the rewrites below, whose time grows with the number of places to rewrite.
    for piece in tokens.split(|token| token.token == Token::SemiColon) {
        limits::depth(piece)?;
    }
    junk_behind_numbers(sql, &tokens)?;
    super::quotes::join(&mut tokens);
    super::switches::spell_out(&mut tokens);
    super::spans::spell_out(&mut tokens);
    super::strengths::spell_out(&mut tokens);
    super::overriding::spell_out(&mut tokens);
    super::identity::spell_out(&mut tokens);
    super::row_tests::spell_out(&mut tokens);
    symmetric::spell_out(&mut tokens);
    Ok(tokens)
}

/// Checks that a number or a parameter is not directly followed by a word: `123abc` is neither a
/// number nor a name.
///
/// Errors: 42601.
fn junk_behind_numbers(sql: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let mut place = Place::start(sql);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let what = match &token.token {
            Token::Number(digits, _) if digits.contains('_') => "numeric literal",
            Token::Number(..) if next.is_some_and(|next| is_plain_word(&next.token)) => "numeric literal",
            Token::Placeholder(name)
                if name.strip_prefix('$').is_some_and(|digits| {
                    digits.starts_with(|c: char| c.is_ascii_digit())
                        && !digits.bytes().all(|byte| byte.is_ascii_digit())
                }) =>
            {
                "parameter"
            }
            // `0x10`, as opposed to `x'10'`.
            Token::HexStringLiteral(_) => {
                let start = place.go(token.span.start);
                match sql.get(start..).is_some_and(|rest| rest.starts_with('0')) {
                    true => "numeric literal",
                    false => continue,
                }
            }
            _ => continue,
        };
        let is_number = matches!(&token.token, Token::Number(digits, _) if !digits.contains('_'));
        if !is_number || next.is_some_and(|next| token.span.end == next.span.start) {
            let start = place.go(token.span.start);
            let near: String = sql
                .get(start..)
                .unwrap_or_default()
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.'))
                .collect();
            let what = format!("trailing junk after {what} at or near \"{near}\"");
            return Err(Error::new(SYNTAX_ERROR, what).at(offset_in_chars(sql, token.span.start)));
        }
    }
    Ok(())
}

fn is_plain_word(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none())
}

/// Returns the nonempty parts between semicolons.
fn pieces<'s, 't>(
    sql: &'s str,
    tokens: &'t [TokenWithSpan],
) -> impl Iterator<Item = (&'s str, &'t [TokenWithSpan])> {
    let mut place = Place::start(sql);
    tokens.split(|token| token.token == Token::SemiColon).filter_map(move |piece| {
        let (first, last) = (piece.iter().find(is_solid)?, piece.iter().rev().find(is_solid)?);
        let (start, end) = (place.go(first.span.start), place.go(last.span.end));
        Some((sql.get(start..end).unwrap_or(sql), piece))
    })
}

/// Whether a token is not a blank or comment.
fn is_solid(token: &&TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

/// A position in a text that moves forward with its tokens, so that many positions are found in one
/// pass.
struct Place<'s> {
    rest: std::str::Chars<'s>,
    at: Location,
    bytes: usize,
}

impl<'s> Place<'s> {
    fn start(sql: &'s str) -> Self {
        Place::of(sql, Location { line: 1, column: 1 })
    }

    /// Returns the start of a text that begins at this location of a longer one.
    fn of(text: &'s str, at: Location) -> Self {
        Place { rest: text.chars(), at, bytes: text.len() }
    }

    /// Moves to a location that is not before the last one, and returns the number of bytes before
    /// it.
    fn go(&mut self, to: Location) -> usize {
        while (self.at.line, self.at.column) < (to.line, to.column) {
            match self.rest.next() {
                Some('\n') => self.at = Location { line: self.at.line + 1, column: 1 },
                Some(_) => self.at.column += 1,
                None => break,
            }
        }
        self.bytes - self.rest.as_str().len()
    }
}

/// Returns the number of bytes before a location.
fn offset(sql: &str, at: Location) -> usize {
    Place::start(sql).go(at)
}

fn offset_in_chars(sql: &str, at: Location) -> usize {
    sql.get(..offset(sql, at)).map_or(0, |before| before.chars().count()) + 1
}

fn parse_one<'a>(sql: &str, text: &'a str, tokens: &[TokenWithSpan]) -> Result<Parsed<'a>> {
    let depth = limits::depth(tokens)?;
    if let Some(statement) = without_tree(tokens) {
        return Ok(Parsed { text, statement: Tree::new(statement, depth), depth });
    }
    let plain = deep(depth, || {
        let dialect = Dialect::of(tokens.len());
        let parser = Parser::new(&dialect).with_recursion_limit(RECURSION);
        let mut parser = parser.with_tokens_with_locations(tokens.to_vec());
        let plain = match cursors::parse(&mut parser, |parser| query_text(parser, text, tokens))? {
            Some(plain) => plain,
            None => Plain::Tree(tree(&mut parser, tokens)?),
        };
        match parser.peek_token().token {
            Token::EOF => Ok(plain),
            _ => parser.expected("end of statement", parser.peek_token()),
        }
    });
    let plain = plain.map_err(|error| syntax_error(sql, tokens, &error))?;
    // From here on, the tree is dropped with enough stack even after an error.
    let tree = Tree::new(plain, depth);
    let levels = match &*tree {
        Plain::Tree(statement) => deep(depth, || limits::levels(statement))?,
        _ => 0,
    };
    Ok(Parsed { text, statement: tree, depth: levels })
}

/// Parses a statement for which the parser has a tree.
fn tree(parser: &mut Parser<'_>, tokens: &[TokenWithSpan]) -> Result<Statement, ParserError> {
    let mut statement = parser.parse_statement()?;
    let binds = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => matches!(word.keyword, Keyword::DISTINCT | Keyword::EXISTS),
        token => *token == Token::Caret,
    };
    if tokens.iter().any(binds) {
        precedence::correct(&mut statement);
    }
    if symmetric::is_in(tokens) {
        symmetric::correct(&mut statement).map_err(|()| ParserError::RecursionLimitExceeded)?;
    }
    if balance::is_in(tokens) {
        balance::balance(&mut statement);
    }
    Ok(statement)
}

/// Returns the text of the query at the end of a statement. Its tree is only parsed to check that
/// it is a query, because it is planned from the text.
fn query_text(parser: &mut Parser<'_>, text: &str, tokens: &[TokenWithSpan]) -> Result<String, ParserError> {
    let first = parser.peek_token();
    let start = tokens.iter().find(is_solid).map_or(first.span.start, |token| token.span.start);
    match parser.parse_statement()? {
        Statement::Query(_) => {
            // Counted from the start of the statement, because many others may precede it.
            let before = Place::of(text, start).go(first.span.start);
            Ok(text.get(before..).unwrap_or_default().to_owned())
        }
        _ => parser.expected("a query", first),
    }
}

fn syntax_error(sql: &str, tokens: &[TokenWithSpan], error: &ParserError) -> Error {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return limits::too_deep();
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    // The parser gives the location in words: "... found: x at Line: 1, Column: 10".
    let place = message.rsplit_once(" at Line: ").and_then(|(what, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((what, Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? }))
    });
    let Some((what, location)) = place else {
        let end = tokens.iter().rev().find(is_solid);
        let error = Error::new(SYNTAX_ERROR, format!("syntax error: {message}"));
        return match end {
            Some(token) if message.contains("found: EOF") => error.at(offset_in_chars(sql, token.span.end)),
            _ => error,
        };
    };
    let at = tokens.iter().find(|token| token.span.start == location);
    let near = at.map_or_else(|| "end of input".to_owned(), |token| format!("or near \"{}\"", token.token));
    Error::new(SYNTAX_ERROR, format!("syntax error at {near}"))
        .with_detail(what.to_owned())
        .at(offset_in_chars(sql, location))
}

/// Parses statements that the parser does not support in PostgreSQL's form. They consist of words
/// and names only.
fn without_tree(tokens: &[TokenWithSpan]) -> Option<Plain> {
    let mut words = tokens
        .iter()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF));
    let Some(Token::Word(first)) = words.next() else { return None };
    let rest: Vec<&Token> = words.collect();
    match first.keyword {
        Keyword::VACUUM => {
            let analyze = rest
                .iter()
                .any(|token| matches!(token, Token::Word(word) if word.keyword == Keyword::ANALYZE));
            Some(Plain::Vacuum { analyze, tables: tables(&rest)? })
        }
        Keyword::ANALYZE => Some(Plain::Analyze { tables: tables(&rest)? }),
        Keyword::ALTER => alter_sequence(tokens),
        _ if first.value.eq_ignore_ascii_case("checkpoint") && rest.is_empty() => Some(Plain::Checkpoint),
        _ => None,
    }
}

/// Parses ALTER SEQUENCE with RESTART and OWNED BY; `None` for other statements.
fn alter_sequence(tokens: &[TokenWithSpan]) -> Option<Plain> {
    let mut parser = Parser::new(&DIALECT).with_tokens_with_locations(tokens.to_vec());
    if !parser.parse_keywords(&[Keyword::ALTER, Keyword::SEQUENCE]) {
        return None;
    }
    let name = parser.parse_object_name(false).ok()?;
    let (mut restart, mut owner) = (None, None);
    while parser.peek_token().token != Token::EOF {
        if parser.parse_keyword(Keyword::RESTART) {
            let _ = parser.parse_keyword(Keyword::WITH);
            let minus = parser.consume_token(&Token::Minus);
            restart = Some(match parser.peek_token().token {
                Token::Number(digits, _) => {
                    parser.next_token();
                    let sign = if minus { "-" } else { "" };
                    Some(format!("{sign}{digits}").parse().ok()?)
                }
                _ if minus => return None,
                _ => None,
            });
        } else if parser.parse_keywords(&[Keyword::OWNED, Keyword::BY]) {
            owner = Some(match parser.parse_keyword(Keyword::NONE) {
                true => None,
                false => Some(parser.parse_object_name(false).ok()?),
            });
        } else {
            return None;
        }
    }
    (restart.is_some() || owner.is_some()).then_some(Plain::AlterSequence { name, restart, owner })
}

/// Parses the tables after the options, with or without brackets. Column lists after a table are
/// ignored: all columns are meant.
fn tables(tokens: &[&Token]) -> Option<Vec<ObjectName>> {
    let mut tokens = tokens.iter().peekable();
    let mut names: Vec<ObjectName> = Vec::new();
    let skip_brackets = |tokens: &mut std::iter::Peekable<std::slice::Iter<'_, &Token>>| {
        if tokens.next_if(|token| ***token == Token::LParen).is_some() {
            tokens.by_ref().find(|token| ***token == Token::RParen);
        }
    };
    skip_brackets(&mut tokens);
    let option = |token: &&&Token| match **token {
        Token::Word(word) => {
            word.quote_style.is_none()
                && ["full", "freeze", "verbose", "analyze"]
                    .iter()
                    .any(|option| word.value.eq_ignore_ascii_case(option))
        }
        _ => false,
    };
    while tokens.next_if(option).is_some() {}
    while let Some(token) = tokens.next() {
        let mut parts = Vec::new();
        let mut token = token;
        loop {
            let Token::Word(word) = token else { return None };
            parts.push(Ident {
                value: word.value.clone(),
                quote_style: word.quote_style,
                span: sqlparser::tokenizer::Span::empty(),
            });
            if tokens.next_if(|token| ***token == Token::Period).is_none() {
                break;
            }
            token = tokens.next()?;
        }
        names.push(ObjectName::from(parts));
        skip_brackets(&mut tokens);
        match tokens.next() {
            None => break,
            Some(token) if **token == Token::Comma => {}
            Some(_) => return None,
        }
    }
    Some(names)
}
