//! Rows of files into tables, and out of them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use cairn_sql::{CommandTag, Connection, Outcome, quote_ident};
use cairn_vfs::Fs;

use crate::error::{Error, Result};
use crate::input::stream::open_in_order;
use crate::interrupt::Asked;
use crate::progress::InputProgress;

use super::catalog::{catalog, parse_name};
use super::command::Import;
use super::literal::qualified;
use super::sink::Sink;

const PIECE_BYTES: usize = 256 << 10;

/// `.import`: a CSV file into a table, which is made of texts if there is none. All rows, or none.
pub fn import(
    fs: &Arc<dyn Fs>,
    connection: &mut Connection,
    import: &Import,
    asked: &Asked,
) -> Result<CommandTag> {
    let (schema, table) = parse_name(&import.table);
    let schema = schema.unwrap_or_else(|| "public".to_owned());
    let separator = if import.has_tabs { '\t' } else { ',' };
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
        copy_in(fs, connection, &sql, Path::new(&import.file), asked)
    })();
    if is_alone {
        connection.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }, &[])?;
    }
    done
}

/// Names of columns from the first line.
fn header(fs: &Arc<dyn Fs>, path: &Path, separator: char) -> Result<Vec<String>> {
    let (stream, _) = open_in_order(fs, path, Arc::default())?;
    let mut line = String::new();
    let refuse = |what: String| Error::Input {
        input: path.display().to_string(),
        place: Some("line 1".to_owned()),
        what,
    };
    BufReader::new(stream.take(1 << 20)).read_line(&mut line).map_err(|error| refuse(error.to_string()))?;
    let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
    let names: Vec<String> =
        line.trim_end().split(separator).map(|name| name.trim().trim_matches('"').to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(refuse("expected names of columns".to_owned()));
    }
    Ok(names)
}

/// `COPY ... FROM STDIN` with a file for standard input.
pub fn copy_in(
    fs: &Arc<dyn Fs>,
    connection: &mut Connection,
    sql: &str,
    path: &Path,
    asked: &Asked,
) -> Result<CommandTag> {
    let statement = connection.prepare(sql)?;
    let counter = Arc::default();
    let (mut stream, length) = open_in_order(fs, path, Arc::clone(&counter))?;
    let mut progress = InputProgress::counting(length, counter);
    let Outcome::CopyIn(mut copy) = connection.run(&statement, &[])? else {
        return Err(Error::usage(format!("{sql:?} takes no rows")));
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        asked.check(|| "nothing is imported".to_owned())?;
        let count = stream.read(&mut piece).map_err(|error| Error::Input {
            input: path.display().to_string(),
            place: None,
            what: error.to_string(),
        })?;
        if count == 0 {
            return Ok(copy.finish()?);
        }
        copy.write(piece.get(..count).unwrap_or_default())?;
        progress.piece();
    }
}

/// `COPY ... TO STDOUT` into a sink.
pub fn copy_out(out: &mut Sink, connection: &mut Connection, sql: &str) -> Result<CommandTag> {
    let statement = connection.prepare(sql)?;
    let Outcome::CopyOut(mut copy) = connection.run(&statement, &[])? else {
        return Err(Error::usage(format!("{sql:?} gives no rows")));
    };
    while let Some(bytes) = copy.next()? {
        out.bytes(&bytes)?;
    }
    Ok(copy.tag())
}
