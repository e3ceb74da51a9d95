//! Messages from clients, decoded in place: nothing is copied, and every length and string is
//! checked.

use crate::error::{ProtocolError, Result};

use super::HEADER_BYTES;
use super::cursor::Cursor;

/// A decoded message.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Runs statements at once.
    Query(&'a str),
    /// Prepares a statement.
    Parse(Parse<'a>),
    /// Binds parameters to a prepared statement.
    Bind(Bind<'a>),
    /// Requests the description of a statement or portal.
    Describe(Target, &'a str),
    /// Requests rows of a portal: its name, and the maximum number of rows; 0 for all.
    Execute(&'a str, u32),
    /// Closes a statement or portal.
    Close(Target, &'a str),
    /// Ends a batch.
    Sync,
    /// Requests that pending output is sent.
    Flush,
    /// A piece of COPY data.
    CopyData(&'a [u8]),
    /// Ends COPY.
    CopyDone,
    /// Ends COPY because of an error in the client.
    CopyFail(&'a str),
    /// A password, or a step of SASL.
    Password(&'a [u8]),
    /// Calls a function by OID: an interface older than prepared statements, which is refused.
    FunctionCall,
    /// Ends the session.
    Terminate,
}

/// The subject of Describe and Close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A statement to prepare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parse<'a> {
    /// Its name; empty for the unnamed statement.
    pub name: &'a str,
    /// Its text.
    pub sql: &'a str,
    types: &'a [u8],
}

impl Parse<'_> {
    /// Returns the OIDs that the client declares for parameters; 0 leaves the type to the server.
    pub fn types(&self) -> impl Iterator<Item = u32> {
        self.types.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// Parameters of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bind<'a> {
    /// The portal to create; empty for the unnamed one.
    pub portal: &'a str,
    /// The name of the statement.
    pub statement: &'a str,
    /// Formats of the parameters.
    pub parameter_formats: Formats<'a>,
    /// Number of parameters.
    pub parameter_count: u16,
    parameters: &'a [u8],
    /// Requested formats of the result columns.
    pub result_formats: Formats<'a>,
}

impl<'a> Bind<'a> {
    /// Returns the parameters, in order; `None` is NULL.
    pub fn parameters(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut cursor = Cursor::new(self.parameters, "Bind");
        // All lengths were checked when the message was decoded.
        (0..self.parameter_count).map(move |_| cursor.value().unwrap_or_default())
    }
}

/// Formats of columns, text or binary: none (all text), one for all, or one for each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    /// Returns the number of formats.
    #[allow(clippy::len_without_is_empty, reason = "one and none are much the same")]
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether a column is binary.
    pub fn is_binary(&self, column: usize) -> bool {
        let formats = self.0.as_chunks::<2>().0;
        match formats {
            [] => false,
            [all] => all[1] == 1,
            each => each.get(column).is_some_and(|format| format[1] == 1),
        }
    }

    fn decode<'a>(cursor: &mut Cursor<'a>) -> Result<Formats<'a>> {
        let count = usize::from(cursor.u16()?);
        let bytes = cursor.bytes(count * 2)?;
        if bytes.as_chunks::<2>().0.iter().any(|format| !matches!(format, [0, 0 | 1])) {
            return Err(ProtocolError::Malformed { message: "Bind" });
        }
        Ok(Formats(bytes))
    }

    /// Whether the formats fit `count` columns: none, one, or that many formats.
    pub fn fits(&self, count: usize) -> bool {
        self.len() <= 1 || self.len() == count
    }
}

/// Returns the tag and the length of the body of the message at the start of `bytes`; `None` while
/// its header is incomplete.
///
/// Errors: an invalid length, or one beyond `bytes_max`.
pub fn header(bytes: &[u8], bytes_max: usize) -> Result<Option<(u8, usize)>> {
    let Some([tag, length @ ..]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = i32::from_be_bytes(*length);
    let body = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
    match body {
        Some(body) if body <= bytes_max => Ok(Some((*tag, body))),
        _ => Err(ProtocolError::Length { length: i64::from(length), bytes_max }),
    }
}

/// Decodes the body of a message.
///
/// Errors: an unknown tag, or a body that does not match it.
pub fn decode(tag: u8, body: &[u8]) -> Result<Message<'_>> {
    let start = |message| Cursor::new(body, message);
    Ok(match tag {
        b'Q' => {
            let mut cursor = start("Query");
            let sql = cursor.string()?;
            cursor.finish()?;
            Message::Query(sql)
        }
        b'P' => parse(start("Parse"))?,
        b'B' => bind(start("Bind"))?,
        b'D' => named(start("Describe"), Message::Describe)?,
        b'C' => named(start("Close"), Message::Close)?,
        b'E' => {
            let mut cursor = start("Execute");
            let portal = cursor.string()?;
            // A negative count means all rows, as in PostgreSQL.
            let rows = u32::try_from(cursor.i32()?).unwrap_or(0);
            cursor.finish()?;
            Message::Execute(portal, rows)
        }
        b'S' => empty(start("Sync"), Message::Sync)?,
        b'H' => empty(start("Flush"), Message::Flush)?,
        b'X' => empty(start("Terminate"), Message::Terminate)?,
        b'd' => Message::CopyData(body),
        b'c' => empty(start("CopyDone"), Message::CopyDone)?,
        b'f' => {
            let mut cursor = start("CopyFail");
            let why = cursor.string()?;
            cursor.finish()?;
            Message::CopyFail(why)
        }
        b'p' => Message::Password(body),
        b'F' => Message::FunctionCall,
        tag => return Err(ProtocolError::Tag(tag)),
    })
}

fn empty<'a>(cursor: Cursor<'a>, message: Message<'a>) -> Result<Message<'a>> {
    cursor.finish().map(|()| message)
}

fn named<'a>(mut cursor: Cursor<'a>, make: fn(Target, &'a str) -> Message<'a>) -> Result<Message<'a>> {
    let target = match cursor.byte()? {
        b'S' => Target::Statement,
        b'P' => Target::Portal,
        _ => return Err(ProtocolError::Malformed { message: "Describe or Close" }),
    };
    let name = cursor.string()?;
    cursor.finish()?;
    Ok(make(target, name))
}

fn parse(mut cursor: Cursor<'_>) -> Result<Message<'_>> {
    let name = cursor.string()?;
    let sql = cursor.string()?;
    let count = usize::from(cursor.u16()?);
    let types = cursor.bytes(count * 4)?;
    cursor.finish()?;
    Ok(Message::Parse(Parse { name, sql, types }))
}

fn bind(mut cursor: Cursor<'_>) -> Result<Message<'_>> {
    let portal = cursor.string()?;
    let statement = cursor.string()?;
    let parameter_formats = Formats::decode(&mut cursor)?;
    let parameter_count = cursor.u16()?;
    let from = cursor.rest();
    let mut walk = Cursor::new(from, "Bind");
    // BOUND: the count has 16 bits.
    for _ in 0..parameter_count {
        walk.value()?;
    }
    let tail = walk.rest();
    let parameters = from.get(..from.len() - tail.len()).unwrap_or_default();
    let mut cursor = Cursor::new(tail, "Bind");
    let result_formats = Formats::decode(&mut cursor)?;
    cursor.finish()?;
    if !parameter_formats.fits(usize::from(parameter_count)) {
        return Err(ProtocolError::Malformed { message: "Bind" });
    }
    Ok(Message::Bind(Bind {
        portal,
        statement,
        parameter_formats,
        parameter_count,
        parameters,
        result_formats,
    }))
}
