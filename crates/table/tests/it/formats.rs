//! Files of each version of the format: see `tests/fixtures/README.md`.

use super::*;

/// Pages and segments as short as they can be.
fn small() -> Options {
    let mut options = options();
    options.store.page_size = 4096;
    options.store.reserve = 0;
    options.store.log = options.store.log.segment_bytes(8 << 10).window_bytes(4 << 10);
    options
}

/// Makes a database with every kind of page and of record: ordinary and packed leaves, a long row,
/// a unique index with included columns, NULLs, a deleted row, a foreign key, a view and a
/// namespace.
fn make(fs: &Arc<dyn Fs>) -> Database {
    let db = Database::open_seeded(fs, path(), &small(), &mut SeededRng::new(7)).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    transaction.create_schema("other").unwrap();
    let mut people = def("people", &[("id", Type::Int), ("name", Type::Text), ("born", Type::Date)], &[0]);
    people.indexes = vec![index("people_name", &[1], true)];
    people.indexes[0].include = vec![2];
    let people = transaction.create_table(people).unwrap();
    let mut visits = def("visits", &[("person", Type::Int), ("cost", Type::BigInt)], &[]);
    visits.foreign_keys = vec![cairn_table::schema::ForeignKeyDef {
        name: "visits_person".to_owned(),
        columns: vec![0],
        table: people.id(),
        references: vec![0],
        on_delete: cairn_table::schema::Referential::Cascade,
        on_update: cairn_table::schema::Referential::NoAction,
    }];
    let visits = transaction.create_table(visits).unwrap();
    let words =
        transaction.create_table(def("words", &[("id", Type::Int), ("word", Type::Text)], &[0])).unwrap();
    let view = cairn_table::schema::ViewDef {
        schema: "other".to_owned(),
        name: "names".to_owned(),
        columns: vec!["name".to_owned()],
        query: "SELECT name FROM people".to_owned(),
    };
    transaction.create_view(view, false).unwrap();
    let long = "long ".repeat(1_000);
    for (id, name) in [(1, "Ada"), (2, "Grace"), (3, &*long), (4, "Alan")] {
        let name = if id == 3 { Value::Text("Edgar") } else { Value::Text(name) };
        let born = if id == 2 { Value::Null } else { Value::Date(-20_000 + id) };
        transaction.insert(&people, &[Value::Int(id), name, born]).unwrap();
        transaction.insert(&visits, &[Value::Int(id), Value::BigInt(i64::from(id) << 40)]).unwrap();
    }
    let mut load = transaction.bulk_insert(&words).unwrap();
    for id in 0..600 {
        load.push(&[Value::Int(id), Value::Text(["red", "green", "blue"][id as usize % 3])]).unwrap();
    }
    load.push(&[Value::Int(600), Value::Text(&long)]).unwrap();
    load.finish().unwrap();
    assert!(transaction.delete(&people, &key(&people, 4)).unwrap());
    transaction.commit(Durability::Sync).unwrap();
    db.vacuum().unwrap();
    db
}

/// Commits a change that is only in the log, and begins one that does not commit.
fn change(db: &Database) -> Transaction {
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let people = Arc::clone(transaction.view().catalog().table("public", "people").unwrap());
    let row = [Value::Int(1), Value::Text("Ada Lovelace"), Value::Null];
    assert!(transaction.update(&people, &key(&people, 1), &row).unwrap());
    transaction.commit(Durability::Sync).unwrap();
    let mut unfinished = db.begin(Isolation::ReadCommitted).unwrap();
    assert!(unfinished.delete(&people, &key(&people, 2)).unwrap());
    db.sync().unwrap();
    unfinished
}

/// Returns everything in a database, as text.
fn contents(db: &Database) -> Vec<String> {
    let transaction = db.begin(Isolation::Snapshot).unwrap();
    let catalog = Arc::clone(transaction.view().catalog());
    let mut all: Vec<String> = catalog.schemas().map(str::to_owned).collect();
    all.extend(catalog.views().map(|(_, view)| format!("{view:?}")));
    for table in catalog.tables() {
        all.push(format!("{:?}", table.def()));
        for index in std::iter::once(None).chain((0..table.def().indexes.len()).map(Some)) {
            all.extend(super::all(&transaction, table, index));
        }
    }
    all
}

