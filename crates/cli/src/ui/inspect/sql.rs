//! Inspects a database: trees, pages, fill, column encodings, rows. Uses the table engine directly,
//! without SQL.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_table::{
    Database, Direction, Isolation, LevelSurvey, Options, Table, TableSurvey, TreeSurvey, log_dir, pages_path,
};
use cairn_vfs::{ErrorKind, File, Fs, MemFs, OpenOptions};
use serde_json::{Value, json};

use super::SHOWN_MAX;
use super::bytes::shown_text;
use crate::web::Refusal;

/// The number of frames of the inspector's buffer pool.
const FRAMES: usize = 1_024;

/// Serializes inspections of databases. File locks conflict between handles even of one process, so
/// two inspections would see each other as another process.
static TURN: Mutex<()> = Mutex::new(());

/// A database that is opened on shadows of its files, so that its writes are discarded.
struct DiscardedWrites {
    database: Database,
    page_size: u32,
    /// Keeps other processes from changing the pages. Fields are dropped in order: this one after
    /// the database.
    _lock: Box<dyn File>,
    /// Dropped last, because the next inspection takes it before it locks the file.
    _turn: MutexGuard<'static, ()>,
}

/// Waits for other inspections. Errors: `Busy` if another process has the database open; errors of
/// opening it.
fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<DiscardedWrites, Refusal> {
    // Ignore poisoning: the mutex protects no data.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = fs.open(path, OpenOptions::read())?;
    file.try_lock().map_err(|error| match error.kind() {
        ErrorKind::Busy => Refusal::of(
            ErrorKind::Busy,
            format!("{} is open in another process: its pages change, so they are not shown", path.display()),
        ),
        _ => error.into(),
    })?;
    let memory = MemFs::new();
    if let Some(parent) = path.parent() {
        memory.create_dir_all(parent)?;
    }
    memory.add_shadow(path, &*file)?;
    let mut beside = vec![pages_path(path)];
    let log = log_dir(path);
    if fs.exists(&log)? {
        memory.create_dir_all(&log)?;
        beside.extend(fs.read_dir(&log)?);
    }
    for part in beside {
        if fs.exists(&part)? {
            memory.add_shadow(&part, &*fs.open(&part, OpenOptions::read())?)?;
        }
    }
    let mut options = Options::default();
    options.store.frames = FRAMES;
    options.store.background = false;
    let found = Database::page_size_of(fs, path).map_err(|error| refused(&error, 0))?;
    let page_size = found.unwrap_or(options.store.page_size as u32);
    options.store.page_size = page_size as usize;
    let memory: Arc<dyn Fs> = Arc::new(memory);
    let database = Database::open(&memory, path, &options).map_err(|error| refused(&error, page_size))?;
    Ok(DiscardedWrites { database, page_size, _lock: file, _turn: turn })
}

/// Converts an error, adding file and offset of a damaged page.
fn refused(error: &cairn_table::Error, page_size: u32) -> Refusal {
    let refused = Refusal::of(error.kind(), error.to_string());
    match place(error, page_size) {
        Some((file, offset)) => refused.with("file", file).with("offset", offset),
        None => refused,
    }
}

fn place(error: &cairn_table::Error, page_size: u32) -> Option<(String, u64)> {
    match error {
        cairn_table::Error::Corruption { file, page, .. } => {
            Some((file.display().to_string(), u64::from(*page) * u64::from(page_size)))
        }
        cairn_table::Error::Pool(cairn_table::PoolError::Corruption { file, offset, .. }) => {
            Some((file.display().to_string(), *offset))
        }
        _ => None,
    }
}

/// Returns the tables with their trees.
pub fn summary(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
    let shadow = open(fs, path)?;
    let survey = shadow.database.survey().map_err(|error| refused(&error, shadow.page_size))?;
    let tables = survey.tables.iter().map(|survey| table(survey, shadow.page_size));
    Ok(json!({
        "page_size": survey.page_size,
        "pages": survey.pages,
        "free_pages": survey.free_pages,
        "catalog": tree(&survey.catalog, "catalog", shadow.page_size),
        "tables": tables.collect::<Vec<_>>(),
    }))
}

