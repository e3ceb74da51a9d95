use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use cairn_table::row::{Type, Value};
use cairn_table::schema::ViewDef;
use cairn_table::{ColumnStatistics, Isolation, TableStatistics};
use cairn_vfs::{File, Fs, Metadata, OpenOptions, Operation};

use crate::{Fixture, all, def, index, key};

/// A function called before a file is opened, which may fail.
type Call = dyn Fn(&Path) -> cairn_vfs::Result<()> + Send + Sync;

/// A file system that makes a call before each file is opened.
struct Opening {
    fs: Arc<dyn Fs>,
    call: Box<Call>,
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opening")
    }
}

impl Fs for Opening {
    fn open(&self, path: &Path, options: OpenOptions) -> cairn_vfs::Result<Box<dyn File>> {
        (self.call)(path)?;
        self.fs.open(path, options)
    }
    fn metadata(&self, path: &Path) -> cairn_vfs::Result<Metadata> {
        self.fs.metadata(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> cairn_vfs::Result<()> {
        self.fs.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> cairn_vfs::Result<()> {
        self.fs.hard_link(from, to)
    }
    fn remove(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.fs.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.fs.remove_dir(path)
    }
    fn create_dir_all(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.fs.create_dir_all(path)
    }
    fn read_dir(&self, path: &Path) -> cairn_vfs::Result<Vec<PathBuf>> {
        self.fs.read_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.fs.sync_dir(path)
    }
}

/// Goal: a backup has the commits before it began, is a sound database of its own, keeps foreign
/// keys, views and statistics, and does not block others. Method: other transactions commit each
/// time a file of the copy is opened.
#[test]
fn backup() {
    let fixture = Fixture::new();
    let parent = fixture.pairs(&[(1, 10), (2, 20)]);
    fixture.run(|transaction| {
        let mut def = def("child", &[("id", Type::Int), ("parent", Type::Int)], &[]);
        def.foreign_keys.push(cairn_table::schema::ForeignKeyDef {
            name: "child_parent_fkey".to_owned(),
            columns: vec![1],
            table: parent.id(),
            references: vec![0],
            on_delete: Default::default(),
            on_update: Default::default(),
        });
        def.indexes = vec![index("child_parent", &[1], false)];
        let child = transaction.create_table(def).unwrap();
        transaction.insert(&child, &[Value::Int(5), Value::Int(2)]).unwrap();
        transaction.create_schema("other").unwrap();
        let query = "SELECT 1".to_owned();
        let (schema, name) = ("other".to_owned(), "v".to_owned());
        let columns = vec!["one".to_owned()];
        transaction.create_view(ViewDef { schema, name, columns, query }, false).unwrap();
        let column = ColumnStatistics { distinct: 2, ..ColumnStatistics::default() };
        let columns = vec![column, ColumnStatistics::default()];
        transaction.set_statistics(&parent, TableStatistics { rows: 2, columns }).unwrap();
    });
    let parent = fixture.table("t");
    let mut open = fixture.begin();
    open.insert(&parent, &[Value::Int(3), Value::Int(30)]).unwrap();
    let to = std::path::Path::new("/db/copy.db");
    let (db, table, next) = (fixture.db.clone(), Arc::clone(&parent), AtomicI32::new(100));
    let fs: Arc<dyn Fs> = Arc::new(Opening {
        fs: Arc::clone(&fixture.fs),
        call: Box::new(move |_| {
            let id = next.fetch_add(1, Ordering::SeqCst);
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            transaction.insert(&table, &[Value::Int(id), Value::Int(id)]).unwrap();
            assert!(crate::set(&mut transaction, &table, 1, id).unwrap());
            transaction.commit(cairn_table::Durability::Buffered).unwrap();
            Ok(())
        }),
    });
    fixture.db.backup(&fs, to).unwrap();
    let written = all(&fixture.begin(), &parent, None);
    assert!(written.len() > 5, "nobody wrote meanwhile: {written:?}");
    open.commit(cairn_table::Durability::Buffered).unwrap();
    assert!(fixture.db.backup(&fixture.fs, to).unwrap_err().to_string().contains("already exists"));
    let copy = cairn_table::Database::open(&fixture.fs, to, &crate::options()).unwrap();
    let report = copy.check().unwrap();
    assert_eq!((report.tables, report.rows, report.free_pages, report.lost_pages), (2, 3, 0, 0));
    let mut transaction = copy.begin(cairn_table::Isolation::ReadCommitted).unwrap();
    assert!(transaction.view().catalog().has_schema("other"));
    let view = transaction.view().catalog().view("other", "v").unwrap();
    assert_eq!((&*view.query, &view.columns[..]), ("SELECT 1", &["one".to_owned()][..]));
    let parent = transaction.view().catalog().table("public", "t").unwrap().clone();
    assert_eq!(parent.statistics().unwrap().columns[0].distinct, 2);
    assert_eq!(all(&transaction, &parent, None), ["1,10", "2,20"]);
    assert!(
        transaction.delete(&parent, &key(&parent, 2)).unwrap_err().to_string().contains("child_parent_fkey")
    );
}

/// Goal: a failed backup leaves nothing behind, not even a directory. Method: opening each file of
/// the copy fails in turn.
#[test]
fn failed_backup_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.pairs(&[(1, 10), (2, 20)]);
    let to = Path::new("/copy");
    let there = || fixture.fs.read_dir(Path::new("/")).unwrap();
    let before = there();
    for file in 0.. {
        let opened = AtomicI32::new(0);
        let call = move |path: &Path| match opened.fetch_add(1, Ordering::SeqCst) == file {
            true => Err(cairn_vfs::Error::new(Operation::Open, path, std::io::ErrorKind::StorageFull.into())),
            false => Ok(()),
        };
        let fs: Arc<dyn Fs> = Arc::new(Opening { fs: Arc::clone(&fixture.fs), call: Box::new(call) });
        if fixture.db.backup(&fs, to).is_ok() {
            assert!(file > 3, "{file}");
            break;
        }
        assert_eq!(there(), before, "file {file}");
    }
}

/// Goal: a vacuum makes the file as short as its contents, changes nothing visible, and leaves a
/// sound database. Method: tables with an index and long rows, most of which are deleted; check,
/// vacuum, check, reopen.
#[test]
fn vacuum() {
    let fixture = Fixture::new();
    let text = |id: i32| "x".repeat((id % 7 * 10) as usize + if id % 100 == 5 { 9_000 } else { 0 });
    for name in ["a", "b", "c"] {
        fixture.run(|transaction| {
            let mut def = def(name, &[("id", Type::Int), ("v", Type::Text), ("w", Type::Int)], &[0]);
            def.indexes = vec![index(&format!("{name}_w"), &[2], false)];
            let table = transaction.create_table(def).unwrap();
            for id in 0..3_000 {
                let row = [Value::Int(id), Value::Text(&text(id)), Value::Int(-id)];
                transaction.insert(&table, &row).unwrap();
            }
        });
    }
    let full = fixture.db.check().unwrap();
    assert_eq!((full.tables, full.rows, full.entries, full.lost_pages), (3, 9_000, 9_000, 0));
    fixture.run(|transaction| {
        let table = transaction.view().catalog().table("public", "a").unwrap().clone();
        transaction.drop_table(&table).unwrap();
    });
    let table = fixture.table("b");
    for id in (0..3_000).filter(|id| id % 10 != 5) {
        fixture.run(|transaction| assert!(transaction.delete(&table, &key(&table, id)).unwrap()));
    }
    let before = all(&fixture.begin(), &table, None);
    drop(table);
    let report = fixture.db.vacuum().unwrap();
    let after = fixture.db.check().unwrap();
    assert_eq!((after.rows, after.lost_pages, after.free_pages), (3_300, 0, 0), "{report:?}");
    assert!(after.pages < full.pages * 7 / 10, "{report:?} {full:?} {after:?}");
    assert_eq!(report.pages_after, after.pages);
    let fixture = fixture.reopen();
    assert_eq!(fixture.db.check().unwrap(), after);
    assert_eq!(all(&fixture.begin(), &fixture.table("b"), None), before);
    let length = fixture.fs.metadata(crate::path()).unwrap().len;
    assert_eq!(length, u64::from(after.pages) * 8192);
    let table = fixture.table("c");
    fixture.run(|transaction| {
        let row = [Value::Int(9_000), Value::Text(&text(5)), Value::Null];
        transaction.insert(&table, &row).unwrap();
    });
    assert_eq!(fixture.db.check().unwrap().rows, 3_301);
}

/// Goal: a vacuum leaves no page of a long row at the end of the file if the row begins near the
/// start.
/// Method: a long row of two pages, one near the start and one near the end, in both orders; all
/// rows but it and a few are deleted.
#[test]
fn vacuum_moves_all_pages_of_long_row() {
    let long = |len: usize| "x".repeat(len);
    for gone in [[3, 56], [56, 3]] {
        let fixture = Fixture::new();
        let table = fixture.run(|transaction| {
            let def = def("a", &[("id", Type::Int), ("v", Type::Text)], &[0]);
            let table = transaction.create_table(def).unwrap();
            for id in 0..60 {
                transaction.insert(&table, &[Value::Int(id), Value::Text(&long(6_000))]).unwrap();
            }
            table
        });
        for id in gone {
            fixture.run(|transaction| assert!(transaction.delete(&table, &key(&table, id)).unwrap()));
        }
        fixture.run(|transaction| {
            transaction.insert(&table, &[Value::Int(100), Value::Text(&long(12_000))]).unwrap();
        });
        assert_eq!(fixture.db.check().unwrap().free_pages, 0, "it has taken both");
        for id in (5..60).filter(|id| !gone.contains(id)) {
            fixture.run(|transaction| assert!(transaction.delete(&table, &key(&table, id)).unwrap()));
        }
        let before = all(&fixture.begin(), &table, None);
        drop(table);
        let report = fixture.db.vacuum().unwrap();
        let after = fixture.db.check().unwrap();
        assert_eq!((after.rows, after.lost_pages, after.free_pages), (5, 0, 0), "{gone:?}: {report:?}");
        assert_eq!(report.pages_after, after.pages);
        assert_eq!(all(&fixture.begin(), &fixture.table("a"), None), before);
    }
}
