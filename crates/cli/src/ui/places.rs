//! What may be looked into: what was named on the command line, and what is directly in folders of
//! it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_hash::table;
use cairn_table::Database;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use crate::args::hash::Kind as Format;
use crate::error::{Error, Result};
use crate::hash::kind_of;
use crate::web::{Refused, refuse};

/// Entries of a folder that are listed.
const ENTRIES_MAX: usize = 1_000;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory of the key-value store.
    Kv,
    /// A table of the constant store.
    Hash,
    /// A pair of Sparkey.
    Sparkey,
    /// A database of the relational engine.
    Sql,
    /// A directory of something else.
    Folder,
    /// A file of something else.
    Other,
    /// Nothing.
    Missing,
}

impl Kind {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kv => "kv",
            Kind::Hash => "hash",
            Kind::Sparkey => "sparkey",
            Kind::Sql => "sql",
            Kind::Folder => "folder",
            Kind::Other => "other",
            Kind::Missing => "missing",
        }
    }

    /// What is at `path`. Looks at names, and at the first bytes of files.
    pub fn at(fs: &Arc<dyn Fs>, path: &Path) -> Result<Kind> {
        if !fs.exists(path)? {
            let is_pair = kind_of(&**fs, path)? == Format::Sparkey
                && fs.exists(&cairn_hash::sparkey::index_path(path))?;
            return Ok(if is_pair { Kind::Sparkey } else { Kind::Missing });
        }
        if fs.metadata(path)?.is_dir {
            let mut names = fs.read_dir(path)?.into_iter();
            let is_store = names.any(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name == "CURRENT" || name.starts_with("MANIFEST-")
            });
            return Ok(if is_store { Kind::Kv } else { Kind::Folder });
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        Ok(match extension {
            "spi" | "spl" => Kind::Sparkey,
            // A file whose first bytes are damaged is still what its name says.
            "cairn" => Kind::Hash,
            _ if table::is_table(&**fs, path)? => Kind::Hash,
            _ if Database::page_size_of(fs, path).is_ok_and(|size| size.is_some()) => Kind::Sql,
            "db" => Kind::Sql,
            _ => Kind::Other,
        })
    }
}

/// The places that were named.
#[derive(Debug)]
pub struct Places {
    fs: Arc<dyn Fs>,
    named: Vec<PathBuf>,
}

impl Places {
    /// Those of the command line.
    ///
    /// Errors: one of them is not there, or is neither a store nor a folder.
    pub fn new(fs: &Arc<dyn Fs>, named: &[PathBuf]) -> Result<Places> {
        for path in named {
            match Kind::at(fs, path)? {
                // The file system says what is not there, as it does everywhere.
                Kind::Missing => _ = fs.metadata(path)?,
                Kind::Other => {
                    let expected =
                        "expected a kv, hash or sql store, a Sparkey pair, or a folder with stores";
                    return Err(Error::usage(format!("{} is not a store: {expected}", path.display())));
                }
                Kind::Kv | Kind::Hash | Kind::Sparkey | Kind::Sql | Kind::Folder => {}
            }
        }
        Ok(Places { fs: Arc::clone(fs), named: named.to_vec() })
    }

    /// All of them with what is in folders, for the page.
    pub fn list(&self) -> Vec<Value> {
        let places = self.named.iter().enumerate();
        places.map(|(number, path)| self.describe(number, path)).collect()
    }

    fn describe(&self, number: usize, path: &Path) -> Value {
        let place = json!({ "place": number, "path": path.display().to_string() });
        let mut place = place.as_object().cloned().unwrap_or_default();
        let entries = Kind::at(&self.fs, path).and_then(|kind| {
            place.insert("kind".to_owned(), kind.name().into());
            Ok(if kind == Kind::Folder { Some(self.entries(path)?) } else { None })
        });
        match entries {
            Ok(Some(entries)) => {
                let mut listed: Vec<Value> = entries
                    .iter()
                    .filter_map(|path| {
                        let kind = Kind::at(&self.fs, path).ok()?;
                        let name = path.file_name()?.to_str()?;
                        // The index stands for the pair.
                        let is_shown = matches!(kind, Kind::Kv | Kind::Hash | Kind::Sql)
                            || (kind == Kind::Sparkey && name.ends_with(".spi"));
                        is_shown.then(|| json!({ "entry": name, "kind": kind.name() }))
                    })
                    .take(ENTRIES_MAX + 1)
                    .collect();
                place.insert("more".to_owned(), (listed.len() > ENTRIES_MAX).into());
                listed.truncate(ENTRIES_MAX);
                place.insert("entries".to_owned(), listed.into());
            }
            Ok(None) => {}
            Err(error) => _ = place.insert("error".to_owned(), error.to_string().into()),
        }
        Value::Object(place)
    }

    /// What is directly in a folder; links are left out, which may lead anywhere.
    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.fs.read_dir(folder)?.into_iter().filter(|path| !path.is_symlink()).collect())
    }

    /// The path of a place, or of an entry of it.
    ///
    /// Errors: nothing was named so: names are compared with those that are there, so none leads
    /// out of its folder.
    pub fn find(&self, place: usize, entry: Option<&str>) -> Result<(PathBuf, Kind), Refused> {
        let path =
            self.named.get(place).ok_or_else(|| Refused::missing(format!("there is no place {place}")))?;
        let kind = Kind::at(&self.fs, path)?;
        let Some(entry) = entry.filter(|entry| !entry.is_empty()) else { return Ok((path.clone(), kind)) };
        if kind != Kind::Folder {
            return Err(refuse(format!("{} is not a folder of stores", path.display())));
        }
        let mut entries = self.entries(path)?.into_iter();
        let found = entries.find(|path| path.file_name().is_some_and(|name| name == entry));
        let found =
            found.ok_or_else(|| Refused::missing(format!("there is no {entry:?} in {}", path.display())))?;
        let kind = Kind::at(&self.fs, &found)?;
        Ok((found, kind))
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{MemFs, OpenOptions};

    use super::*;

    /// Goal: a folder of more stores than are listed says so. Method: as many as are listed, and
    /// one more.
    #[test]
    fn a_folder_says_that_there_is_more() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let folder = PathBuf::from("/folder");
        fs.create_dir_all(&folder).unwrap();
        let add =
            |number: usize| fs.open(&folder.join(format!("{number}.db")), OpenOptions::create_new()).unwrap();
        (0..ENTRIES_MAX).for_each(|number| drop(add(number)));
        let places = Places::new(&fs, std::slice::from_ref(&folder)).unwrap();
        let shown = || {
            let place = &places.list()[0];
            (place["entries"].as_array().unwrap().len(), place["more"].clone())
        };
        assert_eq!(shown(), (ENTRIES_MAX, false.into()));
        add(ENTRIES_MAX);
        assert_eq!(shown(), (ENTRIES_MAX, true.into()));
    }
}
