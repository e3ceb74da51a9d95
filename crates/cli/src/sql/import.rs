//! Imports files into tables, and exports tables to files.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use cairn_rows::csv::{Dialect, Failure, Reader, Row};
use cairn_rows::mark;
use cairn_sql::{CommandTag, Connection, Outcome, quote_ident};
use cairn_vfs::{Fs, OpenOptions};

use crate::error::{Error, Result};
use crate::input::stream::{is_pipe, open_in_order};
use crate::interrupt::StatementInterrupt;
use crate::place;
use crate::progress::InputProgress;

use super::catalog::{catalog, parse_name};
use super::command::Import;
use super::literal::qualified;
use super::sink::Sink;

const PIECE_BYTES: usize = 256 << 10;

/// Runs `.import`: loads a CSV file into a table, which is created with text columns if it does not
/// exist. Either all rows are imported or none.
pub fn import(
    fs: &Arc<dyn Fs>,
    connection: &mut Connection,
    import: &Import,
    asked: &StatementInterrupt,
) -> Result<CommandTag> {
    let (schema, table) = parse_name(&import.table);
    let schema = schema.unwrap_or_else(|| "public".to_owned());
    let separator = if import.has_tabs { b'\t' } else { b',' };
    let is_there = catalog(connection)?.has_name(&schema, &table);
    let target = qualified(&schema, &table);
    let is_alone = !is_there && connection.status() == cairn_sql::TransactionStatus::Idle;
    if is_alone {
        connection.execute("BEGIN", &[])?;
    }
    let done = (|| {
        if !is_there {
            let columns = header(fs, Path::new(&import.file), separator)?;
            let columns: Vec<String> =
                columns.iter().map(|column| format!("{} text", quote_ident(column))).collect();
            connection.execute(&format!("CREATE TABLE {target} ({})", columns.join(", ")), &[])?;
        }
        let header = if import.has_header || !is_there { ", HEADER" } else { "" };
        let delimiter = if import.has_tabs { ", DELIMITER E'\\t'" } else { "" };
        let sql = format!("COPY {target} FROM STDIN WITH (FORMAT csv{header}{delimiter})");
        rows_in(fs, connection, &sql, Path::new(&import.file), asked, true)
    })();
    if is_alone {
        connection.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }, &[])?;
    }
    done
}

/// Reads the column names from the first row, with the same parser as the other rows.
fn header(fs: &Arc<dyn Fs>, path: &Path, separator: u8) -> Result<Vec<String>> {
    let (stream, _) = open_in_order(fs, path, Arc::default())?;
    let refuse = |what: String| Error::Input {
        input: path.display().to_string(),
        place: Some("line 1".to_owned()),
        what,
    };
    let mut reader = Reader::new(BufReader::new(stream), Dialect { separator, quotes: true });
    let mut row = Row::default();
    reader.read(&mut row).map_err(|failure: Failure| refuse(failure.to_string()))?;
    let name = |name: &[u8]| std::str::from_utf8(name).map(|name| name.trim().to_owned());
    let names = row.iter().map(name).collect::<std::result::Result<Vec<_>, _>>();
    let names = names.map_err(|_| refuse("not text: expected names of columns in UTF-8".to_owned()))?;
    if names.is_empty() || names.iter().any(String::is_empty) {
        return Err(refuse("expected names of columns".to_owned()));
    }
    Ok(names)
}

/// Runs `COPY ... FROM STDIN` with a file as standard input.
pub fn copy_in(
    fs: &Arc<dyn Fs>,
    connection: &mut Connection,
    sql: &str,
    path: &Path,
    asked: &StatementInterrupt,
) -> Result<CommandTag> {
    rows_in(fs, connection, sql, path, asked, false)
}

/// The same, optionally skipping a byte order mark. COPY treats it as part of the first value, as
/// PostgreSQL does, but `.import` of a file from a spreadsheet should not.
fn rows_in(
    fs: &Arc<dyn Fs>,
    connection: &mut Connection,
    sql: &str,
    path: &Path,
    asked: &StatementInterrupt,
    skips_mark: bool,
) -> Result<CommandTag> {
    let refuse = |error: io::Error| Error::Input {
        input: path.display().to_string(),
        place: None,
        what: error.to_string(),
    };
    let statement = connection.prepare(sql)?;
    let Outcome::CopyIn(mut copy) = connection.run(&statement, &[])? else {
        return Err(Error::usage(format!("{sql:?} takes no rows")));
    };
    if copy.is_parquet() && !is_pipe(path) {
        place::expect_file(fs, path)?;
        let file = fs.open(path, OpenOptions::read())?;
        return copy.read_file(file.into()).map_err(|error| of_file(path, error));
    }
    let counter = Arc::default();
    let (stream, length) = open_in_order(fs, path, Arc::clone(&counter))?;
    let mut progress = InputProgress::counting(length, counter);
    let mut reader = BufReader::with_capacity(PIECE_BYTES, stream);
    if skips_mark && let Some(head) = mark::skip(&mut reader).map_err(refuse)? {
        copy.write(head).map_err(|error| of_file(path, error))?;
    }
    loop {
        asked.check(|| "nothing is imported".to_owned())?;
        let piece = reader.fill_buf().map_err(refuse)?;
        if piece.is_empty() {
            return copy.finish().map_err(|error| of_file(path, error));
        }
        copy.write(piece).map_err(|error| of_file(path, error))?;
        let count = piece.len();
        reader.consume(count);
        progress.piece();
    }
}

/// Adds the file to the error of a row, whose number is in the error's detail.
fn of_file(path: &Path, error: cairn_sql::Error) -> Error {
    let more = [error.detail(), error.hint()].into_iter().flatten().map(|more| format!(" ({more})"));
    let what = format!("{error}{}", more.collect::<String>());
    Error::Input { input: path.display().to_string(), place: None, what }
}

/// Runs `COPY ... TO STDOUT` into a file, which is replaced once all rows are written. Errors of
/// the statement are reported before the file is touched.
pub fn copy_out(fs: &Arc<dyn Fs>, connection: &mut Connection, sql: &str, path: &Path) -> Result<CommandTag> {
    let statement = connection.prepare(sql)?;
    let Outcome::CopyOut(mut copy) = connection.run(&statement, &[])? else {
        return Err(Error::usage(format!("{sql:?} gives no rows")));
    };
    let mut out = Sink::file(fs, path)?;
    while let Some(bytes) = copy.next()? {
        out.bytes(&bytes)?;
    }
    let tag = copy.tag();
    drop(copy);
    out.finish()?;
    Ok(tag)
}
