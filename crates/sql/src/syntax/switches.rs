//! Rewrites options of COPY for which PostgreSQL's notation differs from the parser's.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::tokens::replace;

/// Stands for `HEADER match` in the parser's encoding option, because the parser does not know that
/// option.
pub(crate) const HEADER_MATCH: &str = "\0header match";

/// Rewrites options that the parser does not support. Other statements stay as they are.
///
/// | PostgreSQL                | here                                                     |
/// |---------------------------|----------------------------------------------------------|
/// | `FREEZE on`, `HEADER off` | `FREEZE TRUE`, `HEADER FALSE`                            |
/// | `HEADER match`            | a reserved encoding, which the options of COPY recognize |
/// | `FORCE_QUOTE *`           | `FORCE_QUOTE ("*")`                                      |
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let (mut is_copy, mut is_first) = (false, true);
    // The previous word, and its position.
    let mut before: Option<(usize, String)> = None;
    let mut at = 0;
    while let Some(token) = tokens.get_mut(at) {
        let place = at;
        at += 1;
        let said = |word: &str| before.as_ref().is_some_and(|(_, before)| before == word);
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => (is_first, is_copy) = (true, false),
            Token::Word(word) if word.quote_style.is_none() => {
                let value = word.value.to_ascii_lowercase();
                if std::mem::take(&mut is_first) {
                    is_copy = value == "copy";
                }
                if is_copy && (said("freeze") || said("header")) {
                    match value.as_str() {
                        "on" => token.token = Token::make_keyword("TRUE"),
                        "off" => token.token = Token::make_keyword("FALSE"),
                        "match" if said("header") => {
                            token.token = Token::SingleQuotedString(HEADER_MATCH.to_owned());
                            let header = before.as_ref().and_then(|(at, _)| tokens.get_mut(*at));
                            if let Some(header) = header {
                                header.token = Token::make_keyword("ENCODING");
                            }
                        }
                        _ => {}
                    }
                }
                before = Some((place, value));
                continue;
            }
            Token::Mul if is_copy && said("force_quote") => {
                let all = Word { value: "*".to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
                let list = [Token::LParen, Token::Word(all), Token::RParen];
                replace(tokens, place..=place, list);
                at = place + 3;
            }
            _ => is_first = false,
        }
        before = None;
    }
}
