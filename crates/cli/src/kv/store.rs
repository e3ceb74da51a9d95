//! Opens stores, which another program may have created.

use std::path::Path;
use std::sync::Arc;

use cairn_kv::{
    AddU64, Append, Builder, Db, Durability, Keyspace, KeyspaceOptions, MergeOperator, list_keyspaces_in,
};
use cairn_trace::kv::{TracedDb, TracedKeyspace};
use cairn_vfs::{ErrorKind, Fs};

use crate::args::kv::{KeyspaceArgs, Operator, WriteArgs};
use crate::args::time;
use crate::error::{Error, Result};
use crate::{place, recording};

/// The name of the keyspace that every store has.
const DEFAULT: &str = "default";

/// An open store and the keyspace that a command works on.
#[derive(Debug)]
pub struct Store {
    /// The store.
    pub db: TracedDb,
    /// The keyspace.
    pub keyspace: TracedKeyspace,
    /// The names of keyspaces with a merge operator.
    mergers: Vec<String>,
}

/// A keyspace and the options to open it with.
#[derive(Debug)]
struct Known {
    name: String,
    options: KeyspaceOptions,
}

impl Operator {
    /// Creates the merge operator.
    pub fn make(self) -> Arc<dyn MergeOperator> {
        match self {
            Operator::AddU64 => Arc::new(AddU64),
            Operator::Append => Arc::new(Append),
        }
    }

    /// Returns the built-in operator with this name, if there is one. A keyspace with any other
    /// operator is opened without it and refuses merges.
    fn by_name(name: &str) -> Option<Arc<dyn MergeOperator>> {
        [Operator::AddU64, Operator::Append].map(Operator::make).into_iter().find(|it| it.name() == name)
    }
}

/// Opens the store of `at` for reading. Writes nothing and does not block a writer.
pub fn read(fs: &Arc<dyn Fs>, at: &KeyspaceArgs) -> Result<Store> {
    let known = known(fs, &at.store, Some(at))?;
    let builder = builder(fs, &at.store, &known).read_only(true);
    Store::new(traced(builder)?, at, &known, "")
}

/// Opens the store of `at` for writing. Without `write` nothing is created.
pub fn write(fs: &Arc<dyn Fs>, at: &KeyspaceArgs, write: Option<&WriteArgs>) -> Result<Store> {
    let hint = if write.is_some() { "; --create creates it" } else { "" };
    let creates = write.filter(|write| write.create);
    let mut known = match known(fs, &at.store, Some(at)) {
        Ok(known) => known,
        Err(error) if !is_missing(&error) => return Err(error),
        Err(_) if creates.is_some() => Vec::new(),
        Err(error) => return Err(Error::usage(format!("{error}{hint}"))),
    };
    if let Some(asked) = creates.and_then(|write| write.ttl)
        && let Some(there) = known.iter().find(|known| known.name == at.keyspace)
        && there.options.ttl != Some(asked)
    {
        let lives = there.options.ttl.map_or_else(
            || "whose entries live forever".to_owned(),
            |ttl| format!("whose entries live {} seconds", ttl.as_secs()),
        );
        return Err(Error::usage(format!(
            "--ttl {}: keyspace {:?} already exists, {lives}",
            time::shown(asked),
            at.keyspace
        )));
    }
    if let Some(write) = creates
        && known.iter().all(|known| known.name != at.keyspace)
    {
        let options = KeyspaceOptions {
            ttl: write.ttl,
            merge_operator: at.merge_operator.map(Operator::make),
            ..KeyspaceOptions::default()
        };
        known.push(Known { name: at.keyspace.clone(), options });
    }
    let builder = builder(fs, &at.store, &known).create_if_missing(creates.is_some());
    Store::new(traced(builder)?, at, &known, hint)
}

/// Opens a store, and records its operations under `cairn trace record`. A trace that cannot be
/// written does not prevent opening the store.
fn traced(builder: Builder) -> Result<TracedDb> {
    let db = builder.open()?;
    Ok(TracedDb::new(db, recording::begin("cairn kv")))
}

