//! The state of cleaning up after ended transactions (`cleanup.rs`).

use std::collections::VecDeque;

use cairn_vfs::sync::{Mutex, RwLock};

use super::commit::Ghost;

/// The state of cleaning up, and the work that could not be done.
#[derive(Debug, Default)]
pub(crate) struct Cleaning {
    /// Held for reading while freeing the remains of ended transactions. Those who do this may have
    /// no snapshot, so nothing else shows their presence.
    pub(crate) turn: RwLock<()>,
    /// Ghosts that could not be removed in their turn because their key was claimed. The claim may
    /// have been released since.
    pub(crate) left: Mutex<VecDeque<Ghost>>,
}
