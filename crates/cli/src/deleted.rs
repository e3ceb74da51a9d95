//! Reports of commands that delete keys, in the same form for all kinds of stores.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::output::{Outcome, Output, counted, insert_bytes, to_hex};

/// The result of deleting keys.
#[derive(Debug)]
pub struct Deleted<'a> {
    /// The store.
    pub store: &'a Path,
    /// The keyspace, for stores that have keyspaces.
    pub keyspace: Option<&'a str>,
    /// The number of keys that existed.
    pub count: usize,
    /// The keys that did not exist.
    pub absent: Vec<&'a [u8]>,
}

impl Deleted<'_> {
    /// Prints the report, with keys in hexadecimal if they were given so.
    pub fn tell(&self, hex: bool, json: bool) -> Result<Outcome> {
        let mut out = Output::new();
        if json {
            out.json(&self.json(hex))?;
        } else {
            for key in &self.absent {
                out.bytes(b"not there: ")?;
                if hex {
                    out.bytes(to_hex(key).as_bytes())?
                } else {
                    out.bytes(key)?
                }
                out.bytes(b"\n")?;
            }
            let count = counted(self.count as u64, "key", "keys");
            out.line(format!("deleted {count} from {}", self.store.display()))?;
        }
        out.finish()?;
        Ok(Outcome::found(self.absent.is_empty()))
    }

    fn json(&self, hex: bool) -> Value {
        let absent = self.absent.iter().map(|key| {
            let mut object = Map::new();
            if hex {
                object.insert("key_hex".to_owned(), to_hex(key).into());
            } else {
                insert_bytes(&mut object, "key", key);
            }
            Value::Object(object)
        });
        let mut object = Map::new();
        object.insert("store".to_owned(), self.store.display().to_string().into());
        if let Some(keyspace) = self.keyspace {
            object.insert("keyspace".to_owned(), keyspace.into());
        }
        object.insert("deleted".to_owned(), self.count.into());
        object.insert("absent".to_owned(), absent.collect());
        Value::Object(object)
    }
}
