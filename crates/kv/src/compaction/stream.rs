//! Which entries survive a flush or a compaction.
//!
//! Snapshots cut the sequence numbers into *stripes*: two versions of a key in one stripe look the
//! same to every reader, so of each stripe only the newest survives.
//!
//! ```text
//!   snapshots:            10          20
//!   versions of a key:  9    12   15      23   25
//!                       ^keep     ^keep        ^keep      12 and 23 are seen by nobody
//! ```
//!
//! Merge entries need what is below them, up to and including the first one that is none. Where the
//! operator makes no value of them, or there is no operator, both stay.
//!
//! The values of a keyspace whose entries expire belong into its tables, where their time can be
//! seen. Those that an earlier version has put into blob files are taken back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_vfs::sync::Arc;

use crate::batch::VALUE_BYTES_MAX;
use crate::blob::BlobRef;
use crate::cursor::Cursor;
use crate::file::FileNumber;
use crate::iter::visible::BlobSource;
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::merge_operator::{OPERATOR, Operator};
use crate::range_del::RangeTombstones;
use crate::ttl::{self, Ttl};
use crate::{Error, Result, foreign};

/// What a filter says of an entry that a compaction meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays.
    Keep,
    /// It goes, as if it had been deleted when it was written.
    Remove,
    /// It stays with this value. One longer than [`crate::VALUE_BYTES_MAX`] is not taken: the entry
    /// stays as it is.
    Change(Vec<u8>),
}

/// Decides in compactions about values that no snapshot protects, as RocksDB's compaction filter.
pub trait CompactionFilter: std::fmt::Debug + Send + Sync + 'static {
    /// The name, for messages and the event log.
    fn name(&self) -> &str;

    /// What happens to `key` and `value`, which compactions write to `level`. Called in key order,
    /// once a compaction for the newest version of a key; never for tombstones, merge operands and
    /// values in blob files.
    ///
    /// A panic is caught: the compaction is given up with [`Error::Panicked`], which names the key,
    /// and its input stays.
    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// What messages call a filter.
const FILTER: &str = "the compaction filter";

/// After how many entries a stream looks whether to go on.
const ENTRIES_PER_LOOK: u32 = 1024;

/// What the stream has to know about the rest of the store.
pub(crate) struct Rules<'a> {
    /// Sequence numbers of all snapshots, ascending.
    pub snapshots: Vec<Seqno>,
    /// Range tombstones of all inputs together.
    pub tombstones: Arc<RangeTombstones>,
    /// For chains of merge operands.
    pub operator: Operator,
    /// When entries expire.
    pub ttl: Option<Ttl>,
    /// Where the values come from that are in blob files although they expire. Without it they stay
    /// there.
    pub blobs: Option<Arc<dyn BlobSource>>,
    /// The user's filter.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// The level that is written to.
    pub level: usize,
    /// Asked now and then whether to go on, which ends the stream with its error. It may be long
    /// until a survivor comes.
    pub look: Option<&'a dyn Fn() -> Result<()>>,
    /// The store's directory, for messages.
    pub store: Arc<PathBuf>,
    /// The keyspace's name, likewise.
    pub keyspace: &'a str,
    /// Where the operator panics, its operands stay as they are. Otherwise the stream ends with the
    /// error.
    pub keeps_unmerged: bool,
}

impl Rules<'_> {
    /// The stripe of `seqno`: the first snapshot that sees it, or [`SEQNO_MAX`].
    #[inline]
    fn stripe(&self, seqno: Seqno) -> Seqno {
        if self.snapshots.is_empty() {
            return SEQNO_MAX;
        }
        let at = self.snapshots.partition_point(|&snapshot| snapshot < seqno);
        self.snapshots.get(at).copied().unwrap_or(SEQNO_MAX)
    }

    /// True when every snapshot sees an entry of this number.
    #[inline]
    fn seen_by_all(&self, seqno: Seqno) -> bool {
        self.snapshots.first().is_none_or(|&first| seqno <= first)
    }

    /// True when a range tombstone hides `key` at `seqno` from everybody who could see it.
    #[inline]
    fn is_covered(&self, key: &[u8], seqno: Seqno) -> bool {
        if self.tombstones.is_empty() {
            return false;
        }
        let newest = self.tombstones.newest_covering(key, self.stripe(seqno));
        newest.is_some_and(|tombstone| tombstone > seqno)
    }
}

