//! The versions of one key, newest first: the record's own one merged with the chain of later
//! arrivals.

use super::arena::{Arena, Held, Link};
use super::record::{Entry, Record, Tag, Unlinked, Update};
use crate::kind::{Seqno, Version};

/// Walks versions of a key from newer to older.
#[derive(Clone, Copy)]
pub(super) struct Versions<'a> {
    record: Held<'a, Record>,
    /// The next one of the chain.
    chain: Option<Held<'a, Update>>,
    /// Whether the record's own version is still to come.
    first: bool,
}

impl<'a> Versions<'a> {
    /// All versions.
    #[inline]
    pub(super) fn all(record: Held<'a, Record>) -> Self {
        Versions { record, chain: record.get().chain.get(), first: true }
    }

    /// The versions written at or before `seqno`. Cost: logarithmic in the number of later ones.
    #[inline]
    pub(super) fn at(record: Held<'a, Record>, seqno: Seqno) -> Self {
        let limit = Tag::last_at(seqno);
        let chain = match record.get().chain.get() {
            Some(newest) if newest.tag > limit => descend(newest, |tag| tag > limit).1,
            chain => chain,
        };
        Versions { record, chain, first: record.tag <= limit }
    }
}

impl<'a> Versions<'a> {
    /// The versions older than the one written at `seqno`. Cost: logarithmic in the number of later
    /// ones.
    pub(super) fn before(record: Held<'a, Record>, seqno: Seqno) -> Self {
        match seqno.checked_sub(1) {
            Some(at) => Versions::at(record, at),
            None => Versions { record, chain: None, first: false },
        }
    }
}

/// The oldest version. Cost: logarithmic in their number.
#[inline]
pub(super) fn oldest(record: Held<'_, Record>) -> Version<'_> {
    let first = record.first();
    match record.get().chain.get().map(|newest| descend(newest, |_| true).0) {
        Some(last) if last.tag < record.tag => last.version(),
        _ => first,
    }
}

/// The oldest of the versions written after `seqno`. Cost: logarithmic in the number of all.
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

/// The older one of two versions, or the only one.
fn older<'a>(a: Option<Version<'a>>, b: Option<Version<'a>>) -> Option<Version<'a>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.seqno < b.seqno { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// Down from `newest`, which is `wanted`, as far as tags are: the last update that is wanted and
/// the one below it.
///
/// `wanted` holds for all tags above some tag.
fn descend<'a>(
    newest: Held<'a, Update>,
    wanted: impl Fn(Tag) -> bool,
) -> (Held<'a, Update>, Option<Held<'a, Update>>) {
    let wanted = |update: Option<Held<'a, Update>>| update.filter(|update| wanted(update.tag));
    let mut last = newest;
    // BOUND: each step goes down the chain, which ends.
    loop {
        let tower = last.tower();
        let shortcut = tower.and_then(|tower| wanted(tower.jump.get()).or_else(|| wanted(tower.below.get())));
        let next = last.get().next.get();
        match shortcut.or_else(|| wanted(next)) {
            Some(update) => last = update,
            None => return (last, next),
        }
    }
}

/// Adds a version to a key that has one already. Any number of threads may do so at the same time.
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
        // Somebody linked another one here. Nothing is ever unlinked, so the place is the same link
        // or further down.
        older = link.get();
    }
}
