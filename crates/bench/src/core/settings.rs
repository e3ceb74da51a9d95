//! Settings by name, as results record them.

use std::collections::BTreeMap;

/// Settings by name, for the report: every setting that is not the engine's default.
pub type Settings = BTreeMap<String, String>;

/// Builds [`Settings`] from pairs.
pub fn settings<const N: usize>(pairs: [(&str, &str); N]) -> Settings {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}
