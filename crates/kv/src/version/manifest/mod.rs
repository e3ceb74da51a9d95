//! The manifest: a log of version edits, each durable before it takes effect.
//!
//! `MANIFEST-NNNNNN` is a header, one record with the whole state when the file was begun, and one
//! record per edit since then. `CURRENT` names the valid manifest. Only the process that began a
//! manifest appends to it: every open begins a new one. The reason is that data which an earlier
//! process wrote and failed to sync can be in the kernel's cache but not on the disk, and no later
//! sync writes it. Reading it back proves nothing; writing it again does.

pub(super) mod format;
pub(super) mod read;
pub(super) mod write;
