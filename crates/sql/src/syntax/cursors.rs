//! Parses PostgreSQL's DECLARE, FETCH, MOVE and CLOSE. The SQL parser supports fewer of their
//! words, and expects some in another order.

use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::{Plain, ident};

/// The properties of a cursor in DECLARE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    pub name: String,
    pub is_binary: bool,
    /// SCROLL.
    pub scrolls: bool,
    /// WITH HOLD.
    pub is_held: bool,
    /// Two options that contradict each other.
    pub contradiction: Option<&'static str>,
}

/// The direction of FETCH and MOVE. Numbers may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// This many rows forward.
    Forward(i64),
    /// This many rows backward.
    Backward(i64),
    /// All remaining rows.
    ForwardAll,
    /// All rows before the current one, the last one first.
    BackwardAll,
    /// The row with this number, counted from 1; -1 is the last row.
    Absolute(i64),
    /// Only the row that is this many rows ahead.
    Relative(i64),
}

/// FETCH, or MOVE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub name: String,
    pub direction: Direction,
    /// Whether it is a MOVE, which returns no rows.
    pub is_move: bool,
}

/// Words that may stand before a cursor's name and are not names themselves.
const FROM: [Keyword; 2] = [Keyword::FROM, Keyword::IN];

/// Parses a statement about cursors; `None` for others. `query` parses the query after DECLARE and
/// returns its text.
pub(super) fn parse(
    parser: &mut Parser<'_>,
    query: impl FnOnce(&mut Parser<'_>) -> Result<String, ParserError>,
) -> Result<Option<Plain>, ParserError> {
    if parser.parse_keyword(Keyword::DECLARE) {
        let declared = declared(parser)?;
        return Ok(Some(Plain::Declare { declared, query: query(parser)? }));
    }
    if parser.parse_keyword(Keyword::CLOSE) {
        let name = if parser.parse_keyword(Keyword::ALL) { None } else { Some(name(parser)?) };
        return Ok(Some(Plain::Close { name }));
    }
    let is_move = is_word(parser, "move");
    if is_move {
        parser.next_token();
    } else if !parser.parse_keyword(Keyword::FETCH) {
        return Ok(None);
    }
    let direction = direction(parser)?;
    let _ = parser.parse_one_of_keywords(&FROM);
    Ok(Some(Plain::Fetch(Fetch { name: name(parser)?, direction, is_move })))
}

fn name(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    parser.parse_identifier().map(|name| ident(&name))
}

fn is_word(parser: &Parser<'_>, word: &str) -> bool {
    matches!(parser.peek_token().token, Token::Word(next) if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word))
}

/// Parses the part between DECLARE and the query.
fn declared(parser: &mut Parser<'_>) -> Result<Declared, ParserError> {
    let mut declared = Declared { name: name(parser)?, ..Declared::default() };
    // In any order, as in PostgreSQL.
    const WORDS: [Keyword; 6] = [
        Keyword::BINARY,
        Keyword::INSENSITIVE,
        Keyword::ASENSITIVE,
        Keyword::SCROLL,
        Keyword::NO,
        Keyword::CURSOR,
    ];
    let (mut stays, mut is_insensitive, mut is_asensitive) = (false, false, false);
    loop {
        match parser.parse_one_of_keywords(&WORDS) {
            Some(Keyword::BINARY) => declared.is_binary = true,
            // All cursors are insensitive, so neither word has an effect.
            Some(Keyword::INSENSITIVE) => is_insensitive = true,
            Some(Keyword::ASENSITIVE) => is_asensitive = true,
            Some(Keyword::SCROLL) => declared.scrolls = true,
            Some(Keyword::NO) => {
                parser.expect_keyword(Keyword::SCROLL)?;
                stays = true;
            }
            Some(_) => break,
            None => return parser.expected("CURSOR", parser.peek_token()),
        }
    }
    if stays && declared.scrolls {
        declared.contradiction = Some("SCROLL and NO SCROLL");
    } else if is_insensitive && is_asensitive {
        declared.contradiction = Some("INSENSITIVE and ASENSITIVE");
    }
    if parser.parse_keyword(Keyword::WITH) {
        parser.expect_keyword(Keyword::HOLD)?;
        declared.is_held = true;
    } else if parser.parse_keyword(Keyword::WITHOUT) {
        parser.expect_keyword(Keyword::HOLD)?;
    }
    parser.expect_keyword(Keyword::FOR)?;
    Ok(declared)
}

/// Parses the direction. A word that is the cursor's name, as in `FETCH next`, is not a direction.
fn direction(parser: &mut Parser<'_>) -> Result<Direction, ParserError> {
    const WORDS: [Keyword; 9] = [
        Keyword::ALL,
        Keyword::NEXT,
        Keyword::PRIOR,
        Keyword::FIRST,
        Keyword::LAST,
        Keyword::ABSOLUTE,
        Keyword::RELATIVE,
        Keyword::FORWARD,
        Keyword::BACKWARD,
    ];
    if let Some(count) = count(parser)? {
        return Ok(Direction::Forward(count));
    }
    let is_name = matches!(parser.peek_nth_token(1).token, Token::EOF | Token::SemiColon);
    let word = if is_name { None } else { parser.parse_one_of_keywords(&WORDS) };
    let missing = |parser: &Parser<'_>| parser.expected("a number of rows", parser.peek_token());
    Ok(match word {
        None | Some(Keyword::NEXT) => Direction::Forward(1),
        Some(Keyword::ALL) => Direction::ForwardAll,
        Some(Keyword::PRIOR) => Direction::Backward(1),
        Some(Keyword::FIRST) => Direction::Absolute(1),
        Some(Keyword::LAST) => Direction::Absolute(-1),
        Some(Keyword::ABSOLUTE) => match count(parser)? {
            Some(count) => Direction::Absolute(count),
            None => return missing(parser),
        },
        Some(Keyword::RELATIVE) => match count(parser)? {
            Some(count) => Direction::Relative(count),
            None => return missing(parser),
        },
        Some(word) => {
            let is_backward = word == Keyword::BACKWARD;
            if parser.parse_keyword(Keyword::ALL) {
                if is_backward { Direction::BackwardAll } else { Direction::ForwardAll }
            } else {
                let count = count(parser)?.unwrap_or(1);
                if is_backward { Direction::Backward(count) } else { Direction::Forward(count) }
            }
        }
    })
}

/// Parses a number with an optional sign, if there is one.
fn count(parser: &mut Parser<'_>) -> Result<Option<i64>, ParserError> {
    let is_negative = parser.consume_token(&Token::Minus);
    let has_sign = is_negative || parser.consume_token(&Token::Plus);
    let next = parser.peek_token();
    match &next.token {
        Token::Number(digits, _) => {
            let sign = if is_negative { "-" } else { "" };
            // PostgreSQL accepts 32 bits here.
            match format!("{sign}{digits}").parse::<i32>() {
                Ok(count) => {
                    parser.next_token();
                    Ok(Some(count.into()))
                }
                Err(_) => parser.expected("a number of rows", next),
            }
        }
        _ if has_sign => parser.expected("a number of rows", next),
        _ => Ok(None),
    }
}
