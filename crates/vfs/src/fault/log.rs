//! The operation log: one line of text for each operation on the disk.
//!
//! ```text
//!   open 1 rw if-missing buffered a/b        handle 1 is the file that this opened
//!   write 1 4096 00ff17                      handle, offset, bytes in hex ("-" for none)
//!   sync-data 1
//!   rename a/b a/c
//!   crash random:17                          power loss; the rest runs on the image
//! ```
//!
//! In paths, bytes that are not printable ASCII, blanks and `%` are written as `%` and two hex
//! digits.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use super::crash::CrashImage;
use super::options::Rule;
use crate::OpenOptions;

mod text;

pub use text::ParseLogError;

/// One operation on a [`FaultFs`](super::FaultFs): by the engine through [`Fs`](crate::Fs) and
/// [`File`](crate::File), or by the test.
///
/// [`Display`](fmt::Display) and [`FromStr`](std::str::FromStr) convert to and from a line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are the arguments of the method that each variant names
pub enum LoggedOperation {
    /// `Fs::open`; later lines refer to the file by `handle`.
    Open { handle: u64, path: PathBuf, options: OpenOptions },
    /// `File::read_at`.
    Read { handle: u64, offset: u64, len: u64 },
    /// `File::write_at`.
    Write { handle: u64, offset: u64, bytes: Arc<[u8]> },
    /// `File::set_len`.
    SetLen { handle: u64, len: u64 },
    /// `File::allocate`.
    Allocate { handle: u64, offset: u64, len: u64 },
    /// `File::sync_data`.
    SyncData { handle: u64 },
    /// `File::try_lock`.
    TryLock { handle: u64 },
    /// `File::len`.
    Len { handle: u64 },
    /// `File::map`.
    Map { handle: u64 },
    /// The drop of a file.
    Close { handle: u64 },
    /// `Fs::metadata`.
    Metadata { path: PathBuf },
    /// `Fs::rename`.
    Rename { from: PathBuf, to: PathBuf },
    /// `Fs::hard_link`.
    HardLink { from: PathBuf, to: PathBuf },
    /// `Fs::remove`.
    Remove { path: PathBuf },
    /// `Fs::create_dir_all`.
    CreateDirAll { path: PathBuf },
    /// `Fs::read_dir`.
    ReadDir { path: PathBuf },
    /// `Fs::sync_dir`.
    SyncDir { path: PathBuf },
    /// `FaultFs::crash`, or the drawing of an image. Later operations run on that image.
    Crash(CrashImage),
    /// `FaultFs::inject`.
    Inject(Rule),
    /// `FaultFs::clear_rules`.
    ClearRules,
    /// `FaultFs::set_quota`.
    SetQuota(Option<u64>),
    /// `FaultFs::install`.
    Install { path: PathBuf, bytes: Arc<[u8]> },
    /// `FaultFs::drop_caches`.
    DropCaches,
    /// `FaultFs::flip_bit`.
    FlipBit { path: PathBuf, offset: u64, bit: u8 },
    /// `FaultFs::zero_tail`.
    ZeroTail { path: PathBuf, from: u64 },
    /// `FaultFs::swap_blocks`.
    SwapBlocks { path: PathBuf, first: u64, second: u64, len: u64 },
}