fn table(survey: &TableSurvey, page_size: u32) -> Value {
    let def = survey.table.def();
    let names = |columns: &[cairn_table::schema::KeyColumn]| {
        let names = columns.iter().filter_map(|key| def.columns.get(key.column));
        names.map(|column| column.name.as_str()).collect::<Vec<_>>()
    };
    let columns = def.columns.iter().map(
        |column| json!({ "name": column.name, "type": column.kind.to_string(), "nullable": column.nullable }),
    );
    let indexes = def.indexes.iter().zip(&survey.indexes).map(|(index, found)| {
        json!({
            "name": index.name,
            "unique": index.unique,
            "columns": names(&index.columns),
            "tree": tree(found, &index.name, page_size),
        })
    });
    json!({
        "name": format!("{}.{}", def.schema, def.name),
        "columns": columns.collect::<Vec<_>>(),
        "primary_key": names(&def.primary_key),
        "rows": tree(&survey.rows, "rows", page_size),
        "indexes": indexes.collect::<Vec<_>>(),
    })
}

fn tree(tree: &TreeSurvey, name: &str, page_size: u32) -> Value {
    let level = |(number, level): (usize, &LevelSurvey)| {
        json!({
            "level": number,
            "pages": level.pages,
            "packed_pages": level.packed_pages,
            "records": level.records,
            "bytes": level.bytes,
            "free_bytes": level.free_bytes,
            "fill": level.fill,
        })
    };
    let forms = tree.forms.iter().map(|(form, columns)| json!({ "form": form.name(), "columns": columns }));
    let damage = tree.damage.as_ref().map(|error| {
        let (file, offset) = place(error, page_size).unzip();
        json!({ "error": error.to_string(), "file": file, "offset": offset })
    });
    json!({
        "name": name,
        "root": tree.root,
        "levels": tree.levels.iter().enumerate().map(level).collect::<Vec<_>>(),
        "long_pages": tree.long_pages,
        "forms": forms.collect::<Vec<_>>(),
        "damage": damage,
    })
}

/// Returns the first rows of a table, in key order.
pub fn rows(fs: &Arc<dyn Fs>, path: &Path, name: &str) -> Result<Value, Refusal> {
    let shadow = open(fs, path)?;
    let failed = |error: cairn_table::Error| refused(&error, shadow.page_size);
    let transaction = shadow.database.begin(Isolation::Snapshot).map_err(failed)?;
    let view = transaction.view();
    let found = name.split_once('.').and_then(|(schema, name)| view.catalog().table(schema, name).cloned());
    let table: Arc<Table> = found.ok_or_else(|| Refusal::missing(format!("there is no table {name:?}")))?;
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = view.scan(&table, None, everything, Direction::Forward).map_err(failed)?;
    let mut listed: Vec<Vec<String>> = Vec::new();
    let mut more = false;
    while let Some(row) = scan.next().map_err(failed)? {
        if listed.len() == SHOWN_MAX {
            more = true;
            break;
        }
        listed.push(row.values().iter().map(|value| shown_text(&value.to_string())).collect());
    }
    let columns: Vec<&str> = table.def().columns.iter().map(|column| column.name.as_str()).collect();
    Ok(json!({ "columns": columns, "rows": listed, "more": more }))
}

/// Reads and verifies everything.
pub fn verify(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value, Refusal> {
    let shadow = open(fs, path)?;
    let report = shadow.database.check().map_err(|error| refused(&error, shadow.page_size))?;
    let what = format!(
        "{} tables, {} rows, {} index entries; {} pages used, {} free, {} lost",
        report.tables, report.rows, report.entries, report.used_pages, report.free_pages, report.lost_pages
    );
    Ok(json!({ "sound": true, "what": what, "damage": [] }))
}

#[cfg(test)]
mod tests {
    use std::sync::{TryLockError, mpsc};

    use cairn_vfs::thread;

    use super::*;

    /// Goal: inspections of a database wait for each other, and only another process that has it
    /// open makes them fail. Method: an inspection that is held while another one begins in a
    /// thread; a lock that another process would hold.
    #[test]
    fn inspections_wait_for_each_other() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let path = Path::new("/app.db");
        let mut options = Options::default();
        options.store.frames = FRAMES;
        options.store.background = false;
        drop(Database::open(&fs, path, &options).unwrap());
        let first = open(&fs, path).unwrap();
        assert!(matches!(TURN.try_lock(), Err(TryLockError::WouldBlock)), "the turn is the look's");
        let (begin, has_begun) = mpsc::channel();
        let found = thread::scope(|scope| {
            let second = scope.spawn(|| {
                begin.send(()).unwrap();
                summary(&fs, path)
            });
            has_begun.recv().unwrap();
            drop(first);
            second.join().unwrap()
        });
        assert_eq!(found.unwrap()["tables"], json!([]));
        let theirs = fs.open(path, OpenOptions::read()).unwrap();
        theirs.try_lock().unwrap();
        let refused = format!("{:?}", summary(&fs, path).unwrap_err());
        assert!(refused.contains("is open in another process"), "{refused}");
    }
}
