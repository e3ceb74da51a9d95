//! Execute: runs a portal, all of it or some rows at a time.
//!
//! The rows of a suspended portal come out of the running statement as long as the client asks for nothing else. When it turns to
//! another statement first, the rows that are left are computed and kept, within a limit, as the connection can do one thing at a time.

use std::borrow::Cow;
use std::io::{Read, Write};

use cairn_sql::{Column, Outcome, Rows, StatementKind, TransactionStatus};

use crate::codec::HEADER_BYTES;
use crate::codec::backend::{self, Ready};
use crate::codec::frontend::{self, Message, Target};
use crate::error::Failure;
use crate::limits::Limits;
use crate::net::wire::{Lost, Wire};
use crate::registry::{Entry, State};
use crate::sqlstate;

use super::extended::no_portal;
use super::portal::{Kept, Portal, Progress, ResultFormats};
use super::{Session, Trouble, copy, rows};

impl<S: Read + Write> Session<S> {
    pub(super) fn execute(&mut self) -> Result<(), Trouble> {
        let Message::Execute(name, most) = frontend::decode(b'E', self.wire.body())? else {
            return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, "Execute is expected").into());
        };
        // It is out of the session while it runs, as the session is at work for it.
        if name.is_empty() {
            let mut portal = self.unnamed_portal.take().ok_or_else(|| no_portal(""))?;
            self.advance(&mut portal, "", most)?;
            self.unnamed_portal = Some(portal);
        } else {
            let (name, mut portal) = self.portals.remove_entry(name).ok_or_else(|| no_portal(name))?;
            self.advance(&mut portal, &name, most)?;
            self.portals.insert(name, portal);
        }
        Ok(())
    }

    fn advance(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), Trouble> {
        let kind = portal.prepared.statement.kind();
        match &mut portal.progress {
            Progress::Ready => {}
            Progress::Kept(kept) => {
                if send_kept(&mut self.wire, kept, most)? {
                    portal.progress = Progress::Done;
                }
                return Ok(());
            }
            Progress::Done if kind == StatementKind::Query => {
                backend::command_complete(&mut self.wire.out, "SELECT 0");
                return Ok(());
            }
            Progress::Done => {
                let message = format!("portal {name:?} cannot be run");
                return Err(Failure::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into());
            }
        }
        if kind == StatementKind::Empty {
            backend::empty_query_response(&mut self.wire.out);
            return Ok(());
        }
        if let Some(tag) = self.forget_prepared(portal.prepared.statement.sql())? {
            backend::command_complete(&mut self.wire.out, tag);
            return Ok(());
        }
        // A statement before Sync is alone: it commits by itself. What comes before others is one transaction with them.
        if self.wire.peek_tag() != Some(b'S') {
            self.begin_implicit(kind)?;
        }
        portal.progress = self.run_portal(portal, name, most)?;
        self.after(kind);
        Ok(())
    }

    fn run_portal(&mut self, portal: &Portal, name: &str, most: u32) -> Result<Progress, Trouble> {
        let is_open = !self.is_implicit && self.connection.status() == TransactionStatus::Open;
        let Session { wire, connection, limits, entry, observer, .. } = self;
        let sql = portal.prepared.statement.sql();
        let tag = match connection.run(&portal.prepared.statement, &portal.parameters)? {
            Outcome::Done(tag) => tag,
            Outcome::Rows(rows) => {
                let columns = rows::columns_of(&portal.prepared.statement, &rows);
                let formats = &portal.formats;
                let mut running = Running { wire, rows, columns, formats, limits, entry, name, is_open };
                let progress = running.go(most)?;
                observer.tell(sql, running.rows.tag().rows.unwrap_or(0));
                return Ok(progress);
            }
            Outcome::CopyIn(copy) => copy::copy_in(wire, copy, limits.message_bytes_max)?,
            Outcome::CopyOut(copy) => copy::copy_out(wire, copy)?,
        };
        observer.tell(sql, tag.rows.unwrap_or(0));
        backend::command_complete(&mut wire.out, tag);
        Ok(Progress::Done)
    }
}

/// A statement that gives rows, and what it gives them to.
struct Running<'a, 'c, S: Read + Write> {
    wire: &'a mut Wire<S>,
    rows: Rows<'c>,
    columns: Cow<'a, [Column]>,
    formats: &'a ResultFormats,
    limits: &'a Limits,
    entry: &'a Entry,
    name: &'a str,
    /// Whether the client has begun a transaction, so that Sync does not end the portal.
    is_open: bool,
}

