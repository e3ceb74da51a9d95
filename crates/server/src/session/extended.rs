//! The extended protocol except Execute: creates, describes and closes statements and portals.

use std::io::{Read, Write};
use std::sync::Arc;

use cairn_sql::{CommandTag, Connection, Datum, Statement, StatementKind, TransactionStatus};

use crate::codec::backend;
use crate::codec::frontend::{self, Bind, Message, Target};
use crate::error::{Failure, ProtocolError};
use crate::sqlstate;
use crate::types::{self, binary, field_of, text};

use super::Session;
use super::message_error::MessageError;
use super::portal::{Portal, Prepared, Progress, ResultFormats, UnscaledParameters};

/// The error for a message that was decoded as another kind than its tag. Cannot happen.
const OTHER: ProtocolError = ProtocolError::Malformed { message: "extended query" };

impl<S: Read + Write> Session<S> {
    pub(super) fn parse(&mut self) -> Result<(), MessageError> {
        let Message::Parse(parse) = frontend::decode(b'P', self.wire.body())? else {
            return Err(OTHER.into());
        };
        self.check_statement_length(parse.sql.len())?;
        if !parse.name.is_empty() {
            if self.statements.contains_key(parse.name) {
                let message = format!("prepared statement {:?} already exists", parse.name);
                return Err(Failure::new(sqlstate::DUPLICATE_PREPARED_STATEMENT, message).into());
            }
            self.check_count(self.statements.len(), "prepared statements")?;
        }
        let given: Vec<u32> = parse.types().collect();
        let kinds: Vec<_> = given.iter().map(|given| types::kind_of(*given)).collect();
        let mut statement = self.connection.prepare_typed(parse.sql, &kinds)?;
        let unscaled = UnscaledParameters::of(&statement, &given, &kinds);
        if let Some(unscaled) = &unscaled {
            statement = self.connection.prepare_typed(parse.sql, &unscaled.kinds)?;
        }
        let prepared = Arc::new(Prepared::new(statement, &given, unscaled));
        if parse.name.is_empty() {
            self.unnamed = Some(prepared);
        } else {
            self.statements.insert(parse.name.to_owned(), prepared);
        }
        backend::parse_complete(&mut self.wire.out);
        Ok(())
    }

