//! Options of COPY that are switched on and off.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// PostgreSQL takes `FREEZE on` and `HEADER off`, the parser TRUE and FALSE only: the former become the latter. Other statements stay as they are.
pub(super) fn spell_out(tokens: &mut [TokenWithSpan]) {
    let mut is_copy = false;
    let mut is_first = true;
    let mut before = String::new();
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => (is_first, is_copy) = (true, false),
            Token::Word(word) if word.quote_style.is_none() => {
                let value = word.value.to_ascii_lowercase();
                if is_first {
                    is_copy = value == "copy";
                    is_first = false;
                }
                if is_copy && matches!(before.as_str(), "freeze" | "header") {
                    match value.as_str() {
                        "on" => token.token = Token::make_keyword("TRUE"),
                        "off" => token.token = Token::make_keyword("FALSE"),
                        _ => {}
                    }
                }
                before = value;
                continue;
            }
            _ => is_first = false,
        }
        before.clear();
    }
}
