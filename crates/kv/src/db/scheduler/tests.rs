//! Threads without work.
#![allow(clippy::unwrap_used)]

use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{ErrorKind, Fs, MemFs};

use crate::{Background, Db, Error};

/// Goal: the threads of a failed store sleep, however often they meet the failure. A regression
/// test: they once looked for work, found that the log had failed, and woke one another for that,
/// endlessly. Method: poison an idle store repeatedly, as a thread without work does; only the
/// first failure wakes anyone.
#[test]
fn a_failure_wakes_once() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = Db::builder("/store").fs(fs).background(Background::Inline).seed(1).open().unwrap();
    let inner = &db.core.inner;
    let woken = || lock(&inner.background.state).generation;
    let before = woken();
    inner.poison(Error::invalid("a failure"));
    assert_eq!(woken(), before + 1, "those who wait for work are told");
    for _ in 0..3 {
        let again = inner.poison(inner.refuse_write());
        assert_eq!(again.kind(), ErrorKind::Poisoned);
        assert_eq!(woken(), before + 1);
    }
}
