//! `cairn hash get` and `cairn hash mget`.

use std::io::Read;
use std::sync::Arc;

use cairn_vfs::Fs;

use super::store::{Recording, Store};
use crate::args::hash::{GetArgs, MgetArgs};
use crate::error::{Error, Result};
use crate::input;
use crate::output::{self, Outcome, Output};

/// Values are copied in pieces of this size.
const COPY_BYTES: usize = 1 << 18;

/// Prints the value of one key unchanged, followed by a line break on a terminal.
pub fn get(fs: &Arc<dyn Fs>, args: &GetArgs) -> Result<Outcome> {
    let key = parse_key(&args.key, args.hex)?;
    let store = Store::open(fs, &args.store)?;
    let recording = Recording::begin();
    let mut out = Output::new();
    let found = if args.json {
        let value = store.get(&key)?;
        recording.get(&key, value.as_ref().map(|value| value.len()));
        out.json(&output::record(&key, value.as_deref()))?;
        value.is_some()
    } else {
        match store.value_reader(&key)? {
            Some(mut value) => {
                let bytes = copy(&mut *value, &mut out)?;
                recording.get(&key, Some(bytes));
                if out.is_terminal() {
                    out.bytes(b"\n")?;
                }
                true
            }
            None => {
                recording.get(&key, None);
                false
            }
        }
    };
    out.finish()?;
    Ok(Outcome::found(found))
}

/// Copies a value to the output and returns its length in bytes.
fn copy(value: &mut dyn Read, out: &mut Output) -> Result<usize> {
    let mut piece = vec![0; COPY_BYTES];
    let mut bytes = 0;
    loop {
        match value.read(&mut piece).map_err(Error::of_value)? {
            0 => return Ok(bytes),
            count => {
                out.bytes(piece.get(..count).unwrap_or_default())?;
                bytes += count;
            }
        }
    }
}

/// Prints a line for each key found; in JSON also for absent keys.
pub fn mget(fs: &Arc<dyn Fs>, args: &MgetArgs) -> Result<Outcome> {
    let store = Store::open(fs, &args.store)?;
    let recording = Recording::begin();
    let mut out = Output::new();
    let mut all = true;
    let mut look_up = |key: &[u8]| -> Result<()> {
        let value = store.get(key)?;
        recording.get(key, value.as_ref().map(|value| value.len()));
        all &= value.is_some();
        match value {
            value if args.json => out.json(&output::record(key, value.as_deref())),
            Some(value) => out.pair(key, &value),
            None => Ok(()),
        }
    };
    match &args.keys_file {
        Some(path) => input::read_lines(fs, path, |line| {
            if !args.hex {
                return look_up(line);
            }
            look_up(&output::from_hex(&String::from_utf8_lossy(line))?)
        })?,
        None => args.key.iter().try_for_each(|key| look_up(&parse_key(key, args.hex)?))?,
    }
    out.finish()?;
    Ok(Outcome::found(all))
}

/// Parses a key from the command line.
pub fn parse_key(text: &str, hex: bool) -> Result<Vec<u8>> {
    if hex { output::from_hex(text) } else { Ok(text.as_bytes().to_vec()) }
}
