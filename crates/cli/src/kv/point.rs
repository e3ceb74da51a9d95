//! `cairn kv get`, `put` and `delete`.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_kv::{Operation, WriteBatch};
use cairn_vfs::Fs;

use super::form::Form;
use super::store;
use crate::args::kv::{DeleteArgs, GetArgs, PutArgs};
use crate::deleted::Deleted;
use crate::error::Result;
use crate::input;
use crate::output::{Outcome, Output};

/// The maximum length of a value.
pub const VALUE_BYTES_MAX: u64 = cairn_kv::VALUE_BYTES_MAX as u64;

/// Prints the value of one key unchanged. A line break follows on a terminal and in hexadecimal.
pub fn get(fs: &Arc<dyn Fs>, args: &GetArgs) -> Result<Outcome> {
    let form = Form { hex: args.form.hex };
    let key = form.parse(&args.key)?;
    let value = store::read(fs, &args.at)?.keyspace.get(&key)?;
    let mut out = Output::new();
    if args.form.json {
        out.json(&form.record(&key, value.as_deref()))?;
    } else if let Some(value) = &value {
        form.print(&mut out, value)?;
        if form.hex || out.is_terminal() {
            out.bytes(b"\n")?;
        }
    }
    out.finish()?;
    Ok(Outcome::found(value.is_some()))
}

/// Writes one key.
pub fn put(fs: &Arc<dyn Fs>, args: &PutArgs) -> Result<Outcome> {
    let form = Form { hex: args.hex };
    let key = form.parse(&args.key)?;
    let value = match (&args.value, &args.value_file) {
        (Some(value), _) => form.parse(value)?,
        (None, Some(path)) => input::read_whole(fs, path, VALUE_BYTES_MAX)?,
        (None, None) => Vec::new(),
    };
    let store = store::write(fs, &args.at, Some(&args.write))?;
    let durability = args.write.durability.into();
    store.keyspace.put_with(key, value, durability)?;
    store.finish(durability)?;
    Ok(Outcome::Done)
}

/// Deletes keys in one batch.
pub fn delete(fs: &Arc<dyn Fs>, args: &DeleteArgs) -> Result<Outcome> {
    let form = Form { hex: args.form.hex };
    let keys = args.key.iter().map(|key| form.parse(key)).collect::<Result<Vec<_>>>()?;
    let store = store::write(fs, &args.at, None)?;
    let (mut batch, mut absent, mut seen) = (WriteBatch::new(), Vec::new(), HashSet::new());
    for key in keys.iter().filter(|key| seen.insert(*key)) {
        if store.keyspace.get(key)?.is_some() {
            batch.add(store.keyspace.id(), Operation::Delete { key })?;
        } else {
            absent.push(key.as_slice());
        }
    }
    if !batch.is_empty() {
        let durability = args.durability.into();
        store.db.write_with(&batch, durability)?;
        store.finish(durability)?;
    }
    let (path, keyspace) = (&args.at.store, Some(args.at.keyspace.as_str()));
    Deleted { store: path, keyspace, count: batch.len(), absent }.tell(form.hex, args.form.json)
}
