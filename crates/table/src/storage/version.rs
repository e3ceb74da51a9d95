//! The versions of database files: one function chooses the reader of page 0.
//!
//! ```text
//!   0    "CAIRNSQL"
//!   8    version u32      the same place in every version
//!   12   page size u32
//! ```
//!
//! A version is raised only together with a reader for the last one, and with files of that one in
//! `tests/fixtures`. The version covers everything that pages and log records contain. Within a
//! version, a new kind of page, of log record or of catalog record gets a number of its own, so
//! earlier builds refuse it.

use std::path::Path;

use super::file_identity::FileIdentity;
use super::source::Source;
use crate::{Error, Result};

pub(super) const MAGIC: &[u8; 8] = b"CAIRNSQL";

/// The version that is written.
pub(super) const VERSION: u32 = 2;
/// There is a reader for it.
const _: () = assert!(VERSION == 2);

/// The place of the version, and of the page size in all versions so far.
pub(super) const VERSION_AT: usize = MAGIC.len();
pub(super) const PAGE_SIZE_AT: usize = VERSION_AT + size_of::<u32>();

/// The fields of page 0 that a database is opened by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) page_size: u32,
    pub(super) identity: FileIdentity,
}

/// Reads page 0 from its payload, or returns `None` if it does not begin a database.
///
/// Errors: [`Error::Unsupported`] for a version that this build does not read.
pub(super) fn read(path: &Path, payload: &[u8]) -> Result<Option<Header>> {
    if !payload.starts_with(MAGIC) {
        return Ok(None);
    }
    match Source::u32(payload, VERSION_AT) {
        Ok(2) => Ok(v2::read(payload)),
        Ok(other) => Err(Error::Unsupported {
            file: path.to_owned(),
            what: format!(
                "this is a database of version {other}, and this build of Cairn reads version {VERSION}"
            ),
        }),
        Err(_) => Ok(None),
    }
}

/// Version 2, since November 2026: page 0 ties the files of a database together.
mod v2 {
    use super::{FileIdentity, Header, PAGE_SIZE_AT, Source};

    pub(super) fn read(payload: &[u8]) -> Option<Header> {
        let page_size = Source::u32(payload, PAGE_SIZE_AT).ok()?;
        Some(Header { page_size, identity: FileIdentity::decode(payload)? })
    }
}
