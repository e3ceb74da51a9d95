//! What DataFusion says, in PostgreSQL's codes.

use std::io::ErrorKind;

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use crate::error::Error;
use crate::sqlstate::{
    AMBIGUOUS_COLUMN, CARDINALITY_VIOLATION, CONFIGURATION_LIMIT_EXCEEDED, DATATYPE_MISMATCH, DISK_FULL,
    DIVISION_BY_ZERO, FEATURE_NOT_SUPPORTED, GROUPING_ERROR, INTERNAL_ERROR, INVALID_TEXT_REPRESENTATION,
    IO_ERROR, NUMERIC_VALUE_OUT_OF_RANGE, OUT_OF_MEMORY, SYNTAX_ERROR, UNDEFINED_COLUMN, UNDEFINED_FUNCTION,
    UNDEFINED_TABLE,
};

/// An error of Arrow.
pub(crate) fn arrow_error(error: ArrowError) -> Error {
    let text = error.to_string();
    let sqlstate = match &error {
        ArrowError::DivideByZero => return Error::new(DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(_) => NUMERIC_VALUE_OUT_OF_RANGE,
        ArrowError::CastError(_) | ArrowError::ParseError(_) => INVALID_TEXT_REPRESENTATION,
        ArrowError::MemoryError(_) => OUT_OF_MEMORY,
        ArrowError::IoError(_, source) => return io_error(source),
        ArrowError::NotYetImplemented(_) => FEATURE_NOT_SUPPORTED,
        ArrowError::ExternalError(source) => match source.downcast_ref::<Error>() {
            Some(own) => return own.clone(),
            None => match source.downcast_ref::<DataFusionError>() {
                Some(inner) => return error_of(inner),
                None => INTERNAL_ERROR,
            },
        },
        _ if text.to_lowercase().contains("overflow") => NUMERIC_VALUE_OUT_OF_RANGE,
        _ => DATATYPE_MISMATCH,
    };
    Error::new(sqlstate, text)
}

/// An error of ours, to go through DataFusion and come back.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

pub(super) fn datafusion_error(error: DataFusionError) -> Error {
    error_of(&error)
}

fn error_of(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(source) => match source.downcast_ref::<Error>() {
            Some(own) => own.clone(),
            None => match source.downcast_ref::<DataFusionError>() {
                Some(inner) => error_of(inner),
                None => Error::new(INTERNAL_ERROR, source.to_string()),
            },
        },
        DataFusionError::ArrowError(source, _) => match &**source {
            ArrowError::DivideByZero => Error::new(DIVISION_BY_ZERO, "division by zero"),
            ArrowError::ExternalError(_) => match &**source {
                ArrowError::ExternalError(inner) if inner.is::<Error>() => inner
                    .downcast_ref::<Error>()
                    .cloned()
                    .unwrap_or_else(|| Error::new(INTERNAL_ERROR, inner.to_string())),
                other => Error::new(INTERNAL_ERROR, other.to_string()),
            },
            ArrowError::IoError(_, source) => io_error(source),
            other => by_text(&other.to_string(), arrow_code(other)),
        },
        DataFusionError::IoError(source) => io_error(source),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => error_of(inner),
        DataFusionError::Shared(inner) => error_of(inner),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => error_of(first),
            None => Error::new(INTERNAL_ERROR, "an error without a cause"),
        },
        DataFusionError::SchemaError(source, _) => match &**source {
            SchemaError::FieldNotFound { field, .. } => {
                Error::new(UNDEFINED_COLUMN, format!("column \"{}\" does not exist", field.name()))
            }
            SchemaError::AmbiguousReference { field } => {
                Error::new(AMBIGUOUS_COLUMN, format!("column reference \"{}\" is ambiguous", field.name()))
            }
            other => Error::new(AMBIGUOUS_COLUMN, other.to_string()),
        },
        DataFusionError::ResourcesExhausted(what) => {
            let error = Error::new(OUT_OF_MEMORY, format!("out of memory: {what}"));
            error.with_hint("Raise Builder::memory_limit, or let fewer statements run at once.")
        }
        DataFusionError::NotImplemented(what)
            if what.contains("logical expression") && what.contains("Subquery") =>
        {
            Error::unsupported("a subquery that looks outside by anything but equality")
        }
        DataFusionError::NotImplemented(what) if what.contains("OuterReferenceColumn") => {
            Error::unsupported("LATERAL that looks outside by anything but equality")
        }
        DataFusionError::NotImplemented(what) => Error::new(FEATURE_NOT_SUPPORTED, first_line(what)),
        DataFusionError::SQL(source, _) => Error::new(SYNTAX_ERROR, source.to_string()),
        DataFusionError::Plan(what) => by_text(what, DATATYPE_MISMATCH),
        DataFusionError::Execution(what) => by_text(what, INVALID_TEXT_REPRESENTATION),
        other => by_text(&other.to_string(), INTERNAL_ERROR),
    }
}

