//! Translates DataFusion's errors into PostgreSQL's codes.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use crate::batch::{Cause, Origin, arrow_error_with, error_of_cause, io_error, translate_message};
use crate::error::Error;
use crate::general::internal_names::shown;
use crate::sqlstate::{AMBIGUOUS_COLUMN, OUT_OF_MEMORY, SYNTAX_ERROR, UNDEFINED_COLUMN};

/// Translates an error of Arrow, which may have one of DataFusion's as its cause.
fn of_arrow(error: &ArrowError) -> Error {
    arrow_error_with(error, &of_source)
}

/// Translates the cause of an error.
fn of_source(source: &Cause) -> Option<Error> {
    source.downcast_ref::<DataFusionError>().map(error_of)
}

/// Wraps an error of ours, so that it passes through DataFusion unchanged.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

pub(crate) fn datafusion_error(error: DataFusionError) -> Error {
    error_of(&error)
}

fn error_of(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(source) => error_of_cause(&**source, &of_source),
        DataFusionError::ArrowError(source, _) => of_arrow(source),
        DataFusionError::IoError(source) => io_error(source),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => error_of(inner),
        DataFusionError::Shared(inner) => error_of(inner),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => error_of(first),
            None => translate_message("an error without a cause", Origin::Engine),
        },
        DataFusionError::SchemaError(source, _) => match &**source {
            // Duplicate column names are renamed internally, so that none of them matches the
            // requested name.
            SchemaError::FieldNotFound { field, valid_fields }
                if valid_fields
                    .iter()
                    .any(|other| other.name() != field.name() && shown(other.name()) == field.name()) =>
            {
                let what = format!("column reference \"{}\" is ambiguous", field.name());
                Error::new(AMBIGUOUS_COLUMN, what)
            }
            SchemaError::FieldNotFound { field, .. } => {
                Error::new(UNDEFINED_COLUMN, format!("column \"{}\" does not exist", shown(field.name())))
            }
            SchemaError::AmbiguousReference { field } => {
                let what = format!("column reference \"{}\" is ambiguous", shown(field.name()));
                Error::new(AMBIGUOUS_COLUMN, what)
            }
            SchemaError::DuplicateUnqualifiedField { name } => {
                Error::new(AMBIGUOUS_COLUMN, format!("column reference \"{}\" is ambiguous", shown(name)))
            }
            SchemaError::DuplicateQualifiedField { qualifier, name } => {
                let what = format!("column reference \"{}.{}\" is ambiguous", qualifier.table(), shown(name));
                Error::new(AMBIGUOUS_COLUMN, what)
            }
        },
        DataFusionError::ResourcesExhausted(what) => {
            let error = Error::new(OUT_OF_MEMORY, format!("out of memory: {what}"));
            error.with_hint("Raise Builder::memory_limit, or let fewer statements run at once.")
        }
        DataFusionError::NotImplemented(what)
            if what.contains("logical expression") && what.contains("Subquery") =>
        {
            Error::unsupported("a subquery correlated by a condition other than equality")
        }
        DataFusionError::NotImplemented(what) if what.contains("OuterReferenceColumn") => {
            Error::unsupported("LATERAL correlated by a condition other than equality")
        }
        DataFusionError::NotImplemented(what) => translate_message(what, Origin::Unimplemented),
        DataFusionError::SQL(source, _) => Error::new(SYNTAX_ERROR, source.to_string()),
        DataFusionError::Plan(what) => translate_message(what, Origin::Planner),
        DataFusionError::Execution(what) => translate_message(what, Origin::Operator),
        DataFusionError::Internal(what) => translate_message(what, Origin::Engine),
        other => translate_message(&other.to_string(), Origin::Engine),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};

    use super::*;
    use crate::batch::arrow_error;

    /// Goal: a full disk is reported as such, and other failures of temporary files by their own
    /// codes.
    /// Method: errors in the forms in which Arrow and DataFusion pass them on.
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
