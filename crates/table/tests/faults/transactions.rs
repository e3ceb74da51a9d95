//! Fault tests of transactions: power loss at every disk operation, also during recovery, and
//! failed operations.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, ForeignKeyDef, IndexDef, KeyColumn, Referential, TableDef};
use cairn_table::{
    Database, Direction, Durability, Error, Isolation, Options, Result, Savepoint, Table, Transaction,
};
use cairn_vfs::fault::Fault;
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, Rng, SeededRng};

use super::{harness, rounds};

/// Rows of one table, by `id`: an indexed number, and the length of a text.
pub(super) type Rows = BTreeMap<i32, (i32, usize)>;
/// Tables by name.
pub(super) type Tables = BTreeMap<String, Rows>;

pub(super) fn options() -> Options {
    let mut options = Options::default();
    options.store.page_size = 4096;
    options.store.frames = 24;
    options.store.background = false;
    options.store.log = cairn_wal::Options::default().segment_bytes(64 << 10).window_bytes(16 << 10);
    options.store.reserve = 512 << 10;
    options.checkpoint_bytes = 40 << 10;
    // Bulk loads and indexes spill to a file.
    options.sort_bytes = 1 << 10;
    options
}

pub(super) fn open(disk: &FaultFs) -> Result<Database> {
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    open_at(&fs, Path::new("/db"), disk.operation_count())
}

fn open_at(fs: &Arc<dyn Fs>, path: &Path, salt: u64) -> Result<Database> {
    Database::open_seeded(fs, path, &options(), &mut SeededRng::new(salt).fork("salt"))
}

pub(super) fn column(name: &str, kind: Type) -> ColumnDef {
    ColumnDef { name: name.to_owned(), kind: kind.into(), nullable: true, default: None, identity: None }
}

pub(super) fn on(column: usize) -> Vec<KeyColumn> {
    vec![KeyColumn { column, order: Order::default() }]
}

fn index(name: String, columns: &[usize], include: &[usize], unique: bool) -> IndexDef {
    let columns = columns.iter().flat_map(|column| on(*column)).collect();
    IndexDef { name, columns, include: include.to_vec(), unique, is_constraint: false }
}

pub(super) fn def(name: &str) -> TableDef {
    TableDef {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: vec![column("id", Type::Int), column("v", Type::Int), column("w", Type::Text)],
        primary_key: on(0),
        indexes: vec![index(format!("{name}_v"), &[1], &[], false)],
        ..TableDef::default()
    }
}

pub(super) fn key(table: &Table, id: i32) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(id)], &mut key));
    key
}

pub(super) fn content(db: &Database) -> Result<Tables> {
    let transaction = db.begin(Isolation::Snapshot)?;
    let mut tables = Tables::new();
    for table in transaction.view().catalog().tables() {
        let mut rows = Rows::new();
        let mut scan =
            transaction.view().scan(table, None, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)?;
        while let Some(row) = scan.next()? {
            let (Value::Int(id), Value::Int(v), Value::Text(text)) = (row.get(0), row.get(1), row.get(2))
            else {
                panic!("{:?}", row.values());
            };
            assert!(text.bytes().all(|byte| byte == b'w'));
            rows.insert(id, (v, text.len()));
        }
        tables.insert(table.def().name.clone(), rows);
    }
    Ok(tables)
}

