//! Point lookups: find the newest visible version of a key, searching the sources from the newest
//! to the oldest.

use std::ops::ControlFlow;

use cairn_vfs::sync::Arc;

use crate::db::blob_values::BlobValues;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::view::View;
use crate::iter::resolve::{Resolver, Step};
use crate::iter::visible::BlobSource;
use crate::kind::{Kind, Seqno, Version};
use crate::memtable::Memtable;
use crate::table::{self, BlockRef, Query, Table};
use crate::ttl;
use crate::value::Value;
use crate::version::Version as Files;
use crate::{Error, Result};

/// The state of a lookup on its way through the sources.
struct Lookup<'a> {
    key: &'a [u8],
    at: Seqno,
    /// The newest range tombstone found so far that covers the key. It hides all older entries.
    covered: Seqno,
    resolver: Resolver,
    outcome: Outcome,
}

/// The result of a lookup so far.
enum Outcome {
    /// Undecided; older sources must be searched.
    Open,
    /// No value, or operands without a base.
    Gone,
    /// The value, or the base of the operands.
    Found(Value),
    /// Like `Found`, but the value is in a blob file.
    Blob(Vec<u8>),
}

impl<'a> Lookup<'a> {
    #[inline]
    fn new(key: &'a [u8], at: Seqno) -> Self {
        Lookup { key, at, covered: 0, resolver: Resolver::default(), outcome: Outcome::Open }
    }

    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Open)
    }

    /// Processes the next older version. `keep` makes its value outlive the source.
    #[inline]
    fn step(&mut self, version: Version<'_>, keep: impl FnOnce(&[u8]) -> Value) -> ControlFlow<()> {
        debug_assert!(version.seqno <= self.at, "a version of {} is seen at {}", version.seqno, self.at);
        debug_assert!(self.is_open(), "the lookup is decided");
        let (kind, value) = (version.kind, version.value);
        match self.resolver.step(version, self.covered) {
            Step::Older => return ControlFlow::Continue(()),
            Step::Gone => self.outcome = Outcome::Gone,
            Step::Found | Step::Base if kind == Kind::Blob => self.outcome = Outcome::Blob(value.to_vec()),
            Step::Found | Step::Base => self.outcome = Outcome::Found(keep(value)),
        }
        ControlFlow::Break(())
    }

    #[inline]
    fn memtable(&mut self, memtable: &Memtable) {
        debug_assert!(self.is_open(), "an older memtable is searched, but the lookup is decided");
        self.cover(memtable.newest_covering(self.key, self.at));
        let (key, at) = (self.key, self.at);
        memtable.get(key, at, |version| self.step(version, Value::copy));
    }

    #[inline]
    fn cover(&mut self, tombstone: Option<Seqno>) {
        if let Some(seqno) = tombstone {
            debug_assert!(seqno <= self.at, "a tombstone of {seqno} is seen at {}", self.at);
            self.covered = self.covered.max(seqno);
        }
    }

    #[inline]
    fn table(&mut self, table: &Table, key_hash: u64) -> Result<()> {
        debug_assert!(self.is_open(), "an older table is searched, but the lookup is decided");
        let tombstones = table.range_tombstones();
        if !tombstones.is_empty() {
            self.cover(tombstones.newest_covering(self.key, self.at));
        }
        let (key, at) = (self.key, self.at);
        table.get(key, key_hash, at, |version, block: &BlockRef| {
            self.step(version, |value| Value::in_block(value, block))
        })
    }
}

impl Inner {
    /// Returns the value of `key` as of `at`, or the newest one if `at` is `None`.
    #[inline]
    pub(crate) fn get(
        &self,
        keyspace: &KeyspaceState,
        key: &[u8],
        at: Option<Seqno>,
    ) -> Result<Option<Value>> {
        // ORDER: load the view before `visible`. The sources of the view then still hold every
        // entry that has since been dropped because it was older than a version visible now.
        let view = keyspace.view.load();
        // After loading the view, because dropping a keyspace sets the flag before it empties the
        // view.
        keyspace.check_open()?;
        let at = at.unwrap_or_else(|| self.order.visible());
        let mut lookup = Lookup::new(key, at);
        lookup.memtable(&view.active);
        if lookup.is_open() && !view.sealed.is_empty() {
            for sealed in &view.sealed {
                lookup.memtable(&sealed.memtable);
                if !lookup.is_open() {
                    break;
                }
            }
        }
        if lookup.is_open() {
            self.get_in_tables(&view, &mut lookup)?;
        }
        self.finish(keyspace, &view, lookup)
    }