/// What a client wants after it got as many rows as it had asked for.
enum Next {
    /// So many more; 0 for all.
    More(u32),
    /// No more.
    Enough,
    /// Something else first.
    Else,
}

impl<S: Read + Write> Running<'_, '_, S> {
    /// Sends rows, some at a time when `most` is not 0, until there are no more or the client wants something else.
    fn go(&mut self, mut most: u32) -> Result<Progress, Trouble> {
        let mut sent_before = 0;
        loop {
            let mut left = if most == 0 { u64::MAX } else { most.into() };
            while left > 0 {
                let Some(row) = self.rows.next()? else {
                    let mut tag = self.rows.tag();
                    // PostgreSQL counts the rows of the last Execute only.
                    tag.rows = tag.rows.map(|rows| rows - sent_before);
                    backend::command_complete(&mut self.wire.out, tag);
                    return Ok(Progress::Done);
                };
                rows::data_row(&mut self.wire.out, &self.columns, self.formats, &row);
                self.wire.flush_if_full()?;
                left -= 1;
            }
            sent_before += u64::from(most);
            backend::portal_suspended(&mut self.wire.out);
            match self.next()? {
                Next::More(count) => most = count,
                Next::Enough => return Ok(Progress::Done),
                Next::Else => return self.keep(),
            }
        }
    }

    /// Handles messages as long as they need nothing but this portal.
    fn next(&mut self) -> Result<Next, Trouble> {
        loop {
            if self.entry.doomed().is_some() {
                return Err(Lost::Gone.into());
            }
            self.entry.set_state(State::IdleInTransaction);
            self.wire.receive(self.limits.message_bytes_max)?;
            self.entry.set_state(State::Busy);
            match self.wire.message() {
                Ok(Message::Execute(name, most)) if name == self.name => return Ok(Next::More(most)),
                Ok(Message::Flush) => self.wire.flush()?,
                Ok(Message::Sync) if self.is_open => {
                    backend::ready_for_query(&mut self.wire.out, Ready::Transaction);
                }
                Ok(Message::Sync | Message::Terminate) => {
                    self.wire.put_back();
                    return Ok(Next::Enough);
                }
                Ok(Message::Close(Target::Portal, name)) if name == self.name => {
                    self.wire.put_back();
                    return Ok(Next::Enough);
                }
                _ => {
                    self.wire.put_back();
                    return Ok(Next::Else);
                }
            }
        }
    }

    /// Computes the rows that are left and keeps them.
    fn keep(&mut self) -> Result<Progress, Trouble> {
        let mut kept = Kept::default();
        while let Some(row) = self.rows.next()? {
            rows::data_row(&mut kept.messages, &self.columns, self.formats, &row);
            if kept.messages.len() > self.limits.portal_bytes_max {
                let message = format!(
                    "portal {:?} has more rows left than the {} bytes that are kept while another statement runs",
                    self.name, self.limits.portal_bytes_max
                );
                let hint = "Fetch all its rows first, or run the other statement in a session of its own.";
                return Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).with_hint(hint).into());
            }
        }
        kept.verb = self.rows.tag().verb.into_owned();
        Ok(Progress::Kept(kept))
    }
}

/// Sends rows that were kept. Whether these were the last.
fn send_kept<S: Read + Write>(wire: &mut Wire<S>, kept: &mut Kept, most: u32) -> Result<bool, Trouble> {
    let mut count = 0_u64;
    while most == 0 || count < u64::from(most) {
        let rest = kept.messages.get(kept.sent..).unwrap_or_default();
        // What was written by us is whole.
        let Ok(Some((_, body))) = frontend::header(rest, usize::MAX) else {
            let Kept { verb, .. } = kept;
            backend::command_complete(&mut wire.out, format_args!("{verb} {count}"));
            return Ok(true);
        };
        wire.out.extend_from_slice(rest.get(..HEADER_BYTES + body).unwrap_or_default());
        kept.sent += HEADER_BYTES + body;
        count += 1;
        wire.flush_if_full()?;
    }
    backend::portal_suspended(&mut wire.out);
    Ok(false)
}
