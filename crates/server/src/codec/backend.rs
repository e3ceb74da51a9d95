//! What we send, appended to a buffer.

use crate::error::Failure;

/// The state that ReadyForQuery tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// No transaction.
    Idle,
    /// In a transaction.
    Transaction,
    /// In a transaction that has failed: only ROLLBACK is heard.
    Failed,
}

impl Ready {
    fn byte(self) -> u8 {
        match self {
            Ready::Idle => b'I',
            Ready::Transaction => b'T',
            Ready::Failed => b'E',
        }
    }
}

/// How bad a message to the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The connection ends.
    Fatal,
    /// Nothing failed, but it is worth a word.
    Warning,
    /// For information.
    Notice,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        }
    }
}

/// A column of a RowDescription.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// The table that it comes from; 0 for none.
    pub table: u32,
    /// Its number there, from 1; 0 for none.
    pub column: u16,
    /// Its type.
    pub type_oid: u32,
    /// Bytes of its values; -1 when they vary.
    pub type_bytes: i16,
    /// Length of a varchar, digits of a numeric; -1 for none.
    pub modifier: i32,
    /// How its values are written.
    pub is_binary: bool,
}

/// Begins a message; its length is put in by [`end`].
#[inline]
pub fn begin(out: &mut Vec<u8>, tag: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    at
}

/// Ends the message that began at `at`. Bodies are bounded by memory limits far below what the
/// length can say.
#[inline]
pub fn end(out: &mut [u8], at: usize) {
    let length = i32::try_from(out.len() - at - 1).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(at + 1..at + 5) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// A string and its zero byte. A zero within would end it early, so it becomes a blank.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
    out.push(0);
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    let at = begin(out, tag);
    out.extend_from_slice(body);
    end(out, at);
}

/// Authentication: who you are is settled.
pub fn authentication_ok(out: &mut Vec<u8>) {
    message(out, b'R', &0_i32.to_be_bytes());
}

/// Authentication: prove it by one of these mechanisms.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    let at = begin(out, b'R');
    out.extend_from_slice(&10_i32.to_be_bytes());
    for mechanism in mechanisms {
        string(out, mechanism);
    }
    out.push(0);
    end(out, at);
}

/// Authentication: the next step of SASL, or with `is_last` its end.
pub fn authentication_sasl_step(out: &mut Vec<u8>, data: &str, is_last: bool) {
    let at = begin(out, b'R');
    out.extend_from_slice(&(if is_last { 12_i32 } else { 11 }).to_be_bytes());
    out.extend_from_slice(data.as_bytes());
    end(out, at);
}

/// A setting that clients want to know.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    let at = begin(out, b'S');
    string(out, name);
    string(out, value);
    end(out, at);
}

/// What a CancelRequest for this session must have.
pub fn backend_key_data(out: &mut Vec<u8>, process: i32, secret: i32) {
    let at = begin(out, b'K');
    out.extend_from_slice(&process.to_be_bytes());
    out.extend_from_slice(&secret.to_be_bytes());
    end(out, at);
}

/// A newer protocol was asked for: this one is spoken, and these options are not known.
pub fn negotiate_protocol_version(out: &mut Vec<u8>, unknown: &[&str]) {
    let at = begin(out, b'v');
    out.extend_from_slice(&0x0003_0000_i32.to_be_bytes());
    out.extend_from_slice(&i32::try_from(unknown.len()).unwrap_or(i32::MAX).to_be_bytes());
    for option in unknown {
        string(out, option);
    }
    end(out, at);
}

/// The next query may come.
#[inline]
pub fn ready_for_query(out: &mut Vec<u8>, ready: Ready) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, ready.byte()]);
}

/// A statement is prepared.
pub fn parse_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"1\0\0\0\x04");
}

/// Parameters are bound.
pub fn bind_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"2\0\0\0\x04");
}

/// A statement or portal is gone.
pub fn close_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"3\0\0\0\x04");
}

/// No rows come of this.
pub fn no_data(out: &mut Vec<u8>) {
    out.extend_from_slice(b"n\0\0\0\x04");
}

/// There was no statement in the text.
pub fn empty_query_response(out: &mut Vec<u8>) {
    out.extend_from_slice(b"I\0\0\0\x04");
}

/// As many rows as were asked for; there may be more.
pub fn portal_suspended(out: &mut Vec<u8>) {
    out.extend_from_slice(b"s\0\0\0\x04");
}

/// COPY has no more data.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// A piece of COPY.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', data);
}

/// COPY begins, from the client (`G`) or to it (`H`), as text.
pub fn copy_response(out: &mut Vec<u8>, is_in: bool, is_binary: bool, columns: usize) {
    let at = begin(out, if is_in { b'G' } else { b'H' });
    let columns = u16::try_from(columns).unwrap_or(u16::MAX);
    out.push(is_binary.into());
    out.extend_from_slice(&columns.to_be_bytes());
    for _ in 0..columns {
        out.extend_from_slice(&[0, is_binary.into()]);
    }
    end(out, at);
}

/// A statement is done.
pub fn command_complete(out: &mut Vec<u8>, tag: impl std::fmt::Display) {
    let at = begin(out, b'C');
    append(out, &tag);
    out.push(0);
    end(out, at);
}

/// Appends the text form of something.
pub fn append(out: &mut Vec<u8>, what: &dyn std::fmt::Display) {
    use std::io::Write;
    // Writing to a vector fails only when what is written says so, and then it has said what it
    // could.
    let _ = write!(out, "{what}");
}

/// Types of the parameters of a statement.
pub fn parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    let at = begin(out, b't');
    out.extend_from_slice(&u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes());
    for type_oid in types {
        out.extend_from_slice(&type_oid.to_be_bytes());
    }
    end(out, at);
}

/// Columns of the rows that come.
pub fn row_description<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    let at = begin(out, b'T');
    out.extend_from_slice(&u16::try_from(fields.len()).unwrap_or(u16::MAX).to_be_bytes());
    for field in fields {
        string(out, field.name);
        out.extend_from_slice(&field.table.to_be_bytes());
        out.extend_from_slice(&field.column.to_be_bytes());
        out.extend_from_slice(&field.type_oid.to_be_bytes());
        out.extend_from_slice(&field.type_bytes.to_be_bytes());
        out.extend_from_slice(&field.modifier.to_be_bytes());
        out.extend_from_slice(&u16::from(field.is_binary).to_be_bytes());
    }
    end(out, at);
}

/// Something went wrong, or with [`Severity::Warning`] nearly.
pub fn failure(out: &mut Vec<u8>, severity: Severity, failure: &Failure) {
    let tag = if matches!(severity, Severity::Warning | Severity::Notice) { b'N' } else { b'E' };
    let at = begin(out, tag);
    let mut field = |code: u8, text: &str| {
        out.push(code);
        string(out, text);
    };
    field(b'S', severity.word());
    field(b'V', severity.word());
    field(b'C', &failure.sqlstate);
    field(b'M', &failure.message);
    for (code, text) in [(b'D', &failure.detail), (b'H', &failure.hint)] {
        if let Some(text) = text {
            field(code, text);
        }
    }
    if let Some(position) = failure.position {
        field(b'P', &position.to_string());
    }
    let subject = &failure.subject;
    for (code, text) in [
        (b's', &subject.schema),
        (b't', &subject.table),
        (b'c', &subject.column),
        (b'n', &subject.constraint),
    ] {
        if let Some(text) = text {
            field(code, text);
        }
    }
    if let Some(routine) = failure.routine {
        field(b'R', routine);
    }
    out.push(0);
    end(out, at);
}
