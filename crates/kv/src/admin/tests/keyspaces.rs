use std::path::Path;

use cairn_vfs::fault::{FaultOptions, crash_sweep};
use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, MemFs};

use super::*;
use crate::batch::Operation;
use crate::{Durability, Transaction, WriteBatch};

/// Goal: a keyspace created at run time behaves like any other, across reopening, and a second one
/// of the same name is refused.
/// Method: create, write, flush half, reopen.
#[test]
fn made_at_run_time() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    {
        let db = open(&fs);
        let users = db.create_keyspace("users", small()).unwrap();
        fill(&users, 0..300, 1);
        users.flush().unwrap();
        fill(&users, 300..400, 1);
        for name in ["users", "", "default"] {
            assert_eq!(db.create_keyspace(name, small()).unwrap_err().kind(), ErrorKind::Invalid);
        }
        let mut batch = WriteBatch::new();
        batch.put("a", "default").unwrap();
        batch.add(users.id(), Operation::Put { key: b"zz", value: b"users" }).unwrap();
        db.write(&batch).unwrap();
        assert_eq!(db.keyspaces().len(), 2);
    }
    let db = open(&fs);
    let users = db.keyspace("users").unwrap();
    let mut all = expected(0..400, 1);
    all.push((b"zz".to_vec(), b"users".to_vec()));
    assert_eq!(pairs(&users), all);
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"default"[..]));
}

/// Goal: after a drop, handles return an error, cursors keep working, the files are deleted with
/// the last cursor, and a new keyspace of the same name is empty.
/// Method: drop under a cursor positioned in the middle; then look at the directory.
#[test]
fn dropped_under_a_reader() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let old = db.create_keyspace("users", small()).unwrap();
    fill(&old, 0..500, 1);
    old.compact_range(..).unwrap();
    fill(&old, 500..600, 1);
    let tables = files(&fs, STORE, ".table").len();
    assert!(tables > 1);
    let mut cursor = old.cursor().unwrap();
    cursor.seek_first().unwrap();
    let pessimistic = crate::TransactionOptions { pessimistic: true, ..Default::default() };
    let transaction: Transaction = db.transaction_with(pessimistic);
    db.drop_keyspace("users").unwrap();

    let is_gone = |error: crate::Error| assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    is_gone(old.put("a", "b").unwrap_err());
    is_gone(old.get("a").unwrap_err());
    is_gone(old.multi_get(&["a"]).unwrap_err());
    is_gone(old.cursor().unwrap_err());
    is_gone(old.iter().next().unwrap().unwrap_err());
    is_gone(old.flush().unwrap_err());
    is_gone(old.compact_range(..).unwrap_err());
    is_gone(transaction.get(&old, "a").unwrap_err());
    is_gone(db.drop_keyspace("users").unwrap_err());
    let mut batch = WriteBatch::new();
    batch.add(old.id(), Operation::Delete { key: b"a" }).unwrap();
    is_gone(db.write(&batch).unwrap_err());
    assert_eq!(db.drop_keyspace("default").unwrap_err().kind(), ErrorKind::Invalid);
    assert!(db.keyspace("users").is_none());

    let new = db.create_keyspace("users", small()).unwrap();
    assert!(new.id() > old.id() && pairs(&new).is_empty());
    let mut seen = 0;
    while cursor.valid() {
        assert_eq!(cursor.key(), key(seen));
        seen += 1;
        cursor.next().unwrap();
    }
    assert_eq!(seen, 600);
    assert_eq!(files(&fs, STORE, ".table").len(), tables);
    drop(cursor);
    assert_eq!(files(&fs, STORE, ".table").len(), 0);

    fill(&new, 0..5, 2);
    drop((db, old, new, transaction));
    // The log still contains records of the first one.
    let db = open(&fs);
    assert_eq!(pairs(&db.keyspace("users").unwrap()), expected(0..5, 2));
}

