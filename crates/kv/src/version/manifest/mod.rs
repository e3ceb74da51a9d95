//! The manifest: a log of version edits, each durable before it counts.
//!
//! `MANIFEST-NNNNNN` is a header, one record with the whole state when the file was begun, and a
//! record for each edit since. `CURRENT` names the one that counts. A manifest is only ever
//! appended to by the process that began it: every open begins a new one. What an earlier process
//! wrote and could not sync can be in the kernel's cache and not on the disk, where no later sync
//! puts it; reading it back proves nothing, writing it again does.

pub(super) mod format;
pub(super) mod read;
pub(super) mod write;
