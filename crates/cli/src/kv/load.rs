//! `cairn kv load`: imports records in batches.

use std::io::Read;
use std::sync::Arc;

use cairn_kv::{Durability, Operation, WriteBatch};
use cairn_vfs::Fs;
use serde_json::json;

use super::point::VALUE_BYTES_MAX;
use super::store::{self, Store};
use crate::args::hash::{Format, InputArgs};
use crate::args::kv::LoadArgs;
use crate::error::{Error, Result};
use crate::input::{self, Sink};
use crate::interrupt::Interrupt;
use crate::output::{Outcome, Output, counted};

/// A batch is written once it has this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Ctrl-C is checked once per this many records.
const RECORDS_PER_LOOK: u64 = 256;

/// A sink that writes records in batches.
#[derive(Debug)]
struct Loader {
    store: Store,
    batch: WriteBatch,
    durability: Durability,
    /// The number of records written, without those in the current batch.
    written: u64,
    value: Vec<u8>,
}

impl Loader {
    fn write(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.store.db.write_with(&self.batch, self.durability)?;
            self.written += self.batch.len() as u64;
            self.batch.clear();
        }
        Ok(())
    }
}

impl Sink for Loader {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.add(self.store.keyspace.id(), Operation::Put { key, value })?;
        if self.batch.encoded_bytes() >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        if bytes > VALUE_BYTES_MAX {
            let what = format!("a value of {bytes} bytes, expected at most {VALUE_BYTES_MAX}");
            return Err(Error::usage(what));
        }
        let mut whole = std::mem::take(&mut self.value);
        whole.clear();
        let read = value.take(bytes).read_to_end(&mut whole);
        let count = read.map_err(|error| Error::usage(format!("a value cannot be read: {error}")))?;
        if count as u64 != bytes {
            return Err(Error::usage(format!("a value ends after {count} of {bytes} bytes")));
        }
        self.put(key, &whole)?;
        self.value = whole;
        Ok(())
    }
}

/// Imports an input.
pub fn load(fs: &Arc<dyn Fs>, args: &LoadArgs) -> Result<Outcome> {
    let interrupt = Interrupt::catch()?;
    let (mut source, mut progress) = input::open(fs, &input_of(args)?)?;
    let store = store::write(fs, &args.at, Some(&args.write))?;
    let durability = args.write.durability.into();
    let batch = WriteBatch::with_capacity(BATCH_BYTES * 2);
    let mut loader = Loader { store, batch, durability, written: 0, value: Vec::new() };
    let mut records = 0_u64;
    loop {
        let fed = source.feed(&mut loader);
        if !interrupt.outcome(fed, || format!("{} records were written and stay", loader.written))? {
            break;
        }
        progress.record();
        records += 1;
        if records.is_multiple_of(RECORDS_PER_LOOK) {
            interrupt.check(|| format!("{} records were written and stay", loader.written))?;
        }
    }
    loader.write()?;
    progress.finish();
    loader.store.finish(durability)?;
    // An import is made durable as a whole, whatever the durability of its batches.
    loader.store.db.as_ref().sync()?;
    let mut out = Output::new();
    let store = args.at.store.display();
    if args.json {
        let (store, keyspace) = (store.to_string(), &args.at.keyspace);
        out.json(&json!({ "store": store, "keyspace": keyspace, "records": records }))?;
    } else {
        out.line(format!("loaded {store}: {}", counted(records, "record", "records")))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Returns the arguments of the input. The default columns are those that `dump` writes.
fn input_of(args: &LoadArgs) -> Result<InputArgs> {
    let input = InputArgs {
        input: args.input.clone(),
        format: args.format,
        key: args.key.clone(),
        value: args.value.clone(),
    };
    let is_binary = input::format_of(&input)? == Format::Binary;
    Ok(match args.key {
        None if !is_binary => {
            InputArgs { key: Some("key".to_owned()), value: Some("value".to_owned()), ..input }
        }
        _ => input,
    })
}
