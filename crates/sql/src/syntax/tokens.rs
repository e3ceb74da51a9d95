//! Looking at tokens, before the parser does.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// What stands for tokens that the parser is not to see.
pub(super) const BLANK: Token = Token::Whitespace(Whitespace::Space);

/// The places of those that are no blanks or comments.
pub(super) fn solid(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let is_solid = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    tokens.iter().enumerate().filter(|(_, token)| is_solid(token)).map(|(at, _)| at).collect()
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

    /// Goes past a name with its qualifiers if one comes next, and gives it as it is written.
    pub fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            let Token::Word(word) = &self.peek()?.token else { return None };
            name.push_str(&word.to_string());
            self.at += 1;
            if !self.token(&Token::Period) {
                return Some(name);
            }
            name.push('.');
        }
    }
}
