//! Why a message could not be processed.

use std::io;

use crate::error::{Failure, ProtocolError};
use crate::net::wire::ReadError;

/// The reason why a message could not be processed.
#[derive(Debug)]
pub(super) enum MessageError {
    /// An error that is sent to the client.
    Failure(Failure),
    /// No further message can be read.
    Read(ReadError),
}

impl From<Failure> for MessageError {
    fn from(failure: Failure) -> Self {
        MessageError::Failure(failure)
    }
}

impl From<cairn_sql::Error> for MessageError {
    fn from(error: cairn_sql::Error) -> Self {
        MessageError::Failure(error.into())
    }
}

impl From<ProtocolError> for MessageError {
    fn from(error: ProtocolError) -> Self {
        MessageError::Failure(error.into())
    }
}

impl From<io::Error> for MessageError {
    fn from(error: io::Error) -> Self {
        MessageError::Read(error.into())
    }
}

impl From<ReadError> for MessageError {
    fn from(error: ReadError) -> Self {
        MessageError::Read(error)
    }
}
