//! Upper and lower case, mapped character by character, as in PostgreSQL under the locale
//! `C.UTF-8`. `ß` stays `ß` in upper case, where Unicode's full mapping has `SS`, and there is no
//! special rule for a sigma at the end of a word.

pub(super) fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(upper_letter).collect() }
}

pub(super) fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(lower_letter).collect() }
}

/// Converts the first letter of each word to upper case, all others to lower case. Words consist of
/// letters and digits.
pub(super) fn initcap(text: &str) -> String {
    let mut within = false;
    let change = |c: char| {
        let is_first = !std::mem::replace(&mut within, c.is_alphanumeric());
        if is_first { upper_letter(c) } else { lower_letter(c) }
    };
    text.chars().map(change).collect()
}

fn upper_letter(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        // Characters with more than one upper-case letter stay as they are.
        _ => c,
    }
}

fn lower_letter(c: char) -> char {
    // Only `İ` maps to two characters: the letter and a combining dot, which is dropped.
    c.to_lowercase().next().unwrap_or(c)
}
