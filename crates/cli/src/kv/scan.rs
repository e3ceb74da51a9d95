//! `cairn kv scan`.

use std::sync::Arc;

use cairn_vfs::Fs;
use serde_json::{Map, Value};

use super::form::Form;
use super::store;
use crate::args::kv::ScanArgs;
use crate::error::Result;
use crate::output::{Outcome, Output};

/// Prints the entries of a range, from a snapshot.
pub fn scan(fs: &Arc<dyn Fs>, args: &ScanArgs) -> Result<Outcome> {
    let form = Form { hex: args.form.hex };
    let range = form.range(&args.range)?;
    let store = store::read(fs, &args.at)?;
    let mut out = Output::new();
    let mut left = args.limit.unwrap_or(u64::MAX);
    if left > 0 {
        range.visit(&store.keyspace, args.reverse, |key, value| {
            match (args.form.json, args.keys_only) {
                (true, false) => out.json(&form.record(key, Some(value)))?,
                (true, true) => {
                    let mut object = Map::new();
                    form.insert(&mut object, "key", key);
                    out.json(&Value::Object(object))?;
                }
                (false, keys_only) => {
                    form.print(&mut out, key)?;
                    if !keys_only {
                        out.bytes(b"\t")?;
                        form.print(&mut out, value)?;
                    }
                    out.bytes(b"\n")?;
                }
            }
            left -= 1;
            Ok(left > 0)
        })?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}