/// The files of a database, by name.
const FILES: [&str; 2] = ["test.db", "test.db-pages"];

/// Returns the path and the bytes of each file of the open or closed database in `fs`.
fn files(fs: &Arc<dyn Fs>) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut paths: Vec<std::path::PathBuf> = FILES.iter().map(|name| Path::new("/db").join(name)).collect();
    paths.extend(fs.read_dir(Path::new("/db/test.db-log")).unwrap());
    let read = |path: std::path::PathBuf| {
        let file = fs.open(&path, cairn_vfs::OpenOptions::read()).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Copies the files of the open or closed database in `fs` to a directory of the disk.
fn save(fs: &Arc<dyn Fs>, to: &Path) {
    std::fs::create_dir_all(to.join("test.db-log")).unwrap();
    for (path, bytes) in files(fs) {
        std::fs::write(to.join(path.strip_prefix("/db").unwrap()), bytes).unwrap();
    }
}

/// Writes the fixtures of the current version into the folder that `OUT` names: see
/// `tests/fixtures/README.md`.
#[test]
#[ignore = "writes fixtures"]
fn write_fixtures() {
    let to = std::path::PathBuf::from(std::env::var_os("OUT").unwrap());
    for name in ["closed", "crashed"] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/db")).unwrap();
        let db = make(&fs);
        if name == "crashed" {
            let unfinished = change(&db);
            save(&fs, &to.join(name));
            drop(unfinished);
        } else {
            drop(db);
            save(&fs, &to.join(name));
        }
    }
}

/// Loads the files of a fixture into a file system.
fn load(name: &str) -> Arc<dyn Fs> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    fs.create_dir_all(Path::new("/db/test.db-log")).unwrap();
    let mut names: Vec<std::path::PathBuf> = FILES.iter().map(std::path::PathBuf::from).collect();
    for entry in std::fs::read_dir(from.join("test.db-log")).unwrap() {
        names.push(Path::new("test.db-log").join(entry.unwrap().file_name()));
    }
    for name in names {
        let file = fs.open(&Path::new("/db").join(&name), cairn_vfs::OpenOptions::create()).unwrap();
        file.write_all_at(&std::fs::read(from.join(&name)).unwrap(), 0).unwrap();
    }
    fs
}

fn open_small(fs: &Arc<dyn Fs>) -> cairn_table::Result<Database> {
    Database::open_seeded(fs, path(), &small(), &mut SeededRng::new(8))
}

/// Goal: files that were written by an earlier build of the current version have their contents,
/// whether they were closed or have a log to replay. Method: the fixtures, compared with a database
/// that is made in the same way now.
#[test]
fn files_of_version_2_are_read() {
    for name in ["closed", "crashed"] {
        let expected: Arc<dyn Fs> = Arc::new(MemFs::new());
        expected.create_dir_all(Path::new("/db")).unwrap();
        let expected = make(&expected);
        if name == "crashed" {
            change(&expected).rollback().unwrap();
        }
        let db = open_small(&load(&format!("version-2/{name}"))).unwrap();
        assert_eq!(contents(&db), contents(&expected), "{name}");
        db.check().unwrap();
    }
}

/// Goal: files of a version that this build does not read are refused with an error that names
/// their version and the one that is read, and all of them stay as they are. Method: files of
/// version 1, which was on the main branch from 21 to 28 November 2026; and page 0 with a later
/// version.
#[test]
fn files_of_other_versions_are_refused() {
    let later = load("version-2/closed");
    let file = later.open(path(), cairn_vfs::OpenOptions::write()).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    let lsn = cairn_pool::verify(&page, 0).unwrap();
    page[cairn_pool::PAGE_HEADER_LEN + 8] = 3;
    cairn_pool::stamp(&mut page, 0, lsn);
    file.write_all_at(&page, 0).unwrap();
    drop(file);
    for (fs, found) in [(load("version-1/closed"), 1), (load("version-1/crashed"), 1), (later, 3)] {
        let state = || (fs.read_dir(Path::new("/db")).unwrap(), files(&fs));
        let before = state();
        let error = open_small(&fs).unwrap_err();
        assert_eq!(error.kind(), cairn_vfs::ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("version {found}")) && text.contains("reads version 2"), "{text}");
        assert!(state() == before, "version {found}: a file has changed");
    }
}