/// Goal: after a crash anywhere, a keyspace exists or not, with everything synced to it and nothing
/// from a dropped one of the same name.
/// Method: every crash image of create, write, drop, create again.
#[test]
fn crashes() {
    let marks = std::cell::RefCell::new(Vec::new());
    let images = crash_sweep(
        FaultOptions::seeded(3),
        2,
        |machine| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let db = open(&fs);
            let mark = |what| marks.borrow_mut().push((what, machine.operation_count()));
            mark("opened");
            let first = db.create_keyspace("k", small()).unwrap();
            mark("made");
            first.put_with("a", "first", Durability::Sync).unwrap();
            mark("written");
            first.flush().unwrap();
            first.put_with("b", "first", Durability::Sync).unwrap();
            db.drop_keyspace("k").unwrap();
            mark("dropped");
            let second = db.create_keyspace("k", small()).unwrap();
            second.put_with("c", "second", Durability::Sync).unwrap();
            mark("written again");
        },
        |point, image, after| {
            let fs: Arc<dyn Fs> = Arc::new(after);
            let passed =
                |what| marks.borrow().iter().any(|&(mark, at)| mark == what && at <= point.operation());
            if !passed("opened") && !fs.exists(Path::new("/store/CURRENT")).unwrap() {
                return;
            }
            let db = open(&fs);
            let found = db.keyspace("k").map(|keyspace| pairs(&keyspace));
            let first = (b"a".to_vec(), b"first".to_vec());
            let second = (b"c".to_vec(), b"second".to_vec());
            let context = format!("operation {}, {image:?}: {found:?}", point.operation());
            match &found {
                None => assert!(
                    !passed("made") || (point.operation() >= 1 && !passed("written again")),
                    "{context}"
                ),
                Some(found) if found.contains(&second) => assert_eq!(found.len(), 1, "{context}"),
                Some(found) => {
                    assert!(!passed("written again"), "{context}");
                    assert!(
                        !passed("written") || passed("dropped") || found.is_empty() || found[0] == first,
                        "{context}"
                    );
                    assert!(!passed("dropped") || found.is_empty(), "{context}");
                }
            }
        },
    );
    assert!(images > 100, "{images}");
}

/// Goal: creating and dropping keyspaces costs as much for the last as for the first.
/// Method: hundreds of keyspaces; count the walks over all keyspaces and measure the length of the
/// manifest's edits; a reopened store has all keyspaces, by handle and by name.
#[test]
fn many_keyspaces() {
    const COUNT: usize = 600;
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let open = || {
        let builder = Db::builder("/store").fs(Arc::clone(&fs)).background(crate::Background::Inline).seed(1);
        builder.open().unwrap()
    };
    let db = open();
    let walks = || db.core.inner.walks.load(cairn_vfs::sync::atomic::Ordering::Relaxed);
    let before = walks();
    for number in 0..COUNT {
        db.create_keyspace(&format!("keyspace {number}"), KeyspaceOptions::default()).unwrap();
    }
    for number in (0..COUNT).step_by(3) {
        db.drop_keyspace(&format!("keyspace {number}")).unwrap();
    }
    // Each drop may walk over all keyspaces once, to check whether writers wait for the dropped
    // one.
    assert!(walks() - before <= COUNT as u64 / 3, "{}", walks() - before);
    let check = |db: &Db| {
        assert_eq!(db.keyspaces().len(), 1 + COUNT * 2 / 3);
        for number in 0..COUNT {
            let name = format!("keyspace {number}");
            let found = db.keyspace(&name);
            assert_eq!(found.is_some(), number % 3 != 0);
            assert!(found.is_none_or(|found| found.name() == name));
        }
        assert!(db.create_keyspace("keyspace 1", KeyspaceOptions::default()).is_err());
    };
    check(&db);
    drop(db);
    let db = open();
    check(&db);
    // Keyspaces that are named at the opening and missing are all created in one edit.
    drop(db);
    let mut builder = Db::builder("/store").fs(Arc::clone(&fs)).background(crate::Background::Inline).seed(1);
    for number in 0..COUNT {
        builder = builder.keyspace(format!("keyspace {number}"), KeyspaceOptions::default());
    }
    let db = builder.open().unwrap();
    assert_eq!(db.keyspaces().len(), 1 + COUNT);
}
