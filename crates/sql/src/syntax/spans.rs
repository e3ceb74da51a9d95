//! `interval(2) 'text'`, whose precision the parser loses.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{is_word, replace, solid};

/// Rewrites such a literal to a cast: `CAST('text' AS interval(2))`.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(Some(token), "interval")) {
        return;
    }
    let solid = solid(tokens);
    // From the end, so that positions before a change stay valid.
    for places in solid.windows(5).rev() {
        let [word, open, digits, close, text] = places else { continue };
        let token = |at: &usize| tokens.get(*at).map(|token| token.token.clone());
        let (Some(Token::LParen), Some(Token::RParen)) = (token(open), token(close)) else { continue };
        let (Some(digits @ Token::Number(..)), Some(text_token @ Token::SingleQuotedString(_))) =
            (token(digits), token(text))
        else {
            continue;
        };
        if !is_word(tokens.get(*word), "interval") {
            continue;
        }
        let keyword = |word: Keyword| Token::make_keyword(&format!("{word:?}"));
        let cast = [
            keyword(Keyword::CAST),
            Token::LParen,
            text_token,
            keyword(Keyword::AS),
            keyword(Keyword::INTERVAL),
            Token::LParen,
            digits,
            Token::RParen,
            Token::RParen,
        ];
        let range = *word..=*text;
        replace(tokens, range, cast);
    }
}
