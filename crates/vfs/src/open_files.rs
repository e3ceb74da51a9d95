//! The limit on open files of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the current maximum of open files of this process (the soft `RLIMIT_NOFILE`); `None`
/// when there is no limit.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Raises the limit as far as the process may without privileges (to the hard limit), and returns
/// the new limit.
///
/// For programs only: the soft limit is traditionally low for the sake of `select`, and raising it
/// is not a library's decision.
pub fn raise_open_files_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // If the kernel refuses, the limit stays as it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    open_files_limit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the limit never falls, and the hard limit does not change.
    #[test]
    fn limit_never_falls() {
        let before = getrlimit(Resource::Nofile);
        let after = raise_open_files_limit();
        assert_eq!(after, open_files_limit());
        assert!(after.unwrap_or(u64::MAX) >= before.current.unwrap_or(u64::MAX));
        assert_eq!(getrlimit(Resource::Nofile).maximum, before.maximum);
    }
}