    fn get_in_tables(&self, view: &View, lookup: &mut Lookup<'_>) -> Result<()> {
        let key_hash = table::hash_key(lookup.key);
        let key = lookup.key;
        let end = view.version.search(key, |_, file| {
            let result = self.tables.open(file).and_then(|table| lookup.table(table, key_hash));
            match result {
                Ok(()) if lookup.is_open() => ControlFlow::Continue(()),
                result => ControlFlow::Break(result),
            }
        });
        match end {
            ControlFlow::Break(result) => result,
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// Searches the runs from the newest to the oldest for all undecided keys together, so that
    /// each table and each of its blocks is searched only once.
    fn get_many_in_tables(&self, view: &View, lookups: &mut [Lookup<'_>], at: Seqno) -> Result<()> {
        let mut open: Vec<(usize, u64)> = lookups
            .iter()
            .enumerate()
            .filter(|(_, lookup)| lookup.is_open())
            .map(|(at, lookup)| (at, table::hash_key(lookup.key)))
            .collect();
        let (mut asked, mut queries) = (Vec::with_capacity(open.len()), Vec::with_capacity(open.len()));
        for run in view.version.runs() {
            if open.is_empty() {
                break;
            }
            debug_assert!(asked.is_empty(), "keys are still asked of the run before");
            asked.extend(open.iter().filter_map(|&(at, hash)| Some((run.find(lookups[at].key)?, at, hash))));
            asked.sort_unstable_by_key(|(file, at, _)| (file.number(), *at));
            for group in asked.chunk_by(|(one, ..), (other, ..)| one.number() == other.number()) {
                let Some((file, ..)) = group.first() else { continue };
                let table = self.tables.open(file)?;
                debug_assert!(queries.is_empty(), "the queries of another table are left");
                queries.extend(group.iter().map(|&(_, at, hash)| Query { key: lookups[at].key, hash }));
                let tombstones = table.range_tombstones();
                if !tombstones.is_empty() {
                    for &(_, number, _) in group {
                        let lookup = &mut lookups[number];
                        lookup.cover(tombstones.newest_covering(lookup.key, at));
                    }
                }
                table.get_many(&queries, at, |query, version, block| {
                    let lookup = &mut lookups[group[query].1];
                    lookup.step(version, |value| Value::in_block(value, block))
                })?;
                queries.clear();
            }
            asked.clear();
            open.retain(|&(at, _)| lookups[at].is_open());
        }
        Ok(())
    }

    /// Returns the value without its time stamp, or `None` if it has expired.
    #[inline]
    fn unexpired(&self, keyspace: &KeyspaceState, key: &[u8], stored: Value) -> Result<Option<Value>> {
        let Some(ttl) = self.ttl(keyspace) else { return Ok(Some(stored)) };
        let written =
            ttl::written_secs(key, &stored).map_err(|what| Error::corruption(&self.path, 0, what))?;
        if ttl.is_over(written) {
            return Ok(None);
        }
        debug_assert!(stored.len() >= ttl::STAMP_BYTES, "a stamp was read from {} bytes", stored.len());
        Ok(Some(Value::copy(&stored[..stored.len() - ttl::STAMP_BYTES])))
    }

    #[inline]
    fn finish(&self, keyspace: &KeyspaceState, view: &View, lookup: Lookup<'_>) -> Result<Option<Value>> {
        let value = match lookup.outcome {
            Outcome::Found(value) => self.unexpired(keyspace, lookup.key, value)?,
            Outcome::Open | Outcome::Gone => None,
            Outcome::Blob(reference) => {
                let mut value = Vec::new();
                self.blob_source(&view.version).load(&reference, &mut value)?;
                self.unexpired(keyspace, lookup.key, Value::owned(value))?
            }
        };
        if !lookup.resolver.has_operands() {
            return Ok(value);
        }
        let operator = &keyspace.options.merge_operator;
        let place = (self.path.as_path(), keyspace.name.as_str());
        let merged = lookup.resolver.merge(lookup.key, value.as_deref(), operator, place)?;
        Ok(Some(Value::owned(merged)))
    }
}

impl Inner {
    /// Returns a source for the values in the blob files of `version`.
    pub(crate) fn blob_source(&self, version: &Arc<Files>) -> Arc<dyn BlobSource> {
        let (files, path) = (Arc::clone(&self.tables.files), Arc::clone(&self.path));
        Arc::new(BlobValues { files, path, version: Arc::clone(version) })
    }

    /// Returns the values of `keys`, in the order of `keys`, all as of `at` or of now.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &KeyspaceState,
        keys: &[K],
        at: Option<Seqno>,
    ) -> Result<Vec<Option<Value>>> {
        // ORDER: as in `get`, with one view for all keys.
        let view = keyspace.view.load_full();
        keyspace.check_open()?;
        let at = at.unwrap_or_else(|| self.order.visible());
        debug_assert!(at <= self.order.visible(), "a read at {at}, which is not visible yet");
        let mut lookups: Vec<Lookup<'_>> = keys.iter().map(|key| Lookup::new(key.as_ref(), at)).collect();
        for lookup in &mut lookups {
            lookup.memtable(&view.active);
            for sealed in &view.sealed {
                if !lookup.is_open() {
                    break;
                }
                lookup.memtable(&sealed.memtable);
            }
        }
        self.get_many_in_tables(&view, &mut lookups, at)?;
        lookups.into_iter().map(|lookup| self.finish(keyspace, &view, lookup)).collect()
    }
}
