//! What transactions must survive: power loss at every operation of the disk, in recoveries too, and operations that fail.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, IndexDef, KeyColumn, TableDef};
use cairn_table::{
    Database, Direction, Durability, Isolation, Options, Result, Savepoint, Table, Transaction,
};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, Rng, SeededRng};

use super::{rounds, seed};

/// Rows of one table, by `id`: a number that is indexed, and the length of a text.
pub(super) type Rows = BTreeMap<i32, (i32, usize)>;
/// Tables by name.
pub(super) type Tables = BTreeMap<String, Rows>;

pub(super) fn options() -> Options {
    let mut options = Options::default();
    options.store.page_size = 4096;
    options.store.frames = 24;
    options.store.background = false;
    options.store.log = cairn_wal::Options::default().segment_bytes(64 << 10).window_bytes(16 << 10);
    options.checkpoint_bytes = 40 << 10;
    options
}

pub(super) fn open(disk: &FaultFs) -> Result<Database> {
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    let mut rng = SeededRng::new(disk.operation_count()).fork("salt");
    Database::open_seeded(&fs, Path::new("/db"), &options(), &mut rng)
}

pub(super) fn column(name: &str, kind: Type) -> ColumnDef {
    ColumnDef { name: name.to_owned(), kind: kind.into(), nullable: true, default: None }
}

pub(super) fn on(column: usize) -> Vec<KeyColumn> {
    vec![KeyColumn { column, order: Order::default() }]
}

