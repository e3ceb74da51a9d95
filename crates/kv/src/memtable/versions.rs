//! The versions of one key, newest first: the record's own version merged with the chain of later
//! arrivals.

use super::arena::{Arena, Held, Link};
use super::record::{Entry, Record, Tag, Unlinked, Update};
use crate::kind::{Seqno, Version};

/// Iterates over versions of a key from newer to older.
#[derive(Clone, Copy)]
pub(super) struct Versions<'a> {
    record: Held<'a, Record>,
    /// The next update of the chain.
    chain: Option<Held<'a, Update>>,
    /// True while the record's own version has not been returned.
    first: bool,
}

impl<'a> Versions<'a> {
    /// Iterates over all versions.
    #[inline]
    pub(super) fn all(record: Held<'a, Record>) -> Self {
        Versions { record, chain: record.get().chain.get(), first: true }
    }

    /// Iterates over the versions written at or before `seqno`. Cost: logarithmic in the number of
    /// newer ones.
    #[inline]
    pub(super) fn at(record: Held<'a, Record>, seqno: Seqno) -> Self {
        let limit = Tag::last_at(seqno);
        let chain = match record.get().chain.get() {
            Some(newest) if newest.tag > limit => descend(newest, |tag| tag > limit).1,
            chain => chain,
        };
        debug_assert!(chain.is_none_or(|update| update.tag <= limit), "a version written after {seqno}");
        Versions { record, chain, first: record.tag <= limit }
    }
}

impl<'a> Versions<'a> {
    /// Iterates over the versions older than the one written at `seqno`. Cost: logarithmic in the
    /// number of newer ones.
    pub(super) fn before(record: Held<'a, Record>, seqno: Seqno) -> Self {
        match seqno.checked_sub(1) {
            Some(at) => Versions::at(record, at),
            None => Versions { record, chain: None, first: false },
        }
    }
}

/// Returns the oldest version. Cost: logarithmic in the number of versions.
#[inline]
pub(super) fn oldest(record: Held<'_, Record>) -> Version<'_> {
    let first = record.first();
    match record.get().chain.get().map(|newest| descend(newest, |_| true).0) {
        Some(last) if last.tag < record.tag => last.version(),
        _ => first,
    }
}

/// Returns the oldest version written after `seqno`. Cost: logarithmic in the number of versions.
#[inline]
pub(super) fn oldest_after(record: Held<'_, Record>, seqno: Seqno) -> Option<Version<'_>> {
    let newer = |tag: Tag| tag > Tag::last_at(seqno);
    let first = newer(record.tag).then(|| record.first());
    let newest = record.get().chain.get().filter(|newest| newer(newest.tag));
    older(first, newest.map(|newest| descend(newest, newer).0.version()))
}

impl<'a> Iterator for Versions<'a> {
    type Item = Version<'a>;

    #[inline]
    fn next(&mut self) -> Option<Version<'a>> {
        match self.chain {
            Some(update) if !self.first || update.tag > self.record.tag => {
                self.chain = update.get().next.get();
                debug_assert!(self.chain.is_none_or(|older| older.tag <= update.tag), "the chain descends");
                Some(update.version())
            }
            _ if self.first => {
                self.first = false;
                Some(self.record.first())
            }
            _ => None,
        }
    }
}

/// Returns the older of two versions, or the only one.
fn older<'a>(a: Option<Version<'a>>, b: Option<Version<'a>>) -> Option<Version<'a>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.seqno < b.seqno { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// Descends the chain from `newest`, which is `wanted`. Returns the last update whose tag is
/// wanted, and the update below it.
///
/// `wanted` must hold for all tags above some tag, and for no others.
fn descend<'a>(
    newest: Held<'a, Update>,
    wanted: impl Fn(Tag) -> bool,
) -> (Held<'a, Update>, Option<Held<'a, Update>>) {
    debug_assert!(wanted(newest.tag), "the descent begins at an update that is not wanted");
    let wanted = |update: Option<Held<'a, Update>>| update.filter(|update| wanted(update.tag));
    let mut last = newest;
    // BOUND: each step moves down the chain, which ends.
    loop {
        let tower = last.tower();
        let shortcut = tower.and_then(|tower| wanted(tower.jump.get()).or_else(|| wanted(tower.below.get())));
        let next = last.get().next.get();
        match shortcut.or_else(|| wanted(next)) {
            Some(update) => {
                debug_assert!(update.tag <= last.tag, "the chain descends");
                last = update;
            }
            None => return (last, next),
        }
    }
}

/// Adds a version to a key that already has one. Any number of threads may do so at once.
pub(super) fn push<'a>(arena: &'a Arena, record: Held<'a, Record>, entry: &Entry<'_>) {
    let tag = entry.tag();
    let newest: Option<Held<'a, Update>> = record.get().chain.get();
    let update = Unlinked::create(arena, entry, newest);
    let (mut link, mut older): (&Link<Update>, _) = (&record.get().chain, newest);
    loop {
        if let Some(newer) = older
            && newer.tag > tag
        {
            let (last, next) = descend(newer, |other| other > tag);
            (link, older) = (&last.get().next, next);
        }
        if update.link(link, older) {
            return;
        }
        // Another thread linked an update here. Updates are never unlinked, so the right position
        // is this link or one further down.
        older = link.get();
    }
}
