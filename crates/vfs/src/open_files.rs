//! How many files the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most files that this process may have open by now (`RLIMIT_NOFILE`, the soft limit); `None`
/// without a limit.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Raises that limit as far as the system lets it without asking anybody (to the hard limit), and
/// says what it is then.
///
/// For programs: the soft limit is low by tradition, for the sake of `select`. A library leaves it
/// to them.
pub fn raise_open_files_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where it is refused, the limit is what it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    open_files_limit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the limit is never lower than before, and no higher than what may be had.
    #[test]
    fn it_only_rises() {
        let before = getrlimit(Resource::Nofile);
        let after = raise_open_files_limit();
        assert_eq!(after, open_files_limit());
        assert!(after.unwrap_or(u64::MAX) >= before.current.unwrap_or(u64::MAX));
        assert_eq!(getrlimit(Resource::Nofile).maximum, before.maximum);
    }
}