/// Rows that a transaction has changed, by table; `None` for deleted ones.
type Changes = BTreeMap<(&'static str, i32), Option<(i32, usize)>>;

/// A transaction, and the current state of the rows that it may change: those with one remainder
/// modulo three.
struct Open {
    transaction: Transaction,
    rows: Changes,
    savepoint: Option<(Savepoint, Changes)>,
}

/// A change of a row.
enum Change {
    Delete,
    Put { v: i32, len: usize, is_there: bool },
}

/// A database with a table `t`, a table `c` whose `v` references `t` with a cascade, and others
/// that are created and dropped; and its history: the contents after each commit.
struct Run {
    fs: Arc<dyn Fs>,
    db: Database,
    rng: SeededRng,
    open: [Option<Open>; 3],
    states: Vec<Tables>,
    durable: usize,
    tables: u32,
    copies: u32,
    /// Number of statements that failed, were rolled back and retried.
    retries: u64,
    /// Whether a commit has begun and not returned.
    in_doubt: bool,
}

fn find(transaction: &Transaction, name: &str) -> Arc<Table> {
    Arc::clone(transaction.view().catalog().table("public", name).unwrap())
}

/// Creates both tables. With `packed`, the first one begins with rows in packed leaves, which
/// changes unpack.
fn create(transaction: &mut Transaction, packed: bool) -> Result<Rows> {
    let parents = transaction.create_table(def("t"))?;
    let mut rows = Rows::new();
    let mut bulk = transaction.bulk_insert(&parents)?;
    for id in 0..if packed { 160 } else { 0 } {
        let (v, len) = (id / 7, 40 + id as usize % 30);
        bulk.push(&[Value::Int(id), Value::Int(v), Value::Text(&"w".repeat(len))])?;
        rows.insert(id, (v, len));
    }
    bulk.finish()?;
    let parents = find(transaction, "t");
    let mut children = def("c");
    children.foreign_keys = vec![ForeignKeyDef {
        name: "c_fkey".to_owned(),
        columns: vec![1],
        table: parents.id(),
        references: vec![0],
        on_delete: Referential::Cascade,
        on_update: Referential::Restrict,
    }];
    transaction.create_table(children)?;
    Ok(rows)
}

/// Returns the current contents of a row, if it exists.
fn now(state: &Tables, rows: &Changes, table: &'static str, id: i32) -> Option<(i32, usize)> {
    rows.get(&(table, id)).copied().unwrap_or_else(|| state[table].get(&id).copied())
}

impl Run {
    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn state(&self) -> &Tables {
        self.states.last().unwrap()
    }

    /// Changes a row. A statement that fails is rolled back and retried once.
    fn change_row(&mut self, slot: usize, open: &mut Open) -> Result<()> {
        let id = self.below(60) as i32 * 3 + slot as i32;
        let name = if self.below(4) == 0 { "c" } else { "t" };
        open.transaction.begin_statement()?;
        let is_there = now(self.state(), &open.rows, name, id).is_some();
        let change = if is_there && self.below(3) == 0 {
            Change::Delete
        } else {
            let len = match self.below(20) {
                0 => 5_000 + self.below(4_000) as usize,
                _ => self.below(120) as usize,
            };
            // For a child, the parent, which is a row of the same slot.
            let v =
                if name == "c" { self.below(60) as i32 * 3 + slot as i32 } else { self.below(1_000) as i32 };
            Change::Put { v, len, is_there }
        };
        let mut done = Ok(());
        for attempt in 0..2 {
            let savepoint = open.transaction.savepoint();
            done = self.try_change(open, name, id, &change);
            match &done {
                Ok(()) => break,
                Err(_) if attempt == 0 => {
                    open.transaction.rollback_to(savepoint)?;
                    self.retries += 1;
                }
                Err(_) => {}
            }
        }
        done
    }

    fn try_change(&self, open: &mut Open, name: &'static str, id: i32, change: &Change) -> Result<()> {
        let state = self.state();
        let table = find(&open.transaction, name);
        let Change::Put { v, len, is_there } = *change else {
            assert!(open.transaction.delete(&table, &key(&table, id))?);
            open.rows.insert((name, id), None);
            if name == "t" {
                // Its children are deleted with it.
                let ids = state["c"].keys().copied().chain(open.rows.keys().map(|(_, id)| *id));
                let gone: Vec<i32> = ids
                    .filter(|child| now(state, &open.rows, "c", *child).is_some_and(|(v, _)| v == id))
                    .collect();
                gone.into_iter().for_each(|child| _ = open.rows.insert(("c", child), None));
            }
            return Ok(());
        };
        let text = "w".repeat(len);
        let values = [Value::Int(id), Value::Int(v), Value::Text(&text)];
        let savepoint = open.transaction.savepoint();
        let done = match is_there {
            true => open.transaction.update(&table, &key(&table, id), &values).map(|found| assert!(found)),
            false => open.transaction.insert(&table, &values),
        };
        if name == "c" && now(state, &open.rows, "t", v).is_none() {
            return match done {
                Err(Error::ForeignKeyViolation { .. }) => open.transaction.rollback_to(savepoint),
                Err(error) => Err(error),
                Ok(()) => panic!("row {id} refers to row {v}, which is not there"),
            };
        }
        done?;
        open.rows.insert((name, id), Some((v, len)));
        Ok(())
    }

    fn commit(&mut self, open: Open) -> Result<()> {
        let mut state = self.state().clone();
        for ((table, id), row) in open.rows {
            let rows = state.get_mut(table).unwrap();
            match row {
                Some(row) => _ = rows.insert(id, row),
                None => _ = rows.remove(&id),
            }
        }
        self.states.push(state);
        let durability = if self.below(3) == 0 { Durability::Buffered } else { Durability::Sync };
        // A transaction without changes guarantees nothing, not even for the data it has seen.
        let promises = durability == Durability::Sync && open.transaction.has_written();
        self.in_doubt = true;
        open.transaction.commit(durability)?;
        self.in_doubt = false;
        if promises {
            self.durable = self.states.len() - 1;
        }
        Ok(())
    }

    /// Ends all running transactions, because a schema change would wait for them.
    fn commit_all(&mut self) -> Result<()> {
        for slot in 0..3 {
            if let Some(open) = self.open[slot].take() {
                self.commit(open)?;
            }
        }
        Ok(())
    }

    /// Changes the schema, once or twice, with some changes rolled back.
    fn change_schema(&mut self) -> Result<()> {
        self.commit_all()?;
        let mut state = self.state().clone();
        let mut transaction = self.db.begin(Isolation::ReadCommitted)?;
        if self.below(2) == 0 {
            let savepoint = transaction.savepoint();
            let mut forgotten = state.clone();
            self.change_schema_once(&mut transaction, &mut forgotten)?;
            if self.below(2) == 0 {
                self.change_schema_once(&mut transaction, &mut forgotten)?;
            }
            transaction.rollback_to(savepoint)?;
        }
        if self.below(4) > 0 {
            self.change_schema_once(&mut transaction, &mut state)?;
        }
        if self.below(4) == 0 {
            return transaction.rollback();
        }
        self.states.push(state);
        let promises = transaction.has_written();
        self.in_doubt = true;
        transaction.commit(Durability::Sync)?;
        self.in_doubt = false;
        if promises {
            self.durable = self.states.len() - 1;
        }
        Ok(())
    }

    /// Creates, truncates or drops a table, or an index.
    fn change_schema_once(&mut self, transaction: &mut Transaction, state: &mut Tables) -> Result<()> {
        let other = state.keys().find(|name| name.starts_with('u')).cloned();
        match (other, self.below(5)) {
            (Some(name), 0) => {
                transaction.drop_table(&find(transaction, &name))?;
                state.remove(&name);
            }
            (_, 1) => {
                let table = find(transaction, "t");
                match table.def().indexes.len() {
                    1 => {
                        let more = index("t_more".to_owned(), &[1, 0], &[1], true);
                        _ = transaction.create_index(&table, more)?;
                    }
                    _ => _ = transaction.drop_index(&table, 1)?,
                }
            }
            (_, 2) => {
                transaction.truncate(&find(transaction, "c"))?;
                state.insert("c".to_owned(), Rows::new());
            }
            _ => {
                let name = format!("u{}", self.tables);
                self.tables += 1;
                let table = transaction.create_table(def(&name))?;
                let mut rows = Rows::new();
                let mut bulk = transaction.bulk_insert(&table)?;
                // Not in key order, so that some rows are sorted.
                let count = self.rng.below(80) as i32;
                for id in (0..count).map(|at| (at * 37) % 83) {
                    let (v, len) = (self.rng.below(1_000) as i32, self.rng.below(60) as usize);
                    let len = if v % 40 == 0 { len + 5_000 } else { len };
                    bulk.push(&[Value::Int(id), Value::Int(v), Value::Text(&"w".repeat(len))])?;
                    rows.insert(id, (v, len));
                }
                bulk.finish()?;
                // And some one by one, which are logged individually.
                let table = find(transaction, &name);
                for id in 100..100 + count % 9 {
                    transaction.insert(&table, &[Value::Int(id), Value::Int(id), Value::Text("")])?;
                    rows.insert(id, (id, 0));
                }
                state.insert(name, rows);
            }
        }
        Ok(())
    }

    /// Backs up the committed state, while other transactions are open, checks the copy, and
    /// removes it.
    fn back_up(&mut self) -> Result<()> {
        let to = format!("/copy{}", self.copies);
        self.copies += 1;
        self.db.backup(&self.fs, Path::new(&to))?;
        let copy = open_at(&self.fs, Path::new(&to), 1)?;
        assert_eq!(content(&copy)?, *self.state(), "{to}");
        let report = copy.check()?;
        assert_eq!(report.lost_pages, 0, "{to}: {report:?}");
        drop(copy);
        for name in self.fs.read_dir(Path::new(&format!("{to}-log")))? {
            self.fs.remove(&name)?;
        }
        self.fs.remove(Path::new(&to))?;
        Ok(self.fs.remove(Path::new(&format!("{to}-pages")))?)
    }
}

impl harness::Run for Run {
    type State = Tables;

    fn new(disk: &FaultFs, seed: u64) -> Result<Run> {
        let db = open(disk)?;
        let mut transaction = db.begin(Isolation::ReadCommitted)?;
        let rows = create(&mut transaction, seed.is_multiple_of(2))?;
        transaction.commit(Durability::Sync)?;
        let states = vec![Tables::from([("t".to_owned(), rows), ("c".to_owned(), Rows::new())])];
        let rng = SeededRng::new(seed).fork("run");
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let open = [None, None, None];
        Ok(Run { fs, db, rng, open, states, durable: 0, tables: 0, copies: 0, retries: 0, in_doubt: false })
    }

    fn step(&mut self) -> Result<()> {
        let slot = self.below(3) as usize;
        match self.below(160) {
            0..4 => return self.db.checkpoint(),
            4..8 => return self.change_schema(),
            8 => {
                self.commit_all()?;
                return self.db.vacuum().map(|_| ());
            }
            9 => return self.back_up(),
            _ => {}
        }
        let Some(mut open) = self.open[slot].take() else {
            let transaction = self.db.begin(Isolation::ReadCommitted)?;
            self.open[slot] = Some(Open { transaction, rows: BTreeMap::new(), savepoint: None });
            return Ok(());
        };
        match self.below(12) {
            0 => return open.transaction.rollback(),
            1 | 2 => return self.commit(open),
            3 => open.savepoint = Some((open.transaction.savepoint(), open.rows.clone())),
            4 => {
                if let Some((savepoint, rows)) = &open.savepoint {
                    open.transaction.rollback_to(*savepoint)?;
                    open.rows = rows.clone();
                }
            }
            _ => self.change_row(slot, &mut open)?,
        }
        self.open[slot] = Some(open);
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        let found = content(&self.db);
        assert!(found.is_err() || !self.in_doubt, "it goes on, and a commit has failed");
        assert!(found.as_ref().ok().is_none_or(|found| found == self.state()), "{found:?}");
        found.is_ok()
    }

    fn retries(&self) -> u64 {
        self.retries
    }

    fn finish(self, context: &str) {
        let (db, last) = (self.db, self.states.last().unwrap().clone());
        let looked = || -> Result<Tables> {
            self.open.into_iter().flatten().try_for_each(|open| open.transaction.rollback())?;
            let found = content(&db)?;
            db.check().map(|_| found)
        };
        match looked() {
            Ok(found) => assert!(found == last, "{context}: {found:?}"),
            // A file or the log has failed, and reports this to writers.
            Err(error) => {
                let has_failed = matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned);
                assert!(has_failed, "{context}: {error}");
            }
        }
    }

    fn states(&self) -> (&[Tables], usize) {
        (&self.states, self.durable)
    }

    fn open(disk: &FaultFs) -> Result<()> {
        open(disk).map(|_| ())
    }

    fn check(disk: &FaultFs, states: &[Tables], durable: usize, context: &str) {
        let db = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = content(&db).unwrap_or_else(|error| panic!("{context}: {error}"));
        if !states.iter().skip(durable).any(|state| *state == found) {
            let differences: Vec<_> = states[durable]
                .iter()
                .filter(|(name, rows)| found.get(*name) != Some(rows))
                .map(|(name, rows)| (name, rows, found.get(name)))
                .collect();
            panic!(
                "{context}: no state from {durable} of {} on is what was found: against that {differences:?}",
                states.len()
            );
        }
        let report = db.check().unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(report.rows, found.values().map(|rows| rows.len() as u64).sum::<u64>(), "{context}");
        for (v, _) in found["c"].values() {
            assert!(found["t"].contains_key(v), "{context}: a row refers to {v}, which is not there");
        }
        let mut transaction = db.begin(Isolation::Serializable).unwrap();
        let table = find(&transaction, "t");
        transaction.insert(&table, &[Value::Int(-1), Value::Int(0), Value::Text("")]).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }

    fn check_unmade(disk: &FaultFs, context: &str) {
        let db = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = content(&db).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(found.is_empty() || found.len() == 2, "{context}: {found:?}");
        if found.is_empty() {
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            create(&mut transaction, false).unwrap();
            transaction.commit(Durability::Sync).unwrap();
        }
        db.check().unwrap_or_else(|error| panic!("{context}: {error}"));
    }
}

