//! The simple protocol: a text with statements in, rows as text out.

use std::io::{Read, Write};

use cairn_sql::{CommandTag, Outcome, Statement, StatementKind};

use crate::codec::backend;
use crate::codec::frontend::{self, Message};
use crate::error::Failure;
use crate::types::field_of;

use super::message_error::MessageError;
use super::portal::ResultFormats;
use super::{Session, copy, rows};

impl<S: Read + Write> Session<S> {
    /// Runs the statements of a Query message. Several statements are one transaction, unless they
    /// begin or end transactions themselves.
    pub(super) fn query(&mut self) -> Result<(), MessageError> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let done = match frontend::decode(b'Q', self.wire.body()) {
            Ok(Message::Query(sql)) => {
                text.push_str(sql);
                self.run_text(&text)
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
        if text.capacity() <= 1 << 20 {
            self.text = text;
        }
        done
    }

    fn run_text(&mut self, text: &str) -> Result<(), MessageError> {
        self.check_statement_length(text.len())?;
        // As in PostgreSQL, a Query drops the unnamed portal.
        self.drop_unnamed_portal();
        let mut has_run = false;
        let alone = text.trim_end_matches([';', ' ', '\n', '\r', '\t']);
        if !alone.contains(';') {
            has_run = self.run_one(alone, false)?;
        } else {
            for part in cairn_sql::split(text)? {
                has_run |= self.run_one(part, true).map_err(|error| shifted(error, text, part))?;
            }
        }
        if !has_run {
            backend::empty_query_response(&mut self.wire.out);
        }
        if self.is_implicit {
            self.is_implicit = false;
            self.connection.end_implicit()?;
        }
        self.drop_portals();
        self.ready();
        Ok(())
    }

    /// Runs one statement. Returns false if it is empty.
    fn run_one(&mut self, sql: &str, is_among_several: bool) -> Result<bool, MessageError> {
        if let Some(tag) = self.forget_prepared(sql) {
            backend::command_complete(&mut self.wire.out, tag);
            return Ok(true);
        }
        let statement = self.connection.prepare(sql)?;
        let kind = statement.kind();
        if kind == StatementKind::Empty {
            return Ok(false);
        }
        self.check_declared(&statement)?;
        if is_among_several {
            self.begin_implicit(kind)?;
        }
        self.run_statement(&statement)?;
        self.notices();
        Ok(true)
    }

    fn run_statement(&mut self, statement: &Statement) -> Result<(), MessageError> {
        let Session { wire, connection, limits, observer, .. } = self;
        let (tag, count) = match connection.run(statement, &[])? {
            Outcome::Done(tag) => counted(tag),
            Outcome::Rows(mut rows) => {
                let columns = rows::columns_of(statement, &rows);
                // A cursor may have been declared BINARY, and only the rows say so.
                let is_binary = rows.is_binary();
                let fields = columns.iter().map(|column| field_of(column, is_binary));
                backend::row_description(&mut wire.out, fields);
                let formats = ResultFormats::All { is_binary };
                while let Some(row) = rows.next()? {
                    rows::data_row(&mut wire.out, &columns, &formats, &row)?;
                    wire.flush_if_full()?;
                }
                (rows.tag(), rows.count())
            }
            Outcome::CopyIn(copy) => counted(copy::copy_in(wire, copy, limits.message_bytes_max)?),
            Outcome::CopyOut(copy) => counted(copy::copy_out(wire, copy)?),
        };
        observer.tell(statement.sql(), count);
        backend::command_complete(&mut wire.out, &tag);
        self.forget_all(&tag);
        Ok(())
    }
}

/// Returns a tag and its number of rows.
fn counted(tag: CommandTag) -> (CommandTag, u64) {
    let rows = tag.rows.unwrap_or(0);
    (tag, rows)
}

/// Shifts the position of an error so that it counts from the start of the whole text.
fn shifted(error: MessageError, text: &str, part: &str) -> MessageError {
    let MessageError::Failure(Failure { position: Some(position), .. }) = error else { return error };
    let before = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.get(..before).map_or(0, |before| before.chars().count());
    match error {
        MessageError::Failure(failure) => {
            MessageError::Failure(Failure { position: Some(position + before), ..failure })
        }
        other => other,
    }
}
