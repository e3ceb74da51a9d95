//! Checks that the files of a database belong together, before anything is written, and in
//! particular before copies of the double write are restored.
//!
//! Each file has information about the others:
//!
//! ```text
//!   NAME         page 0: the log's id, the session, the position from which the log is needed,
//!                the position it had reached, the number of pages (`file_identity.rs`)
//!   NAME-pages   the file, the session, the position the log had reached; perhaps a copy of page 0
//!   NAME-log/    its id, its start, its end, a salt for each segment
//! ```
//!
//! The remains of a power loss pass at every moment, because page 0 is written after everything it
//! states, and the log is released once page 0 is durable. All of this holds for a sound page 0 in
//! place, and also for a newer copy of it, so each that exists must pass.

use std::path::Path;
use std::sync::Arc;

use cairn_pool::{Copies, Lsn, PAGE_HEADER_LEN};
use cairn_vfs::{File, Fs, OpenOptions};
use cairn_wal::Tail;

use super::file_identity::FileIdentity;
use super::foreign_file::refuse_bytes;
use super::space::{begins_database, page_size_of};
use super::store::{log_dir, pages_path};
use crate::{Error, Result};

/// A page 0, and the position of its last change.
struct Page {
    identity: FileIdentity,
    lsn: Lsn,
}

/// Returns the fields of page 0 of a database, or `None` if there is nothing but the remains of an
/// interrupted creation. Only reads.
///
/// Errors: [`Error::Corruption`] for files that do not belong together or are incomplete;
/// [`Error::NotADatabase`]; the file system's.
pub(crate) fn read_identity(
    fs: &Arc<dyn Fs>,
    path: &Path,
    page_size: usize,
    tail: &Tail,
) -> Result<Option<FileIdentity>> {
    let file = if fs.exists(path)? { Some(fs.open(path, OpenOptions::read())?) } else { None };
    // Before the other files, because it states the version of all of them.
    let own = match &file {
        Some(file) => page_in_place(&**file, path, page_size)?,
        None => None,
    };
    let copies_path = pages_path(path);
    let double =
        if fs.exists(&copies_path)? { Some(fs.open(&copies_path, OpenOptions::read())?) } else { None };
    let copies = match &double {
        Some(double) => Copies::read(&**double, page_size)?,
        None => None,
    };
    let copied = match (&double, &copies) {
        (Some(double), Some(copies)) => copies.page(&**double, 0)?.and_then(|page| page_of(&page)),
        _ => None,
    };
    let log_dir = log_dir(path);
    let Some(newest) = newest(own.as_ref(), copied.as_ref()) else {
        // Torn copies from before there was a log are the remains of an interrupted creation.
        let has_copies = copies.is_some_and(|copies| copies.logged != Lsn::NONE);
        return check_absent(file.as_deref(), path, page_size, tail, has_copies).map(|()| None);
    };
    if let Some(copies) = &copies {
        check_copies(path, &copies_path, copies, own.as_ref(), newest)?;
        check_end(path, copies.logged, tail, |any, end| {
            format!(
                "the log was on the disk up to {any} when pages were written, but it ends at {end}: all or part of it was removed, or it belongs to another database"
            )
        })?;
    }
    for page in own.iter().chain(&copied) {
        check_log(path, &log_dir, page, tail)?;
    }
    let len = match &file {
        Some(file) => file.len()?,
        None => 0,
    };
    let (there, expected) = (len / page_size as u64, u64::from(newest.identity.pages));
    if there < expected {
        let what =
            format!("the file has {there} pages, but had {expected} at its last checkpoint: it was cut off");
        return Err(mismatch(path, path, &what));
    }
    Ok(Some(newest.identity))
}

/// Returns the newer of page 0 in place and its copy.
fn newest<'p>(own: Option<&'p Page>, copied: Option<&'p Page>) -> Option<&'p Page> {
    match (own, copied) {
        (Some(own), Some(copied)) if own.identity.reached > copied.identity.reached => Some(own),
        (own, copied) => copied.or(own),
    }
}

/// Reads page 0 from the file. Returns `None` if it is torn or missing. Errors:
/// [`Error::Corruption`] for a sound page that does not begin a database with pages of this size.
fn page_in_place(file: &dyn File, path: &Path, page_size: usize) -> Result<Option<Page>> {
    if file.len()? < page_size as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; page_size];
    file.read_exact_at(&mut bytes, 0)?;
    let is_zero = bytes.iter().all(|&byte| byte == 0);
    let other_size = page_size_of(file)?.is_some_and(|size| size as usize != page_size);
    if other_size || (!is_zero && cairn_pool::verify(&bytes, 0).is_ok() && page_of(&bytes).is_none()) {
        begins_database(path, bytes.get(PAGE_HEADER_LEN..).unwrap_or_default(), page_size)?;
    }
    Ok(page_of(&bytes))
}

