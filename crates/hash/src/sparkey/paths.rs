//! The names of the log and the index.

use std::path::{Path, PathBuf};

/// Returns the path of the log: `X.spl` for `X.spi`, `X.spl` and `X`.
pub fn log_path(path: impl AsRef<Path>) -> PathBuf {
    with_ending(path.as_ref(), "spl")
}

/// Returns the path of the index: `X.spi` for `X.spl`, `X.spi` and `X`.
pub fn index_path(path: impl AsRef<Path>) -> PathBuf {
    with_ending(path.as_ref(), "spi")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    match path.extension() {
        Some(found) if found == "spl" || found == "spi" => path.with_extension(ending),
        // Any other extension belongs to the name: "users.2026" has the log "users.2026.spl".
        _ => {
            let mut name = path.as_os_str().to_owned();
            name.push(".");
            name.push(ending);
            name.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the path of either file, or their common name, gives both paths.
    #[test]
    fn log_and_index_name_each_other() {
        for path in ["d/users.v2.spl", "d/users.v2.spi", "d/users.v2"] {
            assert_eq!(log_path(path), Path::new("d/users.v2.spl"));
            assert_eq!(index_path(path), Path::new("d/users.v2.spi"));
        }
    }
}
