//! Formats errors of SQL statements.

/// Formats the error of a statement as psql does: the line with a caret below the position, detail
/// and hint.
pub fn explained(text: &str, error: &cairn_sql::Error, place: Option<&str>) -> String {
    let mut message = place.map(|place| format!("{place}: ")).unwrap_or_default();
    message.push_str(&error.to_string());
    if let Some(position) = error.position() {
        let before: String = text.chars().take(position.saturating_sub(1)).collect();
        let (number, column) =
            (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or_default());
        let line = text.lines().nth(number - 1).unwrap_or_default();
        let head = format!("LINE {number}: ");
        let indent = head.len() + unicode_width::UnicodeWidthStr::width(column);
        message.push_str(&format!("\n{head}{line}\n{}^", " ".repeat(indent)));
    }
    for (name, more) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(more) = more {
            message.push_str(&format!("\n{name}: {more}"));
        }
    }
    message
}
