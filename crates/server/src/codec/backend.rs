//! Messages to the client, appended to a buffer.

use crate::error::Failure;

/// The transaction status of ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// Not in a transaction.
    Idle,
    /// In a transaction.
    Transaction,
    /// In a failed transaction, which accepts only ROLLBACK.
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

/// The severity of a message to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The connection ends.
    Fatal,
    /// Nothing failed, but the client should know.
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

/// A column of RowDescription.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// OID of the table that it comes from; 0 for none.
    pub table: u32,
    /// Its number in that table, from 1; 0 for none.
    pub column: u16,
    /// OID of its type.
    pub type_oid: u32,
    /// Size of its values in bytes; -1 if it varies.
    pub type_bytes: i16,
    /// The type modifier, such as the length of a varchar or the digits of a numeric; -1 for none.
    pub modifier: i32,
    /// Whether its values are sent in binary.
    pub is_binary: bool,
}

/// Starts a message and returns its position; [`end`] fills in the length.
#[inline]
pub fn begin(out: &mut Vec<u8>, tag: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    at
}

/// Ends the message that starts at `at`. Memory limits keep bodies far below the largest length.
#[inline]
pub fn end(out: &mut [u8], at: usize) {
    let length = i32::try_from(out.len() - at - 1).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(at + 1..at + 5) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends a string and its terminating zero byte. A zero byte within the string would end it
/// early, so it becomes a blank.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
    out.push(0);
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    let at = begin(out, tag);
    out.extend_from_slice(body);
    end(out, at);
}

/// AuthenticationOk: the client is authenticated.
pub fn authentication_ok(out: &mut Vec<u8>) {
    message(out, b'R', &0_i32.to_be_bytes());
}

/// AuthenticationSASL: offers mechanisms.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    let at = begin(out, b'R');
    out.extend_from_slice(&10_i32.to_be_bytes());
    for mechanism in mechanisms {
        string(out, mechanism);
    }
    out.push(0);
    end(out, at);
}

/// AuthenticationSASLContinue, or AuthenticationSASLFinal with `is_last`.
pub fn authentication_sasl_step(out: &mut Vec<u8>, data: &str, is_last: bool) {
    let at = begin(out, b'R');
    out.extend_from_slice(&(if is_last { 12_i32 } else { 11 }).to_be_bytes());
    out.extend_from_slice(data.as_bytes());
    end(out, at);
}

/// ParameterStatus: reports a setting that clients want to know.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    let at = begin(out, b'S');
    string(out, name);
    string(out, value);
    end(out, at);
}

/// BackendKeyData: the key that a CancelRequest for this session must present.
pub fn backend_key_data(out: &mut Vec<u8>, process: i32, secret: i32) {
    let at = begin(out, b'K');
    out.extend_from_slice(&process.to_be_bytes());
    out.extend_from_slice(&secret.to_be_bytes());
    end(out, at);
}

/// NegotiateProtocolVersion: the client requested a newer version; offers 3.0, and lists the
/// options that are unknown.
pub fn negotiate_protocol_version(out: &mut Vec<u8>, unknown: &[&str]) {
    let at = begin(out, b'v');
    out.extend_from_slice(&0x0003_0000_i32.to_be_bytes());
    out.extend_from_slice(&i32::try_from(unknown.len()).unwrap_or(i32::MAX).to_be_bytes());
    for option in unknown {
        string(out, option);
    }
    end(out, at);
}

/// ReadyForQuery: the next query may be sent.
#[inline]
pub fn ready_for_query(out: &mut Vec<u8>, ready: Ready) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, ready.byte()]);
}

/// ParseComplete: a statement is prepared.
pub fn parse_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"1\0\0\0\x04");
}

/// BindComplete: parameters are bound.
pub fn bind_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"2\0\0\0\x04");
}

/// CloseComplete: a statement or portal is closed.
pub fn close_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"3\0\0\0\x04");
}

/// NoData: the statement returns no rows.
pub fn no_data(out: &mut Vec<u8>) {
    out.extend_from_slice(b"n\0\0\0\x04");
}

/// EmptyQueryResponse: the text contained no statement.
pub fn empty_query_response(out: &mut Vec<u8>) {
    out.extend_from_slice(b"I\0\0\0\x04");
}

/// PortalSuspended: the requested number of rows was sent, and there may be more.
pub fn portal_suspended(out: &mut Vec<u8>) {
    out.extend_from_slice(b"s\0\0\0\x04");
}

/// CopyDone: the end of COPY data.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// CopyData: a piece of COPY data.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', data);
}

/// CopyInResponse (`G`) or CopyOutResponse (`H`): starts COPY from or to the client, as text or
/// binary.
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

/// CommandComplete: a statement is done.
pub fn command_complete(out: &mut Vec<u8>, tag: impl std::fmt::Display) {
    let at = begin(out, b'C');
    append(out, &tag);
    out.push(0);
    end(out, at);
}

/// Appends the text form of a value.
pub fn append(out: &mut Vec<u8>, what: &dyn std::fmt::Display) {
    use std::io::Write;
    // Writing to a vector fails only if `fmt` returns an error, and then its output so far is kept.
    let _ = write!(out, "{what}");
}

/// ParameterDescription: the types of a statement's parameters.
pub fn parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    let at = begin(out, b't');
    out.extend_from_slice(&u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes());
    for type_oid in types {
        out.extend_from_slice(&type_oid.to_be_bytes());
    }
    end(out, at);
}

/// RowDescription: the columns of the rows that follow.
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

/// ErrorResponse, or NoticeResponse for [`Severity::Warning`] and [`Severity::Notice`].
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
