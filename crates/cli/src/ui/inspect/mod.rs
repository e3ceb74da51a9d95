//! The inspector of stores.
//!
//! Each request opens the store read-only and closes it again. The size of responses is bounded.

mod bytes;
mod hash;
mod kv;
mod sql;

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_vfs::Fs;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::places::Kind;
use crate::output::from_hex;
use crate::web::{Query, Refusal, refuse};

/// The maximum number of keys, rows or blocks in a view.
const SHOWN_MAX: usize = 200;

type Answer = Result<Json<Value>, Refusal>;

/// A query with a place, and a part of it.
#[derive(Debug, Deserialize)]
pub struct PlaceQuery {
    place: usize,
    entry: Option<String>,
    /// A keyspace of `kv`; or a table of `sql`, as schema and name with a point between them.
    #[serde(default)]
    space: String,
    /// The number of a table file of `kv`.
    table: Option<u64>,
    /// The number of the first block.
    #[serde(default)]
    from: usize,
    /// A key as text.
    key: Option<String>,
    /// A key in hexadecimal.
    hex: Option<String>,
}

impl PlaceQuery {
    /// Returns the requested key.
    fn key(&self) -> Result<Option<Vec<u8>>, Refusal> {
        match (&self.key, &self.hex) {
            (_, Some(hex)) => from_hex(hex).map(Some).map_err(refuse),
            (Some(key), None) => Ok(Some(key.clone().into_bytes())),
            (None, None) => Ok(None),
        }
    }
}

/// Runs work on a place, on a thread that may block.
async fn look(
    shared: Arc<Shared>,
    at: PlaceQuery,
    work: impl FnOnce(&Arc<dyn Fs>, &Path, Kind, &PlaceQuery) -> Result<Value, Refusal> + Send + 'static,
) -> Answer {
    let inner = Arc::clone(&shared);
    shared
        .blocking(move || {
            let (path, kind) = inner.places.find(at.place, at.entry.as_deref())?;
            if kind == Kind::Missing {
                return Err(Refusal::missing(format!("{}: nothing is there", path.display())));
            }
            work(&inner.fs, &path, kind, &at).map(Json)
        })
        .await
}

fn not_of(kind: Kind, what: &str) -> Refusal {
    refuse(format!("a place of the kind {:?} has no {what}", kind.name()))
}

/// Returns the structure of a store: levels, pages, fill, encodings.
pub async fn summary(State(shared): State<Arc<Shared>>, Query(at): Query<PlaceQuery>) -> Answer {
    look(shared, at, |fs, path, kind, _| {
        let mut found = match kind {
            Kind::Kv => kv::summary(fs, path),
            Kind::Hash | Kind::Sparkey => hash::summary(fs, path),
            Kind::Sql => sql::summary(fs, path),
            Kind::Folder => Err(refuse(format!("{} is a folder: choose a store in it", path.display()))),
            Kind::Other | Kind::Missing => {
                Err(refuse(format!("{} is not a known kind of store", path.display())))
            }
        }?;
        if let Some(found) = found.as_object_mut() {
            found.insert("kind".to_owned(), kind.name().into());
            found.insert("path".to_owned(), path.display().to_string().into());
        }
        Ok(found)
    })
    .await
}

/// Returns some entries: keys and values, or rows.
pub async fn entries(State(shared): State<Arc<Shared>>, Query(at): Query<PlaceQuery>) -> Answer {
    look(shared, at, |fs, path, kind, at| match kind {
        Kind::Kv => kv::entries(fs, path, &at.space, at.key()?.as_deref()),
        Kind::Hash | Kind::Sparkey => hash::entries(fs, path),
        Kind::Sql => sql::rows(fs, path, &at.space),
        kind => Err(not_of(kind, "entries")),
    })
    .await
}

/// Returns the value of a key.
pub async fn get(State(shared): State<Arc<Shared>>, Query(at): Query<PlaceQuery>) -> Answer {
    look(shared, at, |fs, path, kind, at| {
        let key = at.key()?.ok_or_else(|| refuse("no key was given"))?;
        let value = match kind {
            Kind::Kv => kv::get(fs, path, &at.space, &key)?,
            Kind::Hash | Kind::Sparkey => hash::get(fs, path, &key)?,
            kind => return Err(not_of(kind, "lookups by key")),
        };
        Ok(json!({ "key": bytes::shown(&key), "value": value }))
    })
    .await
}

/// Returns the blocks of a table.
pub async fn blocks(State(shared): State<Arc<Shared>>, Query(at): Query<PlaceQuery>) -> Answer {
    look(shared, at, |fs, path, kind, at| match (kind, at.table) {
        (Kind::Kv, Some(table)) => kv::blocks(fs, path, &at.space, table, at.from),
        (Kind::Kv, None) => Err(refuse("no table was given")),
        (kind, _) => Err(not_of(kind, "blocks")),
    })
    .await
}

/// Reads everything and reports damage.
pub async fn verify(State(shared): State<Arc<Shared>>, Query(at): Query<PlaceQuery>) -> Answer {
    look(shared, at, |fs, path, kind, _| match kind {
        Kind::Kv => kv::verify(fs, path),
        Kind::Hash | Kind::Sparkey => hash::verify(fs, path),
        Kind::Sql => sql::verify(fs, path),
        kind => Err(not_of(kind, "checks")),
    })
    .await
}
