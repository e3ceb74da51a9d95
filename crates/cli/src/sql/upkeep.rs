//! What a database needs from time to time.

use std::sync::Arc;

use cairn_vfs::Fs;

use crate::args::shell::{BackupArgs, DatabaseArgs};
use crate::error::{Error, Result};
use crate::output::Outcome;

use super::catalog::tables_of;
use super::open::open_existing;
use super::sink::Sink;
use super::{dump, print};

/// `cairn sql backup`.
pub fn backup(fs: &Arc<dyn Fs>, args: &BackupArgs) -> Result<Outcome> {
    if fs.exists(&args.to)? {
        return Err(Error::usage(format!("{}: is there already", args.to.display())));
    }
    open_existing(fs, &args.database)?.backup(&args.to)?;
    Ok(Outcome::Done)
}

/// `cairn sql check`.
pub fn check(fs: &Arc<dyn Fs>, args: &DatabaseArgs) -> Result<Outcome> {
    let database = open_existing(fs, &args.database)?;
    let mut connection = database.connect();
    let catalog = super::catalog::catalog(&mut connection)?;
    let mut out = Sink::stdout();
    let mut damaged = 0;
    for table in tables_of(&catalog) {
        let name = super::literal::qualified(&table.def().schema, &table.def().name);
        // Every row is read and every checksum on the way looked at.
        match count_rows(&mut connection, &name) {
            Ok(rows) => out.line(format_args!("{name}: {} sound", print::counted_rows(rows)))?,
            Err(error) => {
                damaged += 1;
                out.line(format_args!("{name}: {error}"))?;
            }
        }
    }
    drop(connection);
    if damaged == 0 {
        // What no query looks at: indexes against their tables, and pages that two have or nobody.
        let report = database.check()?;
        let (used, free, lost) = (report.used_pages, report.free_pages, report.lost_pages);
        out.line(format_args!(
            "{} index entries sound; {used} pages used, {free} free, {lost} lost",
            report.entries
        ))?;
    }
    out.flush()?;
    match damaged {
        0 => Ok(Outcome::Done),
        count => Err(Error::Damaged(crate::output::counted(count, "table is damaged", "tables are damaged"))),
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
pub fn vacuum(fs: &Arc<dyn Fs>, args: &DatabaseArgs) -> Result<Outcome> {
    let before = fs.metadata(&args.database)?.len;
    let database = open_existing(fs, &args.database)?;
    database.connect().execute("VACUUM", &[])?;
    database.checkpoint()?;
    let after = fs.metadata(&args.database)?.len;
    let mut out = Sink::stdout();
    out.line(format_args!("{before} bytes before, {after} after"))?;
    out.flush()?;
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
