//! Translates Arrow's errors into PostgreSQL's codes.

use std::io::ErrorKind;

use arrow::error::ArrowError;

use super::messages::{Origin, translate_message};
use crate::error::Error;
use crate::sqlstate::{
    CONFIGURATION_LIMIT_EXCEEDED, DISK_FULL, DIVISION_BY_ZERO, IO_ERROR, NUMERIC_VALUE_OUT_OF_RANGE,
    OUT_OF_MEMORY,
};

/// The cause of an error that passed through Arrow.
pub(crate) type Cause = dyn std::error::Error + Send + Sync + 'static;

/// Translates an error of Arrow.
pub(crate) fn arrow_error(error: ArrowError) -> Error {
    arrow_error_with(&error, &|_| None)
}

/// Translates an error of Arrow. `known` translates causes that only the caller knows.
pub(crate) fn arrow_error_with(error: &ArrowError, known: &dyn Fn(&Cause) -> Option<Error>) -> Error {
    match error {
        ArrowError::DivideByZero => Error::new(DIVISION_BY_ZERO, "division by zero"),
        ArrowError::MemoryError(what) => Error::new(OUT_OF_MEMORY, format!("out of memory: {what}")),
        ArrowError::IoError(_, source) => io_error(source),
        ArrowError::NotYetImplemented(what) => translate_message(what, Origin::Unimplemented),
        ArrowError::ExternalError(source) => error_of_cause(&**source, known),
        ArrowError::ArithmeticOverflow(_) => {
            Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
        }
        ArrowError::CastError(what) | ArrowError::ParseError(what) | ArrowError::ComputeError(what) => {
            translate_message(what, Origin::Operator)
        }
        other => translate_message(&other.to_string(), Origin::Operator),
    }
}

/// Translates the cause of an error.
pub(crate) fn error_of_cause(source: &Cause, known: &dyn Fn(&Cause) -> Option<Error>) -> Error {
    if let Some(own) = source.downcast_ref::<Error>() {
        return own.clone();
    }
    if let Some(error) = known(source) {
        return error;
    }
    match source.downcast_ref::<ArrowError>() {
        Some(inner) => arrow_error_with(inner, known),
        None => translate_message(&source.to_string(), Origin::Engine),
    }
}

/// Translates an I/O error of temporary files.
pub(crate) fn io_error(error: &std::io::Error) -> Error {
    let sqlstate = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => DISK_FULL,
        ErrorKind::OutOfMemory => OUT_OF_MEMORY,
        // DataFusion's limit on disk space.
        _ if error.to_string().contains("exceeded the allowable limit") => CONFIGURATION_LIMIT_EXCEEDED,
        _ => IO_ERROR,
    };
    Error::new(sqlstate, format!("temporary files: {error}"))
}
