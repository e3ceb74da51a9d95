//! Extracts queries and bodies from requests. Invalid ones are refused with JSON, like all errors.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use cairn_sim::json::in_words;
use serde::de::DeserializeOwned;

use super::Refusal;

/// The query string of an address.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(asked)) => Ok(Query(asked)),
            Err(rejected) => {
                let said = rejected.body_text();
                let what = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
                Err(Refusal::new(rejected.status(), format!("the address: {}", in_words(what))))
            }
        }
    }
}

/// A text body.
#[derive(Debug)]
pub struct Body(pub String);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match String::from_request(request, state).await {
            Ok(text) => Ok(Body(text)),
            Err(rejected) => {
                Err(Refusal::new(rejected.status(), format!("the request: {}", rejected.body_text())))
            }
        }
    }
}