/// What temporary files met.
fn io_error(error: &std::io::Error) -> Error {
    let sqlstate = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => DISK_FULL,
        ErrorKind::OutOfMemory => OUT_OF_MEMORY,
        // DataFusion's own limit.
        _ if error.to_string().contains("exceeded the allowable limit") => CONFIGURATION_LIMIT_EXCEEDED,
        _ => IO_ERROR,
    };
    Error::new(sqlstate, format!("temporary files: {error}"))
}

fn arrow_code(error: &ArrowError) -> &'static str {
    match error {
        ArrowError::ArithmeticOverflow(_) => NUMERIC_VALUE_OUT_OF_RANGE,
        ArrowError::CastError(_) | ArrowError::ParseError(_) => INVALID_TEXT_REPRESENTATION,
        _ => DATATYPE_MISMATCH,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Where only the words tell.
fn by_text(text: &str, otherwise: &'static str) -> Error {
    let has = |part: &str| text.contains(part);
    let sqlstate = if has("Invalid function")
        || has("No function matches")
        || has("does not support zero arguments")
    {
        UNDEFINED_FUNCTION
    } else if has("GROUP BY") || has("must appear in") || has("could not be resolved from available columns")
    {
        GROUPING_ERROR
    } else if has("not found") && has("table") {
        UNDEFINED_TABLE
    } else if has("Ambiguous") || has("ambiguous") {
        AMBIGUOUS_COLUMN
    } else if has("returned more than one row") || has("more than one row") {
        CARDINALITY_VIOLATION
    } else if has("verflow") || has("out of range") || has("too large to store") {
        NUMERIC_VALUE_OUT_OF_RANGE
    } else if has("Divide by zero") || has("division by zero") {
        return Error::new(DIVISION_BY_ZERO, "division by zero");
    } else if has("can only be used in")
        || has("Unsupported")
        || has("not supported")
        || has("not implemented")
    {
        FEATURE_NOT_SUPPORTED
    } else {
        otherwise
    };
    Error::new(sqlstate, first_line(text))
}

#[cfg(test)]
mod tests {
    use std::io::Error as IoError;

    use super::*;

    /// Goal: a full disk is told as one, and whatever else temporary files meet as that. Method: errors as Arrow and DataFusion hand them on.
    #[test]
    fn temporary_files() {
        for (kind, sqlstate) in [
            (ErrorKind::StorageFull, "53100"),
            (ErrorKind::OutOfMemory, "53200"),
            (ErrorKind::NotFound, "58030"),
        ] {
            let error = || IoError::from(kind);
            let arrow = || ArrowError::IoError("Io error".to_owned(), error());
            for error in
                [DataFusionError::IoError(error()), DataFusionError::ArrowError(Box::new(arrow()), None)]
            {
                assert_eq!(datafusion_error(error).sqlstate(), sqlstate);
            }
            assert_eq!(arrow_error(arrow()).sqlstate(), sqlstate);
        }
        let limit = IoError::other(
            "The used disk space during the spilling process has exceeded the allowable limit of 100.0 GB.",
        );
        assert_eq!(datafusion_error(DataFusionError::IoError(limit)).sqlstate(), "53400");
    }
}
