//! Maintenance of a database.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_sql::Database;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use crate::args::shell::{BackupArgs, DumpArgs, ReportedArgs};
use crate::damage::{self, Finding};
use crate::error::Result;
use crate::interrupt;
use crate::output::{Outcome, Output, counted, human};
use crate::place;
use crate::target::{Target, file_of, refuse_json_of_stdout};

use super::catalog::tables_of;
use super::open::open_existing;
use super::sink::Sink;
use super::{dump, print};

/// Runs `cairn sql backup`.
pub fn backup(fs: &Arc<dyn Fs>, args: &BackupArgs) -> Result<Outcome> {
    place::expect_nothing(fs, &args.to)?;
    copy_to(fs, &open_existing(fs, &args.database)?, &args.to)?;
    Ok(Outcome::Done)
}

/// Copies a database to a path where nothing exists. If a signal ends the command, the unfinished
/// copy is removed, because it would open as a database with some of its contents missing.
pub fn copy_to(fs: &Arc<dyn Fs>, database: &Database, to: &Path) -> Result<()> {
    let names = ["", "-log", "-pages"].map(|behind| {
        let mut name = to.to_owned().into_os_string();
        name.push(behind);
        PathBuf::from(name)
    });
    names.iter().try_for_each(|name| place::expect_nothing(fs, name))?;
    let at = Arc::clone(fs);
    let unfinished = interrupt::unfinished(move || names.iter().for_each(|name| _ = at.remove(name)))?;
    database.backup(to)?;
    drop(unfinished);
    Ok(())
}

/// Runs `cairn sql verify`.
pub fn verify(fs: &Arc<dyn Fs>, args: &ReportedArgs) -> Result<Outcome> {
    let mut out = Output::new();
    let mut checked = Checked::default();
    let ended = open_existing(fs, &args.database).and_then(|database| {
        let mut tell = |line: String| if args.json { Ok(()) } else { out.line(line) };
        checked.tables(&args.database, &database, &mut tell)?;
        // Check what queries do not see: indexes against their tables, and pages that are used
        // twice or lost.
        if checked.damage.is_empty() {
            checked.pages = Some(database.check()?);
        }
        Ok(())
    });
    if let Err(error) = ended {
        checked.damage.push(Finding::of(&args.database, error)?);
    }
    let Checked { tables, pages, damage } = checked;
    if args.json {
        let of_kind = json!({
            "tables": tables,
            "index_entries": pages.as_ref().map(|report| report.entries),
            "used_pages": pages.as_ref().map(|report| report.used_pages),
            "free_pages": pages.as_ref().map(|report| report.free_pages),
            "lost_pages": pages.as_ref().map(|report| report.lost_pages),
        });
        out.json(&damage::report(&args.database, &damage, of_kind))?;
    } else {
        if let Some(report) = pages {
            let (free, lost) = (report.free_pages, report.lost_pages);
            let entries = counted(report.entries, "index entry", "index entries");
            let used = counted(report.used_pages.into(), "page", "pages");
            out.line(format!("{entries} sound; {used} used, {free} free, {lost} lost"))?;
        }
        damage.iter().try_for_each(|found| out.line(format!("damaged: {found}")))?;
    }
    out.finish()?;
    damage::check_sound(&args.database, &damage)
}

/// The results of a verification.
#[derive(Debug, Default)]
struct Checked {
    /// The tables as JSON, for scripts.
    tables: Vec<Value>,
    /// The check of pages and indexes; absent if tables are damaged.
    pages: Option<cairn_table::CheckReport>,
    damage: Vec<Finding>,
}

impl Checked {
    /// Reads every row, and thereby verifies every checksum. Continues after a damaged table.
    fn tables(
        &mut self,
        path: &Path,
        database: &Database,
        tell: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<()> {
        let mut connection = database.connect();
        let catalog = super::catalog::catalog(&mut connection)?;
        for table in tables_of(&catalog) {
            let name = super::literal::qualified(&table.def().schema, &table.def().name);
            match count_rows(&mut connection, &name) {
                Ok(rows) => {
                    tell(format!("{name}: {} sound", print::counted_rows(rows)))?;
                    self.tables.push(json!({ "table": name, "sound": true, "rows": rows }));
                }
                Err(error) => {
                    tell(format!("{name}: damaged"))?;
                    let error = Finding::of(path, error)?;
                    self.tables.push(json!({ "table": name, "sound": false }));
                    self.damage.push(error);
                }
            }
        }
        Ok(())
    }
}

/// Returns the file of a damaged page, if the error names one.
pub fn damaged_file(error: &cairn_sql::Error) -> Option<&Path> {
    match error.source()?.downcast_ref()? {
        cairn_table::Error::Corruption { file, .. }
        | cairn_table::Error::Pool(cairn_table::PoolError::Corruption { file, .. }) => Some(file),
        _ => None,
    }
}

fn count_rows(connection: &mut cairn_sql::Connection, table: &str) -> Result<u64> {
    let mut rows = connection.query(&format!("SELECT * FROM {table}"), &[])?;
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Runs `cairn sql vacuum`.
pub fn vacuum(fs: &Arc<dyn Fs>, args: &ReportedArgs) -> Result<Outcome> {
    let database = open_existing(fs, &args.database)?;
    let before = fs.metadata(&args.database)?.len;
    database.connect().execute("VACUUM", &[])?;
    database.checkpoint()?;
    let after = fs.metadata(&args.database)?.len;
    let mut out = Output::new();
    if args.json {
        out.json(&json!({ "store": args.database.display().to_string(), "bytes_before": before, "bytes_after": after }))?;
    } else {
        out.line(format!("{} before, {} now", human(before), human(after)))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Runs `cairn sql dump`.
pub fn dump(fs: &Arc<dyn Fs>, args: &DumpArgs) -> Result<Outcome> {
    let path = file_of(args.out.as_deref());
    refuse_json_of_stdout(args.json, path)?;
    let database = open_existing(fs, &args.database)?;
    let mut out = Sink::Export(Target::open(fs, path)?);
    let rows = dump::dump(&mut out, &mut database.connect(), None)?;
    out.finish()?;
    let Some(path) = path else { return Ok(Outcome::Done) };
    let mut out = Output::new();
    let file = path.display();
    if args.json {
        let (store, file) = (args.database.display().to_string(), file.to_string());
        out.json(&json!({ "store": store, "file": file, "rows": rows }))?;
    } else {
        out.line(format!("wrote {file}: {}", print::counted_rows(rows)))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}
