//! Upper and lower case, one character for one character, as PostgreSQL has it under the locale
//! `C.UTF-8`: `ß` stays `ß` in capitals, where the full mapping of Unicode makes it `SS`, and a
//! sigma at the end of a word is like any other.

pub(super) fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(upper_letter).collect() }
}

pub(super) fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(lower_letter).collect() }
}

/// The first letter of each word in upper case, all others in lower case. Words are of letters and
/// digits.
pub(super) fn capitals(text: &str) -> String {
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
        // More than one letter.
        _ => c,
    }
}

fn lower_letter(c: char) -> char {
    // Of `İ`, the only one with two, the first is the letter and the second its dot.
    c.to_lowercase().next().unwrap_or(c)
}
