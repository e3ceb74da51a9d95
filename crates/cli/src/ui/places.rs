//! The places that may be inspected: those named on the command line, and the direct entries of
//! named folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_hash::table;
use cairn_table::Database;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use crate::args::hash::Kind as Format;
use crate::error::{Error, Result};
use crate::hash::kind_of;
use crate::web::{Refusal, refuse};

/// The maximum number of entries of a folder that are listed.
const ENTRIES_MAX: usize = 1_000;

/// The kind of object at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A key-value store: a directory.
    Kv,
    /// A table of a constant store.
    Hash,
    /// A Sparkey pair.
    Sparkey,
    /// A relational database.
    Sql,
    /// Any other directory.
    Folder,
    /// Any other file.
    Other,
    /// No object.
    Missing,
}

impl Kind {
    /// Returns the name of the kind.
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

    /// Returns the kind of the object at `path`, from names and from the first bytes of files.
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
            // Trust the extension, because the first bytes may be damaged.
            "cairn" => Kind::Hash,
            _ if table::is_table(&**fs, path)? => Kind::Hash,
            _ if Database::page_size_of(fs, path).is_ok_and(|size| size.is_some()) => Kind::Sql,
            "db" => Kind::Sql,
            _ => Kind::Other,
        })
    }
}

/// The named places.
#[derive(Debug)]
pub struct Places {
    fs: Arc<dyn Fs>,
    named: Vec<PathBuf>,
}

impl Places {
    /// Checks the places of the command line.
    ///
    /// Errors: one of them does not exist, or is neither a store nor a folder.
    pub fn new(fs: &Arc<dyn Fs>, named: &[PathBuf]) -> Result<Places> {
        for path in named {
            match Kind::at(fs, path)? {
                // This reports a missing file with the usual error.
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

    /// Returns all places, with the entries of folders, for the page.
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
                        // A pair is listed by its index.
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

    /// Returns the direct entries of a folder. Skips links, which may lead anywhere.
    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.fs.read_dir(folder)?.into_iter().filter(|path| !path.is_symlink()).collect())
    }

    /// Returns the path of a place or of an entry in it.
    ///
    /// Errors: there is no such name. Names are compared with the existing ones, so none can lead
    /// out of its folder.
    pub fn find(&self, place: usize, entry: Option<&str>) -> Result<(PathBuf, Kind), Refusal> {
        let path =
            self.named.get(place).ok_or_else(|| Refusal::missing(format!("there is no place {place}")))?;
        let kind = Kind::at(&self.fs, path)?;
        let Some(entry) = entry.filter(|entry| !entry.is_empty()) else { return Ok((path.clone(), kind)) };
        if kind != Kind::Folder {
            return Err(refuse(format!("{} is not a folder of stores", path.display())));
        }
        let mut entries = self.entries(path)?.into_iter();
        let found = entries.find(|path| path.file_name().is_some_and(|name| name == entry));
        let found =
            found.ok_or_else(|| Refusal::missing(format!("there is no {entry:?} in {}", path.display())))?;
        let kind = Kind::at(&self.fs, &found)?;
        Ok((found, kind))
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{MemFs, OpenOptions};

    use super::*;

    /// Goal: a folder with more stores than are listed reports that. Method: exactly as many as are
    /// listed, and one more.
    #[test]
    fn long_folder_listing_is_marked_incomplete() {
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
