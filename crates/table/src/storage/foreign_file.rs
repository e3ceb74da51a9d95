//! Detection of files that are not databases, which are reported and left unchanged.
//!
//! A file counts as a new database if it is empty, or holds only the remains of a creation
//! interrupted by power loss: less than a page, with each byte either zero or as in page 0 of an
//! empty database. Any other file that does not begin like a database is foreign.

use std::path::Path;
use std::sync::Arc;

use cairn_pool::PAGE_HEADER_LEN;
use cairn_vfs::{File, Fs, OpenOptions};

use super::file_identity::RANDOM;
use super::space::{first_page, page_size_of};
use super::version::MAGIC;
use crate::{Error, Result};

/// Refuses a file that does not begin like a database, unless it has a log or a double write beside
/// it, from which its first page could be restored. Only reads.
///
/// Errors: [`Error::NotADatabase`]; the file system's.
pub(crate) fn refuse_foreign(
    fs: &Arc<dyn Fs>,
    path: &Path,
    page_size: usize,
    companions: &[&Path],
) -> Result<()> {
    if !fs.exists(path)? {
        return Ok(());
    }
    for other in companions {
        if fs.exists(other)? {
            return Ok(());
        }
    }
    let file = fs.open(path, OpenOptions::read())?;
    if page_size_of(&*file)?.is_some() {
        return Ok(());
    }
    refuse_bytes(&*file, page_size)
}

/// Refuses a file with anything but the remains of an interrupted creation.
///
/// Errors: [`Error::NotADatabase`]; the file system's.
pub(crate) fn refuse_bytes(file: &dyn File, page_size: usize) -> Result<()> {
    let len = file.len()?;
    let page = first_page(page_size);
    debug_assert!(page.len() == page_size, "page 0 has {} of {page_size} bytes", page.len());
    let mut bytes = vec![0; page.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
    file.read_exact_at(&mut bytes, 0)?;
    // If the magic number is present, the checksum and the fields drawn at random may have any
    // value.
    let has_magic = bytes.get(PAGE_HEADER_LEN..).is_some_and(|payload| payload.starts_with(MAGIC));
    let is_random = |at: usize| {
        has_magic && (at < 8 || at.checked_sub(PAGE_HEADER_LEN).is_some_and(|at| RANDOM.contains(&at)))
    };
    let is_remains = bytes
        .iter()
        .zip(&page)
        .enumerate()
        .all(|(at, (found, made))| is_random(at) || [*made, 0].contains(found));
    if is_remains && len <= page.len() as u64 {
        return Ok(());
    }
    Err(Error::NotADatabase { file: file.path().to_owned() })
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;

    use super::*;
    use crate::storage::{Store, StoreOptions};

    const PAGE: usize = 4096;

    fn read(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
        let file = fs.open(path, OpenOptions::read()).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    fn open_on(bytes: &[u8], has_log: bool) -> (Arc<dyn Fs>, Result<Store>) {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let path = Path::new("/notes.txt");
        fs.open(path, OpenOptions::create_new()).unwrap().write_all_at(bytes, 0).unwrap();
        if has_log {
            fs.create_dir_all(Path::new("/notes.txt-log")).unwrap();
        }
        let options =
            StoreOptions { page_size: PAGE, frames: 16, background: false, ..StoreOptions::default() };
        let store = Store::open(&fs, path, &options);
        (fs, store)
    }

    /// Goal: a foreign file is reported and keeps its bytes. Method: texts and numbers of many
    /// lengths, alone and beside a directory named like a log; pages that are almost the first page
    /// of a database.
    #[test]
    fn foreign_files_are_unchanged() {
        let text = b"to do: feed the cat\n".repeat(1000);
        let made = first_page(PAGE);
        let changed = |at: usize| {
            let mut bytes = made.clone();
            bytes[at] ^= 0x40;
            bytes.truncate(100);
            bytes
        };
        let mut all: Vec<Vec<u8>> = vec![changed(8), changed(17), changed(99), vec![0; PAGE + 1]];
        all.extend([1, 8, 20, 1000, PAGE - 1, PAGE, 2 * PAGE, 20_000].map(|len| text[..len].to_vec()));
        for bytes in all {
            for has_log in [false, true] {
                let (fs, store) = open_on(&bytes, has_log);
                let context = format!("{} bytes, {:?}", bytes.len(), &bytes[..1]);
                // With a log beside it, a file of whole pages counts as a damaged database.
                let is_told = match store.unwrap_err() {
                    Error::NotADatabase { file } => file == Path::new("/notes.txt"),
                    error => {
                        has_log && bytes.len() >= PAGE && error.kind() == cairn_vfs::ErrorKind::Corruption
                    }
                };
                assert!(is_told, "{context}");
                assert_eq!(read(&fs, Path::new("/notes.txt")), bytes, "{context}");
                if !has_log && bytes.get(16..24) != made.get(16..24) {
                    assert_eq!(fs.read_dir(Path::new("/")).unwrap(), [Path::new("/notes.txt")], "{context}");
                }
            }
        }
    }

    /// Goal: the remains of an interrupted creation count as a new database. Method: parts of the
    /// first page, with zeros for the missing parts.
    #[test]
    fn interrupted_creation_is_repeated() {
        let made = first_page(PAGE);
        let mut all = vec![vec![], vec![0; 1], vec![0; PAGE - 1]];
        for cut in [1, 16, 24, 512, PAGE - 1] {
            all.push(made[..cut].to_vec());
            all.push(
                made.iter()
                    .enumerate()
                    .map(|(at, byte)| if at < cut { 0 } else { *byte })
                    .take(900)
                    .collect(),
            );
        }
        for bytes in all {
            for has_log in [false, true] {
                let (_, store) = open_on(&bytes, has_log);
                assert_eq!(store.unwrap().space().pages().unwrap(), 1, "{} bytes", bytes.len());
            }
        }
    }
}
