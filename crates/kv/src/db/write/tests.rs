//! What the log refuses.
#![allow(clippy::unwrap_used)]

use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{ErrorKind, MemFs};

use crate::{Background, Db};

/// Goal: a record that the log refuses is the error of its write and of no other. Method: ask for one that is too long, then write.
#[test]
fn a_refused_record_poisons_nothing() {
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Inline).seed(1);
    let db = builder.open().unwrap();
    let inner = &db.core.inner;
    let refused = inner.reserve(&mut lock(&inner.commit), cairn_wal::MAX_RECORD_BYTES + 1);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}
