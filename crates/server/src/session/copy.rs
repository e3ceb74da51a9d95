//! COPY in both directions.

use std::io::{Read, Write};

use cairn_sql::{CommandTag, CopyIn, CopyOut};

use crate::codec::backend;
use crate::codec::frontend::Message;
use crate::error::Failure;
use crate::net::wire::{Lost, Wire};
use crate::sqlstate;

use super::Trouble;

/// `COPY ... FROM STDIN`: takes what the client sends until it says that this is all.
pub fn copy_in<S: Read + Write>(
    wire: &mut Wire<S>,
    mut copy: CopyIn<'_>,
    message_bytes_max: usize,
) -> Result<CommandTag, Trouble> {
    backend::copy_response(&mut wire.out, true, copy.columns());
    loop {
        wire.receive(message_bytes_max)?;
        match wire.message() {
            Ok(Message::CopyData(bytes)) => copy.write(bytes)?,
            Ok(Message::CopyDone) => return Ok(copy.finish()?),
            Ok(Message::CopyFail(why)) => return Err(copy.fail(why).into()),
            // A client that sent these with the statement could not know that there would be a COPY.
            Ok(Message::Sync | Message::Flush) => {}
            Ok(Message::Terminate) => return Err(Lost::Gone.into()),
            Ok(_) => {
                let message = "unexpected message type during COPY from stdin";
                return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, message).into());
            }
            Err(error) => return Err(Lost::Protocol(error).into()),
        }
    }
}

/// `COPY ... TO STDOUT`: sends all of it, a row a message: clients count on that.
pub fn copy_out<S: Read + Write>(
    wire: &mut Wire<S>,
    sql: &str,
    mut copy: CopyOut<'_>,
) -> Result<CommandTag, Trouble> {
    backend::copy_response(&mut wire.out, false, copy.columns());
    let has_quotes = sql.to_ascii_lowercase().contains("csv");
    while let Some(bytes) = copy.next()? {
        for row in rows(&bytes, has_quotes) {
            backend::copy_data(&mut wire.out, row);
            wire.flush_if_full()?;
        }
    }
    backend::copy_done(&mut wire.out);
    Ok(copy.tag())
}

/// The rows of a piece of text or CSV: a line break ends one, unless it is between quotes.
fn rows(bytes: &[u8], has_quotes: bool) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    bytes.split_inclusive(move |byte| {
        is_quoted ^= has_quotes && *byte == b'"';
        *byte == b'\n' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: pieces are cut into rows, and line breaks within CSV's quotes do not count.
    #[test]
    fn pieces_are_cut_into_rows() {
        let cut = |bytes: &'static str, has_quotes| rows(bytes.as_bytes(), has_quotes).collect::<Vec<_>>();
        assert_eq!(cut("1\t\"\n2\n", false), [&b"1\t\"\n"[..], b"2\n"]);
        assert_eq!(cut("1,\"a\n\"\"b\"\n2,c\n", true), [&b"1,\"a\n\"\"b\"\n"[..], b"2,c\n"]);
        assert_eq!(cut("", true), Vec::<&[u8]>::new());
    }
}
