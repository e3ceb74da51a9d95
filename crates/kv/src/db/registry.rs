//! The open keyspaces of a store, by id and by name.
//!
//! Readers load all keyspaces as one immutable value, and creating or dropping a keyspace replaces
//! it. The value is divided into pieces, so that a change copies one piece and a pointer to each of
//! the others. Thousands of keyspaces can thus be created one by one.

use std::collections::HashMap;

use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::db::keyspace_state::KeyspaceState;
use crate::swap::Swap;
use crate::version::KeyspaceId;

/// Number of keyspaces in a piece.
const PIECE: usize = 128;

type Piece = Vec<Option<Arc<KeyspaceState>>>;

/// All keyspaces at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keyspaces(Vec<Arc<Piece>>);

impl Keyspaces {
    /// Returns the keyspace `id` if it is open.
    #[inline]
    pub(crate) fn get(&self, id: KeyspaceId) -> Option<&Arc<KeyspaceState>> {
        let at = id.0 as usize;
        self.0.get(at / PIECE)?.get(at % PIECE)?.as_ref()
    }

    /// Iterates over all keyspaces in order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<KeyspaceState>> {
        self.0.iter().flat_map(|piece| piece.iter().flatten())
    }

    fn set(&mut self, id: KeyspaceId, state: Option<Arc<KeyspaceState>>) {
        debug_assert!(state.as_ref().is_none_or(|state| state.id == id), "the place of keyspace {}", id.0);
        let at = id.0 as usize;
        if self.0.len() <= at / PIECE {
            self.0.resize_with(at / PIECE + 1, Arc::default);
        }
        let Some(piece) = self.0.get_mut(at / PIECE) else { return };
        debug_assert!(piece.len() <= PIECE, "a piece of {} keyspaces", piece.len());
        let mut changed = Piece::clone(piece);
        if changed.len() <= at % PIECE {
            changed.resize_with(at % PIECE + 1, || None);
        }
        if let Some(slot) = changed.get_mut(at % PIECE) {
            *slot = state;
        }
        debug_assert!(changed.len() <= PIECE, "a piece of {} keyspaces", changed.len());
        *piece = Arc::new(changed);
    }
}

/// The keyspaces and the index of their names.
#[derive(Debug)]
pub(crate) struct Registry {
    all: Swap<Keyspaces>,
    names: Mutex<HashMap<String, KeyspaceId>>,
}

impl Registry {
    /// Creates a registry of `states`.
    pub(crate) fn new(states: Vec<Arc<KeyspaceState>>) -> Self {
        let names: HashMap<_, _> = states.iter().map(|state| (state.name.clone(), state.id)).collect();
        debug_assert_eq!(names.len(), states.len(), "two keyspaces have one name");
        debug_assert!(states.is_sorted_by(|a, b| a.id < b.id), "two keyspaces have one id");
        let mut all = Keyspaces::default();
        for state in states {
            let at = state.id.0 as usize;
            all.0.resize_with(all.0.len().max(at / PIECE + 1), Arc::default);
            // The pieces are not shared yet.
            if let Some(piece) = all.0.get_mut(at / PIECE).and_then(Arc::get_mut) {
                piece.resize_with(piece.len().max(at % PIECE + 1), || None);
                piece[at % PIECE] = Some(state);
            }
        }
        debug_assert_eq!(all.iter().count(), names.len(), "each keyspace has a place and a name");
        Registry { all: Swap::new(all), names: Mutex::new(names) }
    }

    /// Returns the current keyspaces.
    #[inline]
    pub(crate) fn load(&self) -> impl std::ops::Deref<Target = Arc<Keyspaces>> {
        self.all.load()
    }

    /// Returns the keyspace `name`, if it exists.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<KeyspaceState>> {
        let id = *lock(&self.names).get(name)?;
        let found = self.all.load().get(id).cloned();
        // Another thread may drop it in between, but its id is not used again.
        debug_assert!(
            found.as_ref().is_none_or(|found| found.name == name),
            "{name:?} names another keyspace"
        );
        found
    }

    /// Adds a keyspace. The caller holds `Inner::structure`.
    pub(crate) fn add(&self, state: Arc<KeyspaceState>) {
        let mut names = lock(&self.names);
        let taken = names.insert(state.name.clone(), state.id);
        debug_assert!(taken.is_none(), "the name {:?} is taken by keyspace {taken:?}", state.name);
        debug_assert!(self.all.load().get(state.id).is_none(), "keyspace {} is open", state.id.0);
        self.all.rcu(|all| {
            let mut all = Keyspaces::clone(all);
            all.set(state.id, Some(Arc::clone(&state)));
            all
        });
    }

    /// Removes a keyspace. The caller holds `Inner::structure`.
    pub(crate) fn remove(&self, state: &KeyspaceState) {
        let mut names = lock(&self.names);
        let removed = names.remove(&state.name);
        debug_assert_eq!(removed, Some(state.id), "the name {:?} of a dropped keyspace", state.name);
        self.all.rcu(|all| {
            let mut all = Keyspaces::clone(all);
            all.set(state.id, None);
            all
        });
    }
}
