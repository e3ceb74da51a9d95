//! Transactions that were unfinished at the end of the log.

use std::collections::{HashMap, HashSet};

use super::record::{Before, DroppedTree, Record};

/// The contents of a key before a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undo<'r> {
    pub(crate) tree: u32,
    pub(crate) key: &'r [u8],
    pub(crate) before: Option<&'r [u8]>,
}

/// A transaction that did not commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Loser {
    pub(crate) transaction: u64,
    /// Whether it has changed any records.
    pub(crate) has_written: bool,
    /// Trees that it created, and whose freeing has not begun.
    pub(crate) created: Vec<u32>,
    /// All trees that it ever created. An earlier, interrupted recovery may have begun to free some
    /// of them, and their pages may have any contents now.
    ever_created: HashSet<u32>,
}

/// The work left to do after a crash.
#[derive(Debug, Default)]
pub(crate) struct RecoveryWork {
    pub(crate) losers: Vec<Loser>,
    /// Trees dropped by a commit, whose freeing has not begun.
    pub(crate) dropped: Vec<DroppedTree>,
    /// Records that became ghosts at some time, by tree; perhaps not all of them. No snapshot can
    /// see the rows of those that still are ghosts.
    pub(crate) ghosts: Vec<(u32, Vec<u8>)>,
    /// A number that no transaction in the log has.
    pub(crate) next_transaction: u64,
}

/// Determines the losers, record by record.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    /// Trees dropped by each running transaction.
    running: HashMap<u64, Vec<DroppedTree>>,
    dropped: Vec<DroppedTree>,
    freed: HashSet<u32>,
    last: u64,
}

impl Analysis {
    pub(crate) fn add(&mut self, record: &[u8]) {
        let Some((record, _)) = Record::decode(record) else { return };
        match record {
            Record::Pages => {}
            Record::Row { transaction, .. } => _ = self.trees_dropped_by(transaction),
            Record::Made { transaction, root } => {
                // The page may have belonged to another tree before, whose end does not concern
                // this one.
                self.freed.remove(&root);
                self.dropped.retain(|other| other.root != root);
                self.trees_dropped_by(transaction);
            }
            Record::Dropped { transaction, tree } => self.trees_dropped_by(transaction).push(tree),
            Record::Commit { transaction } => {
                let dropped = self.running.remove(&transaction).unwrap_or_default();
                self.dropped.extend(dropped);
                self.last = self.last.max(transaction);
            }
            Record::Abort { transaction } => {
                self.running.remove(&transaction);
                self.last = self.last.max(transaction);
            }
            Record::Freed { root } => _ = self.freed.insert(root),
        }
    }

    fn trees_dropped_by(&mut self, transaction: u64) -> &mut Vec<DroppedTree> {
        self.last = self.last.max(transaction);
        self.running.entry(transaction).or_default()
    }

    pub(crate) fn finish(self) -> RecoveryWork {
        let mut losers: Vec<Loser> =
            self.running.into_keys().map(|transaction| Loser { transaction, ..Loser::default() }).collect();
        losers.sort_by_key(|loser| loser.transaction);
        debug_assert!(
            losers.is_sorted_by(|a, b| a.transaction < b.transaction),
            "a transaction is undone twice: {losers:?}"
        );
        debug_assert!(
            losers.last().is_none_or(|loser| loser.transaction <= self.last),
            "the numbers up to {} were used, and one of {losers:?}",
            self.last
        );
        let dropped = self.dropped.into_iter().filter(|tree| !self.freed.contains(&tree.root)).collect();
        RecoveryWork { losers, dropped, ghosts: Vec::new(), next_transaction: self.last + 1 }
    }
}

/// Maximum number of ghosts that an opening removes. The others wait for a vacuum.
const GHOSTS: usize = 1 << 16;

impl RecoveryWork {
    /// Notes a record that became a ghost.
    pub(crate) fn note_ghost(&mut self, record: &Record<'_>) {
        if let Record::Row { tree, key, .. } = *record
            && self.ghosts.len() < GHOSTS
        {
            self.ghosts.push((tree, key.to_vec()));
        }
        debug_assert!(self.ghosts.len() <= GHOSTS, "{} ghosts are noted", self.ghosts.len());
    }

    /// Determines the work to undo. Called with every record of the log, in order. The old contents
    /// of records are not kept, because they may exceed memory, and the log has them.
    pub(crate) fn collect(&mut self, record: &Record<'_>) {
        debug_assert!(self.next_transaction > 0, "the log was not analysed before it is replayed");
        match *record {
            Record::Row { transaction, .. } => {
                if let Some(loser) = self.loser(transaction) {
                    loser.has_written = true;
                }
            }
            Record::Made { transaction, root } => {
                if let Some(loser) = self.loser(transaction) {
                    loser.created.push(root);
                    loser.ever_created.insert(root);
                }
            }
            Record::Freed { root } => {
                self.losers.iter_mut().for_each(|loser| loser.created.retain(|other| *other != root));
            }
            Record::Pages | Record::Commit { .. } | Record::Abort { .. } | Record::Dropped { .. } => {}
        }
    }

    /// Returns the contents before a transaction that did not commit, if a record has them.
    pub(crate) fn to_undo<'r>(&self, record: &Record<'r>) -> Option<Undo<'r>> {
        let Record::Row { transaction, tree, key, before } = *record else { return None };
        debug_assert!(
            self.losers.is_sorted_by(|a, b| a.transaction < b.transaction),
            "the transactions to undo are out of order"
        );
        let before = match before {
            Before::Known => return None,
            Before::Absent => None,
            Before::Value(value) => Some(value),
        };
        let at = self.losers.binary_search_by_key(&transaction, |loser| loser.transaction).ok()?;
        // A tree that the transaction created is freed entirely, or already was, so its records
        // need no undo.
        let is_own = self.losers.get(at).is_some_and(|loser| loser.ever_created.contains(&tree));
        (!is_own).then_some(Undo { tree, key, before })
    }

    fn loser(&mut self, transaction: u64) -> Option<&mut Loser> {
        let at = self.losers.binary_search_by_key(&transaction, |loser| loser.transaction).ok()?;
        self.losers.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a dropped tree is freed unless that has begun already, regardless of which tree had
    /// its root page before. Method: the records of a dropped tree and of another one on the same
    /// page, up to each moment.
    #[test]
    fn reused_root_page_does_not_hide_dropped_tree() {
        let tree = DroppedTree { root: 5, with_chains: true };
        let other = DroppedTree { root: 5, with_chains: false };
        let records = [
            (Record::Made { transaction: 1, root: 5 }, None),
            (Record::Commit { transaction: 1 }, None),
            (Record::Dropped { transaction: 2, tree }, None),
            (Record::Commit { transaction: 2 }, Some(true)),
            (Record::Freed { root: 5 }, None),
            (Record::Made { transaction: 3, root: 5 }, None),
            (Record::Commit { transaction: 3 }, None),
            (Record::Dropped { transaction: 4, tree: other }, None),
            (Record::Commit { transaction: 4 }, Some(false)),
            (Record::Freed { root: 5 }, None),
        ];
        for end in 0..records.len() {
            let mut analysis = Analysis::default();
            for (record, _) in &records[..=end] {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                analysis.add(&bytes);
            }
            let dropped = analysis.finish().dropped;
            let found: Vec<(u32, bool)> = dropped.iter().map(|tree| (tree.root, tree.with_chains)).collect();
            let expected: Vec<(u32, bool)> = records[end].1.iter().map(|chains| (5, *chains)).collect();
            assert_eq!(found, expected, "up to record {end}");
        }
    }
}
