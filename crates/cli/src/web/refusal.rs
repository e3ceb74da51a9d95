//! Refusals of requests, with a reason.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cairn_vfs::ErrorKind;
use serde_json::{Map, Value};

use crate::error::Error;

/// A refused request.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    what: String,
    /// Further fields, such as file and offset.
    more: Map<String, Value>,
}

/// Refuses an invalid request.
pub fn refuse(error: impl ToString) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, error.to_string())
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(status: StatusCode, what: impl Into<String>) -> Refusal {
        Refusal { status, what: what.into(), more: Map::new() }
    }

    /// Refuses a request for a missing object.
    pub fn missing(what: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, what)
    }

    /// Adds a field.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Refusal {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Refuses with an engine's error, whose kind determines the status and the kind's name.
    pub fn of(kind: ErrorKind, what: impl Into<String>) -> Refusal {
        let (status, word) = match kind {
            ErrorKind::Corruption => (StatusCode::UNPROCESSABLE_ENTITY, "corruption"),
            ErrorKind::Busy => (StatusCode::CONFLICT, "busy"),
            ErrorKind::NotFound => (StatusCode::NOT_FOUND, "missing"),
            ErrorKind::Unsupported => (StatusCode::UNPROCESSABLE_ENTITY, "unsupported"),
            ErrorKind::Invalid | ErrorKind::Conflict => (StatusCode::BAD_REQUEST, "invalid"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "failure"),
        };
        Refusal::new(status, what).with("kind", word)
    }
}

impl From<cairn_kv::Error> for Refusal {
    fn from(error: cairn_kv::Error) -> Refusal {
        let refused = Refusal::of(error.kind(), error.to_string());
        match &error {
            cairn_kv::Error::Corruption { file, offset, .. } => {
                refused.with("file", file.display().to_string()).with("offset", *offset)
            }
            _ => refused,
        }
    }
}

impl From<cairn_hash::Error> for Refusal {
    fn from(error: cairn_hash::Error) -> Refusal {
        let refused = Refusal::of(error.kind(), error.to_string());
        match &error {
            cairn_hash::Error::Corruption { file, offset, .. } => {
                refused.with("file", file.display().to_string()).with("offset", *offset)
            }
            _ => refused,
        }
    }
}

impl From<cairn_vfs::Error> for Refusal {
    fn from(error: cairn_vfs::Error) -> Refusal {
        Refusal::of(error.kind(), error.to_string())
    }
}

impl From<cairn_bench::Error> for Refusal {
    fn from(error: cairn_bench::Error) -> Refusal {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).with("kind", "failure")
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match error {
            Error::Kv(error) => error.into(),
            Error::Hash(error) => error.into(),
            Error::Vfs(error) => error.into(),
            Error::Bench(error) => error.into(),
            other => refuse(other),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = self.more;
        body.insert("error".to_owned(), self.what.into());
        (self.status, Json(Value::Object(body))).into_response()
    }
}
