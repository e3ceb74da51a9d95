//! Surveys, compared with the known contents of a database.

use std::path::Path;

use cairn_vfs::{ErrorKind, File, MemFs, OpenOptions, SeededRng};

use super::*;
use crate::row::{Order, Type, Value};
use crate::schema::{ColumnDef, IndexDef, KeyColumn, TableDef};
use crate::{Durability, Options};

const PATH: &str = "test.db";

fn options() -> Options {
    let mut options = Options::default();
    options.store.page_size = 4 << 10;
    options.store.frames = 256;
    options.store.background = false;
    options
}

fn open(fs: &Arc<dyn Fs>) -> Database {
    Database::open_seeded(fs, Path::new(PATH), &options(), &mut SeededRng::new(7)).unwrap()
}

fn on(column: usize) -> Vec<KeyColumn> {
    vec![KeyColumn { column, order: Order::default() }]
}

/// Defines a table of a number, one of few words, and a text. The word has an index.
fn def(name: &str) -> TableDef {
    let column = |name: &str, kind: Type| ColumnDef {
        name: name.to_owned(),
        kind: kind.into(),
        nullable: true,
        default: None,
        identity: None,
    };
    TableDef {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: vec![column("id", Type::Int), column("word", Type::Text), column("text", Type::Text)],
        primary_key: on(0),
        indexes: vec![IndexDef {
            name: format!("{name}_word"),
            columns: on(1),
            include: Vec::new(),
            unique: false,
            is_constraint: false,
        }],
        ..TableDef::default()
    }
}

/// Inserts rows with the given numbers, one at a time.
fn insert(db: &Database, table: &Arc<Table>, numbers: std::ops::Range<i32>, text: &str) {
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    for number in numbers {
        let word = ["red", "green", "blue"][number as usize % 3];
        let row = [Value::Int(number), Value::Text(word), Value::Text(text)];
        transaction.insert(table, &row).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
}

fn make(db: &Database, name: &str) -> Arc<Table> {
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def(name)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    table
}

fn sum(tree: &TreeSurvey) -> u64 {
    tree.levels.iter().map(|level| level.pages).sum::<u64>() + tree.long_pages
}

/// Goal: a survey counts every page and every record once. Method: a table with rows of all lengths
/// and its index, compared with the counts of a check.
#[test]
fn pages_and_records_add_up() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let table = make(&db, "t");
    insert(&db, &table, 0..2_000, "some words of a row");
    insert(&db, &table, 2_000..2_003, &"long ".repeat(3_000));
    let survey = db.survey().unwrap();
    let report = db.check().unwrap();
    let found = &survey.tables[0];
    assert_eq!((found.table.def().name.as_str(), survey.tables.len()), ("t", 1));
    assert_eq!(found.rows.levels[0].records, report.rows);
    assert_eq!(found.indexes[0].levels[0].records, report.entries);
    assert!(found.rows.levels.len() > 1 && found.rows.long_pages >= 9, "{found:?}");
    let used = 1 + sum(&survey.catalog) + sum(&found.rows) + sum(&found.indexes[0]);
    assert_eq!((used, survey.pages), (report.used_pages.into(), report.pages));
    for level in found.rows.levels.iter().chain(&found.indexes[0].levels) {
        assert_eq!(level.fill.iter().sum::<u64>(), level.pages);
        assert!(level.free_bytes < level.bytes && level.packed_pages == 0);
    }
    assert!(found.rows.damage.is_none() && found.rows.forms.is_empty());
}

/// Goal: packed leaves are reported with the forms of their columns. Method: a backup, which is
/// packed, of a table with a number, one of few words, and a text.
#[test]
fn packed_leaves_have_forms() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let table = make(&db, "t");
    insert(&db, &table, 0..5_000, "the same words again and again");
    db.backup(&fs, Path::new("copy.db")).unwrap();
    let copy = Database::open_seeded(&fs, Path::new("copy.db"), &options(), &mut SeededRng::new(8)).unwrap();
    let survey = copy.survey().unwrap();
    let rows = &survey.tables[0].rows;
    let leaves = rows.levels[0];
    assert!(leaves.packed_pages > 0 && leaves.records == 5_000, "{rows:?}");
    assert!(rows.forms.contains_key(&StreamForm::ByteDictionary), "{rows:?}");
    // Two columns per leaf; the third is in the key.
    assert_eq!(rows.forms.values().sum::<u64>(), 2 * leaves.packed_pages);
}

/// Goal: damage in one tree is reported with its page, and the other trees are surveyed. Method:
/// the root page of one of two tables is overwritten, without a matching checksum.
#[test]
fn damage_is_reported_for_its_tree() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let (first, second) = (make(&db, "a"), make(&db, "b"));
    insert(&db, &first, 0..500, "of a");
    insert(&db, &second, 0..500, "of b");
    db.checkpoint().unwrap();
    let before = db.survey().unwrap();
    let root = before.tables.iter().find(|table| table.table.def().name == "b").unwrap().rows.root;
    // A reference to a table keeps the database open.
    drop((before, first, second, db));
    // Opened before the damage: an opening would repair it from the double write, like a torn page.
    let db = open(&fs);
    let file: Box<dyn File> = fs.open(Path::new(PATH), OpenOptions::write()).unwrap();
    file.write_all_at(b"nonsense", u64::from(root) * (4 << 10) + 100).unwrap();
    let survey = db.survey().unwrap();
    for table in &survey.tables {
        let is_damaged = table.table.def().name == "b";
        assert_eq!(table.rows.damage.is_some(), is_damaged);
        let said = table.rows.damage.as_ref().map(|error| (error.kind(), error.to_string()));
        if let Some((kind, text)) = said {
            assert_eq!(kind, ErrorKind::Corruption);
            assert!(text.contains(&format!("page {root} of {PATH}")), "{text}");
        }
    }
}

/// Goal: the page size of a database is returned, and none for other files. Method: a database, an
/// empty file, and a short and a long foreign file.
#[test]
fn page_sizes() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    drop(open(&fs));
    let size = |path: &str| Database::page_size_of(&fs, Path::new(path)).unwrap();
    assert_eq!(size(PATH), Some(4 << 10));
    for (name, bytes) in [("empty", 0), ("short", 20), ("long", 9_000)] {
        let file = fs.open(Path::new(name), OpenOptions::create_new()).unwrap();
        file.write_all_at(&vec![7; bytes], 0).unwrap();
        assert_eq!(size(name), None, "{name}");
    }
    assert!(Database::page_size_of(&fs, Path::new("none")).is_err());
}