/// How many entries flushes and compactions have left out, and why.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Versions that a newer one hides.
    pub shadowed: u64,
    /// Entries under range tombstones.
    pub covered: u64,
    /// Tombstones with nothing left to hide.
    pub tombstones: u64,
    /// Entries that the filter removed, and expired ones.
    pub filtered: u64,
}

impl Dropped {
    /// Adds another stream's counts.
    pub(crate) fn add(&mut self, other: Dropped) {
        self.shadowed += other.shadowed;
        self.covered += other.covered;
        self.tombstones += other.tombstones;
        self.filtered += other.filtered;
    }
}

/// The surviving entries of `C`, in order. Pull them with [`Stream::advance`].
pub(crate) struct Stream<'a, C, B> {
    input: C,
    rules: Rules<'a>,
    /// Entries of the input until the next look.
    until_look: u32,
    /// Whether a key (asked in ascending order) can have entries below the output: what is older
    /// and not in the input.
    has_older: B,
    key: Vec<u8>,
    has_key: bool,
    /// The stripe of the last survivor of `key`, when one hides all that is below it in the stripe.
    hidden_stripe: Option<Seqno>,
    /// The current survivor when it is not the input's entry as it is.
    value: Vec<u8>,
    current: Current,
    /// Survivors that were made of several inputs at once, the next one last.
    pending: Vec<(Seqno, Kind, Vec<u8>)>,
    dropped: Dropped,
    /// Bytes of values in blob files whose entries did not survive.
    garbage: BTreeMap<FileNumber, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    /// Before the first, or after the last.
    None,
    /// The entry that the input stands on, under this number.
    Input(Seqno),
    /// `key` and `value`, of this number and kind.
    Made(Seqno, Kind),
}