impl fmt::Display for LoggedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LoggedOperation as L;
        use text::{Hex, Name};
        match self {
            L::Open { handle, path, options } => {
                write!(f, "open {handle} {} {}", text::options(*options), Name(path))
            }
            L::Read { handle, offset, len } => write!(f, "read {handle} {offset} {len}"),
            L::Write { handle, offset, bytes } => write!(f, "write {handle} {offset} {}", Hex(bytes)),
            L::SetLen { handle, len } => write!(f, "set-len {handle} {len}"),
            L::Allocate { handle, offset, len } => write!(f, "allocate {handle} {offset} {len}"),
            L::SyncData { handle } => write!(f, "sync-data {handle}"),
            L::TryLock { handle } => write!(f, "lock {handle}"),
            L::Len { handle } => write!(f, "len {handle}"),
            L::Map { handle } => write!(f, "map {handle}"),
            L::Close { handle } => write!(f, "close {handle}"),
            L::Metadata { path } => write!(f, "stat {}", Name(path)),
            L::Rename { from, to } => write!(f, "rename {} {}", Name(from), Name(to)),
            L::HardLink { from, to } => write!(f, "link {} {}", Name(from), Name(to)),
            L::Remove { path } => write!(f, "remove {}", Name(path)),
            L::CreateDirAll { path } => write!(f, "create-dirs {}", Name(path)),
            L::ReadDir { path } => write!(f, "read-dir {}", Name(path)),
            L::SyncDir { path } => write!(f, "sync-dir {}", Name(path)),
            L::Crash(image) => write!(f, "crash {image}"),
            L::Inject(rule) => write!(f, "inject {}", text::rule(*rule)),
            L::ClearRules => f.write_str("clear-rules"),
            L::SetQuota(Some(bytes)) => write!(f, "quota {bytes}"),
            L::SetQuota(None) => f.write_str("quota none"),
            L::Install { path, bytes } => write!(f, "install {} {}", Name(path), Hex(bytes)),
            L::DropCaches => f.write_str("drop-caches"),
            L::FlipBit { path, offset, bit } => write!(f, "flip-bit {} {offset} {bit}", Name(path)),
            L::ZeroTail { path, from } => write!(f, "zero-tail {} {from}", Name(path)),
            L::SwapBlocks { path, first, second, len } => {
                write!(f, "swap-blocks {} {first} {second} {len}", Name(path))
            }
        }
    }
}

impl std::str::FromStr for LoggedOperation {
    type Err = ParseLogError;

    fn from_str(line: &str) -> Result<Self, ParseLogError> {
        use LoggedOperation as L;
        let mut words = text::Words::new(line);
        let operation = match words.word("an operation")? {
            "open" => L::Open { handle: words.number()?, options: words.options()?, path: words.path()? },
            "read" => L::Read { handle: words.number()?, offset: words.number()?, len: words.number()? },
            "write" => L::Write { handle: words.number()?, offset: words.number()?, bytes: words.bytes()? },
            "set-len" => L::SetLen { handle: words.number()?, len: words.number()? },
            "allocate" => {
                L::Allocate { handle: words.number()?, offset: words.number()?, len: words.number()? }
            }
            "sync-data" => L::SyncData { handle: words.number()? },
            "lock" => L::TryLock { handle: words.number()? },
            "len" => L::Len { handle: words.number()? },
            "map" => L::Map { handle: words.number()? },
            "close" => L::Close { handle: words.number()? },
            "stat" => L::Metadata { path: words.path()? },
            "rename" => L::Rename { from: words.path()?, to: words.path()? },
            "link" => L::HardLink { from: words.path()?, to: words.path()? },
            "remove" => L::Remove { path: words.path()? },
            "create-dirs" => L::CreateDirAll { path: words.path()? },
            "read-dir" => L::ReadDir { path: words.path()? },
            "sync-dir" => L::SyncDir { path: words.path()? },
            "crash" => L::Crash(words.image()?),
            "inject" => L::Inject(words.rule()?),
            "clear-rules" => L::ClearRules,
            "quota" => L::SetQuota(words.optional_number()?),
            "install" => L::Install { path: words.path()?, bytes: words.bytes()? },
            "drop-caches" => L::DropCaches,
            "flip-bit" => L::FlipBit { path: words.path()?, offset: words.number()?, bit: words.small()? },
            "zero-tail" => L::ZeroTail { path: words.path()?, from: words.number()? },
            "swap-blocks" => L::SwapBlocks {
                path: words.path()?,
                first: words.number()?,
                second: words.number()?,
                len: words.number()?,
            },
            _ => return Err(words.unexpected("a known operation")),
        };
        words.end()?;
        Ok(operation)
    }
}

/// Formats a log as text, one line per operation.
pub fn format_log(log: &[LoggedOperation]) -> String {
    let mut text = String::new();
    for operation in log {
        let _ = writeln!(text, "{operation}"); // writing to a String cannot fail
    }
    debug_assert!(text.lines().count() == log.len(), "an operation takes more than a line");
    text
}

/// Parses a log. Skips empty lines and lines that begin with `#`.
pub fn parse_log(text: &str) -> Result<Vec<LoggedOperation>, ParseLogError> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(index, line)| line.parse().map_err(|e: ParseLogError| e.on_line(index + 1))).collect()
}

#[cfg(test)]
mod tests;
