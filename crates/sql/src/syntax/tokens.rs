//! Looking at tokens, before the parser does.

use std::ops::RangeInclusive;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::words::quote_ident;

/// What stands for tokens that the parser is not to see.
pub(super) const BLANK: Token = Token::Whitespace(Whitespace::Space);

/// The places of those that are no blanks or comments.
pub(super) fn solid(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let is_solid = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    tokens.iter().enumerate().filter(|(_, token)| is_solid(token)).map(|(at, _)| at).collect()
}

/// Puts other tokens in the place of some. They are where those were; the last one ends where the
/// last of those did, because the text of a statement ends with its last token.
pub(super) fn replace(
    tokens: &mut Vec<TokenWithSpan>,
    places: RangeInclusive<usize>,
    instead: impl IntoIterator<Item = Token>,
) {
    let (Some(first), Some(last)) = (tokens.get(*places.start()), tokens.get(*places.end())) else { return };
    let (span, end) = (first.span, last.span.end);
    let mut instead: Vec<_> = instead.into_iter().map(|token| TokenWithSpan { token, span }).collect();
    if let Some(last) = instead.last_mut() {
        last.span.end = end;
    }
    tokens.splice(places, instead);
}

/// Whether a token is this word, without quotes.
pub(super) fn is_word(token: Option<&TokenWithSpan>, expected: &str) -> bool {
    token.is_some_and(|token| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected),
        _ => false,
    })
}

/// The tokens of a text that are no blanks or comments, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    tokens: &'t [TokenWithSpan],
    solid: &'t [usize],
    /// How many of them are behind.
    pub at: usize,
}

impl<'t> Cursor<'t> {
    /// Begins at the n-th.
    pub fn new(tokens: &'t [TokenWithSpan], solid: &'t [usize], at: usize) -> Self {
        Cursor { tokens, solid, at }
    }

    /// The next one; `None` at the end.
    pub fn peek(&self) -> Option<&'t TokenWithSpan> {
        self.tokens.get(*self.solid.get(self.at)?)
    }

    /// Goes past words if they come next, all of them.
    pub fn words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        for word in words {
            if !is_word(self.peek(), word) {
                self.at = start;
                return false;
            }
            self.at += 1;
        }
        true
    }

    /// Goes past this token if it comes next.
    pub fn token(&mut self, token: &Token) -> bool {
        let is_next = self.peek().is_some_and(|next| next.token == *token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Goes past a name with its qualifiers if one comes next, and gives it as it may be written.
    pub fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            let Token::Word(word) = &self.peek()?.token else { return None };
            match word.quote_style {
                Some(_) => name.push_str(&quote_ident(&word.value)),
                None => name.push_str(&word.value),
            }
            self.at += 1;
            if !self.token(&Token::Period) {
                return Some(name);
            }
            name.push('.');
        }
    }
}
