//! Plans and starts COPY statements.

use std::path::PathBuf;

use cairn_vfs::sync::Arc;
use cairn_vfs::{AppendWriter, File, OpenOptions, OutputFile};
use sqlparser::ast::{CopySource, CopyTarget, Ident, Statement as Tree};

use super::read::Reader;
use super::write::Writer;
use super::{Format, Options, columnar};
use crate::column::Column;
use crate::direct::{Binder, Insert, unsupported};
use crate::error::{Error, Result};
use crate::session::{GeneralQuery, Session};
use crate::sqlstate::{INTERNAL_ERROR, IO_ERROR, UNDEFINED_FILE};
use crate::syntax::{Plain, one};

/// A planned COPY.
#[derive(Debug)]
pub(crate) struct Copy {
    kind: Kind,
    options: Options,
    /// A file of the server; `None` for the client's stream.
    file: Option<PathBuf>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each statement")]
enum Kind {
    From(Arc<Insert>),
    To { query: Box<dyn GeneralQuery>, columns: Vec<Column> },
}

/// A COPY after its start.
#[derive(Debug)]
pub(crate) enum Started {
    In(Box<Reader>),
    Out(Box<Writer>),
    Done(u64),
}

impl Copy {
    /// Plans a COPY. Also returns the columns of COPY TO.
    ///
    /// Errors: tables, columns and options that do not exist.
    pub fn plan(session: &mut Session, tree: &Tree) -> Result<(Copy, Vec<Column>)> {
        let Tree::Copy { source, to, target, options, legacy_options, .. } = tree else {
            return Err(Error::new(INTERNAL_ERROR, "internal error: expected a COPY statement"));
        };
        let options_of = |names: &[&str]| Options::parse(options, legacy_options, names, !to);
        let file = match target {
            CopyTarget::Stdin | CopyTarget::Stdout => None,
            CopyTarget::File { filename } => Some(PathBuf::from(filename)),
            CopyTarget::Program { .. } => return Err(Error::unsupported("COPY with a program")),
        };
        let query = match source {
            CopySource::Query(query) => query.to_string(),
            CopySource::Table { table_name, columns } if *to => {
                let table = session.table_named(table_name)?;
                let names: Vec<String> = if columns.is_empty() {
                    table
                        .def()
                        .columns
                        .iter()
                        .map(|column| Ident::with_quote('"', &column.name).to_string())
                        .collect()
                } else {
                    columns.iter().map(ToString::to_string).collect()
                };
                format!("SELECT {} FROM {table_name}", names.join(", "))
            }
            CopySource::Table { table_name, columns } => {
                let columns = columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let columns = if columns.is_empty() { columns } else { format!("({columns})") };
                let insert = insert(session, &format!("INSERT INTO {table_name} {columns} SELECT NULL"))?;
                let places = insert.columns.iter().filter_map(|&at| insert.table.def().columns.get(at));
                let options = options_of(&places.map(|column| column.name.as_str()).collect::<Vec<_>>())?;
                return Ok((Copy { kind: Kind::From(Arc::new(insert)), options, file }, Vec::new()));
            }
        };
        let parsed = one(&query)?;
        let Plain::Tree(tree) = &*parsed.statement else { return Err(Error::unsupported("COPY of this")) };
        let (query, _, columns) = session.plan_query(tree, &[])?;
        let options = options_of(&columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>())?;
        if options.format == Format::Parquet {
            columnar::check_names(&columns)?;
        }
        Ok((Copy { kind: Kind::To { query, columns: columns.clone() }, options, file }, columns))
    }

    /// Whether it changes a table.
    pub fn writes(&self) -> bool {
        matches!(self.kind, Kind::From(_))
    }

    /// Runs it to the end if it names a file; otherwise starts the transfer with the client.
    ///
    /// Errors: those of the file, the rows and the table.
    pub fn start(&self, session: &mut Session) -> Result<Started> {
        let is_parquet = self.options.format == Format::Parquet;
        match (&self.kind, &self.file) {
            (Kind::From(insert), None) => {
                Ok(Started::In(Box::new(Reader::new(Arc::clone(insert), &self.options)?)))
            }
            (Kind::From(insert), Some(path)) => {
                let file = session.shared.fs.open(path, OpenOptions::read()).map_err(io)?;
                let rows = match is_parquet {
                    true => columnar::read(session, insert, file.into())?,
                    false => Reader::new(Arc::clone(insert), &self.options)?.load(session, pieces(file))?,
                };
                Ok(Started::Done(rows))
            }
            (Kind::To { query, columns }, None) => {
                let batches = query.run(session, &[])?;
                Ok(Started::Out(Box::new(Writer::new(batches, columns, &self.options)?)))
            }
            (Kind::To { query, columns }, Some(path)) => {
                let writer = Writer::new(query.run(session, &[])?, columns, &self.options)?;
                // An existing file stays in place until all rows are written.
                let output = OutputFile::create(&session.shared.fs, path).map_err(io)?;
                let rows = write_file(output.file(), writer)?;
                output.commit().map_err(io)?;
                Ok(Started::Done(rows))
            }
        }
    }
}

/// Plans the INSERT behind COPY FROM, with its columns, defaults and checks.
fn insert(session: &mut Session, text: &str) -> Result<Insert> {
    let catalog = Arc::clone(session.transaction()?.view().catalog());
    let mut binder =
        Binder { catalog: &catalog, search_path: &session.context.settings.search_path, params: Vec::new() };
    let parsed = one(text)?;
    let Plain::Tree(Tree::Insert(insert)) = &*parsed.statement else {
        return Err(Error::unsupported("COPY into this relation"));
    };
    let (plan, _) = Insert::plan(insert, &mut binder)
        .map_err(|failure| unsupported(failure, "COPY into this relation"))?;
    Ok(plan)
}

fn io(error: cairn_vfs::Error) -> Error {
    let sqlstate = if error.kind() == cairn_vfs::ErrorKind::NotFound { UNDEFINED_FILE } else { IO_ERROR };
    Error::new(sqlstate, error.to_string())
}

/// Reads the file in pieces.
fn pieces(file: Box<dyn File>) -> impl Iterator<Item = Result<Vec<u8>>> {
    const PIECE: usize = 1 << 20;
    let mut offset = 0;
    std::iter::from_fn(move || {
        let mut piece = vec![0; PIECE];
        match file.read_at(&mut piece, offset) {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                offset += read as u64;
                Some(Ok(piece))
            }
            Err(error) => Some(Err(io(error))),
        }
    })
}

fn write_file(file: &Arc<dyn File>, mut writer: Writer) -> Result<u64> {
    const BUFFER: usize = 1 << 20;
    let mut to = AppendWriter::new(Arc::clone(file), 0, BUFFER);
    while let Some(bytes) = writer.next()? {
        to.write_all(&bytes).map_err(io)?;
    }
    to.flush().map_err(io)?;
    Ok(writer.rows)
}
