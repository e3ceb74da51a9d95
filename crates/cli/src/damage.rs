//! Reports of commands that verify a whole store, in the same form for all kinds of stores.

use std::fmt;
use std::path::{Path, PathBuf};

use cairn_vfs::{ErrorKind, Operation};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::output::{Outcome, counted};

/// A damaged file.
#[derive(Debug)]
pub struct Finding {
    file: PathBuf,
    error: String,
}

impl Finding {
    /// Creates a finding from an error about a file of `store`.
    ///
    /// Errors: `error` itself, if it is not about damage.
    pub fn of(store: &Path, error: Error) -> Result<Finding> {
        let file = match &error {
            Error::Hash(error) if is_damage(error) => file_of(error).unwrap_or(store),
            #[cfg(feature = "sql")]
            Error::Sql(error) if error.kind() == ErrorKind::Corruption => {
                crate::sql::damaged_file(error).unwrap_or(store)
            }
            _ => return Err(error),
        };
        Ok(Finding { file: file.to_owned(), error: error.to_string() })
    }

    /// Creates a finding from any error about a file of `store`. For a file among others, which are
    /// checked regardless.
    pub fn about(store: &Path, error: &cairn_hash::Error) -> Finding {
        Finding { file: file_of(error).unwrap_or(store).to_owned(), error: error.to_string() }
    }

    /// Returns the finding as JSON, for scripts.
    pub fn json(&self) -> Value {
        json!({ "file": self.file.display().to_string(), "error": self.error })
    }
}

/// Returns true if contents are corrupt or a read failed.
fn is_damage(error: &cairn_hash::Error) -> bool {
    let is_read = |error: &cairn_vfs::Error| error.operation == Operation::Read;
    error.kind() == ErrorKind::Corruption || matches!(error, cairn_hash::Error::Vfs(error) if is_read(error))
}

/// Returns the file that an error is about, if any.
pub fn file_of(error: &cairn_hash::Error) -> Option<&Path> {
    match error {
        cairn_hash::Error::Vfs(error) => Some(&error.path),
        cairn_hash::Error::Corruption { file, .. }
        | cairn_hash::Error::Foreign { file, .. }
        | cairn_hash::Error::Unsupported { file, .. }
        | cairn_hash::Error::Missing { file, .. }
        | cairn_hash::Error::Mismatch { file, .. } => Some(file),
        _ => None,
    }
}

impl From<&cairn_kv::Damage> for Finding {
    fn from(damage: &cairn_kv::Damage) -> Self {
        Finding { file: damage.file.clone(), error: damage.error.to_string() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display().to_string();
        // Most errors already name the file.
        if self.error.contains(&file) {
            f.write_str(&self.error)
        } else {
            write!(f, "{file}: {}", self.error)
        }
    }
}

/// Returns the output of `verify --json`: the store, whether it is sound, the damage, then the
/// fields of this kind of store.
pub fn report(store: &Path, damage: &[Finding], of_kind: Value) -> Value {
    let mut report = Map::new();
    report.insert("store".to_owned(), store.display().to_string().into());
    report.insert("sound".to_owned(), damage.is_empty().into());
    report.insert("damage".to_owned(), damage.iter().map(Finding::json).collect());
    if let Value::Object(of_kind) = of_kind {
        report.extend(of_kind);
    }
    Value::Object(report)
}

/// Returns the outcome of the command. Errors: [`Error::Damaged`] if there are findings.
pub fn check_sound(store: &Path, damage: &[Finding]) -> Result<Outcome> {
    match damage.len() {
        0 => Ok(Outcome::Done),
        count => {
            let count = counted(count as u64, "finding", "findings");
            Err(Error::Damaged(format!("{} is damaged: {count}", store.display())))
        }
    }
}