    pub(super) fn bind(&mut self) -> Result<(), MessageError> {
        let Message::Bind(bind) = frontend::decode(b'B', self.wire.body())? else { return Err(OTHER.into()) };
        let prepared = self.find_statement(bind.statement)?;
        self.connection.revalidate(&prepared.statement)?;
        let prepared = match with_scales(&mut self.connection, &bind, &prepared)? {
            Some(exact) => Arc::new(exact),
            // Another cursor or statement may have that name by now.
            None if prepared.statement.kind() == StatementKind::Fetch => {
                let statement = self.connection.prepare(prepared.statement.sql())?;
                Arc::new(prepared.again(statement, None))
            }
            None => prepared,
        };
        if !bind.portal.is_empty() {
            if self.is_taken(bind.portal) {
                return Err(taken(bind.portal).into());
            }
            self.check_count(self.portals.len(), "portals")?;
        }
        let formats = ResultFormats::new(bind.result_formats);
        if !formats.fits(prepared.statement.columns().len()) {
            let message = format!(
                "bind message has {} result formats but query has {} columns",
                bind.result_formats.len(),
                prepared.statement.columns().len()
            );
            return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, message).into());
        }
        let parameters = parameters(&bind, &prepared)?;
        let portal = Portal { prepared, parameters, formats, progress: Progress::Ready, given: 0 };
        if bind.portal.is_empty() {
            self.drop_unnamed_portal();
            self.unnamed_portal = Some(portal);
        } else {
            let gone = self.portals.insert(bind.portal.to_owned(), portal);
            gone.iter().for_each(|portal| portal.report_unfinished(&self.observer));
        }
        backend::bind_complete(&mut self.wire.out);
        Ok(())
    }

    pub(super) fn describe(&mut self) -> Result<(), MessageError> {
        let Message::Describe(target, name) = frontend::decode(b'D', self.wire.body())? else {
            return Err(OTHER.into());
        };
        let (prepared, formats) = match target {
            Target::Statement => (self.find_statement(name)?, ResultFormats::TEXT),
            Target::Portal => {
                match (self.portal(name), self.connection.cursor(name)) {
                    (Some(portal), _) => (Arc::clone(&portal.prepared), portal.formats.clone()),
                    // A cursor created by DECLARE.
                    (None, Some(columns)) => {
                        let fields = columns.iter().map(|column| field_of(column, false));
                        backend::row_description(&mut self.wire.out, fields);
                        return Ok(());
                    }
                    (None, None) => return Err(no_portal(name).into()),
                }
            }
        };
        let out = &mut self.wire.out;
        if target == Target::Statement {
            backend::parameter_description(out, &prepared.types);
        }
        let columns = prepared.statement.columns();
        let gives_rows = match prepared.statement.kind() {
            StatementKind::Query => true,
            // COPY sends its rows as data without a description.
            StatementKind::Copy => false,
            _ => !columns.is_empty(),
        };
        if !gives_rows {
            backend::no_data(out);
        } else {
            let fields = columns.iter().enumerate();
            backend::row_description(out, fields.map(|(at, column)| field_of(column, formats.is_binary(at))));
        }
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), MessageError> {
        let Message::Close(target, name) = frontend::decode(b'C', self.wire.body())? else {
            return Err(OTHER.into());
        };
        // Closing a statement or portal that does not exist is not an error.
        match (target, name.is_empty()) {
            (Target::Statement, true) => self.unnamed = None,
            (Target::Statement, false) => _ = self.statements.remove(name),
            (Target::Portal, true) => self.drop_unnamed_portal(),
            (Target::Portal, false) => {
                if let Some(portal) = self.portals.remove(name) {
                    portal.report_unfinished(&self.observer);
                }
                self.connection.close_cursor(name);
            }
        }
        backend::close_complete(&mut self.wire.out);
        Ok(())
    }

    /// Whether a portal or a cursor has this name. A portal that has returned rows ends with its
    /// cursor, which CLOSE or a rollback to a savepoint may have closed.
    fn is_taken(&self, name: &str) -> bool {
        let is_begun = |portal: &Portal| matches!(portal.progress, Progress::Begun(_));
        let has_portal = self.portals.get(name).is_some_and(|portal| !is_begun(portal));
        has_portal || self.connection.cursor(name).is_some()
    }

    /// Returns an existing portal.
    pub(super) fn portal(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed_portal.as_ref() } else { self.portals.get(name) }
    }

    /// Checks that the name in a DECLARE is free. The SQL engine does not know portals that have
    /// not run yet.
    ///
    /// Errors: 42P03.
    pub(super) fn check_declared(&self, statement: &Statement) -> Result<(), Failure> {
        // In a failed transaction, that error comes first.
        match statement.declares() {
            Some(name) if self.connection.status() != TransactionStatus::Failed && self.is_taken(name) => {
                Err(taken(name))
            }
            _ => Ok(()),
        }
    }

    fn find_statement(&self, name: &str) -> Result<Arc<Prepared>, Failure> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.statements.get(name) };
        found.cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement {name:?} does not exist"),
            };
            let routine = Some("FetchPreparedStatement");
            Failure { routine, ..Failure::new(sqlstate::INVALID_SQL_STATEMENT_NAME, message) }
        })
    }

    fn check_count(&self, count: usize, what: &str) -> Result<(), Failure> {
        let most = self.limits.prepared_max;
        if count < most {
            return Ok(());
        }
        Err(Failure::new(
            sqlstate::PROGRAM_LIMIT_EXCEEDED,
            format!("too many {what}: a session may have at most {most}"),
        ))
    }

    /// Runs DEALLOCATE for a statement that was prepared by the protocol, which the SQL engine does
    /// not know. Returns `None` for all other texts, and in a failed transaction, in which the SQL
    /// engine refuses it.
    pub(super) fn forget_prepared(&mut self, sql: &str) -> Option<&'static str> {
        let mut words = sql.split_ascii_whitespace();
        if !words.next().is_some_and(|first| first.eq_ignore_ascii_case("deallocate"))
            || self.connection.status() == TransactionStatus::Failed
        {
            return None;
        }
        let mut name = words.next().unwrap_or_default();
        if name.eq_ignore_ascii_case("prepare") {
            name = words.next().unwrap_or_default();
        }
        if name.eq_ignore_ascii_case("all") {
            return None;
        }
        let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let folded = bare.map_or_else(|| name.to_lowercase(), |name| name.replace("\"\"", "\""));
        self.statements.remove(&folded).map(|_| "DEALLOCATE")
    }

    /// After an SQL statement that discards all prepared statements, discards those of the protocol
    /// as well. Portals need no handling: DISCARD ALL runs outside a transaction, where no portal
    /// is left after it.
    pub(super) fn forget_all(&mut self, done: &CommandTag) {
        if matches!(&*done.verb, "DEALLOCATE ALL" | "DISCARD ALL") {
            self.statements.clear();
        }
        if done.verb == "DISCARD ALL" {
            self.unnamed = None;
        }
    }
}

