//! Strengths of row locks, of which the parser supports two.

use sqlparser::tokenizer::TokenWithSpan;

use super::tokens::{BLANK, is_word, solid};

/// Rewrites the other strengths to those that the parser supports: `FOR NO KEY UPDATE` becomes `FOR
/// UPDATE`, `FOR KEY SHARE` becomes `FOR SHARE`.
///
/// Rows are locked as for an update in any case. A weaker lock may therefore wait where
/// PostgreSQL's would not, but the results are the same.
pub(super) fn spell_out(tokens: &mut [TokenWithSpan]) {
    let words = solid(tokens);
    for first in 0..words.len() {
        for (phrase, dropped) in
            [(&["for", "no", "key", "update"][..], 1..3), (&["for", "key", "share"], 1..2)]
        {
            let is_phrase = words.get(first..first + phrase.len()).is_some_and(|places| {
                places.iter().zip(phrase).all(|(at, word)| is_word(tokens.get(*at), word))
            });
            for place in words.get(first..).unwrap_or_default().get(dropped).unwrap_or_default() {
                if let Some(token) = tokens.get_mut(*place).filter(|_| is_phrase) {
                    token.token = BLANK;
                }
            }
        }
    }
}
