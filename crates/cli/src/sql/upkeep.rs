//! What a database needs from time to time.

use std::sync::Arc;

use cairn_vfs::Fs;
use serde_json::json;

use crate::args::shell::{BackupArgs, DatabaseArgs, ReportedArgs};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, human};
use crate::place;

use super::catalog::tables_of;
use super::open::open_existing;
use super::sink::Sink;
use super::{dump, print};

/// `cairn sql backup`.
pub fn backup(fs: &Arc<dyn Fs>, args: &BackupArgs) -> Result<Outcome> {
    place::expect_nothing(fs, &args.to)?;
    open_existing(fs, &args.database)?.backup(&args.to)?;
    Ok(Outcome::Done)
}

/// `cairn sql verify`.
pub fn verify(fs: &Arc<dyn Fs>, args: &ReportedArgs) -> Result<Outcome> {
    let database = open_existing(fs, &args.database)?;
    let mut connection = database.connect();
    let catalog = super::catalog::catalog(&mut connection)?;
    let mut out = Output::new();
    let (mut tables, mut damaged) = (Vec::new(), 0);
    for table in tables_of(&catalog) {
        let name = super::literal::qualified(&table.def().schema, &table.def().name);
        // Every row is read and every checksum on the way looked at.
        let (line, object) = match count_rows(&mut connection, &name) {
            Ok(rows) => (
                format!("{} sound", print::counted_rows(rows)),
                json!({ "table": name, "sound": true, "rows": rows }),
            ),
            Err(error) => {
                damaged += 1;
                (error.to_string(), json!({ "table": name, "sound": false, "error": error.to_string() }))
            }
        };
        if !args.json {
            out.line(format!("{name}: {line}"))?;
        }
        tables.push(object);
    }
    drop(connection);
    // What no query looks at: indexes against their tables, and pages that two have or nobody.
    let checked = if damaged == 0 { Some(database.check()?) } else { None };
    if args.json {
        out.json(&json!({
            "database": args.database.display().to_string(),
            "sound": damaged == 0,
            "tables": tables,
            "index_entries": checked.as_ref().map(|report| report.entries),
            "used_pages": checked.as_ref().map(|report| report.used_pages),
            "free_pages": checked.as_ref().map(|report| report.free_pages),
            "lost_pages": checked.as_ref().map(|report| report.lost_pages),
        }))?;
    } else if let Some(report) = checked {
        let (used, free, lost) = (report.used_pages, report.free_pages, report.lost_pages);
        let entries = report.entries;
        out.line(format!("{entries} index entries sound; {used} pages used, {free} free, {lost} lost"))?;
    }
    out.finish()?;
    match damaged {
        0 => Ok(Outcome::Done),
        count => Err(Error::Damaged(counted(count, "table is damaged", "tables are damaged"))),
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

/// `cairn sql vacuum`.
pub fn vacuum(fs: &Arc<dyn Fs>, args: &ReportedArgs) -> Result<Outcome> {
    let database = open_existing(fs, &args.database)?;
    let before = fs.metadata(&args.database)?.len;
    database.connect().execute("VACUUM", &[])?;
    database.checkpoint()?;
    let after = fs.metadata(&args.database)?.len;
    let mut out = Output::new();
    if args.json {
        out.json(&json!({ "database": args.database.display().to_string(), "bytes_before": before, "bytes_after": after }))?;
    } else {
        out.line(format!("{} before, {} now", human(before), human(after)))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// `cairn sql dump`.
pub fn dump(fs: &Arc<dyn Fs>, args: &DatabaseArgs) -> Result<Outcome> {
    let database = open_existing(fs, &args.database)?;
    let mut out = Sink::stdout();
    dump::dump(&mut out, &mut database.connect(), None)?;
    out.flush()?;
    Ok(Outcome::Done)
}