/// Opens a disk with power losses during the opening: at every fifth operation in turn, and then
/// once more. Returns about how many operations an opening takes.
fn open_cut_off(disk: &FaultFs, check: impl Fn(&Database)) -> u64 {
    for at in (0..).step_by(5) {
        for image in [CrashImage::All, CrashImage::Random(at)] {
            let crashed = disk.crash_point().image(CrashImage::All);
            crashed.crash_at(crashed.operation_count() + at);
            let opened = open(&crashed);
            if !crashed.is_powered_off() {
                opened.unwrap();
                return at;
            }
            let again = crashed.crash(image);
            check(&open(&again).unwrap_or_else(|error| panic!("cut off at {at}, {image}: {error}")));
        }
    }
    0
}

/// Goal: a recovery that is interrupted while it frees the trees of an unfinished transaction can
/// be repeated any number of times: rows of a freed tree are not undone in pages that may have been
/// reused.
/// Method: rows inserted one by one into a table of the same transaction, all of it on the disk;
/// power loss throughout the recovery.
#[test]
fn interrupted_recovery_frees_uncommitted_trees_once() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let db = open(&disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    // More pages than frames, so that some are written while they are freed, and the log before
    // them.
    let text = "w".repeat(400);
    for id in 0..300 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(id), Value::Text(&text)]).unwrap();
    }
    db.checkpoint().unwrap();
    let cut_off = open_cut_off(&disk, |db| {
        assert!(content(db).unwrap().is_empty());
        db.check().unwrap();
    });
    assert!(cut_off > 20, "{cut_off}");
}