fn taken(name: &str) -> Failure {
    Failure::new(sqlstate::DUPLICATE_CURSOR, format!("cursor {name:?} already exists"))
}

/// Returns the error for a portal that does not exist.
pub(super) fn no_portal(name: &str) -> Failure {
    Failure::new(sqlstate::INVALID_CURSOR_NAME, format!("portal {name:?} does not exist"))
}

/// Prepares a statement again for the scales of its parameter values, if it was prepared for
/// others.
fn with_scales(
    connection: &mut Connection,
    bind: &Bind<'_>,
    prepared: &Prepared,
) -> Result<Option<Prepared>, Failure> {
    let Some(unscaled) = &prepared.unscaled else { return Ok(None) };
    let values: Vec<_> = bind.parameters().collect();
    let scale = |at: usize| {
        let value = values.get(at).copied().flatten()?;
        types::numeric::scale_of(value, bind.parameter_formats.is_binary(at))
    };
    let exact = unscaled.with_scales(scale);
    if exact.kinds == unscaled.kinds {
        return Ok(None);
    }
    let statement = connection.prepare_typed(prepared.statement.sql(), &exact.kinds)?;
    Ok(Some(prepared.again(statement, Some(exact))))
}

fn parameters(bind: &Bind<'_>, prepared: &Prepared) -> Result<Vec<Datum>, Failure> {
    let kinds = prepared.statement.parameters();
    if usize::from(bind.parameter_count) != kinds.len() {
        let message = format!(
            "bind message supplies {} parameters, but prepared statement {:?} requires {}",
            bind.parameter_count,
            bind.statement,
            kinds.len()
        );
        return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, message));
    }
    let types = prepared.types.iter();
    let each = bind.parameters().zip(kinds.iter().zip(types)).enumerate();
    each.map(|(at, (bytes, (kind, type_oid)))| match bytes {
        None => Ok(Datum::Null),
        Some(bytes) if bind.parameter_formats.is_binary(at) => {
            prepared.check_binary(at)?;
            binary::decode(*type_oid, kind, bytes)
        }
        Some(bytes) => match types::kind_of(*type_oid) {
            // The client may have declared another type than the statement uses: the text has the
            // client's type.
            Some(told) if (told.kind, told.is_list) != (kind.kind, kind.is_list) => {
                text::decode(&told, bytes)
            }
            _ => text::decode(kind, bytes),
        },
    })
    .collect()
}
