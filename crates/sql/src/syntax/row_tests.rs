//! `r.* IS NULL` in a select list, where the parser takes `r.*` for all columns of `r` and then
//! rejects IS. In brackets, `r.*` is an expression everywhere.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{is_word, replace, solid};

/// Puts `r.*` in brackets if IS follows.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let solid = solid(tokens);
    let token_at = |at: usize| solid.get(at).and_then(|at| tokens.get(*at)).map(|token| &token.token);
    let mut rows = Vec::new();
    for (at, place) in solid.iter().enumerate() {
        let is_test = is_word(tokens.get(*place), "is");
        if !is_test || at < 3 || token_at(at - 1) != Some(&Token::Mul) {
            continue;
        }
        // `schema.r.*`, backward.
        let mut first = at - 1;
        while first >= 2
            && token_at(first - 1) == Some(&Token::Period)
            && matches!(token_at(first - 2), Some(Token::Word(_)))
        {
            first -= 2;
        }
        if first < at - 1
            && let (Some(first), Some(last)) = (solid.get(first), solid.get(at - 1))
        {
            rows.push((*first, *last));
        }
    }
    // From the end, because inserting tokens shifts those after them.
    for (first, last) in rows.into_iter().rev() {
        let Some(star) = tokens.get(last).map(|token| token.token.clone()) else { continue };
        replace(tokens, last..=last, [star, Token::RParen]);
        let Some(name) = tokens.get(first).map(|token| token.token.clone()) else { continue };
        replace(tokens, first..=first, [Token::LParen, name]);
    }
}