impl<'a, C: Cursor, B: FnMut(&[u8]) -> Result<bool>> Stream<'a, C, B> {
    /// Survivors of `input`, which must have been placed on its first entry.
    pub(crate) fn new(input: C, rules: Rules<'a>, has_older: B) -> Self {
        Stream {
            input,
            rules,
            until_look: ENTRIES_PER_LOOK,
            has_older,
            key: Vec::new(),
            has_key: false,
            hidden_stripe: None,
            value: Vec::new(),
            current: Current::None,
            pending: Vec::new(),
            dropped: Dropped::default(),
            garbage: BTreeMap::new(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub(crate) fn seqno(&self) -> Seqno {
        match self.current {
            Current::Input(seqno) | Current::Made(seqno, _) => seqno,
            Current::None => 0,
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self.current {
            Current::Made(_, kind) => kind,
            _ => self.input.kind(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.current {
            Current::Made(..) => &self.value,
            _ => self.input.value(),
        }
    }

    /// What was dropped so far.
    pub(crate) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Bytes of values in blob files that nothing in the output points at any more, by file.
    pub(crate) fn take_garbage(&mut self) -> BTreeMap<FileNumber, u64> {
        std::mem::take(&mut self.garbage)
    }

    /// Moves to the next survivor; false at the end. After an error the stream is over.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if let Some((seqno, kind, value)) = self.pending.pop() {
            self.value = value;
            self.current = Current::Made(seqno, kind);
            return Ok(true);
        }
        if matches!(self.current, Current::Input(_)) {
            self.input.next()?;
        }
        self.current = Current::None;
        while self.input.valid() {
            self.look_now_and_then()?;
            let is_new_key = !self.has_key || self.input.key() != self.key.as_slice();
            if is_new_key {
                self.key.clear();
                self.key.extend_from_slice(self.input.key());
                self.has_key = true;
                self.hidden_stripe = None;
            }
            let seqno = self.input.seqno();
            let stripe = self.rules.stripe(seqno);
            if self.hidden_stripe == Some(stripe) {
                self.dropped.shadowed += 1;
                self.drop_input()?;
                continue;
            }
            if self.rules.is_covered(&self.key, seqno) {
                // What a range tombstone hides, it hides with all that is older in the stripe.
                self.hidden_stripe = Some(stripe);
                self.dropped.covered += 1;
                self.drop_input()?;
                continue;
            }
            let survives = match self.input.kind() {
                Kind::Put | Kind::Blob => self.keep_value(seqno, stripe)?,
                Kind::Delete => self.keep_tombstone(seqno, stripe)?,
                Kind::Merge => {
                    self.merge(stripe)?;
                    match self.pending.pop() {
                        Some((seqno, kind, value)) => {
                            self.value = value;
                            self.current = Current::Made(seqno, kind);
                            true
                        }
                        None => false,
                    }
                }
            };
            if survives {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn look_now_and_then(&mut self) -> Result<()> {
        self.until_look -= 1;
        if self.until_look > 0 {
            return Ok(());
        }
        self.until_look = ENTRIES_PER_LOOK;
        self.rules.look.map_or(Ok(()), |look| look())
    }

    /// Leaves the input's entry for good.
    #[inline]
    fn drop_input(&mut self) -> Result<()> {
        if self.input.kind() == Kind::Blob {
            self.count_garbage();
        }
        self.input.next()
    }

    /// Nothing points at the value of the input's entry, which is in a blob file, any more.
    fn count_garbage(&mut self) {
        let reference = BlobRef::decode(self.input.value());
        self.count_garbage_of(reference);
    }

    fn count_garbage_of(&mut self, reference: Option<BlobRef>) {
        if let Some(reference) = reference {
            *self.garbage.entry(reference.number).or_default() += reference.bytes;
        }
    }

    /// The number that a survivor gets: 0 when no reader and no older entry can tell the
    /// difference.
    #[inline]
    fn final_seqno(&mut self, seqno: Seqno) -> Result<Seqno> {
        let is_last = seqno != 0 && self.rules.seen_by_all(seqno) && !(self.has_older)(&self.key)?;
        // A range tombstone that stays must still not cover what is newer than it.
        Ok(if is_last && self.rules.tombstones.is_empty() { 0 } else { seqno })
    }

    #[inline]
    fn keep_value(&mut self, seqno: Seqno, stripe: Seqno) -> Result<bool> {
        self.hidden_stripe = Some(stripe);
        let is_back = self.take_back()?;
        let is_in_table = is_back || self.input.kind() == Kind::Put;
        let mut value = if is_back { self.value.as_slice() } else { self.input.value() };
        let mut written = None;
        if let Some(ttl) = self.rules.ttl.filter(|_| is_in_table) {
            let secs = ttl::written_secs(&self.key, value)
                .map_err(|what| Error::corruption(&self.rules.store, 0, what))?;
            if ttl.is_over(secs) {
                return self.remove_filtered(seqno);
            }
            value = &value[..value.len() - ttl::STAMP_BYTES];
            written = Some(secs);
        }
        if let Some(filter) = &self.rules.filter
            && is_in_table
            && stripe == SEQNO_MAX
        {
            let (level, key) = (self.rules.level, self.key.as_slice());
            let decision =
                foreign::call(self.rules.keyspace, key, FILTER, || filter.filter(level, key, value))?;
            match decision {
                FilterDecision::Keep => {}
                FilterDecision::Change(value) if value.len() > VALUE_BYTES_MAX => {}
                FilterDecision::Remove => return self.remove_filtered(seqno),
                FilterDecision::Change(value) => {
                    self.value = match written {
                        Some(secs) => ttl::stamp(&value, secs),
                        None => value,
                    };
                    self.input.next()?;
                    self.current = Current::Made(seqno, Kind::Put);
                    return Ok(true);
                }
            }
        }
        let seqno = self.final_seqno(seqno)?;
        if is_back {
            self.input.next()?;
            self.current = Current::Made(seqno, Kind::Put);
        } else {
            self.current = Current::Input(seqno);
        }
        Ok(true)
    }

    /// Reads the value of the input's entry into `value` if it is in a blob file and expires; its
    /// bytes there are garbage then. Says whether it is such a one.
    #[inline]
    fn take_back(&mut self) -> Result<bool> {
        if self.rules.ttl.is_none() || self.input.kind() != Kind::Blob {
            return Ok(false);
        }
        let Some(blobs) = &self.rules.blobs else { return Ok(false) };
        blobs.load(self.input.value(), &mut self.value)?;
        self.count_garbage();
        Ok(true)
    }

    /// The newest version has expired, or the filter removed it: a tombstone stands in for it while
    /// there may be older ones.
    fn remove_filtered(&mut self, seqno: Seqno) -> Result<bool> {
        self.dropped.filtered += 1;
        self.input.next()?;
        if self.rules.snapshots.is_empty() && !(self.has_older)(&self.key)? {
            return Ok(false);
        }
        self.value.clear();
        self.current = Current::Made(seqno, Kind::Delete);
        Ok(true)
    }

    fn keep_tombstone(&mut self, seqno: Seqno, stripe: Seqno) -> Result<bool> {
        self.hidden_stripe = Some(stripe);
        if self.rules.seen_by_all(seqno) && !(self.has_older)(&self.key)? {
            self.dropped.tombstones += 1;
            self.input.next()?;
            return Ok(false);
        }
        self.current = Current::Input(seqno);
        Ok(true)
    }

    /// Takes the merge operands of one stripe and, where it is in the stripe too, the entry below
    /// them. Leaves what they come to in `pending`.
    fn merge(&mut self, stripe: Seqno) -> Result<()> {
        let newest = self.input.seqno();
        let mut operands: Vec<(Seqno, Vec<u8>)> = Vec::new(); // newest first
        let mut base: Option<(Seqno, Kind, Vec<u8>)> = None;
        let mut is_hidden = false;
        while self.input.valid() && self.input.key() == self.key.as_slice() {
            let seqno = self.input.seqno();
            if self.rules.stripe(seqno) != stripe {
                break;
            }
            if self.rules.is_covered(&self.key, seqno) {
                is_hidden = true;
                break;
            }
            let (kind, value) = if self.take_back()? {
                (Kind::Put, std::mem::take(&mut self.value))
            } else {
                (self.input.kind(), self.input.value().to_vec())
            };
            self.input.next()?;
            if kind == Kind::Merge {
                operands.push((seqno, value));
            } else {
                base = Some((seqno, kind, value));
                break;
            }
        }
        let is_end = base.is_some() || is_hidden;
        self.hidden_stripe = is_end.then_some(stripe);
        // The first version of the key: nothing older is anywhere, and all snapshots are above.
        let oldest = operands.last().map_or(newest, |(seqno, _)| *seqno);
        let has_more = self.input.valid() && self.input.key() == self.key.as_slice();
        let may_be_first = !is_end && !has_more && self.rules.seen_by_all(oldest);
        let is_first = may_be_first && !(self.has_older)(&self.key)?;
        let parts: Vec<&[u8]> = operands.iter().rev().map(|(_, value)| value.as_slice()).collect();
        if (is_end || is_first)
            && let Some(merged) = self.merged(base.as_ref(), &parts)?
        {
            if let Some((_, Kind::Blob, reference)) = &base {
                self.count_garbage_of(BlobRef::decode(reference));
            }
            let seqno = self.final_seqno(newest)?;
            self.pending.push((seqno, Kind::Put, merged));
            return Ok(());
        }
        // No base here, or no value that comes of it: the operands stay, as one where the operator
        // can.
        let fits = |value: &Vec<u8>| value.len() <= VALUE_BYTES_MAX;
        let whole = match self.rules.operator.as_ref().filter(|_| parts.len() > 1) {
            Some(operator) => self.called(|key| operator.merge_operands(key, &parts))?.flatten().filter(fits),
            None => None,
        };
        match base {
            // Operands on nothing come to the same.
            Some((seqno, Kind::Delete, _))
                if self.rules.seen_by_all(seqno) && !(self.has_older)(&self.key)? =>
            {
                self.dropped.tombstones += 1;
            }
            Some(base) => self.pending.push(base),
            None => {}
        }
        match whole {
            Some(value) => self.pending.push((newest, Kind::Merge, value)),
            None => self
                .pending
                .extend(operands.into_iter().rev().map(|(seqno, value)| (seqno, Kind::Merge, value))),
        }
        Ok(())
    }

    /// What `operands`, oldest first, make of `base`. `None` where nobody can say (there is no
    /// operator, it refuses them, the base is in a blob file that is damaged), and when that is too
    /// long for a value: what was written stays as it is then, and readers of the key are told why.
    /// It is one key's trouble, not the store's.
    fn merged(
        &mut self,
        base: Option<&(Seqno, Kind, Vec<u8>)>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let Some(operator) = self.rules.operator.clone() else { return Ok(None) };
        let mut loaded = Vec::new();
        let base = match base {
            Some((_, Kind::Blob, reference)) => {
                let Some(blobs) = &self.rules.blobs else { return Ok(None) };
                match blobs.load(reference, &mut loaded) {
                    Err(Error::Corruption { .. }) => return Ok(None),
                    result => result?,
                }
                Some(loaded.as_slice())
            }
            Some((_, Kind::Put, value)) => Some(value.as_slice()),
            _ => None,
        };
        let merged = self.called(|key| operator.merge(key, base, operands))?.and_then(|merged| merged.ok());
        Ok(merged.filter(|merged| merged.len() <= VALUE_BYTES_MAX))
    }

    /// What the operator says of the current key. `None` where it panics and that is to change
    /// nothing.
    fn called<T>(&self, code: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        match foreign::call(self.rules.keyspace, &self.key, OPERATOR, || code(&self.key)) {
            Err(_) if self.rules.keeps_unmerged => Ok(None),
            result => result.map(Some),
        }
    }
}