/// Goal: long rows are freed with their table even if the power fails between freeing the table and
/// freeing them, and those that a rollback to a savepoint has freed are not freed twice. Method:
/// two tables are dropped, one of them created in the same transaction; a third one is rolled back,
/// and its pages are reused; power loss at every operation from the commit on.
#[test]
fn power_loss_while_long_rows_are_freed() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let db = open(&disk).unwrap();
    let fill = |transaction: &mut Transaction, name: &str| {
        let table = transaction.create_table(def(name)).unwrap();
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        for id in 0..6 {
            bulk.push(&[Value::Int(id), Value::Int(id), Value::Text(&"w".repeat(9_000))]).unwrap();
        }
        bulk.finish().unwrap();
    };
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    fill(&mut transaction, "t");
    transaction.commit(Durability::Sync).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let savepoint = transaction.savepoint();
    fill(&mut transaction, "never");
    transaction.rollback_to(savepoint).unwrap();
    fill(&mut transaction, "kept");
    fill(&mut transaction, "short");
    for name in ["t", "short"] {
        transaction.drop_table(&find(&transaction, name)).unwrap();
    }
    disk.capture_crash_points();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(db.check().unwrap().lost_pages, 0);
    db.checkpoint().unwrap();
    let (mut before, mut after, mut found) = (0, 0, 0);
    for point in disk.take_crash_points() {
        let db = open(&point.image(CrashImage::All)).unwrap();
        let names: Vec<String> = content(&db).unwrap().into_keys().collect();
        let report = db.check().unwrap();
        if names == ["t"] {
            before += 1;
            continue;
        }
        assert_eq!(names, ["kept"]);
        after += 1;
        found += u32::from(report.lost_pages == 0);
    }
    println!("{before} before the commit, {after} behind it, {found} without lost pages");
    assert!(found > 0, "{before} {after}");
}

/// Goal: power loss at any moment leaves exactly the result of some commit, none before the last
/// durable one; indexes match tables, and references are valid. Method: runs with three
/// transactions at a time, savepoints, long rows, foreign keys, schema changes inside and outside
/// of savepoints, checkpoints, vacuums, and backups.
#[test]
fn power_loss_at_every_operation() {
    let images = harness::power_loss_at_every_operation::<Run>(rounds(3, 100), rounds(150, 500));
    assert!(images > 500, "{images}");
}

#[test]
fn power_loss_in_recoveries() {
    let interrupted =
        harness::power_loss_in_recoveries::<Run>(rounds(80, 5_000), |round| 80 + round % 100, 60);
    assert!(interrupted > 60, "{interrupted}");
}

#[test]
fn every_operation_fails() {
    let found = harness::every_operation_fails::<Run>(&[Fault::Io, Fault::Full], rounds(35, 400));
    assert!(found.struck > 60 && found.told > 20 && found.retried > 20 && found.went_on > 5, "{found:?}");
}
