//! Helpers for inspecting and rewriting tokens before parsing.

use std::ops::RangeInclusive;

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::words::quote_ident;

/// Replaces tokens that the parser must not see.
pub(super) const BLANK: Token = Token::Whitespace(Whitespace::Space);

/// Returns the positions of the tokens that are not blanks or comments.
pub(super) fn solid(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let is_solid = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    tokens.iter().enumerate().filter(|(_, token)| is_solid(token)).map(|(at, _)| at).collect()
}

/// Replaces a range of tokens. The new ones take the location of the first old token. The last one
/// ends where the old range ended, because the text of a statement ends with its last token.
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

/// A cursor over the tokens that are not blanks or comments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    tokens: &'t [TokenWithSpan],
    solid: &'t [usize],
    /// The number of tokens passed.
    pub at: usize,
}

impl<'t> Cursor<'t> {
    /// Returns a cursor at the n-th of these tokens.
    pub fn new(tokens: &'t [TokenWithSpan], solid: &'t [usize], at: usize) -> Self {
        Cursor { tokens, solid, at }
    }

    /// The next token; `None` at the end.
    pub fn peek(&self) -> Option<&'t TokenWithSpan> {
        self.tokens.get(*self.solid.get(self.at)?)
    }

    /// Skips a sequence of words, if all of them come next.
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

    /// Skips this token, if it comes next.
    pub fn token(&mut self, token: &Token) -> bool {
        let is_next = self.peek().is_some_and(|next| next.token == *token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips a name with its qualifiers, if one comes next. Returns its text, with quotes where
    /// needed.
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
