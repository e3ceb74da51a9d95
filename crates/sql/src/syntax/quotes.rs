//! Literals that continue on the next line.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Joins literals that are separated by nothing but a line break: `'a'` and `'b'` on the next line
/// are `'ab'`.
pub(super) fn join(tokens: &mut Vec<TokenWithSpan>) {
    if !(0..tokens.len()).any(|at| continued(tokens, at).is_some()) {
        return;
    }
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut token = token.clone();
        while let Some(next) = continued(tokens, at) {
            if let (
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text),
                Some(TokenWithSpan { token: Token::SingleQuotedString(more), span }),
            ) = (&mut token.token, tokens.get(next))
            {
                text.push_str(more);
                token.span.end = span.end;
            }
            at = next;
        }
        joined.push(token);
        at += 1;
    }
    *tokens = joined;
}

/// Returns the position of the continuation of a literal.
fn continued(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let is_quoted =
        |token: &Token| matches!(token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_));
    tokens.get(at).filter(|token| is_quoted(&token.token))?;
    let next = at + 1 + next_line(tokens.get(at + 1..)?)?;
    matches!(tokens.get(next)?.token, Token::SingleQuotedString(_)).then_some(next)
}

/// Returns the number of leading blanks, if a line break is among them.
fn next_line(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut has_end = false;
    let mut count = 0;
    for token in tokens {
        match &token.token {
            Token::Whitespace(Whitespace::Newline) => has_end = true,
            // The comment ends with its line.
            Token::Whitespace(Whitespace::SingleLineComment { .. }) => has_end = true,
            Token::Whitespace(Whitespace::Space | Whitespace::Tab) => {}
            _ => break,
        }
        count += 1;
    }
    has_end.then_some(count)
}
