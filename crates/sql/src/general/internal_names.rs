//! Names that differ from those that the client sees, because DataFusion requires distinct names.

/// Separates a name from the number that makes it unique. No name contains it.
pub(crate) const MARK: char = '\u{1}';

/// Returns the name of a result as the client sees it.
pub(crate) fn shown(name: &str) -> &str {
    match name.rsplit_once(MARK) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}