/// Opens all keyspaces of the store in `path`. `alternative` is a hint for the user if another
/// process has the store open.
pub fn whole(fs: &Arc<dyn Fs>, path: &Path, read_only: bool, alternative: &str) -> Result<Db> {
    let builder = builder(fs, path, &known(fs, path, None)?);
    builder.read_only(read_only).create_if_missing(false).open().map_err(|error| match error.kind() {
        ErrorKind::Busy => Error::usage(format!("{error}{alternative}")),
        _ => error.into(),
    })
}

/// Returns true if the error means that there is no store.
fn is_missing(error: &Error) -> bool {
    match error {
        Error::Kv(error) => error.kind() == ErrorKind::NotFound,
        Error::Vfs(error) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// Returns the existing keyspaces.
fn known(fs: &Arc<dyn Fs>, path: &Path, at: Option<&KeyspaceArgs>) -> Result<Vec<Known>> {
    let known = |info: cairn_kv::KeyspaceInfo| {
        let asked = at.filter(|at| at.keyspace == info.name).and_then(|at| at.merge_operator);
        let merge_operator = match asked {
            Some(operator) => Some(operator.make()),
            None => info.merge_operator.as_deref().and_then(Operator::by_name),
        };
        let options = KeyspaceOptions { ttl: info.ttl, merge_operator, ..KeyspaceOptions::default() };
        Known { name: info.name, options }
    };
    place::expect_directory(fs, path)?;
    Ok(list_keyspaces_in(fs, path)?.into_iter().map(known).collect())
}

fn builder(fs: &Arc<dyn Fs>, path: &Path, known: &[Known]) -> Builder {
    let start = Db::builder(path).fs(Arc::clone(fs));
    known.iter().fold(start, |builder, Known { name, options }| match &**name {
        DEFAULT => builder.default_keyspace(options.clone()),
        name => builder.keyspace(name, options.clone()),
    })
}

impl Drop for Store {
    fn drop(&mut self) {
        // If the recorder ended on its own, an error such as a full disk would not be reported.
        recording::end(self.db.recorder());
    }
}

impl Store {
    fn new(db: TracedDb, at: &KeyspaceArgs, known: &[Known], hint: &str) -> Result<Store> {
        let mergers = known.iter().filter(|known| known.options.merge_operator.is_some());
        let mergers = mergers.map(|known| known.name.clone()).collect();
        let keyspace = find(&db, &at.keyspace, hint)?;
        Ok(Store { db, keyspace, mergers })
    }

    /// Returns the keyspace called `name`. Errors: there is none.
    pub fn keyspace(&self, name: &str) -> Result<TracedKeyspace> {
        find(&self.db, name, "")
    }

    /// Errors: the keyspace has no merge operator.
    pub fn check_merges(&self, keyspace: &Keyspace) -> Result<()> {
        if self.mergers.iter().any(|name| name == keyspace.name()) {
            return Ok(());
        }
        let name = keyspace.name();
        Err(Error::usage(format!(
            "keyspace {name:?} has no known merge operator; --merge-operator names one"
        )))
    }

    /// Ends a command that has written with `durability`: flushes writes that are not in the log.
    pub fn finish(&self, durability: Durability) -> Result<()> {
        if durability == Durability::Memory {
            for keyspace in self.db.as_ref().keyspaces() {
                keyspace.flush()?;
            }
        }
        Ok(())
    }
}

fn find(db: &TracedDb, name: &str, hint: &str) -> Result<TracedKeyspace> {
    db.keyspace(name).ok_or_else(|| {
        let all: Vec<String> =
            db.as_ref().keyspaces().iter().map(|keyspace| keyspace.name().to_owned()).collect();
        let (path, all) = (db.as_ref().path().display(), all.join(", "));
        Error::usage(format!("no keyspace {name:?} in {path}; existing: {all}{hint}"))
    })
}