/// Parses the bytes of a page 0. Returns `None` if they are not valid.
fn page_of(bytes: &[u8]) -> Option<Page> {
    let lsn = cairn_pool::verify(bytes, 0).ok()?;
    let payload = bytes.get(PAGE_HEADER_LEN..)?;
    Some(Page { identity: begins_database(Path::new(""), payload, bytes.len()).ok()?, lsn })
}

/// Checks that there is no sign of a database whose page 0 is neither in place nor among the
/// copies.
fn check_absent(
    file: Option<&dyn File>,
    path: &Path,
    page_size: usize,
    tail: &Tail,
    has_copies: bool,
) -> Result<()> {
    let len = match file {
        Some(file) => file.len()?,
        None => 0,
    };
    if tail.id().is_none() && !has_copies {
        return file.map_or(Ok(()), |file| refuse_bytes(file, page_size));
    }
    if len < page_size as u64
        && let Some(file) = file.filter(|_| len > 0)
    {
        // For example a text beside a directory that holds a log.
        refuse_bytes(file, page_size)?;
    }
    let what = match (file, len) {
        (None, _) => "the file does not exist, but other files of its database do",
        (Some(_), 0) => "the file is empty, but other files of its database exist",
        _ => "it is not the first page of a database",
    };
    Err(mismatch(path, path, what))
}

/// Checks that copies belong to this file, and are not older than it states.
fn check_copies(
    path: &Path,
    copies_path: &Path,
    copies: &Copies,
    own: Option<&Page>,
    newest: &Page,
) -> Result<()> {
    let (owner, database) = (copies.owner, newest.identity.database);
    let is_of_it = |page: &Page| owner.file == page.identity.database;
    if !is_of_it(newest) || own.is_some_and(|own| !is_of_it(own)) {
        let what = format!(
            "{} belongs to database {:016x}, but {} to another one ({:016x})",
            copies_path.display(),
            owner.file,
            path.display(),
            own.map_or(database, |own| own.identity.database)
        );
        return Err(mismatch(copies_path, path, &what));
    }
    // If page 0 in place is not sound, its copy is among these.
    let Some(Page { identity, .. }) = own else { return Ok(()) };
    if ![owner.session, owner.before].contains(&identity.session) {
        let what = format!(
            "{} and {} belong to the same database, but to different points in time",
            copies_path.display(),
            path.display()
        );
        return Err(mismatch(copies_path, path, &what));
    }
    if copies.logged < identity.reached {
        let what = format!(
            "{} is older than {}: it was written at log position {}, the file at {}",
            copies_path.display(),
            path.display(),
            copies.logged,
            identity.reached
        );
        return Err(mismatch(copies_path, path, &what));
    }
    Ok(())
}

/// Checks that the log belongs to the database, and contains everything that its pages need.
fn check_log(path: &Path, log_dir: &Path, page: &Page, tail: &Tail) -> Result<()> {
    let identity = &page.identity;
    if let Some(id) = tail.id().filter(|id| *id != identity.log) {
        let what = format!(
            "{} is log {id:016x}, but the log of {} is {:016x}: it belongs to another database",
            log_dir.display(),
            path.display(),
            identity.log
        );
        return Err(mismatch(log_dir, path, &what));
    }
    check_end(path, identity.reached.max(page.lsn), tail, |reached, end| {
        format!(
            "its last change is at {reached} or later, but the log ends at {end}: all or part of the log was removed, or it belongs to another database"
        )
    })?;
    let start = Lsn(tail.start().get());
    if start > identity.checkpoint {
        let what = format!(
            "the log in {} begins at {start}, but is needed from {} on: {} is older than its log, or part of the log was removed",
            log_dir.display(),
            identity.checkpoint,
            path.display()
        );
        return Err(mismatch(path, path, &what));
    }
    let reached = cairn_wal::Lsn::from(identity.reached.0);
    if identity.reached != Lsn::NONE && tail.salt(reached.segment()).is_some_and(|salt| salt != identity.salt)
    {
        let what = format!(
            "segment {} in {} is not the one that {} was written with: one of them was continued from a copy of the database",
            reached.segment(),
            log_dir.display(),
            path.display()
        );
        return Err(mismatch(log_dir, path, &what));
    }
    Ok(())
}

fn check_end(path: &Path, reached: Lsn, tail: &Tail, what: impl FnOnce(Lsn, Lsn) -> String) -> Result<()> {
    let end = Lsn(tail.reached().get());
    if reached <= end { Ok(()) } else { Err(mismatch(path, path, &what(reached, end))) }
}

/// Returns the error for files that do not match.
pub(super) fn mismatch(file: &Path, path: &Path, what: &str) -> Error {
    // The usual reason is that the file was copied or moved alone.
    let what = format!(
        "{what}; nothing was changed; {} and {} belong to the file and must be copied and moved with it, or use a backup (`cairn sql backup`), which has all of it",
        log_dir(path).display(),
        pages_path(path).display()
    );
    Error::Corruption { file: file.to_owned(), page: 0, what }
}
