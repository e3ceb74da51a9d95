//! Converts text to HTML. This is the only place where characters from a run meet markup.

/// Escapes `text` for an element's content or a quoted attribute.
///
/// Besides the five characters of markup, replaces characters that can make a page misrepresent its
/// text: control characters and the bidirectional overrides that display a name backwards.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            other if other.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// Escapes JSON for a `<script type="application/json">` element. The JSON keeps its value, but
/// nothing in it can end the element, open a comment or break a parser that treats the two line
/// separators as newlines.
pub(super) fn embed_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}

/// Formats a count with its noun: `1 case`, `2 cases`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Joins names as prose: `a`, `a and b`, `a, b and c`.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no character keeps a meaning in markup. Method: all of these characters, and the ones
    /// that deceive the eye.
    #[test]
    fn markup_and_misleading_characters_are_escaped() {
        assert_eq!(escape("<a href=\"x\">'&'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
        assert_eq!(escape("a\u{202e}b\0c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(escape("naïve 数"), "naïve 数");
    }

    /// Goal: embedded JSON cannot leave its element and still parses to the same value. Method:
    /// parse it back.
    #[test]
    fn embedded_json_is_the_same_json() {
        let value = serde_json::json!({"name": "</script><!-- \u{2028} &amp; <b>"});
        let embedded = embed_json(&value.to_string());
        assert!(!embedded.contains('<') && !embedded.contains('>') && !embedded.contains('\u{2028}'));
        let back: serde_json::Value = serde_json::from_str(&embedded).unwrap();
        assert_eq!(back, value);
    }

    /// Goal: names are joined as prose. Method: every length class.
    #[test]
    fn names_are_joined_as_prose() {
        let names = |n: usize| ["a", "b", "c"].iter().take(n).map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(list(&names(0)), "");
        assert_eq!(list(&names(1)), "a");
        assert_eq!(list(&names(2)), "a and b");
        assert_eq!(list(&names(3)), "a, b and c");
        assert_eq!(plural(1, "case"), "1 case");
        assert_eq!(plural(0, "case"), "0 cases");
    }
}
