//! COPY in both directions.

use std::io::{Read, Write};

use cairn_sql::{CommandTag, CopyIn, CopyOut};

use crate::codec::backend;
use crate::codec::frontend::Message;
use crate::error::Failure;
use crate::net::wire::{ReadError, Wire};
use crate::sqlstate;

use super::message_error::MessageError;

/// Runs `COPY ... FROM STDIN`: reads the client's data up to CopyDone.
pub fn copy_in<S: Read + Write>(
    wire: &mut Wire<S>,
    mut copy: CopyIn<'_>,
    message_bytes_max: usize,
) -> Result<CommandTag, MessageError> {
    backend::copy_response(&mut wire.out, true, copy.is_binary(), copy.columns());
    loop {
        wire.receive(message_bytes_max)?;
        match wire.message() {
            Ok(Message::CopyData(bytes)) => copy.write(bytes)?,
            Ok(Message::CopyDone) => return Ok(copy.finish()?),
            Ok(Message::CopyFail(why)) => return Err(copy.fail(why).into()),
            // A client that sent these together with the statement could not know that it would
            // start a COPY.
            Ok(Message::Sync | Message::Flush) => {}
            Ok(Message::Terminate) => return Err(ReadError::Disconnected.into()),
            Ok(_) => {
                let message = "unexpected message type during COPY from stdin";
                return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, message).into());
            }
            Err(error) => return Err(ReadError::Protocol(error).into()),
        }
    }
}

/// Runs `COPY ... TO STDOUT`. Sends one message for each row, because clients depend on that.
pub fn copy_out<S: Read + Write>(
    wire: &mut Wire<S>,
    mut copy: CopyOut<'_>,
) -> Result<CommandTag, MessageError> {
    backend::copy_response(&mut wire.out, false, copy.is_binary(), copy.columns());
    while let Some(bytes) = copy.next()? {
        let mut start = 0;
        for &end in copy.row_ends() {
            backend::copy_data(&mut wire.out, bytes.get(start..end).unwrap_or_default());
            start = end;
            wire.flush_if_full()?;
        }
    }
    backend::copy_done(&mut wire.out);
    Ok(copy.tag())
}