pub(super) fn def(name: &str) -> TableDef {
    let index = |at: usize| IndexDef {
        name: format!("{name}_{at}"),
        columns: on(at),
        include: if at == 1 { vec![] } else { vec![1] },
        unique: false,
        is_constraint: false,
    };
    TableDef {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: vec![column("id", Type::Int), column("v", Type::Int), column("w", Type::Text)],
        primary_key: on(0),
        indexes: vec![index(1)],
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

/// Rows that a transaction has changed; `None` for those that it has deleted.
type Changes = BTreeMap<i32, Option<(i32, usize)>>;

/// A transaction, and what it has made of the rows that are its own to change: those of one remainder by three.
struct Open {
    transaction: Transaction,
    rows: Changes,
    savepoint: Option<(Savepoint, Changes)>,
}

/// A database, and everything that it was: the content after each commit.
struct Run {
    db: Database,
    rng: SeededRng,
    open: [Option<Open>; 3],
    states: Vec<Tables>,
    durable: usize,
    tables: u32,
}

impl Run {
    fn new(disk: &FaultFs, seed: u64) -> Run {
        let db = open(disk).unwrap();
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let table = transaction.create_table(def("t")).unwrap();
        // Every other run begins with rows in packed leaves, which its changes take apart.
        let mut rows = Rows::new();
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        for id in 0..if seed.is_multiple_of(2) { 160 } else { 0 } {
            let (v, len) = (id / 7, 40 + id as usize % 30);
            bulk.push(&[Value::Int(id), Value::Int(v), Value::Text(&"w".repeat(len))]).unwrap();
            rows.insert(id, (v, len));
        }
        bulk.finish().unwrap();
        transaction.commit(Durability::Sync).unwrap();
        let states = vec![Tables::from([("t".to_owned(), rows)])];
        let rng = SeededRng::new(seed).fork("run");
        Run { db, rng, open: [None, None, None], states, durable: 0, tables: 0 }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    /// Does one thing. What a commit that fails would have made is among the states all the same: it may have come to the log.
    fn step(&mut self) -> Result<()> {
        let slot = self.below(3) as usize;
        match self.below(40) {
            0 => return self.db.checkpoint(),
            1 => return self.change_schema(),
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

    fn change_row(&mut self, slot: usize, open: &mut Open) -> Result<()> {
        let id = self.below(60) as i32 * 3 + slot as i32;
        let table = Arc::clone(open.transaction.view().catalog().table("public", "t").unwrap());
        open.transaction.begin_statement()?;
        let committed = self.states.last().unwrap()["t"].get(&id).copied();
        let now = open.rows.get(&id).copied().unwrap_or(committed);
        if now.is_some() && self.below(3) == 0 {
            assert!(open.transaction.delete(&table, &key(&table, id))?);
            open.rows.insert(id, None);
            return Ok(());
        }
        let len = match self.below(20) {
            0 => 5_000 + self.below(4_000) as usize,
            _ => self.below(120) as usize,
        };
        let (v, text) = (self.below(1_000) as i32, "w".repeat(len));
        let values = [Value::Int(id), Value::Int(v), Value::Text(&text)];
        match now {
            Some(_) => assert!(open.transaction.update(&table, &key(&table, id), &values)?),
            None => open.transaction.insert(&table, &values)?,
        }
        open.rows.insert(id, Some((v, len)));
        Ok(())
    }

    fn commit(&mut self, open: Open) -> Result<()> {
        let mut state = self.states.last().unwrap().clone();
        let rows = state.get_mut("t").unwrap();
        for (id, row) in open.rows {
            match row {
                Some(row) => _ = rows.insert(id, row),
                None => _ = rows.remove(&id),
            }
        }
        self.states.push(state);
        let durability = if self.below(3) == 0 { Durability::Buffered } else { Durability::Sync };
        // One that has changed nothing promises nothing, not even of what it has seen.
        let promises = durability == Durability::Sync && open.transaction.has_written();
        open.transaction.commit(durability)?;
        if promises {
            self.durable = self.states.len() - 1;
        }
        Ok(())
    }

    /// Makes or removes a table, or an index, with nobody else running.
    fn change_schema(&mut self) -> Result<()> {
        for slot in 0..3 {
            if let Some(open) = self.open[slot].take() {
                self.commit(open)?;
            }
        }
        let mut state = self.states.last().unwrap().clone();
        let mut transaction = self.db.begin(Isolation::ReadCommitted)?;
        let other = state.keys().find(|name| *name != "t").cloned();
        let find = |transaction: &Transaction, name: &str| {
            Arc::clone(transaction.view().catalog().table("public", name).unwrap())
        };
        match (other, self.below(3)) {
            (Some(name), 0) => {
                let table = find(&transaction, &name);
                transaction.drop_table(&table)?;
                state.remove(&name);
            }
            (_, 1) => {
                let table = find(&transaction, "t");
                match table.def().indexes.len() {
                    1 => _ = transaction.create_index(&table, def("t").indexes[0].clone().named("t_2", 2))?,
                    _ => _ = transaction.drop_index(&table, 1)?,
                }
            }
            _ => {
                let name = format!("u{}", self.tables);
                self.tables += 1;
                let table = transaction.create_table(def(&name))?;
                let mut rows = Rows::new();
                let mut bulk = transaction.bulk_insert(&table)?;
                for id in 0..self.rng.below(80) as i32 {
                    let (v, len) = (self.rng.below(1_000) as i32, self.rng.below(60) as usize);
                    bulk.push(&[Value::Int(id), Value::Int(v), Value::Text(&"w".repeat(len))])?;
                    rows.insert(id, (v, len));
                }
                bulk.finish()?;
                state.insert(name, rows);
            }
        }
        if self.below(4) == 0 {
            return transaction.rollback();
        }
        self.states.push(state);
        transaction.commit(Durability::Sync)?;
        self.durable = self.states.len() - 1;
        Ok(())
    }
}

trait Named {
    fn named(self, name: &str, column: usize) -> Self;
}

impl Named for IndexDef {
    fn named(mut self, name: &str, column: usize) -> Self {
        name.clone_into(&mut self.name);
        self.columns[0].column = column;
        // Long texts do not fit into an index, so it is one of the number again.
        self.columns[0].column = 1;
        self
    }
}

/// What a disk holds must be one of the states from the durable one on, sound, and something to go on from.
fn check(disk: &FaultFs, states: &[Tables], durable: usize, context: &str) {
    let db = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = content(&db).unwrap_or_else(|error| panic!("{context}: {error}"));
    let is_one = states.iter().skip(durable).any(|state| *state == found);
    if !is_one {
        let expected = &states[durable]["t"];
        let missing: Vec<_> = expected.iter().filter(|(id, row)| found["t"].get(id) != Some(row)).collect();
        let extra: Vec<_> = found["t"].iter().filter(|(id, row)| expected.get(id) != Some(row)).collect();
        panic!(
            "{context}: no state from {durable} of {} on is what was found: against that {missing:?} is missing, {extra:?} is too much",
            states.len()
        );
    }
    let report = db.check().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(report.rows, found.values().map(|rows| rows.len() as u64).sum::<u64>(), "{context}");
    let mut transaction = db.begin(Isolation::Serializable).unwrap();
    let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
    transaction.insert(&table, &[Value::Int(-1), Value::Int(0), Value::Text("")]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

/// Goal: power loss at any moment leaves exactly what some commit left, none later than the last one that was promised to last; indexes have what tables have.
/// Method: crash images at every operation of runs with three transactions at a time, savepoints, long rows, changes of the schema and checkpoints.
#[test]
fn power_loss_at_every_operation() {
    let own = seed();
    let mut images = 0;
    for round in 0..rounds(3, 100) {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        let mut run = Run::new(&disk, seed);
        disk.capture_crash_points();
        let mut marks = Vec::new();
        for _ in 0..rounds(220, 500) {
            run.step().unwrap();
            marks.push((disk.operation_count(), run.durable));
        }
        for point in disk.take_crash_points() {
            let ended = marks.partition_point(|mark| mark.0 <= point.operation());
            let durable = ended.checked_sub(1).map_or(0, |at| marks[at].1);
            for (image, crashed) in point.images(rounds(1, 6)) {
                images += 1;
                check(
                    &crashed,
                    &run.states,
                    durable,
                    &format!("seed {seed}, {image} at {}", point.operation()),
                );
            }
        }
    }
    println!("{images} images");
    assert!(images > 500);
}

/// Goal: the same when the power goes during recovery, again and again: what did not commit is undone once and for all.
#[test]
fn power_loss_in_recoveries() {
    let own = seed();
    let mut recoveries = 0;
    for round in 0..rounds(60, 5_000) {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        let mut run = Run::new(&disk, seed);
        (0..80 + round % 100).for_each(|_| run.step().unwrap());
        let (durable, states) = (run.durable, run.states.clone());
        let mut rng = SeededRng::new(seed).fork("crashes");
        let mut crashed = disk.crash(CrashImage::Random(rng.next_u64()));
        for _ in 0..rng.below(5) {
            crashed.crash_at(crashed.operation_count() + rng.below(60));
            let _ = open(&crashed);
            crashed = crashed.crash(CrashImage::Random(rng.next_u64()));
            recoveries += 1;
        }
        check(&crashed, &states, durable, &format!("seed {seed}"));
    }
    println!("{recoveries} interrupted recoveries");
    assert!(recoveries > 50);
}

/// Goal: an operation of the disk that fails is told, and costs nothing that was promised to last. Method: fail every operation of a run in turn, once, then lose power.
#[test]
fn every_operation_fails() {
    let own = seed();
    let (mut struck, mut told) = (0, 0);
    for (round, fault) in [Fault::Io, Fault::Full].into_iter().enumerate() {
        for index in 0.. {
            let seed = own.wrapping_add(round as u64);
            let disk = FaultFs::new(FaultOptions::seeded(seed));
            let mut run = Run::new(&disk, seed);
            let before = disk.operation_count();
            disk.inject(Rule::at(before + index, fault));
            let mut failed = None;
            for _ in 0..rounds(120, 400) {
                if let Err(error) = run.step() {
                    assert!(
                        matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned),
                        "{fault:?} at {index}: {error}"
                    );
                    told += 1;
                    failed = Some(error);
                    break;
                }
            }
            struck += disk.injected_count();
            let is_over = disk.operation_count() - before <= index;
            let crashed = disk.crash(CrashImage::Random(seed ^ index));
            let context = format!("{fault:?} at {index}, then a power loss, after {failed:?}");
            check(&crashed, &run.states, run.durable, &context);
            if is_over {
                break;
            }
        }
    }
    println!("{struck} faults, {told} told");
    assert!(struck > 60 && told > 20);
}
